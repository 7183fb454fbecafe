"""Ask and score: `run` and `rescore`, each of which ends with a run's folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from inspect import signature
from itertools import count
from pathlib import Path
from typing import Any

from sealegs.api.batch import batched_roles, note_batches, with_batches
from sealegs.api.permission import permitted
from sealegs.api.setup import (
    ASSIGNED_GATE,
    Setup,
    gate_for,
    identities,
    model_name,
    model_refs,
    opener,
    prepare,
    with_sampling,
)
from sealegs.errors import BudgetReached, ModelUnreachable, RunConflict, SealegsError, UsageError, place_of
from sealegs.files.cache import distinct_slug, slug
from sealegs.harness.benchmark import Benchmark, sample_type, subject_models
from sealegs.harness.control import controlled
from sealegs.harness.declarations import absent_tags
from sealegs.harness.dispatcher import TITLES, Dispatcher, ReasoningOnly
from sealegs.harness.folder import Run
from sealegs.harness.folder.layout import STARTED, how_to_resume, is_unused, run_file
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.folder.writer import RunFolder
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.harness.progress import Progress
from sealegs.harness.registry import benchmark_name, load_benchmark, load_stored
from sealegs.harness.scoring import UNCAUGHT, ask, check_loss, score_samples
from sealegs.journal.journal import Journal
from sealegs.journal.recording import Recording
from sealegs.models.engines.engine import Engine, load_engine
from sealegs.report.terminal.progress import watcher
from sealegs.types import RunSpec, Sample, Score, Summary, Unit

RUNS = Path("runs")
RECORDED = "recorded"
"""The source of data that comes with its answers."""


def run(
    benchmark: str | Path,
    model: str | None = None,
    *,
    model_args: Mapping[str, Any] | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    base_url: str | None = None,
    data: str | Path | Sequence[str | Path] = "starter",
    column: Mapping[str, str] | Sequence[str] = (),
    lang: str | Sequence[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    label: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    reuse: str | Path | None = None,
    engine: str | Engine = "local",
    engine_args: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    batch: bool = False,
    wait: bool = True,
    max_requests: int | None = None,
    max_usd: float | None = None,
    price_in: float = 0.0,
    price_out: float = 0.0,
    progress: Progress | bool | None = True,
    **benchmark_options: Any,
) -> Run:
    """Ask, score and store.

        run = sl.run("mirae", model="embedded", lang=["en"], limit=8, levels="1-3")
        run.summary["mean_similarity"].value

    `benchmark` is a name of `sealegs list benchmarks`, or the path of a Python file that defines one. Its
    options are given by name; `help(sl.MiraeOptions)` describes them. `data` is a path, an address,
    `hf:NAME:SPLIT`, "starter" or "published"; `column={"query": "question"}` names columns; `label` is what
    results call the model. With `batch` requests go through the provider's batches; without `wait` the call
    ends with BatchesPending, and the same call with `out` resumes it.
    """
    if not wait and not batch:
        raise UsageError("wait=False goes with batch=True.")
    limits = Limits.of(max_requests, max_usd, price_in, price_out)
    watching, name = watcher(progress), benchmark_name(benchmark)
    loaded = load_benchmark(benchmark, benchmark_options, seed=seed, also=RUN_ARGUMENTS)
    refs = model_refs(loaded, name, model, with_sampling(model, model_args, top_p, top_k), base_url)
    roles = batched_roles(loaded, name, refs) if batch else frozenset()
    gate = ASSIGNED_GATE.get() or gate_for(limits, refs, loaded, watching, batched=roles)
    subject = ", ".join(subject_models(loaded)) or label or (model_name(model) if model else "")
    with (
        run_folder(out, name, subject) as path,
        load_engine(engine, engine_args, concurrency=concurrency) as running,
    ):
        setup = prepare(
            running, loaded, name, refs, data=data, column=column, lang=lang, limit=limit, label=label,
            gate=gate, path=path, fresh=fresh, progress=watching,
        )  # fmt: skip
        return execute(
            setup, path, gate, fresh=fresh, reuse=reuse, progress=watching, batched=roles, wait=wait
        )


RUN_ARGUMENTS = tuple(name for name in signature(run).parameters if not name.startswith("benchmark"))
"""What `run` takes beside a benchmark's options: no option may have such a name."""


