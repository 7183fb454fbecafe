"""What a reply does, by rules over the word classes of its clauses: decline, report an error, deny an answer.

`rules.json` has the rules in tiers (`patterns` reads them). Every rule looks at one clause; `decide` says how
clauses count together. Each decision keeps the tokens that it was taken by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sealegs.benchmarks.rgb.check.clauses import (
    Clause,
    TokenSpan,
    clauses,
    ends_sentence,
    find,
    is_spoken,
    quote,
)
from sealegs.benchmarks.rgb.check.denials import denial, denied_clauses, is_about_the_answer
from sealegs.benchmarks.rgb.check.reports import errors
from sealegs.benchmarks.rgb.check.wording import (
    HAN_WORD,
    ClassifiedReply,
    asks_about_error,
    asks_yes_or_no,
    value_letters,
)

WHOLE_QUESTION, HALF_QUESTION = 0.7, 0.35
"""Shares of the question's words that a clause repeats: from which it answers, and with which it may."""
VALUE = "(?:[GKM](?:x?[GKM])*|#{1,4}w{0,2})"
VALUE_AT_LAST = re.compile(
    f"[xmbg]*(?:j[Bmcjx]*|r[xmB]*|(?:d#?m*c|o#?m*d?c?)[Bxm]*){VALUE}|[xm]*(?:[GKM](?:x?[GKM])*|###+)"
)
"""A last clause that is a value: "it says 1998", "so Ada Lock", "document 3 gives 4.5 million"."""
TOLD_IN_HAN = re.compile("[bxm]*[Po]?#?d?c[xm]*B[^nlvd]{1,12}")
"""The same: 第三篇写的是苍桥营造."""
MANY = 40
"""Words by which the script of a reply is told."""
SHORT_REPLY, SHORT_REMARK = 5, 2
"""Words of a matter of its own that a reply, and a clause of one that speaks of itself, may have and decline:
one with more tells something. Two Han characters are a word."""


class Decisions(NamedTuple):
    """What a reply does, and the tokens that decided it."""

    rejected: TokenSpan | None
    detected: TokenSpan | None
    right: bool
    """All parts of the right answer are in it, and it gives them as its answer."""
    denied: TokenSpan | None
    """Why an answer that is mentioned is not given."""


def decide(reading: ClassifiedReply, query: str, *, mentioned: bool) -> Decisions:
    """The decisions on a reply. `mentioned`: it has all parts of the right answer."""
    han = any(HAN_WORD.match(word.text) for word in reading.words[:MANY])
    reply = _ReplyClauses(clauses(reading, query), query, han=han)
    return reply.decide(mentioned=mentioned)


