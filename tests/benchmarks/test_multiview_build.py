"""Building triplets: the whole pipeline against a judge that knows the truth, stopped and continued."""

from __future__ import annotations

import csv
import hashlib
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import command, evenkeel
from evenkeel import api
from evenkeel.analysis import wilson
from evenkeel.benchmarks.multiview.files import encode_triplets, read_triplets
from evenkeel.benchmarks.multiview.make.annotate import Schema
from evenkeel.benchmarks.multiview.make.build_options import BuildOptions
from evenkeel.benchmarks.multiview.make.builder import docset_name
from evenkeel.benchmarks.multiview.make.criteria import portable_spec
from evenkeel.benchmarks.multiview.make.generator import compose, compose_documents
from evenkeel.benchmarks.multiview.page import builder_notes
from evenkeel.errors import BudgetReached, DataError, UsageError
from evenkeel.make.documents import Document
from evenkeel.options import parse
from evenkeel.report.notes import notes_of
from multiview_judge import (
    CRITERION,
    DESCRIBED,
    MATH,
    STRUCTURES,
    Judge,
    adds_up,
    build,
    counts,
    dropped_in,
    manifest,
    noted_in,
    views,
    written,
)
from triplets import triplet as tool


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
        "dropped.jsonl",
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
        for name in ("schema.json", "annotations.jsonl", "triplets.jsonl", "dropped.jsonl")
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
    paths, built = api.build(
        "multiview", tmp_path / "made", triplets=12, dry_run=True, validate="openai:b", **settings
    )
    assert (
        "asked 199 times and the second judge 24, " in built.notes[0]
    )  # a schema, 150 annotations, four for each triplet
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
        with pytest.raises(BudgetReached, match="max_requests 170"):
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
            "those of an earlier ",
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


def test_a_document_within_the_limit_is_read_whole_at_every_step_but_lists(tmp_path: Path) -> None:
    tail = "and so on " * 400
    long = [Document(d.id, f"{d.text}\n{tail}{d.id}.") for d in list(MATH.values())[:30]]
    docs, out = written(tmp_path / "long.jsonl", long), tmp_path / "made"
    with Judge() as server:
        built = build(docs, out, server, triplets=1, candidates=2)
        assert server.kinds["annotate"] == 30
        assert all(any(f"Document:\n{d.text}" in prompt for prompt in server.answered) for d in long)
        (triplet,) = read_triplets(out / "triplets.jsonl")
        rated = [prompt for prompt in server.answered if f"Negative:\n{triplet.negative}" in prompt]
        ordered = [p for p in server.answered if "candidate" in p and all(t in p for t in triplet.documents)]
        assert (len(rated), len(ordered)) == (1, 2)
        anchored = f"Anchor: {triplet.anchor[:200]}"
        (lists,) = [p for p in server.answered if "Candidates for the positive" in p and anchored in p]
        # excerpts from both ends, beside the summary of the whole
        assert len(lists) < 5 * 1_300
        assert f"{triplet.anchor_id}." in lists
        assert "In short: It takes" in lists
    assert triplet.negative.endswith(f"{tail}{triplet.negative_id}.")
    assert [note for note in built.notes if "warning" in note] == [
        "warning: 30 of 30 documents are longer than --list-characters 1,000: in lists the judge saw "
        "excerpts of them, beside a summary of the whole when it chose"
    ]
    described = manifest(out)["documents"]
    assert (described["read_in_parts"], described["listed_in_excerpts"]) == (0, 30)
    assert described["longest"] == max(len(document.text) for document in long)


