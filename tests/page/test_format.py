"""Differences as people read them: their digits agree with those of the values beside them."""

from __future__ import annotations

import re

import pytest

from sealegs.page.format import change, difference_text, signed
from sealegs.types import Unit


@pytest.mark.parametrize(
    ("a", "b", "limits", "unit", "shown"),
    [
        (0.5, 0.5, (-0.22, 0.22), "share", ("50%", "50%", "0", ("−22", "+22"))),
        # A limit that would round to nothing gives all of them one digit more.
        (0.0375, 0.0833, (0.004, 0.087), "share", ("3.8%", "8.3%", "+4.6", ("+0.4", "+8.7"))),
        (0.0375, 0.0417, (-0.08, 0.09), "share", ("3.8%", "4.2%", "+0.4", ("−8.0", "+9.0"))),
        # 45% − 92% would be −47.
        (0.924, 0.449, (-0.68, -0.21), "share", ("92.4%", "44.9%", "−47.5", ("−68.0", "−21.0"))),
        (0.925, 0.45, (-0.68, -0.21), "share", ("92.5%", "45.0%", "−47.5", ("−68.0", "−21.0"))),
        (0.27, 0.247, (-0.089, 0.044), "cosine", ("0.270", "0.247", "−0.023", ("−0.089", "+0.044"))),
        (9.4, 8.6, (-2.1, 0.9), "tokens", ("9.4", "8.6", "−0.8", ("−2.1", "+0.9"))),
        (-58.3, -62.5, (-30.2, 22), "points", ("−58.3", "−62.5", "−4.2", ("−30.2", "+22.0"))),
        (0.5, 0.5, (None, None), "share", ("50%", "50%", "0", None)),
        (0.5, 0.5, (-0.9, 0.9), "share", ("50%", "50%", "0", None)),  # it says nothing
    ],
)
def test_values_difference_and_limits_have_the_same_digits(
    a: float, b: float, limits: tuple[float | None, float | None], unit: Unit, shown: tuple[object, ...]
) -> None:
    text = difference_text(a, b, unit, limits)
    assert text[:4] == shown
    numbers = [text.a.removesuffix("%"), text.b.removesuffix("%"), text.change, *(text.limits or ())]
    assert len({len(re.sub(r"^[^.]*\.?", "", number)) for number in numbers}) == 1


def test_a_difference_of_shares_is_in_points() -> None:
    assert [change(0.31, "share"), change(0.01, "share"), change(0.01, "cosine")] == [
        "31 points", "1 point", "0.010",
    ]  # fmt: skip
    assert [signed(-0.03, "share"), signed(0.0, "share"), signed(0.5, "score")] == [
        "−3 points", "0 points", "+0.5",
    ]  # fmt: skip
