"""`sealegs list runs`: all that can be read, the newest first, and a word about the rest."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from commandline import sealegs
from sealegs.harness.folder import Run
from sealegs.harness.stored.listing import ListedRun
from stored import store_run


def stored(path: Path, *, created: str, model: str = "one") -> Run:
    run = store_run(path, {"mean_similarity": np.linspace(0.5, 0.9, 24).reshape(12, 2)}, model=model)
    spec = msgspec.structs.replace(run.spec, provenance={"created": created})
    (path / "spec.json").write_bytes(msgspec.json.encode(spec))
    return Run(path)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs at different depths, one that is not finished, and two that are broken."""
    stored(tmp_path / "old", created="2026-01-05T08:00:00+00:00", model="[bold]evil\x1b[31m")
    stored(tmp_path / "deep" / "er" / "new", created="2026-02-05T08:00:00+00:00")
    stored(tmp_path / "unfinished", created="2026-01-20T08:00:00+00:00")
    (tmp_path / "unfinished" / "summary.json").unlink()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "spec.json").write_text('{"format": 1,')
    stored(tmp_path / "emptied", created="2026-01-01T08:00:00+00:00")
    (tmp_path / "emptied" / "summary.json").write_text("{}")
    return tmp_path


def test_runs_are_listed_from_the_newest_on_and_line_up(runs: Path) -> None:
    done = sealegs("list", "runs", runs)
    assert done.code == 0
    head, _, *rows = done.stdout.splitlines()
    assert [Path(row.split()[-1]).name for row in rows] == ["new", "unfinished", "old", "emptied", "torn"]
    states = [row[head.index("state") :].split()[0] for row in rows]
    assert states == ["finished", "unfinished", "finished", "broken", "broken"]
    for name in ("state", "benchmark", "model", "run"):
        assert all(row[head.index(name) - 1] == " " != row[head.index(name)] for row in rows)
    assert rows[0].split()[:4] == ["2026-02-05", "08:00", "finished", "mirae"]
    emptied, torn = done.stderr.splitlines()
    assert "emptied/summary.json: there are no figures in it" in emptied
    assert "torn/spec.json" in torn
    assert "\x1b" not in done.output
    assert "[bold]evil␛[31m" in rows[2]


def test_each_method_has_a_line_where_methods_are_under_test(tmp_path: Path) -> None:
    run = store_run(tmp_path / "views", {"accuracy": np.eye(12, 2)}, benchmark="multiview")
    spec = msgspec.structs.replace(
        run.spec, models={}, options={"method": ("bm25", "embed:x")}, subjects=("bm25", "embed:x")
    )
    figures = {
        f"accuracy/method={name}": msgspec.structs.replace(run.headline, value=share)
        for name, share in (("bm25", 0.25), ("embed:x", 0.75))
    }
    (run.path / "spec.json").write_bytes(msgspec.json.encode(spec))
    (run.path / "summary.json").write_bytes(msgspec.json.encode({**run.summary, **figures}))
    _, _, *rows = sealegs("list", "runs", tmp_path).stdout.splitlines()
    assert rows[0].split()[:5] == ["–", "finished", "multiview", "bm25", "0.25"]
    assert rows[1].split()[:5] == ["–", "finished", "multiview", "embed:x", "0.75"]
    (found,) = msgspec.json.decode(sealegs("list", "runs", tmp_path, "--json").stdout, type=list[ListedRun])
    assert {name: figure.value for name, figure in found.subjects.items()} == {"bm25": 0.25, "embed:x": 0.75}


def test_runs_are_printed_as_json(runs: Path) -> None:
    found = msgspec.json.decode(sealegs("list", "runs", runs, "--json").stdout, type=list[ListedRun])
    assert [run.name for run in found] == ["deep/er/new", "unfinished", "old", "emptied", "torn"]
    assert [run.state for run in found] == ["finished", "unfinished", "finished", "broken", "broken"]
    assert found[0].metric == "mean_similarity"
    assert found[0].headline == Run(found[0].path).headline
    assert found[1].headline is None
    assert found[2].model == "[bold]evil\x1b[31m"