def test_a_document_beyond_the_limit_is_read_in_parts_to_its_end(tmp_path: Path) -> None:
    few = list(MATH.values())[:30]
    long = {d.id: f"{d.text}\n\n{'More of it. ' * 250}The end of {d.id}." for d in few}
    docs = written(tmp_path / "long.jsonl", [Document(d.id, long[d.id]) for d in few])
    out = tmp_path / "made"
    with Judge() as server:
        built = build(docs, out, server, triplets=2, candidates=2, document_characters=1_000)
        shown = list(server.answered)
    for document in few:
        assert any(f"The end of {document.id}." in prompt and "Part 4 of 4" in prompt for prompt in shown)
    assert not any(text in prompt for text in long.values() for prompt in shown)
    assert counts(out)["annotate"]["parts"] == 120
    assert {note.parts for note in noted_in(out)} == {4}
    for triplet in read_triplets(out / "triplets.jsonl"):
        anchor, positive, _ = (MATH[text.partition("\n\n")[0]].views for text in triplet.documents)
        assert anchor["arithmetic"] == positive["arithmetic"]
        assert triplet.documents == tuple(
            long[name] for name in (triplet.anchor_id, triplet.positive_id, triplet.negative_id)
        )
    assert manifest(out)["documents"]["read_in_parts"] == 30
    assert manifest(out)["options"]["document_characters"] == 1_000
    assert any("30 of 30 documents are longer than --document-characters 1,000" in n for n in built.notes)


def test_a_document_with_a_part_that_fails_is_not_annotated(tmp_path: Path) -> None:
    few = list(MATH.values())[:12]
    texts = [f"{d.text}\n\n{'More of it. ' * 120}{'[poison]' if d is few[3] else ''}" for d in few]
    docs = written(tmp_path / "x.jsonl", [Document(d.id, t) for d, t in zip(few, texts, strict=True)])
    with Judge() as server:
        built = build(
            docs, tmp_path / "made", server, triplets=1, document_characters=1_000, reflect_sample=1
        )
    assert [note.id for note in noted_in(tmp_path / "made") if note.status == "error"] == [few[3].id]
    assert any("requests that failed: 1" in failure for failure in built.failures)


# Confirmed by another


def test_a_second_judge_confirms_triplets_and_its_agreement_is_reported(docs: Path, tmp_path: Path) -> None:
    contrary = set(list(MATH)[:150:4])

    def says(kind: str, read: list[Document]) -> str | None:
        return '{"more_alike": "first"}' if kind == "order" and read[0].text in contrary else None

    out = tmp_path / "made"
    with Judge() as server:
        build(docs, out, server, triplets=40)
    with Judge(says=says) as other:
        options: dict[str, Any] = {"from_triplets": str(out / "triplets.jsonl"), "validate": "openai:other"}
        built = api.build("multiview", tmp_path / "sure", base_url=other.url, **options)[1]
        assert other.kinds == {"order": 80}
    before, after = (read_triplets(folder / "triplets.jsonl") for folder in (out, tmp_path / "sure"))
    assert {t.built_by for t in before} == {"openai:judge"}
    disputed = [t for t in before if t.anchor in contrary]
    assert 0 < len(disputed) < 40
    assert after == [
        msgspec.structs.replace(t, confirmed_by="openai:other") for t in before if t not in disputed
    ]
    lines = dropped_in(tmp_path / "sure")
    assert [line["anchor"] for line in lines] == [t.anchor for t in disputed]
    assert {line["reason"] for line in lines} == {"validation_ordered_wrong"}
    agreement = manifest(tmp_path / "sure")["validation"]
    share = (40 - len(disputed)) / 40
    assert agreement["confirmed"]["value"] == pytest.approx(share)
    assert (agreement["confirmed"]["low"], agreement["confirmed"]["high"]) == pytest.approx(wilson(share, 40))
    # One of the two answers to a disputed triplet is wrong; half of the builder's answers are "first"
    equal = 1 - len(disputed) / 80
    assert agreement["kappa"]["value"] == pytest.approx((equal - 0.5) / 0.5)
    assert agreement["kappa"]["low"] < agreement["kappa"]["value"] < agreement["kappa"]["high"] <= 1
    assert any(f"{len(disputed)} dropped, 0 left open" in note for note in built.notes)


