"""Building triplets: the whole pipeline against a judge that knows the truth, stopped and continued."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import sealegs
from multiview_judge import (
    CRITERION,
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
from sealegs import api
from sealegs.analysis.intervals import wilson
from sealegs.benchmarks.multiview.data import encode_triplets, read_triplets
from sealegs.benchmarks.multiview.make.annotate import Schema
from sealegs.benchmarks.multiview.make.builder import BuildOptions
from sealegs.benchmarks.multiview.make.generator import compose, compose_documents
from sealegs.benchmarks.multiview.page import builder_notes
from sealegs.errors import UsageError
from sealegs.make.documents import Document
from sealegs.options import parse
from sealegs.report.notes import notes_of

pytestmark = pytest.mark.slow


# The whole pipeline


def test_a_judge_that_knows_the_truth_makes_triplets_that_agree_with_it(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    out = tmp_path / "made"
    with Judge() as server:
        built = build(docs, out, server, seed=5)
        assert server.kinds == {"reflect": 1, "annotate": 150, "select": 12, "rate": 12, "order": 24}
    assert built.failures == []
    schema = msgspec.json.decode((out / "schema.json").read_bytes(), type=Schema)
    assert [part.name for part in schema.categories] == STRUCTURES
    for note, document in zip(noted_in(out), list(MATH.values())[:150], strict=True):
        assert (note.id, note.category) == (document.id, document.views["arithmetic"])
        assert note.category in note.tags
    triplets = read_triplets(out / "triplets.jsonl")
    assert len({triplet.anchor_id for triplet in triplets}) == 12
    for triplet in triplets:
        anchor, positive, negative = views(triplet)
        assert anchor == positive != negative
        assert (triplet.task, triplet.hard_for, triplet.quality) == ("my_math__arithmetic", "bm25", 4)
        assert triplet.positive_summary == f"It takes {positive}."
        assert triplet.negative_summary == f"It takes {negative}."
    adds_up(out)
    # The manifest describes the build but not this machine.
    found = manifest(out)
    assert (found["seed"], found["judge"], found["options"]["triplets"]) == (5, "openai:judge", 12)
    assert found["documents"]["name"] == "my math.jsonl"
    assert found["documents"]["sha256"] == hashlib.sha256(docs.read_bytes()).hexdigest()
    assert found["sha256"] == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in ("schema.json", "annotations.jsonl", "triplets.jsonl", "dropped.jsonl")
    }
    text = (out / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert "sk-canary" not in text


# Stopped and continued


def test_what_failed_is_reported_and_asked_again_by_the_same_command(tmp_path: Path) -> None:
    out = tmp_path / "made"
    few = list(MATH.values())[:40]
    few[7] = msgspec.structs.replace(few[7], text=f"[poison] {few[7].text}")
    docs = written(tmp_path / "few.jsonl", few)
    with Judge() as server:
        built = build(docs, out, server, triplets=4)
        assert built.failures == [
            "few__arithmetic: requests that failed: 1; the same command asks them again"
        ]
        assert [note.id for note in noted_in(out) if note.status == "error"] == [few[7].id]
        assert (counts(out)["annotate"]["error"], counts(out)["kept"]) == (1, 4)
        server.fixed = True
        before = server.kinds["annotate"]
        assert build(docs, out, server, triplets=4).failures == []
        assert server.kinds["annotate"] == before + 1
    assert {note.status for note in noted_in(out)} == {"ok"}


# Documents


def test_a_document_that_is_too_long_is_cut_for_the_judge_and_reported(tmp_path: Path) -> None:
    few = list(MATH.values())[:30]
    texts = [f"{d.text}\n{'and so on ' * 1_000 * (n % 2)}The end of {d.id}." for n, d in enumerate(few)]
    docs = written(tmp_path / "long.jsonl", [Document(d.id, t) for d, t in zip(few, texts, strict=True)])
    with Judge() as server:
        built = build(docs, tmp_path / "made", server, triplets=4)
        shown = "".join(server.answered)
    assert [f"The end of {d.id}." in shown for d in few] == [True, False] * 15
    for triplet in read_triplets(tmp_path / "made" / "triplets.jsonl"):  # the data has the documents whole
        assert all(text in texts for text in triplet.documents)
    (note,) = (note for note in built.notes if note.startswith("warning"))
    assert note.startswith("warning: 15 of 30 documents are longer than 8,000 characters")


# Confirmed by another


def test_a_second_judge_confirms_triplets_and_its_agreement_is_reported(docs: Path, tmp_path: Path) -> None:
    contrary = set(list(MATH)[:150:4])

    def says(kind: str, read: list[Document]) -> str | None:
        return '{"more_alike": "first"}' if kind == "order" and read[0].text in contrary else None

    with Judge() as server, Judge(says=says) as other:
        build(docs, tmp_path / "made", server, triplets=40)
        confirmed_by = f"openai:other?base_url={other.url}"
        built = build(docs, tmp_path / "sure", server, triplets=40, validate=confirmed_by)
        assert other.kinds == {"order": 80}
    before, after = (read_triplets(tmp_path / name / "triplets.jsonl") for name in ("made", "sure"))
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
    assert (
        f"validated by openai:other: {40 - len(disputed)} of 40 triplets confirmed; "
        f"{len(disputed)} triplets dropped ({len(disputed)} validation ordered wrong)"
    ) in built.notes


def test_a_triplet_whose_validation_failed_is_not_confirmed(tmp_path: Path) -> None:
    few = list(MATH.values())[:30]
    docs = written(tmp_path / "few.jsonl", few)
    with Judge() as server, Judge(says=lambda kind, read: "[refuses]") as other:
        validator = f"openai:other?base_url={other.url}"
        built = build(docs, tmp_path / "made", server, triplets=3, validate=validator)
    assert "triplets whose validation failed: 3; the same command asks again" in built.failures
    found = manifest(tmp_path / "made")["validation"]
    assert (found["confirmed"]["n"], found["failed"]) == (0, 3)  # a failure is not a disagreement
    assert found["dropped"] == {"validation_ordering_refused": 3}


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
    options = {**run.spec.options, "method": ["z=judge:openai:judge?max_tokens=9"]}
    (named,) = builder_notes(msgspec.structs.replace(run.spec, options=options, subjects=("z",)))
    assert named.text.startswith("z: the same model, openai:judge, built 4")


# Without a judge


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
    assert after.keys() - before.keys() == {"empty_schema.json", "empty_annotations.jsonl"}


def test_the_starter_set_is_written_with_its_documents(tmp_path: Path) -> None:
    out = tmp_path / "starter"
    done = sealegs("build", "multiview", "--seed", 7, "--triplets", 5, "--out", out)
    assert done.code == 0, done.stderr
    assert (out / "triplets.jsonl").read_bytes() == encode_triplets(compose(7, 5))
    lines = (out / "documents_stories.jsonl").read_bytes().splitlines()
    assert len(lines) == len(compose_documents("stories", 7))
    assert manifest(out)["tasks"]["math__setting"] == 5


# Options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"docs": "x.jsonl"}, "needs a --judge SPEC, or a --label-field"),
        ({"docs": "x.jsonl", "judge": "embedded", "label_field": ["y"]}, "leave out one of the two"),
        ({"judge": "embedded"}, "leave out --judge"),
        ({"docs": "x.jsonl", "judge": "j", "criteria": "c.yaml", "criterion": "c"}, "leave out --criterion"),
        ({"docs": "x.jsonl", "judge": "openai:m", "validate": "vllm:org/M"}, "cannot confirm them"),
        ({"docs": "x.jsonl", "set": "gsm8k", "text_field": "y"}, "leave out --text-field"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(BuildOptions, given, of="building")


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


def test_a_part_of_the_documents_is_drawn_by_the_seed(docs: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"docs": str(docs), "label_field": "arithmetic", **CRITERION, "max_docs": 40}
    for name, seed in (("one", 0), ("same", 0), ("other", 1)):
        api.build("multiview", tmp_path / name, seed=seed, triplets=150, **options)
    one, same, other = (
        read_triplets(tmp_path / name / "triplets.jsonl") for name in ("one", "same", "other")
    )
    assert one == same != other
    assert len({text for triplet in one for text in triplet.documents}) <= 40
