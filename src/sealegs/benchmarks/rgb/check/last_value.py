"""Whether a reply ends with a value alone: "it says 1998", "so Ada Lock", 第三篇写的是苍桥营造."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause, ends_sentence

_VALUE = "(?:(?:[GKM#]x?){0,7}(?:[GKM]|#{1,4}w{0,2}))"
_TOLD = re.compile(
    f"[xmbg]*(?:j[Bmcjx]*|r[xmB]*|o#?m*d?c?[Bxm]*|pk){_VALUE}|[^nlvAfeVNOE]*d[^nlvAfeVNO]*c[Bxmj]*{_VALUE}"
    "|[bxm]*(?:[GKM](?:x?[GKM])*|###+)|b[xm]*#{1,2}w{0,2}"
)
_TOLD_BY_ONE = re.compile(rf"[xmbg]*[o#][#xm]*d?m*c(?:j[jQxBm]*)?[Bxm]*(?:{_VALUE}|w{{1,3}})")
"""What one of the documents says: "One of them says that it opened in 1974"."""
_TOLD_IN_HAN = re.compile(
    "[bxm]*[Po]?#?d?c[xm]*B[^nlvd]{1,12}|[^nlvAfeVNOE]*(?:[hru]|[ack]?m*B)[xmB]*(?:[GKM]|w{2,8}|#{1,3}[wm]?)"
)

_TOLD_BY_ONE_IN_HAN = re.compile("[bgxm]*[oP]#?d?c[xm]*B?[^nlvd]{1,12}")


def is_told_at_last(listed: Sequence[Clause], number: int, *, han: bool) -> bool:
    """Whether a clause is the last one and tells a value, or is what the one before announces."""
    if number + 1 != len(listed):
        return False
    letters = _led(listed, number)
    told = _TOLD.fullmatch(letters) or (han and _TOLD_IN_HAN.fullmatch(letters))
    return bool(told) or is_told_by_one(listed, number, han=han) or _is_announced(listed, number, han=han)


def is_told_by_one(listed: Sequence[Clause], number: int, *, han: bool) -> bool:
    """Whether a clause is the last one and tells what one of the documents says."""
    told = (_TOLD_BY_ONE_IN_HAN if han else _TOLD_BY_ONE).fullmatch(_led(listed, number))
    return number + 1 == len(listed) and bool(told)


def _led(listed: Sequence[Clause], number: int) -> str:
    """The letters of a clause with those of its subject: "Document 5, however, gives 1998"."""
    letters = listed[number].letters
    if number > 1 and listed[number - 1].letters in ("b", "g") and not ends_sentence(listed, number - 2):
        return listed[number - 2].letters + letters
    return letters


def _is_announced(listed: Sequence[Clause], number: int, *, han: bool) -> bool:
    """Whether a clause is what the one before announces: "I spotted it: 82,385", 第三篇写了：苍桥."""
    if not number or ends_sentence(listed, number - 1):
        return False
    before = "d#m*|[^nlv]*[ck]m*a?|b?[oP]#?d?m+a?" if han else "d#|[^nlv]*[ckjwmM]"
    announced = re.fullmatch(before, listed[number - 1].letters)
    value = "B?[wQkfmHx]{2,12}|B?#+w?|B?[wGK#m]{1,12}" if han else "[xm]*(?:#{1,2}w{0,2}|w)"
    return bool(announced) and bool(re.fullmatch(value, listed[number].letters))
