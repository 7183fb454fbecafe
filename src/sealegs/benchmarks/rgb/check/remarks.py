"""Which clauses of a reply decline: remarks on the documents, the question or the reply itself.

A clause of a story declines nothing ("he could not answer"), and one may decline only a detail.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.benchmarks.rgb.check.rules import find
from sealegs.text.answer_check.clauses import HALF_QUESTION, Clause, TokenSpan, ends_sentence
from sealegs.text.answer_check.denials import called_no_answer, denies_somebody
from sealegs.text.answer_check.wording import asked_forms, asks_yes_or_no, value_letters

WHOLE_QUESTION = 0.7
"""The share of the question's words that a clause repeats from which it answers."""
SHORT_REPLY, SHORT_REMARK = 5, 2
"""Words of a matter of its own that a reply, and a clause of one that speaks of itself, may have and decline:
one with more tells something. Two Han characters are a word."""

NEAR = 3
"""Clauses of one sentence that somebody may speak."""

_OF_OWN_MATTER = re.compile("n[^JHQqw]*[cik][^JHQqw]*[jxm][^JHQqw]*w[^JHQqa]*$")
"""What a document leaves out is named, and nothing of the question: "no information about the auction"."""


class Remarks:
    """The clauses of a reply, and which of them are remarks. `errors`: where it reports an error."""

    def __init__(
        self, listed: Sequence[Clause], query: str, errors: Sequence[TokenSpan], *, han: bool
    ) -> None:
        self.clauses, self.errors, self.han = listed, errors, han
        self.letters = [clause.letters for clause in listed]
        self.yes_or_no, values = asks_yes_or_no(query), value_letters(query, han=han)
        self.asked_words = max(1, len(asked_forms(query)))
        labels = [n for n, letters in enumerate(self.letters) if re.fullmatch("[bxm]*d#", letters)]
        self._one_by_one = range(labels[0], labels[-1]) if labels else range(0)
        if errors:
            values = values.replace("K", "")  # what is reported is no answer
        self.values = re.compile(f"[{values}]")
        own = ".".join(letters for n, letters in enumerate(self.letters) if not _is_spoken(listed, n))
        self._is_short = self._matter(".".join(self.letters)) <= SHORT_REPLY
        self._names_documents = bool(re.search("[paSdqi]", own))
        self._speaks_of_itself = bool(re.search("[paS]|d.*d", own))

    def tier(self, number: int) -> str:
        """The tier of rules by which a clause declines, or nothing."""
        letters = self.letters[number]
        if not self.is_remark(number):
            return ""
        reported = self.is_report(number)
        only_no = letters == "n" and (self.yes_or_no or not ends_sentence(self.clauses, number))
        if (reported and not re.search("[Alv]", letters)) or only_no:
            return ""
        if any(find(tier, letters) for tier in ("answer_rejected", "of_a_story")) or denies_somebody(letters):
            return ""
        if find("refuses", letters) and not re.search("[fe]", letters):
            return "refuses"
        if find("not_declining", letters) or self.is_hedge(number):
            return ""
        if re.search("[eCyX]", letters) and not re.search("[lv]", letters):
            return ""
        if self.sets_apart(number):
            return ""
        named = self.errors and not re.search("[pdHJilT]", letters)
        for tier in ("not_known", "not_said"):
            if find(tier, letters):
                return "" if named else tier
        own = re.search("p[^n]*n[^n]*[HJQ]", letters)
        there = find("not_there", letters) or self._is_told_else(number)
        return "not_there" if there and (own or not self.errors) else ""

    def is_remark(self, number: int) -> bool:
        """Whether a clause can be about the reply or its documents, and is no part of a story."""
        letters, matter = self.letters[number], self._matter(self.letters[number])
        if _is_spoken(self.clauses, number):
            return False
        if self._is_short or find("of_documents", letters):
            return True
        if self._names_documents and not matter and self._has_speaker(number):
            return True
        last = number + 1 == len(self.clauses)
        if last and self._names_documents and find("not_of_the_question", letters):
            return True
        last = last and ends_sentence(self.clauses, number - 1)
        if last and matter <= 1 and find("not_known", letters):
            return True  # "... Who does? Left unnamed."
        return self._speaks_of_itself and matter <= SHORT_REMARK

    def is_hedge(self, number: int) -> bool:
        """Whether a clause only says how sure the next one is: "While I can't be certain, ..."."""
        if ends_sentence(self.clauses, number) or not find("hedge", self.letters[number]):
            return False
        return self.has_value(number + 1) and "n" not in self.letters[number + 1]

    def _has_speaker(self, number: int) -> bool:
        """Whether the subject of a clause, which may be that of the clause before, can be the documents, the
        reply or the question: not in "The club showed interest but did not make an offer"."""
        elided = number and re.match("[bxmg]*n", self.letters[number])
        if not elided or ends_sentence(self.clauses, number - 1):
            return True
        return bool(re.search("[dpqaijSQHJ]", self.letters[number - 1]))

    def _continues(self, number: int) -> bool:
        """Whether a clause has the subject of the one before: "it covers prices, without the answer",
        "document 1 names a bridge, which isn't what was asked"."""
        said_of_it = "(?:[bxmgr]*|W[Bm]*|b?j[Bm]*(?=n[WJ]?q))"
        subject = "jm*" if number and ends_sentence(self.clauses, number - 1) else said_of_it
        return number > 0 and bool(re.match(f"{subject}[nlvA]", self.letters[number]))

    def _matter(self, letters: str) -> float:
        """How many words have a matter of their own."""
        return len(re.findall("[wM#O]", letters)) / (2 if self.han else 1)

    def sets_apart(self, number: int) -> bool:
        """Whether a clause sets apart what the one before has answered: "It lies on a river, not a canal",
        "it went to York Works, not to the firm of the documents"."""
        if not number or ends_sentence(self.clauses, number - 1):
            return False
        before = self.clauses[number - 1]
        if find("reported", before.letters) and find("not_but", self.letters[number]):
            return True  # "The text states that Ada Lock won, not anybody else"
        if "d" in before.letters or not re.match("x?n", self.letters[number]):
            return False
        opposed = self.has_value(number - 1) and re.match("x?n[xwM]", self.letters[number])
        return before.repeats >= (HALF_QUESTION if opposed else WHOLE_QUESTION)

    def _is_told_else(self, number: int) -> bool:
        """Whether documents tell something else than what was asked: "They give 2019, but not 2022"."""
        sentence = self.clauses[number].sentence
        before = [clause.letters for clause in self.clauses[:number] if clause.sentence == sentence]
        return bool(find("tells_else", ",".join([*before, self.letters[number]])))

    def value_set_aside(self, number: int) -> int | None:
        """The clause with a value of the kind that is asked for that this one calls no answer."""
        before = called_no_answer(self.clauses, number)
        return before if before is not None and self.has_value(before) else None

    def is_detail(self, number: int) -> bool:
        """Whether a clause declines something else than what was asked."""
        letters = self.letters[number]
        if self.value_set_aside(number) is not None:
            return True
        if number in self._one_by_one:
            return True
        if self.is_about_some(number):
            return True
        if self._says_more_of_its_matter(number):
            return True
        if self._is_under_another_label(number) or self._is_of_the_value(number):
            return True
        if re.search("[qaJ]", letters):
            return False
        if find("about_a_detail", letters):
            return True
        return not re.search("[HQ]", letters) and bool(re.search("[wM]", letters))

    def is_about_some(self, number: int) -> bool:
        """Whether a clause speaks of some documents, and not of all."""
        return self._is_about(number, "about_some_documents") or self.is_about_others(number)

    def is_about_others(self, number: int) -> bool:
        """Whether a clause speaks of the other documents."""
        return self._is_about(number, "about_other_documents")

    def _is_about(self, number: int, tier: str) -> bool:
        """Whether a rule of a tier holds for a clause, or for the one that it continues: "Other documents:
        none", "Disregard the others, as they do not mention it"."""
        if find(tier, self.letters[number]):
            return True
        if number + 1 == len(self.clauses) and self._declines_at_last(number):
            return False
        before = self.letters[number - 1] if number else ""
        same = before.endswith("E") and re.match("[bxmgr]*j", self.letters[number])
        return bool((same or self._continues(number)) and find(tier, before))

    def _declines_at_last(self, number: int) -> bool:
        """Whether a reply of one sentence ends by declining the question itself: "Document 2 mentions
        Leeds, but does not say who won"."""
        one = not self.clauses[number].sentence
        return one and bool(re.match("b[xmj]*n[^wMO#]*[Jq][^wMO#]*$", self.letters[number]))

    def _says_more_of_its_matter(self, number: int) -> bool:
        """Whether a clause is only of what the one before tells: "it broke, which is not mentioned"."""
        if not number or ends_sentence(self.clauses, number - 1):
            return False
        told = re.fullmatch("[^JHQqad]*w[^JHQqad]*", self.letters[number - 1])
        return bool(told and re.match("W[Bm]*n", self.letters[number]))

    def is_of_own_matter(self, number: int) -> bool:
        """Whether a clause of a longer reply declines a matter that only the reply speaks of."""
        if self._is_short:
            return False
        return bool(_OF_OWN_MATTER.search(self.letters[number])) or self._says_more_of_its_matter(number)

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
        if not number or ends_sentence(self.clauses, number - 1) or not self.has_value(number - 1):
            return False
        told = re.search("d[^c]*c[^d]*$", self.letters[number - 1]) or "d" not in self.letters[number - 1]
        return bool(told) and bool(find("of_the_value", self.letters[number]))

    def has_value(self, number: int) -> bool:
        """Whether a clause has something of the kind that is asked for, besides numbers of documents."""
        return bool(self.values.search(re.sub("#?d#?", "d", self.letters[number])))

    def is_report(self, number: int) -> bool:
        """Whether a clause reports an error."""
        clause = self.clauses[number]
        end = clause.start + len(clause.letters)
        return any(clause.start <= span.start < end for span in self.errors)


def _is_spoken(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause is what somebody says, by "says Ada Lock" behind it or 王明说 at one of its ends."""
    sentence = listed[number].sentence
    for other in listed[number + 1 : number + 1 + NEAR]:
        if other.sentence == sentence and find("said_by", other.letters):
            return True
    after = listed[number + 1 : number + 3]
    if after and find("says", after[0].letters):
        return len(after) == 1 or after[1].sentence != after[0].sentence
    before = listed[number - 1] if number else None
    return before is not None and before.sentence == sentence and bool(find("says", before.letters))
