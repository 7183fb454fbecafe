"""A model's runs of all benchmarks on one page."""

from __future__ import annotations

from collections.abc import Sequence

from multidict import MultiMapping

from sealegs.app.rendering import named_as_listed, render_page
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from sealegs.harness.folder import load_run
from sealegs.harness.registry import benchmark_class
from sealegs.harness.stored.listing import ListedRun, list_runs, open_run
from sealegs.report.scorecard import scorecard


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    """The card of a model: of that of the run `of`, which is then on it, of the first named, or of the
    newest."""
    model, of = query.get("model", ""), query.get("of", "")
    named = list(dict.fromkeys(query.getall("run", [])))
    finished = [run for run in list_runs(settings.runs) if run.state == "finished"]
    models = list(
        dict.fromkeys(run.model for run in finished if benchmark_class(run.benchmark).subjects.tag == "model")
    )
    if model not in ("", *models) or of not in ("", *(run.name for run in finished)):
        raise UsageError(f"no finished run here is {repr(of) if of else f'of {model!r}'}.")
    of = of or ("" if model else next(iter(named), ""))
    model = next((run.model for run in finished if run.name == of), model)
    model = model if model in models else next(iter(models), "")
    candidates = [run for run in finished if run.name == of or run.model == model or _has_role(run, model)]
    known = {run.name for run in candidates}
    if unknown := [name for name in named if name not in known]:
        raise UsageError(f"no finished run here of this model is {', '.join(map(repr, unknown))}.")
    chosen = named or _largest(candidates, of)
    card = scorecard([open_run(settings.runs, name) for name in chosen]).overview() if chosen else None
    page = render_page(
        settings, "scorecard.html", "/scorecard",
        title="Scorecard", models={name: name for name in models}, model=model, candidates=candidates,
        chosen=chosen, overview=card,
    )  # fmt: skip
    return named_as_listed(settings, page)


def _largest(candidates: Sequence[ListedRun], of: str) -> list[str]:
    """Of each benchmark the run with the most samples, so that a quick look at a part does not take the place
    of the whole; of its own benchmark the run `of`."""
    ordered = sorted(candidates, key=lambda run: (run.name == of, run.headline.n if run.headline else 0))
    return list({run.benchmark: run.name for run in ordered}.values())


def _has_role(run: ListedRun, model: str) -> bool:
    """Whether a model takes part in a run, as in one that compares methods."""
    if benchmark_class(run.benchmark).subjects.tag == "model":
        return False
    return any(role.get("name") == model for role in load_run(run.path).spec.models.values())
