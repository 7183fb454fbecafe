"""What a run tested, one model or method at a time, as shared formats have it."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from sealegs.files.cache import slug
from sealegs.files.datasets import published_sets
from sealegs.files.remote.sources import HUB, parts_of
from sealegs.harness.benchmark import subject_models
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import refused_settings, served_at
from sealegs.harness.registry import load_stored
from sealegs.page.layout import Layout
from sealegs.page.metrics import scope_name
from sealegs.types import Figure, RunSpec, Summary

UNSPECIFIED = "unspecified"
"""In place of a publisher that a model's name does not have."""
HUB_PAGES = "https://huggingface.co/datasets/"


class HubData(NamedTuple):
    """A data set of the Hugging Face Hub."""

    repo: str
    revision: str = ""
    config: str = ""
    split: str = ""


class Subject(Struct, frozen=True, kw_only=True):
    """One model or method that was tested, with its figures under the names of their metrics and scopes."""

    name: str
    model: str
    """The name of its model; of a method without one, that of the method."""
    id: str
    """`publisher/model`, of characters that a file name may have."""
    spec: str = ""
    sha256: str = ""
    local: bool = False
    """Whether it ran in the process of the run."""
    figures: dict[str, Figure]
    suffix: str = ""
    """What follows the name of a metric in the values of a sample: `@METHOD`."""
    main: tuple[str, ...] = ()
    """The figures that its page shows first: the headline, then the other single figures."""


def subjects(run: Run) -> list[Subject]:
    """What the run tested: its model, or each of the methods that it sets side by side."""
    figures = {name: figure for name, figure in run.summary.items() if figure.value is not None}
    benchmark = load_stored(run.spec)
    layout = run.layout
    if not run.subjects:
        identity = _identity(run, "model")
        return [Subject(name=run.spec.subject, figures=figures, main=_main(layout, figures), **identity)]
    listed = []
    for name in run.subjects:
        of_subject = {
            scope_name(
                figure.metric, {tag: value for tag, value in figure.scope.items() if tag != run.subject}
            ): figure
            for figure in figures.values()
            if figure.scope.get(run.subject) == name
        }
        roles = [role for role in subject_models(benchmark)[name] if role in run.spec.models]
        identity = _identity(run, roles[0]) if roles else {"model": name, "id": _id(name)}
        main = _main(layout, of_subject)
        listed.append(Subject(name=name, figures=of_subject, suffix=f"@{name}", main=main, **identity))
    return listed


def _main(layout: Layout, figures: Summary) -> tuple[str, ...]:
    """The names of the headline and of the main figures, where there are such."""
    shown = {id(figure) for _, figure in layout.main_figures(figures)}
    names = [layout.headline, *(name for name, figure in figures.items() if id(figure) in shown)]
    return tuple(name for name in dict.fromkeys(names) if name in figures)


def _identity(run: Run, role: str) -> dict[str, Any]:
    """The model of a role, as far as the run's spec says."""
    model = run.spec.models[role]
    elsewhere = served_at(run.spec).get(role) or str(model["spec"]).startswith("replay:")
    return {
        "model": str(model["name"]),
        "id": _id(str(model["name"])),
        "spec": str(model["spec"]),
        "sha256": str(model["identity"].get("sha256", "")),
        "local": not elsewhere,
    }


def _id(name: str) -> str:
    """`publisher/model` as in the name; a path, or a name alone, says nothing of a publisher."""
    parts = [part for part in name.replace("\\", "/").split("/") if part.strip(".")] or [name]
    named = len(parts) == 2 and not name.startswith(("/", ".", "~"))
    return "/".join(map(_component, parts if named else (UNSPECIFIED, parts[-1])))


def _component(text: str) -> str:
    """A part of a path; `data` is the name of the folder above it."""
    part = "".join(letter if letter.isascii() else "_" for letter in slug(text)).rstrip(" .")
    return f"{part}_" if part.casefold() in ("data", "unknown", "") else part


def sampling(spec: RunSpec) -> dict[str, Any]:
    """How texts were sampled, as far as the run's options and the model's identity say."""
    identity = spec.models.get("model", {}).get("identity", {})
    settings = {name: spec.options.get(name) for name in ("temperature", "max_tokens")}
    settings |= {name: identity.get(name) for name in ("top_p", "top_k")}
    refused = refused_settings(spec)
    return {name: value for name, value in settings.items() if value is not None and name not in refused}


def seed_of(spec: RunSpec) -> dict[str, str]:
    """The seed, where it decided the answers: a server gets one only where that was asked for."""
    seeded = spec.models.get("model", {}).get("identity", {}).get("send_seed", True)
    return {"seed": str(spec.seed)} if seeded else {}


def hub_data(spec: RunSpec) -> HubData | None:
    """The data set of the Hub that a run's samples are of, where that is known."""
    source = str(spec.data.get("source", ""))
    published = published_sets().get(spec.benchmark) if source == "published" else None
    if published and published.home.startswith(HUB_PAGES):
        return HubData(published.home.removeprefix(HUB_PAGES), published.revision)
    if source.startswith(HUB) and " and " not in source:
        repo, config, split = parts_of(source)
        return HubData(repo, "", config, split)
    return None