def test_a_model_cannot_confirm_what_it_built(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot confirm them"):
        models: dict[str, Any] = {"judge": "openai:m", "validate": "vllm:org/M", **CRITERION}
        api.build("multiview", tmp_path / "x", docs=str(docs), **models)
    with Judge() as server:
        build(docs, tmp_path / "made", server, triplets=2)
        options: dict[str, Any] = {"from_triplets": str(tmp_path / "made" / "triplets.jsonl")}
        with pytest.raises(UsageError, match="the same model built 2 of these triplets"):
            api.build("multiview", tmp_path / "y", validate="openai:judge", base_url=server.url, **options)


def test_a_triplet_whose_validation_failed_is_not_confirmed_and_asked_again(tmp_path: Path) -> None:
    same = [text for text, document in MATH.items() if document.views["arithmetic"] == STRUCTURES[0]]
    other = next(text for text in MATH if text not in same)
    triplets = [
        tool(0, anchor=same[0], positive=same[1], negative=other),
        tool(1, anchor=f"[poison] {same[0]}", positive=same[2], negative=other),
    ]
    path = tmp_path / "t.jsonl"
    path.write_bytes(encode_triplets(triplets))
    options: dict[str, Any] = {"from_triplets": str(path), "validate": "openai:other"}
    out = tmp_path / "sure"
    with Judge() as server:
        built = api.build("multiview", out, base_url=server.url, **options)[1]
        assert built.failures == ["triplets whose validation failed: 1; the same command asks again"]
        assert [line["reason"] for line in dropped_in(out)] == ["validation_ordering_error"]
        assert manifest(out)["validation"]["confirmed"]["n"] == 1  # a failure is not a disagreement
        server.fixed = True
        before = server.requests
        assert api.build("multiview", out, base_url=server.url, **options)[1].failures == []
        assert server.requests == before + 2
    assert len(read_triplets(out / "triplets.jsonl")) == 2
    assert dropped_in(out) == []


def test_a_person_confirms_triplets_on_a_sheet(docs: Path, tmp_path: Path) -> None:
    labelled: dict[str, Any] = {"docs": str(docs), "label_field": "arithmetic", **CRITERION, "triplets": 20}
    api.build("multiview", tmp_path / "made", sheet=True, **labelled)
    triplets = read_triplets(tmp_path / "made" / "triplets.jsonl")
    with (tmp_path / "made" / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    firsts = [row["first"] == triplet.positive for row, triplet in zip(rows, triplets, strict=True)]
    assert 0 < sum(firsts) < 20  # in either order
    assert not {"positive", "negative", "task"} & set(rows[0])
    for number, (row, first) in enumerate(zip(rows, firsts, strict=True)):
        right, wrong = ("first", "second") if first else ("second", "first")
        row["more_alike"] = "" if number < 5 else "tie" if number == 5 else wrong if number == 6 else right
    filled = tmp_path / "filled.csv"
    with filled.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    api.build("multiview", tmp_path / "sure", validate_sheet=str(filled), **labelled)
    after = read_triplets(tmp_path / "sure" / "triplets.jsonl")
    assert [t.anchor for t in after] == [t.anchor for t in (*triplets[:5], *triplets[7:])]
    assert [t.confirmed_by for t in after] == [""] * 5 + ["person"] * 13
    validation = manifest(tmp_path / "sure")["validation"]
    assert validation["confirmed"]["value"] == pytest.approx(13 / 15)
    assert validation["dropped"] == {"validation_ordered_tie": 1, "validation_ordered_wrong": 1}
    assert (validation["open"], validation["failed"]) == (5, 0)
    assert -1 < validation["kappa"]["low"] < validation["kappa"]["value"] < validation["kappa"]["high"] < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace(",\r\n", ",maybe\r\n"), "line 2: more_alike is 'maybe'. Available: first"),
        (lambda text: text, "the column more_alike is empty in every row"),
        (lambda text: text + "0123,,,,,,first\r\n", "line 5: '0123' is not the id of one of these triplets"),
        (lambda text: text + text.splitlines(keepends=True)[1], "line 5: the id '.*' appears twice"),
        (lambda text: text.replace(",'=1+2,", ",other,"), "line 4: '.*' is not the text that the sheet had"),
    ],
)
def test_a_sheet_that_does_not_fit_is_refused_by_its_line(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    triplets = tmp_path / "t.jsonl"
    triplets.write_bytes(encode_triplets(tool(n, negative=f"=1+{n}") for n in range(3)))
    options: dict[str, Any] = {"from_triplets": str(triplets)}
    api.build("multiview", tmp_path / "made", sheet=True, **options)
    content = (tmp_path / "made" / "sheet.csv").read_bytes().decode("utf-8-sig")
    assert ",'=1+2," in content  # never a formula
    (tmp_path / "sheet.csv").write_bytes(change(content).encode())
    with pytest.raises(DataError, match=message):
        api.build("multiview", tmp_path / "sure", validate_sheet=str(tmp_path / "sheet.csv"), **options)


def test_a_judge_that_built_the_triplets_is_marked_in_a_run_of_them(docs: Path, tmp_path: Path) -> None:
    with Judge() as server:
        build(docs, tmp_path / "made", server, triplets=4)
        methods = ["judge:openai:judge", "judge:openai:judge2", "judge:openai:other+annotations", "bm25"]
        data = tmp_path / "made"
        run = api.run("multiview", data=data, method=methods, base_url=server.url, out=tmp_path / "run")
    assert run.spec.data["built_by"] == {"openai:judge": 4}
    same, summaries = [note.text for note in notes_of(run) if note.warning]
    assert same.startswith("judge:openai:judge: the same model, openai:judge, built 4 of these triplets")
    assert summaries.startswith("judge:openai:other+annotations: reads summaries that the builder")
    renamed = [
        "z=pairs:openai:judge?max_tokens=9",
        "w=rewrite:openai:judge+embed:sbert:x",
        "a=judge:x:y+annotations",
    ]
    spec = msgspec.structs.replace(
        run.spec, options={**run.spec.options, "method": renamed}, subjects=("z", "w", "a")
    )
    same, summaries = [note.text for note in builder_notes(spec)]
    assert same.startswith("z, w: the same model, openai:judge, built 4")
    assert summaries.startswith("a: reads summaries")


# Dropped triplets


def test_dropped_triplets_are_stored_with_the_reason(tmp_path: Path) -> None:
    docs = written(tmp_path / "few.jsonl", list(MATH.values())[:30])

    def says(kind: str, read: list[Document]) -> str | None:
        answers = {"rate": '{"quality": 2}', "order": '{"more_alike": "tie"}'}
        return answers.get(kind) if int(read[0].id[-1]) % 2 == (kind == "order") else None

    with Judge(says=says) as server:
        built = build(docs, tmp_path / "made", server, triplets=30)
    lines = dropped_in(tmp_path / "made")
    assert Counter(line["reason"] for line in lines) == counts(tmp_path / "made")["discarded"]
    assert {line["reason"] for line in lines} == {"quality_2", "ordered_tie"}
    assert {line["built_by"] for line in lines} == {"openai:judge"}
    assert {line.get("quality") for line in lines} == {2, 4}
    assert built.failures[-1] == "there is no triplet: those of an earlier build are unchanged"


# Without a judge


def test_labels_make_gold_triplets_without_a_judge(tmp_path: Path) -> None:
    docs = written(tmp_path / "math.jsonl", list(MATH.values()))
    settings: dict[str, Any] = {"docs": str(docs), "label_field": "arithmetic", **CRITERION}
    paths, built = api.build("multiview", tmp_path / "made", triplets=25, **settings)
    assert [path.name for path in paths] == ["triplets.jsonl", "dropped.jsonl", "manifest.json"]
    triplets = read_triplets(paths[0])
    assert len(triplets) == 25
    for triplet in triplets:
        anchor, positive, negative = views(triplet)
        assert anchor == positive != negative
    assert counts(tmp_path / "made") == {
        "unlabelled": 0, "without_partner": 0, "without_negative": 0, "kept": 25
    }  # fmt: skip
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
        assert build(docs, out, server, triplets=2, seed=1).failures[-1].startswith("there is no triplet: ")
    after = {path.name: path.read_bytes() for path in out.glob("[!j]*.json*")}
    assert [name for name in before if before[name] != after[name]] == ["manifest.json"]
    assert after.keys() == before.keys()


def test_a_language_without_a_word_splitter_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"docs": "d.jsonl", "label_field": "l", "lang": "xx", **CRITERION}
    with pytest.raises(UsageError, match="lang xx: words can be split as in en, zh, ko"):
        api.build("multiview", tmp_path / "made", **settings)


