"""What the command line and Python call: run, dry_run, score, rescore, build."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenkeel.api.permission import Permitted
from evenkeel.api.setup import (
    Setup,
    follow,
    identities,
    make_spec,
    open_models,
    prepare,
    probe,
    read_samples,
    tell_address,
)
from evenkeel.api.watching import watcher
from evenkeel.errors import EvenkeelError, RunConflict, UsageError, place_of
from evenkeel.files import datasets, lock
from evenkeel.files.cache import DRAFT, slug, write_whole
from evenkeel.models.replay import RecordedAnswers
from evenkeel.options import describe, parse
from evenkeel.run.benchmark import (
    Benchmark,
    Builder,
    Built,
    Recorded,
    benchmark_class,
    builder_class,
    load_benchmark,
    load_stored,
)
from evenkeel.run.budget import Budget, Limits, foresee
from evenkeel.run.engines import Engine, load_engine
from evenkeel.run.folder import Run, RunFolder, member, read_spec
from evenkeel.run.journal import Journal
from evenkeel.run.model import check_spec
from evenkeel.run.progress import Progress
from evenkeel.run.recording import Recording
from evenkeel.run.runner import TITLES, Road, ask, drive, publish
from evenkeel.run.runner import score as score_run
from evenkeel.run.scoring import UNCAUGHT
from evenkeel.types import KIND_NEEDS, ModelRef, Response, RunSpec, Sample

RUNS = Path("runs")


class Plan(Struct, frozen=True):
    """What a run would ask, by kind: requests, tokens read (estimated), tokens written (at the most)."""

    requests: dict[str, int]
    tokens_in: dict[str, int]
    tokens_out: dict[str, int]
    usd: float | None = None
    """What that costs at the most, where prices were given; embedding and ranking are not counted."""

    def _repr_html_(self) -> str:
        from evenkeel.report.inline import plan_html

        return plan_html(self)


def run(
    benchmark: str,
    model: str | None = None,
    *,
    model_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    data: str | Path = "starter",
    lang: str | Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    fresh: bool = False,
    reuse: str | Path | None = None,
    engine: str = "local",
    concurrency: int | None = None,
    progress: Progress | bool | None = True,
    **rest: Any,
) -> Run:
    """Ask, score and store. `rest` is the benchmark's own options and the limits (`max_requests=…`).

        run = ek.run("mirae", model="embedded", lang=["en"], limit=8, levels="1-3")
        run.summary["mean_similarity"].value

    The names are those of `evenkeel run`, whose help lists them. `progress` is shown in a notebook and on a
    terminal; False shows none.
    """
    limits, options = _split_limits(rest)
    watching = watcher(progress)
    with _engine(engine, concurrency) as running:
        setup = prepare(
            running, benchmark, ModelRef(model, dict(model_args or {})) if model else None, options,
            base_url=base_url, data=str(data), langs=parse_langs(lang), limit=limit, seed=seed,
            progress=watching,
        )  # fmt: skip
        folder = Path(out) if out else default_folder(benchmark, setup.spec.subject)
        return _carry_out(setup, folder, limits, fresh=fresh, reuse=reuse, progress=watching)


def dry_run(
    benchmark: str,
    model: str | None = None,
    *,
    model_args: Mapping[str, Any] | None = None,
    data: str | Path = "starter",
    lang: str | Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    **rest: Any,
) -> Plan:
    """Count what a run would ask. Nothing is asked, and no model is opened; that it can be named is checked.

    plan = ek.dry_run("rgb", model="openai:NAME", limit=20, price_in=0.15, price_out=0.6)
    plan.requests, plan.usd
    """
    limits, options = _split_limits(rest)
    if model:
        check_spec(model, dict(model_args or {}))
    loaded = load_benchmark(benchmark, options, seed=seed)
    for spec in loaded.helpers.values():
        check_spec(spec, {})
    samples = read_samples(loaded, benchmark, str(data), parse_langs(lang), limit)[0]
    asked = [request for sample in samples for request in loaded.requests(sample)]
    requests: Counter[str] = Counter()
    tokens_in: Counter[str] = Counter()
    tokens_out: Counter[str] = Counter()
    for request in asked:
        kind = KIND_NEEDS[type(request)]
        reads, writes = foresee(request)
        requests[kind] += 1
        tokens_in[kind] += reads
        tokens_out[kind] += writes
    for further, (number, reads) in loaded.forecast(samples, asked).items():
        requests[further] += number
        tokens_in[further] += reads
    usd = None
    if limits.price_in or limits.price_out:
        paid = [kind for kind in requests if kind not in ("embed", "rank")]
        usd = limits.usd(sum(tokens_in[kind] for kind in paid), sum(tokens_out[kind] for kind in paid))
    return Plan(dict(requests), dict(tokens_in), dict(tokens_out), usd)


def score(
    benchmark: str,
    file: str | Path,
    *,
    lang: str | None = None,
    base_url: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    concurrency: int | None = None,
    progress: Progress | bool | None = True,
    **options: Any,
) -> Run:
    """Score answers that were recorded elsewhere, in one of the benchmark's published formats.

    `ek.score("mirae", "MIRAE_claude_haiku_results_english.json").summary["mean_similarity/level=7"]`
    """
    path = Path(file)
    asking = {option.name for option in describe(benchmark_class(benchmark).Options) if option.asking}
    if chosen := sorted(asking & set(options)):
        raise UsageError(f"'{chosen[0]}' is about asking a model; these answers were given elsewhere.")
    watching = watcher(progress)
    loaded = load_benchmark(benchmark, options)
    recorded = read_recorded(benchmark, path, lang=lang)
    source = datasets.own_file(path)
    identity = {"spec": f"replay:{path.name}", "model": recorded.model, "sha256": source.sha256}
    answers = RecordedAnswers(identity, _answers_by_request(loaded, recorded))
    with _engine("local", concurrency) as running:
        models = {"model": answers, **open_models(running, loaded, benchmark, None, base_url)}
        spec = make_spec(
            benchmark, loaded, models, {"source": "recorded", "sha256": [source.sha256], "lang": None}
        )
        watching = watcher(progress)
        probe(loaded, models, watching)
        setup = Setup(loaded, spec, recorded.samples, models)
        folder = Path(out) if out else default_folder(benchmark, recorded.model)
        return _carry_out(setup, folder, Limits(), fresh=fresh, reuse=None, progress=watching)


def read_recorded(benchmark: str, path: Path, *, lang: str | None) -> Recorded:
    """Recorded answers, or a clear error; nothing is scored yet."""
    if lang and "," in lang:
        raise UsageError(f"--lang {lang}: a file of recorded answers has one language.")
    return load_benchmark(benchmark, {}).recorded(path, lang=lang)


def rescore(
    path: str | Path,
    *,
    models: Sequence[str] = (),
    model_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    progress: Progress | bool | None = True,
) -> Run:
    """Score a run's stored answers again, in place: `ek.rescore("runs/yesterday").headline`.

    What was never asked is asked only of `models`, the specs of those that may be: a run's folder may come
    from anyone, and does not choose whom this machine talks to or what it loads.
    """
    target = Path(path)
    spec = Run(target).spec
    loaded = load_stored(spec)
    if member(target, "journal.sqlite") is None:
        raise RunConflict(f"{path} has no journal.sqlite: there are no stored answers to score.")
    watching = watcher(progress)
    with (
        _engine("local", None) as running,
        RunFolder.open(target, spec) as folder,
        _journal(folder.journal, watching) as journal,
    ):
        permitted = Permitted(running, target, spec, models, model_args=model_args or {}, base_url=base_url)
        road = Road(
            journal,
            identities(spec),
            opener=permitted.open,
            budget=Budget(Limits()),
            progress=watching,
            refusals=permitted.refusals,
        )
        samples = journal.samples()
        if not samples:
            raise RunConflict(f"{path} was stopped before it began: run the same command again.")
        try:
            return _finish(loaded, folder, spec, samples, road, watching)
        finally:
            watching.finish()


def build(
    benchmark: str,
    out: str | Path,
    *,
    model_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    concurrency: int | None = None,
    progress: Progress | bool | None = True,
    **rest: Any,
) -> tuple[list[Path], Built]:
    """Make a data set: `out` and beside it a file for each further language, or files in the folder `out`.

        paths, built = ek.build("mirae", "mine.json", questions="mine.txt")
        built.failures  # what did not come out

    The names are those of `evenkeel build`, whose help lists them. What a model answered is journaled beside
    `out`, so that a build that was stopped goes on.
    """
    limits, options = _split_limits(rest)
    cls = builder_class(benchmark)
    builder: Builder = cls(parse(cls.Options, options, of=f"building for '{benchmark}'"))
    target = Path(out)
    given = {Path(value).resolve() for value in options.values() if isinstance(value, str) and value}
    if target.resolve() in given:
        raise UsageError(f"--out {out} is a file that you gave to build from: choose another.")
    watching = watcher(progress)
    with _engine("local", concurrency) as running, contextlib.ExitStack() as stack:
        stack.callback(watching.finish)
        stack.enter_context(_building(target, folder=cls.folder))
        spec = builder.helpers.get("model")
        ref = ModelRef(spec, dict(model_args or {})) if spec else None
        models = open_models(running, builder, benchmark, ref, base_url, model_args=model_args)
        probe(builder, models, watching)
        beside = (
            target / "journal.sqlite" if cls.folder else target.with_name(f"{target.stem}.journal.sqlite")
        )
        if not models:
            beside = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.sqlite"
        journal = stack.enter_context(_journal(beside, watching))
        road = Road(
            journal,
            {role: model.identity() for role, model in models.items()},
            opener=models.__getitem__,
            budget=Budget(limits),
            progress=watching,
        )
        with _telling(journal, f"{beside}: the same command goes on from there."):
            built = drive(builder.build(), road)
        paths = _built_paths(target, built, folder=cls.folder)
        if taken := [path for path in paths if path.resolve() in given]:
            raise UsageError(f"{taken[0]} is a file that you gave to build from: choose another --out.")
        if there := [path.name for path in paths if path.exists()]:
            watching.note(
                f"replacing what is in {target.parent if not cls.folder else target}: {', '.join(there)}"
            )
        for path, content in zip(paths, built.files.values(), strict=True):
            write_whole(path, content)
    return paths, built


@contextlib.contextmanager
def _building(target: Path, *, folder: bool) -> Iterator[None]:
    """Hold what is to be built for this process, and sweep away what a killed one was writing."""
    place = target if folder else target.parent
    new = [path for path in (place, *place.parents) if not path.exists()]
    place.mkdir(parents=True, exist_ok=True)
    try:
        with lock.writing(target) if folder else lock.writing_file(target):
            for draft in place.glob(f".*{DRAFT}"):
                if draft.is_file() and (folder or draft.name.startswith(f".{target.stem}")):
                    draft.unlink()
            yield
    finally:
        with contextlib.suppress(OSError):  # something was built there
            for path in new:
                path.rmdir()


def _built_paths(target: Path, built: Built, *, folder: bool) -> list[Path]:
    """Where the files go: into the folder `--out`, or to `--out` and beside it by language."""
    if folder:
        return [target / name for name in built.files]
    beside = [f"{target.stem}_{name.lower()}{target.suffix}" for name in list(built.files)[1:]]
    return [target, *(target.with_name(name) for name in beside)][: len(built.files)]


def parse_langs(lang: str | Sequence[str] | None) -> list[str] | None:
    """`"en,ko"` or `["en", "ko"]` as a list; None is whatever the data has."""
    if lang is None:
        return None
    parts = lang.split(",") if isinstance(lang, str) else lang
    return list(dict.fromkeys(part.strip() for part in parts if part.strip())) or None


def default_folder(benchmark: str, model: str) -> Path:
    """runs/<date>-<time>-<benchmark>-<model>, numbered where that is taken."""
    base = f"{datetime.now():%Y%m%d-%H%M%S}-{benchmark}-{slug(model)}"
    for number in count(1):
        folder = RUNS / (base if number == 1 else f"{base}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)  # taken at once, so that a run of the same second takes another
            return folder
    raise AssertionError("unreachable")


def _carry_out(
    setup: Setup, path: Path, limits: Limits, *, fresh: bool, reuse: str | Path | None, progress: Progress
) -> Run:
    with contextlib.ExitStack() as stack:
        other = Path(reuse) if reuse and Path(reuse).resolve() != path.resolve() else None
        recording = stack.enter_context(_recording(other, setup.spec, progress)) if other else None
        folder = stack.enter_context(RunFolder.open(path, setup.spec, fresh=fresh))
        journal = stack.enter_context(_journal(folder.journal, progress))
        stack.callback(progress.finish)
        follow(folder, setup.spec, progress)
        journal.put_samples(setup.samples)
        road = Road(
            journal,
            identities(folder.spec),
            opener=setup.models.__getitem__,
            budget=Budget(limits),
            progress=progress,
            titles={**TITLES, "model": "reading"} if setup.spec.data["source"] == "recorded" else TITLES,
            reuse=recording,
        )
        with _telling(journal, f"{path}: the same command with --out {path} goes on from there."):
            ask(setup.benchmark, setup.samples, road)
            return _finish(setup.benchmark, folder, setup.spec, setup.samples, road, progress)
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _journal(path: Path, progress: Progress) -> Iterator[Journal]:
    with contextlib.closing(Journal(path)) as journal:
        if journal.rescued:
            progress.note(journal.rescued)
        yield journal


@contextlib.contextmanager
def _recording(folder: Path, here: RunSpec, progress: Progress) -> Iterator[Recording]:
    """Another run's answers."""
    there = read_spec(folder) if member(folder, "spec.json") is not None else None
    if there is not None:
        tell_address(there, here, progress)
    known = list(identities(there).values()) if there is not None else []
    with contextlib.closing(Recording(folder / "journal.sqlite", identities=known)) as recording:
        yield recording


