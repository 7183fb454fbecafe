"""Asking by batches: the answers of a live run, whatever the server, the network or a kill do in between."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from batches import BatchServer, Fate
from commandline import command, sealegs
from models.hostile import Recorder
from sealegs.api.batch import with_batches
from sealegs.errors import BatchesPending, BudgetReached, ModelUnreachable, SealegsError, UsageError
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.models.openai import messages
from sealegs.models.openai.batches import protocols
from sealegs.models.openai.batches.stored import read_batches
from sealegs.models.openai.protocol import read_chat
from sealegs.models.registry import load_model
from sealegs.types import Generate, Message, Request, Response, Sampling
from suites import PATIENCE

KEY = "sk-loop-4f9a0c2d7b61e835"
BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALEGS_BATCH_POLL", "0")
    monkeypatch.setenv("LOOP_KEY", KEY)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as running:
        yield running


def chats(count: int, **sampling: Any) -> list[Request]:
    settings = Sampling(max_tokens=50, **sampling)
    return [
        Generate(prompt=(Message("system", "Be brief."), Message("user", f"Question {n}")), sampling=settings)
        for n in range(count)
    ]


def ask(
    server: BatchServer,
    folder: Path,
    requests: list[Request],
    *,
    provider: str = "openai",
    wait: bool = True,
    notes: Recorder | None = None,
    gate: RequestGate | None = None,
    **args: Any,
) -> dict[Request, Response]:
    gate = gate or RequestGate()
    live = load_model(f"{provider}:loop", base_url=server.url, api_key_env="LOOP_KEY", **args)
    model: Any = with_batches({"model": live}, frozenset({"model"}), folder, wait=wait)["model"]
    model.watch(notes or Recorder())
    model.count_with(gate, "model")
    try:
        return dict(model.answer(request for request in requests if gate.admit(request, wait=True)))
    finally:
        model.close()


def live_answers(requests: list[Request]) -> dict[Request, Response]:
    with BatchServer() as server:
        model = load_model("openai:loop", base_url=server.url, api_key_env="LOOP_KEY")
        return dict(model.answer(requests))


def fates(*first: Fate, batch: int = 0) -> Callable[[int, int], Fate]:
    """These of the first requests of one batch; all others are answered."""
    return lambda number, position: first[position] if number == batch and position < len(first) else "ok"


def test_each_provider_gets_its_key_in_its_own_header(server: BatchServer, tmp_path: Path) -> None:
    ask(server, tmp_path / "a", chats(1), provider="openai")
    assert {sent.get("authorization") for sent in server.headers} == {f"Bearer {KEY}"}
    server.headers.clear()
    ask(server, tmp_path / "b", chats(1), provider="anthropic")
    assert {sent.get("x-api-key") for sent in server.headers} == {KEY}
    assert not [sent for sent in server.headers if "authorization" in sent]


@BOTH
def test_failures_that_may_pass_go_into_another_batch(
    server: BatchServer, tmp_path: Path, provider: str
) -> None:
    server.fate = fates("500", "ok", "429", "expired", "missing", "broken", "page", "twice", "strange")
    requests = chats(9)
    assert ask(server, tmp_path, requests, provider=provider) == live_answers(requests)
    assert [len(batch.requests) for batch in server.batches] == [9, 7]


@BOTH
@pytest.mark.parametrize(("result", "batches"), [("400", 1), ("500", 4)])
def test_a_failure_that_stays_is_a_failed_answer(
    server: BatchServer, tmp_path: Path, provider: str, result: Fate, batches: int
) -> None:
    server.fate = lambda batch, position: result if batch or not position else "ok"
    requests = chats(3)
    answers = ask(server, tmp_path, requests, provider=provider)
    assert len(server.batches) == batches
    assert answers[requests[0]].status == "error"
    assert "the keel is cracked" in answers[requests[0]].reason
    assert {answers[request].status for request in requests[1:]} == {"ok"}


def test_a_batch_that_is_refused_shows_why(server: BatchServer, tmp_path: Path) -> None:
    server.refused = {0: [{"code": "invalid_json_line", "message": "This line is no JSON.", "line": 2}]}
    problem = r"batch refused: line 2: This line is no JSON\. The same command"
    with pytest.raises(ModelUnreachable, match=problem):
        ask(server, tmp_path, chats(2))
    assert len(server.batches) == 1


def test_what_was_cancelled_is_handed_in_only_by_another_command(server: BatchServer, tmp_path: Path) -> None:
    server.fate = fates("cancelled", "ok")
    requests = chats(2)
    with pytest.raises(SealegsError, match="it was cancelled"):
        ask(server, tmp_path, requests)
    assert len(server.batches) == 1
    answers = ask(server, tmp_path, requests)
    assert {answer.status for answer in answers.values()} == {"ok"}
    assert [len(batch.requests) for batch in server.batches] == [2, 1]


def test_a_redirect_is_not_followed(server: BatchServer, tmp_path: Path) -> None:
    with BatchServer() as thief:
        server.redirect = f"{thief.url}/files/x/content"
        with pytest.raises(ModelUnreachable, match="302 Found: it redirects to"):
            ask(server, tmp_path, chats(1))
        assert thief.requests == 0


def test_a_refusal_teaches_how_requests_are_written(server: BatchServer, tmp_path: Path) -> None:
    server.behaviour.wants_completion_tokens = "Unsupported parameter: 'max_tokens'."
    requests = chats(3)
    assert ask(server, tmp_path, requests) == live_answers(requests)
    assert [len(batch.requests) for batch in server.batches] == [3, 3]
    assert server.batches[1].requests[0]["body"]["max_completion_tokens"] == 50


def test_requests_are_divided_by_number_and_by_size() -> None:
    class Small(protocols.OpenAIBatches):
        most_requests, most_bytes = 3, 100

    lines = [(str(number), b"x" * (90 if number == 5 else 10)) for number in range(8)]
    parts = [names for names, _ in protocols.portions(Small(), lines)]
    assert parts == [["0", "1", "2"], ["3", "4"], ["5"], ["6", "7"]]


@BOTH
def test_a_step_that_fails_once_is_taken_again(server: BatchServer, tmp_path: Path, provider: str) -> None:
    server.behaviour.script = ("429", "ok", "503", "ok") * 3
    requests = chats(3)
    assert ask(server, tmp_path, requests, provider=provider) == live_answers(requests)
    assert len(server.batches) == 1
    assert server.statuses[429] + server.statuses[503] >= 4


@BOTH
def test_no_wait_ends_when_all_is_handed_in(server: BatchServer, tmp_path: Path, provider: str) -> None:
    requests = chats(3)
    with pytest.raises(BatchesPending, match="0 of 3 done"):
        ask(server, tmp_path, requests, provider=provider, wait=False)
    answers = ask(server, tmp_path, requests, provider=provider)
    assert answers == live_answers(requests)
    assert len(server.batches) == 1


def test_what_is_handed_in_is_counted_by_the_start_that_reads_it(server: BatchServer, tmp_path: Path) -> None:
    gate = RequestGate(Limits(max_requests=3))
    with pytest.raises(BatchesPending):
        ask(server, tmp_path, chats(3), wait=False, gate=gate)
    assert len(ask(server, tmp_path, chats(3), gate=gate)) == 3
    assert gate.requests == 3


@BOTH
@pytest.mark.parametrize("fault", [{"drop_created": 1}, {"fail_created": 500}, {"fail_created": 504}])
def test_a_batch_that_may_have_been_created_is_not_created_again(
    server: BatchServer, tmp_path: Path, provider: str, fault: dict[str, int]
) -> None:
    vars(server).update(fault)
    with pytest.raises(ModelUnreachable, match="Whether the batch was created is not known"):
        ask(server, tmp_path, chats(3), provider=provider)
    assert len(server.batches) == 1


@BOTH
@pytest.mark.parametrize(
    ("result", "problem"),
    [("page", "without any line of its batch"), ("401", "HTTP 401: the keel is cracked")],
)
def test_where_nothing_is_answered_no_further_batch_is_paid_for(
    server: BatchServer, tmp_path: Path, provider: str, result: Fate, problem: str
) -> None:
    server.fate = lambda batch, position: result
    with pytest.raises(ModelUnreachable, match=problem):
        ask(server, tmp_path, chats(3), provider=provider, retries=1)
    assert len(server.batches) == 1


def test_a_further_batch_and_its_unusable_results_count(server: BatchServer, tmp_path: Path) -> None:
    server.fate = fates("500", "ok")
    live = load_model("openai:loop", base_url=server.url, api_key_env="LOOP_KEY")
    model: Any = with_batches({"model": live}, frozenset({"model"}), tmp_path, wait=True)["model"]
    gate = RequestGate(Limits(max_requests=2))
    model.count_with(gate, "model")
    answers = []
    with pytest.raises(BudgetReached):
        for _, answer in model.answer(request for request in chats(2) if gate.admit(request, wait=True)):
            answers.append(answer.status)
    model.close()
    assert answers == ["ok"]
    assert len(server.batches) == 1


def test_answers_that_were_read_and_not_stored_are_read_again(server: BatchServer, tmp_path: Path) -> None:
    server.fate = fates("400")
    requests = chats(3)
    first = ask(server, tmp_path, requests)
    again = ask(server, tmp_path, requests)  # as after a kill before the journal was written
    assert again == live_answers(requests)
    assert first[requests[1]] == again[requests[1]]
    assert [len(batch.requests) for batch in server.batches] == [3, 1]  # only what had failed


def test_a_batch_that_is_gone_is_named_with_what_to_remove(server: BatchServer, tmp_path: Path) -> None:
    with pytest.raises(BatchesPending):
        ask(server, tmp_path, chats(2), wait=False)
    server.batches.clear()
    with pytest.raises(ModelUnreachable, match=r"remove .*batches\.json"):
        ask(server, tmp_path, chats(2))


# Anthropic's messages


def test_a_chat_becomes_a_message() -> None:
    chat: dict[str, Any] = {
        "model": "claude",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Because"},
        ],
        "max_completion_tokens": 64,
        "temperature": 1.5,
        "stop": ["END", "\n"],
        "seed": 3,
    }
    assert messages.message_body(chat, max_temperature=1.0) == {
        "model": "claude",
        "system": "Be brief.",
        "messages": chat["messages"][1:],
        "max_tokens": 64,
        "temperature": 1.0,
        "stop_sequences": ["END"],
    }
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert "temperature" not in messages.message_body({**chat, "thinking": thinking})


def test_a_message_is_read_as_a_chat_reply() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 5}
    blocks = [{"type": "thinking", "thinking": "hm"}, *({"type": "text", "text": text} for text in "ab")]
    for stop_reason, status in (("end_turn", "ok"), ("max_tokens", "truncated"), ("refusal", "refused")):
        message = {"type": "message", "content": blocks, "stop_reason": stop_reason, "usage": usage}
        response = read_chat(messages.chat_reply(msgspec.json.encode(message)))
        assert (response.status, response.text, response.reasoning) == (status, "ab", "hm")
        assert (response.tokens_in, response.tokens_out) == (12, 5)


# Whole runs

RUN: dict[str, Any] = {"limit": 3, "lang": "en", "progress": False}


@BOTH
def test_a_run_by_batches_has_the_records_of_a_live_run(
    server: BatchServer, tmp_path: Path, provider: str
) -> None:
    server.fate = fates("500", "expired", "ok")
    about = {"model_args": {"api_key_env": "LOOP_KEY"}, **RUN}
    with BatchServer() as other:
        live = sl.run("rgb", f"{provider}:loop", out=tmp_path / "live", base_url=other.url, **about)
    # A run that was begun live goes on by batches: only what is missing is handed in.
    with pytest.raises(sl.SealegsError, match="stopped at --max-requests 2"):
        sl.run("rgb", f"{provider}:loop", out=tmp_path / "run", base_url=server.url, max_requests=2, **about)
    batched = sl.run(
        "rgb", f"{provider}:loop", batch=True, out=tmp_path / "run", base_url=server.url, **about
    )
    assert [len(batch.requests) for batch in server.batches] == [other.answered.total() - 2, 2]
    assert list(batched.records()) == list(live.records())
    assert batched.summary == live.summary


def test_a_limit_in_dollars_holds_before_anything_is_handed_in(server: BatchServer, tmp_path: Path) -> None:
    with pytest.raises(sl.SealegsError, match="stopped at --max-usd"):
        sl.run(
            "rgb", "openai:loop", batch=True, base_url=server.url, model_args={"api_key_env": "LOOP_KEY"},
            out=tmp_path / "run", max_usd=1e-9, price_in=1.0, price_out=1.0, **RUN,
        )  # fmt: skip
    assert server.batches == []


def test_a_dry_run_shows_the_price_of_batches() -> None:
    live = sl.dry_run("rgb", "openai:gpt-4o-mini", limit=3)
    batched = sl.dry_run("rgb", "openai:gpt-4o-mini", limit=3, batch=True)
    assert live.usd
    assert batched.usd == pytest.approx(live.usd / 2)


def test_a_provider_without_batches_is_refused_with_those_that_have() -> None:
    with pytest.raises(UsageError, match="has no batches. Available: openai:, anthropic:, groq:"):
        sl.dry_run("rgb", "mistral:small", batch=True)
    with pytest.raises(UsageError, match="batches only answer chats"):
        sl.dry_run("miron", "openai:gpt-4o-mini", batch=True)
    with pytest.raises(UsageError, match="wait=False goes with batch"):
        sl.run("rgb", "openai:gpt-4o-mini", wait=False)


def test_a_judge_is_asked_by_batches_too(server: BatchServer, tmp_path: Path) -> None:
    about = {"model_args": {"api_key_env": "LOOP_KEY"}, "base_url": server.url, **RUN}
    server.behaviour.record = True
    judge = f"anthropic:judge?base_url={server.url}&api_key_env=LOOP_KEY"
    run = sl.run("rgb", "openai:loop", batch=True, out=tmp_path, judge=judge, **about)
    kinds = [batch.id.partition("_")[0] for batch in server.batches]
    assert kinds[0] == "batch"
    assert set(kinds[1:]) == {"msgbatch"}
    assert run.summary
    assert server.bodies == []  # none went live


def arguments(server: BatchServer, provider: str, folder: Path) -> tuple[object, ...]:
    return (
        "run", "rgb", "--batch", "--model", f"{provider}:loop", "--base-url", server.url, "--model-arg",
        "api_key_env=LOOP_KEY", "--limit", 3, "--lang", "en", "--out", folder,
    )  # fmt: skip


@pytest.mark.parametrize(("provider", "moment"), [("openai", "creating"), ("anthropic", "waiting")])
def test_a_process_that_is_killed_leaves_its_batch_to_the_next(
    server: BatchServer, tmp_path: Path, provider: str, moment: str
) -> None:
    """One that was being created is not known, and is asked for again: the worst that a kill costs."""
    server.stall, server.hold = moment == "creating", moment == "waiting"
    folder = tmp_path / "run"
    process = subprocess.Popen(command(*arguments(server, provider, folder)), stderr=subprocess.DEVNULL)
    assert (server.created if server.stall else server.looked).wait(PATIENCE)
    process.kill()
    process.wait()
    server.stall = server.hold = False
    [batch] = read_batches(folder)
    assert bool(batch.id) == (moment == "waiting")
    assert sealegs("resume", folder).code == 0
    assert sl.load_run(folder).headline.coverage == 1
    assert len(server.batches) == (1 if moment == "waiting" else 2)


def test_stopping_leaves_the_batches_and_says_how_to_go_on(server: BatchServer, tmp_path: Path) -> None:
    server.hold = True
    asked = arguments(server, "openai", tmp_path / "run")
    process = subprocess.Popen(command(*asked), stderr=subprocess.PIPE, text=True)
    assert server.looked.wait(PATIENCE)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Batches keep running at the provider: batch_0." in errors
    assert f"answers with `sealegs resume {tmp_path / 'run'}`" in " ".join(errors.split())
    ended = sealegs(*asked, "--batch", "submit")
    assert ended.code == 0
    assert "batch batch_0 (in_progress): 0 of" in ended.stdout
    assert len(server.batches) == 1
