"""Suites on loopback servers: interrupted and resumed, side by side, within a budget, with failures."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

import sealegs as sl
from commandline import command, python, sealegs
from loopback import Loopback
from models.tiny import tiny_model
from sealegs.api.launch import started
from sealegs.api.suite.suite import plan_suite
from sealegs.files import lock
from sealegs.harness.control import stop
from sealegs.report.suite import SuiteResult
from suites import PATIENCE, SMALL, journaled, outcome, serving, until, write_suite

pytestmark = pytest.mark.slow


@pytest.mark.full
def test_a_suite_that_is_killed_twice_ends_like_an_undisturbed_one(tmp_path: Path, questions: Path) -> None:
    """Killed early and late, it asks nothing twice."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    with serving(one={"words": 6}, two={"words": 30, "variants": 9}) as servers:
        path = write_suite(tmp_path, servers, SMALL.replace('"1", repeats: 2', "1-2, repeats: 3"))
        result = outcome(path, out=whole)
        assert result.exit_code == 0, result
        assert {row.name for board in result.boards for row in board.rows} == set(servers)
        asked = sum(sum(server.answered.values()) for server in servers.values())
        answers = journaled(whole)
        for share in (0.2, 0.7):
            process = subprocess.Popen(command("suite", path, "--out", killed), stderr=subprocess.DEVNULL)
            while journaled(killed) < share * answers:
                assert process.poll() is None
                time.sleep(0.05)
            process.kill()
            process.wait()
        assert outcome(path, out=killed).exit_code == 0
        asked_twice = sum(sum(server.answered.values()) for server in servers.values()) - 2 * asked
    assert (killed / "leaderboard.md").read_bytes() == (whole / "leaderboard.md").read_bytes()
    assert journaled(killed) == answers
    assert asked_twice <= 2 * len(servers) * 64  # on their way at each kill; texts are embedded 64 at a time
    assert [run.state for run in sl.list_runs(killed)] == ["finished"] * len(result.runs)


def test_a_failing_model_stops_no_other_and_says_why(tmp_path: Path, questions: Path) -> None:
    """One is well, one refuses its key, one does not answer a quarter of the questions."""
    poisoned = questions.read_text().replace("Question 1, told in 1", "[poison] told in 1")
    (tmp_path / "poisoned.json").write_text(poisoned)
    out = tmp_path / "out"
    bad = {"always": 401, "says": "no <b>such</b> key\x1b[31m"}
    with serving(good={}, bad=bad, few={}) as servers:
        path = write_suite(tmp_path, servers)
        path.write_text(path.read_text().replace('"openai:few",', '"openai:few", data: poisoned.json,'))
        done = sealegs("suite", path, "--out", out, "--json")
        texts = [(out / name).read_text() for name in ("leaderboard.md", "leaderboard.html")]
        asked = {name: server.requests for name, server in servers.items()}
        again = outcome(path, out=out, only=["*-good", "*-few"])
        asked_again = {name: server.requests - asked[name] for name, server in servers.items()}
    assert done.code == 1
    assert "\x1b" not in done.output
    stated = msgspec.json.decode(done.stdout, type=SuiteResult)
    good, refused, few = stated.runs
    assert [(row.name, row.rank) for row in stated.boards[0].rows] == [("good", 1)]
    assert (good.name, good.state) == ("mirae-good", "finished")
    assert (refused.model, refused.state, "401" in refused.problem) == ("bad", "failed", True)
    assert (few.state, few.problem) == ("low coverage", "coverage 75% is below 95%")
    assert all("<b>such" not in text and "such" in text for text in texts)
    # What is finished is left as it is; what ended in error is asked again.
    assert asked_again == {"good": 0, "bad": 0, "few": 2}
    # A run that no server answered has left no folder.
    assert [run.state for run in again.runs] == ["finished", "waiting", "low coverage"]
    assert again.exit_code == 1


def test_where_no_model_is_reached_the_exit_code_says_so(tmp_path: Path, questions: Path) -> None:
    with serving(one={}) as servers:
        path = write_suite(tmp_path, servers)
    path.write_text(path.read_text().replace("send_seed: true", "retries: 0"))
    done = sealegs("suite", path)
    assert done.code == 3
    assert "mirae-one  failed" in done.stdout


