"""The pictures and settings of runs: for the page, the app and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from sealegs.analysis.references import Reference
from sealegs.errors import MissingExtra
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import served_at
from sealegs.page import format as text
from sealegs.page.grid import Displayed
from sealegs.page.html import render
from sealegs.page.layout import Bars, Curve, Layout, Picture, Points
from sealegs.page.metrics import declaration
from sealegs.page.tables import values_of
from sealegs.report import charts as drawing
from sealegs.report import svg
from sealegs.types import RunSpec


class Drawn(Displayed, Struct, frozen=True):
    """A picture of a run. A notebook shows it as SVG, which needs no script and no network."""

    title: str
    chart: drawing.Chart
    """What it shows: every value with its interval."""
    note: str

    def to_svg(self, width: int = svg.WIDE) -> str:
        """The picture as a file, in plain colours."""
        return svg.draw(self.chart, width)

    def to_png(self, width: int = svg.WIDE) -> bytes:
        """The picture as PNG, on white, at double size; needs the package cairosvg."""
        convert = _cairosvg("to_png()").svg2png
        return bytes(convert(self.to_svg(width).encode(), scale=2, background_color="white"))

    def to_pdf(self, width: int = svg.WIDE) -> bytes:
        """The picture as PDF; needs the package cairosvg."""
        return bytes(_cairosvg("to_pdf()").svg2pdf(self.to_svg(width).encode()))

    @property
    def wide(self) -> Markup:
        """The picture for a page, in the page's colours; every text in it is escaped."""
        return Markup(svg.draw(self.chart, svg.WIDE, "page"))

    @property
    def narrow(self) -> Markup:
        """The picture for a phone's page."""
        return Markup(svg.draw(self.chart, svg.NARROW, "page"))

    def __repr__(self) -> str:
        return text.escape_controls(f"<Drawn {self.title}>")

    def _repr_html_(self) -> str:
        """The picture with its title and note, in the colours of the notebook."""
        return render("report/picture.html", drawn=self)


def _cairosvg(what: str) -> Any:
    try:
        import cairosvg
    except ImportError:
        raise MissingExtra(what, package="cairosvg", install="pip install cairosvg") from None
    return cairosvg


def draw(
    runs: Mapping[str, Run], layout: Layout, of_run: str, references: Sequence[Reference] = ()
) -> list[Drawn]:
    """The pictures of a layout that the runs have something for, those of the headline first; references have
    lines in curves."""
    pictures = sorted(layout.pictures, key=lambda each: getattr(each, "metric", "") != layout.metrics[0].name)
    drawn: list[Drawn] = []
    for title, chart, note in (_draw(picture, runs, layout, of_run, references) for picture in pictures):
        equal = next((at for at, each in enumerate(drawn) if _same_values(each.chart, chart)), None)
        if equal is not None:
            same = f"The same values: {title}."
            drawn[equal] = replace(drawn[equal], note=f"{drawn[equal].note} {same}".strip())
        elif chart is not None:
            drawn.append(Drawn(title, chart, note))
    return drawn


def _same_values(chart: drawing.Chart, other: drawing.Chart | None) -> bool:
    """Whether two pictures differ in their titles alone."""
    if not isinstance(chart, drawing.CurveChart) or type(chart) is not type(other):
        return False
    return replace(chart, y_title="") == replace(other, y_title="")


def _draw(
    picture: Picture,
    runs: Mapping[str, Run],
    layout: Layout,
    of_run: str,
    references: Sequence[Reference],
) -> tuple[str, drawing.Chart | None, str]:
    """The title, chart and note of one picture. What is of one run alone is of the first, and says so."""
    summaries = {name: run.summary for name, run in runs.items()}
    metric = declaration(layout.metrics, picture.metric) if isinstance(picture, Curve) else None
    if isinstance(picture, Curve) and metric and not picture.y_title:
        picture = replace(picture, y_title=metric.title)
    match picture:
        case Bars():
            least = 1 + len(summaries)  # one bar for each run is the figure itself
            return picture.title, drawing.bars(summaries, picture, metric, least), ""
        case Curve():
            if drawing.curve(summaries, picture) is not None:
                for each in references:
                    if values_of(each.figures, picture.metric, picture.along):
                        name = f"{each.name}, {'published' if each.published else 'reference'}"
                        summaries[name] = each.figures
            return picture.title, drawing.curve(summaries, picture), ""
        case Points():
            first = next(iter(runs.values()))
            return f"{picture.title}{of_run}", *drawing.points(first.samples(), picture, layout.metrics)


def settings_of(spec: RunSpec) -> list[tuple[str, str]]:
    """The settings of a run, and where and when it was made; empty ones are left out."""
    provenance = spec.provenance
    versions = [f"{name} {provenance[name]}" for name in ("sealegs", "python") if name in provenance]
    rows: list[tuple[str, Any]] = [("benchmark", spec.benchmark)]
    rows += [(role, model["spec"]) for role, model in spec.models.items()]
    rows += [
        (name.replace("_", "-"), value) for name, value in spec.options.items() if name not in spec.models
    ]
    rows += [
        ("data", f"{spec.data['source']}, sha256 {', '.join(digest[:16] for digest in spec.data['sha256'])}"),
        ("limit", spec.limit),
        ("seed", spec.seed),
        ("created", [provenance.get("created"), *versions, provenance.get("platform")]),
        ("packages", provenance.get("packages")),
    ]
    rows += [(f"{role} reached at", addresses) for role, addresses in served_at(spec).items()]
    rows += [(f"{role} identity", model["identity"]) for role, model in spec.models.items()]
    return [(name, words) for name, value in rows if (words := _plain(value))]


def _plain(value: Any) -> str:
    """A setting in plain words: lists and pairs joined, nothing for an empty one."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict():
            parts = {name: _plain(part) for name, part in value.items()}
            return ", ".join(f"{name} {part}" for name, part in parts.items() if part)
        case list() | tuple():
            return ", ".join(filter(None, map(_plain, value)))
        case _:
            return str(value)
