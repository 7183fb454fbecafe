"""A model tried out: one small request of each kind that a benchmark would send, and what came of it."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from sealegs.api.setup import with_base_url
from sealegs.errors import ModelUnreachable, SealegsError, UsageError
from sealegs.files.package_data import read_json
from sealegs.harness.model import HasNotes, Model, addresses_of
from sealegs.harness.registry import list_benchmarks, load_benchmark
from sealegs.models.registry import check_spec, load_model, runtime_options, split_spec
from sealegs.text.answers import IN_REASONING, is_blank
from sealegs.text.judge import read, schema_of
from sealegs.types import (
    Capability,
    Embed,
    Generate,
    LogLikelihood,
    Message,
    ModelRef,
    Request,
    Response,
    Sampling,
)

State: TypeAlias = Literal["ok", "not supported", "failed", "unclear"]

PATIENCE = {"retries": 2, "timeout": 60.0}
"""Options of a server's backend, where they are not given: someone waits for the table."""
REFUSALS = ("HTTP 400", "HTTP 404", "HTTP 405", "HTTP 415", "HTTP 422", "HTTP 501")
"""How the reason of a failure begins where a server does not take such a request."""
FAILURES = ("HTTP", "timeout", "no connection", "connection lost", "broken reply", "web page")
"""How the reason of any other failure begins."""
MAX_TOKENS = 48
LONGEST_ANSWER_CHARS = 200
"""Characters of an answer or a message that are shown."""


class TrialPrompts(Struct, frozen=True):
    """What is asked, from `trial.json`."""

    chat: str
    repeats: str
    text: str
    embed: str
    judge: str


class Trial(Struct, frozen=True, kw_only=True):
    """What came of the requests of one kind, or of all for one benchmark."""

    name: str
    state: State
    detail: str


class ModelTrial(Struct, frozen=True, kw_only=True):
    """Everything that was tried."""

    model: str
    addresses: list[str]
    enough: bool
    """Whether the model answers chats, which most benchmarks need."""
    latency_s: float | None
    """The median over the texts that were generated."""
    trials: list[Trial]
    benchmarks: list[Trial]
    """Whether each can be run with the model."""
    notes: list[str]


MOST_REQUESTS = 9
"""Chat, two repeats, structured output, plain text, three for log-probabilities, embedding."""


class _Verdict(Struct, frozen=True):
    """The form of an answer that is asked for."""

    verdict: Literal["yes", "no"]


def try_model(
    spec: str, *, model_args: Mapping[str, Any] | None = None, base_url: str | None = None
) -> ModelTrial:
    """Try a model out: `try_model("groq:openai/gpt-oss-20b").trials`.

    ModelUnreachable where the server is not there, or refuses the first request of all.
    """
    ref = with_base_url({"model": ModelRef(spec, dict(model_args or {}))}, base_url)["model"]
    check_spec(ref.spec, ref.args)
    known = runtime_options(split_spec(spec)[0].partition(":")[0])
    patient = {name: value for name, value in PATIENCE.items() if name in known}
    with contextlib.closing(load_model(ref.spec, **{**patient, **ref.args})) as model:
        return _Trying(model).all()


class _Unanswered(SealegsError):
    """A request of a trial ended in an error."""


