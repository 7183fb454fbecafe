"""multiview's further kinds of methods, with numbers that are known: pairs, reasons, several summaries,
queries, one word, late interaction, rerankers; and what a method can be told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.benchmarks.multiview.benchmark import MultiviewOptions
from evenkeel.benchmarks.multiview.names import forms, parse_methods
from evenkeel.errors import DataError, UsageError
from evenkeel.harness.registry import load_benchmark
from evenkeel.report.notes import failure_notes
from loopback import Loopback, embedding, shared_words
from models.tiny import tiny_model
from scripted import Scripted
from triplets import named, picks, store, store_tools, triplet


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_tools(tmp_path_factory.mktemp("tools"))


def run_method(method: str, data: Path, out: Path, server: Loopback, **options: Any) -> ek.Run:
    with server:
        return ek.run("multiview", data=data, method=[method], out=out, base_url=server.url, **options)


def margins(run: ek.Run) -> list[float]:
    return [margin for record in run.records() for margin in record.score.detail.margins.values()]


def unit(numbers: Any) -> Any:
    vector = np.array(numbers, dtype=float)
    return vector / np.linalg.norm(vector)


# BM25


def test_the_okapi_variant_is_that_of_its_formula(tmp_path: Path) -> None:
    from evenkeel.text.bm25 import Variant, bm25_scores

    texts = {"anchor": "the spade digs the garden", "positive": "a spade", "negative": "the garden gate the"}
    given = [triplet(0, **texts), triplet(1), triplet(2)]
    data = store(tmp_path / "t.jsonl", given)
    run = ek.run("multiview", data=data, method=["bm25:okapi", "bm25"], out=tmp_path / "run")
    anchors, positives, negatives = zip(*(each.documents for each in given), strict=True)
    variants: dict[str, Variant] = {"bm25:okapi": "okapi", "bm25": "lucene"}
    for name, variant in variants.items():
        good, bad = bm25_scores(anchors, positives, negatives, variant=variant)
        by_name = [record.score.detail.margins[name] for record in run.records()]
        assert by_name == pytest.approx((good - bad).tolist())
    whole = store(tmp_path / "whole.jsonl", [triplet(0, okapi=(1.0, 3.5)), triplet(1)])
    run = ek.run("multiview", data=whole, method=["bm25:okapi"], out=tmp_path / "other")
    assert margins(run) == [-2.5, 0.0]  # over the whole set, where the data holds it


# A judge of pairs


def second_text(prompt: str) -> str:
    return prompt.partition("Second text:\n")[2].partition("\n\n")[0]


def test_a_pair_judge_rates_each_pair_alone_and_may_tie(tmp_path: Path) -> None:
    kinds = ["", "equal", "mumble", "[poison]"]
    data = store(
        tmp_path / "t.jsonl", [triplet(n, anchor=f"anchor {n} {kind}") for n, kind in enumerate(kinds)]
    )

    def rule(prompt: str) -> str:
        if "mumble" in prompt:
            return '{"rating": 11}'
        return f'{{"rating": {8 if "equal" in prompt or second_text(prompt).startswith("good") else 3}}}'

    server = Scripted(rule, record=True)
    run = run_method("pairs:openai:loop", data, tmp_path / "run", server)
    assert list(picks(run, "pairs:openai:loop").values()) == [["positive"], ["tie"], ["unparsed"], [None]]
    assert margins(run) == [5.0, 0.0]
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert len(prompts) == 8 + 2  # what could not be read is asked for once more
    assert not any("good" in prompt and "bad" in prompt for prompt in prompts)
    assert all(
        body["response_format"]["json_schema"]["schema"]["required"] == ["rating"] for body in server.bodies
    )
    accuracy = run.summary[named("accuracy", "pairs:openai:loop")]
    assert accuracy.value == pytest.approx(1 / 3)
    assert accuracy.n == 3
    assert [note.text for note in failure_notes(run)] == [
        "pairs:openai:loop: requests without a usable answer: 4; most often: "
        "unparsed: Invalid enum value 11 - at `$.rating`."
    ]
    assert run.failures() == {
        "error: HTTP 400: this text is not accepted (invalid_request_error) (pairs:openai:loop)": 2,
        "unparsed: Invalid enum value 11 - at `$.rating` (pairs:openai:loop)": 2,
    }


def test_a_judge_writes_its_reasons_first_with_room_and_temperature(tools: Path, tmp_path: Path) -> None:
    def rule(prompt: str) -> str:
        first = prompt.partition("First candidate:\n")[2]
        pick = "first" if first.startswith("good") else "second"
        return json.dumps({"reasons": "so", "more_alike": pick})

    server = Scripted(rule, record=True)
    method = "judge:openai:loop?temperature=0.5&max_tokens=900+reason"
    run = run_method(method, tools, tmp_path / "run", server)
    assert run.headline.value == 1.0
    assert {(body["temperature"], body["max_tokens"]) for body in server.bodies} == {(0.5, 900)}
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reasons", "more_alike"]
    assert all("First write your reasons" in body["messages"][0]["content"] for body in server.bodies)
    assert run.spec.subjects == ("judge:openai:loop?temperature=0.5&max_tokens=900+reason",)
    (role,) = run.spec.models
    assert role == "judge:openai:loop"


# Vectors


@pytest.mark.parametrize(("pool", "pooled"), [("mean", np.mean), ("max", np.max)])
def test_several_summaries_are_pooled_over_all_pairs(
    pool: str, pooled: Callable[[Any], Any], tmp_path: Path
) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(0)])
    asked: Counter[str] = Counter()

    def rule(prompt: str) -> str:
        text = prompt.rpartition("Text:\n")[2]
        asked[text] += 1
        return f"{text.split()[0]} digs {['holes', 'earth and roots', 'sand'][asked[text] - 1]}"

    server = Scripted(rule, record=True)
    method = f"rewrite:openai:writer?summaries=3&pool={pool}+embed:openai:loop"
    run = run_method(method, data, tmp_path / "run", server)
    assert sorted(asked.values()) == [3, 3, 3]
    written = [body for body in server.bodies if body["path"].endswith("completions")]
    assert {(body["temperature"], body["max_tokens"]) for body in written} == {(0.8, 96)}
    vectors = {
        role: [unit(embedding(f"{role} digs {end}")) for end in ("holes", "earth and roots", "sand")]
        for role in ("anchor", "good", "bad")
    }
    good, bad = (
        pooled([a @ b for a, b in product(vectors["anchor"], vectors[role])]) for role in ("good", "bad")
    )
    assert margins(run) == pytest.approx([good - bad], abs=1e-6)


QUERIES = ["anchor of digging", "good of tools__use", "bad 1", "bad 1", " "]


@pytest.mark.parametrize("scorer", ["embed", "rerank"])
def test_a_document_is_the_vector_of_its_relevance_to_queries(scorer: str, tmp_path: Path) -> None:
    triplets = [triplet(number) for number in range(2)]
    data = store(tmp_path / "t.jsonl", triplets)
    server = Scripted(lambda prompt: json.dumps({"queries": QUERIES}), record=True)
    method = f"queries:openai:writer?queries=3+{scorer}:openai:loop"
    run = run_method(method, data, tmp_path / "run", server)
    (written,) = [body for body in server.bodies if body["path"].endswith("completions")]
    assert "Write 3 short search queries" in written["messages"][0]["content"]

    def relevance(query: str, document: str) -> float:
        if scorer == "rerank":
            return shared_words(query, document)
        return float(unit(embedding(query)) @ unit(embedding(document)))

    expected = []
    for each in triplets:
        anchor, good, bad = (unit([relevance(q, text) for q in QUERIES[:3]]) for text in each.documents)
        expected.append(anchor @ good - anchor @ bad)
    assert margins(run) == pytest.approx(expected, abs=1e-6)
    assert run.headline.coverage == 1.0


def test_a_writer_without_two_queries_leaves_nothing_to_order(tools: Path, tmp_path: Path) -> None:
    server = Scripted(lambda prompt: '{"queries": ["one", "one"]}')
    method = "queries:openai:writer+embed:openai:loop"
    run = run_method(method, tools, tmp_path / "run", server)
    assert set(map(tuple, picks(run, method).values())) == {(None,)}
    assert run.headline.coverage == 0.0
    (reason,) = run.failures()
    assert reason.startswith("unparsed: no queries: there are not two different queries in it")


def test_in_one_word_embeds_the_prompt_that_asks_for_it(tools: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        options: dict[str, Any] = {"method": ["embed:openai:loop+oneword"], "base_url": server.url}
        ek.run("multiview", data=tools, out=tmp_path / "run", **options)
    assert all(text.endswith("the text in one word:") for text in server.answered)
    assert any(text.startswith("Text: good 2 of tools__use\n\nWhat it is for") for text in server.answered)


# Rerankers


@pytest.mark.parametrize("like_tei", [False, True])
def test_a_rerank_server_orders_by_its_scores(like_tei: bool, tmp_path: Path) -> None:
    """Best first, by index: the order of the reply is not that of the documents."""
    texts = {"anchor": "dig deep holes", "positive": "to dig holes", "negative": "Find a saw"}
    given = [triplet(n, **{role: f"{text} {n}" for role, text in texts.items()}) for n in range(3)]
    data = store(tmp_path / "t.jsonl", given)
    server = Loopback(record=True, wants_texts=like_tei)
    with server:
        options: dict[str, Any] = {"method": ["rerank:openai:loop"], "base_url": server.url}
        run = ek.run("multiview", data=data, out=tmp_path / "run", **options)
    sent = [body for body in server.bodies if body.get("texts" if like_tei else "documents")]
    assert len(sent) == 3  # both documents of a query in one call
    expected = [
        shared_words(body["query"], t.positive) - shared_words(body["query"], t.negative)
        for t in given
        for body in sent
        if t.anchor in body["query"]
    ]
    assert margins(run) == expected
    assert {body["model"] for body in sent} == {"loop"}


def test_every_kind_runs_on_local_models(tmp_path: Path) -> None:
    """With random weights, that is: what they write follows its schema all the same."""
    pytest.importorskip("llguidance")
    lm = f"hf:{tiny_model(tmp_path / 'tiny', max_position_embeddings=2048)}"
    data = store(tmp_path / "t.jsonl", [triplet(0)])
    methods = [
        f"embed:{lm}+oneword",
        "late:embedded-embedder",
        f"rerank:{lm}",
        f"rewrite:{lm}?summaries=2&max_tokens=8+embed:embedded-embedder",
        f"pairs:{lm}",
        f"judge:{lm}",
        f"queries:{lm}?queries=2&max_tokens=60+rerank:{lm}",
    ]
    run = ek.run("multiview", data=data, method=methods, model_arg=["device=cpu"], out=tmp_path / "run")
    names = [method.name for method in parse_methods(methods)]
    assert list(run.spec.subjects) == names
    for name in names[:-1]:
        assert run.summary[named("accuracy", name)].coverage == 1.0
    assert names[0] == f"embed:{lm}+oneword"


# Servers, arguments, names


def says(verdict: str) -> Scripted:
    return Scripted(lambda prompt: f'{{"more_alike": "{verdict}"}}')


def test_two_servers_of_one_model_name_answer_each_for_its_method(tools: Path, tmp_path: Path) -> None:
    with says("first") as one, says("tie") as other:
        methods = [f"judge:openai:loop?base_url={server.url}" for server in (one, other)]
        run = ek.run("multiview", data=tools, method=methods, out=tmp_path / "run")
        assert (one.requests, other.requests) == (12, 12)
    names = [f"judge:openai:loop@{server.url.split('/')[2]}" for server in (one, other)]
    assert run.spec.subjects == tuple(names)
    assert run.summary[named("flips", names[0])].value == 1.0
    assert run.summary[named("ties", names[1])].value == 1.0
    identities = [model["identity"]["spec"] for model in run.spec.models.values()]
    assert identities == [method.removeprefix("judge:") for method in methods]
    assert {model["name"] for model in run.spec.models.values()} == {"loop"}
    assert ek.rescore(run.path).summary == run.summary


def test_a_method_named_by_its_user_and_arguments_for_all_models(tools: Path, tmp_path: Path) -> None:
    with says("first") as server:
        options: dict[str, Any] = {
            "method": ["small=judge:openai:loop?max_tokens=64", "pairs:openai:loop"],
            "model_arg": ["retries=0", f"base_url={server.url}"],
        }
        run = ek.run("multiview", data=tools, out=tmp_path / "run", **options)
    assert run.spec.subjects == ("small", "pairs:openai:loop")
    assert run.summary[named("accuracy", "small")].value == 0.5


def test_methods_come_from_a_file_and_are_stored_without_it(tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "methods.yaml"
    with says("first") as server:
        file.write_text(
            f'- bm25\n- name: strict\n  method: judge:openai:loop\n  args: {{base_url: "{server.url}", '
            "temperature: 0, max_tokens: 99}\n"
        )
        done = evenkeel("run", "multiview", "--data", tools, "--methods", file, "--out", tmp_path / "run")
        assert done.code == 0
    run = ek.load_run(tmp_path / "run")
    assert run.spec.subjects == ("bm25", "strict")
    assert "methods.yaml" not in (run.path / "spec.json").read_text()
    file.unlink()
    assert ek.rescore(run.path).summary == run.summary


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a text", "expected methods: a list, or a mapping from their names"),
        ("- bm25\n- 7\n", "line 2: expected a method: a text, or a mapping with 'method'"),
        ("- bm25\n- judgee:openai:x\n", "line 2: 'judgee:openai:x' is not a method. Did you mean 'judge'?"),
        ("- method: judge:openai:x\n  arg: {}\n", "line 1: the field 'arg' is not known"),
        ("x y: bm25\n'a:b': bm25\n", "line 2: 'a:b' is not a name"),
        (
            "- bm25\n-\n  method: judge:openai:x\n  args: {temprature: 1}\n",
            "there is no argument 'temprature'",
        ),
        ("- method: judge:openai:x\n  args: {temperature: 9}\n", "line 1: temperature=9: must be at most 2"),
        ("- method: judge:openai:x\n  args: {base_url: 'http://me:pw@h/v1'}\n", "api_key_env=NAME"),
    ],
)
def test_a_file_of_methods_is_refused_by_file_and_line(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "methods.yaml"
    file.write_text(content)
    with pytest.raises(DataError) as caught:
        load_benchmark("multiview", {"methods": str(file)})
    assert str(caught.value).startswith(str(file))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("judge:openai:x?base_url=http://me:secret@host/v1", "may not hold a user, password, key"),
        ("judge:openai:x?base_url=http://host/v1?key=abc", "may not hold a user, password, key"),
        ('judge:openai:x?extra_body={"k":"sk-AbCd1234EfGh5678"}', "extra_body may not hold"),
        ("judge:openai:x?api_key_env=sk-AbCd1234EfGh5678", "api_key_env may not hold"),
        ("judge:openai:x?temperature", "write its arguments as ?KEY=VALUE&KEY=VALUE"),
        ("judge:openai:x?temperature=hot", "temperature=hot: expected a number"),
        ("judge:openai:x?temperature=1&temperature=0", "'temperature' is given twice"),
        ("judge:openai:x?summaries=2", "no argument 'summaries'"),
        ("rewrite:openai:x?summaries=0+embed:sbert:y", "summaries=0: must be at least 1"),
        ("rewrite:openai:x+embed:openai:y?pool=max", "no argument 'pool'"),
    ],
)
def test_wrong_arguments_of_a_method_are_refused(method: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        load_benchmark("multiview", {"method": [method]})


def test_a_password_in_a_method_is_not_repeated() -> None:
    for method in (
        "judge:openai:x?base_url=http://me:secret@h+zzz",
        "judge:openai:x?base_url=http://me:secret@h",
    ):
        with pytest.raises(UsageError) as caught:
            load_benchmark("multiview", {"method": [method]})
        assert "secret" not in str(caught.value)


def test_an_argument_that_no_model_has_is_refused() -> None:
    with pytest.raises(UsageError, match="model_args dtype: no model of these methods has such an option"):
        load_benchmark("multiview", {"method": ["judge:openai:x"], "model_arg": ["dtype=float32"]})


def test_every_form_in_the_help_is_a_method() -> None:
    for form in forms():
        parse_methods([form.replace("SPEC", "openai:x").replace("LM", "openai:y")])
    assert MultiviewOptions().method == ("bm25",)


def test_a_server_that_refuses_temperature_is_asked_without_and_a_note_says_so(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1)."
    with Scripted(lambda prompt: '{"more_alike": "first"}', refuses=message, record=True) as server:
        given = ("--data", tools, "--method", "judge:openai:loop", "--base-url", server.url)
        done = evenkeel("run", "multiview", *given, "--concurrency", "1", "--out", tmp_path / "run")
        assert done.code == 0
    assert server.requests == 12 + 1  # learnt once
    assert ["temperature" in body for body in server.bodies] == [True] + [False] * 12
    shown = " ".join(capsys.readouterr().out.split())
    assert "judge:openai:loop: The server refused the field 'temperature' (Unsupported value" in shown
