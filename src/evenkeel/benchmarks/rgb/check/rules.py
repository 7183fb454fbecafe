"""What a reply does, by rules over the word classes of its clauses: decline, report an error, deny an answer.

`rules.json` has the rules in tiers (`patterns` reads them). Every rule looks at one clause; `decide` says how
clauses count together. Each decision keeps the tokens that it was taken by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from evenkeel.benchmarks.rgb.check.patterns import rules
from evenkeel.benchmarks.rgb.check.wording import Reading, asked_forms, asks_yes_or_no, form

WHOLE_QUESTION, HALF_QUESTION = 0.7, 0.35
"""Shares of the question's words that a clause repeats: from which it answers, and with which it may."""


LONG_CLAUSE = 16
"""Tokens of a clause that is not quoted as a whole."""


class Span(NamedTuple):
    """Tokens of a reply by which something was decided, from the first to behind the last."""

    start: int
    end: int


class Clause(NamedTuple):
    """The letters of one clause, and where its tokens are."""

    letters: str
    start: int
    sentence: int
    repeats: float
    """The share of the question's words that are in it."""


class Decisions(NamedTuple):
    """What a reply does, and the tokens that decided it."""

    rejected: Span | None
    detected: Span | None
    right: bool
    """All parts of the right answer are in it, and it gives them as its answer."""
    denied: Span | None
    """Why an answer that is mentioned is not given."""


def decide(reading: Reading, query: str, *, mentioned: bool) -> Decisions:
    """The decisions on a reply. `mentioned`: it has all parts of the right answer."""
    return _Reply(clauses(reading, query), yes_or_no=asks_yes_or_no(query)).decide(mentioned=mentioned)


def clauses(reading: Reading, query: str) -> list[Clause]:
    """The clauses of a reply: between punctuation marks, and from a word of contrast on."""
    asked = asked_forms(query)
    listed: list[Clause] = []
    start = sentence = 0
    for position, token in enumerate([*reading.tokens, None]):
        if token is None or token.letter in ".,bg":
            if position > start:
                tokens = reading.tokens[start:position]
                repeated = {
                    form(word.text)
                    for part in tokens
                    if part.letter in "QJH"
                    for word in reading.words[part.start : part.end]
                }
                share = len(repeated) / max(1, len(asked))
                listed.append(Clause("".join(part.letter for part in tokens), start, sentence, share))
            start = position + (token is not None and token.letter in ".,")
            sentence += token is not None and token.letter == "."
    return listed