class _Trying:
    """The model under trial, and what was measured so far."""

    def __init__(self, model: Model) -> None:
        self._prompts = read_json(__package__, "trial.json", type=TrialPrompts)
        self._model = model
        self._seconds: list[float] = []
        self._thinking = Trial(name="thinking", state="unclear", detail="")

    def all(self) -> ModelTrial:
        self._model.probe(frozenset())
        trials = [self._tried("chat", "generate", self._chat)]
        enough = trials[0].state == "ok"
        if enough:
            trials += [
                self._thinking,
                self._tried("repeats", "generate", self._repeats),
                self._tried("structured output", "generate", self._structured),
            ]
        trials += [
            self._tried("plain text", "generate", self._text),
            self._tried("log-probabilities of the prompt", "loglikelihood", self._logprobs),
            self._tried("embeddings", "embed", self._embed),
            self._batch(),
        ]
        states = {trial.name: trial.state for trial in trials}
        return ModelTrial(
            model=str(self._model.identity()["spec"]),
            addresses=addresses_of(self._model),
            enough=enough,
            latency_s=statistics.median(self._seconds) if self._seconds else None,
            trials=trials,
            benchmarks=[_enough_for(name, states) for name in list_benchmarks()],
            notes=self._model.notes() if isinstance(self._model, HasNotes) else [],
        )

    def _ask(self, request: Request) -> Response:
        """An answer; an error where there is none."""
        began = time.monotonic()
        [(_, response)] = self._model.answer([request])
        if response.status == "error":
            raise _Unanswered(response.reason)
        if isinstance(request, Generate):
            self._seconds.append(time.monotonic() - began)
        return response

    def _tried(self, name: str, needs: Capability, attempt: Callable[[], tuple[State, str]]) -> Trial:
        """One kind of request. What fails here says nothing of the others, but for the first of all."""
        if needs not in self._model.capabilities:
            offers = ", ".join(sorted(self._model.capabilities)) or "nothing"
            return Trial(name=name, state="not supported", detail=f"the model offers: {offers}")
        try:
            state, detail = attempt()
        except SealegsError as error:
            if name == "chat":
                raise
            detail = str(error.__cause__ or error)
            failed = detail.startswith(FAILURES) and not detail.startswith(REFUSALS)
            state = "failed" if failed else "not supported"
        return Trial(name=name, state=state, detail=_short(detail))

    def _chat(self) -> tuple[State, str]:
        """Chat, without which the rest cannot be judged."""
        try:
            response = self._ask(_chat(self._prompts.chat))
        except _Unanswered as error:
            name = split_spec(str(self._model.identity()["spec"]))[0].partition(":")[2]
            if name and name in str(error) and "model" in str(error).lower():
                raise ModelUnreachable(f"The server has no model '{name}'. {error}") from None
            return "failed", str(error)
        self._thinking = _thinking(response)
        if response.status in ("ok", "truncated") and not is_blank(response.text):
            return "ok", response.text
        thought = response.reasoning or IN_REASONING in response.reason
        remedy = " (--model-arg reasoning_tokens=8192 gives it tokens to think with)" if thought else ""
        return "failed", f"{response.status}: {response.reason or 'nothing in the answer'}{remedy}"

    def _repeats(self) -> tuple[State, str]:
        requests = [_chat(self._prompts.repeats, temperature=1.0, repeat=n) for n in (0, 1)]
        first, second = map(self._ask, requests)
        if first.text != second.text:
            return "ok", "two answers at temperature 1 differ"
        return "failed", "two answers at temperature 1 are equal: repeats would measure nothing"

    def _structured(self) -> tuple[State, str]:
        """An answer in the form of a JSON schema, as judges are asked for it."""
        response = self._ask(_chat(self._prompts.judge, schema=schema_of(_Verdict)))
        notes = self._model.notes() if isinstance(self._model, HasNotes) else []
        if problem := next(
            (note for note in notes if "JSON schema" in note or "response_format" in note), ""
        ):
            return "not supported", problem
        verdict = read(_Verdict, response)
        if verdict.value is None:
            return "failed", f"the answer is not of the form asked for ({verdict.reason}): {response.text}"
        return "ok", response.text

    def _batch(self) -> Trial:
        """Whether --batch can be used; nothing is sent."""
        access = getattr(self._model, "batch_access", None)
        taken = access is not None and access() is not None
        return Trial(
            name="batch",
            state="ok" if taken else "not supported",
            detail="--batch" if taken else "its provider is not known to have batches",
        )

    def _text(self) -> tuple[State, str]:
        response = self._ask(Generate(prompt=self._prompts.text, sampling=Sampling(max_tokens=8)))
        if response.status in ("ok", "truncated"):
            return "ok", f"{self._prompts.text}{response.text}"
        return "not supported", response.reason

    def _logprobs(self) -> tuple[State, str]:
        self._model.probe(frozenset({"loglikelihood"}))
        response = self._ask(LogLikelihood(prefix=self._prompts.text, continuation=" blue"))
        if response.logprobs is None:
            return "not supported", response.reason
        return "ok", f"{sum(response.logprobs.values):.2f} nats for ' blue'"

    def _embed(self) -> tuple[State, str]:
        response = self._ask(Embed(text=self._prompts.embed))
        if response.vector is None:
            return "not supported", response.reason
        return "ok", f"{len(response.vector) // 4:,} dimensions"


def _chat(text: str, *, temperature: float = 0.0, repeat: int = 0, schema: str = "") -> Generate:
    sampling = Sampling(temperature=temperature, max_tokens=MAX_TOKENS)
    return Generate(prompt=(Message("user", text),), sampling=sampling, repeat=repeat, schema=schema)


def _thinking(response: Response) -> Trial:
    """Whether the model was seen to think before it answered."""
    if response.reasoning:
        return Trial(name="thinking", state="ok", detail="it thinks, and shows what")
    if IN_REASONING in response.reason:
        return Trial(name="thinking", state="ok", detail="it thinks, and does not show what")
    return Trial(name="thinking", state="unclear", detail="none was seen before a short answer")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_ANSWER_CHARS else f"{line[: LONGEST_ANSWER_CHARS - 1]}…"


NEEDS: dict[Capability, str] = {
    "generate": "chat",
    "loglikelihood": "log-probabilities of the prompt",
    "embed": "embeddings",
}
"""By capability of the role `model`: what was tried for it."""


def _enough_for(name: str, states: Mapping[str, State]) -> Trial:
    """Whether what works is enough for the model under test of a benchmark, or for its helpers."""
    try:
        roles = load_benchmark(name, {}).roles
    except UsageError as error:  # a benchmark of the person's own, with options that must be given
        return Trial(name=name, state="unclear", detail=str(error))
    needs = [NEEDS[need] for need in sorted(roles.get("model", ())) if need in NEEDS]
    if NEEDS["loglikelihood"] in needs:  # such a benchmark continues plain texts
        needs = ["plain text" if need == "chat" else need for need in needs]
    lacking = [need for need in needs if states.get(need) != "ok"]
    if not needs:
        uses = {"a judge": states.get("chat"), "an embedder": states.get("embeddings")}
        fit = [use for use, state in uses.items() if state == "ok"]
        detail = f"as {' or '.join(fit)}" if fit else "neither as a judge nor as an embedder"
        return Trial(name=name, state="ok" if fit else "not supported", detail=detail)
    if lacking == [NEEDS["loglikelihood"]]:
        return Trial(name=name, state="ok", detail=f"without {lacking[0]}")
    if lacking:
        return Trial(name=name, state="not supported", detail=f"lacks: {', '.join(lacking)}")
    if states.get("repeats") == "failed":
        return Trial(name=name, state="unclear", detail="repeats do not differ: a cache or a fixed seed?")
    return Trial(name=name, state="ok", detail="")
