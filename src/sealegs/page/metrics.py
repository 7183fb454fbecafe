"""What a benchmark measures: each metric declared once, and the names of its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Literal, TypeAlias, get_args
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import force_setattr

from sealegs.page.format import capitalised, chance, scope_words, uncapitalised
from sealegs.page.grid import Displayed, Overview
from sealegs.types import Tag, Unit

Better: TypeAlias = Literal["higher", "lower"]


class Metric(Displayed, Struct, frozen=True):
    """A value of samples or a figure of a summary. In its name `*` matches any text: `across_*`."""

    name: str
    title: str
    unit: Unit
    better: Better | None
    """None where neither direction is better: the length of an answer, say."""
    meaning: str = ""
    """One sentence that says what it measures."""
    caution: str = ""
    """One sentence that says what to be careful about."""
    main: bool = False
    """Whether it is shown beside the headline; every other metric is in the table of all figures."""
    chance: float | None = None
    """What guessing gives."""
    ratio_to: str = ""
    """The metric that says which samples count, as `corrected` is a share of the `detected`; others have no
    value, which is not the same as 0."""
    weight: str = ""
    """The weight of a sample, a value: the figure is Σ w v / Σ w, as bits per byte is Σ bits / Σ bytes."""
    within_sample: bool = False
    """A share within each sample, of its answers or their pairs: the mean of such shares is no share of the
    samples."""
    mean_over: str = ""
    """A tag: the figure is the mean of the means of its values, each counted once (a macro-average)."""
    parts: Sequence[str] = ()
    """All values of that tag, in order: a run that has fewer is named after those that it has."""
    needs_coverage: bool = False
    """Whether it must reach the coverage floor beside the headline, where a run has it."""
    depends_on: str = ""
    """What a sample's value depends on beside its answers: `answers`, how many there are; `samples`, which
    others there are; or a tag, by the lowest value of which in its group it is compared with another sample.
    Runs are not compared by samples for which that differs."""
    by: Sequence[str | Sequence[str]] = ()
    """The tags of samples that it is broken down by, each alone or several together: `["lang", ("lang",
    "level")]`. A benchmark that summarises by itself does not read it."""

    @property
    def explained(self) -> str:
        """`Answer consistency: how alike …`; empty where it declares no meaning."""
        return f"{self.title}: {uncapitalised(self.meaning)}" if self.meaning else ""

    def overview(self) -> Overview:
        """What the metric means, its direction, and what to be careful about."""
        direction = (
            f"{capitalised(self.better)} is better." if self.better else "Neither direction is better."
        )
        guessing = f" {capitalised(chance(self))}." if self.chance is not None else ""
        lines = [self.meaning, f"{direction}{guessing}", self.caution and f"Careful: {self.caution}"]
        return Overview(f"{self.name}: {capitalised(self.title)}", list(filter(None, lines)))

    def __post_init__(self) -> None:
        # Written as lists, and hashed with the metric.
        force_setattr(self, "parts", tuple(self.parts))
        force_setattr(self, "by", tuple((by,) if isinstance(by, str) else tuple(by) for by in self.by))
        if self.unit not in get_args(Unit):
            raise ValueError(
                f"the unit '{self.unit}' of '{self.name}' is not one of: {', '.join(get_args(Unit))}"
            )
        if self.better not in (*get_args(Better), None):
            raise ValueError(f"better='{self.better}' of '{self.name}' is not 'higher', 'lower' or None")


def declaration(metrics: Sequence[Metric], name: str) -> Metric | None:
    """The declaration behind a name: `accuracy` for `accuracy@embed:a/b`, `drift` for `drift/lang=en`."""
    metric = name.partition("@")[0].partition("/")[0]
    exact = (each for each in metrics if each.name == metric)
    matching = (each for each in metrics if fnmatchcase(metric, each.name))
    return next(chain(exact, matching), None)


def title_of(metrics: Sequence[Metric], name: str) -> str:
    """A figure in words: `Accuracy (bm25), task stories` for `accuracy@bm25/task=stories`."""
    metric, scope = scope_of(name)
    declared = declaration(metrics, metric)
    subject = metric.partition("@")[2]
    title = f"{capitalised(declared.title) if declared else metric}{f' ({subject})' if subject else ''}"
    return ", ".join(filter(None, (title, scope_words(scope))))


def part_words(metric: Metric, parts: Iterable[str]) -> str:
    """Which parts of a macro-average there are, where it is not all: `noise only`."""
    there = set(parts)
    present = [part for part in metric.parts if part in there]
    if not present or len(present) == len(metric.parts):
        return ""
    return f"{' and '.join(filter(None, (', '.join(present[:-1]), present[-1])))} only"


def meaning_of(metrics: Sequence[Metric], name: str) -> str:
    metric = declaration(metrics, name)
    return metric.explained if metric else ""


def unit_of(metrics: Sequence[Metric], name: str, default: Unit | None = None) -> Unit:
    metric = declaration(metrics, name)
    if metric is None and default is None:
        raise LookupError(f"the benchmark does not declare the metric '{name}'")
    return metric.unit if metric else default or "value"


def units(metrics: Iterable[Metric]) -> dict[str, Unit]:
    """The unit of each metric by its name."""
    return {metric.name: metric.unit for metric in metrics}


def weights(metrics: Iterable[Metric]) -> dict[str, str]:
    """The weight of each metric that has one, by its name."""
    return {metric.name: metric.weight for metric in metrics if metric.weight}


_QUOTED = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%,=/"})
"""Characters with a meaning in a scope, quoted as in web addresses."""


def scope_name(metric: str, scope: Mapping[str, Tag]) -> str:
    """The name of a figure in a summary: `mean_similarity`, `mean_similarity/level=3,lang=en`."""
    parts = (f"{tag}={str(value).translate(_QUOTED)}" for tag, value in scope.items())
    return f"{metric}/{','.join(parts)}" if scope else metric


_TAG = re.compile(r"[^=?@:]+=")


def scope_of(name: str) -> tuple[str, dict[str, str]]:
    """The metric and the scope in a figure's name: the inverse of `scope_name`."""
    metric, _, scope = name.partition("/")
    if "@" in metric:  # a subject may have a slash: `accuracy@embed:a/b`
        metric, _, scope = name.rpartition("/") if _TAG.match(name.rpartition("/")[2]) else (name, "", "")
    pairs = [part.partition("=") for part in scope.split(",")] if scope else ()
    return metric, {tag: unquote(value) if "%" in value else value for tag, _, value in pairs}
