"""Figures as text: the same digits at the terminal and on the page."""

from __future__ import annotations

from evenkeel.report.layout import Layout
from evenkeel.types import Figure, Unit

FORMATS: dict[Unit, str] = {
    "cosine": ".4f",
    "score": ".2f",
    "bits": ".3f",
    "tokens": ",.0f",
    "count": ".2f",
    "nats": ".3f",
}


def number(amount: float, unit: Unit) -> str:
    if unit == "share":
        return f"{amount:.0%}" if amount == 0 or amount >= 0.0995 else f"{amount:.1%}"
    return f"{amount:{FORMATS[unit]}}"


def value(figure: Figure | None) -> str:
    return "–" if figure is None or figure.value is None else number(figure.value, figure.unit)


def interval(figure: Figure | None, *, short: bool = False) -> str:
    """`0.8512 to 0.8741`, or `±.0115` (the wider side) where space is short; empty where it is not known."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return ""
    if not short:
        return f"{number(figure.low, figure.unit)} to {number(figure.high, figure.unit)}"
    half = max(figure.high - figure.value, figure.value - figure.low)
    shown = f"{half:.3f}" if figure.unit == "cosine" else number(half, figure.unit)
    return f"±{shown.removeprefix('0') if shown.startswith('0.') and figure.unit != 'share' else shown}"


def counted(figure: Figure, layout: Layout) -> str:
    """What a figure stands on: `280 prompts of 40 questions`, or `200 examples` where each is its own."""
    samples, groups = layout.counted
    if figure.clusters == figure.n:
        return f"{figure.n:,} {samples}"
    return f"{figure.n:,} {samples} of {figure.clusters:,} {groups}"


def p_value(figure: Figure | None) -> str:
    """`p = 0.021`, `p < 0.001`, or nothing for a figure that tests nothing."""
    if figure is None or figure.p is None:
        return ""
    return "p < 0.001" if figure.p < 0.001 else f"p = {figure.p:.3f}"


def share(number: float) -> str:
    """A share as per cent; never rounded up to 100 % where something is missing."""
    return "100%" if number == 1 else f"{min(number, 0.9999):.2%}".replace(".00%", "%")


def visible(text: str) -> str:
    """Hostile text made harmless: control and direction-changing characters are shown, not obeyed."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or 0x20 <= code < 0x7F:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    hidden = 0x80 <= code < 0xA0 or code in _DIRECTIONS or 0xD800 <= code <= 0xDFFF
    return f"⟦U+{code:04X}⟧" if hidden else character


_DIRECTIONS = frozenset([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF])
