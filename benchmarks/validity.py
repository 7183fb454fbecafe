"""What is true of a model, and what each instrument reads: models of known behaviour, dial by dial.

    python benchmarks/validity.py            # prints the tables
    python benchmarks/validity.py --write    # and writes docs/tables/validity.md with its picture

Every model is played by a server on loopback (`tests/known_models`). Nothing is timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from known_models import mirae, miron, multiview, rgb  # noqa: E402
from known_models.wordings import WORDINGS  # noqa: E402
from sealegs import api  # noqa: E402
from sealegs.report.charts import CurveChart, Position, Series  # noqa: E402
from sealegs.report.svg import draw  # noqa: E402
from sealegs.types import Figure  # noqa: E402

DIALS = (0.0, 0.25, 0.5, 0.75, 1.0)
SEED = 11
QUESTIONS = 40
"""Of each ability."""
PAGE = ROOT / "docs" / "tables" / "validity.md"
PICTURE = ROOT / "docs" / "pictures" / "validity.svg"
WIDTH = 860
CHECKS = {"lenient check": "macro_lenient", "published check": "macro_published"}


class Reading(NamedTuple):
    """What an instrument reads of a model."""

    instrument: str
    truth: float
    figure: Figure

    @property
    def holds(self) -> bool:
        low, high = self.figure.low, self.figure.high
        return low is not None and high is not None and low - 1e-9 <= self.truth <= high + 1e-9


def read_rgb(folder: Path) -> list[tuple[str, Reading]]:
    """By wording: the lenient and the published check of models that are right to a known share."""
    api.build("rgb", folder / "data", seed=SEED, lang="en,zh")
    readings: list[tuple[str, Reading]] = []
    for wording in WORDINGS.values():
        for right in DIALS:
            out = folder / f"{len(readings)}"
            known = rgb.play(folder / "data", out, rgb.Dial(right, right), wording, QUESTIONS)
            for instrument, metric in CHECKS.items():
                figure = known.run.summary[metric]
                readings.append((wording.name, Reading(instrument, known.truth["macro_lenient"], figure)))
    return readings


def read_mirae(folder: Path) -> list[Reading]:
    """Models that contradict themselves: the share of pairs of answers that say the same is the truth."""
    readings = []
    for right in (1.0, 0.8, 0.6):
        (folder / str(right)).mkdir()
        summary = mirae.play(folder / str(right), right, judged=True, embedder="embedded-embedder").summary
        count = round(right * mirae.REPEATS)
        pairs = mirae.REPEATS * (mirae.REPEATS - 1)
        same = (count * (count - 1) + (mirae.REPEATS - count) * (mirae.REPEATS - count - 1)) / pairs
        readings += [
            Reading("pairs with the same meaning (judge)", same, summary["same_meaning"]),
            Reading("similarity of the texts (published)", same, summary["mean_similarity"]),
            Reading("right every time of five (pass^5)", float(right == 1), summary["pass_hat_k/k=5"]),
        ]
    return readings


def read_multiview(folder: Path) -> list[Reading]:
    """Judges that follow the criterion for a known share of the documents, and the surface for the rest."""
    api.build("multiview", folder / "data", seed=SEED)
    readings = []
    for surface in reversed(DIALS):
        run = multiview.play(folder / "data", folder / str(surface), surface)
        for instrument, metric in (("both ways", "both_ways"), ("triplet accuracy (published)", "accuracy")):
            (figure,) = run.figures_of(metric).values()
            readings.append(Reading(instrument, 1 - surface, figure))
    return readings


def read_miron(folder: Path) -> list[Reading]:
    """Models that give the true continuation in a known share of the examples."""
    api.build("miron", folder / "data", seed=SEED, per_category=20, lang="en")
    readings = []
    for right in DIALS:
        run, _ = miron.play(folder / "data" / "miron_en.jsonl", folder / str(right), right)
        readings.append(Reading("exact match", right, run.summary["exact_match"]))
        readings.append(
            Reading("Levenshtein score / 100 (published)", right, _as_share(run.summary["lev_score"]))
        )
    return readings


def _as_share(figure: Figure) -> Figure:
    bounds = {name: getattr(figure, name) for name in ("value", "low", "high")}
    return replace(figure, **{name: bound and bound / 100 for name, bound in bounds.items()})


# Writing


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(reading: Reading) -> str:
    figure = reading.figure
    if figure.value is None:
        return "–"
    limits = "" if figure.low is None or figure.high is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    return f"{figure.value:.2f}{limits}"


def by_truth(readings: Sequence[Reading]) -> str:
    instruments = list(dict.fromkeys(reading.instrument for reading in readings))
    truths = list(dict.fromkeys(reading.truth for reading in readings))
    rows = []
    for truth in sorted(truths):
        cells = [cell(r) for i in instruments for r in readings if r.instrument == i and r.truth == truth]
        if len(cells) == len(instruments):
            rows.append([f"{truth:.2f}", *cells])
    return table(["true", *instruments], rows)


def one_row_each(readings: Sequence[Reading]) -> str:
    return table(
        ["instrument", "true", "reads"], [[r.instrument, f"{r.truth:.2f}", cell(r)] for r in readings]
    )


def picture(readings: Sequence[tuple[str, Reading]]) -> str:
    """What is true against what each check reads, a line for each wording of the published one."""
    series = [Series("true", tuple(Position(dial, dial, dial, dial) for dial in DIALS))]
    for instrument in CHECKS:
        for wording in WORDINGS:
            found = [r for name, r in readings if (name, r.instrument) == (wording, instrument)]
            line = tuple(Position(r.truth, r.figure.value or 0.0, r.figure.low, r.figure.high) for r in found)
            if instrument == "published check" or wording == "paraphrase":
                series.append(Series(f"{instrument}, {wording}", line))
    chart = CurveChart(
        x_title="share of prompts that the model handles rightly",
        y_title="what the check reads",
        x_unit="share",
        unit="share",
        series=tuple(series),
        domain=(0.0, 1.0),
    )
    return draw(chart, WIDTH)


def page(folder: Path) -> tuple[str, str]:
    """The text of the page, and its picture."""
    parts = {name: folder / name for name in ("rgb", "mirae", "multiview", "miron")}
    for part in parts.values():
        part.mkdir()
    readings = read_rgb(parts["rgb"])
    others = [read_mirae(parts["mirae"]), read_multiview(parts["multiview"]), read_miron(parts["miron"])]
    lenient = [reading for _, reading in readings if reading.instrument == "lenient check"]
    published = [reading for _, reading in readings if reading.instrument == "published check"]
    sections = [
        TEXT.format(
            held=sum(reading.holds for reading in lenient),
            missed=sum(not reading.holds for reading in published),
            total=len(lenient),
        )
    ]
    for wording in WORDINGS:
        of_wording = [reading for name, reading in readings if name == wording]
        sections.append(f"### {wording}\n\n{by_truth(of_wording)}")
    sections += [
        f"## MIRAE: a model that contradicts itself\n\n{MIRAE}\n\n{one_row_each(others[0])}",
        f"## multiview: a judge that ignores the criterion\n\n{MULTIVIEW}\n\n{by_truth(others[1])}",
        f"## MIRON: a model that continues rightly\n\n{MIRON}\n\n{by_truth(others[2])}",
    ]
    return "\n\n".join(sections) + "\n", picture(readings)


TEXT = """# Validity: what is true, and what each instrument reads

