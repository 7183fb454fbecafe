"""A view of one sample as a block of HTML.

The block has no script and no picture format beside HTML itself: the app's sanitiser takes SVG out. It takes
its text colour from the page around it, so that it can be read on light and on dark ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from markupsafe import Markup, escape

from sealegs.page.format import escape_controls, spaces_shown
from sealegs.page.html import render
from sealegs.page.view import Beside, Block, Facts, Matrix, Span, Text, Tokens, View, chance

LONG = 1_500
"""Characters of a text from which it is collapsed."""
LONGEST_TEXT_CHARS = 200_000
"""Characters of a text that are drawn; what is left out is said."""
Mark: TypeAlias = tuple[str, str]
"""The kind of a span and what it means."""
KINDS = frozenset(
    {"right", "wrong", "reason", "differs", "shared", "edited"}
    | {"true", "false", "irrelevant", "refusal", "nearest", "target"}
)
"""The kinds of spans and texts that have a look of their own."""


def view_html(view: View, *, styled: bool = True, form: str = "") -> str:
    """A block of HTML; a page that holds many of them has the style sheet (`page/view.css`) once.

    `form` is HTML that is put below the answers; where there are none, below the first table.
    """
    tables = [row for row, block in enumerate(view.blocks) if isinstance(block, Facts)]
    last = tables[0] if tables else len(view.blocks) - 1
    answers = [row for row, block in enumerate(view.blocks) if _has_answer(block)]
    functions = (marked_text, legend, shown_tokens, shown_cells, left_out, kind_class, is_long)
    return render(
        "page/view.html",
        view=view,
        styled=styled,
        form=Markup(form),  # noqa: S704  # of a template of the app
        form_after=max(answers, default=last),
        **{each.__name__: each for each in functions},
    )


def _has_answer(block: Block) -> bool:
    if isinstance(block, Beside):
        return any(map(_has_answer, block.columns))
    return isinstance(block, Text) and block.answer > 0


# Texts


def is_long(text: Text) -> bool:
    return text.collapsed or len(text.body) > LONG


def kind_class(kind: str) -> str:
    return f"sl-{kind if kind in KINDS else 'plain'}" if kind else ""


def marked_text(text: str, spans: Sequence[Span]) -> Markup:
    """A text with its marks, which may overlap; what is outside of the text is ignored."""
    text = text[:LONGEST_TEXT_CHARS]
    begins: defaultdict[int, list[Mark]] = defaultdict(list)
    ends: defaultdict[int, list[Mark]] = defaultdict(list)
    for span in spans:
        start, end = max(0, span.start), min(len(text), span.end)
        if start < end and span.kind:
            begins[start].append((span.kind, span.title))
            ends[end].append((span.kind, span.title))
    bounds = sorted({0, len(text), *begins, *ends})
    # All pieces are escaped at once: no visible text has the character between them.
    pieces = "\0".join(escape_controls(text[start:end]) for start, end in pairwise(bounds))
    parts = []
    active: list[Mark] = []
    for start, piece in zip(bounds, str(escape(pieces)).split("\0"), strict=False):
        for mark in ends[start]:
            active.remove(mark)
        active += begins[start]
        parts.append(f"{_opening_tag(tuple(active))}{piece}</mark>" if active else piece)
    return Markup("".join(parts))  # noqa: S704  # every part is escaped


@lru_cache(maxsize=64)
def _opening_tag(marks: Sequence[Mark]) -> str:
    kinds = " ".join(dict.fromkeys(kind_class(kind) for kind, _ in marks))
    titles = "; ".join(dict.fromkeys(title for _, title in marks if title))
    title = f' title="{escape(escape_controls(titles))}"' if titles else ""
    return f'<mark class="{kinds}"{title}>'


def legend(spans: Sequence[Span]) -> list[tuple[str, str]]:
    """The class and the words of each kind of mark."""
    return list(dict.fromkeys((kind_class(s.kind), s.title) for s in spans if s.title))


def left_out(text: Text) -> str:
    """Says what is not drawn, if anything."""
    more = len(text.body) - LONGEST_TEXT_CHARS
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
        (escape_controls(names[i]), [(_cell(value), _strength((value - low) / (1 - low))) for value in row])
        for i, row in enumerate(rows)
    ]


def _cell(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _strength(share: float) -> float:
    return round(min(1.0, max(0.0, share)), 3) if math.isfinite(share) else 0.0
