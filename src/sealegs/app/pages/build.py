"""Make a data set as a process of its own, from a person's texts or from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from aiohttp import web
from multidict import MultiMapping

from sealegs.api.build import TEXTS
from sealegs.api.launch import Started, is_built, start_build, started
from sealegs.api.setup import model_refs
from sealegs.app import fields
from sealegs.app.progress import watched
from sealegs.app.rendering import html, render_page
from sealegs.app.review import CalledHost, calls_of, check_seal, sealed
from sealegs.app.settings import AppSettings
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.benchmark import builder_class
from sealegs.harness.registry import benchmark_class, benchmark_names, benchmark_title
from sealegs.options import parse

SHOWN = 6
"""Options that are not folded."""
MOST_LISTED = 8
"""Builds, the newest first."""


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    return _form(settings, _name(query))


def change(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """The form as it was."""
    return _form(settings, _name(form), form)


def _form(settings: AppSettings, asked: str, form: MultiMapping[Any] | None = None, problem: str = "") -> str:
    builders = builders_by_name()
    name = asked if asked in builders else next(iter(builders))
    given = fields.options_of(builders[name].Options, settings, form) if form is not None else {}
    options = fields.fields(builders[name].Options, settings, given)
    processes = [each for each in started(settings.runs) if each.kind == "build"][:MOST_LISTED]
    return render_page(
        settings, "build.html", "/build",
        title="Build",
        benchmark=name,
        titles={each: benchmark_title(each) for each in builders},
        shown=options[:SHOWN],
        rest=options[SHOWN:],
        problem=fields.with_titles(problem),
        builds=[(watched(Path(each.path), each), each.task.benchmark, _files(each)) for each in processes],
    )  # fmt: skip


def builders_by_name() -> dict[str, Any]:
    """The builders of the benchmarks that have one."""
    builders = {}
    for name in benchmark_names():
        try:
            builders[name] = builder_class(benchmark_class(name))
        except UsageError:
            continue
    return builders


def _files(process: Started) -> list[str]:
    """What was built."""
    return sorted(path.name for path in Path(process.path).iterdir() if is_built(path))


def review(settings: AppSettings, form: MultiMapping[Any]) -> str | web.Response:
    """Whom the build would call; where it calls nobody, it starts at once."""
    try:
        options, calls = _chosen(settings, form)
    except SealegsError as error:
        return html(_form(settings, _name(form), form, str(error)), 422)
    if not calls:
        _start(settings, _name(form), options)
    facts = {"Benchmark": benchmark_title(_name(form))}
    facts |= {fields.title(name): str(value) for name, value in options.items()}
    return render_page(
        settings, "build_review.html", "/build",
        title="Build this set?", facts=facts, calls=calls,
        fields=sealed(fields.repeated(form, options)),
    )  # fmt: skip


def _chosen(settings: AppSettings, form: MultiMapping[Any]) -> tuple[dict[str, Any], list[CalledHost]]:
    """The options that were chosen, tried out without asking anyone, and whom it would call."""
    builders, name = builders_by_name(), _name(form)
    if name not in builders:
        raise UsageError(f"{name!r} has no builder. Available: {', '.join(builders)}.")
    cls = builders[name]
    options = fields.options_of(cls.Options, settings, form)
    builder = cls(parse(cls.Options, options, of=f"building for '{name}'"))
    refs = model_refs(builder, name, builder.helpers.get("model"))
    return options, calls_of(refs, [str(options[each]) for each in TEXTS if each in options])


def _name(form: MultiMapping[Any]) -> str:
    return str(form.get("benchmark", ""))


def start(settings: AppSettings, form: MultiMapping[Any]) -> NoReturn:
    """Start exactly what was looked at."""
    check_seal(form)
    _start(settings, _name(form), _chosen(settings, form)[0])


def _start(settings: AppSettings, name: str, options: dict[str, Any]) -> NoReturn:
    settings.runs.mkdir(parents=True, exist_ok=True)
    start_build(settings.runs, name, **options)
    raise web.HTTPSeeOther(f"/build?benchmark={name}")