def test_labels_that_are_all_different_make_no_triplet_and_say_so(tmp_path: Path) -> None:
    docs = written(tmp_path / "math.jsonl", list(MATH.values())[:20])
    settings: dict[str, Any] = {"docs": str(docs), "label_field": "id", **CRITERION}
    built = api.build("multiview", tmp_path / "made", **settings)[1]
    assert built.failures == [
        "no label has two documents",
        "there is no triplet: those of an earlier build are unchanged",
    ]
    assert not (tmp_path / "made" / "triplets.jsonl").exists()
    assert counts(tmp_path / "made")["without_partner"] == 20


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
        ({"docs": "x.jsonl", "judge": "embedded", "label_field": ["y"]}, "leave out one of the two"),
        ({"starter": True, "judge": "embedded"}, "leave out --judge"),
        ({"starter": True, "label_field": "x"}, "leave out --label-field"),
        ({"docs": "x.jsonl", "judge": "j", "criteria": "c.yaml", "criterion": "c"}, "leave out --criterion"),
        ({"docs": "x.jsonl", "label_field": "y", "dry_run": True}, "give a --judge"),
        ({"docs": "x.jsonl", "judge": "j", "min_quality": 6}, "min_quality"),
        ({"from_triplets": "t.jsonl"}, "give --validate SPEC, --sheet or --validate-sheet"),
        ({"from_triplets": "t.jsonl", "sheet": True, "docs": "x.jsonl"}, "leave out --docs"),
        ({"docs": "x.jsonl", "set": "gsm8k", "text_field": "y"}, "leave out --text-field"),
        ({"docs": "x.jsonl", "judge": "a", "validate": "b", "validate_sheet": "s.csv"}, "one at a time"),
        ({"docs": "x.jsonl", "judge": "j", "document_characters": 10}, "document_characters"),
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


