"""Building triplets: the whole pipeline against a judge that knows the truth, stopped and continued."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import command, evenkeel
from evenkeel import api
from evenkeel.benchmarks.multiview.files import encode_triplets, read_triplets
from evenkeel.benchmarks.multiview.make.annotate import Schema
from evenkeel.benchmarks.multiview.make.builder import BuildOptions, docset_name, portable_spec
from evenkeel.benchmarks.multiview.make.generator import compose, compose_documents
from evenkeel.errors import BudgetReached, DataError, UsageError
from evenkeel.make.documents import Document
from evenkeel.options import parse
from multiview_judge import (
    CRITERION,
    DESCRIBED,
    MATH,
    STRUCTURES,
    Judge,
    adds_up,
    build,
    counts,
    manifest,
    noted_in,
    views,
    written,
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A part of the starter documents, without their labels."""
    return written(tmp_path / "my math.jsonl", list(MATH.values())[:150])


# The whole pipeline


def test_a_judge_that_knows_the_truth_makes_triplets_that_agree_with_it(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    with Judge() as server:
        built = build(docs, out, server)
        assert server.kinds == {"reflect": 1, "annotate": 150, "select": 12, "rate": 12, "order": 24}
    assert built.failures == []
    assert sorted(file.name for file in out.iterdir()) == [
        "annotations.jsonl",
        "journal.sqlite",
        "manifest.json",
        "schema.json",
        "triplets.jsonl",
    ]
    schema = msgspec.json.decode((out / "schema.json").read_bytes(), type=Schema)
    assert [part.name for part in schema.categories] == STRUCTURES
    noted = noted_in(out)
    assert [note.id for note in noted] == [document.id for document in list(MATH.values())[:150]]
    assert all(
        note.category == document.views["arithmetic"] and document.views["arithmetic"] in note.tags
        for note, document in zip(noted, MATH.values(), strict=False)
    )
    triplets = read_triplets(out / "triplets.jsonl")
    assert len({triplet.anchor_id for triplet in triplets}) == 12
    for triplet in triplets:
        anchor, positive, negative = views(triplet)
        assert anchor == positive != negative
        assert (triplet.task, triplet.hard_for, triplet.quality) == ("my_math__arithmetic", "bm25", 4)
        assert triplet.positive_summary == f"It takes {positive}."
        assert triplet.negative_summary == f"It takes {negative}."
    adds_up(out)


def test_anchors_with_the_same_tags_get_different_positives(docs: Path, tmp_path: Path) -> None:
    with Judge() as server:
        build(docs, tmp_path / "made", server, triplets=60, candidates=2)
    triplets = read_triplets(tmp_path / "made" / "triplets.jsonl")
    assert len({triplet.positive_id for triplet in triplets}) > 40  # ten kinds, two candidates: 20 in order


def test_the_manifest_describes_the_build_but_not_this_machine(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    out = tmp_path / "made"
    with Judge() as server:
        build(docs, out, server, seed=5, hint=["Count."], min_quality=2)
    found = manifest(out)
    assert (found["seed"], found["judge"], found["options"]["min_quality"]) == (5, "openai:judge", 2)
    assert found["documents"]["name"] == "my math.jsonl"
    assert found["documents"]["sha256"] == hashlib.sha256(docs.read_bytes()).hexdigest()
    assert found["criteria"][0]["hints"] == ["Count."]
    assert found["sha256"] == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ("schema.json", "annotations.jsonl", "triplets.jsonl")
    }
    text = (out / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert "sk-canary" not in text


def test_the_triplets_can_be_run_at_once(docs: Path, tmp_path: Path) -> None:
    with Judge() as server:
        build(docs, tmp_path / "made", server)
    run = api.run(
        "multiview", data=tmp_path / "made" / "triplets.jsonl", method=["bm25"], out=tmp_path / "run"
    )
    accuracy = [figure for name, figure in run.summary.items() if "my_math__arithmetic" in name]
    assert any(figure.n == 12 for figure in accuracy)


def test_several_criteria_share_a_triplet_file_and_keep_the_rest_apart(docs: Path, tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text(
        "arithmetic: The same calculation.\nsums: {description: The same sums., hints: [Add.]}\n"
    )
    settings = {"criterion": None, "description": None, "criteria": str(criteria), "triplets": 4}
    out = tmp_path / "made"
    with Judge() as server:
        build(docs, out, server, **settings)
    tasks = Counter(triplet.task for triplet in read_triplets(out / "triplets.jsonl"))
    assert tasks == {"my_math__arithmetic": 4, "my_math__sums": 4}
    names = {f"{kind}_{name}" for kind in ("schema", "annotations") for name in ("arithmetic", "sums")}
    assert names <= {file.stem for file in out.iterdir()}
    assert [entry["counts"]["kept"] for entry in manifest(out)["criteria"]] == [4, 4]


def test_a_dry_run_counts_what_would_be_asked_and_asks_nothing(docs: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"docs": str(docs), "judge": "openai:judge", **CRITERION}
    paths, built = api.build("multiview", tmp_path / "made", triplets=12, dry_run=True, **settings)
    assert "asked 199 times" in built.notes[0]  # a schema, 150 annotations, four for each triplet
    assert paths == []
    assert not (tmp_path / "made").exists()


# Stopped and continued


def build_command(docs: Path, out: Path, server: Judge, *more: str) -> list[str]:
    words = ["build", "multiview", "--docs", str(docs), "--judge", "openai:judge", "--base-url", server.url]
    named = [word for name, value in CRITERION.items() for word in (f"--{name}", value)]
    return command(*words, *named, "--triplets", 12, "--out", out, *more)


def journaled(out: Path) -> int:
    connection = sqlite3.connect(out / "journal.sqlite")
    count: int = connection.execute("SELECT count(*) FROM responses").fetchone()[0]
    connection.close()
    return count


def test_kill_9_half_way_then_the_same_command_asks_only_what_is_missing(docs: Path, tmp_path: Path) -> None:
    with Judge() as server:
        build(docs, tmp_path / "whole", server)
    with Judge(latency=0.05) as server:
        again = build_command(docs, tmp_path / "made", server, "--concurrency", "4")
        process = subprocess.Popen(again, stderr=subprocess.PIPE)
        while server.kinds["select"] < 6:
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        stored = journaled(tmp_path / "made")
        assert 100 < stored < 199
        assert not (tmp_path / "made" / "triplets.jsonl").exists()
        server.behaviour.latency = 0
        before = server.requests
        done = subprocess.run(again, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert server.requests - before == 199 - stored
    for name in ("schema.json", "annotations.jsonl", "triplets.jsonl", "manifest.json"):
        assert (tmp_path / "made" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_limit_stops_cleanly_and_the_same_command_goes_on(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    with Judge() as server:
        with pytest.raises(BudgetReached, match="--max-requests 170"):
            build(docs, out, server, max_requests=170)
        assert not (out / "triplets.jsonl").exists()
        assert journaled(out) == 170
        build(docs, out, server, max_requests=29)
        assert server.requests == 199
    assert counts(out)["kept"] == 12


def test_what_failed_is_reported_and_asked_again_by_the_same_command(tmp_path: Path) -> None:
    out = tmp_path / "made"
    few = list(MATH.values())[:40]
    few[7] = msgspec.structs.replace(few[7], text=f"[poison] {few[7].text}")
    docs = written(tmp_path / "few.jsonl", few)
    with Judge() as server:
        built = build(docs, out, server, triplets=4, reflect_sample=3)
        assert built.failures == [
            "few__arithmetic: requests that failed: 1; the same command asks them again"
        ]
        assert [note.id for note in noted_in(out) if note.status == "error"] == [few[7].id]
        assert (counts(out)["annotate"]["error"], counts(out)["kept"]) == (1, 4)
        server.fixed = True
        before = server.kinds["annotate"]
        assert build(docs, out, server, triplets=4, reflect_sample=3).failures == []
        assert server.kinds["annotate"] == before + 1
    assert {note.status for note in noted_in(out)} == {"ok"}


def test_a_schema_that_could_not_be_asked_for_is_asked_for_again(tmp_path: Path) -> None:
    few = list(MATH.values())[:12]
    docs = written(tmp_path / "few.jsonl", [*few, Document("p", "[poison]")])
    with Judge() as server:
        built = build(docs, tmp_path / "made", server, triplets=1)
        assert [failure.partition(": ")[2][:20] for failure in built.failures] == [
            "requests that failed",
            "the judge wrote no s",
            "only manifest.json w",
        ]
        assert not list((tmp_path / "made").glob("*.jsonl"))
        assert counts(tmp_path / "made")["reflect"]["asked"] == 1
        server.fixed = True
        server.says = lambda kind, read: None if read else DESCRIBED
        assert build(docs, tmp_path / "made", server, triplets=1).failures == []


# Documents


def test_empty_and_duplicate_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    few = list(MATH.values())[:20]
    docs = written(tmp_path / "few.jsonl", [*few, Document("e", " "), Document("d", f"  {few[0].text}")])
    with Judge() as server:
        built = build(docs, tmp_path / "made", server, triplets=2, candidates=50, reflect_sample=50)
        assert server.kinds["annotate"] == 20
    told = manifest(tmp_path / "made")["documents"]
    assert (told["read"], told["empty"], told["duplicates"]) == (20, 1, 1)
    assert any("1 documents empty" in note for note in built.notes)


def test_two_documents_make_no_triplet(tmp_path: Path) -> None:
    docs = written(tmp_path / "two.jsonl", list(MATH.values())[:2])
    with Judge() as server, pytest.raises(DataError, match="a triplet takes 3 documents; there are 2"):
        build(docs, tmp_path / "made", server)


def test_a_folder_of_texts_is_a_document_set_named_after_it(tmp_path: Path) -> None:
    folder = tmp_path / "my__texts"
    folder.mkdir()
    for document in list(MATH.values())[:20]:
        (folder / f"{document.id}.txt").write_text(document.text)
    out = tmp_path / "made"
    with Judge() as server:
        build(folder, out, server, triplets=2)
    assert {triplet.task for triplet in read_triplets(out / "triplets.jsonl")} == {"my_texts__arithmetic"}
    assert len(manifest(out)["documents"]["sha256"]) == 64


def test_long_documents_are_shortened_for_the_judge_only(tmp_path: Path) -> None:
    tail = "and so on " * 400
    long = [Document(d.id, f"{d.text}\n{tail}{d.id}") for d in list(MATH.values())[:30]]
    with Judge() as server:
        build(written(tmp_path / "long.jsonl", long), tmp_path / "made", server, triplets=1, candidates=2)
        assert not any(f"{tail}{document.id}" in prompt for prompt in server.answered for document in long)
        assert max(map(len, server.answered)) < 20 * 650 + 2_000
        assert server.kinds["annotate"] == 30
    assert len({note.category for note in noted_in(tmp_path / "made")}) > 3
    (triplet,) = read_triplets(tmp_path / "made" / "triplets.jsonl")
    assert triplet.negative.endswith(f"{tail}{triplet.negative_id}")


# Without a judge


def test_labels_make_gold_triplets_without_a_judge(tmp_path: Path) -> None:
    docs = written(tmp_path / "math.jsonl", list(MATH.values()))
    settings: dict[str, Any] = {"docs": str(docs), "label_field": "arithmetic", **CRITERION}
    paths, built = api.build("multiview", tmp_path / "made", triplets=25, **settings)
    assert [path.name for path in paths] == ["triplets.jsonl", "manifest.json"]
    triplets = read_triplets(paths[0])
    assert len(triplets) == 25
    for triplet in triplets:
        anchor, positive, negative = views(triplet)
        assert anchor == positive != negative
    assert counts(tmp_path / "made") == {"without_partner": 0, "kept": 25}
    assert (manifest(tmp_path / "made")["judge"], built.failures) == (None, [])
    easy = sum(not triplet.hard_for for triplet in triplets)
    assert built.notes == [
        f"{easy} triplets are not hard for bm25: no document of another label reads so much like the anchor"
    ] * bool(easy)


def test_a_build_that_keeps_nothing_leaves_an_earlier_one_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "made"
    docs = written(tmp_path / "few.jsonl", list(MATH.values())[:30])
    with Judge() as server:
        build(docs, out, server, triplets=2)
        before = {path.name: path.read_bytes() for path in out.glob("[!j]*.json*")}
        assert len(before["triplets.jsonl"].splitlines()) == 2
        server.says = lambda kind, read: "no" if kind == "select" else None
        assert (
            build(docs, out, server, triplets=2, seed=1).failures[-1].startswith("there is no triplet: only")
        )
    after = {path.name: path.read_bytes() for path in out.glob("[!j]*.json*")}
    assert [name for name in before if before[name] != after[name]] == ["manifest.json"]
    assert after.keys() == before.keys()


def test_a_language_without_a_word_splitter_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"docs": "d.jsonl", "label_field": "l", "lang": "xx", **CRITERION}
    with pytest.raises(UsageError, match="--lang xx: words can be split as in en, zh, ko"):
        api.build("multiview", tmp_path / "made", **settings)


def test_labels_that_are_all_different_make_no_triplet_and_say_so(tmp_path: Path) -> None:
    docs = written(tmp_path / "math.jsonl", list(MATH.values())[:20])
    settings: dict[str, Any] = {"docs": str(docs), "label_field": "id", **CRITERION}
    built = api.build("multiview", tmp_path / "made", **settings)[1]
    assert built.failures == [
        "no label has two documents; only manifest.json was written, "
        "and the files of an earlier build are unchanged"
    ]
    assert not (tmp_path / "made" / "triplets.jsonl").exists()
    assert counts(tmp_path / "made") == {"without_partner": 20, "kept": 0}


def test_the_starter_set_is_written_with_its_documents(tmp_path: Path) -> None:
    out = tmp_path / "starter"
    done = evenkeel("build", "multiview", "--starter", "--seed", 7, "--triplets", 5, "--out", out)
    assert done.code == 0, done.stderr
    assert (out / "triplets.jsonl").read_bytes() == encode_triplets(compose(7, 5))
    lines = (out / "documents_stories.jsonl").read_bytes().splitlines()
    documents = compose_documents("stories", 7)
    assert msgspec.json.decode(lines[0]) == {
        "id": documents[0].id, "text": documents[0].text, **documents[0].views
    }  # fmt: skip
    assert len(lines) == len(documents)
    assert manifest(out)["tasks"]["math__setting"] == 5


# Options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "--docs FILE, or use --starter"),
        ({"docs": "x.jsonl"}, "needs a --judge SPEC, or a --label-field"),
        ({"docs": "x.jsonl", "judge": "embedded", "label_field": "y"}, "leave out one of the two"),
        ({"starter": True, "judge": "embedded"}, "leave out --judge"),
        ({"starter": True, "label_field": "x"}, "leave out --label-field"),
        ({"docs": "x.jsonl", "judge": "j", "criteria": "c.yaml", "criterion": "c"}, "leave out --criterion"),
        ({"docs": "x.jsonl", "label_field": "y", "dry_run": True}, "give a --judge"),
        ({"docs": "x.jsonl", "judge": "j", "min_quality": 6}, "min_quality"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(BuildOptions, given, of="building")


def test_a_criterion_needs_a_name_that_is_safe(docs: Path, tmp_path: Path) -> None:
    for name, message in ((None, "needs a name"), ("../up", "cannot be the name of a criterion")):
        with pytest.raises(UsageError, match=message):
            api.build(
                "multiview", tmp_path, docs=str(docs), judge="embedded", criterion=name, description="Well."
            )


def test_labels_are_for_one_criterion(docs: Path, tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text("a: One.\nb: Two.\n")
    with pytest.raises(UsageError, match="the labels of one criterion"):
        api.build("multiview", tmp_path, docs=str(docs), label_field="setting", criteria=str(criteria))


def test_names_and_specs_are_fit_to_be_read_elsewhere() -> None:
    assert docset_name(Path("a/../My set__v2_.jsonl")) == "My_set_v2"
    assert docset_name(Path("___.csv")) == "documents"
    assert portable_spec("hf:/home/me/models/small") == "hf:small"
    assert portable_spec("openai:org/name") == "openai:org/name"
    assert portable_spec(None) is None
