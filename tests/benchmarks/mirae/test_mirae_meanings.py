"""Answers grouped by meaning: two are one where a judge says that each entails the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import log
from pathlib import Path

import msgspec
import pytest

import sealegs as sl
from records import score
from scripted import Scripted
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from sealegs.benchmarks.mirae.meanings import (
    MOST_TEXTS,
    Groups,
    group_answers,
    same_meaning,
    semantic_entropy,
)
from sealegs.harness.scoring import complete
from sealegs.types import Generate, Request, Response

pytestmark = pytest.mark.slow

QUESTION = "What is the capital of France?"
PARIS = [
    "Paris.",
    "It is Paris, of course!",
    "The capital of France is Paris.",
    "That would be the city of Paris",
    "France is governed from its capital, which is called Paris.",
]
LONDON = "The capital is London."


def recording(folder: Path, *levels: Sequence[str]) -> Path:
    """A results file with the answers of each level to one question."""
    analyses = [
        {"level": number, "question_text": QUESTION, "num_responses": len(texts), "responses": list(texts)}
        for number, texts in enumerate(levels, 1)
    ]
    results = [{"question_id": 1, "domain": "FACTUAL", "level_analyses": analyses}]
    path = folder / "results.json"
    content = {"metadata": {"model": "m", "language": "English"}, "experiment_results": results}
    path.write_bytes(msgspec.json.encode(content))
    return path


def grouped(
    prompts: Sequence[tuple[str, Sequence[str]]], answer: Callable[[str, str], str]
) -> tuple[list[Groups], list[str]]:
    """The groups, and the prompts of the judge, which answers each pair of texts."""
    asked: list[str] = []

    def judge(requests: Sequence[Request]) -> list[Response]:
        contents = [
            request.prompt[0].content
            for request in requests
            if isinstance(request, Generate) and not isinstance(request.prompt, str)
        ]
        asked.extend(contents)
        return [Response(status="ok", text=answer(*pair(text))) for text in contents]

    return complete(group_answers(prompts), judge), asked


def pair(prompt: str) -> tuple[str, str]:
    first, _, second = prompt.partition("First answer:\n")[2].partition("\n\nSecond answer:\n")
    return first, second.split("\n")[0]


def entailing(forth: bool, back: bool) -> str:
    return msgspec.json.encode({"first_entails_second": forth, "second_entails_first": back}).decode()


def by_initials(first: str, second: str) -> str:
    same = first[0] == second[0]
    return entailing(same, same)


def test_each_answer_is_compared_with_the_first_of_each_group() -> None:
    texts = ["a1", "b1", "a2", "b2", "a1", "c1"]
    (groups,), asked = grouped([(QUESTION, texts)], by_initials)
    assert groups.numbers == [0, 1, 0, 1, 0, 2]
    pairs = [("a1", "b1"), ("a1", "a2"), ("a1", "b2"), ("a1", "c1"), ("b1", "b2"), ("b1", "c1")]
    assert [pair(prompt) for prompt in asked] == pairs
    assert all(prompt.count(QUESTION) == 1 for prompt in asked)
    (one_way,), _ = grouped([("", ["Paris, on the Seine", "Paris"])], lambda *_: entailing(True, False))
    assert one_way.numbers == [0, 1]


def test_sameness_does_not_depend_on_the_number_of_answers() -> None:
    assert same_meaning([0, 0, 0]) == 1
    assert same_meaning([0, 1, 2]) == 0
    assert same_meaning([0, 0, 0, 1, 1]) == pytest.approx(4 / 10)
    draws = [list(bits) for bits in product((0, 1), repeat=5)]
    assert sum(map(same_meaning, draws)) / len(draws) == pytest.approx(0.5)


def test_entropy_is_nothing_for_one_meaning_and_largest_for_all_different() -> None:
    assert semantic_entropy([0, 0, 0, 0]) == 0
    assert semantic_entropy([0, 1, 2, 3]) == pytest.approx(log(4))
    assert semantic_entropy([0, 0, 1, 1]) == pytest.approx(log(2))


def test_intervals_of_meanings_stay_within_what_is_possible() -> None:
    scores = [
        score(
            number, {"judged_meanings": count, "judged_entropy": log(count)},
            tags={"lang": "en", "level": 1}, answered=2, statuses={"ok": 2},
        )
        for number, count in enumerate([2, 2, 2, 1])
    ]  # fmt: skip
    summary = Mirae(MiraeOptions()).summarise(scores)
    assert (summary["judged_meanings"].value, summary["judged_meanings"].high) == (1.75, 2)
    assert summary["judged_entropy"].high == pytest.approx(log(2))


def test_many_answers_are_compared_as_far_as_the_bound() -> None:
    texts = [chr(200 + number) for number in range(MOST_TEXTS + 20)]
    (groups,), asked = grouped([("", texts)], by_initials)
    assert groups.numbers == list(range(MOST_TEXTS))
    assert len(asked) == MOST_TEXTS * (MOST_TEXTS - 1) / 2


def test_a_long_question_is_not_shown() -> None:
    _, [prompt] = grouped([("why " * 200, ["a", "b"])], by_initials)
    assert "why why" not in prompt


def verdict(prompt: str) -> str:
    """A judge by city; of an answer that names Rome it makes nothing."""
    first, _, second = prompt.partition("First answer:")[2].partition("Second answer:")
    if "Rome" in prompt.partition("First answer:")[2]:
        return "Hard to say."
    same = ("Paris" in first) == ("Paris" in second.partition("Answer with")[0])
    return (
        f'Well: {{"first_entails_second": {str(same).lower()}, "second_entails_first": {str(same).lower()}}}'
    )


def test_an_unread_verdict_is_not_a_score(tmp_path: Path) -> None:
    path = recording(tmp_path, PARIS, [*PARIS[:4], LONDON], [*PARIS[:1] * 4, "Rome"])
    with Scripted(verdict) as server:
        run = sl.score("mirae", path, judge=f"openai:j?base_url={server.url}", out=tmp_path / "run")
    one, two, none = (record.score for record in run.records())
    assert one.values["judged_meanings"] == 1
    assert two.values["judged_meanings"] == 2
    assert none.values["judged_meanings"] is None
    assert "meanings not judged: unparsed" in none.failures[0]
    assert none.values["mean_similarity"] is not None
    assert run.headline == run.summary["same_meaning"]
    assert run.headline.value == pytest.approx((1 + 0.6) / 2)
    assert run.verdict.startswith("80% of the pairs of answers to a prompt mean the same, says the judge")
    assert "not looked for" not in run.verdict
    figure = run.summary["judged_meanings"]
    assert (figure.value, figure.n) == (1.5, 2)
    assert figure.coverage == pytest.approx(10 / 15)
    alone = sl.score("mirae", path, out=tmp_path / "alone")
    assert alone.headline == alone.summary["mean_similarity"]
    assert alone.verdict.endswith("were not looked for: a run with a judge finds them.")
    # Four pairs at level 1, of which three appear again at level 2; London; Rome, which is asked twice.
    assert server.requests == 4 + 1 + 2
