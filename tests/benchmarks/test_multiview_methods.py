"""multiview's methods one by one: instructed embedders, rewriters, rerankers and judges."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.analysis.gate import gate
from evenkeel.benchmarks.multiview.methods import instruct_template, parse_methods
from evenkeel.benchmarks.multiview.page import blocks
from evenkeel.errors import UsageError
from evenkeel.harness.registry import load_benchmark
from loopback import Loopback, embedding
from scripted import Scripted
from triplets import interval, named, picks, store, store_tools, triplet

JUDGE = "judge:openai:loop"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_tools(tmp_path_factory.mktemp("tools"))


# Methods by name


@pytest.mark.parametrize(
    ("text", "kind", "spec", "writer", "options"),
    [
        ("bm25", "bm25", "", "", ""),
        ("embed:sbert:/a/b", "embed", "sbert:/a/b", "", ""),
        ("embed:openai:e5+instruct", "embed", "openai:e5", "", "instruct"),
        ("rerank:sbert:x", "rerank", "sbert:x", "", ""),
        ("rewrite:openai:lm+embed:sbert:x", "rewrite", "sbert:x", "openai:lm", ""),
        ("judge:embedded", "judge", "embedded", "", ""),
        ("judge:openai:lm+annotations", "judge", "openai:lm", "", "annotations"),
        ("judge:openai:lm+logprobs", "judge", "openai:lm", "", "logprobs"),
        ("judge:openai:lm+annotations+logprobs", "judge", "openai:lm", "", "annotations logprobs"),
    ],
)
def test_a_method_is_taken_apart(text: str, kind: str, spec: str, writer: str, options: str) -> None:
    (method,) = parse_methods([text])
    assert (method.name, method.kind, method.spec, method.writer) == (text, kind, spec, writer)
    assert method.options == frozenset(options.split())


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("",),
        ("bm26",),
        ("bm25:x",),
        ("bm25:",),
        ("bm25+instruct",),
        ("embed",),
        ("embed:",),
        ("embed:x+logprobs",),
        ("rerank:x+instruct",),
        ("rewrite:x",),
        ("rewrite:x+embed:",),
        ("rewrite:+embed:x",),
        ("rewrite:x+judge:y",),
        ("judge:x+instruct",),
        ("judge:x+annotations+annotations",),
        ("judge:x+",),
        ("bm25", "bm25"),
    ],
)
def test_what_is_no_method_is_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="--method"):
        parse_methods(texts)
    with pytest.raises(UsageError, match="method"):
        load_benchmark("multiview", {"method": list(texts)})


def test_methods_share_a_model_where_they_do_the_same_with_it() -> None:
    methods = ["embed:sbert:A", "embed:sbert:A+instruct", "rewrite:openai:B+embed:sbert:A", "bm25"]
    methods += ["judge:openai:B", "judge:openai:B+annotations", "judge:openai:B+logprobs", "rerank:sbert:A"]
    loaded = load_benchmark("multiview", {"method": methods})
    assert loaded.helpers == {
        "embed:sbert:A": "sbert:A",
        "rewrite:openai:B": "openai:B",
        "judge:openai:B": "openai:B",
        "rerank:sbert:A": "sbert:A",
    }
    assert loaded.roles == {
        "embed:sbert:A": {"embed"},
        "rewrite:openai:B": {"generate"},
        "judge:openai:B": {"generate", "loglikelihood"},
        "rerank:sbert:A": {"rank"},
    }


# Instructions and summaries


@pytest.mark.parametrize(
    ("spec", "written"),
    [
        ("openai:intfloat/e5-mistral-7b-instruct", "Instruct: I\nQuery: T"),
        ("sbert:models/multilingual-e5-large-instruct/", "Instruct: I\nQuery: T"),
        ("openai:Qwen/Qwen3-Embedding-0.6B", "Instruct: I\nQuery:T"),
        ("sbert:Alibaba-NLP/gte-Qwen2-7B-instruct", "Instruct: I\nQuery: T"),
        ("sbert:hkunlp/instructor-large", "I: T"),
        ("sbert:GritLM/GritLM-7B", "<|user|>\nI\n<|embed|>\nT"),
        ("embedded-embedder", "I: T"),
        ("sbert:/home/e5/qwen/base5", "I: T"),
    ],
)
def test_an_instruction_is_written_as_the_models_family_wants_it(spec: str, written: str) -> None:
    assert instruct_template(spec).replace("{INSTRUCTION}", "I").replace("{TEXT}", "T") == written


@pytest.mark.parametrize(
    ("spec", "template", "written"),
    [
        ("openai:e5", "", "Instruct: {0}\nQuery: {1}"),
        ("openai:loop", "", "{0}: {1}"),
        ("openai:e5", "<{TEXT}> for {INSTRUCTION}", "<{1}> for {0}"),
        ("openai:e5", "query: {TEXT}", "query: {1}"),
    ],
)
def test_the_criterion_goes_into_the_embedders_instruction(
    spec: str, template: str, written: str, tmp_path: Path
) -> None:
    given = [
        triplet(0),
        triplet(1, instruction="Find one alike.", anchor="a {TEXT} {0}"),
        triplet(2, task="tools__age"),
    ]
    data = store(tmp_path / "t.jsonl", given)
    method = f"embed:{spec}+instruct"
    options: dict[str, Any] = {"method": [method], "instruct_template": template}
    with Loopback() as server:
        run = ek.run("multiview", data=data, out=tmp_path / "run", base_url=server.url, **options)
    asked = [t.instruction or t.description for t in given]
    texts = [[written.format(i, text) for text in t.documents] for i, t in zip(asked, given, strict=True)]
    assert set(server.answered) == {text for own in texts for text in own}
    for own, (picked,) in zip(texts, picks(run, method).values(), strict=True):
        anchor, good, bad = (np.array(embedding(text)) / np.linalg.norm(embedding(text)) for text in own)
        margin = round(float(anchor @ good - anchor @ bad), 6)
        assert picked == ("positive" if margin > 0 else "negative" if margin else "tie")


def test_a_template_without_a_place_for_the_text_is_refused() -> None:
    with pytest.raises(UsageError, match="instruct_template: {TEXT} is missing"):
        load_benchmark(
            "multiview", {"method": ["embed:openai:x+instruct"], "instruct_template": "{INSTRUCTION}"}
        )


def test_summaries_under_the_criterion_are_written_and_embedded(tools: Path, tmp_path: Path) -> None:
    """The writer sees what counts and the embedder compares what it wrote; one document it refuses."""

    def summary(prompt: str) -> str:
        text = prompt.rpartition("Text:\n")[2]
        if text.startswith("bad 5"):
            return " "
        return f"it is for {'sawing' if text.startswith('bad') else 'digging'}"

    method = "rewrite:openai:writer+embed:openai:loop"
    with Scripted(summary, record=True) as server:
        run = ek.run("multiview", data=tools, method=[method], out=tmp_path / "run", base_url=server.url)
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


# Judges


def candidates(prompt: str) -> tuple[str, str]:
    first, _, second = prompt.partition("First candidate:\n")[2].partition("\n\nSecond candidate:\n")
    return first, second.partition("\n\n")[0]


def truthful(prompt: str) -> str:
    first, _ = candidates(prompt)
    return f'{{"more_alike": "{"first" if first.startswith("good") else "second"}"}}'


def ask_judge(
    data: Path, out: Path, rule: Callable[[str], str], method: str = JUDGE
) -> tuple[ek.Run, Scripted]:
    with Scripted(rule, record=True) as server:
        return ek.run("multiview", data=data, method=[method], out=out, base_url=server.url), server


def test_a_judge_that_sees_what_counts_is_right_in_both_orders(tools: Path, tmp_path: Path) -> None:
    run, server = ask_judge(tools, tmp_path / "run", truthful)
    assert len(server.bodies) == 12
    assert all(body["response_format"]["type"] == "json_schema" for body in server.bodies)
    asked = Counter(candidates(body["messages"][0]["content"]) for body in server.bodies)
    for record in run.records():
        _, good, bad = record.sample.inputs.documents
        assert asked[good, bad] == asked[bad, good] == 1
    figure = run.headline
    assert (figure.value, figure.n, figure.clusters, figure.coverage) == (1.0, 12, 6, 1.0)
    assert figure.method == "Clopper-Pearson over groups, which all agree"
    assert run.summary[named("flips", JUDGE)].value == 0
    assert run.summary[named("accuracy", JUDGE, "tools__age")].n == 4
    assert blocks(run.summary)[0] == f"Task: tools__use\n  {JUDGE:<29}: 100.00% (8/8 correct)"


def test_a_judge_that_always_takes_the_first_flips_every_time_and_is_right_half_the_time(
    tools: Path, tmp_path: Path
) -> None:
    run, _ = ask_judge(tools, tmp_path / "run", lambda prompt: 'It is {"more_alike": "first"}.')
    assert set(map(tuple, picks(run, JUDGE).values())) == {("positive", "negative")}
    figure, flips = run.headline, run.summary[named("flips", JUDGE)]
    assert (figure.value, figure.n) == (0.5, 12)
    assert (flips.value, flips.n) == (1.0, 6)
    # Both orders of a triplet tell as much as one triplet.
    half = 0.5 * (1 - 0.025 ** (1 / 6))
    assert interval(figure) == pytest.approx((0.5 - half, 0.5 + half))


def test_ties_and_verdicts_that_cannot_be_read_are_not_correct_and_a_failed_request_is_nothing(
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

    run, server = ask_judge(data, tmp_path / "run", rule)
    assert len(server.bodies) == 12 + 3  # what could not be read is asked for once more
    assert list(picks(run, JUDGE).values()) == [
        ["positive", "positive"],
        ["positive", "positive"],
        ["tie", "tie"],
        ["unparsed", "unparsed"],
        ["positive", "unparsed"],
        [None, None],
    ]
    summary = run.summary
    assert {
        name: summary[named(name, JUDGE)].value for name in ("accuracy", "ties", "unparsed", "flips")
    } == {
        "accuracy": 5 / 10,
        "ties": 2 / 10,
        "unparsed": 3 / 10,
        "flips": 0.0,
    }
    assert summary[named("flips", JUDGE)].n == 2  # only where it picked twice
    assert summary["accuracy"].coverage == pytest.approx(7 / 12)  # neither failed nor unreadable
    assert summary["accuracy"].statuses == {"ok": 7, "unparsed": 3, "error": 2}
    results = json.loads((run.path / "export" / "results.json").read_text())
    assert results["methods"][JUDGE] == {"correct": 5, "ties": 2, "unparsed": 3, "total": 10, "accuracy": 0.5}
    with Scripted(rule) as server:
        given = ("--data", data, "--method", JUDGE, "--base-url", server.url, "--out", tmp_path / "again")
        assert evenkeel("run", "multiview", *given).code == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "coverage 58.33% is under the floor of 95% (--min-coverage): " in said
    assert f"error: HTTP 400: this text is not accepted (invalid_request_error) ({JUDGE}) ×2" in said
    assert f"unparsed: there is no whole JSON object in it ({JUDGE}) ×1" in said


class OneOrder(Scripted):
    """Refuses one triplet with the positive last, and answers it with the positive first."""

    def _complaint(self, path: str, body: Any) -> str | None:
        first, _ = candidates(body.messages[0].content)
        return "not this way round" if first.startswith("bad 3") else super()._complaint(path, body)


def test_a_triplet_that_failed_in_one_order_is_left_out_and_its_run_compared_all_the_same(
    tools: Path, tmp_path: Path
) -> None:
    def first_always(prompt: str) -> str:
        return '{"more_alike": "first"}'

    runs = []
    for name, server in (("a", Scripted(truthful)), ("b", OneOrder(first_always))):
        with server:
            method = [JUDGE, "bm25"] if name == "a" else ["bm25", JUDGE]
            given: dict[str, Any] = {"data": tools, "method": method, "base_url": server.url}
            runs.append(ek.run("multiview", out=tmp_path / name, **given))
    assert picks(runs[1], JUDGE)["tools__use-0004"] == ["positive", None]
    judged = runs[1].summary[named("accuracy", JUDGE)]
    assert (judged.value, judged.n, judged.coverage) == (0.5, 10, 10 / 12)
    assert judged.statuses == {"ok": 11, "error": 1}
    results = json.loads((runs[1].path / "export" / "results.json").read_text())
    assert results["methods"][JUDGE]["total"] == 10
    found = ek.compare(*runs)
    assert found.metrics == (f"accuracy@{JUDGE}", "accuracy@bm25")
    by_judge, by_words = found.differences
    assert (by_judge.value_a, by_judge.value_b, by_judge.n, by_judge.unit) == (1.0, 0.5, 5, "share")
    assert (by_judge.coverage_a, by_judge.coverage_b) == (1.0, 10 / 12)
    assert (by_words.difference, by_words.n, by_words.coverage_b) == (0, 6, 1.0)
    covered = [gate(runs[1], runs[0], metrics=[f"accuracy@{name}"]).checks[0] for name in (JUDGE, "bm25")]
    assert [check.passed for check in covered] == [False, True]
    assert covered[0].reason == "coverage 83.33% is under the floor of 95%"
    for refused in (gate, lambda *both, **more: ek.compare(*both, **more)):
        for name in ("accuracy", "accuracy/task=tools__use", "accuracy/method=bm25"):
            with pytest.raises(UsageError, match=f"'{name}': there are several methods.* accuracy@bm25"):
                refused(*runs, metrics=[name])
    with pytest.raises(UsageError, match="'accuracy': there are several methods"):
        gate(*runs)


def test_what_was_judged_is_not_asked_again(tools: Path, tmp_path: Path) -> None:
    run, server = ask_judge(tools, tmp_path / "run", truthful)
    with Scripted(lambda prompt: "never asked", port=int(server.url.split(":")[2].split("/")[0])) as other:
        again = ek.run("multiview", data=tools, method=[JUDGE], out=run.path, base_url=other.url)
        assert other.requests == 0
    assert again.summary == run.summary
    assert ek.rescore(run.path).summary == run.summary


def test_annotations_are_shown_to_the_judge_and_missed_before_anything_is_asked(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    for half in (tools, store(tmp_path / "half.jsonl", [triplet(0, **{**told, "negative_summary": ""})])):
        assert evenkeel("run", "multiview", "--data", half, *given, "--out", tmp_path / "no").code == 2
        assert f"{method}: the triplets of tools__use carry no annotations" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
