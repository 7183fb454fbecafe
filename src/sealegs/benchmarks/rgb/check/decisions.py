"""What a reply does as a whole: decline, report an error, give the right answer or deny it.

Every rule looks at one clause: it reports (`reports`), declines (`remarks`), answers (`answering`) or denies
an answer (`text/answer_check`). `decide` says how clauses count together. Each decision keeps the tokens that
it was taken by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sealegs.benchmarks.rgb.check.answering import Answering
from sealegs.benchmarks.rgb.check.last_value import is_told_by_one
from sealegs.benchmarks.rgb.check.remarks import Remarks
from sealegs.benchmarks.rgb.check.reports import errors
from sealegs.benchmarks.rgb.check.rules import find
from sealegs.text.answer_check.clauses import TokenSpan, clauses, ends_sentence, quote
from sealegs.text.answer_check.denials import denied_clauses, is_about_the_answer
from sealegs.text.answer_check.given import read_given
from sealegs.text.answer_check.wording import ClassifiedReply, asks_about_error

LONG = 12
"""Clauses of a sentence, to either side of one, that are read with it."""


class Decisions(NamedTuple):
    """What a reply does, and the tokens that decided it."""

    rejected: TokenSpan | None
    detected: TokenSpan | None
    right: bool
    """All parts of the right answer are in it, and it gives them as its answer."""
    denied: TokenSpan | None
    """Why an answer that is mentioned is not given."""


def decide(reading: ClassifiedReply, query: str, *, mentioned: bool, answered: bool = False) -> Decisions:
    """The decisions on a reply. `mentioned`: it has all parts of the right answer; `answered`: it says yes
    or no to the question."""
    reply = _ReplyClauses(reading, query)
    return reply.decide(mentioned=mentioned, answered=answered)


class _ReplyClauses:
    """The clauses of a reply, and what they do together."""

    def __init__(self, reading: ClassifiedReply, query: str) -> None:
        self.reading = reading
        self.clauses = listed = clauses(reading, query)
        self.letters = [clause.letters for clause in listed]
        reported = errors(listed, about_error=asks_about_error(query))
        self.errors = [span for span in reported if not is_about_the_answer(listed, span)]
        self.remarks = Remarks(listed, query, self.errors, han=reading.han)
        tiers = [self.remarks.tier(number) for number in range(len(listed))]
        self.denied = denied_clauses(listed, tiers)
        self.tiers = ["" if n in self.denied else tier for n, tier in enumerate(tiers)]
        self.answering = Answering(self.remarks, self.tiers)

    def decide(self, *, mentioned: bool, answered: bool) -> Decisions:
        about_question = [n for n, tier in enumerate(self.tiers) if tier and not self._is_beside(n)]
        answers = [n for n, letters in enumerate(self.letters) if "G" in letters]
        said = read_given(self.reading, self.clauses, self.denied)
        given, denied = said.clauses, said.denied
        right = mentioned and (bool(given) or not answers)
        detected = self.errors[0] if self.errors else None
        if right and said.other:
            return Decisions(None, detected, right=False, denied=said.other)
        declining: list[int] = []
        numbers = range(len(self.letters))
        if right:
            clear = [n for n in about_question if self.tiers[n] != "not_there"]
            giving = [n for n in given if self.answering.gives(n, clear)] if clear else given
            if (clear and answers and not giving) or (giving and self._refuses_at_last(clear, giving)):
                concluded = any("G" not in self.letters[n] and self.answering.concludes(n) for n in numbers)
                right, declining = False, [] if concluded else clear
            elif clear and giving and not any(map(self._is_told_by_one, giving)):
                declining = [n for n in clear if self.tiers[n] == "refuses" and n < min(giving)]
        elif any(self.tiers) and not answered:
            declining = self._declining(about_question)
            if declining and any(map(self.answering.concludes, range(declining[0]))):
                declining = []  # "The answer is 1912. The documents do not mention ..."
        rejected = self._quote(declining[0]) if declining else None
        if not rejected and not right and not self.errors:
            rejected = self._without_answer()
        if not right and rejected and mentioned:
            denied = denied or rejected
        return Decisions(rejected, detected, right, None if right else denied)

    def _whole(self, number: int) -> TokenSpan:
        clause = self.clauses[number]
        return TokenSpan(clause.start, clause.start + len(clause.letters))

    def _quote(self, number: int) -> TokenSpan:
        return quote(self.clauses[number], find(self.tiers[number], self.letters[number]))

    # Declining

    def _declining(self, about_question: Sequence[int]) -> list[int]:
        """The clauses by which a reply without the right answer declines, unless it answers otherwise."""
        numbers = range(len(self.letters))
        refusing = [n for n in about_question if self.tiers[n] == "refuses"]
        if refusing and not any(self._answers_after(refusing[-1], n) for n in numbers):
            return refusing
        plainly = [
            n
            for n in about_question
            if re.search("[JHQ]", self.letters[n]) or not re.search("[wOM]", self.letters[n])
        ]
        if plainly:
            return [] if any(self.answering.answers(n, about_question[0]) for n in numbers) else plainly
        remarks = [n for n in numbers if self.tiers[n]]
        if any(self.answering.may_answer(n) or self.answering.answers(n, remarks[0]) for n in numbers):
            return []
        if (self._tells or self._begins_with_a_value) and all("D" in self.letters[n] for n in remarks):
            return []
        if self._one_states or (self._is_about_some(remarks) and self._names_a_value(remarks)):
            return []
        if all(map(self.remarks.is_about_others, remarks)):
            # "The others do not mention it": one of them does.
            others = [n for n in numbers if n not in remarks]
            stated = any(self.remarks.has_value(n) or find("stated_is", self.letters[n]) for n in others)
            return [] if stated else remarks
        return [
            n
            for n in remarks
            if self.tiers[n] != "not_said"
            or not (find("beside_the_matter", self.letters[n]) or self.remarks.is_of_own_matter(n))
        ]

    def _is_told_by_one(self, number: int) -> bool:
        """Whether a clause is what one document says, at the end of a reply."""
        return is_told_by_one(self.clauses, number, han=self.remarks.han)

    def _answers_after(self, refusing: int, number: int) -> bool:
        """Whether a clause answers what one before it does not answer "with certainty", or "directly"."""
        if number > refusing and self.answering.concludes(number):
            return True
        if number > refusing and self._is_told_by_one(number):
            return self.answering.answers(number, refusing)
        between = ".".join(self.letters[refusing + 1 : number + 1])
        opposed = re.search(r"(?:^|\.)b", between) and "u" not in between
        return bool(opposed) and self.answering.answers(number, refusing)

    def _is_beside(self, number: int) -> bool:
        """Whether it declines something else than what was asked, or names none of it beside a value."""
        if self.remarks.is_detail(number):
            return True
        beside = self.answering.stating and self.tiers[number] != "refuses"
        return bool(beside) and not self._names_the_question(number)

    def _names_the_question(self, number: int) -> bool:
        """Whether the sentence of a clause that declines names what was asked, besides where it answers or
        says what documents discuss: "The CEO, however, is not named"."""
        elided = self.letters[number][0] in "nB"
        answering = set() if elided else self.answering.stating
        told = [n for n in self._sentence(number) if re.search("d[^nQ]*Z", self.letters[n])]
        around = [
            self.letters[n] for n in self._sentence(number) if n == number or n not in (*answering, *told)
        ]
        return bool(re.search("[JHQqa]|W(?!j)", "".join(around)))

    def _sentence(self, number: int) -> range:
        """The clauses of the sentence of one, or the nearest of them."""
        sentence = self.clauses[number].sentence
        near = range(max(0, number - LONG), min(len(self.clauses), number + LONG + 1))
        same = [n for n in near if self.clauses[n].sentence == sentence]
        return range(same[0], same[-1] + 1)

    def _is_about_some(self, remarks: Sequence[int]) -> bool:
        """Whether remarks are all about some documents only."""
        return all(map(self.remarks.is_about_some, remarks))

    def _names_a_value(self, remarks: Sequence[int]) -> bool:
        """Whether a sentence ends with a value alone: "In brief: Rome"."""
        return any(
            n not in remarks
            and self.remarks.has_value(n)
            and find("named_alone", letters)
            and ((n and not ends_sentence(self.clauses, n - 1)) or re.search("[GKM#]", letters))
            and ends_sentence(self.clauses, n)
            for n, letters in enumerate(self.letters)
        )

    @property
    def _one_states(self) -> bool:
        """Whether one document answers: "Most are not relevant. The one that is says 1912"."""
        return any(
            self.remarks.has_value(n)
            and find("one_that_states", letters)
            and n not in self.answering.set_aside
            for n, letters in enumerate(self.letters)
        )

    @property
    def _tells(self) -> bool:
        """Whether a clause answers, in a reply that has no further details."""
        return any(
            self.remarks.has_value(n)
            and find("answers_a_detail", letters)
            and not re.search("[ndcZ]", letters)
            for n, letters in enumerate(self.letters)
        )

    @property
    def _begins_with_a_value(self) -> bool:
        """Whether a reply begins with a value, also behind where it has that from: "As I read it, York"."""
        letters = self.letters[:2]
        begins = [n for n, each in enumerate(letters) if not re.search("[nlvAdepaqScCXZ]", each)]
        led = bool(re.search("d|pm*k", letters[0])) and not re.search("[nlvA]", letters[0])
        return any(self.remarks.has_value(n) and (not n or led) for n in begins)

    def _refuses_at_last(self, clear: Sequence[int], giving: Sequence[int]) -> bool:
        """Whether a reply ends with a refusal, after it has named the right answer without giving it."""
        last = [
            n
            for n in clear
            if n > giving[-1]
            and not self._is_on_a_topic(n)
            and (self.tiers[n] == "refuses" or self._declines_the_question(n))
        ]
        return bool(last) and not any(self.answering.answers(n, clear[0]) for n in giving)

    def _is_on_a_topic(self, number: int) -> bool:
        """Whether a clause stands behind the matter that it speaks of: "As to the hour, I found nothing"."""
        same = number and not ends_sentence(self.clauses, number - 1)
        return bool(same and find("on_a_topic", self.letters[number - 1]))

    def _declines_the_question(self, number: int) -> bool:
        """Whether what a clause declines is the question itself: "I can't tell", "who won is not said"."""
        letters = self.letters[number]
        before = self.letters[number - 1] if number and not ends_sentence(self.clauses, number - 1) else ""
        if find("knows_nothing", letters):
            return True
        if re.search("[dn]", before) or not re.fullmatch("[dnlckxmVB]*", letters):
            before = ""
        both = before + letters
        return "J" in both and "Q" in both and not re.search("[wMO#]", both)

    def _without_answer(self) -> TokenSpan | None:
        """The remark, the negation or the apology of a reply in which nothing could be an answer."""
        open_kind = "w" in self.remarks.values.pattern
        everything = ".".join(letters for letters in self.letters if not self._only_describes(letters))
        everything = re.sub("#?d#?", "d", everything)  # "the five documents" gives no number
        values = "[GKM#]" if open_kind else self.remarks.values.pattern
        if (
            self.remarks.yes_or_no
            or self._one_states
            or re.search(f"{values}|[eyXuT]", everything)
            or any(
                self.answering.may_answer(n) or self.answering.answers(n, 0) for n in range(len(self.letters))
            )
        ):
            return None
        for number, clause in enumerate(self.clauses):
            denies_what_was_asked = "Q" in clause.letters and "n" in clause.letters  # "She did not win"
            says_no = re.search("[nSA]", clause.letters) and not (
                denies_what_was_asked or self.remarks.sets_apart(number)
            )
            alone = clause.letters == "n" and not ends_sentence(self.clauses, number)
            other = any(find(tier, clause.letters) for tier in ("not_declining", "of_a_story"))
            other = other or self.remarks.is_of_own_matter(number)
            beside = other or self.remarks.is_hedge(number) or not self.remarks.is_remark(number)
            if beside or alone or ("D" in clause.letters and (self._tells or self._begins_with_a_value)):
                continue  # "No, ..." says nothing by itself
            if says_no or self._only_describes(clause.letters):
                return self._whole(number)
        return None

    def _only_describes(self, letters: str) -> bool:
        """Whether a clause says that the documents are only about this: "they cover the race only"."""
        if find("describes_else", letters):
            return True
        return bool(find("describes", letters)) and "V" in letters and not re.search("[GKM#]", letters)
