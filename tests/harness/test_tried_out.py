"""What servers can is tried out once, when a run is begun, and whatever that sends counts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopback import Loopback
from runs import run_small
from sealegs.errors import BudgetReached, CapabilityError, ModelUnreachable, RunConflict
from sealegs.journal.recording import Recording

pytestmark = pytest.mark.slow

LIMIT: dict[str, Any] = {"limit": 20, "concurrency": 1}


def begin(folder: Path, server: Loopback, requests: int = 9) -> None:
    with pytest.raises(BudgetReached):
        run_small("miron", folder, server, max_requests=requests, **LIMIT)


def tries(folder: Path) -> int:
    with closing(Recording(folder / "journal.sqlite")) as recording:
        return recording.usage()["model"].requests


def test_a_resumed_run_tries_its_server_out_no_more(tmp_path: Path) -> None:
    with Loopback() as server:
        for limit in (9, 9, 10, 10):
            begin(tmp_path / "run", server, limit)
            assert server.requests == tries(tmp_path / "run") == limit


def test_another_run_in_the_folder_is_refused_before_anyone_is_asked(tmp_path: Path) -> None:
    with Loopback() as server:
        begin(tmp_path / "run", server)
        with pytest.raises(RunConflict, match="limit: 20 in that run, 3 here"):
            run_small("miron", tmp_path / "run", server, limit=3)
    assert server.requests == 9


@pytest.mark.parametrize(
    ("behaviour", "error"), [({"logprobs": "zero"}, CapabilityError), ({"always": 500}, ModelUnreachable)]
)
def test_another_server_is_tried_out_and_that_counts(
    tmp_path: Path, behaviour: dict[str, Any], error: type[Exception]
) -> None:
    with Loopback() as server:
        begin(tmp_path / "run", server)
    with Loopback(**behaviour) as other, pytest.raises(error) as raised:
        run_small("miron", tmp_path / "run", other, model_args={"retries": 1}, **LIMIT)
    assert any("Answers are saved" in note for note in raised.value.__notes__)
    assert tries(tmp_path / "run") == 9 + other.requests
    with Loopback() as third:
        run = run_small("miron", tmp_path / "run", third, **LIMIT)
    assert run.headline.coverage == 1
    assert tries(tmp_path / "run") == 9 + other.requests + third.requests


def test_of_several_servers_one_may_have_been_away_so_all_are_tried_out_again(tmp_path: Path) -> None:
    with Loopback() as sound, Loopback(logprobs="zero") as unsound:
        urls = f"{sound.url},{unsound.url}"
        unsound.behaviour.always = 503
        with pytest.raises(BudgetReached):
            run_small(
                "miron",
                tmp_path / "run",
                model=f"openai:loop?base_url={urls}&retries=0",
                max_requests=9,
                **LIMIT,
            )
        unsound.behaviour.always = 0
        with pytest.raises(CapabilityError, match="all zero"):
            run_small("miron", tmp_path / "run", model=f"openai:loop?base_url={urls}&retries=0", **LIMIT)
        assert sound.requests + unsound.requests == tries(tmp_path / "run")


def test_a_server_that_fails_while_it_is_tried_out_is_no_server_without_log_probabilities(
    tmp_path: Path,
) -> None:
    with Loopback(always=500) as server, pytest.raises(ModelUnreachable, match="log-likelihoods alone"):
        run_small("miron", tmp_path / "run", server, model_args={"retries": 1})
    assert not (tmp_path / "run").exists()
