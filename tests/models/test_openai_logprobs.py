"""Log-probabilities of the openai backend, and texts that are as long as another."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evenkeel.errors import CapabilityError, ModelUnreachable
from evenkeel.models.openai.logprobs import read_loglikelihood
from evenkeel.types import Capability, Generate, LogLikelihood, Response, Sampling
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


# As long as another text


class Writer(Loopback):
    """A base model: it writes as many tokens as it may, and says that it was cut off."""

    def _completion(self, body: Any, key: str) -> bytes:
        text = " keel" * body.max_tokens
        usage = {"prompt_tokens": len(tokenise(body.prompt)), "completion_tokens": body.max_tokens}
        ends = "content_filter" if "[filter]" in body.prompt else "length"
        return msgspec.json.encode({"choices": [{"text": text, "finish_reason": ends}], "usage": usage})


def as_long_as(prompt: str, text: str, **sampling: Any) -> Generate:
    return Generate(prompt=prompt, sampling=Sampling(length_of=text, stop=("\n",), **sampling))


def test_a_text_as_long_as_another_is_counted_by_the_server_then_written() -> None:
    with Writer(record=True) as server:
        response = one(model_of(server), as_long_as("The ship is", " unsinkable"))
    tokens = len(tokenise(" unsinkable"))
    assert tokens == 3
    counted, written = server.bodies
    assert (counted["prompt"], counted["echo"], counted["path"]) == (
        "The ship is unsinkable",
        True,
        "/v1/completions",
    )
    assert (written["prompt"], written["max_tokens"], written["stop"]) == ("The ship is", tokens, ["\n"])
    assert "length_of" not in written
    # It has the length that it was to have, so that it is whole.
    assert (response.status, response.reason, response.text) == ("ok", "", " keel" * tokens)
    assert response.tokens_out == tokens


class Words(Writer):
    """One that always writes the same."""

    def _completion(self, body: Any, key: str) -> bytes:
        text = "".join((" un", "sink", "able", ",", " they", " say", " so")[: body.max_tokens])
        choice = {"text": text, "finish_reason": "length"}
        usage = {"prompt_tokens": 3, "completion_tokens": body.max_tokens}
        return msgspec.json.encode({"choices": [choice], "usage": usage})


def test_a_text_goes_beyond_its_length_by_a_second_request() -> None:
    with Words(record=True) as server:
        response = one(model_of(server), as_long_as("The ship", " is", beyond=4, words=1))
        asked = [body for body in server.bodies if "echo" not in body]
    assert [body["max_tokens"] for body in asked] == [1, 5]
    assert not any("logprobs" in body for body in asked)
    assert (response.status, response.text, response.other) == ("ok", " un", " unsinkable, they")
    assert (response.tokens_in, response.tokens_out) == (6, 6)
    with Words() as server:  # within so few tokens the word does not end
        response = one(model_of(server), as_long_as("The ship", " is", beyond=1, words=1))
    assert (response.text, response.other) == (" un", None)


def test_how_a_text_goes_on_is_unknown_where_the_server_writes_another() -> None:
    class Fickle(Writer):
        def _completion(self, body: Any, key: str) -> bytes:
            text = " unsinkable, they" if body.max_tokens > 1 else " afloat"
            return msgspec.json.encode({"choices": [{"text": text, "finish_reason": "length"}]})

    with Fickle() as server:
        response = one(model_of(server), as_long_as("The ship", " is", beyond=4, words=1))
    assert (response.status, response.text, response.other) == ("ok", " afloat", None)


def test_a_text_says_where_it_has_as_many_tokens_as_another() -> None:
    request = Generate(prompt="The ship", sampling=Sampling(max_tokens=6, marked=" is not"))
    with Words(record=True) as server:
        response = one(model_of(server), request)
    assert [body["max_tokens"] for body in server.bodies if "echo" not in body] == [6, 2]
    assert (response.text, response.other) == (" unsinkable, they say", " unsink")


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


def test_a_text_as_long_as_another_keeps_its_limit() -> None:
    with Writer(record=True) as server:
        one(model_of(server), as_long_as("The", " ship is unsinkable", max_tokens=2))
    assert server.bodies[1]["max_tokens"] == 2


def test_only_a_cut_at_the_wanted_length_is_taken_for_an_end() -> None:
    with Writer() as server:
        response = one(model_of(server), as_long_as("The [filter] ship", " sails"))
    assert (response.status, response.reason) == ("refused", "content_filter")


def test_where_log_probabilities_fail_the_server_counts_by_what_it_reads() -> None:
    with Writer(logprobs="missing", record=True) as server:
        response = one(model_of(server), as_long_as("The ship is", " unsinkable"))
    tokens = len(tokenise(" unsinkable"))
    assert (response.status, response.reason, response.text) == ("ok", "", " keel" * tokens)
    assert [(body["prompt"], body["max_tokens"]) for body in server.bodies] == [
        ("The ship is unsinkable", 0),
        ("The ship is unsinkable", 1),
        ("The ship is", 1),
        ("The ship is", tokens),
    ]


def test_a_count_that_fails_fails_the_text() -> None:
    with Loopback() as server:
        response = one(model_of(server), as_long_as("The [poison] ship", " sails"))
    assert response.status == "error"
    assert response.reason.startswith("HTTP 400")


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
