"""A suite from its file to its leaderboards: `suite`, and what it would ask."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec import Struct

from sealegs.analysis.gate import gate
from sealegs.analysis.leaderboard import Leaderboard, leaderboard
from sealegs.api.launch import stored
from sealegs.api.plan import Plan, dry_run
from sealegs.api.suite.definition import BenchmarkEntry, BudgetEntry, SuiteFile, read_suite
from sealegs.api.suite.execution import Execution, earlier_outcome
from sealegs.api.suite.runs import PlannedRun, planned_runs
from sealegs.errors import ModelUnreachable, SealegsError, UsageError
from sealegs.files import lock
from sealegs.harness.folder import Run, shared_layout
from sealegs.harness.folder.layout import run_file
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.journal.database import JournalUsage
from sealegs.journal.recording import Recording
from sealegs.report.suite import SuiteGate, SuiteResult, SuiteRun, write_leaderboards
from sealegs.report.terminal.runs import RunsWatcher, runs_watcher


class PlannedCost(Struct, frozen=True, kw_only=True):
    """What a run of a suite would ask."""

    name: str
    state: str
    """`new`, `unfinished`, `finished`."""
    servers: tuple[str, ...]
    plan: Plan


def suite(
    file: str | Path,
    *,
    out: str | Path | None = None,
    only: str | Sequence[str] = (),
    allow_hosts: Sequence[str] = (),
    progress: RunsWatcher | bool | None = True,
) -> SuiteResult:
    """Run each benchmark of a YAML file on each of its models, and rank them.

        result = sl.suite("suite.yaml")
        result.boards[0].rows[0].rank

    Called again it resumes: what is finished is left as it is, what was answered is not asked again. `only`
    are patterns of the names of runs (`rgb-*`). A key is sent only to its provider and to `allow_hosts`.
    `sealegs suite --init` writes a file to begin with.
    """
    definition, planned, root, budget = _read(Path(file), out, allow_hosts)
    chosen = _chosen(planned, [only] if isinstance(only, str) else only)
    root.mkdir(parents=True, exist_ok=True)
    if (root / "spec.json").exists():
        raise UsageError(f"{root} is the folder of a run: choose another --out for the suite.")
    with lock.writing(root):
        for run in planned:  # what earlier calls have spent counts before any is begun
            run.gate.resume(_used(root / run.name))
        parallel, watcher = definition.definition.parallel, runs_watcher(progress)
        outcomes = Execution(root, chosen, parallel=parallel, watcher=watcher).execute()
        runs = [outcomes.get(run.name) or earlier_outcome(root, run) for run in planned]
        boards = _boards(definition, root, planned, runs)
        result = _result(definition, root, runs, list(outcomes.values()), boards, budget)
        write_leaderboards(result)
        return result


def _used(folder: Path) -> dict[str, JournalUsage]:
    """What earlier starts of a run have asked of the model of each role. What cannot be read is refused when
    the folder is opened to be written, not here."""
    with contextlib.suppress(SealegsError):
        if (journal := run_file(folder, "journal.sqlite")) is not None:
            with contextlib.closing(Recording(journal)) as recording:
                return recording.usage()
    return {}


def plan_suite(
    file: str | Path,
    *,
    out: str | Path | None = None,
    only: Sequence[str] = (),
    allow_hosts: Sequence[str] = (),
) -> list[PlannedCost]:
    """What each run of a suite would ask, and what that would cost. Nothing is asked or written."""
    _, planned, root, _ = _read(Path(file), out, allow_hosts)
    states = {"waiting": "new", "finished": "finished"}
    return [
        PlannedCost(
            name=run.name,
            state=states.get(earlier_outcome(root, run).state, "unfinished"),
            servers=tuple(sorted(run.servers)),
            plan=_plan(run),
        )
        for run in _chosen(planned, only)
    ]


def _plan(run: PlannedRun) -> Plan:
    plan = dry_run(run.task.benchmark, **run.task.settings)
    return msgspec.structs.replace(plan, usd=0.0) if plan.local else plan


def _read(
    path: Path, out: str | Path | None, allow_hosts: Sequence[str]
) -> tuple[SuiteFile, list[PlannedRun], Path, RequestGate | None]:
    """A suite's file, its runs, its folder, in which no run of an earlier call is another, and its budget."""
    file = read_suite(path)
    root = Path(out) if out else file.out
    file.baseline()  # one that lies elsewhere is refused before anything is asked
    entry, budget = file.definition.budget, None
    if entry != BudgetEntry():
        budget = RequestGate(Limits(max_requests=entry.requests, max_usd=entry.usd), owner="the suite")
    runs = planned_runs(file, allow_hosts, budget)
    for run in runs:
        begun = (root / run.name / "spec.json").is_file()
        if begun and (process := stored(root / run.name)) and process.task.identity != run.task.identity:
            raise file.error(
                f"the run in {root / run.name} had other options or data. Remove that folder, give this run "
                "a name of its own, or choose another --out",
                "benchmarks",
                run.step,
            )
    return file, runs, root, budget


