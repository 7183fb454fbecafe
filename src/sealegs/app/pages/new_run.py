"""Start a run: choose what to ask, see its size, its cost and every host that is called, then start it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from aiohttp import web
from msgspec.structs import replace
from multidict import MultiMapping

from sealegs.api.launch import start as start_process
from sealegs.api.listing import models_of, suggested_models, suggestions_date
from sealegs.api.plan import dry_run
from sealegs.api.setup import data_problem, model_refs
from sealegs.api.so_far import pace
from sealegs.api.trial import ModelTrial, try_model
from sealegs.app import fields
from sealegs.app.rendering import html, render_page
from sealegs.app.review import calls_of, check_seal, sealed
from sealegs.app.run_form import (
    AMOUNTS,
    SERVER_EXAMPLE,
    SIZES,
    Filled,
    RunRequest,
    chosen_of,
    from_address,
    from_run,
)
from sealegs.app.settings import AppSettings
from sealegs.errors import MissingExtra, SealegsError, UsageError
from sealegs.harness.folder import load_run
from sealegs.harness.registry import benchmark_class, benchmark_names, benchmark_title, load_benchmark
from sealegs.harness.stored.listing import list_runs, open_run
from sealegs.models.presets import NO_KEY, presets
from sealegs.models.registry import load_model, split_spec
from sealegs.page.format import duration

SHOWN = 2
"""Options of a benchmark that are not folded."""
SIGNS = {"ok": "✓", "not supported": "–", "unclear": "?", "failed": "✗"}


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    """The form as a link opens it: filled from a run, or with what a link may say."""
    like = query.get("like", "")
    filled = from_run(settings, open_run(settings.runs, like)) if like else from_address(settings, query)
    return _form(settings, filled, like=like)


def again(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """The form as it was, from the page that follows it, or for another benchmark."""
    return _form(settings, _filled(settings, form))


def models(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """The form as it was, with the models that the chosen server lists."""
    source = str(form.get("source", ""))
    if source not in presets():
        raise UsageError("choose a provider whose server lists its models.")
    listed = models_of(source)
    return _form(settings, _filled(settings, form), listed.problem, listed={source: listed.models})


def _filled(settings: AppSettings, form: MultiMapping[Any]) -> Filled:
    of = str(form.get("benchmark", ""))
    name, options = str(form.get("choose", of)), {}
    if name == of and name in benchmark_names():  # the options of one benchmark are not another's
        options = fields.options_of(benchmark_class(name).Options, settings, form)
    values = {key: value for key, value in form.items() if isinstance(value, str)}
    return Filled(benchmark=name, values=values, options=options)


def _form(
    settings: AppSettings,
    filled: Filled,
    problem: str = "",
    like: str = "",
    listed: Mapping[str, list[str]] | None = None,
) -> str:
    names = benchmark_names()
    name = filled.benchmark if filled.benchmark in names else names[0]
    benchmark = benchmark_class(name)
    options = fields.fields(benchmark.Options, settings, filled.options)
    size = filled.values.get("size", "5")
    sizes = SIZES if size in SIZES else {size: f"{size} {{}}", **SIZES}
    return render_page(
        settings, "new_run.html", "/new-run",
        title="New run",
        benchmark=name,
        question=benchmark.layout.question,
        about=benchmark.help.about.strip("\b\n"),
        needs_model=benchmark.subjects.tag == "model",
        titles={each: benchmark_title(each) for each in names},
        presets=presets(),
        models=suggested_models() | dict(listed or {}),
        suggestions_date=suggestions_date(),
        listed=listed or {},
        embedded_problem=_embedded_problem(),
        folders=list(settings.model_folders()),
        data_sets=[each for each, path in settings.data_sets().items() if not data_problem(name, path)],
        sizes={each: words.format(benchmark.help.limit) for each, words in sizes.items()},
        size=size,
        values=filled.values,
        variables=[NO_KEY, *sorted({preset.key for preset in presets().values() if preset.key})],
        server_example=SERVER_EXAMPLE,
        amounts=AMOUNTS,
        shown=options[:SHOWN],
        rest=options[SHOWN:],
        problem=fields.with_titles(problem),
        note=filled.note,
        like=like,
    )  # fmt: skip


@cache
def _embedded_problem() -> str:
    """What the embedded model lacks on this machine; empty where it can be run."""
    try:
        load_model("embedded").close()
    except MissingExtra as error:
        return str(error)
    return ""


# The last look before the start


def review(settings: AppSettings, form: MultiMapping[Any]) -> str | web.Response:
    """What the run would ask, what it would cost, and whom it would call."""
    try:
        return _reviewed(settings, chosen_of(settings, form), form)
    except SealegsError as error:
        return html(_form(settings, _filled(settings, form), str(error)), 422)


def test(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """Send the model a few small requests, and show what came of them on the same page."""
    check_seal(form)
    chosen = chosen_of(settings, form)
    trial: ModelTrial | str
    try:
        trial = try_model(chosen.model or "")
    except SealegsError as error:
        trial = str(error)
    return _reviewed(settings, chosen, form, trial)


def _reviewed(
    settings: AppSettings, chosen: RunRequest, form: MultiMapping[Any], trial: ModelTrial | str | None = None
) -> str:
    plan = dry_run(chosen.benchmark, **chosen.arguments)
    # The table of hosts has the keys that are sent.
    shown = replace(plan, keys=tuple(key for key in plan.keys if " goes to " not in key)).overview()
    refs = model_refs(load_benchmark(chosen.benchmark, chosen.options), chosen.benchmark, chosen.model)
    requests = sum(plan.requests.values())
    return render_page(
        settings, "review.html", "/new-run",
        title="Start this run?",
        facts=_facts(chosen),
        plan=replace(shown, lines=[fields.with_titles(line) for line in shown.lines]),
        requests=requests,
        time=_expected_time(settings, chosen, requests),
        calls=calls_of(refs, chosen.sources),
        trial=_in_words_of_the_form(trial),
        signs=SIGNS,
        fields=sealed([*fields.repeated(form, chosen.options), ("data", chosen.data)]),
    )  # fmt: skip


def _in_words_of_the_form(trial: ModelTrial | str | None) -> ModelTrial | str | None:
    """What was found out about the model, without batches, which the form cannot ask for."""
    if not isinstance(trial, ModelTrial):
        return trial and fields.with_titles(trial)
    return replace(trial, trials=[each for each in trial.trials if each.name != "batch"])


def _expected_time(settings: AppSettings, chosen: RunRequest, requests: int) -> str:
    """`about 3 min at the pace of RUN`, where a run of this model with answers as long is there."""
    longest = getattr(benchmark_class(chosen.benchmark).Options(), "max_tokens", None)
    for listed in list_runs(settings.runs) if requests else ():
        if listed.state != "finished" or listed.benchmark != chosen.benchmark:
            continue
        spec = load_run(listed.path).spec
        same = spec.models.get("model", {}).get("spec") == chosen.model
        as_long = spec.options.get("max_tokens") == chosen.options.get("max_tokens", longest)
        if same and as_long and (rate := pace(listed.path)):
            return f"about {duration(requests / rate)} at the pace of {listed.name}"
    return "time unknown until the first answers"


def _facts(chosen: RunRequest) -> dict[str, str]:
    """What was chosen, in the words of the form."""
    facts = {
        "Benchmark": benchmark_title(chosen.benchmark),
        "Model": split_spec(chosen.model)[0] if chosen.model else "",
        "Data": ", ".join(Path(source).name for source in chosen.sources),
        "Size": f"{chosen.limit} {benchmark_class(chosen.benchmark).help.limit}" if chosen.limit else "all",
        "Languages": chosen.lang or "all",
        "Seed": str(chosen.seed or ""),
    }
    facts |= {fields.title(name): str(value) for name, value in chosen.options.items()}
    facts |= {AMOUNTS[name]: f"{value:g}" for name, value in chosen.amounts.items()}
    return {title: text for title, text in facts.items() if text}


def start(settings: AppSettings, form: MultiMapping[Any]) -> NoReturn:
    """Start exactly what was looked at."""
    check_seal(form)
    chosen = chosen_of(settings, form)
    settings.runs.mkdir(parents=True, exist_ok=True)
    process = start_process(settings.runs, chosen.benchmark, **chosen.arguments)
    raise web.HTTPSeeOther(f"/run?run={quote(process.name)}")
