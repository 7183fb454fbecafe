"""Whole runs against a real server on loopback: killed, lied to, cut off, and still the same figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from runs import run_small, small_command
from sealegs.errors import CapabilityError
from sealegs.report import html_page

pytestmark = pytest.mark.slow


def arguments(questions: Path, server: Loopback, out: Path, *more: str) -> list[str]:
    return [*small_command("mirae", out, server, data=questions, levels="1-3", repeats=None), *more]


def test_a_run_leaves_the_files_that_the_design_names(questions: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        finished = run_small("mirae", tmp_path / "run", server, data=questions, levels="1-3")
    assert sorted(os.listdir(finished.path)) == [
        "export", "journal.sqlite", "records.jsonl", "report.html", "spec.json", "summary.json",
    ]  # fmt: skip
    assert os.listdir(finished.path / "export") == ["MIRAE_loop_results_english.json"]
    assert finished.summary["mean_similarity"].coverage == 1.0
    assert finished.summary["mean_similarity"].n == 12


def test_failures_are_counted_never_averaged_and_limit_the_coverage(questions: Path, tmp_path: Path) -> None:
    content = msgspec.json.decode(questions.read_bytes())
    content["questions"][0]["level_2_text"] = "[poison] in the well"
    questions.write_bytes(msgspec.json.encode(content))
    with Loopback() as server:
        done = sealegs(*arguments(questions, server, tmp_path / "run"))
        assert done.code == 1
        assert "coverage 91% is under the floor of 95%" in done.stderr
        assert "HTTP 400" in done.stderr
        lenient = arguments(questions, server, tmp_path / "run", "--min-coverage", "0.9")
        assert sealegs(*lenient).code == 0
    finished = sl.load_run(tmp_path / "run")
    assert finished.headline.coverage == pytest.approx(55 / 60)
    assert finished.headline.statuses == {"ok": 55, "error": 5}
    assert finished.headline.n == 11
    ((reason, count),) = finished.failures().items()
    assert reason.startswith("error: HTTP 400")
    assert count == 5


def test_a_dead_server_ends_with_exit_code_3(questions: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        pass
    done = sealegs(*arguments(questions, server, tmp_path / "run", "--model-arg", "retries=0"))
    assert done.code == 3
    assert "no connection" in done.stderr
    assert f"Is the server running at {server.url}?" in done.stderr
    assert "Traceback" not in done.stderr
    assert "saved in" not in done.stderr  # nothing was answered
    assert not (tmp_path / "run").exists()
    (tmp_path / "mine").mkdir()
    done = sealegs(*arguments(questions, server, tmp_path / "mine", "--model-arg", "retries=0"))
    assert done.code == 3
    assert [*(tmp_path / "mine").iterdir()] == []  # the folder itself is the person's


def test_a_dead_server_costs_no_folder_that_was_there_before(questions: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "marks.jsonl").touch()
    with Loopback() as server:
        pass
    assert sealegs(*arguments(questions, server, tmp_path / "run", "--model-arg", "retries=0")).code == 3
    assert (tmp_path / "run" / "marks.jsonl").exists()


def test_a_model_that_cannot_do_it_is_refused_before_the_first_call(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="generate; 'embedded-embedder' offers: embed"):
        sl.run("mirae", "embedded-embedder", data=questions, levels="1", out=tmp_path / "run")
    with Loopback() as server:
        recorded = run_small("mirae", tmp_path / "recorded", server, data=questions)
        with pytest.raises(CapabilityError, match="embedder of mirae must be able to embed"):
            run_small("mirae", tmp_path / "run", server, embedder=f"replay:{recorded.path}")


def test_a_page_that_fails_does_not_lose_the_run(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise KeyError("odd")

    monkeypatch.setattr(html_page, "sample_table", broken)
    with Loopback() as server:
        done = sealegs(*arguments(questions, server, tmp_path / "run"))
    assert done.code == 1
    assert "the page could not be written: KeyError in harness/test_runs.py:" in done.stderr
    assert "The figures are whole" in done.stderr
    assert "coverage 100%" in done.stdout
    assert not (tmp_path / "run" / "report.html").exists()
    assert sl.load_run(tmp_path / "run").headline.coverage == 1.0


class BeforeFirst(Loopback):
    """Notes what was in a folder when the first request came."""

    folder = Path()
    names: list[str] | None = None

    async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
        if self.names is None:
            self.names = sorted(path.name for path in self.folder.iterdir())
        return await super()._reply(request, path, data)


@pytest.mark.parametrize(("benchmark", "name"), [("mirae", "spec.json"), ("miron", "started.json")])
def test_the_settings_are_stored_before_the_first_request(benchmark: str, name: str, tmp_path: Path) -> None:
    """Also before those with which a server is tried out."""
    with BeforeFirst() as server:
        server.folder = tmp_path / "run"
        done = sealegs(*small_command(benchmark, server.folder, server, limit=1))
    assert done.code in (0, 1)
    assert server.names is not None
    assert {"started.json", name} <= set(server.names)