def test_a_leaderboard_is_by_the_metric_that_the_file_names(tmp_path: Path, questions: Path) -> None:
    by_metric = SMALL.replace("benchmark: mirae,", "benchmark: mirae, metric: refusals,")
    with serving(one={}) as servers:
        [board] = outcome(write_suite(tmp_path, servers, by_metric)).boards
    assert (board.metric, board.rows[0].figure.metric) == ("refusals", "refusals")


def test_a_benchmark_by_two_metrics_has_a_board_for_each(tmp_path: Path, questions: Path) -> None:
    again = SMALL.replace("benchmark: mirae,", "benchmark: mirae, name: again, metric: refusals,")
    with serving(one={}, two={}) as servers:
        boards = outcome(write_suite(tmp_path, servers, SMALL + again)).boards
    assert [board.metric for board in boards] == ["mean_similarity", "refusals"]
    assert [sorted(row.name for row in board.rows) for board in boards] == [["one", "two"]] * 2


NEW_TYPES = """
import sys
from msgspec import Struct
import sealegs as sl
from sealegs.api.suite import execution

def structs():
    return set(execution._subclasses(Struct))

build = execution.build_types
known = set()
execution.build_types = lambda benchmarks: (build(benchmarks), known.update(structs()))
result = sl.suite(sys.argv[1], progress=False)
print(result.exit_code, sorted(cls.__qualname__ for cls in structs() - known))
"""


def test_threads_read_no_type_that_was_not_built_before(tmp_path: Path, questions: Path) -> None:
    with serving(one={}, two={}) as servers:
        rgb = "  - {benchmark: rgb, limit: 1, lang: en, options: {ability: noise, noise_rates: '0'}}\n"
        path = write_suite(tmp_path, servers, SMALL + rgb)
        assert python(NEW_TYPES, path) == "0 []\n"


def test_runs_of_one_server_take_turns(tmp_path: Path, questions: Path) -> None:
    with Loopback(record=True) as server, Loopback() as embedder:
        path = write_suite(tmp_path, {"one": server, "two": server}, SMALL.replace("EMBED", "openai:embed"))
        path.write_text(path.read_text().replace("openai:embed", f"openai:embed?base_url={embedder.url}"))
        assert outcome(path).exit_code == 0
    models = [body["model"] for body in server.bodies]
    assert models == ["one"] * 8 + ["two"] * 8


def test_all_runs_together_keep_within_the_budget(tmp_path: Path, questions: Path) -> None:
    """Each of two runs sends eight questions, and its answers to be embedded in one request."""
    with serving(one={}, two={}) as servers:
        path = write_suite(tmp_path, servers, more="budget: {requests: 11}\n")
        result = outcome(path)
        assert result.exit_code == 1
        assert all("the suite's budget of 11 requests" in run.problem for run in result.runs if run.problem)
        assert sum(server.requests for server in servers.values()) == 11
        path.write_text(path.read_text().replace("requests: 11", "requests: 18"))
        assert outcome(path).exit_code == 0
        assert sum(server.requests for server in servers.values()) == 18


@pytest.mark.full
def test_a_model_of_this_machine_and_a_server_share_the_budget(tmp_path: Path, questions: Path) -> None:
    """The first run asks eight times and has its answers embedded in one request, which is all there is."""
    folder = tiny_model(tmp_path / "tiny")
    with serving(one={}) as servers:
        more = "budget: {requests: 9}\n"
        again = SMALL.replace("benchmark: mirae,", "benchmark: mirae, name: again,").lstrip("\n")
        path = write_suite(tmp_path, servers, SMALL + again, more)
        text = re.sub(r'"openai:one", base_url: "[^"]*", args: {[^}]*}', f'"hf:{folder}"', path.read_text())
        path.write_text(text)
        first, second = outcome(path).runs
        assert servers["one"].requests == 1
    assert (first.state, second.state) == ("finished", "failed")
    assert "the suite's budget of 9 requests" in second.problem


