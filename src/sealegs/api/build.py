"""Make a data set, from a seed or from a person's questions and documents."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sealegs.api.run import note_resuming, run_folder
from sealegs.api.setup import gate_for, model_refs, open_models, probe
from sealegs.errors import SealegsError, UsageError
from sealegs.files import lock
from sealegs.files.cache import drafts_in, resolved, storage_errors, write_whole
from sealegs.files.remote.sources import local, named, naming_source, parse_columns
from sealegs.harness.benchmark import builder_class
from sealegs.harness.control import controlled
from sealegs.harness.dispatcher import Dispatcher
from sealegs.harness.folder.layout import STARTED
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.harness.model import Model
from sealegs.harness.progress import Progress
from sealegs.harness.registry import benchmark_name, chosen_class
from sealegs.harness.scoring import complete
from sealegs.journal.journal import Journal
from sealegs.make.builder import Builder, Built
from sealegs.models.engines.engine import load_engine
from sealegs.options import describe, parse
from sealegs.report.terminal.progress import watcher

TEXTS = ("docs", "questions")
"""Options of builders that name a person's own texts."""


def build(
    benchmark: str | Path,
    out: str | Path,
    *,
    model_args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
    column: Mapping[str, str] | Sequence[str] = (),
    concurrency: int | None = None,
    max_requests: int | None = None,
    max_usd: float | None = None,
    progress: Progress | bool | None = True,
    **options: Any,
) -> tuple[list[Path], Built]:
    """Make a data set: files in the folder `out`.

        paths, built = sl.build("mirae", "data/mine", questions="mine.txt")
        built.failures  # what failed

    The options are those of `sealegs build BENCHMARK --help`; `docs` may be a path, an address or
    `hf:NAME:SPLIT`, and `column` maps fields to columns of other names. What a model answered is journaled
    there too, so that a build that was stopped resumes.
    """
    limits = Limits.of(max_requests, max_usd, None, None)
    cls = builder_class(chosen_class(benchmark))
    columns = parse_columns(column)
    if columns and not any(options.get(name) for name in TEXTS):
        raise UsageError("--column goes with your own texts: give them with --docs.")
    read = {name: str(local(options[name], columns, split="train")) for name in TEXTS if options.get(name)}
    builder: Builder = cls(parse(cls.Options, {**options, **read}, of=f"building for '{benchmark}'"))
    target = Path(out)
    # Options that name a language or a model may have the name of a folder too.
    files = {option.name for option in describe(cls.Options) if option.file}
    sources = {resolved(value) for name, value in options.items() if name in files and value}
    if resolved(target) in sources:
        raise UsageError(f"--out {out} is what you gave to build from: choose another.")
    name = benchmark_name(benchmark)
    with load_engine(concurrency=concurrency) as engine, _held(target, watcher(progress)) as watching:
        refs = model_refs(builder, name, builder.helpers.get("model"), model_args, base_url)
        gate = gate_for(limits, refs, builder, watching)
        models = open_models(engine, builder, name, refs)
        probe(builder, models, watching, gate)
        built = _execute(builder, models, target / "journal.sqlite", gate, watching)
        paths = [target / file for file in built.files]
        if taken := [path for path in paths if resolved(path) in sources]:
            raise UsageError(f"{taken[0]} is a file that you gave to build from: choose another --out.")
        if existing := [path.name for path in paths if path.exists()]:
            watching.note(f"replacing in {target}: {', '.join(existing)}")
        for path, content in zip(paths, built.files.values(), strict=True):
            write_whole(path, content)
    return paths, built


@contextlib.contextmanager
def _held(folder: Path, progress: Progress) -> Iterator[Progress]:
    """Keep what is built to this process, remove what a killed one was writing, and say how far it is where
    someone may look. A new folder to which nothing was written goes again."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(run_folder(folder))
        stack.callback(progress.finish)
        with storage_errors(folder / "journal.sqlite"):
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock.writing(folder))
        progress.began(folder)
        for draft, _ in drafts_in(folder):
            draft.unlink()
        if (folder / STARTED).is_file():
            progress = stack.enter_context(controlled(folder, progress))
        yield progress


def _execute(
    builder: Builder, models: Mapping[str, Model], beside: Path, gate: RequestGate, progress: Progress
) -> Built:
    """Build, with every answer journaled; in a temporary file where nobody is asked. What is refused before
    anything was answered leaves no journal."""
    with contextlib.ExitStack() as stack:
        if not models:
            beside = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "journal.sqlite"
        leave = contextlib.ExitStack()  # what is to be done once the journal is closed
        stack.enter_context(leave)
        journal = stack.enter_context(contextlib.closing(Journal(beside)))
        identities = {role: model.identity() for role, model in models.items()}
        dispatcher = Dispatcher(journal, identities, opener=models.__getitem__, gate=gate, progress=progress)
        try:
            with (
                note_resuming(journal, beside.parent, f"the same command, or delete {beside} to ask anew"),
                naming_source(),
            ):
                built = complete(builder.build(), dispatcher.answer)
        except SealegsError:
            if not journal.holds_answers():
                leave.callback(beside.unlink, missing_ok=True)
            raise
    return replace(built, notes=[named(note) for note in built.notes])
