"""Two or more runs of one benchmark: paired differences, and the samples that changed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from multidict import MultiMapping

from sealegs.analysis.comparability import check_comparable
from sealegs.analysis.sample_values import RunValues
from sealegs.app.rendering import Stamp, named_as_listed, render_page, stamp
from sealegs.app.settings import AppSettings
from sealegs.errors import SealegsError
from sealegs.harness.folder import load_run
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.stored.listing import ListedRun, list_runs, open_run
from sealegs.page.view_html import view_html
from sealegs.report.describe import describe
from sealegs.report.samples.flips import compare_sample, flips
from sealegs.types import RunSpec

MOST_CHANGES = 100
"""Samples in the list of changes: the largest ones."""
MOST_OTHERS = 20
"""Runs that one is tried against: those that were asked the same, then the newest."""


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    names = tuple(dict.fromkeys(query.getall("run", [])))
    if len(names) == 1:
        return _others(settings, names[0])
    if len(names) < 2 or "change" in query:
        return render_page(
            settings, "compare.html", "/compare", title="Compare", finished=_finished(settings), chosen=names
        )
    if sample := query.get("sample"):
        return _sample(settings, names, sample)
    return _comparison(settings, names, tuple(stamp(open_run(settings.runs, name).path) for name in names))


def _finished(settings: AppSettings) -> list[ListedRun]:
    return [run for run in list_runs(settings.runs) if run.state == "finished"]


# What can be compared


def _others(settings: AppSettings, name: str) -> str:
    """Which runs one can be compared with, and why not with the rest."""
    run = open_run(settings.runs, name)
    RunValues(run)  # where this run is damaged, that is said, not that no other was asked the same
    others = [
        each for each in _finished(settings) if each.name != name and each.benchmark == run.spec.benchmark
    ]
    asked = _asked(run.spec)
    # of each kind the newest first
    others.sort(key=lambda other: _asked(read_spec(Path(other.path))) != asked)
    comparable, refused = [], []
    for other in others[:MOST_OTHERS]:
        if reason := _why_not(run.path, Path(other.path), stamp(run.path), stamp(Path(other.path))):
            refused.append((other, reason))
        else:
            comparable.append(other)
    page = render_page(
        settings, "compare_with.html", "/compare",
        title="Compare with …", run=name, model=run.spec.subject, comparable=comparable, refused=refused,
        more=max(0, len(others) - MOST_OTHERS),
    )  # fmt: skip
    return named_as_listed(settings, page)


@lru_cache(maxsize=1024)
def _why_not(path: Path, other: Path, *_versions: Stamp) -> str:
    """Why two runs cannot be compared; empty where they can."""
    try:
        check_comparable(RunValues(load_run(path)), RunValues(load_run(other)))
    except SealegsError as error:
        return str(error)
    return ""


def _asked(spec: RunSpec) -> tuple[Any, ...]:
    """What a run was asked, as far as its spec says: runs that were asked the same can nearly always be
    compared."""
    return spec.data, spec.limit, spec.options


# The comparison


@lru_cache(maxsize=32)
def _comparison(settings: AppSettings, names: tuple[str, ...], _versions: tuple[Stamp, ...]) -> str:
    runs = [open_run(settings.runs, name) for name in names]
    described = describe(*runs)
    _ = described.comparison  # refused with its reason where they cannot be paired
    changes = [flip for flip in flips(runs[0], runs[1]) if flip.difference][:MOST_CHANGES]
    page = render_page(
        settings, "comparison.html", "/compare",
        title=described.title, described=described, samples=None, names=names, changes=changes,
        unit=runs[0].layout.metrics[0].unit,
    )  # fmt: skip
    return named_as_listed(settings, page)


def _sample(settings: AppSettings, names: tuple[str, ...], sample: str) -> str:
    """One sample in the first two runs, with what differs marked."""
    first, second = (open_run(settings.runs, name) for name in names[:2])
    view = view_html(compare_sample(first, second, sample), styled=False)
    return render_page(
        settings, "compared_sample.html", "/compare",
        title=f"Sample {sample}", names=names, sample=sample, view=view,
    )  # fmt: skip
