"""Figures as text: the same digits at the terminal and on the page."""

from __future__ import annotations

from evenkeel.types import Figure


def value(figure: Figure | None) -> str:
    return "–" if figure is None or figure.value is None else f"{figure.value:.4f}"


def interval(figure: Figure | None, *, short: bool = False) -> str:
    """`0.8512 to 0.8741`, or `±.0115` (the wider side) where space is short; empty where it is not known."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return ""
    if short:
        half = max(figure.high - figure.value, figure.value - figure.low)
        return f"±{half:.3f}".replace("±0.", "±.")
    return f"{figure.low:.4f} to {figure.high:.4f}"


def share(number: float) -> str:
    """A share as per cent; never rounded up to 100 % where something is missing."""
    return "100%" if number == 1 else f"{min(number, 0.9999):.2%}".replace(".00%", "%")


def visible(text: str) -> str:
    """Hostile text made harmless: control and direction-changing characters are shown, not obeyed."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or (0x20 <= code < 0x7F):
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    hidden = 0x80 <= code < 0xA0 or code in _DIRECTIONS or 0xD800 <= code <= 0xDFFF
    return f"⟦U+{code:04X}⟧" if hidden else character


_DIRECTIONS = frozenset([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF])
