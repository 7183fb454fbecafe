"""A view of one sample as a block of HTML.

The block has no script and no picture format beside HTML itself: the app's sanitiser takes SVG out. It takes
its text colour from the page around it, so that it can be read on light and on dark ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from evenkeel.page.format import visible
from evenkeel.page.html import render
from evenkeel.page.view import Matrix, Span, Text, Tokens, View, chance

LONG = 1_500
"""Characters of a text from which it is collapsed."""
LONGEST = 200_000
"""Characters of a text that are drawn; what is left out is said."""
KINDS = frozenset(
    {"right", "wrong", "reason", "differs", "shared", "edited"}
    | {"true", "false", "irrelevant", "refusal", "nearest", "target"}
)
"""The kinds of spans and texts that have a look of their own."""


def view_html(view: View, *, styled: bool = True) -> str:
    """A block of HTML; a page that holds many of them has the style sheet (`page/view.css`) once."""
    functions = (marked_text, legend, shown_tokens, shown_cells, left_out, kind_class, is_long)
    return render("page/view.html", view=view, styled=styled, **{each.__name__: each for each in functions})


# Texts


def is_long(text: Text) -> bool:
    return text.collapsed or len(text.body) > LONG


def kind_class(kind: str) -> str:
    return f"ek-{kind if kind in KINDS else 'plain'}" if kind else ""


def marked_text(text: str, spans: Sequence[Span]) -> Markup:
    """A text with its marks, which may overlap; what is outside of the text is ignored."""
    text = text[:LONGEST]
    changes: list[tuple[int, bool, Span]] = []
    for span in spans:
        start, end = max(0, span.start), min(len(text), span.end)
        if start < end:
            changes += [(start, True, span), (end, False, span)]
    changes.sort(key=lambda change: change[0])
    parts: list[str] = []
    active: list[Span] = []
    position = 0
    for at, begins, span in changes:
        if at > position:
            parts.append(_marked(text[position:at], active))
            position = at
        if begins:
            active.append(span)
        else:
            active.remove(span)
    parts.append(_marked(text[position:], active))
    return Markup("".join(parts))  # noqa: S704  # every part is escaped


def _marked(text: str, spans: Sequence[Span]) -> str:
    """A part of a text, all of which is under some marks, or under none."""
    shown = escape(visible(text))
    if not spans:
        return shown
    kinds = " ".join(dict.fromkeys(kind_class(span.kind) for span in spans))
    titles = "; ".join(dict.fromkeys(span.title for span in spans if span.title))
    title = f' title="{escape(visible(titles))}"' if titles else ""
    return f'<mark class="{kinds}"{title}>{shown}</mark>'


def legend(spans: Sequence[Span]) -> list[tuple[str, str]]:
    """The class and the words of each kind of mark."""
    return list(dict.fromkeys((kind_class(s.kind), s.title) for s in spans if s.title))


def left_out(text: Text) -> str:
    """Says what is not drawn, if anything."""
    more = len(text.body) - LONGEST
    return f"{more:,} more characters are not shown here: see records.jsonl." if more > 0 else ""


# Numbers


def shown_tokens(tokens: Tokens) -> list[tuple[str, str, float]]:
    """The text of each token with its spaces seen, its probability in words, and how strong its colour is."""
    listed = []
    for token, probability in zip(tokens.tokens, tokens.probabilities, strict=False):
        sound = probability is not None and math.isfinite(probability)
        share = min(1.0, max(0.0, probability or 0.0)) if sound else 0.0
        listed.append((spaces_shown(token[:LONG]), chance(share) if sound else "–", round(share, 3)))
    return listed


def spaces_shown(token: str) -> str:
    return visible(token).replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def shown_cells(matrix: Matrix) -> list[tuple[str, list[tuple[str, float]]]]:
    """The name of each row, and the number and the strength of colour of each of its cells.

    The colour goes from the lowest number outside of the diagonal, or 0.95 if that is less, to 1: the cosines
    of answers are close to each other.
    """
    rows = matrix.values
    others = [value for i, row in enumerate(rows) for j, value in enumerate(row) if i != j]
    low = min((value for value in others if math.isfinite(value)), default=0.0)
    low = min(low, 0.95)
    names = [*matrix.labels, *map(str, range(len(matrix.labels) + 1, len(rows) + 1))]
    return [
        (visible(names[i]), [(_cell(value), _strength((value - low) / (1 - low))) for value in row])
        for i, row in enumerate(rows)
    ]


def _cell(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _strength(share: float) -> float:
    return round(min(1.0, max(0.0, share)), 3) if math.isfinite(share) else 0.0
