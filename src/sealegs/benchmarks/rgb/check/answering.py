"""Which clauses of a reply give an answer, whatever else it declines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.benchmarks.rgb.check.last_value import is_told_at_last
from sealegs.benchmarks.rgb.check.remarks import NEAR, WHOLE_QUESTION, Remarks
from sealegs.benchmarks.rgb.check.rules import find
from sealegs.text.answer_check.clauses import HALF_QUESTION, ends_sentence

STATED = 0.4
"""The share of the question's words in a statement."""
_OF_ANOTHER_MATTER = re.compile("[lvAfVO]|(?<!d)#.*[GM]|[GM].*#")
"""What documents say that is no answer: something "only", or of another year than the question's."""

_LINKED = re.compile("[bgxmr]*(?:[QH][QHxmjE]*|j)B[xm]*[GKM#]")
_LINKED_IN_HAN = re.compile("[bgxmr]*(?:[QH][QHxmjE]*|j)B[xm]*(?:[GKM#]|w{2})")
"""What was asked for is something: "the winner was Ada Lock"."""
_LEADING = re.compile("[bgrxm]*(?:d#?[xmjc]*)?[QHxmj]*")
"""A clause that only leads to the next one, in the question's words."""


class Answering:
    """The clauses of a reply with the tiers by which they decline, and which of them answer."""

    def __init__(self, remarks: Remarks, tiers: Sequence[str]) -> None:
        self.remarks, self.tiers = remarks, tiers
        self.clauses, self.letters = remarks.clauses, remarks.letters
        aside = (remarks.value_set_aside(number) for number, tier in enumerate(tiers) if tier)
        self.set_aside = {number for number in aside if number is not None}
        self.repeats = [self._repeated(number) for number in range(len(self.clauses))]
        self._first_declining = next((number for number, tier in enumerate(tiers) if tier), len(tiers))
        self.stating = {number for number in range(len(self.clauses)) if self._states(number)}
        """The clauses that state a value."""

    def _repeated(self, number: int) -> float:
        """The share of the question's words in a clause, with those that lead to it: "In Leeds, Ada won"."""
        statement = self.clauses[self._first(number) : number + 1]
        return len(frozenset().union(*(clause.asked for clause in statement))) / self.remarks.asked_words

    def _first(self, number: int) -> int:
        """The first of the clauses that lead to one."""
        first = number
        while (
            first
            and number - first < NEAR
            and not ends_sentence(self.clauses, first - 1)
            and _LEADING.fullmatch(self.letters[first - 1])
        ):
            first -= 1
        return first

    def answers(self, number: int, first: int) -> bool:
        """Whether a clause clearly gives some answer, in a reply that declines from the clause `first` on."""
        letters = self.letters[number]
        if self._is_taken(number) or "n" in letters:
            return False
        if number and re.fullmatch("[bxmgr]*u[xm]*", self.letters[number - 1]):
            if self.remarks.han and "w" in letters and not re.search("[dpqi]", letters):
                return True
            letters = f"u{letters}"  # "As far as I know, it is ..."
        if self.concludes(number):
            return True
        alone = "w" not in letters or ends_sentence(self.clauses, 0)
        if number == 0 and self._leads() and alone and not self.clauses[0].repeats:
            return True
        if number == 0 and re.fullmatch("w{1,4}", letters) and ends_sentence(self.clauses, 0):
            return len(self.letters) > 1
        if not self.remarks.has_value(number):
            return False
        if first < number and is_told_at_last(self.clauses, number, han=self.remarks.han):
            return True
        if re.search("u[^n]*(?:[GKM#]|[BQh]w|w$)|[GKM#][^n]*u|a[^nq]*[GKM#]", letters):
            return True
        if number > first and letters[0] in "bgr" and re.search("[uB][^d]*[GKMw]|^[^c]*[GK]", letters):
            return True
        if find("stated_by_documents", letters) or (number > first and find("pointed_to", letters)):
            return True
        if self.clauses[number].repeats >= HALF_QUESTION and find("answers_in_its_words", letters):
            return True
        whole = self.repeats[number] >= WHOLE_QUESTION
        told = "d" not in letters or (number > first and not _OF_ANOTHER_MATTER.search(letters))
        value = "[GKM#]|B[xm]*w+$" if self.remarks.han else "[GKM#]"
        return whole and told and bool(re.search(value, letters))

    def _states(self, number: int) -> bool:
        """Whether a clause states a value in the question's words, or of what it asks for."""
        letters = self.letters[number]
        if self._is_taken(number) or re.search("[nNWJq]", letters) or not self.remarks.has_value(number):
            return False
        named = re.search("[GKM#]|w{2}" if self.remarks.han else "[GKM#]", letters)
        if not named or _OF_ANOTHER_MATTER.search(letters):
            return False
        linked = _LINKED_IN_HAN if self.remarks.han else _LINKED
        return self.repeats[number] >= STATED or bool(linked.match(letters)) or self._is_opposed(number)

    def _is_opposed(self, number: int) -> bool:
        """Whether a clause is what a reply says against a remark: "It isn't said why, but York won"."""
        first = self._first(number)
        contrast = self.letters[first][0] == "b" and self._first_declining < first
        conceded = first and self.tiers[first - 1] and self.letters[first - 1][0] == "g"
        told = "".join(self.letters[first : number + 1])
        return bool(contrast or conceded) and not re.search("[ckZE]", told)

    def concludes(self, number: int) -> bool:
        """Whether a clause is the answer that a reply concludes with: "So the answer is: Rome"."""
        letters = self.letters[number]
        if not re.search("[GKM#w]", letters) or re.search("[dqWp]", letters):
            return False
        return bool(find("answer_is", letters)) or self._is_labelled(number)

    def _is_labelled(self, number: int) -> bool:
        """Whether the words before a clause announce the answer."""
        label = number - 1
        while label > 0 and re.fullmatch("[bg]", self.letters[label]):
            label -= 1  # "As to your question, though: Rome"
        if label < 0 or self.tiers[label] or not find("answer_label", self.letters[label]):
            return False
        if label + 1 == number and self.letters[label].endswith("B"):
            return True  # "The answer is:" on a line of its own
        return not any(ends_sentence(self.clauses, n) for n in range(label, number))

    def _is_of_a_document(self, number: int) -> bool:
        """Whether a clause is a value behind its document, or behind what was asked: "Document 3: Rome"."""
        if not number or ends_sentence(self.clauses, number - 1) or not self.remarks.has_value(number):
            return False
        label, letters = self.letters[number - 1], self.letters[number]
        asked = re.fullmatch("[xm]*[QH][QHJxm]*", label)  # "Currency: lari."
        value = "[GKM#]|[GKM#w][GKM#wmxQ]{1,8}" if self.remarks.han else "[GKM#w][GKM#wmxQ]{0,8}"
        if asked and ends_sentence(self.clauses, number) and re.fullmatch(value, letters):
            return True
        return bool(find("document_label", label) and find("named_alone", letters))

    def _leads(self) -> bool:
        """Whether a reply begins with an answer alone, not a label ("Status:") or the number of a list."""
        letters = self.letters[0]
        if not find("answer_alone", letters) or self.letters.count("#") > 1:
            return False
        label = letters == "M" and not ends_sentence(self.clauses, 0) and self.letters[1][0] not in "bg"
        return not label or not self.tiers[1] or self.remarks.is_detail(1)

    def may_answer(self, number: int) -> bool:
        """Whether a clause gives some answer, in a reply that declines only what may be a detail."""
        letters, repeats = self.letters[number], self.repeats[number]
        if self._is_taken(number):
            return False
        if self.concludes(number) or number in self.stating:
            return True
        apart = ends_sentence(self.clauses, 0) or bool(find("about_other_documents", self.letters[1]))
        alone = "m?w[wQmxB]{0,8}" if self.remarks.han and apart else "w{1,6}"
        if number == 0 and (self._leads() or re.fullmatch(alone, letters)):
            return True
        if "n" in letters or not self.remarks.has_value(number):
            return False
        if number == len(self.letters) - 1 and find("answer_at_last", letters):
            return True
        if find("concludes", letters) or self._is_of_a_document(number):
            return True
        if "d" in letters and not re.match("[^nlvdA]*d#?[^nlvdA]*[ckx]", letters):
            return False
        value = "^ww[^nd]*Q|B[xmBQ]*w" if self.remarks.han else "^ww[^nd]*Q|[GKM#]|B[^nlvdZcQ]*w+$"
        linked = re.search(value, letters)
        if repeats >= (HALF_QUESTION if linked and "d" not in letters else WHOLE_QUESTION):
            return True
        if number == 0 and find("answers_briefly", letters):
            return True
        first = number == 0 and re.match("[xmVS]*+[jQHJ]++[BcwxQ]*+[KGM#]", letters)
        return bool(first) and (repeats >= HALF_QUESTION or letters[0] == "j")

    def gives(self, number: int, declining: Sequence[int]) -> bool:
        """Whether a clause with the right answer gives it, in a reply that declines as well."""
        letters = self.letters[number]
        if self.may_answer(number):
            return True
        if number > declining[-1]:
            if is_told_at_last(self.clauses, number, han=self.remarks.han):
                return True
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

    def _lists(self, number: int) -> bool:
        """Whether a clause is one of a list in brackets or behind a colon: "(Ada Lock, Ben Moor)"."""
        return number > 0 and not ends_sentence(self.clauses, number - 1)

    def _is_taken(self, number: int) -> bool:
        """Whether a clause declines, reports, names candidates or a value set aside: it gives no answer."""
        beside = number in self.set_aside or "N" in self.letters[number]
        return bool(self.tiers[number] or self.remarks.is_report(number) or beside)
