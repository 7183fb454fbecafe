"""Score answers that were recorded elsewhere: the recording answers in the model's place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sealegs.api.run import execute, run_folder
from sealegs.api.setup import Setup, make_spec, model_refs, open_models, probe
from sealegs.errors import UsageError
from sealegs.files import datasets
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.folder import Run
from sealegs.harness.gate import RequestGate
from sealegs.harness.progress import Progress
from sealegs.harness.published import Recorded, Recordings
from sealegs.harness.registry import benchmark_name, chosen_class, load_benchmark
from sealegs.models.engines.engine import load_engine
from sealegs.models.replay import RecordedAnswers
from sealegs.options import describe
from sealegs.report.terminal.progress import watcher


def score(
    benchmark: str | Path,
    file: str | Path | Sequence[str | Path],
    *,
    lang: str | None = None,
    base_url: str | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    progress: Progress | bool | None = True,
    **benchmark_options: Any,
) -> Run:
    """Score answers that were recorded elsewhere, in one of the benchmark's published formats.

    `sl.score("mirae", "MIRAE_claude_haiku_results_english.json").summary["mean_similarity/level=7"]`

    Several files of one model are one run where the benchmark can combine them, as MIRAE does languages.
    """
    paths = [Path(file)] if isinstance(file, str | Path) else [Path(each) for each in file]
    asking = {option.name for option in describe(chosen_class(benchmark).Options) if option.asking}
    if unfit := sorted(asking & set(benchmark_options)):
        raise UsageError(f"'{unfit[0]}' is about asking a model; these answers were given elsewhere.")
    watching = watcher(progress)
    loaded = load_benchmark(benchmark, benchmark_options)
    recorded = _combined(loaded, paths, lang)
    hashes = [datasets.data_file(path).sha256 for path in paths]
    identity = {
        "spec": f"replay:{'+'.join(path.name for path in paths)}",
        "model": recorded.model,
        "sha256": "+".join(hashes),
    }
    by_request = {
        RecordedAnswers.key(request): response
        for sample, responses in zip(recorded.samples, recorded.responses, strict=True)
        for request, response in zip(loaded.requests(sample), responses, strict=True)
    }
    answers = RecordedAnswers(identity, by_request, recorded.warnings)
    name = benchmark_name(benchmark)
    with run_folder(out, name, recorded.model) as folder, load_engine() as running:
        models = {
            "model": answers,
            **open_models(running, loaded, name, model_refs(loaded, name, base_url=base_url)),
        }
        about: dict[str, Any] = {"source": "recorded", "sha256": hashes, "lang": None, **recorded.helpers}
        spec = make_spec(name, loaded, models, about)
        setup = Setup(loaded, spec, recorded.samples, models)
        gate = RequestGate()
        probe(loaded, models, watching, gate)
        return execute(setup, folder, gate, fresh=fresh, reuse=None, progress=watching)


def _combined(benchmark: Benchmark, paths: Sequence[Path], lang: str | None) -> Recorded:
    """The recording of one file, or of several as one."""
    if not paths:
        raise UsageError("give at least one file of recorded answers.")
    recordings = [_read(benchmark, path, lang) for path in paths]
    combined = recordings[0] if len(recordings) == 1 else _recordings(benchmark).combine(recordings)
    if combined is None:
        listed = ", ".join(
            f"{path.name} ({each.model})" for path, each in zip(paths, recordings, strict=True)
        )
        raise UsageError(
            f"these files cannot be scored as one run: {listed}. They must be of one model and have no "
            "sample in common. Score each by itself."
        )
    return combined


def group_files(benchmark: str | Path, files: Sequence[Path], *, lang: str | None) -> list[list[Path]]:
    """The files of each run to score: those that the benchmark can combine are one, the others one by one."""
    loaded = load_benchmark(benchmark, {})
    groups: list[dict[Path, Recorded]] = []
    for file in dict.fromkeys(files):
        recorded = _read(loaded, file, lang)
        combine = _recordings(loaded).combine
        fitting = (group for group in groups if combine([*group.values(), recorded]) is not None)
        if (group := next(fitting, None)) is None:
            groups.append({file: recorded})
        else:
            group[file] = recorded
    return [list(group) for group in groups]


def _read(benchmark: Benchmark, path: Path, lang: str | None) -> Recorded:
    if lang and "," in lang:
        raise UsageError(f"--lang {lang}: a file of recorded answers has one language.")
    return _recordings(benchmark).read(benchmark, path, lang)


def _recordings(benchmark: Benchmark) -> Recordings:
    if benchmark.recordings is None:
        name, examples = type(benchmark).__name__, benchmark.help.examples.get("score", ())
        raise UsageError(": ".join([f"{name} has no format for recorded answers", *examples[:1]]))
    return benchmark.recordings