class _Reply:
    """The clauses of a reply, and what each of them does."""

    def __init__(self, listed: Sequence[Clause], *, yes_or_no: bool) -> None:
        self.clauses = listed
        self.yes_or_no = yes_or_no
        self.letters = [clause.letters for clause in listed]
        self.errors = self._errors()
        self.tiers = [self._tier(number) for number in range(len(listed))]

    def decide(self, *, mentioned: bool) -> Decisions:
        about_question = [n for n, tier in enumerate(self.tiers) if tier and not self._is_detail(n)]
        answers = [n for n, letters in enumerate(self.letters) if "G" in letters]
        given = [n for n in answers if not self._denial(n)]
        denied = next((span for n in answers if (span := self._denial(n))), None)
        right = mentioned and (bool(given) or not answers)
        if right and not self.errors and (span := self._gives_another(given)):
            right, denied = False, span
        declining: list[int] = []
        if right:
            clear = [n for n in about_question if self.tiers[n] != "not_there"]
            giving = [n for n in given if self._gives(n, clear)] if clear else given
            if clear and answers and not giving:
                right, declining = False, clear
            elif clear and giving:
                declining = [n for n in clear if self.tiers[n] == "refuses" and n < min(giving)]
        elif any(self.tiers):
            declining = self._declining(about_question)
        rejected = self._span(declining[0], self.tiers[declining[0]]) if declining else None
        if not rejected and not right and not self.errors:
            rejected = self._without_answer()
        if not right and rejected and mentioned:
            denied = denied or rejected
        detected = self.errors[0] if self.errors else None
        return Decisions(rejected, detected, right, None if right else denied)

    # Reporting an error

    def _errors(self) -> list[Span]:
        everything = ".".join(self.letters)
        about_documents = "d" in everything or "K" in everything
        spans = []
        for number, letters in enumerate(self.letters):
            if self._find("no_error", letters):
                continue
            if about_documents and self._find("error", letters):
                spans.append(self._span(number, "error"))
            elif self._find("factual_error", letters):
                spans.append(self._span(number, "factual_error"))
            elif self._find("error_in_the_matter", letters) and not about_documents:
                spans.append(self._span(number, "error_in_the_matter"))
            elif self._find("error_alone", letters) and self._is_about_documents(number):
                spans.append(self._span(number, "error_alone"))
        return spans or self._contradictions(everything)

    def _is_about_documents(self, number: int) -> bool:
        """Whether an error is one of the documents that the clauses around it speak of."""
        sentence, short = self.clauses[number].sentence, len(self.letters[number]) <= 4
        for other in range(max(0, number - 3), min(len(self.letters), number + 2)):
            if other != number and re.search("[dK]", self.letters[other]):
                same = self.clauses[other].sentence == sentence
                if (same and (other == number - 1 or short)) or (short and other == number - 1):
                    return True
        return False

    def _contradictions(self, everything: str) -> list[Span]:
        """Reports without a word for an error: "the documents say Leeds, but it is York"."""
        spans = []
        for number, letters in enumerate(self.letters):
            before = self.letters[number - 1] if number else ""
            if re.search("[GK]", everything) and self._find("contradicts", letters):
                spans.append(self._span(number, "contradicts"))
            elif self._find("states", letters) and self._find("not_false", before):
                spans.append(self._span(number, "states"))
            elif "G" not in letters or "n" in letters:
                continue
            elif self._find("corrects", letters) and (
                self._find("states_false", before) or ("K" in letters and "h" in letters)
            ):
                spans.append(self._span(number, "corrects"))
            elif self._find("in_truth", letters) and self._states_before(number):
                spans.append(self._span(number, "in_truth"))
        return spans

    def _states_before(self, number: int) -> bool:
        """Whether the clauses before say what the documents state, and no answer of its own."""
        earlier = self.letters[max(0, number - 4) : number]
        return any(self._find("states", letters) for letters in earlier) and not any(
            "G" in letters or "n" in letters for letters in earlier
        )

    # Declining

    def _tier(self, number: int) -> str:
        """The tier of rules by which a clause declines, or nothing."""
        letters = self.letters[number]
        reported = any(self._covers(span, number) for span in self.errors)
        if (reported and not re.search("[Alv]", letters)) or (self.yes_or_no and letters == "n"):
            return ""
        if self._find("refuses", letters) and not re.search("[fe]", letters):
            return "refuses"
        if self._find("not_declining", letters):
            return ""
        if re.search("[eCy]", letters) and not re.search("[lv]", letters):
            return ""
        named = self.errors and not re.search("[pdHJil]", letters)
        for tier in ("not_known", "not_said"):
            if self._find(tier, letters):
                return "" if named else tier
        own = re.search("p[^n]*n[^n]*[HJQ]", letters)
        return "not_there" if self._find("not_there", letters) and (own or not self.errors) else ""

    def _is_detail(self, number: int) -> bool:
        """Whether a clause declines something else than what was asked."""
        letters = self.letters[number]
        if self._find("about_some_documents", letters):
            return True
        if re.search("[qaJ]", letters):
            return False
        if self._find("about_a_detail", letters):
            return True
        return not re.search("[HQ]", letters) and bool(re.search("[wM]", letters))

    def _declining(self, about_question: Sequence[int]) -> list[int]:
        """The clauses by which a reply without the right answer declines, unless it answers otherwise."""
        numbers = range(len(self.letters))
        refusing = [n for n in about_question if self.tiers[n] == "refuses"]
        if refusing:
            return refusing
        plainly = [
            n
            for n in about_question
            if not re.search("[wOM]", self.letters[n])
            or (re.search("[JHQ]", self.letters[n]) and not self._other_matter(n))
        ]
        if plainly:
            return [] if any(self._answers(n, about_question[0]) for n in numbers) else plainly
        if any(self._may_answer(n) for n in numbers):
            return []
        return [n for n in numbers if self.tiers[n]]

    def _without_answer(self) -> Span | None:
        """The negation or the apology of a reply in which nothing could be an answer."""
        everything = ".".join(self.letters)
        if (
            self.yes_or_no
            or re.search("[GKM#eyuT]", everything)
            or any(map(self._may_answer, range(len(self.letters))))
        ):
            return None
        return next(
            (
                Span(clause.start, clause.start + len(clause.letters))
                for clause in self.clauses
                if re.search("[nS]", clause.letters) and not self._find("not_declining", clause.letters)
            ),
            None,
        )

    def _other_matter(self, number: int) -> bool:
        """A clause that asks for the same kind of thing, but of something else: "who paid is not said"."""
        letters = self.letters[number]
        return "J" in letters and "w" in letters and "Q" not in letters

    # Answering

    def _answers(self, number: int, first: int) -> bool:
        """Whether a clause clearly gives some answer, in a reply that declines from the clause `first` on."""
        letters = self.letters[number]
        if self._is_taken(number) or "n" in letters:
            return False
        if number == 0 and self._leads() and not self.clauses[0].repeats:
            return True
        if number == 0 and re.fullmatch("w{1,4}", letters) and self._ends_sentence(0):
            return len(self.letters) > 1
        if re.search("u[^n]*(?:[GKM#]|Bw)|[GKM#][^n]*u|a[^nq]*[GKM#]", letters):
            return True
        if number > first and letters[0] in "bgr" and re.search("[uB][^d]*[GKMw]|^[^c]*[GK]", letters):
            return True
        whole = self.clauses[number].repeats >= WHOLE_QUESTION
        return whole and "d" not in letters and bool(re.search("[GKM]", letters))

    def _leads(self) -> bool:
        """Whether a reply begins with an answer alone, not a label ("Status:") or the number of a list."""
        letters = self.letters[0]
        if not self._find("answer_alone", letters) or self.letters.count("#") > 1:
            return False
        label = letters == "M" and not self._ends_sentence(0) and self.letters[1][0] not in "bg"
        return not label or not self.tiers[1] or self._is_detail(1)

    def _may_answer(self, number: int) -> bool:
        """Whether a clause gives some answer, in a reply that declines only what may be a detail."""
        letters, repeats = self.letters[number], self.clauses[number].repeats
        if self._is_taken(number):
            return False
        if number == 0 and (self._leads() or re.fullmatch("w{1,6}", letters)):
            return True
        if number == len(self.letters) - 1 and self._find("answer_at_last", letters):
            return True
        if "n" in letters or not re.search("[GKM#w]", letters):
            return False
        if self._find("concludes", letters):
            return True
        if "d" in letters and not re.match("[xmS]*d[#m]?[cx]", letters):
            return False
        if repeats >= WHOLE_QUESTION:
            return True
        first = number == 0 and re.match("[xmS]*[jQHJ]+[xQ]*[BwxQ]*[KGM#]", letters)
        return bool(first) and (repeats >= HALF_QUESTION or letters[0] == "j")

    def _gives(self, number: int, declining: Sequence[int]) -> bool:
        """Whether a clause with the right answer gives it, in a reply that declines as well."""
        letters = self.letters[number]
        if self._may_answer(number):
            return True
        if number > declining[-1]:
            return any(self.letters[n][0] in "bgr" for n in range(declining[-1] + 1, number + 1))
        if number < declining[0] and not re.search("[cN]", letters):
            opposed = number + 1 == declining[0] and self.letters[number + 1][0] == "b"
            return not opposed and bool(
                re.search("[QHJja][^nd]*G|G[^nd]*[QHJj]|^[xmB]*G[xw#]{0,2}$", letters)
            )
        return False

    # Denying

    def _denial(self, number: int) -> Span | None:
        letters = self.letters[number]
        if self._find("not_denied", letters) or not self._find("denied", letters):
            return None
        return self._span(number, "denied")

    def _gives_another(self, given: Sequence[int]) -> Span | None:
        """Where a reply gives the false answer first or at last, and the right one only beside it."""
        if not given:
            return None
        doubt = re.compile("[neyhtTbrua]")
        for number, letters in enumerate(self.letters[: given[0]]):
            between = "".join(self.letters[number : given[0] + 1])
            if number == 0 and self._find("other_answer", letters) and not doubt.search(between):
                return self._span(0, "other_answer")
        beside = not any(self.clauses[number].repeats for number in given)
        for number, letters in enumerate(self.letters):
            whole = self._ends_sentence(number) or self.letters[number + 1][0] == "b"
            if beside and whole and "G" not in letters and self._find("another_in_its_place", letters):
                return self._span(number, "another_in_its_place")
        for number in range(given[-1] + 1, len(self.letters)):
            letters, before = self.letters[number], self.letters[number - 1]
            labelled = re.fullmatch("[QHaxmr]+", before) and not self._ends_sentence(number - 1)
            if self._find("concludes_otherwise", letters) or (labelled and re.match("[KM]", letters)):
                return self._span(number, "concludes_otherwise")
        return None

    # Clauses and rules

    def _is_taken(self, number: int) -> bool:
        """Whether a clause declines, reports or names candidates, and so gives no answer."""
        return bool(
            self.tiers[number]
            or any(self._covers(span, number) for span in self.errors)
            or "N" in self.letters[number]
        )

    def _ends_sentence(self, number: int) -> bool:
        return (
            number + 1 == len(self.clauses)
            or self.clauses[number + 1].sentence != self.clauses[number].sentence
        )

    def _covers(self, span: Span, number: int) -> bool:
        clause = self.clauses[number]
        return clause.start <= span.start < clause.start + len(clause.letters)

    def _find(self, tier: str, letters: str) -> re.Match[str] | None:
        return rules()[tier].search(letters)

    def _span(self, number: int, tier: str) -> Span:
        """The clause by which something was decided; of a long one, what the rule found in it."""
        clause = self.clauses[number]
        match = self._find(tier, clause.letters) if len(clause.letters) > LONG_CLAUSE else None
        start, end = match.span() if match else (0, len(clause.letters))
        return Span(clause.start + start, clause.start + max(end, start + 1))
