"""Where a reply says that the documents are in error, with a word for an error or by contradicting them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.benchmarks.rgb.check.rules import find
from sealegs.text.answer_check.clauses import Clause, TokenSpan, quote

NEAR = 4
"""Clauses before a correction that may say what the documents state."""


def errors(listed: Sequence[Clause], *, about_error: bool) -> list[TokenSpan]:
    """The clauses of a reply that report an error. `about_error`: the question is about one, and so is a
    reply that speaks of no documents."""
    everything = ".".join(clause.letters for clause in listed)
    about_documents = "d" in everything or "K" in everything
    corrects_itself = any(find("own_slip", clause.letters) for clause in listed)
    spans = []
    for number, clause in enumerate(listed):
        if find("no_error", clause.letters) or (corrects_itself and "d" not in clause.letters):
            continue
        after = listed[number + 1].letters if number + 1 < len(listed) else ""
        if re.fullmatch("[mxT]*e[mxdT]*", clause.letters) and re.fullmatch("[mx]*n[mxe]*", after):
            continue  # "Factual errors: none"
        if number == 1 and "d" not in everything and _answers_itself(listed):
            continue
        tiers = ["error", "disagreement"] * about_documents + ["factual_error", "error_in_the_matter"] * (
            not about_error
        )
        if _is_about_documents(listed, number):
            tiers.append("error_alone")
        found = next((match for tier in tiers if (match := find(tier, clause.letters))), None)
        if found:
            spans.append(quote(clause, found))
    return spans or _contradictions(listed, everything)


def _answers_itself(listed: Sequence[Clause]) -> bool:
    """Whether a reply takes back the answer that it begins with: "Leeds? That's not right, it is York"."""
    value, taken_back = listed[0].letters, listed[1].letters
    alone = re.fullmatch("[KM#w][KM#wQxm]{0,8}", value) and listed[0].sentence != listed[1].sentence
    return bool(alone and re.fullmatch("j?B?m?(?:e|n[xm]?T)", taken_back))


def _is_about_documents(listed: Sequence[Clause], number: int) -> bool:
    """Whether an error is one of the documents that the clauses around it speak of."""
    sentence, short = listed[number].sentence, len(listed[number].letters) <= 4
    for other in range(max(0, number - 3), min(len(listed), number + 3)):
        if other != number and re.search("[dK]|ox+[cH]", listed[other].letters):
            same = listed[other].sentence == sentence
            if (same and (other == number - 1 or short)) or (short and other == number - 1):
                return True
    return False


def _contradictions(listed: Sequence[Clause], everything: str) -> list[TokenSpan]:
    """Reports without a word for an error: "the documents say Leeds, but it is York"."""
    spans = []
    false_named = False
    for number, clause in enumerate(listed):
        false_named = false_named or (number > 0 and "K" in listed[number - 1].letters)
        letters, before = _led(listed, number) + clause.letters, _before(listed, number)
        after = listed[number + 1].letters if number + 1 < len(listed) else ""
        if re.match("[bxm]*j[Bm]*n[xm]*[ck]", after):
            continue  # "While the documents mention Leeds, they don't say where it was built"
        if re.search("[GK]", everything) and find("contradicts", letters):
            spans.append(quote(clause, find("contradicts", clause.letters)))
        elif false_named and find("truth_disagrees", clause.letters):
            spans.append(quote(clause, find("truth_disagrees", clause.letters)))
        elif (find("reported", letters) and "n" in letters) or find("right_reported", letters):
            continue  # "The document states that it is not Leeds": the document denies it
        elif find("as_they_say", letters) and before.endswith("K") and "G" in everything:
            spans.append(quote(clause, find("as_they_say", clause.letters)))
        elif find("takes_back", letters) and find("states_false", before):
            spans.append(quote(clause, find("takes_back", clause.letters)))
        elif find("false_denied", letters) and "d" in everything and re.search("[GdT]", everything):
            if any(find("states", other.letters) for other in listed):
                spans.append(quote(clause, find("false_denied", clause.letters)))
        elif "G" not in letters or "n" in letters:
            continue
        elif find("corrects", letters) and (
            find("states_false", before) or ("K" in letters and "h" in letters)
        ):
            spans.append(quote(clause, find("corrects", clause.letters)))
    return spans


def _led(listed: Sequence[Clause], number: int) -> str:
    """The words that lead to a clause, where a comma parts them: "In reality, it is York"."""
    before = listed[number - 1] if number else None
    if before and before.sentence == listed[number].sentence and re.fullmatch("[tbrgx]+", before.letters):
        return before.letters.replace("x", "").replace("g", "b")
    return ""


def _before(listed: Sequence[Clause], number: int) -> str:
    """The letters of the clauses before: those of the same sentence, else the last one; before a contrast
    inside a sentence ("the answer, however, is York"), those of the sentence before."""
    number -= bool(_led(listed, number))
    same = [n for n in range(max(0, number - NEAR), number) if listed[n].sentence == listed[number].sentence]
    opposed = len(same) == 1 and same[0] and re.fullmatch("[bgxm]+", listed[number].letters)
    if opposed and listed[same[0]].letters.endswith("a"):
        return _before(listed, same[0])
    first = same[0] if same else max(0, number - 1)
    return "".join(clause.letters for clause in listed[first:number])
