"""multiview's methods that score both documents: letters in both orders, and cross-encoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import evenkeel as ek
from evenkeel.benchmarks.multiview.methods import Outcome, judge_prompt, order, parse_methods
from evenkeel.benchmarks.multiview.scoring import differences
from evenkeel.types import Logprobs, Response, Score
from models.tiny import open_hf, tiny_cross_encoder, tiny_model
from triplets import named, picks, store, store_tools, triplet


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return store_tools(tmp_path)


def test_logprobs_sum_how_much_likelier_a_letter_is_over_both_orders(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "tiny", max_position_embeddings=512)
    told = {"anchor_summary": "one", "positive_summary": "two", "negative_summary": "three"}
    given = [triplet(n, **told) for n in range(4)]
    data = store(tmp_path / "t.jsonl", given)
    methods = [f"judge:hf:{folder}+logprobs", f"judge:hf:{folder}+annotations+logprobs"]
    run = ek.run("multiview", data=data, method=methods, out=tmp_path / "run")
    causal = open_hf(folder)._causal()

    def likelihood(prefix: str, letter: str) -> float:
        before, whole = (causal.tokenizer(text).input_ids for text in (prefix, prefix + letter))
        with torch.inference_mode():
            said = causal.model(torch.tensor([whole])).logits[0].log_softmax(-1)
        return sum(float(said[place - 1, whole[place]]) for place in range(len(before), len(whole)))

    for method in parse_methods(methods):
        margins, flips = [], 0
        for one, record in zip(given, run.records(), strict=True):
            leads = []
            for swapped in (False, True):
                prefix = judge_prompt(method, one, swapped=swapped)
                assert prefix.endswith("the anchor is more alike to")
                assert ("Second candidate: t" in prefix) == ("annotations" in method.options)
                leads.append(likelihood(prefix, " A") - likelihood(prefix, " B"))
            margins.append(leads[0] - leads[1])
            flips += (leads[0] > 0) == (leads[1] > 0)  # the same letter is another document
            assert record.score.detail.margins[method.name] == pytest.approx(margins[-1], abs=1e-4)
            alone = ["positive" if lead > 0 else "negative" for lead in (leads[0], -leads[1])]
            assert list(record.score.detail.orders[method.name]) == alone
        wanted = [["positive" if margin > 0 else "negative"] for margin in margins]
        assert list(picks(run, method.name).values()) == wanted
        figure = run.summary[named("accuracy", method.name)]
        assert (figure.value, figure.n) == (wanted.count(["positive"]) / 4, 4)
        turned = run.summary[named("flips", method.name)]
        assert (turned.value, turned.n) == (flips / 4, 4)


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


@pytest.mark.parametrize(
    ("logprobs", "pick", "flips"),
    [
        ((-1.0, -3.0, -1.0, -2.0), "positive", 1.0),  # A each time, and more so where it is the positive
        ((-1.0, -2.0, -1.0, -3.0), "negative", 1.0),
        ((-1.0, -2.0, -1.0, -2.0), "tie", 1.0),
        ((-1.0, -2.0, -2.0, -1.0), "positive", 0.0),
    ],
)
def test_a_bias_towards_a_letter_cancels_in_the_margin(
    logprobs: tuple[float, ...], pick: str, flips: float
) -> None:
    outcome = ordered("judge:hf:x+logprobs", letters(*logprobs))
    assert (outcome.picks, outcome.flips, outcome.ends) == ((pick,), flips, ("ok",))
    assert outcome.margin == (logprobs[0] - logprobs[1]) - (logprobs[2] - logprobs[3])


def test_a_score_that_is_no_number_is_a_failure_and_no_wrong_answer() -> None:
    nan = float("nan")
    for outcome in (
        ordered("judge:hf:x+logprobs", letters(-1.0, nan, -1.0, -2.0)),
        ordered("rerank:sbert:x", [answer(rank=1.0), answer(rank=nan)]),
        ordered("rerank:sbert:x", [answer(rank=1.0), answer("error")]),
    ):
        assert (outcome.picks, outcome.margin, outcome.ends) == ((None,), None, ("error",))
    assert ordered("rerank:sbert:x", [answer(rank=1.0), answer("refused")]).ends == ("refused",)


def test_a_cross_encoder_scores_both_documents_for_a_query_with_the_criterion(
    tools: Path, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder

    method = f"rerank:sbert:{tiny_cross_encoder(tmp_path / 'cross')}"
    run = ek.run("multiview", data=tools, method=[method], out=tmp_path / "run")
    model = CrossEncoder(str(tmp_path / "cross"), device="cpu")
    for record in run.records():
        inputs = record.sample.inputs
        query = "Find a text that is alike to the following under this criterion: "
        query += f"{inputs.description}\n\n{inputs.anchor}"
        pairs = [(query, inputs.positive), (query, inputs.negative)]
        good, bad = model.predict(pairs, activation_fn=torch.nn.Identity())
        assert record.score.detail.margins[method] == pytest.approx(float(good) - float(bad), abs=1e-6)
        assert record.score.detail.picks[method] == ("positive" if good > bad else "negative",)
    (tmp_path / "cross" / "model.safetensors").rename(tmp_path / "moved")
    assert ek.rescore(run.path).summary == run.summary  # from the journal alone


def of_methods(number: int, **picked: bool | None) -> Score:
    """A triplet that methods got right or wrong; None where the request failed."""
    values: dict[str, float | None] = {}
    for method, right in picked.items():
        values[f"accuracy@{method}"] = None if right is None else float(right)
        values |= {f"{other}@{method}": None if right is None else 0.0 for other in ("ties", "unparsed")}
        values[f"ended_{'error' if right is None else 'ok'}@{method}"] = 1.0
    failed = sum(right is None for right in picked.values())
    ended = {"ok": len(picked) - failed, "error": failed}
    return Score(
        sample_id=str(number), group=str(number), tags={"task": "tools"}, values=values,
        statuses=ended, answered=ended["ok"],
    )  # fmt: skip


def test_a_difference_of_methods_covers_what_both_of_them_answered() -> None:
    """The third method fails for two triplets of five; that is nothing to the other two."""
    scores = [of_methods(n, a=n % 2 == 0, b=n % 3 == 0, c=None if n % 5 < 2 else True) for n in range(30)]
    summary = differences(scores, ["a", "b", "c"])
    assert summary["minus_first/method=b"].coverage == 1.0
    assert summary["minus_first/method=b"].statuses == {"ok": 60}
    assert summary["minus_first/method=c"].coverage == pytest.approx(0.6)
    assert summary["minus_first/method=c"].statuses == {"ok": 48, "error": 12}  # 0.8 of each by itself


def test_a_comparison_of_methods_has_one_p_value_wherever_it_is_shown() -> None:
    scores = [of_methods(n, a=n % 2 == 0, b=n % 3 == 0, c=n % 7 > 1) for n in range(40)]
    summary = differences(scores, ["a", "b", "c"])
    for method in "bc":
        assert summary[f"minus_first/method={method}"] == summary[f"minus/method={method},other=a"]
        assert summary[f"minus_first/method={method}"].tests == 3
        assert (
            summary[f"minus_first/task=tools,method={method}"].p == summary[f"minus_first/method={method}"].p
        )


def test_methods_that_are_never_both_right_differ_within_what_shares_can() -> None:
    scores = [of_methods(n, a=False, b=True) for n in range(5)]
    figure = differences(scores, ["a", "b"])["minus_first/method=b"]
    assert (figure.value, figure.high, figure.unit) == (1.0, 1.0, "share")
    assert figure.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 5)))
