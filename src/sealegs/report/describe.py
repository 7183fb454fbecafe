"""Results described once: terminal, page, app, notebook and Markdown show this, each to the depth it chooses.

Nothing is computed before it is asked for: a line at the terminal reads no records for a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from msgspec.structs import replace

from sealegs.analysis.comparability import run_names
from sealegs.analysis.comparison import Comparison, compare
from sealegs.analysis.gate import Gate
from sealegs.analysis.leaderboard import Leaderboard
from sealegs.analysis.references import Reference, orientation_table, reference_runs, references
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.folder import Run, load_run, shared_layout
from sealegs.make.builder import Built
from sealegs.page.examples import shortened
from sealegs.page.format import chance, counts, interval_words, nouns, statuses, value
from sealegs.page.grid import Content, DisplayedList, Grid, Overview, coverage_cell
from sealegs.page.layout import Layout, Note
from sealegs.page.scale import Scale, legend, sources
from sealegs.page.tables import all_figures, arrange, runs_table
from sealegs.page.tokenized import Tokenized
from sealegs.report.comparison import comparison_overview
from sealegs.report.gate import gate_overview
from sealegs.report.notes import notes_of
from sealegs.report.scorecard import CardEntry, Scorecard, entries_of, marks_of, scorecard_overview
from sealegs.report.suite import SuiteResult, board_overview, suite_overview
from sealegs.types import Figure

if TYPE_CHECKING:
    from sealegs.report.pictures import Drawn


class RunDescription:
    """All that is said of a run; with others of its benchmark, of all of them.

    What is of one run alone (its tables, its samples) is of the first, and `of_run` says so.
    """

    def __init__(self, runs: Sequence[Run], reference: Sequence[str | Path] = ()) -> None:
        distinct = list({each.path.resolve(): each for each in runs}.values())
        self.runs = dict(zip(run_names(distinct), distinct, strict=True))
        self.first = distinct[0]
        self.several = len(distinct) > 1
        self.part = self.first.part
        self.of_run = (
            f", of {next(iter(self.runs))}" if self.several else f", {self.part} so far" * bool(self.part)
        )
        self._reference = reference

    @cached_property
    def layout(self) -> Layout:
        return shared_layout(list(self.runs.values()))

    @property
    def title(self) -> str:
        title, names = self.layout.name or self.layout.headline_title, list(self.runs)
        if len(names) == 1:
            return f"{title}: {names[0]}"
        return f"{title}: {len(names)} runs ({', '.join(shortened(name) for name in names)})"

    @property
    def verdicts(self) -> dict[str, str]:
        """One sentence for each run, by its name where there are several; or by how much of it there is."""
        of_part = f"So far, {self.part}" if self.part else ""
        return {name if self.several else of_part: run.verdict for name, run in self.runs.items()}

    # The headline

    @cached_property
    def headlines(self) -> list[CardEntry]:
        """The leading figure of each run, or of each of its subjects."""
        runs = list(self.runs.values())
        return [each for name, run in self.runs.items() for each in entries_of(run, runs, name, self._own)]

    def based_on(self, figure: Figure) -> str:
        return f"{counts(figure, self.layout)} {self.layout.counting}".rstrip()

    @property
    def basis(self) -> str:
        """What the figures of the first run rest on; with several subjects, all of them together."""
        sizes = sorted({figure.n for figure in self.first.headlines.values()})
        if len(sizes) < 2:
            return self.based_on(self.first.headline)
        return f"{sizes[0]:,} to {nouns(sizes[-1], self.layout.counted[0])}"

    @property
    def headline(self) -> CardEntry | None:
        """The leading figure, where there is one alone."""
        return self.headlines[0] if len(self.headlines) == 1 else None

    @cached_property
    def scales(self) -> Grid:
        """A line from worst to best for each headline, with what is behind it, and what its marks are."""
        rows: list[tuple[str, list[Content]]] = [
            (each.name, [each.line, figure, self.based_on(figure), coverage_cell(figure.coverage)])
            for each in self.headlines
            for figure in [each.headline.figure]
        ]
        marks = marks_of(self.first, self.layout, self._own)
        words = legend(marks, self.layout.metrics[0].unit)
        return Grid(
            "The runs" if self.several else self.layout.headline_title,
            "run" if self.several else self.first.subject,
            ["worst to best", self.layout.headline_title, "based on", "coverage"],
            rows,
            left=2,
            note=f"{words}." if words else "",
            links=sources(marks),
        )

    # Notes and figures

    @cached_property
    def notes(self) -> list[Note]:
        """The notes of all runs; one that several have is there once."""
        owners: dict[Note, list[str]] = {}
        for name, run in self.runs.items():
            for note in notes_of(run):
                owners.setdefault(note, []).append(name)
        return [
            note if len(names) == len(self.runs) else note._replace(text=f"{', '.join(names)}: {note.text}")
            for note, names in owners.items()
        ]

    @property
    def warnings(self) -> list[str]:
        return [note.text for note in self.notes if note.warning]

    @cached_property
    def main(self) -> Grid | None:
        """The figures beside the headline, a column for each run."""
        summaries = [run.summary for run in self.runs.values()]
        main = [dict(self.layout.main_figures(summary)) for summary in summaries]
        rows: list[tuple[str, list[Content]]] = [
            (title, [figures.get(title) for figures in main])
            for title in self.layout.first_figures(*summaries)
        ]
        return Grid("Main figures", "figure", list(self.runs), rows, left=1) if rows else None

    @cached_property
    def comparison(self) -> Comparison:
        """Every pair of runs, paired by sample."""
        return compare(*self.runs.values())

    @cached_property
    def differences(self) -> Overview | None:
        """What the comparison says; or why the runs cannot be paired."""
        if not self.several:
            return None
        try:
            return comparison_overview(self.comparison)
        except UsageError as error:
            return Overview("", warnings=[f"The runs cannot be paired: {error}"])

    @cached_property
    def grids(self) -> list[Grid]:
        """The runs side by side, where there are several, and the tables of the first."""
        tables = [grid for table in self.layout.tables if (grid := arrange(self.first.summary, table))]
        if not self.several:
            return tables
        return [*self.beside, *(replace(grid, title=f"{grid.title}{self.of_run}") for grid in tables)]

    @property
    def beside(self) -> list[Grid]:
        """The first table, with a column for each run."""
        summaries = {name: run.summary for name, run in self.runs.items()}
        return [runs_table(summaries, table) for table in self.layout.tables[:1]]

    @property
    def figures(self) -> Grid:
        return all_figures(self.first.summary, self.layout.metrics)

    # References, pictures and settings

    @cached_property
    def _own(self) -> list[Run]:
        return reference_runs(self._reference)

    @cached_property
    def _listed(self) -> list[Reference]:
        return references(self.first.spec.benchmark, self._own, list(self.runs.values()))

    @property
    def references(self) -> Grid | None:
        return orientation_table(self._listed, self.layout.headline, self.layout.headline_title)

    @cached_property
    def charts(self) -> list[Drawn]:
        from sealegs.report.pictures import draw

        return draw(self.runs, self.layout, self.of_run, self._listed)

    @property
    def settings(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """What each run was asked with; after ` of ` and its name where there are several."""
        from sealegs.report.pictures import settings_of

        return [
            (f" of {name}" if self.several else "", settings_of(run.spec)) for name, run in self.runs.items()
        ]

    # As lines and tables

    def overview(self, *, whole: bool = False) -> Overview:
        """The first screen: verdict, headline, main figures and the first table; or with all tables."""
        title = f"{self.layout.headline_title} of {self.first.spec.subject}"
        headline, basis = self.headline, self.first.headline
        lines, grids = [], [self.main] if self.main else []
        if headline is None:
            scales = self.scales  # what all are based on is in a line of its own
            rows = [(name, cells[:2]) for name, cells in scales.rows]
            grids.insert(0, replace(scales, columns=scales.columns[:2], rows=rows))
        else:
            figure = headline.headline.figure
            title = f"{title}: {value(figure)}"
            guessing = chance(self.layout.metrics[0])
            lines.append(", ".join(filter(None, (interval_words(figure), guessing))))
            if isinstance(headline.line, Scale) and figure.value is not None:
                lines += filter(None, (headline.line.text(), self.scales.note))
        coverage = coverage_cell(basis.coverage, details=f" ({statuses(basis)})").text
        lines.append(f"over {self.basis}, coverage {coverage}")
        return Overview(
            title,
            lines if whole else [*lines, f"Report: {self.first.path / 'report.html'}"],
            [*grids, *(self.grids if whole else self.grids[:1])],
            [note.text for note in self.notes if not note.warning],
            verdicts=list(self.verdicts.values()),
            warnings=self.warnings,
        )


def charts(run: Run | str | Path, *others: Run | str | Path) -> DisplayedList[Drawn]:
    """The pictures of a run, or of several of one benchmark in the same pictures.

    `sl.charts("runs/yesterday")` shows them in a notebook; `[0].to_svg()` is the first as a file,
    `to_png()` and `to_pdf()` need the package cairosvg.
    """
    return DisplayedList(describe(run, *others).charts)


def tables(run: Run | str | Path) -> DisplayedList[Grid]:
    """The tables of a run, its main figures first: `sl.tables("runs/yesterday")[0].rows`."""
    described = describe(run)
    return DisplayedList([*([described.main] if described.main else []), *described.grids])


Result: TypeAlias = Comparison | Leaderboard | SuiteResult | Scorecard | Gate | Tokenized | Built


@overload
def describe(
    result: Run | str | Path, *others: Run | str | Path, reference: Sequence[str | Path] = ()
) -> RunDescription: ...
@overload
def describe(result: Result) -> Overview: ...
def describe(
    result: Run | str | Path | Result, *others: Run | str | Path, reference: Sequence[str | Path] = ()
) -> RunDescription | Overview:
    """What is said of a result; of a run, or of several of one benchmark, with folders of reference runs
    beside them."""
    match result:
        case Run() | str() | Path():
            return RunDescription([load_run(each) for each in (result, *others)], reference)
        case Comparison():
            return comparison_overview(result)
        case Leaderboard():
            return board_overview(result)
        case SuiteResult():
            return suite_overview(result)
        case Scorecard():
            return scorecard_overview(result)
        case Gate():
            return gate_overview(result)
        case Tokenized():
            return tokenizer_overview(result)
        case Built():
            return build_overview(result)


def tokenizer_overview(tokenized: Tokenized) -> Overview:
    """A sentence, and a picture and a table for each measure."""
    from sealegs.report.charts import bars
    from sealegs.report.pictures import Drawn

    summaries = dict(zip(tokenized.names, tokenized.summaries.values(), strict=True))
    drawn = ((each.title, bars(summaries, each)) for each in tokenized.pictures)
    return Overview(
        "Tokenizers",
        grids=tokenized.grids,
        footnotes=tokenized.cautions,
        lead="How tokenizers split the same texts. No model was run.",
        verdicts=[tokenized.verdict],
        warnings=tokenized.notes,
        pictures=[Drawn(title, chart, "") for title, chart in drawn if chart],
    )


def build_overview(built: Built) -> Overview:
    """The files of a data set that was made, and what failed."""
    rows: list[tuple[str, list[Content]]] = [
        (name, [f"{len(content):,}"]) for name, content in built.files.items()
    ]
    failed = ["\n  ".join(["these parts failed their checks:", *built.failures])] if built.failures else []
    return Overview(
        f"Data set: {nouns(len(built.files), 'files')}",
        built.notes,
        [Grid("Files", "file", ["bytes"], rows, left=1)] if rows else [],
        warnings=failed,
    )


def overview_of(result: Run | Result) -> Overview:
    """The first screen of it: what a notebook shows, Markdown and the terminal."""
    if not isinstance(result, Run):
        return describe(result)
    try:
        return describe(result).overview()
    except SealegsError as error:  # not finished, or not a run of this version
        return Overview(str(result.path), [str(error)])
