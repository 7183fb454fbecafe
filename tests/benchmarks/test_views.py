"""How each benchmark shows one sample: what is in the view, where the marks are, and why a check decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

import evenkeel as ek
from evenkeel.benchmarks.mirae.benchmark import Mirae
from evenkeel.benchmarks.mirae.files import MiraeDetail, MiraeInputs
from evenkeel.benchmarks.miron.benchmark import Miron, MironOptions
from evenkeel.benchmarks.miron.files import MironInputs
from evenkeel.benchmarks.multiview.benchmark import Multiview
from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.methods import by_bm25
from evenkeel.benchmarks.multiview.scoring import measure as measure_triplet
from evenkeel.benchmarks.rgb.benchmark import Rgb
from evenkeel.benchmarks.rgb.files import RawAnswer, RgbInputs
from evenkeel.benchmarks.rgb.scoring import measure
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.registry import record_type
from evenkeel.page.view import Beside, Facts, Matrix, Text, Tokens, View
from evenkeel.types import (
    Answered,
    LogLikelihood,
    Logprobs,
    Record,
    Response,
    Sample,
    Score,
    StringLikelihood,
    StringProbability,
)

T = TypeVar("T")


def stored(cls: type[Benchmark], record: Record) -> Record:
    """As it is read from records.jsonl."""
    decoded: Record = msgspec.json.decode(msgspec.json.encode(record), type=record_type(cls))
    return decoded


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


def score_of(sample: Sample, values: dict[str, float | None], detail: Any) -> Score:
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags=sample.tags,
        values=values,
        statuses={"ok": 1},
        answered=1,
        detail=detail,
    )


# Any benchmark


class Parrot(ek.Benchmark):
    """Can it repeat a word?"""

    metrics = (ek.Metric("repeated", "Words repeated", "share", "higher"),)


def parrot(name: str, value: float | None) -> Record:
    sample = Sample(id=name, group="g", tags={}, inputs={"word": f"say {name}", "count": 3})
    answers = (Response(status="ok", text=f"<b>{name}</b>"),)
    return Record(sample=sample, answers=answers, score=score_of(sample, {"repeated": value}, None))


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
    assert not facts(Parrot.view(parrot("a", 1.0)), "the same group")


# MIRAE

TIDES = "The Moon pulls the sea."
REFUSAL = "I'm sorry, but I can't help with that."


def prompt(
    name: str, answers: Sequence[str], cosines: list[list[float]], level: int = 1, value: float | None = 0.8
) -> Record:
    sample = Sample(
        id=name,
        group="q1",
        tags={"lang": "en", "level": level},
        inputs=MiraeInputs(question_id="q1", question_text="Why tides?", samples=3, first_repeat=0),
    )
    detail = MiraeDetail(responses=list(range(len(cosines))), pairwise_similarities=cosines)
    record = Record(
        sample=sample,
        answers=tuple(Response(status="ok", text=each) for each in answers),
        score=score_of(sample, {"mean_similarity": value}, detail),
    )
    return stored(Mirae, record)


COSINES = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]]


def test_answers_are_marked_where_they_differ_from_the_nearest_one() -> None:
    record = prompt("en-1-L1", ["The Sun pulls the sea.", TIDES, REFUSAL], COSINES)
    view = Mirae.view(record)
    assert view.label == "mean cosine 0.80"
    assert marks(text(view, "Answer 1")) == ["Sun"]
    assert text(view, "Answer 1").spans[0].title == "not in answer 2"
    assert text(view, "Answer 2").heading == "Answer 2, nearest to the others"
    assert not text(view, "Answer 2").spans
    assert text(view, "Answer 3").heading == "Answer 3, refusal"
    assert text(view, "Answer 3").kind == "refusal"
    (matrix,) = blocks(view, Matrix)
    assert (matrix.labels, matrix.values) == (("1", "2", "3"), tuple(map(tuple, COSINES)))


def test_the_same_question_is_shown_across_levels() -> None:
    records = [prompt(f"en-1-L{n}", [f"answer at {n}"] * 2, [[1.0, 1.0]] * 2, n, n / 10) for n in (3, 1, 2)]
    rows = facts(Mirae.view(records[0], records), "the same question at every level")
    assert rows == {
        "en-1-L1": ("en", "1", "0.10", "answer at 1"),
        "en-1-L2": ("en", "2", "0.20", "answer at 2"),
        "en-1-L3 (this one)": ("en", "3", "0.30", "answer at 3"),
    }


# RGB

QUERY = "What is the capital of France?"


def asked(
    reply: str,
    answer: RawAnswer = "Paris",
    fake: RawAnswer | None = None,
    *,
    lang: str = "en",
    ability: str = "noise",
    query: str = QUERY,
    **inputs: Any,
) -> Record:
    sample = Sample(
        id=f"{lang}-0-{ability}",
        group=f"{lang}-0",
        tags={"lang": lang, "ability": ability, "setting": ability},
        inputs=RgbInputs(
            **{
                "dataset": lang,
                "instance": 0,
                "query": query,
                "answer": answer,
                "fake": fake,
                "docs": ("Paris is the capital.", "Rome is old.", "Lyon is the capital."),
                "kinds": ("positive", "negative", "wrong"),
                "note": "",
                "noise": 1.0 if ability == "rejection" else 0.4,
                "passages": 3,
                "correct": 0.0,
                **inputs,
            }
        ),
    )
    values, detail = measure(sample, reply)
    values = {name: None if value is None else float(value) for name, value in values.items()}
    answers = (Response(status="ok", text=reply),)
    return stored(Rgb, Record(sample=sample, answers=answers, score=score_of(sample, values, detail)))


def test_documents_are_marked_by_what_they_are() -> None:
    view = Rgb.view(asked("It is Paris.", fake="Lyon", ability="counterfactual"))
    documents = [each for each in blocks(view, Text) if each.heading.startswith("document")]
    assert [each.kind for each in documents] == ["true", "irrelevant", "false"]
    assert [each.heading for each in documents] == [
        "document 1: contains the answer",
        "document 2: irrelevant",
        "document 3: contains the false answer",
    ]
    assert [marks(each) for each in documents] == [["Paris"], [], ["Lyon"]]


def test_the_words_that_each_check_found_are_marked_and_named() -> None:
    view = Rgb.view(asked("I think that it is PARIS, in France."))
    answer = text(view, "Answer 1")
    assert marks(answer) == ["PARIS"]
    assert facts(view, "what the checks say") == {
        "published": ("right", "'Paris' is in the answer"),
        "lenient": ("right", "'Paris' is named"),
    }


def test_a_rejection_is_explained_by_its_sentence() -> None:
    reply = "France is in Europe. The documents do not mention its capital. Sorry."
    view = Rgb.view(asked(reply, ability="rejection"))
    why = facts(view, "what the checks say")["lenient"]
    assert why[0] == "right, declines: yes"
    assert "declines ('documents do not mention its capital')" in why[1]


def test_the_published_phrases_are_explained() -> None:
    reply = "There are factual errors in the documents: insufficient information."
    view = Rgb.view(asked(reply, fake="Lyon", ability="counterfactual"))
    why = facts(view, "what the checks say")["published"][1]
    assert why.startswith(
        "declines: 'insufficient information' is in the answer; reports an error: 'factual errors'"
    )
    assert "'Paris' is not in the answer" in why
    marked = [span.title for span in text(view, "Answer 1").spans]
    assert marked == ["declines", "reports an error"]


def test_the_false_answer_is_marked_as_such() -> None:
    view = Rgb.view(asked("It is Lyon.", fake="Lyon", ability="counterfactual"))
    assert marks(text(view, "Answer 1"), "wrong") == ["Lyon"]
    assert "names the false answer 'Lyon'" in facts(view, "what the checks say")["lenient"][1]


def test_the_verdict_of_a_judge_is_shown_in_its_words() -> None:
    record = asked("No idea.", ability="rejection")
    detail = replace(record.score.detail, judge="ok", evaluation="The question is not addressed.")
    values = {**record.score.values, "rejected_judge": 1.0}
    view = Rgb.view(replace(record, score=replace(record.score, detail=detail, values=values)))
    assert facts(view, "what the checks say")["judge"] == ("declines: yes", "request: ok")
    assert text(view, "the judge's verdict").body == "The question is not addressed."


def test_the_same_question_in_other_settings_is_listed() -> None:
    records = [asked("It is Paris."), asked("It is Paris.", ability="rejection")]
    assert facts(Rgb.view(records[0], records), "the same question in other settings") == {
        "en-0-noise (this one)": ("noise", "right", "right", "It is Paris."),
        "en-0-rejection": ("rejection", "right", "wrong", "It is Paris."),
    }


def test_a_question_that_was_not_answered_is_shown() -> None:
    record = asked("x")
    failed = replace(
        record,
        answers=(Response(status="error", reason="HTTP 500"),),
        score=replace(record.score, detail=None, values={"published": None, "lenient": None}),
    )
    view = Rgb.view(failed)
    assert text(view, "Answer 1").heading == "Answer 1 (error: HTTP 500)"
    assert not facts(view, "what the checks say")
    assert view._repr_html_()


# MIRON


def continued(
    name: str, prefix: str, generated: str, *, clean_id: str = "", string: bool = False, failed: bool = False
) -> Record:
    benchmark = Miron(MironOptions(string_probability=string))
    sample = Sample(
        id=name,
        group=clean_id or name,
        tags={"lang": "en", "category": "Noise" if clean_id else "Morphology"},
        inputs=MironInputs(
            prefix=prefix,
            target=" cats",
            category="Morphology",
            kind="plural",
            clean_id=clean_id,
            accepted=(" kittens",),
        ),
    )
    requests = benchmark.requests(sample)
    responses = [_response(request, generated, failed=failed) for request in requests]
    (score,) = benchmark.score([Answered(sample, tuple(requests), tuple(responses))])
    return stored(Miron, Record(sample=sample, answers=tuple(responses), score=score))


def _response(request: Any, generated: str, *, failed: bool) -> Response:
    if failed:
        return Response(status="error", reason="HTTP 500")
    if isinstance(request, StringLikelihood):
        low = math.log(0.2)
        return Response(status="ok", string=StringProbability(own=math.log(0.1), low=low, high=low))
    if isinstance(request, LogLikelihood):
        tokens = (" cat", "s") if request.continuation == " cats" else (" kittens",)
        return Response(
            status="ok", logprobs=Logprobs(tokens, (math.log(0.5), math.log(0.25))[: len(tokens)])
        )
    return Response(status="ok", text=generated)


def test_target_and_continuation_are_marked_where_they_differ() -> None:
    view = Miron.view(continued("en-1", "One cat, two", " cap"))
    assert marks(text(view, "target")) == ["ts"]
    assert marks(text(view, "generated")) == ["p"]
    assert text(view, "also right").body == "kittens"
    assert view.label == "score 60, probability 62%"


@pytest.mark.parametrize("string", [False, True])
def test_the_tokens_are_those_of_the_target_with_their_probabilities(string: bool) -> None:
    (tokens,) = blocks(Miron.view(continued("en-1", "One cat, two", " cats", string=string)), Tokens)
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


def test_an_example_without_an_answer_is_shown() -> None:
    view = Miron.view(continued("en-1", "One cat, two", "", failed=True))
    assert view.label == "not scored"
    assert text(view, "Answer 1").heading == "Answer 1 (error: HTTP 500)"
    assert not blocks(view, Tokens)


# multiview

LABELS = {
    "anchor": {"use": "cutting", "age": "old"},
    "positive": {"use": "cutting", "age": "new"},
    "negative": {"use": "writing", "age": "old"},
}


def triplet(number: int = 0, **fields: Any) -> Triplet:
    texts: dict[str, Any] = {
        "anchor": f"The old saw number {number} hangs in the workshop.",
        "positive": "A knife is for cutting bread.",
        "negative": "The old pen was found in a workshop.",
    }
    ids: dict[str, Any] = {f"{role}_id": f"{role}-{number}" for role in texts}
    return Triplet(
        task="tools__use", criterion="use", description="What it is for.", **texts, **ids, **fields
    )


def ordered(number: int = 0, **fields: Any) -> Record:
    inputs = triplet(number, labels=LABELS, **fields)
    sample = Sample(id=f"t-{number}", group=f"t-{number}", tags={"task": inputs.task}, inputs=inputs)
    (outcome,) = by_bm25([inputs])
    score = measure_triplet(sample, {"bm25": outcome}, "hard")
    return stored(Multiview, Record(sample=sample, answers=(), score=score))


def test_a_triplet_is_shown_with_the_scores_of_each_method() -> None:
    record = ordered()
    view = Multiview.view(record)
    assert view.label == "0 of 1 methods are right"
    verdict, positive, negative, difference = facts(view, "what the methods picked")["bm25"]
    assert verdict == "wrong"
    assert float(positive) - float(negative) == pytest.approx(float(difference), abs=0.02)
    assert float(difference) == pytest.approx(record.score.detail.margins["bm25"], rel=0.05)
    assert marks(text(view, "not alike")) == ["workshop"]
    assert marks(text(view, "alike")) == []


def test_a_triplet_that_could_not_be_scored_is_shown() -> None:
    record = ordered()
    view = Multiview.view(replace(record, score=replace(record.score, detail=None)))
    assert view.label == "not scored"
    assert view._repr_html_()
