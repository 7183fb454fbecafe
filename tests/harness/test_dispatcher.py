"""The path of a request: its key stays with it, nothing is sent twice, and what was received is stored."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import sealegs as sl
from loopback import Loopback
from models.hostile import Recorder
from runs import run_small
from scripted import Scripted
from sealegs.errors import BudgetReached, DataError, ModelUnreachable, StorageError, UsageError
from sealegs.harness.control import interrupt
from sealegs.harness.dispatcher import Dispatcher
from sealegs.harness.gate import RequestGate, Ticket
from sealegs.harness.limits import Limits
from sealegs.harness.progress import Progress
from sealegs.journal.database import JournalUsage
from sealegs.journal.journal import Journal
from sealegs.models.openai.background import Outbox
from sealegs.models.registry import load_model
from sealegs.report.formats.subjects import sampling
from sealegs.text.answers import IN_REASONING
from sealegs.types import Capability, Embed, Generate, Message, Request, Response, Sampling
from suites import PATIENCE

pytestmark = pytest.mark.slow


def ask(number: int, **more: Any) -> Generate:
    prompt = (Message("user", f"{number} words to read here"),)
    return Generate(prompt=prompt, sampling=Sampling(max_tokens=100), **more)


class PlugIn:
    """A model of someone else's, which answers each request by a rule, a few at a time."""

    capabilities: frozenset[Capability] = frozenset({"generate"})

    def __init__(self, *, copies: bool = False, fails: int = -1, ahead: int = 4) -> None:
        self.asked: Counter[Request] = Counter()
        self._copies = copies
        self._fails = fails
        self._ahead = ahead

    def identity(self) -> dict[str, Any]:
        return {"spec": "plug:in"}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe."""

    def close(self) -> None:
        """Nothing to close."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        read: list[Request] = []
        for request in requests:
            self.asked[request] += 1
            read.append(request)
            if len(read) == self._ahead:
                yield from map(self._answer, read)
                read.clear()
        yield from map(self._answer, read)

    def _answer(self, request: Request) -> tuple[Request, Response]:
        same = msgspec.json.decode(msgspec.json.encode(request), type=Generate) if self._copies else request
        if isinstance(request, Generate) and request.prompt[0].content.startswith(f"{self._fails} "):  # type: ignore[union-attr]
            return same, Response(status="error", reason="HTTP 500", tokens_in=5, tokens_out=5)
        return same, Response(status="ok", text="a keel", tokens_in=5, tokens_out=5)


@contextmanager
def dispatching(
    path: Path, model: Any, *, gate: RequestGate | None = None, progress: Progress | None = None
) -> Iterator[Dispatcher]:
    with closing(Journal(path / "journal.sqlite")) as journal:
        yield Dispatcher(
            journal, {"model": model.identity()}, opener=lambda role: model, gate=gate or RequestGate(),
            progress=progress or Progress(),
        )  # fmt: skip


def dispatch(path: Path, model: Any, count: int, **settings: Any) -> list[Response]:
    requests = [ask(number) for number in range(count)]
    with dispatching(path, model, **settings) as dispatcher:
        return dispatcher.answer(requests)


def stored(path: Path, model: Any, count: int) -> int:
    with dispatching(path, model) as dispatcher:
        return count - dispatcher.count_missing("model", [ask(number) for number in range(count)])


def test_it_says_how_many_requests_are_equal(tmp_path: Path) -> None:
    watcher = Recorder()
    with dispatching(tmp_path, PlugIn(), progress=watcher) as dispatcher:
        for numbers in ([0, 1, 2, 1, 1], [3, 4]):
            dispatcher.ask("model", lambda numbers=numbers: map(ask, numbers))  # type: ignore[misc]
    assert watcher.notes == ["asking: 3 of 5 requests differ; equal ones are asked once"]


def test_a_model_may_answer_with_an_equal_copy(tmp_path: Path) -> None:
    model = PlugIn(copies=True)
    gate = RequestGate(Limits(max_usd=0.0024, price_out=1.0))  # a few at once, so that each must be settled
    responses = dispatch(tmp_path, model, 100, gate=gate)
    assert [response.status for response in responses] == ["ok"] * 100
    assert set(model.asked.values()) == {1}


def test_equal_requests_with_different_keys_are_asked_one_after_the_other(tmp_path: Path) -> None:
    """A key has the digits of a number as they were given."""
    samplings = Sampling(temperature=0), Sampling(temperature=0.0), Sampling()
    same = [Generate(prompt=(Message("user", "a"),), sampling=sampling) for sampling in samplings]
    with dispatching(tmp_path, PlugIn()) as dispatcher:
        responses = dispatcher.answer([*same, ask(1)])
    assert [response.status for response in responses] == ["ok"] * 4


