"""Whether a reply ends with a value alone: "it says 1998", "so Ada Lock", 第三篇写的是苍桥营造."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause, ends_sentence

_VALUE = "(?:[GKM](?:x?[GKM])*|#{1,4}w{0,2})"
_TOLD = re.compile(
    f"[xmbg]*(?:j[Bmcjx]*|r[xmB]*|o#?m*d?c?[Bxm]*|pk){_VALUE}|[^nlvAfeVNOE]*d[^nlvAfeVNO]*c[Bxm]*{_VALUE}"
    "|[bxm]*(?:[GKM](?:x?[GKM])*|###+)|b[xm]*#{1,2}w{0,2}"
)
_TOLD_IN_HAN = re.compile(
    "[bxm]*[Po]?#?d?c[xm]*B[^nlvd]{1,12}|[^nlvAfeVNOE]*(?:[hru]|[ack]?m*B)[xmB]*(?:[GKM]|w{2,8}|#{1,3}[wm]?)"
)


def is_told_at_last(listed: Sequence[Clause], number: int, *, han: bool) -> bool:
    """Whether a clause is the last one and tells a value, or is what the one before announces."""
    if number + 1 != len(listed):
        return False
    letters = listed[number].letters
    if number > 1 and listed[number - 1].letters in ("b", "g") and not ends_sentence(listed, number - 2):
        letters = listed[number - 2].letters + letters  # "Document 5, however, gives 1998"
    told = _TOLD.fullmatch(letters) or (han and _TOLD_IN_HAN.fullmatch(letters))
    return bool(told) or _is_announced(listed, number, han=han)


def _is_announced(listed: Sequence[Clause], number: int, *, han: bool) -> bool:
    """Whether a clause is what the one before announces: "I spotted it: 82,385", 第三篇写了：苍桥."""
    if not number or ends_sentence(listed, number - 1):
        return False
    before = "d#|[^nlv]*[ck]m*a?|b?[oP]#?d?m+a?" if han else "d#|[^nlv]*[ckjwmM]"
    announced = re.fullmatch(before, listed[number - 1].letters)
    value = "B?[wQkfmHx]{2,12}|B?#+w?" if han else "[xm]*(?:#{1,2}w{0,2}|w)"
    return bool(announced) and bool(re.fullmatch(value, listed[number].letters))
