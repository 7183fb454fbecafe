"""Log-probabilities of the openai backend: what is asked, what is read, what is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import msgspec
import pytest

from loopback import Loopback, logprob
from models.hostile import model_of, one
from present import present
from sealegs.errors import BudgetReached, CapabilityError, ModelUnreachable
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.models.openai import logprobs
from sealegs.types import Capability, LogLikelihood, Logprobs

LOGLIKELIHOOD: frozenset[Capability] = frozenset({"loglikelihood"})


@pytest.mark.parametrize("bos", ["", "<s>"])
@pytest.mark.parametrize("min_tokens", [0, 1])
def test_the_tokens_of_the_continuation_have_their_values(bos: str, min_tokens: int) -> None:
    with Loopback(bos=bos, min_tokens=min_tokens) as server:
        model = model_of(server)
        model.probe(LOGLIKELIHOOD)
        before = server.requests
        response = one(model, LogLikelihood(prefix="The ship is", continuation=" even keeled"))
        assert server.requests == before + 1  # the prefix alone is asked for only where tokens merge
    tokens = (" even", " keel", "ed")
    assert response.logprobs == Logprobs(tokens, tuple(map(logprob, tokens)), last_word=1, start=bos)


@pytest.mark.parametrize(("continuation", "tokens"), [("ipping", ("ping",)), ("ip", ())])
def test_a_token_across_the_border_follows_the_published_rule(
    continuation: str, tokens: tuple[str, ...]
) -> None:
    """The continuation begins after as many tokens as the prefix alone has."""
    with Loopback(record=True) as server:
        response = one(model_of(server), LogLikelihood(prefix="The sh", continuation=continuation))
    assert [body["prompt"] for body in server.bodies] == [f"The sh{continuation}", "The sh"]
    logprobs = present(response.logprobs)
    assert (logprobs.tokens, logprobs.values) == (tokens, tuple(map(logprob, tokens)))
    assert logprobs.merged


def test_the_request_for_the_prefix_alone_counts_for_the_budget() -> None:
    requests = [LogLikelihood(prefix=f"The ship {number} ", continuation="sails") for number in range(5)]
    gate = RequestGate(Limits(max_requests=3))

    def admitted() -> Iterator[LogLikelihood]:
        for request in requests:
            gate.admit(request, wait=True)
            yield request

    responses = []
    with Loopback() as server, pytest.raises(BudgetReached, match="max.requests 3"):
        model = model_of(server, concurrency=1)
        model.count_with(gate, "model")
        for _, response in model.answer(admitted()):
            responses.append(response.status)
    assert server.requests == gate.requests == 3
    assert responses == ["ok"]


@pytest.mark.parametrize("limit", [None, 1])
def test_the_first_of_two_calls_is_paid_for_though_the_second_fails(limit: int | None) -> None:
    class FailingSecond(Loopback):
        def _fault(self, data: bytes) -> str:
            return "400" if self.requests == 2 else ""

    gate = RequestGate(Limits(max_requests=limit, max_usd=1.0, price_in=1.0))
    request = LogLikelihood(prefix="The ship ", continuation="sails")
    ticket = present(gate.admit(request, wait=True))
    with FailingSecond() as server:
        model = model_of(server)
        model.count_with(gate, "model")
        response = None
        with pytest.raises(BudgetReached) if limit else contextlib.nullcontext():
            response = one(model, request)
    assert response is None or response.status == "error"
    gate.settle(ticket, response)
    assert gate.usd > 0


def test_a_first_token_without_a_value_is_not_scored_as_something() -> None:
    with Loopback() as server:
        response = one(model_of(server), LogLikelihood(prefix="", continuation="The ship"))
    assert (response.status, response.logprobs) == ("unparsed", None)


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        ("missing", "no prompt logprobs"),
        ("zero", "all zero"),
        ("null", "null"),
        ("equal", "all equal"),
        ("positive", "not log-probabilities"),
        ("huge", "not log-probabilities"),
    ],
)
def test_unsound_log_probabilities_are_found_by_the_probe(logprobs: str, reason: str) -> None:
    with Loopback(logprobs=logprobs) as server, pytest.raises(CapabilityError, match=reason):
        model_of(server).probe(LOGLIKELIHOOD)


def test_a_server_without_the_model_is_not_one_without_completions() -> None:
    missing = Loopback(always=404, says="The model `loop` does not exist", code="")
    with missing as server, pytest.raises(ModelUnreachable):
        model_of(server).probe(LOGLIKELIHOOD)


def test_nothing_is_asked_to_probe_what_needs_no_probe() -> None:
    with Loopback() as server:
        model_of(server).probe(frozenset({"generate", "embed"}))
    assert server.requests == 0


class Echoing(Loopback):
    """Shows the tokens that a test has written for each prompt."""

    def __init__(self, tokens: dict[str, list[str]], models: tuple[str, ...] = ("loop",)) -> None:
        super().__init__()
        self.tokens = tokens
        self.models = cycle(models)

    def _echo(self, body: Any) -> bytes:
        tokens = self.tokens[body.prompt]
        values = [None, *(-float(i) for i in range(1, len(tokens)))]
        choice = {"text": "", "logprobs": {"tokens": tokens, "token_logprobs": values}}
        return msgspec.json.encode({"choices": [choice], "model": next(self.models)})


@pytest.mark.parametrize(
    ("tokens", "values"),
    [
        (["나는", "간다", "</s>", "!"], (1,)),  # appended, and generated
        (["<|begin|>", "나는", "간다", "!"], (2,)),
        (["나", "는", "", "간", "다"], (2, 3, 4)),  # vLLM shows a character with its last part only
        (["나", "는", "bytes:\\xea", "bytes:\\xb0\\x84", "다"], (2, 3, 4)),  # OpenAI
        (["나", "는", "\ufffd", "\ufffd", "다"], (2, 3, 4)),  # the prefix alone tells where it ends
        (["나", "는", "\ufffd", "\ufffd", "다", "</s>"], (2, 3, 4)),
        *(
            (tokens, None)
            for tokens in (["배", "가"], ["나", "배", "\ufffd", "다"], ["", ""], ["나는간다다"])
        ),
        (["<|begin|>", "▁나는", "▁간다"], None),
    ],
)
def test_tokens_find_their_place_in_the_text(tokens: list[str], values: tuple[int, ...] | None) -> None:
    with Echoing({"나는간다": tokens, "나는": tokens[:2]}) as server:
        response = one(model_of(server), LogLikelihood(prefix="나는", continuation="간다"))
    assert response.status == ("unparsed" if values is None else "ok")
    found = response.logprobs.values if response.logprobs else None
    assert found == (None if values is None else tuple(-float(value) for value in values))


def test_two_calls_that_two_models_answer_are_no_answer() -> None:
    tokens = {"나는 간다": ["나는 ", "간다"], "나는 ": ["나는 "]}
    with Echoing(tokens, models=("one", "other")) as server:
        response = one(model_of(server), LogLikelihood(prefix="나는 ", continuation="간다"))
    assert (response.status, response.logprobs) == ("unparsed", None)
    assert response.reason == "its two calls were answered by one and by other"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400", CapabilityError),
        ("404", CapabilityError),
        ("401", ModelUnreachable),
        ("500", ModelUnreachable),
        ("503", ModelUnreachable),
        ("broken", ModelUnreachable),
    ],
)
def test_a_server_has_no_log_probabilities_where_it_refuses_them_not_where_it_fails(
    status: str, error: type[Exception]
) -> None:
    with Loopback(fail=1.0, faults=(status,), says="max_tokens is wrong") as server, pytest.raises(error):
        model_of(server, retries=0).probe(LOGLIKELIHOOD)


def test_a_server_that_fails_says_nothing_of_a_language() -> None:
    texts = [LogLikelihood(prefix="배가", continuation=" 간다")] * 2
    with Loopback(always=500) as server, pytest.raises(ModelUnreachable):
        model_of(server, retries=0).probe_logprobs({"ko": texts})
    with Loopback(script=("500",)) as server:
        model_of(server, retries=0).probe_logprobs({"en": [logprobs.PROBE] * 2})


@pytest.mark.parametrize(
    ("prefix", "tokens"),
    [("The ship is unsinkable", 3), ("The ship\nunsinkable", 4), ("unsink ", 3), ("", 0)],
)
def test_the_last_words_tokens_and_the_start_token_are_reported(prefix: str, tokens: int) -> None:
    with Loopback(bos="<s>") as server:
        response = one(model_of(server), LogLikelihood(prefix=prefix, continuation="!"))
    logprobs = present(response.logprobs)
    assert (logprobs.last_word, logprobs.start) == (tokens, "<s>")
