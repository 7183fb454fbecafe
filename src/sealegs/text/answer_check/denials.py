"""Where a reply denies the right answer that it names, in its clause or in the one behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause, TokenSpan, ends_sentence, quote
from sealegs.text.answer_check.patterns import Rules

find = Rules(__package__).find
_TOLD = re.compile("[bgxm]*(?:d#|[od])(?=[^G]*[cHB])(?:d#|[^#nY~LfFKeyMG])*(?:M?G[xmQHJ]*)+")
"""What documents, or some of them, give."""
CALLED_ERROR = re.compile("b?(?:W|j[ij]?)[Bxm]+[ey][xm]*")
"""Of the clause before: "but this is incorrect"."""


def denial(listed: Sequence[Clause], number: int) -> TokenSpan | None:
    """What denies the right answer of a clause, or nothing."""
    letters = listed[number].letters
    if find("denied", letters) and not find("not_denied", letters):
        return quote(listed[number], find("denied", listed[number].letters))
    if find("corrected_to", letters):
        return quote(listed[number], find("corrected_to", listed[number].letters))
    if _is_labelled_wrong(listed, number):
        return quote(listed[number - 1], find("rejected_under_a_label", listed[number - 1].letters))
    if number + 1 < len(listed) and (_takes_back(listed, number + 1) or _is_error_of_some(listed, number)):
        return quote(listed[number + 1], find("taken_back", listed[number + 1].letters))
    return None


def denies_somebody(letters: str) -> bool:
    """Whether a clause says that it was somebody else: "He is not"."""
    return bool(find("pronoun_denied", letters))


def called_no_answer(listed: Sequence[Clause], number: int) -> int | None:
    """The clause with a value that this one calls no answer: "Text 1 has York, but this is not it"."""
    if not re.match("[bxmgr]*j[^JHQ]*$", listed[number].letters):
        return None
    before = number - 1
    if before > 0 and re.fullmatch("[bgxm]+", listed[before].letters):
        before -= 1
    opposed = listed[before + 1].letters[0] == "b"  # "Document 1 has York. However, ..."
    if before < 0 or (ends_sentence(listed, before) and not opposed):
        return None
    letters = listed[before].letters
    named = re.search("d.*[ck]|[ck].*d|[GKM#w]m*Bm*c", letters)
    return before if named and "n" not in letters else None


def denied_clauses(listed: Sequence[Clause], tiers: Sequence[str]) -> dict[int, TokenSpan]:
    """The clauses that would decline, but deny the right answer that they name, since another is given."""
    return {
        n: TokenSpan(clause.start, clause.start + len(clause.letters))
        for n, clause in enumerate(listed)
        if tiers[n] and _states_another(listed, n)
    }


def is_about_the_answer(listed: Sequence[Clause], span: TokenSpan) -> bool:
    """Whether an error is only one of the right answer, which the reply denies, and none of the documents."""
    number = max(n for n, clause in enumerate(listed) if clause.start <= span.start)
    letters = listed[number].letters
    if re.search("[dK]", letters):
        return False
    denied = "G" in letters and find("denied", letters)
    labels = number + 1 < len(listed) and _is_labelled_wrong(listed, number + 1)
    return bool(denied) or labels or _takes_back(listed, number)


def _states_another(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause denies the right answer and another one gives another answer: "They don't say York;
    they say Leeds"."""
    letters = listed[number].letters
    others = [clause.letters for clause in listed if clause is not listed[number]]
    if not re.search("G.*[nl]|[nl].*G", letters) or any("G" in other for other in others):
        return False
    after = listed[number + 1].letters if number + 1 < len(listed) else ""
    return bool(find("another_stated", after))


def _takes_back(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause rejects the right answer before it: "..., but that is wrong", "York? No: Leeds"."""
    before, letters = listed[number - 1].letters if number else "", listed[number].letters
    if "G" not in before or re.search("[dK]", before):
        return False
    if not ends_sentence(listed, number - 1):
        opposed = ends_sentence(listed, number)
        alone = opposed and find("error_alone", letters)
        return bool(alone or find("taken_back", letters))
    if denies_somebody(letters):
        return True
    return bool(find("no_answer", letters)) and _gives_another(listed, number + 1)


def _is_error_of_some(listed: Sequence[Clause], number: int) -> bool:
    """Whether documents give the right answer, and the next clause calls that an error: "Some give York. That
    is a mistake"."""
    called = CALLED_ERROR.fullmatch(listed[number + 1].letters)
    alone = not ends_sentence(listed, number) or not number or ends_sentence(listed, number - 1)
    return bool(called and alone and _TOLD.fullmatch(listed[number].letters))


def _gives_another(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause gives another answer than the right one that was rejected before it."""
    if number >= len(listed) or "G" in listed[number].letters:
        return False
    letters, before = listed[number].letters, listed[number - 1].letters
    labelled = not ends_sentence(listed, number - 1) and not re.search("[na]$", before)
    is_label = labelled and not re.match("[BjhQ]", letters)
    if re.fullmatch("[^nefdK]*K[^nefd]*", letters):
        return True
    return not is_label and bool(find("another_given", letters))


def _is_labelled_wrong(listed: Sequence[Clause], number: int) -> bool:
    """Whether the right answer is under the label of what is wrong: "Wrong: York. Right: Leeds"."""
    if not number or ends_sentence(listed, number - 1) or not ends_sentence(listed, number):
        return False
    labelled = find("rejected_under_a_label", listed[number - 1].letters) and "G" in listed[number].letters
    return bool(labelled) and any(find("right_label", clause.letters) for clause in listed[number + 1 :])