<!-- Written by `python benchmarks/validity.py --write`. -->

A benchmark is an instrument, and an instrument has a calibration. Here a server plays models whose
behaviour was set beforehand: with the dial at 75 % a model answers just three of four prompts rightly and
gets the others wrong, in plain words or in those of current models. Each table has what was true and what
each instrument reads, with its 95 % interval. The headline of Sealegs is the one that reads the truth; the
published one stands beside it, to the digit.

## RGB: a model that is right to a known share, in eight wordings

The lenient check holds the truth in {held} of {total} settings; the published check, which looks for exact
words, misses it in {missed} of {total}.

![What is true against what the checks read](../pictures/validity.svg)"""
MIRAE = (
    "Twelve questions of yes or no, each asked five times. A model that says yes three times and no twice "
    "contradicts itself in six of ten pairs of answers; their texts differ in a word or two."
)
MULTIVIEW = (
    "The same documents under two criteria with opposite answers. A judge that picks by the surface is right "
    "under one of them: half of its answers are right, and none of the pairs."
)
MIRON = (
    "The true continuation in a known share of the examples, and that of another example in the rest, which "
    "shares letters with the target and so has a Levenshtein score too."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/tables/validity.md and its picture")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text, svg = page(Path(folder))
    sys.stdout.write(text)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
        PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