def test_an_answer_to_what_was_not_asked_is_an_error(tmp_path: Path) -> None:
    class Confused(PlugIn):
        def _answer(self, request: Request) -> tuple[Request, Response]:
            return ask(-1), Response(status="ok", text="a keel")

    with pytest.raises(UsageError, match="Confused answered a request that it was not asked"):
        dispatch(tmp_path, Confused(), 3)


def test_what_failed_is_not_sent_again_in_this_start_however_tight_the_limit(tmp_path: Path) -> None:
    """Room for one request at a time: each waits until the one before is paid for."""
    limits = Limits(max_usd=150e-6, price_out=1.0)
    model = PlugIn(fails=3)
    responses = dispatch(tmp_path, model, 8, gate=RequestGate(limits))
    assert [response.status for response in responses] == ["ok"] * 3 + ["error"] + ["ok"] * 4
    assert set(model.asked.values()) == {1}
    healthy = PlugIn()  # the next start asks it again, and is not blocked
    assert {response.status for response in dispatch(tmp_path, healthy, 8, gate=RequestGate(limits))} == {
        "ok"
    }
    assert list(healthy.asked) == [ask(3)]


def test_requests_wait_for_the_money_that_others_leave_over(tmp_path: Path) -> None:
    gate = RequestGate(Limits(max_usd=380e-6, price_out=1.0))  # 100 tokens each, of which 5 are used
    with Loopback(words=4) as server:
        model = load_model("openai:loop", base_url=server.url, concurrency=8)
        responses = dispatch(tmp_path, model, 30, gate=gate)
        assert server.peak <= 3
    assert [response.status for response in responses] == ["ok"] * 30


def test_a_prompt_with_half_a_character_is_named(tmp_path: Path) -> None:
    with (
        dispatching(tmp_path, PlugIn()) as dispatcher,
        pytest.raises(DataError, match="half a character"),
    ):
        dispatcher.answer([Generate(prompt="half \ud83d", sampling=Sampling())])


class InterruptedOnce(Progress):
    """Interrupts as Ctrl-C would, while the first answer is drawn."""

    def answered(self, response: Response, *, usd: float) -> None:
        self.answered = Progress().answered  # type: ignore[method-assign]
        raise KeyboardInterrupt


def test_ctrl_c_while_an_answer_is_drawn_counts_it_once(tmp_path: Path) -> None:
    gate = RequestGate(Limits(max_usd=1.0, price_in=1.0, price_out=1.0))
    with pytest.raises(KeyboardInterrupt):
        dispatch(tmp_path, PlugIn(ahead=1), 1, gate=gate, progress=InterruptedOnce())
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        assert journal.usage() == {"model": JournalUsage(1, 5, 5)}
    assert gate.usd == pytest.approx(10e-6)
    assert gate.reserved_usd == pytest.approx(0)


def test_a_journal_that_cannot_be_written_ends_the_stream(tmp_path: Path) -> None:
    """What the model reads in a thread of its own is not admitted any further."""
    closed: list[bool] = []

    class Closing(PlugIn):
        def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
            try:
                yield from super().answer(requests)
            finally:
                closed.append(True)

    with dispatching(tmp_path, Closing(ahead=1)) as dispatcher, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher.journal, "put", full_disk)
        with pytest.raises(StorageError) as raised:
            dispatcher.answer([ask(number) for number in range(3)])
        assert closed == [True], raised  # the error, which holds the stream, is still there


def full_disk(*_: object) -> None:
    raise StorageError("no room")


def test_what_failed_while_scoring_is_not_sent_again_in_this_start(tmp_path: Path) -> None:
    """Scoring that fails is tried again for each sample and each group."""
    model = PlugIn(fails=1)
    with dispatching(tmp_path, model) as dispatcher:
        for _ in range(3):
            responses = dispatcher.answer([ask(0), ask(1)])
            assert [response.status for response in responses] == ["ok", "error"]
    assert set(model.asked.values()) == {1}


