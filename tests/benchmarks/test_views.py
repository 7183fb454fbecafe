"""How each benchmark shows one sample: what is in the view, where the marks are, and why a check decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

import sealegs as sl
from records import score
from sealegs.benchmarks.mirae.benchmark import Mirae
from sealegs.benchmarks.mirae.data import MiraeDetail, MiraeInputs
from sealegs.benchmarks.miron.benchmark import Miron, MironOptions
from sealegs.benchmarks.miron.data import MironInputs
from sealegs.benchmarks.multiview.added import measure as measure_triplet
from sealegs.benchmarks.multiview.benchmark import Multiview
from sealegs.benchmarks.multiview.methods import by_bm25
from sealegs.benchmarks.rgb.added import measure
from sealegs.benchmarks.rgb.benchmark import Rgb
from sealegs.benchmarks.rgb.data import RgbInputs
from sealegs.harness.benchmark import Benchmark, record_type
from sealegs.page.view import Beside, Facts, Matrix, Text, Tokens, View
from sealegs.types import Answered, LogLikelihood, Logprobs, Record, Response, Sample
from triplets import triplet

T = TypeVar("T")


def blocks(view: View, kind: type[T]) -> list[T]:
    inner = [
        each for block in view.blocks for each in (block.columns if isinstance(block, Beside) else [block])
    ]
    return [block for block in inner if isinstance(block, kind)]


def text(view: View, heading: str) -> Text:
    return next(each for each in blocks(view, Text) if each.heading.startswith(heading))


def facts(view: View, heading: str) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for each in blocks(view, Facts) if each.heading == heading for row in each.rows}


def marks(block: Text, kind: str = "") -> list[str]:
    return [block.body[span.start : span.end] for span in block.spans if span.kind == (kind or span.kind)]


def recorded(
    cls: type[Benchmark], sample: Sample, answers: Sequence[str], values: dict[str, Any], detail: Any = None
) -> Record:
    """As it is read from records.jsonl."""
    scored = score(sample.id, values, group=sample.group, tags=sample.tags, detail=detail)
    responses = tuple(Response(status="ok", text=each) for each in answers)
    return stored(cls, Record(sample=sample, answers=responses, score=scored))


def stored(cls: type[Benchmark], record: Record) -> Record:
    decoded: Record = msgspec.json.decode(msgspec.json.encode(record), type=record_type(cls))
    return decoded


def failed(record: Record) -> Record:
    """The same sample where the request failed."""
    score = replace(record.score, detail=None, values=dict.fromkeys(record.score.values))
    return replace(record, answers=(Response(status="error", reason="HTTP 500"),), score=score)


# Any benchmark


class Parrot(sl.Benchmark):
    """Can it repeat a word?"""

    metrics = (sl.Metric("repeated", "Words repeated", "share", "higher"),)


def parrot(name: str, value: float | None) -> Record:
    sample = Sample(id=name, group="g", tags={}, inputs={"word": f"say {name}", "count": 3})
    return recorded(Parrot, sample, [f"<b>{name}</b>"], {"repeated": value})


def test_a_benchmark_without_a_view_shows_texts_answers_and_values() -> None:
    view = Parrot.view(parrot("a", 1.0), [parrot("a", 1.0), parrot("b", None)])
    assert (view.title, view.label) == ("a · say a", "100%")
    assert text(view, "word").body == "say a"
    assert text(view, "Answer 1").body == "<b>a</b>"
    assert facts(view, "all values") == {"Words repeated": ("100%",)}
    assert facts(view, "the same group") == {
        "a (this one)": ("100%", "<b>a</b>"),
        "b": ("not scored", "<b>b</b>"),
    }
    assert "&lt;b&gt;" in view._repr_html_()


# MIRAE

COSINES = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]]


def prompt(level: int, answers: Sequence[str], value: float) -> Record:
    inputs = MiraeInputs(question_id="q1", question_text="Why tides?", samples=3, first_repeat=0)
    sample = Sample(id=f"en-1-L{level}", group="q1", tags={"lang": "en", "level": level}, inputs=inputs)
    detail = MiraeDetail(responses=[0, 1, 2], pairwise_similarities=COSINES)
    return recorded(Mirae, sample, answers, {"mean_similarity": value}, detail)


def test_a_question_with_a_known_answer_shows_which_answers_give_it() -> None:
    record = prompt(1, ["The Moon.", "The Sun.", "The Moon."], 0.8)
    inputs = replace(record.sample.inputs, expected=(("Moon", "lunar"),))
    detail = replace(record.score.detail, right={0: ["Moon"], 2: ["Moon"]})
    record = replace(
        record, sample=replace(record.sample, inputs=inputs), score=replace(record.score, detail=detail)
    )
    view = Mirae.view(record)
    assert text(view, "expected answer").body == "Moon or lunar"
    assert text(view, "Answer 1").heading == "Answer 1, right (Moon)"
    assert text(view, "Answer 2").heading.startswith("Answer 2, not right")
    assert inputs.row({"level": 2}) == (inputs.question_text, "Moon", "level 2")
    assert inputs.targets() == ["Moon", "lunar"]


def test_answers_are_marked_where_they_differ_from_the_nearest_one() -> None:
    answers = ["The Sun pulls the sea.", "The Moon pulls the sea.", "I'm sorry, but I can't help with that."]
    records = [prompt(2, ["Well."] * 3, 0.2), prompt(1, answers, 0.8)]
    view = Mirae.view(records[1], records)
    assert view.label == "mean cosine 0.80"
    assert marks(text(view, "Answer 1")) == ["Sun"]
    assert text(view, "Answer 1").spans[0].title == "not in answer 2"
    assert text(view, "Answer 2").heading == "Answer 2, nearest to the others"
    assert not text(view, "Answer 2").spans
    assert text(view, "Answer 3").heading == "Answer 3, refusal"
    (matrix,) = blocks(view, Matrix)
    assert (matrix.labels, matrix.values) == (("1", "2", "3"), tuple(map(tuple, COSINES)))
    levels = facts(view, "the same question at every level")
    assert list(levels) == ["en-1-L1 (this one)", "en-1-L2"]
    assert levels["en-1-L2"] == ("en", "2", "0.20", "Well.")


# RGB


def asked(reply: str, ability: str = "noise", fake: str | None = None) -> Record:
    sample = Sample(
        id=f"en-0-{ability}",
        group="en-0",
        tags={"lang": "en", "ability": ability, "setting": ability},
        inputs=RgbInputs(
            dataset="en",
            instance=0,
            query="What is the capital of France?",
            answer="Paris",
            fake=fake,
            docs=("Paris is the capital.", "Rome is old.", "Lyon is the capital."),
            kinds=("positive", "negative", "wrong"),
            note="",
            noise=1.0 if ability == "rejection" else 0.4,
            passages=3,
            correct=0.0,
        ),
    )
    values, detail = measure(sample, Response(status="ok", text=reply))
    numbers = {name: None if value is None else float(value) for name, value in values.items()}
    return recorded(Rgb, sample, [reply], numbers, detail)


def test_documents_and_the_false_answer_are_marked_by_what_they_are() -> None:
    view = Rgb.view(asked("It is Lyon.", "counterfactual", "Lyon"))
    documents = [each for each in blocks(view, Text) if each.heading.startswith("document")]
    assert [(each.kind, marks(each)) for each in documents] == [
        ("true", ["Paris"]),
        ("irrelevant", []),
        ("false", ["Lyon"]),
    ]
    assert marks(text(view, "Answer 1"), "wrong") == ["Lyon"]
    assert "names the false answer 'Lyon'" in facts(view, "what the checks say")["lenient"][1]


@pytest.mark.parametrize(
    ("reply", "ability", "marked", "published", "lenient"),
    [
        ("It is PARIS.", "noise", ["PARIS"], "'Paris' is in the answer", "'Paris' is named"),
        (
            "Well. The documents do not mention its capital. Sorry.", "rejection", [],
            "'Paris' is not in the answer", "declines ('documents do not mention its capital')",
        ),
        (
            "There are factual errors: insufficient information.", "counterfactual",
            ["factual errors", "insufficient information"],
            "declines: 'insufficient information' is in the answer; reports an error: 'factual errors'",
            "reports an error",
        ),
    ],
)  # fmt: skip
def test_each_check_says_what_it_decided_by(
    reply: str, ability: str, marked: list[str], published: str, lenient: str
) -> None:
    view = Rgb.view(asked(reply, ability, "Lyon" if ability == "counterfactual" else None))
    says = facts(view, "what the checks say")
    assert published in says["published"][1]
    assert lenient in says["lenient"][1]
    assert set(marked) <= set(marks(text(view, "Answer 1")))


def test_the_verdict_of_a_judge_is_shown_in_its_words() -> None:
    record = asked("No idea.", "rejection")
    detail = replace(record.score.detail, judge="ok", evaluation="The question is not addressed.")
    values = {**record.score.values, "rejected_judge": 1.0}
    judged = replace(record, score=replace(record.score, detail=detail, values=values))
    view = Rgb.view(judged, [asked("It is Paris."), judged])
    assert facts(view, "what the checks say")["judge"] == ("declines: yes", "request: ok")
    assert text(view, "the judge's verdict").body == "The question is not addressed."
    others = facts(view, "the same question in other settings")
    assert others["en-0-noise"] == ("noise", "right", "right", "It is Paris.")


# MIRON


def continued(name: str, prefix: str, generated: str, *, clean_id: str = "") -> Record:
    benchmark = Miron(MironOptions())
    inputs = MironInputs(
        prefix=prefix, target=" cats", category="Morphology", kind="plural", clean_id=clean_id,
        accepted=(" kittens",),
    )  # fmt: skip
    sample = Sample(id=name, group=clean_id or name, tags={"lang": "en", "category": "Noise"}, inputs=inputs)
    requests = benchmark.requests(sample)
    responses = tuple(_response(request, generated) for request in requests)
    (score,) = benchmark.score([Answered(sample, tuple(requests), responses)])
    return stored(Miron, Record(sample=sample, answers=responses, score=score))


def _response(request: Any, generated: str) -> Response:
    if not isinstance(request, LogLikelihood):
        return Response(status="ok", text=generated)
    tokens = (" cat", "s") if request.continuation == " cats" else (" kittens",)
    return Response(status="ok", logprobs=Logprobs(tokens, (math.log(0.5), math.log(0.25))[: len(tokens)]))


def test_target_and_continuation_are_marked_where_they_differ() -> None:
    view = Miron.view(continued("en-1", "One cat, two", " cap"))
    assert marks(text(view, "target")) == ["ts"]
    assert marks(text(view, "Answer 1")) == ["p"]
    assert text(view, "also right").body == "kittens"
    assert view.label == "score 60.0, probability 62%"
    (tokens,) = blocks(view, Tokens)
    assert tokens.tokens == (" cat", "s")
    assert tokens.probabilities == pytest.approx((0.5, 0.25))


def test_the_clean_version_is_beside_the_one_with_typos() -> None:
    clean = continued("en-1", "One cat, two", " cats")
    noisy = continued("en-2", "One caat, two", " dogs", clean_id="en-1")
    for record in (clean, noisy):
        view = Miron.view(record, [clean, noisy])
        assert marks(text(view, "with typos: en-2"), "edited") == ["a"]
        assert text(view, "clean: en-1").body == "One cat, two"
        rows = facts(view, "the clean version and those with typos")
        assert {name.partition(" ")[0] for name in rows} == {"en-1", "en-2"}


# multiview


def ordered() -> Record:
    inputs = triplet(
        0, anchor="The old saw hangs in the workshop.", positive="A knife is for cutting bread.",
        negative="The old pen was found in a workshop.",
    )  # fmt: skip
    sample = Sample(id="t", group="t", tags={"task": inputs.task}, inputs=inputs)
    (outcome,) = by_bm25([inputs])
    score = measure_triplet(sample, {"bm25": outcome}, "hard", {})
    return stored(Multiview, Record(sample=sample, answers=(), score=score))


def test_a_triplet_is_shown_with_the_scores_of_each_method() -> None:
    record = ordered()
    view = Multiview.view(record)
    assert view.label == "0 of 1 methods are right"
    verdict, positive, negative, difference = facts(view, "what the methods picked")["bm25"]
    assert verdict == "wrong"
    assert float(positive) - float(negative) == pytest.approx(float(difference), abs=0.02)
    assert float(difference) == pytest.approx(record.score.detail.margins["bm25"], rel=0.05)
    assert "workshop" in marks(text(view, "not alike"))
    assert marks(text(view, "alike")) == []


# Failures


def test_a_sample_without_an_answer_is_shown_without_a_score() -> None:
    records: dict[type[Benchmark], Record] = {
        Mirae: prompt(1, ["a", "b", "c"], 0.8),
        Rgb: asked("x"),
        Miron: continued("en-1", "One cat, two", ""),
    }
    for benchmark, record in records.items():
        view = benchmark.view(failed(record))
        assert view.label in ("not scored", "noise")  # RGB shows the setting
        assert not facts(view, "what the checks say")
        assert text(view, "Answer 1").heading == "Answer 1 (error: HTTP 500)"
        assert view._repr_html_()
    triplet_view = Multiview.view(failed(ordered()))
    assert triplet_view.label == "not scored"
    assert triplet_view._repr_html_()
