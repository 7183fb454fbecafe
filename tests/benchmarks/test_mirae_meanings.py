"""Answers grouped by meaning: with a model for natural language inference, and with a judge."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import log
from pathlib import Path

import msgspec
import pytest

import evenkeel as ek
from evenkeel.benchmarks.mirae.meanings import MOST_TEXTS, Groups, Method, group_answers
from evenkeel.errors import CapabilityError, UsageError
from evenkeel.models.registry import load_model
from evenkeel.types import Entail, Generate, Request, Response
from models.tiny import ask, tiny_nli
from scripted import Scripted

QUESTION = "What is the capital of France?"
PARIS = [
    "Paris.",
    "It is Paris, of course!",
    "The capital of France is Paris.",
    "That would be the city of Paris",
    "France is governed from its capital, which is called Paris.",
]
LONDON = "The capital is London."


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_nli(tmp_path_factory.mktemp("nli"), ("paris", "london"))


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
    prompts: Sequence[tuple[str, Sequence[str]]], method: Method, answer: Callable[[Request], Response]
) -> tuple[list[Groups], list[Request]]:
    """The groups, and what was asked for them."""
    asking: Generator[Sequence[Request], Sequence[Response], list[Groups]] = group_answers(prompts, method)
    asked: list[Request] = []
    try:
        requests = next(asking)
        while True:
            asked += requests
            requests = asking.send([answer(request) for request in requests])
    except StopIteration as done:
        return done.value, asked


def by_initials(request: Request) -> Response:
    """One text entails another that begins with the same letter; `longer` entails what is a part of it."""
    assert isinstance(request, Entail)
    premise, hypothesis = (
        text.removeprefix(f"{QUESTION} ") for text in (request.premise, request.hypothesis)
    )
    entails = premise[0] == hypothesis[0]
    return Response(status="ok", labels={"entailment": 0.9 if entails else 0.2, "neutral": 0.5}, cut=False)


# A model for natural language inference


def test_five_ways_to_say_paris_are_one_meaning_and_london_is_another(nli: Path, tmp_path: Path) -> None:
    path = recording(tmp_path, PARIS, [*PARIS[:2], LONDON, PARIS[0], LONDON])
    run = ek.score("mirae", path, meanings=f"nli:sbert:{nli}", out=tmp_path / "run")
    one, two = (record.score.values for record in run.records())
    assert one["meanings@nli"] == 1
    assert one["semantic_entropy@nli"] == 0
    assert two["meanings@nli"] == 2
    assert two["semantic_entropy@nli"] == pytest.approx(-(0.6 * log(0.6) + 0.4 * log(0.4)))
    assert one["cut_pairs@nli"] == 0
    assert one["meanings"] is not None  # the cosine's groups are beside them, under their name
    assert run.summary["meanings@nli"].value == 1.5
    assert run.summary["meanings@nli/level=2"].value == 2
    assert run.spec.models["nli"]["spec"] == f"sbert:{nli}"


def test_labels_are_read_by_name_in_whatever_order(tmp_path: Path) -> None:
    for number, labels in enumerate(
        (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), ("contradiction", "entailment"))
    ):
        folder = tmp_path / str(number)
        model = load_model(f"sbert:{tiny_nli(folder, ('paris', 'london'), labels)}", device="cpu")
        same, other = ask(
            model,
            Entail(premise=PARIS[0], hypothesis=PARIS[1]),
            Entail(premise=PARIS[0], hypothesis=LONDON),
        )
        assert same.labels is not None
        assert other.labels is not None
        assert same.labels["entailment"] > 0.99
        assert other.labels["entailment"] < 0.01
        assert sum(same.labels.values()) == pytest.approx(1)
        assert len(same.labels) == len(labels)


def test_a_pair_that_is_longer_than_the_model_reads_is_reported_as_cut(nli: Path) -> None:
    model = load_model(f"sbert:{nli}", device="cpu")
    short, long = ask(
        model, Entail(premise="Paris", hypothesis="Paris"), Entail(premise="Paris " * 200, hypothesis="Paris")
    )
    assert (short.cut, long.cut) == (False, True)
    assert long.status == "ok"


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("not_entailment", "other")])
def test_a_model_without_an_entailment_label_is_refused_by_its_config(
    nli: Path, tmp_path: Path, labels: Sequence[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in nli.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = msgspec.json.decode((nli / "config.json").read_bytes())
    config["id2label"] = {str(number): label for number, label in enumerate(labels)}
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    with pytest.raises(CapabilityError, match=rf"'entailment'\. Available: {labels[0]}, {labels[1]}"):
        ek.score("mirae", recording(tmp_path, PARIS), meanings=f"nli:sbert:{folder}", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_does_not_entail_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    path = recording(tmp_path, PARIS)
    with pytest.raises(CapabilityError, match="can entail"):
        ek.score("mirae", path, meanings="nli:embedded-embedder", out=tmp_path / "run")
    for value, message in {
        "nli": "unknown method 'nli'. Available: cosine, nli:SPEC, judge:SPEC",
        "nli:nothing": "unknown model 'nothing'",
    }.items():
        with pytest.raises(UsageError, match=message):
            ek.score("mirae", path, meanings=value, out=tmp_path / "run")
    with pytest.raises(UsageError, match="nli:SPEC is there twice"):
        ek.score("mirae", path, meanings=["nli:sbert:a", "nli:sbert:b"], out=tmp_path / "run")


def test_a_server_that_is_asked_to_entail_says_that_it_cannot() -> None:
    with Scripted(lambda _: "yes") as server:
        model = load_model("openai:x", base_url=server.url)
        [response] = ask(model, Entail(premise="a", hypothesis="b"))
        model.close()
    assert response.status == "error"
    assert "cannot entail" in response.reason


# Grouping


def test_each_answer_is_compared_with_the_first_of_each_group_and_no_pair_twice() -> None:
    texts = ["a1", "b1", "a2", "b2", "a1", "c1"]
    (groups,), asked = grouped([(QUESTION, texts)], "nli", by_initials)
    assert groups.numbers == [0, 1, 0, 1, 0, 2]
    assert len(asked) == len(set(asked))
    pairs = {
        tuple(text.rpartition(" ")[2] for text in (r.premise, r.hypothesis))
        for r in asked
        if isinstance(r, Entail)
    }
    forth = {("a1", "b1"), ("a1", "a2"), ("a1", "b2"), ("a1", "c1"), ("b1", "b2"), ("b1", "c1")}
    assert pairs == forth | {(b, a) for a, b in forth}


def test_one_direction_is_not_enough() -> None:
    def answer(request: Request) -> Response:
        assert isinstance(request, Entail)
        label = "entailment" if len(request.premise) >= len(request.hypothesis) else "neutral"
        return Response(status="ok", labels={label: 1.0})

    (groups,), _ = grouped([("", ["Paris, on the Seine", "Paris"])], "nli", answer)
    assert groups.numbers == [0, 1]


def test_a_failed_comparison_leaves_that_prompt_without_groups() -> None:
    def answer(request: Request) -> Response:
        assert isinstance(request, Entail)
        return Response(status="error", reason="boom") if "bad" in request.premise else by_initials(request)

    prompts = [(QUESTION, ["x1", "bad", "x2"]), (QUESTION, ["x1", "x2"]), (QUESTION, [])]
    (failed, fine, empty), _ = grouped(prompts, "nli", answer)
    assert (failed.numbers, failed.reason) == (None, "boom")
    assert fine.numbers == [0, 0]
    assert empty.numbers == []


def test_many_answers_are_compared_as_far_as_the_bound() -> None:
    texts = [f"{chr(200 + number)}" for number in range(MOST_TEXTS + 20)]
    (groups,), asked = grouped([("", texts)], "nli", by_initials)
    assert groups.numbers == list(range(MOST_TEXTS))
    assert len(asked) == MOST_TEXTS * (MOST_TEXTS - 1)


def test_a_question_that_fills_the_model_is_left_out() -> None:
    _, asked = grouped([("why " * 200, ["a", "b"])], "nli", by_initials)
    assert {request.premise for request in asked if isinstance(request, Entail)} == {"a", "b"}


# A judge


def verdict(prompt: str) -> str:
    """A judge by city; of an answer that names Rome it makes nothing."""
    first, _, second = prompt.partition("First answer:")[2].partition("Second answer:")
    if "Rome" in prompt.partition("First answer:")[2]:
        return "Hard to say."
    same = ("Paris" in first) == ("Paris" in second.partition("Answer with")[0])
    return (
        f'Well: {{"first_entails_second": {str(same).lower()}, "second_entails_first": {str(same).lower()}}}'
    )


def test_a_judge_groups_by_its_verdicts_and_an_unread_verdict_is_not_a_score(tmp_path: Path) -> None:
    path = recording(tmp_path, PARIS, [*PARIS[:4], LONDON], [*PARIS[:1] * 4, "Rome"])
    with Scripted(verdict) as server:
        run = ek.score("mirae", path, meanings=f"judge:openai:j?base_url={server.url}", out=tmp_path / "run")
    one, two, none = (record.score for record in run.records())
    assert one.values["meanings@judge"] == 1
    assert two.values["meanings@judge"] == 2
    assert none.values["meanings@judge"] is None
    assert "meanings not compared by judge: unparsed" in none.failures[0]
    assert none.values["meanings"] is not None
    figure = run.summary["meanings@judge"]
    assert (figure.value, figure.n) == (1.5, 2)
    assert figure.coverage == pytest.approx(10 / 15)
    # Four pairs at level 1, of which three appear again at level 2; London; Rome, which is asked twice.
    assert server.requests == 4 + 1 + 2


def test_a_judge_is_shown_the_question_and_both_answers_once() -> None:
    (groups,), [request] = grouped(
        [(QUESTION, ["Paris", "London", "Paris"])],
        "judge",
        lambda _: Response(status="ok", text='{"first_entails_second": true, "second_entails_first": false}'),
    )
    assert groups.numbers == [0, 1, 0]
    assert isinstance(request, Generate)
    assert not isinstance(request.prompt, str)
    for text in (QUESTION, "Paris", "London"):
        assert request.prompt[0].content.count(text) == 1