class Announcing(RequestGate):
    """A gate that says when it is asked."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.asked = threading.Event()

    def admit(self, request: Request, *, wait: bool) -> Ticket | None:
        self.asked.set()
        return super().admit(request, wait=wait)


def test_a_run_that_waits_for_the_money_of_others_can_be_stopped(tmp_path: Path) -> None:
    shared = RequestGate(Limits(max_usd=150e-6), owner="the suite")
    assert RequestGate(Limits(price_out=1.0), shared=shared).admit(ask(0), wait=False)
    gate = Announcing(Limits(price_out=1.0), shared=shared)
    ended = threading.Event()

    def run() -> None:
        with Loopback() as server, pytest.raises(KeyboardInterrupt):
            dispatch(tmp_path, load_model("openai:loop", base_url=server.url), 2, gate=gate)
        ended.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert gate.asked.wait(PATIENCE)
    interrupt(thread)
    assert ended.wait(PATIENCE)


class Interrupting(Progress):
    """Interrupts as Ctrl-C would, at the first answer, when all others have been received."""

    def __init__(self, received: threading.Event) -> None:
        self._received = received

    def answered(self, response: Response, *, usd: float) -> None:
        assert self._received.wait(PATIENCE)
        self.answered = Progress().answered  # type: ignore[method-assign]
        raise KeyboardInterrupt


def test_ctrl_c_loses_no_answer_that_was_received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received, numbers, put = threading.Event(), count(1), Outbox.put

    def counted(outbox: Outbox[Any], item: Any) -> None:
        put(outbox, item)
        if next(numbers) == 24:
            received.set()

    monkeypatch.setattr(Outbox, "put", counted)
    with Loopback() as server:
        model = load_model("openai:loop", base_url=server.url, concurrency=64)
        with pytest.raises(KeyboardInterrupt):
            dispatch(tmp_path, model, 24, progress=Interrupting(received))
        assert server.requests == 24  # fewer than hold the model up where nobody reads them
    assert stored(tmp_path, model, 24) == 24


def test_ctrl_c_stays_ctrl_c_where_what_was_received_is_all_reasoning(tmp_path: Path) -> None:
    class Thinks(PlugIn):
        def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
            thought = Response(status="truncated", reasoning="Let me see", reason=f"length {IN_REASONING}")
            read = list(requests)
            with suppress(KeyboardInterrupt):
                yield read.pop(), thought
            for request in read:
                yield request, thought

    with pytest.raises(KeyboardInterrupt):
        dispatch(tmp_path, Thinks(), 30, progress=InterruptedOnce())
    assert stored(tmp_path, PlugIn(), 30) == 30


class Pauses(Progress):
    """The numbers of requests that waited to be tried again."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def retrying(self, count: int) -> None:
        self.counts.append(count)


def test_no_pause_is_waited_out_for_a_try_that_the_limit_forbids(tmp_path: Path) -> None:
    pauses, gate = Pauses(), RequestGate(Limits(max_requests=1))
    with Loopback(always=503, retry_after="1") as server:
        model = load_model("openai:loop", base_url=server.url)
        with pytest.raises(BudgetReached, match="stopped at --max-requests 1"):
            dispatch(tmp_path, model, 1, gate=gate, progress=pauses)
    assert server.requests == 1
    assert not pauses.counts


