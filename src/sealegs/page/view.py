"""What is shown of one sample: its texts with marks in them, tables, a matrix.

A benchmark describes a sample by these (`Benchmark.view`); the app and notebooks draw the same
description. Everything in it is text: whoever draws it escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from sealegs.page.examples import answer_heading, cut_fairly, shortened
from sealegs.page.format import STATUS_WORDS, escape_controls, number, number_or_dash
from sealegs.page.grid import Displayed
from sealegs.page.metrics import Metric, declaration
from sealegs.types import Record, Response

MOST_TABLE_ROWS = 50
"""Rows of a table of related samples; the last one says how many more there are."""
MOST_ANSWERS = 50
"""Answers of a sample that are shown; how many more there are is said."""
CELL = 1_000
"""Characters of a cell of a table on a page with many views."""


class Span(Struct, frozen=True):
    """A mark over the characters `start` to `end` of a text."""

    start: int
    end: int
    kind: str
    """Decides the colour and the line below: `right`, `wrong`, `reason`, `differs`, `shared`, `edited`;
    another kind is drawn without a meaning of its own."""
    title: str = ""
    """What the mark means, in words: it is in the legend below the text."""


class Text(Struct, frozen=True, tag=True):
    """A text as it is, with marks in it."""

    heading: str
    body: str
    spans: tuple[Span, ...] = ()
    kind: str = ""
    """Decides the line beside it: `true`, `false`, `irrelevant`, `refusal`, `nearest`, `target`."""
    note: str = ""
    collapsed: bool = False
    answer: int = 0
    """Its number, if it is an answer of the model; the heading also says how it ended."""


class Tokens(Struct, frozen=True, tag=True):
    """The tokens of a text, each with its probability."""

    heading: str
    tokens: tuple[str, ...]
    probabilities: tuple[float | None, ...]
    note: str = ""


class Matrix(Struct, frozen=True, tag=True):
    """A square of numbers between 0 and 1, as a heat map."""

    heading: str
    labels: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    note: str = ""


class Facts(Struct, frozen=True, tag=True):
    """A table: the first cell of a row is its name. Without `columns` the rows are names and values."""

    heading: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()
    note: str = ""
    collapsed: bool = False


class Beside(Struct, frozen=True, tag=True):
    """Blocks side by side, or one below the other where the screen is narrow."""

    heading: str
    columns: tuple[Block, ...]
    note: str = ""


Block: TypeAlias = Text | Tokens | Matrix | Facts | Beside


class View(Displayed, Struct, frozen=True):
    """One sample: a line that names it, its score in a few words, and what is behind it."""

    title: str
    label: str
    blocks: tuple[Block, ...]

    def __repr__(self) -> str:
        """The texts under their headings."""
        parts = (f"{heading}\n{body}".replace("\n", "\n  ") for heading, body in _parts(self.blocks))
        return escape_controls("\n\n".join([f"{self.label} · {self.title}", *parts]))

    def _repr_html_(self) -> str:
        from sealegs.page.view_html import view_html

        return view_html(self)


def fitted(view: View, most: int) -> View:
    """The view with its texts cut, all of them within `most` characters."""
    texts = [text for block in view.blocks for text in _texts(block)]
    bodies = iter(cut_fairly([text.body for text in texts], most))

    def fit(block: Block) -> Block:
        match block:
            case Text():
                return replace(block, body=next(bodies))
            case Beside():
                return replace(block, columns=tuple(map(fit, block.columns)))
            case Facts():
                rows = tuple(tuple(shortened(cell, CELL) for cell in row) for row in block.rows)
                return replace(block, rows=rows)
        return block

    return replace(view, blocks=tuple(map(fit, view.blocks)))


def _texts(block: Block) -> Iterator[Text]:
    if isinstance(block, Beside):
        for column in block.columns:
            yield from _texts(column)
    elif isinstance(block, Text):
        yield block


# Parts that several benchmarks have


def answer_texts(answers: Sequence[Response]) -> list[Text]:
    """Each answer under a heading that says how it ended, with what the model reasoned before it.

    An answer to a request for something else than a text, such as a log-likelihood, is not among them.
    """
    texts = []
    answers = [answer for answer in answers if answer.text or not _has_numbers(answer)]
    for index, answer in enumerate(answers[:MOST_ANSWERS], 1):
        texts.append(Text(answer_heading(index, answer), answer.text, answer=index))
        if answer.reasoning:
            texts.append(Text(f"reasoning before answer {index}", answer.reasoning, collapsed=True))
    if len(answers) > MOST_ANSWERS:
        texts.append(Text("further answers", f"{len(answers) - MOST_ANSWERS:,} more: see records.jsonl."))
    return texts


def _has_numbers(answer: Response) -> bool:
    parts = (answer.logprobs, answer.string, answer.vector, answer.rank)
    return any(part is not None for part in parts)


def value_facts(values: Mapping[str, float | None], metrics: Sequence[Metric]) -> Facts:
    """Every value of a sample under the title of its metric."""
    return Facts("all values", value_rows(metrics, values), collapsed=True)


def value_rows(
    metrics: Sequence[Metric], *samples: Mapping[str, float | None]
) -> tuple[tuple[str, ...], ...]:
    """A row for each value that samples have, with its title; a dash where it is not known."""
    rows = []
    for name in dict.fromkeys(name for values in samples for name in values):
        metric = declaration(metrics, name)
        subject = name.partition("@")[2]
        title = f"{metric.title}{f' ({subject})' if subject else ''}" if metric else name
        cells = (values.get(name) for values in samples)
        digits = (
            "–" if cell is None else number(cell, metric.unit) if metric else f"{cell:g}" for cell in cells
        )
        rows.append((title, *digits))
    return tuple(rows)


def label_of(values: Mapping[str, float | None], metric: Metric, words: str = "") -> str:
    """`score 82.35`, or that the sample has none."""
    value = values.get(metric.name)
    text = "not scored" if value is None else number(value, metric.unit)
    return f"{words} {text}" if words and value is not None else text


def chance(probability: float | None) -> str:
    """A probability as per cent, one that is nearly 0 as a power of ten: it is not impossible."""
    if probability is None or not 0 < probability < 0.00005:
        return number_or_dash(probability, "share")
    return f"{probability:.1e}"


def related_facts(
    heading: str,
    columns: tuple[str, ...],
    record: Record,
    related: Iterable[Record],
    cells: Callable[[Any], tuple[str, ...]],
    key: Callable[[Any], Any] | None = None,
) -> Iterator[Facts]:
    """A table of samples beside the one that is shown, which is among them, if there is any other."""
    by_id = {each.sample.id: each for each in (record, *related)}
    if len(by_id) < 2:
        return
    listed = sorted(by_id.values(), key=key) if key else list(by_id.values())
    rows = [
        (f"{each.sample.id}{' (this one)' if each.sample.id == record.sample.id else ''}", *cells(each))
        for each in islice(listed, MOST_TABLE_ROWS)
    ]
    if len(listed) > MOST_TABLE_ROWS:
        rows.append((f"… and {len(listed) - MOST_TABLE_ROWS:,} more", *[""] * (len(columns) - 1)))
    yield Facts(heading, tuple(rows), columns)


def generic_view(record: Record, related: Iterable[Record], metrics: Sequence[Metric], inputs: Any) -> View:
    """A sample of any benchmark: its texts, its answers, its values, and the other samples of its group."""
    values = record.score.values
    # A benchmark that is not installed declares nothing: its first value is shown as it is.
    headline = metrics[0] if metrics else Metric(next(iter(values), ""), "value", "score", "higher")
    fields = inputs if isinstance(inputs, dict) else {"inputs": inputs}
    texts = [Text(str(name), _input_text(each)) for name, each in fields.items() if _is_plain(each)]

    def cells(other: Record) -> tuple[str, ...]:
        return (label_of(other.score.values, headline), first_answer(other))

    first = next((text for text in fields.values() if isinstance(text, str)), "")
    title = f"{record.sample.id} · {shortened(first)}" if first else record.sample.id
    columns = ("sample", headline.title, "first answer")
    beside = related_facts("the same group", columns, record, related, cells)
    blocks: list[Block] = [*texts, *answer_texts(record.answers), value_facts(values, metrics), *beside]
    return View(title, label_of(values, headline), tuple(blocks))


def _is_plain(value: Any) -> bool:
    """Whether an input is a text, a number, or a list of them."""
    return all(
        isinstance(item, str | int | float) for item in (value if isinstance(value, list) else [value])
    )


def _input_text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def first_answer(record: Record) -> str:
    """The beginning of a sample's first answer, on one line."""
    answer = next(iter(record.answers), None)
    if answer is None:
        return ""
    return shortened(" ".join(answer.text[:400].split()), 160) or f"({STATUS_WORDS[answer.status]})"


# The same as plain text


def _parts(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    for block in blocks:
        match block:
            case Text():
                yield block.heading, block.body
            case Tokens():
                pairs = zip(block.tokens, map(chance, block.probabilities), strict=False)
                yield block.heading, " | ".join(f"{token} {share}" for token, share in pairs)
            case Facts() if not block.collapsed:
                yield (
                    block.heading,
                    "\n".join(
                        ": ".join(filter(None, (row[0], " · ".join(filter(None, row[1:])))))
                        for row in block.rows
                    ),
                )
            case Beside():
                yield from _parts(block.columns)
