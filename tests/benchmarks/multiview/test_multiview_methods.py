"""multiview's methods one by one, with numbers that are known: embedders, rewriters, rerankers, judges."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sealegs as sl
from commandline import sealegs
from loopback import Loopback, embedding, shared_words
from scripted import Scripted
from sealegs.benchmarks.multiview.added import values_of
from sealegs.benchmarks.multiview.methods import Outcome, order
from sealegs.benchmarks.multiview.names import forms, parse_methods
from sealegs.benchmarks.multiview.prompts import family_template, judge_prompt, prompts
from sealegs.errors import UsageError
from sealegs.harness.registry import load_benchmark
from sealegs.types import Logprobs, Response
from triplets import named, picks, store, triplet

pytestmark = pytest.mark.slow

JUDGE = "judge:openai:loop"


# Methods by name


def test_a_model_argument_goes_to_every_model_that_has_it() -> None:
    local, served = parse_methods(["small=judge:hf:x", "judge:openai:y"], ["device=cpu"])
    assert (local.name, local.spec, served.spec) == ("small", "hf:x?device=cpu", "openai:y")
    with pytest.raises(ValueError, match="no model of these methods has such an option"):
        parse_methods(["judge:openai:y"], ["device=cpu"])


def test_every_form_in_the_help_is_a_method() -> None:
    for form in forms():
        text = form.replace("SPEC", "openai:x").replace("LM", "openai:y")
        assert [method.name for method in parse_methods([text])] == [text]


@pytest.mark.parametrize(
    "texts",
    [
        (), ("bm25:x",), ("embed:",), ("embed:x+logprobs",), ("late:x",), ("rewrite:x",),
        ("rewrite:+embed:x",), ("rewrite:x+judge:y",), ("judge:x+annotations+annotations",),
        ("judge:x+",), ("bm25", "bm25"),
    ],
)  # fmt: skip
def test_what_is_not_a_method_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="method"):
        load_benchmark("multiview", {"method": list(texts)})


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("judge:openai:x?base_url=http://me:secret@host/v1", "base_url may not hold a user or a password"),
        ("judge:openai:x?base_url=http://me:secret@h+zzz", "is not a method"),
        ("judge:openai:x?api_key_env=sk-secret1234EfGh5678", "api_key_env may not hold"),
        ("judge:openai:x?temprature=1", "there is no argument 'temprature'"),
    ],
)
def test_wrong_arguments_of_a_method_are_refused(method: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)) as caught:
        load_benchmark("multiview", {"method": [method]})
    assert "secret" not in str(caught.value)


# Instructions and summaries


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        ("openai:intfloat/e5-mistral-7b-instruct", "Instruct: I\nQuery: T"),
        ("openai:Qwen/Qwen3-Embedding-0.6B", "Instruct: I\nQuery:T"),
        ("sbert:Alibaba-NLP/gte-Qwen2-7B-instruct", "Instruct: I\nQuery: T"),
        ("sbert:/home/e5/qwen/base5", "I: T"),
    ],
)
def test_an_instruction_is_written_as_its_family_wants_it(spec: str, written: str) -> None:
    assert (
        family_template(prompts().instruct, spec).replace("{INSTRUCTION}", "I").replace("{TEXT}", "T")
        == written
    )


def test_the_criterion_goes_into_the_embedders_instruction(tmp_path: Path) -> None:
    given = [triplet(0), triplet(1, instruction="Find one alike.", anchor="a {TEXT} {0}")]
    data = store(tmp_path / "t.jsonl", given)
    method = "embed:openai:e5+instruct"
    with Loopback() as server:
        run = sl.run("multiview", data=data, out=tmp_path / "run", base_url=server.url, method=[method])
    texts = [
        [f"Instruct: {t.instruction or t.description}\nQuery: {text}" for text in t.documents] for t in given
    ]
    assert set(server.answered) == {text for three in texts for text in three}
    for three, record in zip(texts, run.records(), strict=True):
        anchor, good, bad = (np.array(embedding(text)) / np.linalg.norm(embedding(text)) for text in three)
        margin = record.score.detail.margins[method]
        assert margin == pytest.approx(float(anchor @ good - anchor @ bad), abs=1e-6)


def test_summaries_under_the_criterion_are_written_and_embedded(tools: Path, tmp_path: Path) -> None:
    """The writer sees what counts and the embedder compares what it wrote; one document it refuses."""

    def summary(prompt: str) -> str:
        text = prompt.rpartition("Text:\n")[2]
        if text.startswith("bad 5"):
            return " "
        return f"it is for {'sawing' if text.startswith('bad') else 'digging'}"

    method = "rewrite:openai:writer+embed:openai:loop"
    with Scripted(summary, record=True) as server:
        run = sl.run("multiview", data=tools, method=[method], out=tmp_path / "run", base_url=server.url)
    written = [body for body in server.bodies if body["path"].endswith("completions")]
    assert len(written) == 18
    assert {body["model"] for body in written} == {"writer"}
    prompts = [body["messages"][0]["content"] for body in written]
    assert sum("Criterion: age\nWhat it is for, in tools__age." in prompt for prompt in prompts) == 6
    sent = [text for body in server.bodies if body["path"].endswith("embeddings") for text in body["input"]]
    assert sorted(sent) == ["it is for digging", "it is for sawing"]
    assert list(picks(run, method).values()) == [["positive"]] * 5 + [[None]]
    figure = run.summary["accuracy"]
    assert (figure.value, figure.n) == (1.0, 5)
    assert figure.coverage == pytest.approx(5 / 6)
    assert run.failures() == {f"unparsed: empty answer ({method})": 1}


# Rerankers


def test_a_rerank_server_orders_by_its_scores(tmp_path: Path) -> None:
    """Best first, by index: the order of the reply is not that of the documents."""
    texts = {"anchor": "dig deep holes", "positive": "to dig holes", "negative": "Find a saw"}
    given = [triplet(n, **{role: f"{text} {n}" for role, text in texts.items()}) for n in range(3)]
    data = store(tmp_path / "t.jsonl", given)
    with Loopback(record=True) as server:
        options: dict[str, Any] = {"method": ["rerank:openai:loop"], "base_url": server.url}
        run = sl.run("multiview", data=data, out=tmp_path / "run", **options)
    queries = [body["query"] for body in server.bodies if body.get("documents")]
    assert len(queries) == 3  # both documents of a query in one call
    asked = "Find a text that is alike to the following under this criterion: What it is for, in tools__use."
    assert all(query.startswith(f"{asked}\n\ndig deep holes") for query in queries)
    expected = [
        shared_words(query, t.positive) - shared_words(query, t.negative)
        for t in given
        for query in queries
        if t.anchor in query
    ]
    assert [record.score.detail.margins["rerank:openai:loop"] for record in run.records()] == expected


# Judges


def candidates(prompt: str) -> tuple[str, str]:
    first, _, second = prompt.partition("First candidate:\n")[2].partition("\n\nSecond candidate:\n")
    return first, second.partition("\n\n")[0]


def truthful(prompt: str) -> str:
    first, _ = candidates(prompt)
    return f'{{"more_alike": "{"first" if first.startswith("good") else "second"}"}}'


def ask_judge(
    data: Path, out: Path, rule: Callable[[str], str], method: str = JUDGE
) -> tuple[sl.Run, Scripted]:
    with Scripted(rule, record=True) as server:
        return sl.run("multiview", data=data, method=[method], out=out, base_url=server.url), server


def test_a_judge_of_the_first_position_is_right_half_the_time(tools: Path, tmp_path: Path) -> None:
    run, _ = ask_judge(tools, tmp_path / "run", lambda prompt: 'It is {"more_alike": "first"}.')
    assert set(map(tuple, picks(run, JUDGE).values())) == {("positive", "negative")}
    figure, flips = run.headline, run.summary[named("flips", JUDGE)]
    assert (figure.value, figure.n) == (0.5, 6)
    assert (flips.value, flips.n) == (1.0, 6)
    results = json.loads((run.path / "export" / "results.json").read_text())
    assert results["tasks"]["tools__age"][JUDGE] == {"correct": 1, "ties": 0, "total": 2, "accuracy": 0.5}


def test_verdicts_that_cannot_be_read_are_no_wrong_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = ["", "", "tie", "mumble", "half", "[poison]"]
    data = store(
        tmp_path / "t.jsonl", [triplet(n, anchor=f"anchor {n} {kind}") for n, kind in enumerate(kinds)]
    )

    def rule(prompt: str) -> str:
        if "tie\n" in prompt:
            return '{"more_alike": "tie"}'
        if "mumble" in prompt:
            return '{"more_alike": "both"}'
        if "half" in prompt and candidates(prompt)[0].startswith("bad"):
            return "Well."
        return truthful(prompt)

    with Scripted(rule, record=True) as server:
        given = ("--data", data, "--method", JUDGE, "--base-url", server.url, "--out", tmp_path / "run")
        assert sealegs("run", "multiview", *given).code == 1
    assert len(server.bodies) == 12 + 3  # what could not be read is asked for once more
    run = sl.load_run(tmp_path / "run")
    assert list(picks(run, JUDGE).values()) == [
        ["positive", "positive"],
        ["positive", "positive"],
        ["tie", "tie"],
        [None, None],
        ["positive", None],
        [None, None],
    ]
    figures = {name: run.summary[named(name, JUDGE)] for name in ("accuracy", "ties", "flips")}
    assert {name: (figure.value, figure.n) for name, figure in figures.items()} == {
        "accuracy": (2 / 3, 3), "ties": (1 / 3, 3), "flips": (0.0, 2)  # only where it picked twice
    }  # fmt: skip
    assert run.headline.coverage == 6 / 12
    assert run.headline.statuses == {"ok": 7, "unparsed": 3, "error": 2}
    results = json.loads((run.path / "export" / "results.json").read_text())
    assert results["methods"][JUDGE] == {"correct": 2, "ties": 1, "total": 3, "accuracy": 2 / 3}
    shown = " ".join(capsys.readouterr().err.split())
    assert "coverage 50% is under the floor of 95%" in shown
    assert f"unparsed: there is no whole JSON object in it ({JUDGE}) ×1" in shown


def test_a_judge_without_a_readable_verdict_has_no_figure(tools: Path, tmp_path: Path) -> None:
    with Scripted(lambda prompt: "Well.") as server:
        methods = ["bm25", JUDGE]
        run = sl.run("multiview", data=tools, method=methods, base_url=server.url, out=tmp_path / "run")
    for metric in ("accuracy", "ties", "minus_chance", "minus_first"):
        figure = run.summary[named(metric, JUDGE)]
        assert (figure.value, figure.low, figure.p, figure.coverage) == (None, None, None, 0.0)


class OneOrder(Scripted):
    """Refuses one triplet with the positive last, and answers it with the positive first."""

    def _complaint(self, path: str, body: Any) -> str | None:
        first, _ = candidates(body.messages[0].content)
        return "not this way round" if first.startswith("bad 3") else super()._complaint(path, body)


def test_a_triplet_that_failed_in_one_order_is_left_out(tools: Path, tmp_path: Path) -> None:
    with OneOrder(lambda prompt: '{"more_alike": "first"}') as server:
        run = sl.run("multiview", data=tools, method=["bm25", JUDGE], base_url=server.url, out=tmp_path / "a")
    with Scripted(truthful) as server:
        right = sl.run(
            "multiview", data=tools, method=[JUDGE, "bm25"], base_url=server.url, out=tmp_path / "b"
        )
    assert picks(run, JUDGE)["tools__use-0004"] == ["positive", None]
    judged = run.summary[named("accuracy", JUDGE)]
    assert (judged.value, judged.n, judged.coverage) == (0.5, 5, 10 / 12)
    assert judged.statuses == {"ok": 11, "error": 1}
    by_judge, by_words = sl.compare(right, run).differences
    assert (by_judge.value_a, by_judge.value_b, by_judge.n) == (1.0, 0.5, 5)
    assert (by_words.difference, by_words.n) == (0, 6)
    with pytest.raises(UsageError, match="of several methods.* accuracy@bm25"):
        sl.gate(run, right, metrics=["accuracy"])


def test_annotations_are_shown_to_the_judge_or_missed_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"anchor_summary": "digs", "positive_summary": "digs too", "negative_summary": "saws"}
    data = store(tmp_path / "t.jsonl", [triplet(n, **told) for n in range(2)])
    method = f"{JUDGE}+annotations"
    run, server = ask_judge(data, tmp_path / "run", truthful, method)
    assert run.headline.value == 1.0
    shown = "in a few words.\nAnchor: digs\nFirst candidate: {}\nSecond candidate: {}\n"
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    for prompt in prompts:
        order = ("digs too", "saws") if candidates(prompt)[0].startswith("good") else ("saws", "digs too")
        assert shown.format(*order) in prompt
    given = ("--method", JUDGE, "--method", method, "--base-url", "http://127.0.0.1:9/v1")
    half = store(tmp_path / "half.jsonl", [triplet(0, **{**told, "negative_summary": ""})])
    assert sealegs("run", "multiview", "--data", half, *given, "--out", tmp_path / "no").code == 2
    assert f"{method}: the triplets of tools__use carry no annotations" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def says(verdict: str) -> Scripted:
    return Scripted(lambda prompt: f'{{"more_alike": "{verdict}"}}')


def test_two_servers_of_one_model_name_answer_each_for_its_method(tools: Path, tmp_path: Path) -> None:
    with says("first") as one, says("tie") as other:
        methods = [f"judge:openai:loop?base_url={server.url}" for server in (one, other)]
        run = sl.run("multiview", data=tools, method=methods, out=tmp_path / "run")
        assert (one.requests, other.requests) == (12, 12)
    names = [f"judge:openai:loop@{server.url.split('/')[2]}" for server in (one, other)]
    assert run.spec.subjects == tuple(names)
    assert run.summary[named("flips", names[0])].value == 1.0
    assert run.summary[named("ties", names[1])].value == 1.0
    identities = [model["identity"]["spec"] for model in run.spec.models.values()]
    assert identities == [method.removeprefix("judge:") for method in methods]
    assert {model["name"] for model in run.spec.models.values()} == {"loop"}
    assert sl.rescore(run.path).summary == run.summary


# Log-likelihoods of letters


def answer(status: Any = "ok", **found: Any) -> Response:
    return Response(status=status, **found)


def ordered(method: str, responses: list[Response]) -> Outcome:
    """How one triplet is ordered from the answers to all that is asked of it at once."""
    asking = order(parse_methods([method])[0], [triplet(0)])
    assert len(next(asking)) == len(responses)
    with pytest.raises(StopIteration) as done:
        asking.send(responses)
    (outcome,) = done.value.value
    assert isinstance(outcome, Outcome)
    return outcome


def letters(*logprobs: float) -> list[Response]:
    return [answer(logprobs=Logprobs(values=(value,), tokens=("x",))) for value in logprobs]


def test_logprobs_are_summed_over_both_orders() -> None:
    """A and B with the positive first, then last: a bias to A cancels in the margin."""
    biased = ordered("judge:hf:x+logprobs", letters(-1.0, -4.0, -1.0, -2.0))
    assert (biased.picks, biased.orders, biased.margin) == (("positive",), ("positive", "negative"), 2.0)
    assert biased.flips == 1.0
    sure = ordered("judge:hf:x+logprobs", letters(-3.0, -1.0, -1.0, -2.0))
    assert (sure.picks, sure.margin, sure.flips) == (("negative",), -3.0, 0.0)
    plain, noted = parse_methods(["judge:hf:x+logprobs", "judge:hf:x+annotations+logprobs"])
    summaries = {"anchor_summary": "one", "positive_summary": "two", "negative_summary": "three"}
    for method in (plain, noted):
        for swapped, second in ((False, "three"), (True, "two")):
            prompt = judge_prompt(method, triplet(0, **summaries), swapped=swapped)
            assert prompt.endswith("the anchor is more alike to")
            assert (f"Second candidate: {second}" in prompt) == (method is noted)


def test_a_score_that_is_no_number_is_a_failure_and_no_wrong_answer() -> None:
    nan = float("nan")
    for outcome in (
        ordered("judge:hf:x+logprobs", letters(-1.0, nan, -1.0, -2.0)),
        ordered("rerank:sbert:x", [answer(rank=1.0), answer(rank=nan)]),
        ordered("rerank:sbert:x", [answer(rank=1.0), answer("error")]),
    ):
        assert (outcome.picks, outcome.margin, outcome.ends) == ((None,), None, ("error",))
    assert ordered("rerank:sbert:x", [answer(rank=1.0), answer("refused")]).ends == ("refused",)


def test_the_share_of_documents_that_the_embedder_cut_is_told() -> None:
    vectors = [np.array(values, "<f4").tobytes() for values in ([1, 0], [1, 1], [0, 1])]
    outcome = ordered("embed:sbert:x", [answer(vector=v, cut=n == 2) for n, v in enumerate(vectors)])
    assert outcome.picks == ("positive",)
    assert values_of(outcome)["cut_by_model"] == pytest.approx(1 / 3)
