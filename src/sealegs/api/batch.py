"""Which models of a run are asked by batches, and what is said of batches that are still under way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from sealegs.errors import SealegsError, UsageError
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.folder.layout import how_to_resume
from sealegs.harness.model import Model
from sealegs.harness.progress import Progress
from sealegs.models.presets import batch_preset, presets
from sealegs.models.registry import split_spec
from sealegs.types import ModelRef


def batched_roles(benchmark: Benchmark, name: str, refs: Mapping[str, ModelRef]) -> frozenset[str]:
    """The roles that batches answer: those that only write, at a provider that has batches. An error where
    the model under test is not among them, or nobody is."""
    writing = {role: ref for role, ref in refs.items() if set(benchmark.roles[role]) == {"generate"}}
    roles = frozenset(role for role, ref in writing.items() if batch_preset(ref.spec.partition(":")[0]))
    if not roles or ("model" in refs and "model" not in roles):
        asked = refs.get("model") or next(iter(writing.values()), None)
        available = ", ".join(f"{each}:" for each, preset in presets().items() if preset.batches)
        raise UsageError(
            f"--batch: {name} of '{split_spec(asked.spec)[0] if asked else 'no model'}' has no batches. "
            f"Available: {available}; batches only answer chats. Leave --batch out to ask live."
        )
    return roles


def with_batches(
    models: Mapping[str, Model], roles: frozenset[str], folder: Path, *, wait: bool
) -> dict[str, Model]:
    """The models of a run, those of some roles asked by batches that are stored in its folder."""
    if not roles:
        return dict(models)
    from sealegs.models.openai.backend import OpenAI
    from sealegs.models.openai.batches.model import BatchModel

    batched = dict(models)
    for role in roles:
        live = models[role]
        if not isinstance(live, OpenAI) or (access := live.batch_access()) is None:
            raise UsageError("--batch goes with --engine local: it needs no other machine.")
        batched[role] = BatchModel(live, access, folder, wait=wait)
    return batched


@contextlib.contextmanager
def note_batches(folder: Path, progress: Progress, *, batch: bool) -> Iterator[None]:
    """Say of batches that are under way what becomes of them: where a run is stopped they keep running, and
    where it resumes without them they are paid for and not read."""
    from sealegs.models.openai.batches.stored import unfetched

    open_batches = unfetched(folder)
    if open_batches and not batch:
        progress.note(
            f"Batches of this run that are not read: {len(open_batches)}. With --batch their answers are "
            "fetched; without it the same is asked again."
        )
    try:
        yield
    except (SealegsError, KeyboardInterrupt) as error:
        with contextlib.suppress(SealegsError):
            if batch and (names := [each.id or "one being created" for each in unfetched(folder)]):
                error.add_note(
                    f"Batches keep running at the provider: {', '.join(names)}. Fetch their answers with "
                    f"{how_to_resume(folder)}."
                )
        raise