def test_a_stop_of_one_run_ends_that_run_alone(tmp_path: Path, questions: Path) -> None:
    def stop_the_first() -> None:
        until(lambda: servers["one"].requests)
        stop(tmp_path / "runs" / "suite" / "mirae-one")

    with serving(one={"latency": 600}, two={}) as servers, Loopback() as embedder:
        path = write_suite(tmp_path, servers)
        text = path.read_text().replace(
            f"embed?base_url={servers['one'].url}", f"embed?base_url={embedder.url}"
        )
        path.write_text(text)
        stopping = threading.Thread(target=stop_the_first)
        stopping.start()
        result = outcome(path)
        stopping.join()
    assert [run.state for run in result.runs] == ["stopped", "finished"]
    states = {each.name: each.state for each in started(tmp_path / "runs" / "suite")}
    assert states == {"mirae-one": "stopped", "mirae-two": "finished"}


def test_a_run_waits_while_another_process_writes_its_folder(tmp_path: Path, questions: Path) -> None:
    root = tmp_path / "runs" / "suite"
    (root / "mirae-one").mkdir(parents=True)
    results: list[SuiteResult] = []
    with serving(one={}, two={}) as servers, ExitStack() as held:
        path = write_suite(tmp_path, dict(reversed(servers.items())))  # the first one embeds
        held.enter_context(lock.writing(root / "mirae-one"))
        running = threading.Thread(target=lambda: results.append(outcome(path)))
        running.start()
        until((root / "mirae-two" / "report.html").is_file)
        assert not servers["one"].requests
        held.close()
        running.join()
    assert [run.state for run in results[0].runs] == ["finished", "finished"]


def test_ctrl_c_stops_all_runs_which_go_side_by_side(tmp_path: Path, questions: Path) -> None:
    """No server answers, and both are asked."""
    with serving(one={"latency": 600}, two={"latency": 600}) as servers:
        path = write_suite(tmp_path, servers)
        process = subprocess.Popen(command("suite", path), stderr=subprocess.PIPE, text=True)
        until(lambda: all(server.requests for server in servers.values()))
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "0 of 2 runs are finished" in printed
    assert "the same command resumes from there" in printed
    assert "Traceback" not in printed
    assert [each.state for each in started(tmp_path / "runs" / "suite")] == ["stopped", "stopped"]


def test_one_suite_writes_a_folder_and_its_end_ends_its_runs(tmp_path: Path, questions: Path) -> None:
    with serving(one={"latency": 600}) as servers:
        path = write_suite(tmp_path, servers)
        process = subprocess.Popen(command("suite", path), stderr=subprocess.DEVNULL)
        until(lambda: servers["one"].requests)
        with pytest.raises(sl.UsageError, match="is in use by another process"):
            outcome(path)
        process.kill()
        process.wait()
        until(lambda: not started(tmp_path / "runs" / "suite")[0].active)


def test_a_run_whose_process_is_killed_costs_no_other(tmp_path: Path, questions: Path) -> None:
    """A run that loads a model is a process of its own, which here never gets an answer from its embedder."""
    started = tmp_path / "runs" / "suite" / "mirae-tiny" / "started.json"
    folder = tiny_model(tmp_path / "tiny")

    def kill() -> None:
        until(lambda: servers["one"].requests)
        os.kill(msgspec.json.decode(started.read_bytes())["pid"], signal.SIGKILL)

    with serving(one={"latency": 600}, two={"always": 401}) as servers:
        path = write_suite(tmp_path, servers)
        text = re.sub(r'"openai:one", base_url: "[^"]*"', f'"hf:{folder}", name: tiny', path.read_text())
        path.write_text(text.replace("args: {send_seed: true}, concurrency: 4", "concurrency: 4", 1))
        killer = threading.Thread(target=kill)
        killer.start()
        result = outcome(path)
        killer.join()
    assert [run.state for run in result.runs] == ["failed", "failed"]
    assert "ended by SIGKILL" in result.runs[0].problem
    started.write_text("[")  # damaged, it is no more than absent
    assert len(plan_suite(tmp_path / "suite.yaml")) == 2
    assert "401" in result.runs[1].problem
    assert result.exit_code == 1