def rescore(
    path: str | Path,
    *,
    models: Sequence[str] = (),
    model_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    progress: Progress | bool | None = True,
) -> Run:
    """Score a run's stored answers again, in place: `sl.rescore("runs/yesterday").headline`.

    What was never asked is asked only of `models`, the specs of those that may be: a run's folder may come
    from anyone, and does not choose whom this machine talks to or what it loads.
    """
    target = Path(path)
    spec = Run(target).spec
    loaded = load_stored(spec)
    if run_file(target, "journal.sqlite") is None:
        raise RunConflict(f"{path} has no journal.sqlite: there are no stored answers to score.")
    with (
        load_engine() as running,
        RunFolder.open(target, spec) as folder,
        controlled(target, watcher(progress)) as watching,
        contextlib.closing(Journal(folder.journal)) as journal,
    ):
        open_same, refusals = permitted(
            running, target, spec, models, model_args=model_args or {}, base_url=base_url
        )
        dispatcher = Dispatcher(
            journal,
            identities(spec),
            opener=open_same,
            gate=RequestGate(),
            progress=watching,
            refusals=refusals,
        )
        samples = journal.samples(sample_type(type(loaded)))
        count = spec.provenance.get("samples", 0)
        if not count:
            raise RunConflict(f"{path} was stopped before it began: resume it with {how_to_resume(target)}.")
        if len(samples) != count:
            raise RunConflict(
                f"{folder.journal} holds {len(samples):,} of the run's {count:,} samples. Put the journal "
                "back, or run the command that made the run again."
            )
        check_loss(loaded, samples, dispatcher, target)
        try:
            return _finish(loaded, folder, spec, samples, dispatcher, watching)
        finally:
            watching.finish()


