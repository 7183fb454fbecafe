"""A judge's verdicts on rejection and on error detection: asked for, or read from a judged file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from sealegs.benchmarks.rgb.added import is_detection, is_rejection
from sealegs.benchmarks.rgb.data import RgbInputs, RgbSample
from sealegs.benchmarks.rgb.prompts import JudgePrompt, published_yes
from sealegs.benchmarks.rgb.published import published_text
from sealegs.text import judge
from sealegs.text.answers import is_blank
from sealegs.text.prompts import user_prompt
from sealegs.types import Answered, Asking, Generate, Message, Response, Sampling, Status

Judged: TypeAlias = Literal["rejection", "detection"]


# A judge reads the next two docstrings in the schema of its verdict: they are part of what it is sent; the
# prompt is in judge.json.


class Rejection(Struct):
    """A judge's verdict on an answer to a question that no document answers."""

    declines: bool


class Detection(Struct):
    """A judge's verdict on an answer from false documents."""

    reports_an_error: bool


KINDS: dict[Judged, type[Struct]] = {"rejection": Rejection, "detection": Detection}


class Judgement(NamedTuple):
    """What a judge decided about one answer: yes, no, or nothing that could be read."""

    decision: bool | None
    status: Status
    evaluation: str | None = None
    """The verdict in words, where it is read as the published scripts read it and can be exported so."""


def judged_as(sample: RgbSample) -> Judged | None:
    return "rejection" if is_rejection(sample) else "detection" if is_detection(sample) else None


def published_verdict(sample: RgbSample, evaluation: str) -> bool:
    """Rej*: "not addressed" is in the verdict. ED*: "has identified" or "Yes" is. To the letter."""
    kind = judged_as(sample)
    return kind is not None and any(phrase in evaluation for phrase in published_yes()[kind])


def recorded(answered: Iterable[Answered[RgbInputs]]) -> dict[str, Judgement]:
    """The verdicts that a judged file has, by sample."""
    judgements = {}
    for item in answered:
        evaluation = item.sample.inputs.evaluation
        kind = judged_as(item.sample)
        if evaluation is None or not kind:
            continue
        if kind == "rejection" and "addressed" not in evaluation and "identif" in evaluation:
            # The other script judged it, and what it was asked is not whether the answer declines.
            judgements[item.sample.id] = Judgement(None, "unparsed")
        else:
            decision = published_verdict(item.sample, evaluation)
            judgements[item.sample.id] = Judgement(decision, "ok", evaluation)
    return judgements


def ask(
    answered: Iterable[Answered[RgbInputs]], prompt_for: Callable[[Judged], JudgePrompt]
) -> Asking[dict[str, Judgement]]:
    """A verdict on each answer that is judged, by sample. A prompt stored with a sample comes first."""
    judgements: dict[str, Judgement] = {}
    for kind, verdict_type in KINDS.items():
        items = [item for item in answered if judged_as(item.sample) == kind]
        asked = [(item, item.sample.inputs.judge or prompt_for(kind)) for item in items]
        in_words = [(item, prompt) for item, prompt in asked if prompt.yes]
        as_json = [(item, prompt) for item, prompt in asked if not prompt.yes]
        verdicts: list[Any] = yield from judge.ask(verdict_type, [_question(*pair) for pair in as_json])
        for (item, _), verdict in zip(as_json, verdicts, strict=True):
            decision = None if verdict.value is None else bool(astuple(verdict.value)[0])
            judgements[item.sample.id] = Judgement(decision, verdict.status)
        responses: Sequence[Response] = ()
        if in_words:
            sampling = Sampling(max_tokens=judge.MAX_TOKENS)
            responses = yield [
                Generate(prompt=_question(*pair), sampling=sampling, role="judge") for pair in in_words
            ]
        for (item, prompt), response in zip(in_words, responses, strict=True):
            judgements[item.sample.id] = _read(response, prompt.yes)
    return judgements


def _question(item: Answered[RgbInputs], prompt: JudgePrompt) -> tuple[Message, ...]:
    """The published scripts judge what their files hold: a Chinese answer without its spaces."""
    reply = item.responses[0].text
    if prompt.yes:
        reply = published_text(reply, str(item.sample.tags["lang"]))
    return user_prompt(prompt.prompt, QUERY=item.sample.inputs.query, REPLY=reply)


def _read(response: Response, yes: Sequence[str]) -> Judgement:
    """A verdict in words. One that was cut off counts only where it has said yes already."""
    if response.status in ("refused", "error"):
        return Judgement(None, response.status)
    decision = any(phrase in response.text for phrase in yes)
    if is_blank(response.text) or (response.status != "ok" and not decision):
        return Judgement(None, "unparsed")
    return Judgement(decision, "ok", response.text)