def test_a_changed_run_is_refused_until_its_folder_is_gone(tmp_path: Path, questions: Path) -> None:
    """Settings that change nothing in what is asked may change."""
    with serving(one={}) as servers:
        path = write_suite(tmp_path, servers)
        path.write_text(path.read_text().replace("{spec:", "{name: mine, spec:", 1))
        assert "mirae-mine" in sealegs("suite", path, "--dry-run").stdout
        result = outcome(path)
        assert result.exit_code == 0
        assert [run.model for run in sl.list_runs(result.path)] == ["mine"]  # as the file calls it
        asked, root = servers["one"].requests, tmp_path / "runs" / "suite"
        (root / "mirae-mine" / "report.html").unlink()  # as a process leaves it that is killed late
        path.write_text(path.read_text() + "defaults: {concurrency: 5}\n")
        assert outcome(path).exit_code == 0
        assert (root / "mirae-mine" / "report.html").is_file()
        path.write_text(path.read_text().replace("repeats: 2", "repeats: 3"))
        done = sealegs("suite", path)
        assert (done.code, servers["one"].requests) == (2, asked)
        assert "mirae-mine had other options or data. Remove that folder" in done.stderr
        shutil.rmtree(root / "mirae-mine")
        assert outcome(path).exit_code == 0
    assert sl.load_run(root / "mirae-mine").spec.options["repeats"] == 3


def test_a_gate_makes_its_first_baseline_and_then_compares(tmp_path: Path, questions: Path) -> None:
    """Eight questions, so that there are enough groups; `--only` of a run that the baseline lacks passes."""
    content = msgspec.json.decode(questions.read_bytes())
    content["questions"] += [
        {**each, "question_id": each["question_id"] + 4, "level_1_text": f"Or: {each['level_1_text']}"}
        for each in content["questions"]
    ]
    questions.write_bytes(msgspec.json.encode(content))
    folder, base = tmp_path / "runs" / "suite", tmp_path / "base"
    with serving(one={}) as servers:
        path = write_suite(tmp_path, servers, more="gate: {baseline: base}\n")
        first = outcome(path)
        assert (first.exit_code, first.gates[0].problem) == (0, "not compared: no baseline yet in base")
        base.mkdir()
        empty = outcome(path)
        assert (empty.exit_code, empty.gates[0].problem) == (1, "not compared: no such run in base")
        asked = servers["one"].requests
        shutil.copytree(folder, base, dirs_exist_ok=True)
        (gate,) = outcome(path).gates
        assert (gate.passed, gate.problem) == (True, "")
        assert servers["one"].requests == asked  # what is finished is left as it is
        text = path.read_text()
        new = text[text.index("  - {benchmark: mirae") : text.index("gate:")]
        path.write_text(text.replace("gate:", new.replace("mirae,", "mirae, name: new,") + "gate:"))
        only = outcome(path, only="new-one")
        assert (only.exit_code, only.gates[0].problem) == (0, "not compared: no such run in base")


def test_the_dry_run_asks_nothing_and_says_what_it_costs(tmp_path: Path, questions: Path) -> None:
    with serving(one={}, two={}) as servers:
        path = write_suite(tmp_path, servers, more="defaults: {price_in: 1.0, price_out: 2.0}\n")
        plain = sealegs("suite", path, "--dry-run")
        plan = msgspec.json.decode(sealegs("suite", path, "--dry-run", "--json", "--only", "*-two").stdout)
        assert not servers["one"].requests + servers["two"].requests
    assert plain.code == 0
    assert "2 of 2 runs not finished: at most $" in plain.stdout
    (two,) = plan
    single = sl.dry_run(
        "mirae", "openai:two", data=questions, levels="1", repeats=2, embedder="openai:e", price_in=1.0,
        price_out=2.0,
    )  # fmt: skip
    assert (two["name"], two["state"], two["plan"]["usd"]) == ("mirae-two", "new", single.usd)
    assert two["plan"]["requests"] == single.requests
    assert not (tmp_path / "runs").exists()