def test_several_label_fields_make_a_task_each(docs: Path, tmp_path: Path) -> None:
    criteria = tmp_path / "criteria.yaml"
    criteria.write_text("setting: Where it takes place.\n")
    fields: dict[str, Any] = {"label_field": ["arithmetic", "setting"], "criteria": str(criteria)}
    api.build("multiview", tmp_path / "made", docs=str(docs), triplets=5, **fields)
    triplets = read_triplets(tmp_path / "made" / "triplets.jsonl")
    assert Counter((t.task, t.description) for t in triplets) == {
        ("my_math__arithmetic", "Whether they have the same arithmetic."): 5,
        ("my_math__setting", "Where it takes place."): 5,
    }
    for t in triplets:
        anchor, positive, negative = (MATH[text].views[t.criterion] for text in t.documents)
        assert anchor == positive != negative
    with pytest.raises(UsageError, match="'setting' is not one of the label fields. Available: a, b"):
        api.build("multiview", tmp_path / "x", docs=str(docs), label_field=["a", "b"], criteria=str(criteria))
    with pytest.raises(UsageError, match="two of the fields would have the same task"):
        api.build("multiview", tmp_path / "x", docs=str(docs), label_field=["a b", "a_b"])
    with pytest.raises(UsageError, match="several label_field"):
        api.build("multiview", tmp_path / "x", docs=str(docs), label_field=["a", "b"], criterion="a")


def test_a_part_of_the_documents_is_drawn_by_the_seed(docs: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"docs": str(docs), "label_field": "arithmetic", **CRITERION, "max_docs": 40}
    made: list[set[str]] = []
    for seed in (0, 0, 1):
        api.build("multiview", tmp_path / f"{len(made)}", seed=seed, triplets=150, **options)
        triplets = read_triplets(tmp_path / f"{len(made)}" / "triplets.jsonl")
        made.append({name for t in triplets for name in (t.anchor_id, t.positive_id, t.negative_id)})
    assert made[0] == made[1] != made[2]
    assert len(made[0]) <= 40
    assert manifest(tmp_path / "0")["documents"]["read"] == 40


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