class _ReplyClauses:
    """The clauses of a reply, and what each of them does."""

    def __init__(self, listed: Sequence[Clause], query: str, *, han: bool) -> None:
        self.clauses = listed
        self.yes_or_no, values = asks_yes_or_no(query), value_letters(query, han=han)
        self.letters = [clause.letters for clause in listed]
        self.word = 2 if han else 1
        own = ".".join(letters for n, letters in enumerate(self.letters) if not is_spoken(listed, n))
        self.is_short = self._matter(".".join(self.letters)) <= SHORT_REPLY
        self.names_documents = bool(re.search("[paSdqi]", own))
        self.speaks_of_itself = bool(re.search("[paS]|d.*d", own))
        reported = errors(listed, about_error=asks_about_error(query))
        self.errors = [span for span in reported if not is_about_the_answer(listed, span)]
        if self.errors:
            values = values.replace("K", "")  # what is reported is no answer
        self.values = re.compile(f"[{values}]")
        self.tiers = [self._tier(number) for number in range(len(listed))]
        self.denied = denied_clauses(listed, self.tiers)
        self.tiers = ["" if n in self.denied else tier for n, tier in enumerate(self.tiers)]

    def decide(self, *, mentioned: bool) -> Decisions:
        about_question = [n for n, tier in enumerate(self.tiers) if tier and not self._is_detail(n)]
        answers = [n for n, letters in enumerate(self.letters) if "G" in letters]
        given = [n for n in answers if n not in self.denied and not denial(self.clauses, n)]
        denied = next(
            (span for n in answers if (span := self.denied.get(n) or denial(self.clauses, n))), None
        )
        right = mentioned and (bool(given) or not answers)
        if right and not self.errors and (span := self._gives_another(given)):
            right, denied = False, span
        declining: list[int] = []
        if right:
            clear = [
                n
                for n in about_question
                if self.tiers[n] != "not_there" or find("not_in_them", self.letters[n])
            ]
            giving = [n for n in given if self._gives(n, clear)] if clear else given
            if (clear and answers and not giving) or (giving and self._refuses_at_last(clear, giving)):
                right, declining = False, clear
            elif clear and giving:
                declining = [n for n in clear if self.tiers[n] == "refuses" and n < min(giving)]
        elif any(self.tiers):
            declining = self._declining(about_question)
            if declining and any(map(self._concludes, range(declining[0]))):
                declining = []  # "The answer is 1912. The documents do not mention ..."
        rejected = quote(self.clauses[declining[0]], self.tiers[declining[0]]) if declining else None
        if not rejected and not right and not self.errors:
            rejected = self._without_answer()
        if not right and rejected and mentioned:
            denied = denied or rejected
        detected = self.errors[0] if self.errors else None
        return Decisions(rejected, detected, right, None if right else denied)

    # Declining

    def _tier(self, number: int) -> str:
        """The tier of rules by which a clause declines, or nothing."""
        letters = self.letters[number]
        if not self._is_remark(number):
            return ""
        reported = any(self._covers(span, number) for span in self.errors)
        only_no = letters == "n" and (self.yes_or_no or not ends_sentence(self.clauses, number))
        if (reported and not re.search("[Alv]", letters)) or only_no:
            return ""
        if any(
            find(tier, letters)
            for tier in ("finds_no_error", "answer_rejected", "pronoun_denied", "of_a_story")
        ):
            return ""
        if find("refuses", letters) and not re.search("[fe]", letters):
            return "refuses"
        if find("not_declining", letters):
            return ""
        if re.search("[eCyX]", letters) and not re.search("[lv]", letters):
            return ""
        named = self.errors and not re.search("[pdHJilT]", letters)
        for tier in ("not_known", "not_said"):
            if find(tier, letters):
                return "" if named else tier
        if self._sets_apart(number):
            return ""
        own = re.search("p[^n]*n[^n]*[HJQ]", letters)
        there = find("not_there", letters) or self._is_told_else(number)
        return "not_there" if there and (own or not self.errors) else ""

    def _is_remark(self, number: int) -> bool:
        """Whether a clause can be about the reply or its documents, and is no part of a story."""
        letters, matter = self.letters[number], self._matter(self.letters[number])
        if is_spoken(self.clauses, number):
            return False
        if self.is_short or find("of_documents", letters):
            return True
        if self.names_documents and not matter and self._has_speaker(number):
            return True
        last = number + 1 == len(self.clauses) and ends_sentence(self.clauses, number - 1)
        if last and matter <= 1 and find("not_known", letters):
            return True  # "... Who does? Left unnamed."
        return self.speaks_of_itself and matter <= SHORT_REMARK

    def _has_speaker(self, number: int) -> bool:
        """Whether the subject of a clause, which may be that of the clause before, can be the documents, the
        reply or the question: not in "The club showed interest but did not make an offer"."""
        elided = number and re.match("[bxmg]*n", self.letters[number])
        if not elided or ends_sentence(self.clauses, number - 1):
            return True
        return bool(re.search("[dpqaijSQHJ]", self.letters[number - 1]))

    def _matter(self, letters: str) -> float:
        """How many words have a matter of their own."""
        return len(re.findall("[wM#O]", letters)) / self.word

    def _sets_apart(self, number: int) -> bool:
        """Whether a clause sets apart what the one before has answered: "It lies on a river, not a canal"."""
        if self.letters[number][0] != "n" or not number or ends_sentence(self.clauses, number - 1):
            return False
        before = self.clauses[number - 1]
        return before.repeats >= WHOLE_QUESTION and "d" not in before.letters

    def _is_told_else(self, number: int) -> bool:
        """Whether documents tell something else than what was asked: "They give 2019, but not 2022"."""
        sentence = self.clauses[number].sentence
        before = [clause.letters for clause in self.clauses[:number] if clause.sentence == sentence]
        return bool(find("tells_else", ",".join([*before, self.letters[number]])))

    def _is_detail(self, number: int) -> bool:
        """Whether a clause declines something else than what was asked."""
        letters = self.letters[number]
        if find("about_some_documents", letters) or find("about_other_documents", letters):
            return True
        if self._is_under_another_label(number) or self._is_of_the_value(number):
            return True
        if re.search("[qaJ]", letters):
            return False
        if find("about_a_detail", letters):
            return True
        return not re.search("[HQ]", letters) and bool(re.search("[wM]", letters))

    def _is_under_another_label(self, number: int) -> bool:
        """Whether a clause is "unknown" or "not stated" behind a label that is not what was asked for."""
        if (
            not number
            or ends_sentence(self.clauses, number - 1)
            or not find("unknown_alone", self.letters[number])
        ):
            return False
        return number > 1 and bool(find("another_label", self.letters[number - 1]))

    def _is_of_the_value(self, number: int) -> bool:
        """Whether a clause is about the value before it: "It opened in 2012, which is not stated"."""
        if not number or ends_sentence(self.clauses, number - 1) or not self._has_value(number - 1):
            return False
        return "d" not in self.letters[number - 1] and bool(find("of_the_value", self.letters[number]))

    def _declining(self, about_question: Sequence[int]) -> list[int]:
        """The clauses by which a reply without the right answer declines, unless it answers otherwise."""
        numbers = range(len(self.letters))
        refusing = [n for n in about_question if self.tiers[n] == "refuses"]
        if refusing:
            return refusing
        plainly = [
            n
            for n in about_question
            if re.search("[JHQ]", self.letters[n]) or not re.search("[wOM]", self.letters[n])
        ]
        if plainly:
            return [] if any(self._answers(n, about_question[0]) for n in numbers) else plainly
        remarks = [n for n in numbers if self.tiers[n]]
        if any(self._may_answer(n) or self._answers(n, remarks[0]) for n in numbers):
            return []
        if self._tells and all("D" in self.letters[n] for n in remarks):
            return []
        if any(find("some_documents_state", letters) for letters in self.letters):
            return []  # "Documents 1 and 2 are unrelated. Document 3 says ..."
        if all(find("about_other_documents", self.letters[n]) for n in remarks):
            # "The others do not mention it": one of them does.
            others = [n for n in numbers if n not in remarks]
            stated = any(self._has_value(n) or find("stated_is", self.letters[n]) for n in others)
            return [] if stated else remarks
        return [
            n
            for n in remarks
            if self.tiers[n] != "not_said" or not find("beside_the_matter", self.letters[n])
        ]

    @property
    def _tells(self) -> bool:
        """Whether a clause answers, in a reply that has no further details."""
        return any(
            self._has_value(n) and find("answers_a_detail", letters) and not re.search("[ndcZ]", letters)
            for n, letters in enumerate(self.letters)
        )

    def _refuses_at_last(self, clear: Sequence[int], giving: Sequence[int]) -> bool:
        """Whether a reply ends with a refusal, after it has named the right answer without giving it."""
        last = [
            n
            for n in clear
            if n > giving[-1]
            and not self._is_on_a_topic(n)
            and (self.tiers[n] == "refuses" or self._declines_the_question(n))
        ]
        return bool(last) and not any(self._answers(n, clear[0]) for n in giving)

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
        open_kind = "w" in self.values.pattern
        everything = ".".join(letters for letters in self.letters if not self._only_describes(letters))
        values = "[GKM#]" if open_kind else self.values.pattern
        if (
            self.yes_or_no
            or re.search(f"{values}|[eyXuT]", everything)
            or any(self._may_answer(n) or self._answers(n, 0) for n in range(len(self.letters)))
        ):
            return None
        for number, clause in enumerate(self.clauses):
            denies_what_was_asked = "Q" in clause.letters and "n" in clause.letters  # "She did not win"
            says_no = re.search("[nSA]", clause.letters) and not (
                denies_what_was_asked or self._sets_apart(number)
            )
            alone = clause.letters == "n" and not ends_sentence(self.clauses, number)
            if not self._is_remark(number) or alone or ("D" in clause.letters and self._tells):
                continue  # "No, ..." says nothing by itself
            if (says_no or self._only_describes(clause.letters)) and not find(
                "not_declining", clause.letters
            ):
                return TokenSpan(clause.start, clause.start + len(clause.letters))
        return None

    def _only_describes(self, letters: str) -> bool:
        """Whether a clause says what the documents are about, and no more: "they cover the race only"."""
        open_kind = "w" in self.values.pattern
        return bool(find("describes", letters)) and (
            not open_kind or ("V" in letters and not re.search("[GKM#]", letters))
        )

    # Answering

    def _answers(self, number: int, first: int) -> bool:
        """Whether a clause clearly gives some answer, in a reply that declines from the clause `first` on."""
        letters = self.letters[number]
        if self._is_taken(number) or "n" in letters:
            return False
        if number and re.fullmatch("[bxmgr]*u[xm]*", self.letters[number - 1]):
            letters = f"u{letters}"  # "As far as I know, it is ..."
        if self._concludes(number):
            return True
        alone = "w" not in letters or ends_sentence(self.clauses, 0)
        if number == 0 and self._leads() and alone and not self.clauses[0].repeats:
            return True
        if number == 0 and re.fullmatch("w{1,4}", letters) and ends_sentence(self.clauses, 0):
            return len(self.letters) > 1
        if not self._has_value(number):
            return False
        if first < number == len(self.letters) - 1 and (
            (TOLD_IN_HAN if self.word == 2 else VALUE_AT_LAST).fullmatch(letters)
            or VALUE_AT_LAST.fullmatch(letters)
            or self._is_announced(number)
        ):
            return True
        if re.search("u[^n]*(?:[GKM#]|[BQh]w)|[GKM#][^n]*u|a[^nq]*[GKM#]", letters):
            return True
        if number > first and letters[0] in "bgr" and re.search("[uB][^d]*[GKMw]|^[^c]*[GK]", letters):
            return True
        if self.clauses[number].repeats >= HALF_QUESTION and find("answers_in_its_words", letters):
            return True
        whole = self.clauses[number].repeats >= WHOLE_QUESTION
        return whole and "d" not in letters and bool(re.search("[GKM#]", letters))

    def _is_announced(self, number: int) -> bool:
        """Whether a clause is what the one before announces: "I spotted it: 82,385", 第三篇写了：苍桥."""
        if not number or ends_sentence(self.clauses, number - 1):
            return False
        han = self.word == 2
        announced = re.fullmatch(
            "d#|[^nlv]*[ck]m*" if han else "d#|[^nlv]*[ckjwmM]", self.letters[number - 1]
        )
        value = "B?[wQkfmHx]{2,12}|B?#+w?" if han else "[xm]*#{1,2}w{0,2}"
        return bool(announced) and bool(re.fullmatch(value, self.letters[number]))

    def _concludes(self, number: int) -> bool:
        """Whether a clause is the answer that a reply concludes with: "So the answer is: Rome"."""
        letters = self.letters[number]
        if not re.search("[GKM#w]", letters) or re.search("[dqWp]", letters):
            return False
        if find("answer_is", letters):
            return True
        labelled = number and not ends_sentence(self.clauses, number - 1) and not self.tiers[number - 1]
        return bool(labelled) and bool(find("answer_label", self.letters[number - 1]))

    def _has_value(self, number: int) -> bool:
        """Whether a clause has something of the kind that is asked for."""
        return bool(self.values.search(self.letters[number]))

    def _leads(self) -> bool:
        """Whether a reply begins with an answer alone, not a label ("Status:") or the number of a list."""
        letters = self.letters[0]
        if not find("answer_alone", letters) or self.letters.count("#") > 1:
            return False
        label = letters == "M" and not ends_sentence(self.clauses, 0) and self.letters[1][0] not in "bg"
        return not label or not self.tiers[1] or self._is_detail(1)

    def _may_answer(self, number: int) -> bool:
        """Whether a clause gives some answer, in a reply that declines only what may be a detail."""
        letters, repeats = self.letters[number], self.clauses[number].repeats
        if self._is_taken(number):
            return False
        if self._concludes(number):
            return True
        if number == 0 and (self._leads() or re.fullmatch("w{1,6}", letters)):
            return True
        if "n" in letters or not self._has_value(number):
            return False
        if number == len(self.letters) - 1 and find("answer_at_last", letters):
            return True
        if find("concludes", letters):
            return True
        if "d" in letters and not re.match("[xmVS]*d[#mV]?[cx]", letters):
            return False
        whole = HALF_QUESTION if number == 0 and re.match("ww[^nd]*Q", letters) else WHOLE_QUESTION
        if repeats >= whole:
            return True
        if number == 0 and find("answers_briefly", letters):
            return True
        first = number == 0 and re.match("[xmVS]*+[jQHJ]++[BcwxQ]*+[KGM#]", letters)
        return bool(first) and (repeats >= HALF_QUESTION or letters[0] == "j")

    def _gives(self, number: int, declining: Sequence[int]) -> bool:
        """Whether a clause with the right answer gives it, in a reply that declines as well."""
        letters = self.letters[number]
        if self._may_answer(number) or all(self._is_beside(n, number) for n in declining):
            return True
        if number > declining[-1]:
            in_its_words = self.clauses[number].repeats >= HALF_QUESTION and not re.search("[cdnZN]", letters)
            return in_its_words or any(
                self.letters[n][0] in "bgru" for n in range(declining[-1] + 1, number + 1)
            )
        if number < declining[0] and not re.search("[cZN]", letters):
            opposed = number + 1 == declining[0] and self.letters[number + 1][0] == "b"
            return not opposed and bool(
                re.search("[QHJja][^nd]*G|G[^nd]*[QHJj]", letters)
                or (re.search("^[xmVB]*G[xw#]{0,2}$", letters) and not self._lists(number))
            )
        return False

    def _is_beside(self, number: int, answer: int) -> bool:
        """Whether a clause declines only more about what one before it has stated, with the answer: "She
        moved to York, but they give no information about the move"."""
        declined, stated = self.clauses[number], self.clauses[answer]
        named = declined.asked and not re.search("[qaJH]", declined.letters)
        return bool(
            named and number > answer and declined.asked < stated.asked and self.tiers[number] != "refuses"
        )

    def _lists(self, number: int) -> bool:
        """Whether a clause is one of a list in brackets or behind a colon: "(Ada Lock, Ben Moor)"."""
        return number > 0 and not ends_sentence(self.clauses, number - 1)

    # Another answer

    def _gives_another(self, given: Sequence[int]) -> TokenSpan | None:
        """Where a reply gives the false answer first or at last, and the right one only beside it."""
        if not given:
            return None
        doubt = re.compile("[neyXhtTbrua]")
        for number, letters in enumerate(self.letters[: given[0]]):
            between = "".join(self.letters[number : given[0] + 1])
            if number == 0 and find("other_answer", letters) and not doubt.search(between):
                return quote(self.clauses[0], "other_answer")
        beside = not any(self.clauses[number].repeats for number in given)
        valued = re.compile("[KM#w]" if self.word == 2 else "[KM#]")
        for number, letters in enumerate(self.letters):
            whole = ends_sentence(self.clauses, number) or self.letters[number + 1][0] == "b"
            other = "G" not in letters and valued.search(letters)
            if beside and whole and other and find("another_in_its_place", letters):
                return quote(self.clauses[number], "another_in_its_place")
        if beside and all(find("does_not", self.letters[number]) for number in given):
            for number, letters in enumerate(self.letters):
                if find("another_does", letters) and not re.search("[Gnd]", letters):
                    return quote(self.clauses[number], "another_does")
        for number in range(given[-1] + 1, len(self.letters)):
            letters, before = self.letters[number], self.letters[number - 1]
            labelled = re.fullmatch("[QHamVr][QHaxmVr]*", before) and not ends_sentence(
                self.clauses, number - 1
            )
            if find("concludes_otherwise", letters) or (labelled and re.match("[KM]", letters)):
                return quote(self.clauses[number], "concludes_otherwise")
        return None

    # Clauses and rules

    def _is_taken(self, number: int) -> bool:
        """Whether a clause declines, reports or names candidates, and so gives no answer."""
        return bool(
            self.tiers[number]
            or any(self._covers(span, number) for span in self.errors)
            or "N" in self.letters[number]
        )

    def _covers(self, span: TokenSpan, number: int) -> bool:
        clause = self.clauses[number]
        return clause.start <= span.start < clause.start + len(clause.letters)
