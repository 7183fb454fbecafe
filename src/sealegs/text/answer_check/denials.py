"""Where a reply denies the right answer that it names, in its clause or in the one behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import HALF_QUESTION, Clause, TokenSpan, ends_sentence, quote
from sealegs.text.answer_check.patterns import Rules

find = Rules(__package__).find


def denial(listed: Sequence[Clause], number: int) -> TokenSpan | None:
    """What denies the right answer of a clause, or nothing."""
    letters = listed[number].letters
    if find("denied", letters) and not find("not_denied", letters):
        return quote(listed[number], find("denied", listed[number].letters))
    if find("corrected_to", letters):
        return quote(listed[number], find("corrected_to", listed[number].letters))
    if _is_labelled_wrong(listed, number):
        return quote(listed[number - 1], find("rejected_under_a_label", listed[number - 1].letters))
    if number + 1 < len(listed) and _takes_back(listed, number + 1):
        return quote(listed[number + 1], find("taken_back", listed[number + 1].letters))
    if number + 1 < len(listed) and _is_replaced(listed, number):
        return quote(listed[number], find("mentioned_only", listed[number].letters))
    return None


def denies_somebody(letters: str) -> bool:
    """Whether a clause says that it was somebody else: "He is not"."""
    return bool(find("pronoun_denied", letters))


def denied_clauses(listed: Sequence[Clause], tiers: Sequence[str]) -> dict[int, TokenSpan]:
    """The clauses that would decline, but deny the right answer that they name, since another is given."""
    return {
        n: TokenSpan(clause.start, clause.start + len(clause.letters))
        for n, clause in enumerate(listed)
        if tiers[n] and _states_another(listed, n)
    }


def another_answer(listed: Sequence[Clause], given: Sequence[int], *, han: bool) -> TokenSpan | None:
    """Where a reply gives the false answer first or at last, and the right one only beside it."""
    if not given:
        return None
    rows = [clause.letters for clause in listed]
    doubt = re.compile("[neyXhtTbrua]")
    for number, letters in enumerate(rows[: given[0]]):
        between = "".join(rows[number : given[0] + 1])
        if number == 0 and find("other_answer", letters) and not doubt.search(between):
            return quote(listed[0], find("other_answer", listed[0].letters))
    beside = not any(listed[number].repeats for number in given)
    valued = re.compile("[KM#w]" if han else "[KM#]")
    for number, letters in enumerate(rows):
        whole = ends_sentence(listed, number) or rows[number + 1][0] == "b"
        other = "G" not in letters and valued.search(letters) and not _is_relative(listed, number)
        if beside and whole and other and find("another_in_its_place", letters):
            return quote(listed[number], find("another_in_its_place", listed[number].letters))
    if beside and all(find("does_not", rows[number]) for number in given):
        for number, letters in enumerate(rows):
            if find("another_does", letters) and not re.search("[Gnd]", letters):
                return quote(listed[number], find("another_does", listed[number].letters))
    for number in range(given[-1] + 1, len(rows)):
        letters, before = rows[number], rows[number - 1]
        labelled = re.fullmatch("[QHamVr][QHaxmVr]*", before) and not ends_sentence(listed, number - 1)
        if find("concludes_otherwise", letters) or (labelled and re.match("[KM]", letters)):
            return quote(listed[number], find("concludes_otherwise", listed[number].letters))
    return None


def _is_relative(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause only says more of what is before it: "..., whose symbol is Ag"."""
    return number > 0 and not ends_sentence(listed, number - 1) and listed[number].letters[0] == "J"


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
    return bool(find("another_stated", after)) or any(find("false_stated", other) for other in others)


def _is_replaced(listed: Sequence[Clause], number: int) -> bool:
    """Whether the right answer is only what documents say, and the false one comes in its place: "document 1
    says York, but that is wrong; it is Leeds", "although document 1 mentions York, it is Leeds"."""
    letters, behind = listed[number].letters, number + 1
    if find("asked_of_them", f"{letters},{listed[behind].letters}") and behind + 1 < len(listed):
        behind += 1  # "Is it York? Document 1 mentions it, but in another context"
    after = listed[behind].letters
    taken_back = find("rejected", after) or find("taken_back", after)
    rejected = taken_back and not ends_sentence(listed, behind - 1)
    before = f"{listed[number - 1].letters}," if number and not ends_sentence(listed, number - 1) else ""
    told_wrongly = find("told_wrongly", before + letters)
    others = [clause.letters for clause in listed if clause is not listed[number]]
    given = "K" in letters or any("G" in other for other in others)
    if given or not (rejected or told_wrongly or find("mentioned_only", letters)):
        return False
    replaced = any("K" in other and "n" not in other for other in others[number:])
    return replaced or _answers_otherwise(listed, number + 1, number + 1 if told_wrongly else behind + 1)


def _answers_otherwise(listed: Sequence[Clause], first: int, next_one: int) -> bool:
    """Whether a clause from the first on gives another answer: the next one, or one behind a label or in the
    question's words."""
    for number in range(first, len(listed)):
        led = [listed[number]] if ends_sentence(listed, number - 1) else listed[number - 1 : number + 1]
        answers = led[0].letters.endswith("a") or max(each.repeats for each in led) >= HALF_QUESTION
        if (answers or number == next_one) and _gives_another(listed, number):
            return True
    return False


def _takes_back(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause rejects the right answer before it: "..., but that is wrong", "York? No: Leeds"."""
    before, letters = listed[number - 1].letters if number else "", listed[number].letters
    if "G" not in before or re.search("[dK]", before):
        return False
    if not ends_sentence(listed, number - 1):
        alone = ends_sentence(listed, number) and find("error_alone", letters)
        return bool(alone or find("taken_back", letters))
    if denies_somebody(letters):
        return True
    return bool(find("no_answer", letters)) and _gives_another(listed, number + 1)


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