def _chosen(runs: Sequence[PlannedRun], patterns: Sequence[str]) -> list[PlannedRun]:
    chosen = [
        run for run in runs if not patterns or any(fnmatchcase(run.name, pattern) for pattern in patterns)
    ]
    if not chosen:
        names = ", ".join(run.name for run in runs)
        raise UsageError(f"--only {' --only '.join(patterns)}: no run is called that. Available: {names}.")
    return chosen


def _boards(
    file: SuiteFile, root: Path, planned: Sequence[PlannedRun], runs: Sequence[SuiteRun]
) -> tuple[Leaderboard, ...]:
    """The boards of each benchmark: a run is on that of the metric that its entry names."""
    folders: defaultdict[str | None, list[Path]] = defaultdict(list)
    for plan, run in zip(planned, runs, strict=True):
        entry = file.definition.benchmarks[plan.step]
        if run.ranked:
            folders[entry.metric if isinstance(entry, BenchmarkEntry) else None].append(root / run.name)
    boards = [board for metric, ranked in folders.items() for board in leaderboard(ranked, metric=metric)]
    order = {run.benchmark: place for place, run in reversed(list(enumerate(runs)))}
    return tuple(sorted(boards, key=lambda board: order.get(board.benchmark, len(runs))))


def _result(
    file: SuiteFile,
    root: Path,
    runs: list[SuiteRun],
    chosen: list[SuiteRun],
    boards: tuple[Leaderboard, ...],
    budget: RequestGate | None,
) -> SuiteResult:
    gates = tuple(_gates(file, root, runs, [run for run in chosen if run.ranked]))
    failed = [run for run in chosen if not run.ranked]
    unread = [board for board in boards if not board.benchmark]  # its note says what cannot be read, and why
    code = 1 if failed or unread or not all(each.passed for each in gates) else 0
    if all(run.exit_code == ModelUnreachable.exit_code for run in chosen):
        code = ModelUnreachable.exit_code
    return SuiteResult(
        name=file.path.stem,
        path=str(root),
        runs=tuple(runs),
        boards=boards,
        gates=gates,
        usd=budget.usd if budget is not None and budget.limits.max_usd is not None else None,
        exit_code=code,
    )


def _gates(
    file: SuiteFile, root: Path, runs: Sequence[SuiteRun], ranked: Sequence[SuiteRun]
) -> Iterator[SuiteGate]:
    """Each ranked run against that of the same name in an earlier suite; one that cannot be compared fails.

    Where there is no baseline yet, nothing is compared. A run that the baseline lacks is new, and passes; a
    baseline with none of the suite's runs is the wrong folder.
    """
    entry, baseline = file.definition.gate, file.baseline()
    if entry is None or baseline is None:
        return
    known = {run.name for run in runs if (baseline / run.name / "summary.json").is_file()}
    for run in ranked:
        folder = baseline / run.name
        if run.name not in known:
            there = baseline.is_dir()
            missing = f"no such run in {entry.baseline}" if there else f"no baseline yet in {entry.baseline}"
            yield SuiteGate(run=run.name, problem=f"not compared: {missing}", passed=bool(known) or not there)
            continue
        try:
            result = gate(
                root / run.name,
                folder,
                metrics=_gated(Run(root / run.name), Run(folder)),
                max_drop=entry.max_drop,
                min_coverage=file.definition.min_coverage,
            )
        except SealegsError as error:
            yield SuiteGate(run=run.name, problem=str(error), passed=False)
        else:
            yield SuiteGate(run=run.name, gate=result, passed=result.passed)


def _gated(run: Run, baseline: Run) -> list[str] | None:
    """The headline; of each method that both runs have, where methods are set side by side."""
    if len(run.subjects) < 2 and len(baseline.subjects) < 2:
        return None
    headline = shared_layout([run, baseline]).headline
    return [f"{headline}@{subject}" for subject in run.subjects if subject in baseline.subjects] or None
