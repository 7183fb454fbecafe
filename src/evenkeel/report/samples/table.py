"""The table of all samples on a run's page: its data, cut to what a page can hold, and its one script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from markupsafe import Markup
from msgspec import Struct

from evenkeel.files.columns import answer_text
from evenkeel.files.jsonfile import read_json_lines
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.harness.stored.samples import InShort, Samples, strings_in
from evenkeel.page.examples import answer_parts, cut_fairly, shortened
from evenkeel.page.format import visible
from evenkeel.page.grid import Content, Grid
from evenkeel.page.metrics import declaration
from evenkeel.page.tables import in_order
from evenkeel.types import Response, Sample, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCRIPT = Path(__file__).with_name("table.js")
MOST_ROWS = 5_000
TEXTS = 3_000_000
"""Bytes of the texts of all samples."""
FIRST = 20
"""Rows that are there without the script."""
ID = 80
"""Characters of an id, a tag or a heading."""
NO_TEXT = "(no text)"
DIGITS = 5
"""Significant digits of a value that is not a whole number."""


class SampleTable(NamedTuple):
    """What the template shows."""

    data: Markup
    script: Markup
    script_hash: str
    """As the content-security policy names the script."""
    note: str
    first: Grid


def sample_table(run: Run) -> SampleTable | None:
    """The table of a run's samples; None where there are none."""
    samples = run.samples()
    shown = min(len(samples), MOST_ROWS)
    if not shown:
        return None
    headings, texts, cut = _texts(run, shown)
    short = samples.in_short(range(shown))
    script = SCRIPT.read_text(encoding="utf-8")
    data = {
        "count": shown,
        "columns": _columns(run, samples, shown),
        "short": {name: [visible(getattr(each, name)) for each in short] for name in InShort._fields},
        "outcomes": {name: np.flatnonzero(rows[:shown]).tolist() for name, rows in samples.outcomes.items()},
        "correct": [None if value != value else value for value in samples.correct[:shown].tolist()],
        "headings": headings,
        "texts": texts,
    }
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return SampleTable(
        data=_embedded(data),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        note=_note(len(samples), shown, cut=cut),
        first=_first(samples, short[:FIRST]),
    )


def _note(count: int, shown: int, *, cut: bool) -> str:
    sentences = ["Select a row for details."]
    if shown < count:
        sentences.append(f"These are the first {shown:,} of {count:,} samples; records.jsonl has all.")
    if cut:
        sentences.append("Long texts end with “…”; records.jsonl has all of them.")
    return " ".join(sentences)


def _embedded(data: Any) -> Markup:
    """JSON for a script element: nothing in it can end the element, or begin another."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


# Columns


def _columns(run: Run, samples: Samples, shown: int) -> list[dict[str, Any]]:
    """The id, the tags and the values of the samples, those of the headline first."""
    ids = [_short(each) for each in samples.index.ids[:shown]]
    columns: list[dict[str, Any]] = [{"title": "sample", "kind": "id", "values": ids}]
    columns += [_tag(tag, cells[:shown]) for tag, cells in samples.index.tags.items()]
    known = [name for name in samples.values if samples.valued(name)[:shown].any()]
    headline = benchmark_class(run.spec.benchmark).metrics[0].name
    known.sort(key=lambda name: name.partition("@")[0] != headline)
    titles = _titles(run, known)
    columns += [
        {"title": titles[name], "kind": "value", "values": _numbers(samples.cells(name)[:shown])}
        for name in known
    ]
    return columns


def _tag(tag: str, cells: Sequence[Tag | None]) -> dict[str, Any]:
    """A tag by the numbers of its values, which are in order."""
    names = in_order(sorted({str(cell) for cell in cells if cell is not None}))
    positions = {name: position for position, name in enumerate(names)}
    codes = [-1 if cell is None else positions[str(cell)] for cell in cells]
    return {
        "title": _short(tag.replace("_", " ")),
        "kind": "tag",
        "names": list(map(_short, names)),
        "values": codes,
    }


def _numbers(column: NDArray[np.float64]) -> list[Any]:
    """Values, None where there is none, with so many digits as the page shows."""
    known = column[~np.isnan(column)]
    if (known == np.round(known)).all() and np.abs(known).max() < 2**53:
        return [None if value != value else int(value) for value in column.tolist()]
    return [None if value != value else float(f"{value:.{DIGITS}g}") for value in column.tolist()]


def _titles(run: Run, names: list[str]) -> dict[str, str]:
    """The words for each value, where its benchmark has some that are of no other."""
    metrics = benchmark_class(run.spec.benchmark).layout.metrics
    titles = {}
    for name in names:
        metric = declaration(metrics, name)
        titles[name] = _short(metric.title if metric and metric.name == name else name)
    used = list(titles.values())
    return {name: title if used.count(title) == 1 else _short(name) for name, title in titles.items()}


def _short(text: str) -> str:
    return visible(shortened(text, ID))


def _first(samples: Samples, short: list[InShort]) -> Grid:
    """The first samples, for readers without scripts."""
    signs = {1.0: "✓", 0.0: "✗"}
    rows: list[tuple[str, list[Content]]] = [
        (samples.index.ids[row], [signs.get(correct, "–"), *map(visible, texts)])
        for row, (correct, texts) in enumerate(zip(samples.correct[:FIRST].tolist(), short, strict=False))
    ]
    return Grid("The first samples", "sample", ["result", *InShort._fields], rows, left=5)


# Texts


class _Line(Struct, gc=False):
    """What the page shows of a record: its inputs as they stand in the file, and its answers."""

    sample: Sample[Any]
    answers: tuple[Response, ...]


def _texts(run: Run, rows: int) -> tuple[list[str], list[list[int | str]], bool]:
    """The headings; of each sample its texts, each after the number of its heading; whether any is cut."""
    longest = max(200, 4 * TEXTS // rows)  # no text is held whole that is much longer than its share
    headings: dict[str, int] = {}
    numbers: dict[str, int] = {}  # of headings as they are in the records: there are few
    codes: list[list[int]] = []
    texts: list[str] = []
    cut = False
    for line in islice(read_json_lines(run.path / "records.jsonl", _Line), rows):
        parts = [*_asked(line.sample), *_answered(line.answers)]
        for heading, _ in parts:
            if heading not in numbers:
                numbers[heading] = headings.setdefault(_short(heading), len(headings))
        codes.append([numbers[heading] for heading, _ in parts])
        cut = cut or any(len(text) > longest for _, text in parts)
        texts += (shortened(text, longest) for _, text in parts)
    fitted = cut_fairly(texts, TEXTS)
    cut = cut or any(text.endswith("…") for text in fitted)
    turn = iter(fitted)
    return list(headings), [[part for code in row for part in (code, next(turn))] for row in codes], cut


def _asked(sample: Sample[Any]) -> Iterator[tuple[str, str]]:
    """What was asked, field by field; not what its columns say already."""
    known = {"", sample.id, sample.group, *map(str, sample.tags.values())}
    inputs = sample.inputs if isinstance(sample.inputs, dict) else {}
    for name, value in inputs.items():
        if parts := [text for text in strings_in(value) if text not in known]:
            yield name.replace("_", " "), "\n\n".join(parts)


def _answered(answers: Iterable[Response]) -> Iterator[tuple[str, str]]:
    """How each request for a text ended."""
    asked = (each for each in answers if each.status != "ok" or answer_text(each) is not None)
    return ((heading, text or NO_TEXT) for heading, text in answer_parts(asked))
