"""Log-probabilities of `hf:` against the full logits, and what happens when memory or a row fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from models.tiny import TEXTS, ask, chat, logprobs_of, open_hf, say, shapes_read, tiny_model, with_template
from sealegs.models.boundary import find_boundary
from sealegs.models.hf import HuggingFace
from sealegs.models.local.prompts import scored_prompts
from sealegs.models.registry import token_counter, tokenizer
from sealegs.types import LogLikelihood, Request, StringLikelihood

PREFIXES = ("The quick brown fox", "Hello", "", "Par", "A long way from home, and")
END = "<|im_end|>"
CONTINUATIONS = (" jumps over the lazy dog", " world", "Paris is", "is", " further still")


def naive_logprobs(model: HuggingFace, prefix: str, continuation: str) -> list[float]:
    """One pair alone, with the logits of every place."""
    causal = model.causal()
    before, whole = (causal.tokenizer(text).input_ids for text in (prefix, prefix + continuation))
    target = whole[len(before) :]
    if not before:
        whole = [causal.tokenizer.bos_token_id, *whole]
    with torch.inference_mode():
        logprobs = causal.model(torch.tensor([whole])).logits[0].float().log_softmax(-1)
    start = len(whole) - len(target)
    return [float(logprobs[start + index - 1, token]) for index, token in enumerate(target)]


def test_log_probabilities_are_those_of_the_full_logits(shared: HuggingFace) -> None:
    pairs = list(zip(PREFIXES, CONTINUATIONS, strict=True))
    responses = ask(shared, *(LogLikelihood(prefix=prefix, continuation=after) for prefix, after in pairs))
    for (prefix, after), response in zip(pairs, responses, strict=True):
        logprobs = logprobs_of(response)
        assert logprobs.values == pytest.approx(naive_logprobs(shared, prefix, after), abs=1e-4)
        if not logprobs.merged:
            assert "".join(logprobs.tokens) == after


def test_one_reading_for_both_gives_what_two_would(each: HuggingFace) -> None:
    drafts = ["", " the lazy dog runs", " over there and further still, as ever"]
    for prompt in TEXTS:  # drafts that agree with the model in none, some and all of their tokens
        text = ask(each, say(prompt, max_tokens=6))[0].text
        drafts += [text, text[: len(text) // 2] + " otherwise it is"]
    pairs = [(text, draft) for text in TEXTS for draft in drafts if draft]
    scored = [LogLikelihood(prefix=text, continuation=draft) for text, draft in pairs]
    written = [
        say(text, max_tokens=2 + row % 8, stop=("\n",), repeat=row) for row, (text, _) in enumerate(pairs)
    ]
    together = ask(each, *scored, *written)
    assert len(scored_prompts(each.causal(), [*scored, *written])) > len(pairs) / 2
    apart = [*ask(each, *scored), *ask(each, *written)]
    for joint, alone in zip(together, apart, strict=True):
        assert (joint.status, joint.text, joint.tokens_out) == (alone.status, alone.text, alone.tokens_out)
        if alone.logprobs:
            assert logprobs_of(joint).tokens == alone.logprobs.tokens
            assert logprobs_of(joint).values == pytest.approx(alone.logprobs.values, abs=1e-4)


def test_what_the_draft_has_right_is_not_read_again(shared: HuggingFace) -> None:
    draft = ask(shared, say("Once upon a time", max_tokens=5))[0].text
    pair = LogLikelihood(prefix="Once upon a time", continuation=draft)
    with shapes_read(shared) as shapes:
        _, written = ask(shared, pair, say("Once upon a time", max_tokens=5))
    assert written.text == draft
    assert len(shapes) == 1


def test_choices_after_the_same_prefix_cost_one_reading(shared: HuggingFace) -> None:
    choices = [LogLikelihood(prefix=text, continuation=letter) for text in TEXTS for letter in (" A", " B")]
    with shapes_read(shared) as shapes:
        responses = ask(shared, *choices)
    assert sum(rows for rows, _ in shapes) == len(TEXTS)
    for request, response in zip(choices, responses, strict=True):
        naive = naive_logprobs(shared, request.prefix, request.continuation)
        assert logprobs_of(response).values == pytest.approx(naive, abs=1e-4)


def test_an_empty_prefix_needs_a_start_token(folder: Path) -> None:
    model = open_hf(folder)
    model.causal().start_id = None
    logprobs, written = ask(model, LogLikelihood(prefix="", continuation="x"), say(""))
    assert (logprobs.status, written.status) == ("error", "error")
    assert "no start token" in logprobs.reason


# Memory


@pytest.mark.parametrize("fits", [0, 3])
def test_running_out_of_memory_halves_the_batch(shared: HuggingFace, folder: Path, fits: int) -> None:
    model = open_hf(folder)

    def limited(module: Any, args: Any, kwargs: Any) -> None:
        if kwargs["input_ids"].shape[0] > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")

    model.causal().model.register_forward_pre_hook(limited, with_kwargs=True)
    texts = [say(f"Hello {number}") for number in range(5 if fits else 1)]
    pairs = [LogLikelihood(prefix="A", continuation=" 1")]
    responses = ask(model, *texts, *pairs)
    if fits:
        assert responses[: len(texts)] == ask(shared, *texts)
        assert {response.status for response in responses[len(texts) :]} == {"ok"}
    else:
        assert {response.status for response in responses} == {"error"}
        assert all("out of memory" in response.reason for response in responses)


def test_a_row_that_cannot_be_computed_fails_alone(shared: HuggingFace, folder: Path) -> None:
    model = open_hf(folder)
    requests: list[Request] = [
        *(say(f"{text} {number}") for text in TEXTS for number in range(4)),
        *(LogLikelihood(prefix=f"A {number}", continuation=" course") for number in range(4)),
    ]
    odd: list[Request] = [say("Hello ~"), LogLikelihood(prefix="A ~", continuation=" course")]
    token = model.causal().tokenizer("Hello ~").input_ids[-1]

    def broken(module: Any, args: Any, kwargs: Any) -> None:
        if (kwargs["input_ids"] == token).any():
            raise RuntimeError("a shape is wrong")

    model.causal().model.register_forward_pre_hook(broken, with_kwargs=True)
    responses = ask(model, *requests[:6], *odd, *requests[6:])
    assert [*responses[:6], *responses[8:]] == ask(shared, *requests)
    assert [response.status for response in responses[6:8]] == ["error", "error"]
    assert all("a shape is wrong" in response.reason for response in responses[6:8])


@pytest.mark.parametrize(
    "error", [TypeError("a mistake"), RuntimeError("CUDA error: device-side assert"), MemoryError("none")]
)
def test_what_is_not_about_a_row_is_raised(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    model = open_hf(folder)

    def broken(*args: Any) -> None:
        raise error

    if isinstance(error, MemoryError):  # where no batch is computed, and none can be halved
        monkeypatch.setattr(model, "causal", broken)
    else:
        model.causal().model.register_forward_pre_hook(broken)
    with pytest.raises(type(error), match=str(error)):
        ask(model, say("Hello"), say("Once"))


# What the tokenizer does with the prefix


def test_an_end_token_that_the_tokenizer_appends_is_left_out(folder: Path, tmp_path: Path) -> None:
    """The same answers as of the tokenizer that does not append it, though it begins with the same token."""
    ended = open_hf(with_template(folder, tmp_path / "ended", f"{END} $A {END}"))
    plain = open_hf(with_template(folder, tmp_path / "plain", f"{END} $A"))
    requests: list[Request] = [
        *(LogLikelihood(prefix=text, continuation=" on and on") for text in ("The ship sails", "Hello", "")),
        *(LogLikelihood(prefix="Par", continuation=after) for after in ("is", "is is not")),
        say("The ship sails"),
        *(say(text) for text in ("Once upon a time", "Once upon a time<|im_end|>", "")),
        chat(("user", "Hi")),
    ]
    responses = ask(ended, *requests)
    assert responses == ask(plain, *requests)
    assert [logprobs_of(response).merged for response in responses[:5]] == [False, False, False, True, True]
    assert responses[6].tokens_in == 5
    assert responses[7].tokens_in == 6  # what the text itself ends with is the text's


def test_a_tokenizer_by_itself_leaves_an_appended_end_token_out(folder: Path, tmp_path: Path) -> None:
    spec = f"hf:{with_template(folder, tmp_path / 'ended', f'{END} $A {END} {END}')}"
    tokenise, count = tokenizer(spec), token_counter(spec).count
    assert (len(tokenise("")), len(tokenise("Once upon a time"))) == (1, 5)
    assert count("Once upon a time") == 4
    assert find_boundary(tokenise("Once upon"), tokenise("Once upon a time")) == (3, False)


def test_half_precision_is_noted_and_its_log_probabilities_are_float32(folder: Path) -> None:
    """Those of bfloat16 would have eight bits: steps of 0.06 at −10."""
    model = open_hf(folder, dtype="bfloat16")
    request = LogLikelihood(prefix=TEXTS[0], continuation=" and more of it")
    values = logprobs_of(ask(model, request)[0]).values
    assert values == pytest.approx(naive_logprobs(model, request.prefix, request.continuation), abs=0.1)
    assert any(value != float(torch.tensor(value).bfloat16()) for value in values)
    [note] = model.notes()
    assert "Computed in bfloat16" in note


def test_a_probability_that_is_not_finite_is_a_failure(tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path))
    with torch.no_grad():
        model.causal().model.model.layers[0].mlp.down_proj.weight.fill_(float("nan"))
    pair = LogLikelihood(prefix="The sky", continuation=" is blue")
    string = StringLikelihood(prefix="The sky", continuation=" is blue")
    for requests in ([pair], [pair, say("The sky")], [string]):
        response = ask(model, *requests)[0]
        assert (response.status, response.logprobs, response.string) == ("error", None, None)
        assert "not finite" in response.reason
