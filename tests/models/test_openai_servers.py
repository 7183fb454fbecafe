"""Several servers of one model: requests are spread by free capacity, a dead server is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from models.hostile import Recorder, chat, free_port
from sealegs.errors import CapabilityError, ModelUnreachable
from sealegs.models.openai.servers import FAILURES_LEFT_OUT
from sealegs.types import LogLikelihood, Request


def chats(count: int) -> list[Request]:
    return [chat(f"question {number}", max_tokens=8) for number in range(count)]


def unused_url() -> str:
    """An address at which nothing listens."""
    return f"http://127.0.0.1:{free_port()}/v1"


def ask(*urls: str, requests: list[Request], **args: Any) -> tuple[Counter[str], list[str]]:
    """How the requests ended, each answered once, and what was noted."""
    model: Any = sl.load_model("openai:loop", base_url=",".join(urls), **args)
    watching = Recorder()
    model.watch(watching)
    answers = list(model.answer(requests))
    assert sorted(id(request) for request, _ in answers) == sorted(map(id, requests))
    return Counter(response.status for _, response in answers), watching.notes


def test_requests_are_spread_over_all_servers() -> None:
    with Loopback(latency=0.01) as one, Loopback(latency=0.01) as two:
        statuses, notes = ask(one.url, two.url, requests=chats(80), concurrency=4)
    assert statuses == {"ok": 80}
    assert notes == []
    assert one.requests + two.requests == 80
    assert min(one.requests, two.requests) >= 20
    assert max(one.peak, two.peak) <= 4


@pytest.mark.parametrize("behaviour", [None, {"always": 404}, {"always": 401}])
def test_a_server_that_is_dead_or_refuses_is_left_out(behaviour: dict[str, Any] | None) -> None:
    with Loopback(**(behaviour or {})) as other, Loopback() as alive:
        url = other.url if behaviour else unused_url()
        statuses, notes = ask(url, alive.url, requests=chats(30), concurrency=2)
    assert statuses == {"ok": 30}
    assert len([note for note in notes if url in note and "left out" in note]) == 1


def test_a_server_that_dies_in_mid_run_loses_nothing() -> None:
    with Loopback(dies_after=5) as dying, Loopback() as alive:
        statuses, notes = ask(dying.url, alive.url, requests=chats(60), concurrency=4)
    assert statuses == {"ok": 60}
    assert dying.statuses[200] == 5
    assert any(dying.url in note for note in notes)


def test_a_server_that_comes_back_is_asked_again() -> None:
    with Loopback(always=500) as broken, Loopback() as alive:

        def requests() -> Iterator[Request]:
            """Goes on until the server that comes back has answered, however long that takes."""
            for number, request in enumerate(chats(200_000)):
                if broken.statuses[500] >= FAILURES_LEFT_OUT:
                    broken.behaviour.always = 0
                if broken.statuses[200] and number > 100:
                    return
                yield request

        model = sl.load_model("openai:loop", base_url=f"{broken.url},{alive.url}", concurrency=2)
        statuses = Counter(response.status for _, response in model.answer(requests()))
    assert set(statuses) == {"ok"}
    assert broken.statuses[200] >= 1


def test_servers_that_all_refuse_or_are_dead_end_the_run() -> None:
    with Loopback(always=401) as one, Loopback(always=401) as two, pytest.raises(ModelUnreachable):
        ask(one.url, two.url, requests=chats(10))
    with pytest.raises(ModelUnreachable, match="no connection"):
        ask(unused_url(), unused_url(), requests=chats(10), retries=1)


def test_a_request_does_not_wait_for_a_server_that_asks_for_a_pause() -> None:
    script = ("ok", "ok", "ok", "ok", "500", "ok", "500")
    with Loopback(script=script) as failing, Loopback(always=429, retry_after="600") as overloaded:
        statuses, _ = ask(failing.url, overloaded.url, requests=chats(8), concurrency=1)
    assert statuses == {"ok": 8}
    assert (failing.requests, overloaded.requests) == (10, 1)


def test_a_request_that_no_server_takes_fails_alone() -> None:
    script = ("ok", "ok", "ok", "ok", "404")
    with Loopback(script=script) as one, Loopback(script=script) as two:
        model: Any = sl.load_model("openai:loop", base_url=f"{one.url},{two.url}", concurrency=1)
        statuses = [response.status for _, response in model.answer(chats(20))]
    assert statuses.count("ok") >= 19


def test_a_refused_request_fails_alone_and_once() -> None:
    with Loopback() as one, Loopback() as two:
        statuses, _ = ask(one.url, two.url, requests=[*chats(20), chat("[poison]")], concurrency=1)
    assert statuses == {"ok": 20, "error": 1}
    assert one.statuses[400] + two.statuses[400] == 1


def test_every_server_is_probed_for_log_probabilities() -> None:
    with Loopback() as sound, Loopback(logprobs="zero") as unsound:
        model = sl.load_model("openai:loop", base_url=f"{sound.url},{unsound.url}")
        with pytest.raises(CapabilityError) as raised:
            model.probe(frozenset({"loglikelihood"}))
    assert unsound.url in str(raised.value)
    assert sound.url not in str(raised.value)


def test_a_server_that_was_not_probed_is_not_asked() -> None:
    dead = unused_url()
    with Loopback() as sound:
        model: Any = sl.load_model("openai:loop", base_url=f"{dead},{sound.url}", retries=1)
        watching = Recorder()
        model.watch(watching)
        model.probe(frozenset({"loglikelihood"}))
        [(_, response)] = model.answer([LogLikelihood(prefix="the keel", continuation=" holds")])
    assert response.status == "ok"
    assert any(dead in note and "left out of this run" in note for note in watching.notes)


def test_the_command_takes_the_option_several_times(tmp_path: Path) -> None:
    with Loopback(latency=0.01) as one, Loopback(latency=0.01) as two:
        result = sealegs(
            "run", "rgb", "--model", "openai:loop", "--base-url", one.url, "--base-url", two.url,
            "--limit", 4, "--ability", "noise", "--out", tmp_path / "run", "--concurrency", 2,
        )  # fmt: skip
        assert result.code == 0, result.output
    run = sl.load_run(tmp_path / "run")
    assert run.spec.provenance["servers"]["model"] == [one.url, two.url]
    assert one.requests
    assert two.requests
