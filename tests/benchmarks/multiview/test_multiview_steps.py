"""The steps of building triplets with judges that misbehave: counted, discarded by reason, not fatal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from multiview_judge import MATH, REFUSES, SCHEME, Judge, adds_up, build, counts, noted_in, views, written
from sealegs.benchmarks.multiview.data import read_triplets
from sealegs.make.documents import Document

pytestmark = pytest.mark.slow


# Judges that misbehave


def test_malformed_and_refused_answers_are_counted_at_every_step(docs: Path, tmp_path: Path) -> None:
    turns: Counter[str] = Counter()

    def unruly(kind: str, read: list[Document]) -> str | None:
        number = int(read[0].id.partition("-")[2])
        if kind == "reflect":
            turns[kind] += 1
            return {1: "Well now.", 2: "Well then.", 3: REFUSES}.get(turns[kind])
        return {0: "{not JSON", 1: REFUSES}.get(number % 8) if kind != "annotate" or number % 3 == 0 else None

    out = tmp_path / "made"
    with Judge(says=unruly) as server:
        built = build(docs, out, server, triplets=30)
    found = counts(out)
    assert {name: found["reflect"][name] for name in ("asked", "unparsed", "refused")} == {
        "asked": 3,
        "unparsed": 1,
        "refused": 1,
    }
    statuses = Counter(note.status for note in noted_in(out))
    assert found["annotate"]["unparsed"] == statuses["unparsed"] == 6
    assert found["annotate"]["refused"] == statuses["refused"] == 6
    assert found["annotate"]["annotated"] == statuses["ok"] == 138
    assert found["select"]["unparsed"] > 0
    assert found["select"]["refused"] > 0
    assert built.failures == []
    adds_up(out)
    bad = {note.id for note in noted_in(out) if note.status != "ok"}
    for triplet in read_triplets(out / "triplets.jsonl"):
        assert not bad & {triplet.anchor_id, triplet.positive_id, triplet.negative_id}


@pytest.mark.parametrize(
    ("kind", "answer", "reason"),
    [
        ("rate", '{"quality": 2}', "quality_2"),
        ("rate", REFUSES, "rating_refused"),
        ("order", '{"more_alike": "first"}', "ordered_wrong"),
        ("order", '{"more_alike": "tie"}', "ordered_tie"),
        ("order", "Hard to say.", "ordering_unparsed"),
    ],
)
def test_what_does_not_pass_the_check_is_discarded_by_reason(
    tmp_path: Path, kind: str, answer: str, reason: str
) -> None:
    docs = written(tmp_path / "few.jsonl", list(MATH.values())[:30])

    def says(asked: str, read: list[Document]) -> str | None:
        # Every other anchor meets with it; the rest go by the truth.
        return answer if asked == kind and int(read[0].id[-1]) % 2 else None

    out = tmp_path / "made"
    with Judge(says=says) as server:
        built = build(docs, out, server, triplets=30)
    found = counts(out)
    assert found["discarded"] == {reason: sum(found["discarded"].values())}
    assert found["discarded"][reason] > 0
    assert found["kept"] == len(read_triplets(out / "triplets.jsonl")) > 0
    assert all(int(triplet.anchor_id[-1]) % 2 == 0 for triplet in read_triplets(out / "triplets.jsonl"))
    assert any("instead of 30: every anchor was tried" in note for note in built.notes)
    adds_up(out)


@pytest.mark.parametrize(
    ("positive", "negative", "reason"),
    [
        ("P1", "None.", "abstained"),
        ("N1", "P1", "not_a_candidate"),
    ],
)
def test_what_is_not_picked_is_counted_and_a_build_without_triplets_fails(
    tmp_path: Path, positive: str, negative: str, reason: str
) -> None:
    docs = written(tmp_path / "few.jsonl", list(MATH.values())[:12])
    answer = msgspec.json.encode({"positive": positive, "negative": negative}).decode()
    out = tmp_path / "made"
    with Judge(says=lambda kind, read: answer if kind == "select" else None) as server:
        built = build(docs, out, server)
    select = counts(out)["select"]
    assert select[reason] == select["proposed"] == 12
    failure, nothing = built.failures
    assert failure == "few__arithmetic: no triplet was kept; manifest.json has the reasons"
    assert nothing.startswith("there is no triplet: ")
    assert {path.name for path in out.glob("*.jsonl")} == {"empty_annotations.jsonl"}
    assert b"categories" in (out / "empty_schema.json").read_bytes()


def test_a_judge_that_writes_no_schema_is_given_up_on_with_a_way_out(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    with Judge(says=lambda kind, read: '{"categories": [], "tags": [{"name": " "}]}') as server:
        built = build(docs, out, server)
        assert server.kinds == {"reflect": 6}  # three samples, each answer sent back once
        assert any("neither categories nor tags" in prompt for prompt in server.answered)
    assert built.failures[:-1] == [
        "my_math__arithmetic: the judge wrote no schema that can be read; try another --judge or --seed"
    ]
    assert counts(out)["reflect"]["unparsed"] == 3
    assert not (out / "schema.json").exists()


def test_a_schema_without_tags_goes_by_its_categories(docs: Path, tmp_path: Path) -> None:
    bare = msgspec.json.encode({**SCHEME, "tags": []}).decode()
    with Judge(says=lambda kind, read: bare if kind == "reflect" else None) as server:
        build(docs, tmp_path / "made", server)
    triplets = read_triplets(tmp_path / "made" / "triplets.jsonl")
    assert len(triplets) == 12
    assert all(len(set(views(triplet)[:2])) == 1 for triplet in triplets)
