"""The table of all samples on a run's page: its data and details, as far as a page holds them; its script."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from markupsafe import Markup

from sealegs.harness.folder import Run
from sealegs.harness.stored.samples import SampleOpening, Samples
from sealegs.page.examples import cut_fairly, shortened
from sealegs.page.format import decimals, escape_controls, number, tag_name, tag_value
from sealegs.page.grid import Content, Grid
from sealegs.page.metrics import declaration, unit_of
from sealegs.page.tables import in_order
from sealegs.page.view import fitted
from sealegs.page.view_html import view_html
from sealegs.types import Tag, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCRIPT = Path(__file__).with_name("table.js")
MOST_SAMPLE_ROWS = 5_000
MOST_VIEWS = 200
"""Rows with details; the app shows those of all."""
MOST_DRAWN = 20
"""Rows whose details are drawn with their marks, each of which takes some milliseconds: the first that a
reader opens. Those of the others are plain texts."""
TEXTS = 3_000_000
"""Characters of the texts in all details."""
FIRST = 20
"""Rows of a report that are there without the script, and of the app before any other is looked at."""
ID = 80
"""Characters of an id or a tag."""
SIGNS = {1.0: "✓", 0.0: "✗"}
DIGITS = 5
"""Significant digits of a value that is not a whole number."""


class SampleTable(NamedTuple):
    """What the template shows."""

    source: str = ""
    """Where the app serves the rest; a report has it in the page."""
    data: Mapping[str, Any] = {}
    views: str = ""
    """The details, compressed."""
    script: Markup = Markup("")
    script_hash: str = ""
    """As the content-security policy names the script."""
    note: str = ""
    first: Grid | None = None


def sample_table(run: Run) -> SampleTable | None:
    """The table of a run's samples; None where there are none."""
    samples = run.samples()
    shown = min(len(samples), MOST_SAMPLE_ROWS)
    if not shown:
        return None
    script = SCRIPT.read_text(encoding="utf-8")
    detailed = _detailed(samples, shown)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    texts = row_texts(samples, range(shown))
    return SampleTable(
        data={**_data(run, samples, shown), "texts": texts, "detailed": detailed},
        views=_packed(samples, detailed),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        note=_note(samples, shown),
        first=_first(samples, range(shown)[:FIRST], "The first samples"),
    )


def sample_data(run: Run, *, source: str, marks: Mapping[str, str]) -> dict[str, Any]:
    """The data of the table in the app, with the texts of its first rows. `source` is the address of a
    sample's details, and `marks` has what a person said of samples, by their ids."""
    samples = run.samples()
    shown = min(len(samples), MOST_SAMPLE_ROWS)
    ids = samples.index.ids[:shown]
    return {
        **_data(run, samples, shown),
        "texts": row_texts(samples, range(min(shown, FIRST))),
        "source": source,
        "ids": ids,
        "marks": {row: marks[sample] for row, sample in enumerate(ids) if sample in marks},
        "note": _note(samples, shown, all_detailed=True),
        "live": run.part is not None,
    }


def latest_samples(run: Run) -> Grid:
    """The last samples, the newest first, for readers without scripts of a run that is not finished."""
    samples = run.samples()
    return _first(samples, range(len(samples) - 1, -1, -1)[:FIRST], "The latest samples")


def row_texts(samples: Samples, rows: Sequence[int]) -> list[list[str]]:
    """The texts of some rows: question, setting, expected answer and first answer."""
    return [list(map(escape_controls, texts)) for texts in samples.row_texts(rows)]


def _data(run: Run, samples: Samples, shown: int) -> dict[str, Any]:
    return {
        "count": shown,
        "columns": _columns(run, samples, shown),
        "outcomes": {name: np.flatnonzero(rows[:shown]).tolist() for name, rows in samples.outcomes.items()},
        "correct": [None if value != value else value for value in samples.correct[:shown].tolist()],
    }


def _note(samples: Samples, shown: int, *, all_detailed: bool = False) -> str:
    sentences = ["Select a row for details.", *_signs(samples)]
    if samples.decided_by:
        sentences.append(f"Right or wrong is the answer of {samples.decided_by}, which the verdict is about.")
    if shown < len(samples):
        sentences.append(f"These are the first {shown:,} of {len(samples):,} samples.")
    if shown > MOST_VIEWS and not all_detailed:
        sentences.append(f"{MOST_VIEWS:,} have details, wrong ones first.")
    if shown > MOST_DRAWN and not all_detailed:
        others = "the others as plain texts; `sealegs app` draws all"
        sentences.append(f"{MOST_DRAWN} are shown with marks and figures, {others}.")
    return " ".join(sentences)


