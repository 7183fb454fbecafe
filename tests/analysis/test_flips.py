"""The samples on which two runs differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import sealegs as sl
from records import record, store
from sealegs.benchmarks.miron.data import MironDetail, MironInputs
from sealegs.benchmarks.rgb.data import RgbDetail, RgbInputs
from sealegs.errors import UsageError
from sealegs.page.view import Beside, Block, Facts, Text, View
from sealegs.report.samples.flips import compare_sample
from sealegs.types import Logprobs, Record, Response
from stored import store_run


def test_the_largest_change_comes_first(tmp_path: Path) -> None:
    old = store_run(tmp_path / "old", {"mean_similarity": np.array([[0.5], [0.5], [0.5], [np.nan]])})
    new = store_run(tmp_path / "new", {"mean_similarity": np.array([[0.6], [0.1], [0.5], [0.5]])})
    changes = sl.flips(old, new)
    samples = [each.sample for each in changes]
    assert samples == ["en-1-L0", "en-0-L0", "en-2-L0"]  # the fourth has no value in both
    assert [each.difference for each in changes] == pytest.approx([-0.4, 0.1, 0.0])
    assert not any(each.flipped for each in changes)  # these values are not verdicts
    with pytest.raises(UsageError, match="no value 'nothing'. Available: mean_similarity"):
        sl.flips(old, new, "nothing")


def test_a_verdict_that_changed_is_flipped(tmp_path: Path) -> None:
    old = store_run(tmp_path / "old", {"refused": np.array([[0.0], [1.0], [1.0], [0.5]])})
    new = store_run(tmp_path / "new", {"refused": np.array([[1.0], [1.0], [0.0], [1.0]])})
    changes = sorted(sl.flips(old, new, "refused"), key=lambda each: each.sample)
    assert [each.flipped for each in changes] == [True, False, True, False]


@pytest.mark.parametrize(
    ("benchmark", "names", "headline"),
    [
        ("rgb", ["published", "lenient", "macro_lenient"], "macro_lenient"),
        ("multiview", ["built_against_bm25", "accuracy", "accuracy@bm25"], "accuracy"),
        ("unknown", ["b", "a"], "b"),
    ],
)
def test_the_headline_is_compared_by_default(
    benchmark: str, names: list[str], headline: str, tmp_path: Path
) -> None:
    runs = []
    for number, folder in enumerate(("old", "new")):
        values = {name: float(number and name == headline) for name in names}
        runs.append(store(tmp_path / folder, [record(0, values=dict(values))], benchmark))
    assert runs[0].samples().values[0] == headline
    assert [each.difference for each in sl.flips(runs[0], runs[1])] == [1.0]


# One sample in both runs


def question(reply: str, status: str = "ok") -> Record:
    inputs = RgbInputs(
        dataset="en", instance=0, query="Which city?", answer="Paris", fake="Lyon", noise=0.5, passages=2,
        correct=0.0, docs=("Paris is the capital.", "Rome is old."), kinds=("positive", "negative"), note="",
    )  # fmt: skip
    right = float("Paris" in reply)
    asked = record(
        0, text=reply, inputs=inputs, status=status,
        tags={"lang": "en", "ability": "noise", "setting": "noise"},
        values={"published": right, "lenient": right},
    )  # fmt: skip
    detail = RgbDetail((int(right),), 0, "words" if right else "not found")
    return replace(asked, score=replace(asked.score, detail=detail))


def headings(view: View) -> list[str]:
    return [block.heading for block in view.blocks]


def block(view: View, heading: str) -> Block:
    (block,) = [each for each in view.blocks if each.heading == heading]
    return block


def test_what_was_asked_is_shown_once_and_answers_side_by_side(tmp_path: Path) -> None:
    old = store(tmp_path / "old", [question("It is Paris.")], "rgb")
    new = store(tmp_path / "new", [question("It is Rome.", "truncated")], "rgb")
    view = compare_sample(old, new, "s0")
    shown_once = headings(view)
    assert shown_once[0] == "question"
    assert {"what the checks say (old)", "what the checks say (new)"} <= set(shown_once)
    assert len([heading for heading in shown_once if heading.startswith("document 1")]) == 1
    answer, values = block(view, "Answer 1"), block(view, "values")
    assert isinstance(answer, Beside)
    shown = [
        (each.heading, [each.body[span.start : span.end] for span in each.spans])
        for each in answer.columns
        if isinstance(each, Text)
    ]
    assert shown == [("old", ["Paris"]), ("new (cut off)", ["Rome"])]
    assert isinstance(values, Facts)
    assert ("right by the published check, of all prompts", "100%", "0%") in values.rows
    assert view._repr_html_()


def test_an_answer_that_is_the_same_is_shown_once(tmp_path: Path) -> None:
    runs = [store(tmp_path / name, [question("It is Paris.")], "rgb") for name in ("old", "new")]
    answer = block(compare_sample(runs[0], runs[1], "s0"), "Answer 1")
    assert isinstance(answer, Text)
    assert (answer.body, answer.note) == ("It is Paris.", "The same in both runs.")
    with pytest.raises(UsageError, match="has no sample 's9'"):
        compare_sample(runs[0], runs[1], "s9")


def continuation(generated: str | None) -> Record:
    inputs = MironInputs(prefix="One cat, two", target=" cats", category="Morphology", kind="", clean_id="")
    example = record(0, inputs=inputs, tags={"lang": "en", "category": "Morphology"})
    answers = (
        Response(status="ok", logprobs=Logprobs((" cats",), (-1.0,))),
        Response(status="ok", text=generated) if generated else Response(status="error", reason="HTTP 500"),
    )
    score = replace(example.score, detail=MironDetail(generated=generated, tokens=(" cats",)))
    return replace(example, answers=answers, score=score)


def test_a_log_likelihood_is_no_empty_answer(tmp_path: Path) -> None:
    old, new, failed = (
        store(tmp_path / name, [continuation(text)], "miron")
        for name, text in (("old", " cat"), ("new", " dogs"), ("failed", None))
    )
    view = compare_sample(old, new, "s0")
    assert headings(view)[:4] == ["prefix", "target", "Answer 1", "tokens of the target"]
    target, generated = block(view, "target"), block(view, "Answer 1")
    assert isinstance(target, Text)
    assert target.spans == ()  # what is marked in it differs
    assert isinstance(generated, Beside)
    assert [each.body for each in generated.columns if isinstance(each, Text)] == [" cat", " dogs"]
    answers = block(compare_sample(old, failed, "s0"), "Answer 1")
    assert isinstance(answers, Beside)
    assert [each.heading for each in answers.columns] == ["old", "failed (error: HTTP 500)"]