class InterruptingAt(Progress):
    """Interrupts as Ctrl-C would at an answer, by its number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def answered(self, response: Response, *, usd: float) -> None:
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


def test_a_request_that_was_not_sent_when_a_run_was_stopped_is_not_counted(tmp_path: Path) -> None:
    """One that the server refused pauses, and those after it wait for the end of that pause."""
    with Loopback(script=("429",), retry_after="60") as server:
        model = load_model("openai:loop", base_url=server.url, concurrency=4)
        with pytest.raises(KeyboardInterrupt):
            dispatch(tmp_path, model, 24, progress=InterruptingAt(3))
        with closing(Journal(tmp_path / "journal.sqlite")) as journal:
            assert journal.usage()["model"].requests == server.requests


class Broken(PlugIn):
    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        raise UsageError("no key")


@pytest.mark.parametrize("unread", [ask(0), Embed(text="a keel", role="model")])
def test_a_request_that_no_model_has_read_is_not_counted(unread: Request, tmp_path: Path) -> None:
    gate = RequestGate(Limits(max_requests=1))
    with dispatching(tmp_path, Broken(), gate=gate) as dispatcher, pytest.raises(UsageError, match="no key"):
        dispatcher.answer([unread])
    assert gate.requests == 0


@pytest.mark.parametrize("reply", ["<think>Let me see…", "<think>Let me see", "<think>Let me see.</think>"])
def test_a_model_that_only_thinks_is_stopped_after_twenty_replies(
    reply: str, questions: Path, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"data": questions, "levels": None, "repeats": None}
    with Scripted(lambda prompt: reply) as server:
        with pytest.raises(UsageError, match=r"are all reasoning.*reasoning_tokens=8192"):
            run_small("mirae", tmp_path / "run", server, concurrency=4, **settings)
        before = server.requests
        assert before >= 20  # how many more are under way by then is the machine's to decide
        with pytest.raises(UsageError, match="are all reasoning") as raised:
            run_small("mirae", tmp_path / "run", server, concurrency=4, **settings)
        assert server.requests == before
        assert "resume" not in str([raised.value, *getattr(raised.value, "__notes__", ())])
    with Scripted(lambda prompt: "<think>Let me see…") as server:
        for limit, error in ((12, BudgetReached), (None, UsageError)):
            with pytest.raises(error):
                run_small(
                    "mirae", tmp_path / "counted", server, concurrency=1, max_requests=limit, **settings
                )
        assert server.answered.total() <= 21  # one may be under way
    first = iter(["A keel."])
    with Scripted(lambda prompt: next(first, "<think>Let me see…")) as server:
        run = run_small("mirae", tmp_path / "other", server, concurrency=1, **settings)
    assert run.headline.coverage < 0.1


def test_every_call_counts_trials_and_embeddings_too(questions: Path, tmp_path: Path) -> None:
    """Over all starts: what a server sees is never more than the limit."""
    with Loopback() as server:
        for limit in (15, 30):
            with pytest.raises(BudgetReached, match=f"requests {limit}"):
                run_small("miron", tmp_path / "miron", server, limit=20, max_requests=limit)
            assert server.requests == limit
    with Loopback() as server, pytest.raises(BudgetReached):
        run_small("mirae", tmp_path / "mirae", server, data=questions, repeats=5, limit=1, max_requests=5)
    assert server.requests == 5


@pytest.mark.parametrize("behaviour", [{}, {"logprobs": "missing"}])
def test_a_finished_run_tries_no_server_out(tmp_path: Path, behaviour: dict[str, Any]) -> None:
    """Also one that continued without log-probabilities: the server is gone when it is run again."""
    with Loopback(**behaviour) as server:
        first = run_small("miron", tmp_path / "run", server)
    again = run_small("miron", tmp_path / "run", server)
    assert first.summary == again.summary
    with pytest.raises(ModelUnreachable):
        run_small("miron", tmp_path / "run", server, model_args={"retries": 0}, fresh=True)


class Router(Loopback):
    """A server that refuses a temperature, and whose replies come from several backends."""

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        if body.temperature is not None:
            raise web.HTTPBadRequest(text='{"error": {"message": "temperature is not supported"}}')
        reply = msgspec.json.decode(super()._answer(path, body, key))
        model = f"embed-{self.requests % 2}" if path.endswith("embeddings") else "loop"
        return msgspec.json.encode({**reply, "model": model, "provider": f"host-{self.requests % 2}"})


def test_several_backends_are_noted_and_a_refused_setting_is_not_exported(
    questions: Path, tmp_path: Path
) -> None:
    with Router() as server:
        run = run_small(
            "mirae", tmp_path / "run", server, data=questions, levels="1-2", repeats=5, concurrency=1,
            embedder="openai:embed?embed_batch=1",
        )  # fmt: skip
    for scored in (run, sl.rescore(run.path, progress=False)):
        assert "2 models: embed-0, embed-1" in str(scored.spec.provenance["notes"])
    assert "2 models: embed-0, embed-1" in (run.path / "report.html").read_text()
    notes = run.spec.provenance["notes"]
    assert any("backends" in note and "from host-0, from host-1" in note for note in notes["model"])
    assert any("2 models: embed-0, embed-1" in note for note in notes["embedder"])
    assert "temperature" in run.spec.options
    assert "temperature" not in sampling(run.spec)
    assert sampling(run.spec)["max_tokens"] == run.spec.options["max_tokens"]


def test_runs_that_overlap_leave_the_garbage_collector_as_it_was(tmp_path: Path) -> None:
    before, barrier = gc.get_threshold(), threading.Barrier(2)

    class Meeting(Progress):
        def phase(self, title: str, *, total: int, done: int) -> None:
            barrier.wait(PATIENCE)

    def run(name: str) -> None:
        (tmp_path / name).mkdir()
        dispatch(tmp_path / name, PlugIn(), 200, progress=Meeting())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, ("one", "two")))
    assert gc.get_threshold() == before
