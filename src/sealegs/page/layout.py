"""What a benchmark declares to be shown; the terminal, the page and the app each draw it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from itertools import chain
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.page.format import capitalised
from sealegs.page.metrics import Metric, declaration, part_words
from sealegs.types import Figure, RunSpec, Summary, Unit

MOST_MAIN = 10
"""Figures beside the headline on the first screen of a report: the first that have a value."""


class Column(NamedTuple):
    """A metric and the words for it."""

    metric: str
    title: str


class Table(Struct, frozen=True, kw_only=True):
    """A row for each value of a tag; the columns are the values of another tag, several metrics, or both."""

    title: str
    rows: str
    metric: str = ""
    columns: str = ""
    metrics: tuple[Column, ...] = ()
    several: bool = False
    """Shown only where there is more than one column."""
    total: bool = True
    """Whether a last row has the figures of all rows together."""
    within: Mapping[str, str] = {}
    """Tags that its figures are confined to."""


class Curve(Struct, frozen=True, kw_only=True):
    """A metric along an ordered tag, with its interval as a band; a line for each value of `lines`."""

    title: str
    metric: str
    along: str
    lines: str = ""
    x_title: str = ""
    x_unit: Unit = "count"
    """How the numbers of the tag are written."""
    y_title: str = ""
    """Default: the metric's title."""


class Bars(Curve, frozen=True, kw_only=True):
    """A `Curve` drawn as bars, with the intervals as whiskers: side by side for each value of `lines`."""


class Points(Struct, frozen=True, kw_only=True):
    """A point for each sample: two of its numbers, coloured by a third thing.

    A name is that of a value or a tag of a sample's score.
    """

    title: str
    x: str
    y: str
    colour: str
    x_title: str = ""
    y_title: str = ""


Picture: TypeAlias = Curve | Points


class Layout(Struct, frozen=True, kw_only=True):
    """A benchmark's page: its metrics, its pictures, its tables, and what to be careful about."""

    metrics: tuple[Metric, ...]
    """All that its samples and its summary have; the first is the headline."""
    question: str
    name: str = ""
    """What people call the benchmark: `Consistency (MIRAE)`."""
    verdict: str = ""
    """The headline as a sentence, with `{}` for its value: `Right in {}`. Default: title and value."""
    baseline: Column | None = None
    """A metric of the summary that says what little effort gives, with the words for that effort."""
    remarks: Callable[[Summary], list[str]] | None = None
    """Sentences on the figures that follow the headline in the verdict."""
    correct: tuple[str, ...] | None = None
    """Metrics that are 1 where a sample's answer is right, 0 where it is wrong, and between them where some
    of several are right: the first that a sample has counts; `()` where no answer is right or wrong. Default:
    the headline, where it is a share."""
    counted: tuple[str, str] = ("prompts", "questions")
    """The words for samples and for the groups they fall into."""
    counting: str = ""
    """Which samples the headline counts, where it is not all: `at the hardest setting of each ability`."""
    linked: bool = False
    """Whether samples share something across these groups: what is counted is then how many independent ones
    they amount to."""
    facts: tuple[Column, ...] = ()
    """Figures shown beside the headline where the run has them. Default: the metrics declared as `main`."""
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    cautions: tuple[str, ...] = ()
    citation: str = ""
    words: Mapping[str, str] = {}
    """Tags (`edits`) and values of tags (`padding=neutral`) in words, where a reader would not know them."""
    for_run: Callable[[RunSpec, Summary], Layout] | None = None
    """What is shown of a run with these options; its first metric is the run's headline. It has all metrics
    of this layout. Runs with different headlines are compared by that of this layout, so this must be valid
    for every run."""

    def of_run(self, spec: RunSpec, summary: Summary) -> Layout:
        return self.for_run(spec, summary) if self.for_run else self

    def main_figures(self, summary: Summary) -> list[tuple[str, Figure]]:
        """The titles and figures beside the headline, where the summary has them."""
        main = [Column(metric.name, metric.title) for metric in self.metrics[1:] if metric.main]
        return [
            (column.title, summary[name])
            for column in self.facts or main
            for name in _fitting(column.metric, summary)
            if "/" in column.metric or "/" not in name
        ]

    def first_figures(self, *summaries: Summary) -> list[str]:
        """The titles of the first of them that have a value, in one of the summaries."""
        known = (
            [title for title, figure in self.main_figures(summary) if figure.value is not None][:MOST_MAIN]
            for summary in summaries
        )
        return list(dict.fromkeys(chain.from_iterable(known)))

    def part(self, summary: Summary) -> str:
        """Which parts of the headline a run has, where it has not all of them: `noise only`."""
        metric = self.metrics[0]
        scopes = (each.scope for each in summary.values() if each.metric == metric.name)
        return part_words(metric, (scope[metric.mean_over] for scope in scopes if metric.mean_over in scope))

    @property
    def groups(self) -> str:
        """The words for what counts as one: `questions`, `independent triplets`."""
        return f"independent {self.counted[1]}" if self.linked else self.counted[1]

    @property
    def headline(self) -> str:
        return self.metrics[0].name

    @property
    def headline_title(self) -> str:
        return self.metrics[0].title

    @property
    def correct_metrics(self) -> tuple[str, ...]:
        """The metrics that say whether a sample's answer is right."""
        default = (self.headline,) if self.metrics[0].unit == "share" else ()
        return default if self.correct is None else self.correct

    def main_meanings(self, summary: Summary) -> list[tuple[str, str]]:
        """The titles and meanings of the metrics that are shown beside the headline."""
        return [(metric.title, metric.meaning) for metric in self._main(summary) if metric.meaning]

    def caveats(self, summary: Summary) -> list[str]:
        """What to be careful about with the figures that are shown first, and with all of them."""
        metrics = dict.fromkeys([self.metrics[0], *self._main(summary)])
        of_metrics = (f"{capitalised(each.title)}: {each.caution}" for each in metrics if each.caution)
        return [*self.cautions, *of_metrics]

    def _main(self, summary: Summary) -> list[Metric]:
        names = dict.fromkeys(figure.metric for _, figure in self.main_figures(summary))
        return list(dict.fromkeys(each for name in names if (each := declaration(self.metrics, name))))


def _fitting(pattern: str, summary: Summary) -> Iterable[str]:
    """The names in a summary that fit a pattern; most patterns are a name."""
    is_name = pattern.isidentifier()
    return {pattern} & summary.keys() if is_name else filter(re.compile(translate(pattern)).match, summary)


class Note(NamedTuple):
    """Something to say beside the figures of a run; a warning where they may mislead."""

    text: str
    warning: bool = False
    doubt: str = ""
    """Why the headline is in doubt, in a few words for the verdict."""
    involved: tuple[str, ...] = ()
    """The subjects that took part in making the data, which the verdict does not put first."""
