"""Log-probabilities of the openai backend, and texts that are as long as another."""

from __future__ import annotations

import msgspec
import pytest

from evenkeel.errors import CapabilityError, ModelUnreachable
from evenkeel.models.openai.logprobs import read_loglikelihood
from evenkeel.types import Capability, LogLikelihood, Response
from loopback import Loopback, logprob, tokenise
from models.hostile import model_of, one

LOGLIKELIHOOD: frozenset[Capability] = frozenset({"loglikelihood"})


@pytest.mark.parametrize("offsets", ["given", "unset", "absent"])
@pytest.mark.parametrize("bos", ["", "<s>"])
@pytest.mark.parametrize("min_tokens", [0, 1])
def test_the_tokens_of_the_continuation_have_their_values(offsets: str, bos: str, min_tokens: int) -> None:
    with Loopback(offsets=offsets, bos=bos, min_tokens=min_tokens) as server:
        model = model_of(server)
        model.probe(LOGLIKELIHOOD)
        response = one(model, LogLikelihood(prefix="The ship is", continuation=" even keeled"))
    assert response.logprobs is not None
    assert response.logprobs.tokens == (" even", " keel", "ed")
    assert response.logprobs.values == tuple(logprob(token) for token in (" even", " keel", "ed"))
    assert not response.logprobs.merged


@pytest.mark.parametrize("offsets", ["given", "unset"])
def test_a_token_across_the_border_follows_the_published_rule(offsets: str) -> None:
    """The continuation begins after as many tokens as the prefix alone has."""
    assert (tokenise("The sh"), tokenise("The shipping")) == (["The", " sh"], ["The", " ship", "ping"])
    with Loopback(offsets=offsets, record=True) as server:
        response = one(model_of(server), LogLikelihood(prefix="The sh", continuation="ipping"))
    assert [body["prompt"] for body in server.bodies] == ["The shipping", "The sh"]
    assert response.logprobs is not None
    assert response.logprobs.tokens == ("ping",)
    assert response.logprobs.values == (logprob("ping"),)
    assert response.logprobs.merged


def test_a_target_that_merges_into_the_prefix_has_no_tokens() -> None:
    with Loopback() as server:
        response = one(model_of(server), LogLikelihood(prefix="The sh", continuation="ip"))
    assert response.status == "ok"
    assert response.logprobs is not None
    assert (response.logprobs.tokens, response.logprobs.values, response.logprobs.merged) == ((), (), True)


def test_a_first_token_without_a_value_is_not_scored_as_something() -> None:
    with Loopback() as server:
        response = one(model_of(server), LogLikelihood(prefix="", continuation="The ship"))
    assert response.status == "unparsed"
    assert response.logprobs is None
    assert "null" in response.reason


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        ("missing", "no prompt logprobs"),
        ("zero", "all zero"),
        ("null", "null"),
        ("equal", "all equal"),
        ("positive", "not log-probabilities"),
    ],
)
def test_unsound_log_probabilities_are_found_by_the_probe(logprobs: str, reason: str) -> None:
    with Loopback(logprobs=logprobs) as server, pytest.raises(CapabilityError, match=reason):
        model_of(server).probe(LOGLIKELIHOOD)


def test_a_server_without_completions_has_no_log_likelihoods() -> None:
    with Loopback(always=404, says="Not Found", code="") as server:
        with pytest.raises(CapabilityError, match="HTTP 404"):
            model_of(server).probe(LOGLIKELIHOOD)
        server.behaviour.says = "The model `loop` does not exist"
        with pytest.raises(ModelUnreachable):
            model_of(server).probe(LOGLIKELIHOOD)


def test_nothing_is_asked_to_probe_what_needs_no_probe() -> None:
    with Loopback() as server:
        model_of(server).probe(frozenset({"generate", "embed"}))
    assert server.requests == 0


def echoed(tokens: list[str], offsets: list[int] | None = None) -> bytes:
    values = [None, *(-float(i) for i in range(1, len(tokens)))]
    logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": offsets}
    return msgspec.json.encode({"choices": [{"text": "", "logprobs": logprobs}]})


@pytest.mark.parametrize(
    ("tokens", "offsets", "expected"),
    [
        # vLLM shows a part of a character with the last part only
        (["나", "는", "", "간", "다"], None, (2, 3, 4)),
        # OpenAI gives the bytes of the parts
        (["나", "는", "bytes:\\xea", "bytes:\\xb0\\x84", "다"], [0, 1, 2, 2, 3], (2, 3, 4)),
        # a special token in front, and a generated one behind
        (["<|begin|>", "▁나는", "▁간다"], None, None),
        (["<|begin|>", "나는", "간다", "!"], [0, 9, 11, 13], (2,)),
    ],
)
def test_tokens_find_their_place_in_the_text(
    tokens: list[str], offsets: list[int] | None, expected: tuple[int, ...] | None
) -> None:
    response = read_loglikelihood(echoed(tokens, offsets), LogLikelihood(prefix="나는", continuation="간다"))
    assert isinstance(response, Response)
    if expected is None:
        assert (response.status, response.reason) == (
            "unparsed",
            "the server's tokens do not spell the prompt",
        )
    else:
        assert response.logprobs is not None
        assert response.logprobs.values == tuple(-float(i) for i in expected)
        assert not response.logprobs.merged


@pytest.mark.parametrize("status", ["500", "501", "404"])
def test_a_probe_that_fails_means_that_there_are_no_log_probabilities(status: str) -> None:
    with Loopback(fail=1.0, faults=(status,), says="max_tokens must be positive") as server:
        with pytest.raises(CapabilityError) as raised:
            model_of(server, retries=1).probe(frozenset({"loglikelihood"}))
        assert raised.value.lacking == {"loglikelihood"}


@pytest.mark.parametrize("status", ["401", "503"])
def test_a_server_that_is_not_available_is_not_probed(status: str) -> None:
    with (
        Loopback(fail=1.0, faults=(status,)) as server,
        pytest.raises(ModelUnreachable),
    ):
        model_of(server, retries=0).probe(frozenset({"loglikelihood"}))


@pytest.mark.parametrize("offsets", ["given", "absent"])
@pytest.mark.parametrize(
    ("prefix", "tokens"),
    [("The ship is unsinkable", 3), ("The ship\nunsinkable", 4), ("unsink ", 3), ("", 0)],
)
def test_the_last_words_tokens_and_the_start_token_are_reported(
    prefix: str, tokens: int, offsets: str
) -> None:
    with Loopback(bos="<s>", offsets=offsets) as server:
        response = one(model_of(server), LogLikelihood(prefix=prefix, continuation="!"))
    assert response.logprobs is not None
    assert (response.logprobs.last_word, response.logprobs.start) == (tokens, "<s>")