@contextlib.contextmanager
def _telling(journal: Journal, where: str) -> Iterator[None]:
    """Where a run is stopped, say where its answers are, if there are any."""
    try:
        yield
    except (EvenkeelError, KeyboardInterrupt) as error:
        with contextlib.suppress(EvenkeelError):
            if journal.holds_answers():
                error.add_note(f"What was answered is kept in {where}")
        raise


def _finish(
    benchmark: Benchmark,
    folder: RunFolder,
    spec: RunSpec,
    samples: Sequence[Sample],
    road: Road,
    progress: Progress,
) -> Run:
    """Score, and write what others read. The figures come first: a page that fails does not lose them."""
    from evenkeel.report.page import render

    run = score_run(benchmark, folder, samples, road, progress.note)
    publish(benchmark, folder, spec, run)
    try:
        folder.write_bytes("report.html", render(run).encode())
    except UNCAUGHT:
        raise
    except Exception as error:  # noqa: BLE001  # one odd record costs the page, never the run
        (folder.path / "report.html").unlink(missing_ok=True)  # it would show the figures from before
        run.problems.append(f"the page could not be written: {place_of(error)}. The figures are whole.")
    return run


def _answers_by_request(benchmark: Benchmark, recorded: Recorded) -> dict[bytes, Response]:
    return {
        RecordedAnswers.key(request): response
        for sample, responses in zip(recorded.samples, recorded.responses, strict=True)
        for request, response in zip(benchmark.requests(sample), responses, strict=True)
    }


def _split_limits(given: Mapping[str, Any]) -> tuple[Limits, dict[str, Any]]:
    names = {option.name for option in describe(Limits)}
    limits = {name: value for name, value in given.items() if name in names and value is not None}
    return parse(Limits, limits, of="the run"), {k: v for k, v in given.items() if k not in names}


@contextlib.contextmanager
def _engine(name: str, concurrency: int | None) -> Iterator[Engine]:
    engine = load_engine(name, concurrency=concurrency)
    try:
        yield engine
    finally:
        engine.close()
