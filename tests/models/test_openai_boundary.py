"""One boundary rule in both backends: a server with the weights of a local model gives what `hf:` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.served import Served
from models.tiny import ask, logprobs_of, open_hf, with_template
from sealegs.errors import CapabilityError
from sealegs.models.registry import load_model
from sealegs.types import LogLikelihood, Logprobs, Response

ROWS = [
    ("The capital of France is Par", "is"),
    ("The capital of France is", " Paris"),
    ("One ship, two ship", "s at sea"),
    ("She walks ", " home"),
    ("She walks ", "home"),
    ("un", "sinkable"),
    ("In 19", "84 it rained"),
    ("def f(x):\n", "    return x"),
    ("Q: What is it?\n\n", "Paris is"),
    ("It costs:  ", "12"),
    ("List:\r\n", "- one"),
    ("Столица Франции — Пари", "ж, и это так"),
    ("Столица Франции —", " Париж"),
    ("Один корабль, два кораб", "ля"),
    ("나는 배를", " 탄다 😀!"),
    ("A smile 😀", "😀 and more"),
    ("prefix <|im_", "start|> odd"),
]


def loglikelihoods(model: Any) -> list[Response]:
    return ask(model, *(LogLikelihood(prefix=prefix, continuation=target) for prefix, target in ROWS))


def same(ours: Logprobs, theirs: Logprobs) -> bool:
    flags = [(each.merged, each.last_word, len(each.tokens)) for each in (ours, theirs)]
    return flags[0] == flags[1] and ours.values == pytest.approx(theirs.values, abs=1e-4)


@pytest.fixture(scope="module")
def local(folder: Path) -> list[Logprobs]:
    """What the weights give here."""
    every = [logprobs_of(response) for response in loglikelihoods(open_hf(folder, dtype="float32"))]
    assert sum(logprobs.merged for logprobs in every) >= 5
    return every


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"shown": "stored"},
        {"shown": "bytes"},
        {"counts": False, "behind": "<|im_end|>"},
    ],
)
def test_a_server_gives_the_log_probabilities_of_the_weights(
    folder: Path, local: list[Logprobs], server: dict[str, Any]
) -> None:
    with Served(folder, **server) as running:
        responses = loglikelihoods(load_model("openai:m", base_url=running.url))
    pairs = zip(ROWS, map(logprobs_of, responses), local, strict=True)
    assert [row for row, ours, theirs in pairs if not same(ours, theirs)] == []


def test_a_start_token_before_every_text_is_reported(folder: Path, tmp_path: Path) -> None:
    with_start = with_template(folder, tmp_path / "start", "<|im_start|> $A")
    local = list(map(logprobs_of, loglikelihoods(open_hf(with_start, dtype="float32"))))
    with Served(with_start, before="<|im_start|>") as server:
        served = list(map(logprobs_of, loglikelihoods(load_model("openai:m", base_url=server.url))))
    assert all(map(same, served, local))
    assert {logprobs.start for logprobs in (*served, *local)} == {"<|im_start|>"}


# Texts that the server cannot echo


RUSSIAN = [LogLikelihood(prefix="Столица Франции —", continuation=" Париж")]
OTHER_RUSSIAN = [LogLikelihood(prefix="Один корабль, два", continuation=" корабля")]


def test_a_language_fails_where_most_of_its_texts_cannot_be_echoed(folder: Path) -> None:
    """English is probed first, and is no proof; one odd text is none either."""
    with Served(folder, echoes=lambda prompt: "Париж" not in prompt) as server:
        model: Any = load_model("openai:m", base_url=server.url)
        model.probe(frozenset({"loglikelihood"}))
        before = server.requests
        model.probe_logprobs({"ru": OTHER_RUSSIAN * 2 + RUSSIAN})
        assert server.requests > before
        with pytest.raises(CapabilityError, match="for text in 'ru'"):
            model.probe_logprobs({"ru": RUSSIAN * 3})
