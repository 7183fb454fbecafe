"""A run's folder is data from strangers: it opens no door, whatever it says."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from runs import run_small
from sealegs.errors import DataError, RunConflict, UsageError
from sealegs.journal.journal import Journal
from sealegs.journal.recording import Recording
from sealegs.report.export import export

pytestmark = pytest.mark.slow

KEY = "sk-canary-of-the-person"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(scope="module")
def finished(server: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small("mirae", tmp_path_factory.mktemp("finished") / "run", server).path


@pytest.fixture
def run(finished: Path, server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, after which no question was asked."""
    server.requests = 0
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return shutil.copytree(finished, tmp_path / "run")


def alter(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    spec = msgspec.json.decode((folder / "spec.json").read_bytes())
    change(spec)
    (folder / "spec.json").write_bytes(msgspec.json.encode(spec))


def forget(folder: Path, kind: str = "embed") -> None:
    """As if something had never been asked."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute(
            "DELETE FROM responses WHERE digest IN (SELECT digest FROM requests WHERE kind = ?)", (kind,)
        )


def role(folder: Path, name: str, identity: dict[str, Any]) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["models"]["embedder"] = {
            "name": "x", "spec": name, "identity": {"spec": name, **identity}
        }  # fmt: skip
        spec["options"]["embedder"] = name

    alter(folder, change)


# Whom it may ask


def test_rescoring_asks_nobody_that_is_not_named(run: Path, server: Loopback) -> None:
    forget(run)
    with pytest.raises(UsageError, match=r"8 answers that were never asked for, from the embedder") as caught:
        sl.rescore(run)
    assert server.requests == 0
    assert f"'openai:embed' at {server.url}" in str(caught.value)
    assert f"sealegs rescore {run} --model openai:embed, with" in str(caught.value)


def test_a_key_goes_nowhere_that_the_folder_says(run: Path, server: Loopback) -> None:
    forget(run)
    with Loopback(key=KEY) as stranger:
        identity = {
            "base_url": stranger.url,
            "api_key_env": "OPENAI_API_KEY",
            "send_seed": False,
            "extra_body": "",
        }
        role(run, "openai:embed", identity)
        with pytest.raises(UsageError, match="nothing is asked of a model that you do not name"):
            sl.rescore(run)
        with pytest.raises(UsageError):
            sl.rescore(run, models=["openai:embed"], base_url=server.url, model_args={"nonsense": 1})
        assert stranger.requests == 0


@pytest.mark.parametrize("spec", ["hf:", "sbert:"])
def test_no_code_is_run_and_no_path_is_opened(run: Path, tmp_path: Path, spec: str) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    marker = tmp_path / "ran"
    (evil / "code.py").write_text(f"open({str(marker)!r}, 'w')")
    (evil / "config.json").write_bytes(
        msgspec.json.encode({"auto_map": {"AutoModel": "code.Evil", "AutoConfig": "code.Evil"}})
    )
    os.mkfifo(evil / "model.safetensors")  # whoever opens it waits for ever
    forget(run)
    role(run, f"{spec}{evil}", {"trust_remote_code": True, "dtype": "auto"})
    with pytest.raises(UsageError, match="nothing is asked of a model that you do not name"):
        sl.rescore(run)
    assert not marker.exists()


def test_a_named_model_must_be_the_one_of_the_run(run: Path, server: Loopback) -> None:
    forget(run)
    alter(run, lambda spec: spec["models"]["embedder"]["identity"].update(send_seed=True))
    with pytest.raises(RunConflict, match="send_seed: True in the run, False here"):
        sl.rescore(run, models=["openai:embed"], base_url=server.url)
    assert server.requests == 0


def test_what_failed_stays_failed_where_nobody_is_named(run: Path, server: Loopback) -> None:
    with closing(sqlite3.connect(run / "journal.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE responses SET status = 'error', body = ? WHERE key IN (SELECT key FROM responses JOIN "
            "requests USING (digest) WHERE kind = 'embed' ORDER BY key LIMIT 1)",
            (b'{"status":"error","reason":"HTTP 500"}',),
        )
    assert sl.rescore(run).headline.coverage < 1
    assert server.requests == 0
    assert sl.rescore(run, models=["openai:embed"], base_url=server.url).headline.coverage == 1
    assert server.requests == 1


def test_a_file_that_an_option_names_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: hunter2")
    with Loopback() as server:
        run_small("rgb", tmp_path / "run", server, limit=1)
    alter(tmp_path / "run", lambda spec: spec["options"].update(prompts=str(secret)))
    secret.unlink()
    os.mkfifo(secret)
    assert sl.rescore(tmp_path / "run").headline.n > 0
    assert export(sl.load_run(tmp_path / "run"), "published", tmp_path / "out")


# What it may name


@pytest.mark.parametrize("name", ["spec.json", "records.jsonl", "summary.json", "journal.sqlite", "export"])
def test_no_link_is_followed(run: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (run / name).rename(elsewhere)
    (run / name).symlink_to(elsewhere)
    before = elsewhere.read_bytes() if elsewhere.is_file() else sorted(os.listdir(elsewhere))
    assert sealegs("rescore", run).code == 2
    if name not in ("journal.sqlite", "export"):
        assert sealegs("report", run, "--out", tmp_path / "page.html").code == 2
    if name == "export":
        for form in ("csv", "published"):
            assert sealegs("export", run, "--to", form).code == 2
    if name == "journal.sqlite":
        assert sealegs("run", "mirae", "--model", f"replay:{run}", "--out", tmp_path / "again").code == 2
        with pytest.raises(RunConflict, match="is a link"):
            Journal(run / name)
    assert before == (elsewhere.read_bytes() if elsewhere.is_file() else sorted(os.listdir(elsewhere)))


def test_a_link_among_the_published_files_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    (run / "export" / "harmless.json").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="link"):
        export(sl.load_run(run), "published", tmp_path / "out")


def test_names_of_models_lead_to_no_other_folder(run: Path, tmp_path: Path) -> None:
    alter(run, lambda spec: spec["models"]["model"].update(name="../../../escaped"))
    for child in (run / "export").iterdir():
        child.unlink()
    before = set(tmp_path.rglob("*"))
    (path,) = export(sl.load_run(run), "published", tmp_path / "out")
    assert path.parent == tmp_path / "out"
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "out", path}


# What shape it may have


def test_formats_of_another_version_are_refused_by_every_command(
    run: Path, questions: Path, server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    other = shutil.copytree(run, tmp_path / "copy")
    alter(run, lambda spec: spec.update(format=99))
    asking = ("run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--data", questions)
    for command in (
        ("rescore", run), ("report", run), ("compare", other, run), ("gate", other, "--baseline", run),
        ("scorecard", run), ("export", run, "--to", "csv"),
        (*asking, "--reuse", run, "--out", tmp_path / "new"),
        ("run", "mirae", "--model", f"replay:{run}", "--data", questions, "--out", tmp_path / "other"),
    ):  # fmt: skip
        assert sealegs(*command).code == 2, command
        assert "format 99" in capsys.readouterr().err
    sealegs("list", "runs", tmp_path)
    assert "broken: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON responses BEGIN DELETE FROM samples; END",
        "ALTER TABLE responses ADD COLUMN more TEXT GENERATED ALWAYS AS (zeroblob(1000000000))",
    ],
)
def test_a_journal_with_more_in_it_than_answers_is_refused(run: Path, sql: str) -> None:
    with closing(sqlite3.connect(run / "journal.sqlite")) as connection:
        connection.execute(sql)
    with pytest.raises(RunConflict, match="is not a journal of Sealegs"):
        sl.rescore(run)
    with pytest.raises(RunConflict, match="is not a journal of Sealegs"):
        Recording(run / "journal.sqlite")


def test_a_rollback_journal_is_not_obeyed(run: Path) -> None:
    (run / "journal.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
    with pytest.raises(RunConflict, match="is not written by Sealegs"):
        sl.rescore(run)


def test_a_spec_as_large_as_a_disk_is_not_read(run: Path) -> None:
    with (run / "spec.json").open("ab") as file:
        file.truncate(2**34)  # sparse: it takes no room
    with pytest.raises(DataError, match="larger than 16 MiB"):
        _ = sl.load_run(run).spec


@pytest.mark.parametrize("name", ["spec.json", "summary.json", "records.jsonl", "report.html", "marks.jsonl"])
def test_a_report_follows_no_link(run: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes((run / name).read_bytes() if (run / name).exists() else b"")
    before = elsewhere.read_bytes()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(elsewhere)
    done = sealegs("report", run)
    assert (done.code, "is a link" in done.stderr) == ((0, False) if name == "marks.jsonl" else (2, True))
    assert elsewhere.read_bytes() == before