def _signs(samples: Samples) -> list[str]:
    """What the marks of the column of results mean; nothing where no answer is right or wrong."""
    correct, errors = samples.correct, samples.outcomes["error"]
    signs = {
        "✓ right, ✗ wrong": ~np.isnan(correct),
        "a percentage: right in part, as some of its answers are": samples.outcomes["right in part"],
        "– neither, as nothing is expected or there is no usable answer": np.isnan(correct) & ~errors,
        "! failed": errors,
    }
    words = [sign for sign, rows in signs.items() if rows.any()]
    return [f"{'; '.join(words)}."] if not np.isnan(correct).all() else []


# Columns


def _columns(run: Run, samples: Samples, shown: int) -> list[dict[str, Any]]:
    """The id, the tags and the values of the samples, those of the headline first."""
    ids = [_short(each) for each in samples.index.ids[:shown]]
    columns: list[dict[str, Any]] = [{"title": "sample", "kind": "id", "values": ids}]
    columns += [_tag(tag, cells[:shown]) for tag, cells in samples.index.tags.items()]
    known = [name for name in samples.values if not np.isnan(samples.cells(name)[:shown]).all()]
    titles = _titles(run, known)
    columns += [
        {
            "title": titles[name],
            "kind": "value",
            **_numbers(samples.cells(name)[:shown], unit_of(run.layout.metrics, name, "value")),
        }
        for name in known
    ]
    return columns


def _tag(tag: str, cells: Sequence[Tag | None]) -> dict[str, Any]:
    """A tag by the numbers of its values, which are in order."""
    names = in_order(sorted({str(cell) for cell in cells if cell is not None}))
    positions = {name: position for position, name in enumerate(names)}
    codes = [-1 if cell is None else positions[str(cell)] for cell in cells]
    return {
        "title": _short(tag_name(tag)),
        "kind": "tag",
        "names": [_short(tag_value(name, tag)) for name in names],
        "values": codes,
    }


def _numbers(column: NDArray[np.float64], unit: Unit) -> dict[str, Any]:
    """Values, None where there is none, and how the page writes all of them."""
    known = column[~np.isnan(column)]
    whole = bool((known == np.round(known)).all() and np.abs(known).max() < 2**53)
    values = [
        None if value != value else int(value) if whole else float(f"{value:.{DIGITS}g}")
        for value in column.tolist()
    ]
    return {"values": values, "digits": 0 if whole else decimals(unit), "percent": unit == "share"}


def _titles(run: Run, names: list[str]) -> dict[str, str]:
    """The words for each value, where its benchmark has some that are of no other."""
    metrics = run.layout.metrics
    titles = {}
    for name in names:
        metric = declaration(metrics, name)
        titles[name] = _short(metric.title if metric and metric.name == name else name)
    used = list(titles.values())
    return {name: title if used.count(title) == 1 else _short(name) for name, title in titles.items()}


def _short(text: str) -> str:
    return escape_controls(shortened(text, ID))


def _first(samples: Samples, numbers: Sequence[int], title: str) -> Grid:
    """Some samples, for readers without scripts."""
    rows: list[tuple[str, list[Content]]] = [
        (
            samples.index.ids[row],
            ["–" if correct != correct else SIGNS.get(correct) or number(correct, "share"), *texts],
        )
        for row, texts in zip(numbers, row_texts(samples, numbers), strict=True)
        for correct in [float(samples.correct[row])]
    ]
    return Grid(title, "sample", ["result", *SampleOpening._fields], rows, left=6)


# Details


def _detailed(samples: Samples, shown: int) -> list[int]:
    """The rows that have details: the first, those that are not simply right, and then the others."""
    outcomes = samples.outcomes
    telling = np.logical_or.reduce([outcomes[name] for name in outcomes if name != "right"])[:shown]
    ordered = dict.fromkeys((0, *np.flatnonzero(telling).tolist(), *range(shown)))
    return list(ordered)[:MOST_VIEWS]


def _packed(samples: Samples, rows: Sequence[int]) -> str:
    """The details of samples, compressed: what they have in common is most of it."""
    share = TEXTS // len(rows)
    drawn = [view_html(fitted(samples.view(row), share), styled=False) for row in rows[:MOST_DRAWN]]
    plain = [_plain(samples.plain(row), share) for row in rows[MOST_DRAWN:]]
    return base64.b64encode(gzip.compress(msgspec.json.encode([*drawn, *plain]), 6, mtime=0)).decode()


def _plain(parts: Sequence[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    bodies = cut_fairly([text for _, text in parts], most)
    return [
        (escape_controls(name), escape_controls(text)) for (name, _), text in zip(parts, bodies, strict=True)
    ]