def new_folder(root: Path, *names: str) -> Path:
    """Make a folder below `root`: <date>-<time>-<benchmark>-<model>, numbered where that is taken."""
    parts = [f"{datetime.now():%Y%m%d-%H%M%S}", *(slug(name) for name in names if name)]
    base = slug("-".join(parts), longest=120)
    for number in count(1):
        folder = root / (base if number == 1 else f"{base}-{number}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError("unreachable")


@contextlib.contextmanager
def run_folder(out: str | Path | None, *names: str) -> Iterator[Path]:
    """The folder of a run, or of what is built. One that is made, and holds no more than settings at the end,
    is removed again, with those above it that were made for it."""
    parents = [each for each in (Path(out).parents if out else (RUNS, *RUNS.parents)) if not each.exists()]
    made = not out or not Path(out).exists()
    path = Path(out) if out else new_folder(RUNS, *names)
    try:
        yield path
    finally:
        if made and is_unused(path):
            (path / STARTED).unlink(missing_ok=True)
            for each in (path, *parents):
                with contextlib.suppress(OSError):  # another run lies there
                    each.rmdir()


@contextlib.contextmanager
def note_resuming(journal: Journal, where: Path, how: str, folder: RunFolder | None = None) -> Iterator[None]:
    """Where a run is stopped, say where its answers are, if there are any, and how it is resumed, unless that
    is no use. A new run to which no server answered anything, and which cost nothing, leaves no folder."""
    try:
        yield
    except ReasoningOnly:
        raise
    except (SealegsError, KeyboardInterrupt) as error:
        with contextlib.suppress(SealegsError):
            if isinstance(error, BudgetReached):  # stored settings have the same limit
                how = f"the command that it was begun with, a higher limit and --out {where}"
            if journal.holds_answers():
                error.add_note(f"Answers are saved in {where}: resume with {how}.")
            elif isinstance(error, KeyboardInterrupt | BudgetReached):
                error.add_note(f"Resume with {how}.")
            elif isinstance(error, ModelUnreachable) and folder is not None:
                if any(used.tokens_in or used.tokens_out for used in journal.usage().values()):
                    error.add_note(f"What its replies cost counts in {where}: resume with {how}.")
                else:
                    folder.abandon()
        raise


def execute(
    setup: Setup,
    path: Path,
    gate: RequestGate,
    *,
    fresh: bool,
    reuse: str | Path | None,
    progress: Progress,
    batched: frozenset[str] = frozenset(),
    wait: bool = True,
) -> Run:
    """Ask for what is not stored, score, and write the run's folder."""
    models = with_batches(setup.models, batched, path, wait=wait)
    with contextlib.ExitStack() as stack:
        for role in batched:
            stack.callback(models[role].close)
        recording = None
        if reuse and Path(reuse).resolve() != path.resolve():
            if run_file(Path(reuse), "spec.json") is not None:
                read_spec(Path(reuse))  # a run of another format is refused
            recording = stack.enter_context(contextlib.closing(Recording(Path(reuse) / "journal.sqlite")))
        folder = stack.enter_context(RunFolder.open(path, setup.spec, fresh=fresh))
        progress.began(path)
        progress = stack.enter_context(controlled(path, progress))
        journal = stack.enter_context(contextlib.closing(Journal(folder.journal)))
        stack.callback(progress.finish)
        if journal.empty and not journal.holds_samples() and run_file(path, "records.jsonl") is not None:
            raise RunConflict(
                f"{path} has results, and its journal is empty. Put back the journal, start over with "
                "--fresh (everything is asked again), or choose another --out."
            )
        journal.put_samples(setup.samples)
        folder.add_provenance(samples=len(setup.samples))
        for text in absent_tags(setup.benchmark, setup.samples):
            progress.note(text)
        dispatcher = Dispatcher(
            journal,
            identities(folder.spec),
            opener=opener(setup, models, progress, gate),
            gate=gate,
            progress=progress,
            titles={**TITLES, "model": "reading"} if setup.spec.data["source"] == RECORDED else TITLES,
            reuse=recording,
        )
        with (
            note_resuming(journal, path, how_to_resume(path), folder),
            note_batches(path, progress, batch=bool(batched)),
        ):
            ask(setup.benchmark, setup.samples, dispatcher)
            return _finish(setup.benchmark, folder, setup.spec, setup.samples, dispatcher, progress)
    raise AssertionError("unreachable")


def _finish(
    benchmark: Benchmark,
    folder: RunFolder,
    spec: RunSpec,
    samples: Sequence[Sample],
    dispatcher: Dispatcher,
    progress: Progress,
) -> Run:
    """Score, and write what others read. The figures come first: a page that fails does not lose them."""
    with folder.writing("records.jsonl") as file:
        scores = score_samples(benchmark, file, samples, dispatcher, progress.note)
        summary = summarise(benchmark, scores)  # where that fails, the records from before stay with theirs
    folder.write_summary(summary)
    notes = {**folder.spec.provenance.get("notes", {}), **dispatcher.notes()}
    size = (folder.path / "records.jsonl").stat().st_size
    refused = {**folder.spec.provenance.get("refused", {}), **dispatcher.refused()}
    found = {"notes": notes, "refused": refused}
    folder.add_provenance(records_bytes=size, **{name: value for name, value in found.items() if value})
    run = Run(folder.path)
    _publish(benchmark, folder, spec, run)
    try:
        from sealegs.report.html_page import render  # after the figures: it takes memory, and a moment

        folder.write_bytes("report.html", render(run).encode())
    except UNCAUGHT:
        raise
    except Exception as error:  # noqa: BLE001  # one odd record costs the page, never the run
        (folder.path / "report.html").unlink(missing_ok=True)  # it would show the figures from before
        run.problems.append(f"the page could not be written: {place_of(error)}. The figures are whole.")
    return run


def _publish(benchmark: Benchmark, folder: RunFolder, spec: RunSpec, run: Run) -> None:
    """The run in its published formats. One odd record costs a file, never the run."""
    name, taken, written = "", set[str](), list[str]()
    try:
        for title, chunks in benchmark.publishing.files(benchmark, spec, run.records):
            name = f"export/{distinct_slug(title, taken, longest=200)}"
            with folder.writing(name) as file:
                file.writelines(chunks)
            written.append(Path(name).name)
    except UNCAUGHT:
        raise
    except Exception as error:  # noqa: BLE001  # scores unaffected; reported
        if name:
            (folder.path / name).unlink(missing_ok=True)  # one that was left from before has other figures
        run.problems.append(
            f"the published files could not be written: {place_of(error)}. The figures are whole."
        )
    before = folder.spec.provenance.get("exported", ())  # only what is listed there is the run's own
    folder.add_provenance(exported=sorted({*before, *written}))


def summarise(benchmark: Benchmark, scores: Sequence[Score]) -> Summary:
    """The benchmark's own summary, or the mean of each metric that it declares, by its tags."""
    if summary := benchmark.summarise(scores):
        return summary
    from sealegs import analysis

    names = dict.fromkeys(name for score in scores for name in score.values)
    breakdown: dict[str, list[tuple[str, ...]]] = {}
    units: dict[str, Unit] = {}
    for metric in benchmark.metrics:
        measured = [name for name in names if fnmatchcase(name, metric.name) and name not in units]
        if not measured:
            raise UsageError(
                f"{type(benchmark).__name__} declares the metric '{metric.name}', of which no sample has a "
                f"value. Its scores have: {', '.join(names) or 'none'}."
            )
        units |= dict.fromkeys(measured, metric.unit)
        breakdown |= {name: [(), *map(tuple, metric.by)] for name in measured}
    return analysis.summarise(scores, breakdown, units=units)
