"""What a run tested, one model at a time, as shared formats have it: identity, figures, main metrics."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from evenkeel.files.cache import slug
from evenkeel.files.datasets import published_sets
from evenkeel.files.remote.sources import HUB, parts_of
from evenkeel.harness.folder import Run, served_at
from evenkeel.harness.registry import load_stored
from evenkeel.models.presets import presets
from evenkeel.models.registry import split_spec
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import scope_name
from evenkeel.types import Figure, RunSpec, Summary

Deployment: TypeAlias = Literal["self_deployed", "externally_managed", "unknown"]

LOCAL = "local"
HUB_PAGES = "https://huggingface.co/datasets/"
PUBLISHERS = {"SmolLM2-135M-Instruct": "HuggingFaceTB"}
"""Who published a model whose name alone does not say it."""
ENGINES = {"embedded": "transformers", "embedded-embedder": "sentence-transformers", "hf": "transformers",
           "sbert": "sentence-transformers"}  # fmt: skip


def was_seeded(spec: RunSpec) -> bool:
    """Whether the run's seed decided the answers: a server gets one only where that was asked for."""
    return bool(spec.models.get("model", {}).get("identity", {}).get("send_seed", True))


class HubData(NamedTuple):
    """A data set of the Hugging Face Hub."""

    repo: str
    revision: str = ""
    config: str = ""
    split: str = ""


class Identity(Struct, frozen=True, kw_only=True):
    """A model as others look it up."""

    name: str
    """As the run names it."""
    id: str
    """`publisher/model`, of characters that a file name may have: the server's name stands for a publisher
    that is not known."""
    spec: str = ""
    sha256: str = ""
    platform: str = ""
    engine: str = ""
    engine_version: str = ""
    deployment: Deployment = "unknown"
    bundled: bool = False


class Subject(Struct, frozen=True, kw_only=True):
    """One model or method that was tested, with its figures under the names of their metrics and scopes."""

    name: str
    identity: Identity
    figures: dict[str, Figure]
    suffix: str = ""
    """What follows the name of a metric in the values of a sample: `@METHOD`."""
    main: tuple[str, ...] = ()
    """The figures that its page shows first: the headline, then the other single figures."""


def subjects(run: Run) -> list[Subject]:
    """What the run tested: its model, or each of the methods that it sets side by side."""
    figures = {name: figure for name, figure in run.summary.items() if figure.value is not None}
    benchmark = load_stored(run.spec)
    layout = benchmark.layout
    if not run.subjects:
        model, main = identity(run, "model"), _main(layout, figures)
        return [Subject(name=run.spec.subject, identity=model, figures=figures, main=main)]
    listed = []
    for name in run.subjects:
        of_subject = {
            scope_name(
                figure.metric, {tag: value for tag, value in figure.scope.items() if tag != run.subject}
            ): figure
            for figure in figures.values()
            if figure.scope.get(run.subject) == name
        }
        roles = [role for role in benchmark.roles_of(name) if role in run.spec.models]
        listed.append(
            Subject(
                name=name,
                identity=identity(run, roles[0]) if roles else Identity(name=name, id=_joined(LOCAL, name)),
                figures=of_subject,
                suffix=f"@{name}",
                main=_main(layout, of_subject),
            )
        )
    return listed


def _main(layout: Layout, figures: Summary) -> tuple[str, ...]:
    """The names of the headline and of the main figures, where there are such."""
    shown = {id(figure) for _, figure in layout.main_figures(figures)}
    names = [layout.headline, *(name for name, figure in figures.items() if id(figure) in shown)]
    return tuple(name for name in dict.fromkeys(names) if name in figures)


def identity(run: Run, role: str) -> Identity:
    """The model of a role, as far as the run's spec says."""
    model: Mapping[str, Any] = run.spec.models[role]
    spec, name = str(model["spec"]), str(model["name"])
    scheme = split_spec(spec)[0].partition(":")[0]
    servers = served_at(run.spec).get(role, [])
    publisher, platform, deployment = _served(scheme, servers)
    parts = [part for part in name.replace("\\", "/").split("/") if part.strip(".")]
    if scheme not in ("replay", "recorded") and len(parts) == 2 and not name.startswith(("/", ".", "~")):
        publisher, parts = parts[0], parts[1:]
    engine = ENGINES.get(scheme, "")
    versions = run.spec.provenance.get("packages") or {}
    return Identity(
        name=name,
        id=_joined(PUBLISHERS.get(name, publisher), parts[-1] if parts else name),
        spec=spec,
        sha256=str(model["identity"].get("sha256", "")),
        platform=platform,
        engine=engine,
        engine_version=str(versions.get(engine, "")),
        deployment=deployment,
        bundled=scheme.startswith("embedded"),
    )


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


def _served(scheme: str, servers: Sequence[str]) -> tuple[str, str, Deployment]:
    """What stands for the publisher of a model without one, the platform, and who runs it."""
    if scheme == "replay":
        return "recorded", "", "unknown"
    hosts = [host for server in servers if (host := _host(server))]
    if not hosts:
        return LOCAL, "", "self_deployed" if scheme in ENGINES else "unknown"
    known = {_host(preset.base_url): preset for preset in presets().values()}
    if _is_local(hosts[0]):
        return LOCAL, "", "self_deployed"
    if hosts[0] in known:
        return known[hosts[0]].name, known[hosts[0]].title, "externally_managed"
    return hosts[0], hosts[0], "unknown"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:  # a spec may come from a stranger
        return ""


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host
    return address.is_loopback or address.is_private


def _joined(publisher: str, model: str) -> str:
    return f"{_component(publisher)}/{_component(model)}"


def _component(text: str) -> str:
    """A part of a path; `data` is the name of the folder above it."""
    part = "".join(letter if letter.isascii() else "_" for letter in slug(text)).rstrip(" .")
    return f"{part}_" if part.casefold() in ("data", "unknown", "") else part
