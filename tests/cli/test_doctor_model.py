"""`doctor --model`: what works, what does not, and how a server that is hostile or absent is told."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from commandline import Outcome, sealegs
from dialects import PROVIDERS, ProviderServer, named_at
from models.tiny import tiny_model
from scripted import Scripted
from sealegs.api.trial import MOST_REQUESTS, ModelTrial
from sealegs.harness.registry import BENCHMARKS

pytestmark = pytest.mark.slow


def doctor(server: ProviderServer, name: str, folder: Path, *more: str) -> Outcome:
    """The doctor of a preset's model, whose server this is."""
    return sealegs("doctor", "--model", f"{name}:loop", *more, **named_at(name, server, folder))


def tried(done: Outcome) -> dict[str, str]:
    return {each.name: each.state for each in msgspec.json.decode(done.stdout, type=ModelTrial).trials}


def test_what_works_is_told_for_each_kind_of_request(tmp_path: Path) -> None:
    with ProviderServer(PROVIDERS["vllm"], words=40) as server:
        done = doctor(server, "vllm", tmp_path, "--json")
        sent = len(server.received)
    assert done.code == 0
    assert f"at most {MOST_REQUESTS} small requests" in done.stderr
    states = tried(done)
    assert states.pop("batch") == "not supported"
    assert states.pop("thinking") == "unclear"
    assert states.pop("structured output") == "failed"  # it is told in prose
    assert set(states.values()) == {"ok"}
    assert len(states) == 5
    trial = msgspec.json.decode(done.stdout, type=ModelTrial)
    assert sent <= MOST_REQUESTS
    assert trial.latency_s is not None
    enough = {each.name: each.state for each in trial.benchmarks}
    assert [enough[name] for name in BENCHMARKS] == ["ok"] * 4


@pytest.mark.parametrize(("answer", "state"), [('{"verdict":"no"}', "ok"), ("No, it is no fish.", "failed")])
def test_an_answer_in_the_form_of_a_schema_is_told_from_prose(answer: str, state: str) -> None:
    with Scripted(lambda _: answer) as server:
        done = sealegs("doctor", "--model", "openai:x", "--base-url", server.url, "--json")
    assert tried(done)["structured output"] == state


def test_what_a_provider_lacks_is_told_and_is_no_failure(tmp_path: Path) -> None:
    with ProviderServer(PROVIDERS["anthropic"], words=40) as server:
        done = doctor(server, "anthropic", tmp_path)
        states = tried(doctor(server, "anthropic", tmp_path, "--json"))
    assert done.code == 0
    assert states["chat"] == states["repeats"] == "ok"
    lacking = ("plain text", "log-probabilities of the prompt", "embeddings")
    assert {states[name] for name in lacking} == {"not supported"}
    for line in ("✓ mirae", "– miron", "✓ batch", "– structured output", "? thinking"):
        assert line in done.stdout


def test_repeats_that_are_equal_are_found_out(tmp_path: Path) -> None:
    with ProviderServer(PROVIDERS["sglang"], words=40, variants=1, logprobs="zero") as server:
        done = doctor(server, "sglang", tmp_path, "--json")
    states = tried(done)
    assert (done.code, states["repeats"]) == (0, "failed")
    assert states["log-probabilities of the prompt"] == "not supported"
    enough = {each.name: each.state for each in msgspec.json.decode(done.stdout, type=ModelTrial).benchmarks}
    assert enough["mirae"] == "unclear"


def test_a_model_that_answers_no_chat_is_not_enough(tmp_path: Path) -> None:
    with ProviderServer(PROVIDERS["vllm"], script=("400",) * 3) as server:
        done = doctor(server, "vllm", tmp_path, "--json")
    assert done.code == 1
    states = tried(done)
    assert states["chat"] == "failed"
    assert states["embeddings"] == "ok"
    assert "repeats" not in states


def test_a_server_that_is_busy_for_a_moment_lacks_nothing(tmp_path: Path) -> None:
    with ProviderServer(PROVIDERS["vllm"], words=40, script=("ok",) * 4 + ("503",)) as server:
        states = tried(doctor(server, "vllm", tmp_path, "--model-arg", "retries=0", "--json"))
    assert (states["chat"], states["plain text"]) == ("ok", "failed")


def test_a_server_that_is_not_reached_exits_with_3(tmp_path: Path) -> None:
    done = sealegs("doctor", "--model", "ollama:x?retries=0", OLLAMA_HOST="127.0.0.1:9")
    assert done.code == 3
    with ProviderServer(PROVIDERS["groq"], always=401) as server:
        assert doctor(server, "groq", tmp_path).code == 3


@pytest.mark.parametrize("status", ["400", "404"])
def test_a_wrong_name_of_a_model_is_said_once(status: str, tmp_path: Path) -> None:
    says = "The model `loop` does not exist"
    with ProviderServer(PROVIDERS["vllm"], fail=1.0, faults=(status,), says=says) as server:
        done = doctor(server, "vllm", tmp_path)
    assert done.code == 3
    assert done.output.count("The model `loop` does not exist") == 1
    assert "not supported" not in done.output
    assert server.requests == 1


@pytest.mark.full
def test_a_model_on_this_machine_can_be_tried(tmp_path: Path) -> None:
    states = tried(sealegs("doctor", "--model", f"hf:{tiny_model(tmp_path)}", "--json"))
    assert states["plain text"] == states["log-probabilities of the prompt"] == "ok"


# list models


def test_presets_are_listed_with_their_keys_set_or_not_set() -> None:
    done = sealegs("list", "models", GROQ_API_KEY="gsk-4f9a0c2d7b61e835aa", OLLAMA_HOST="gpu:9")
    assert "groq:NAME" in done.stdout
    assert "GROQ_API_KEY set" in done.stdout
    assert "MISTRAL_API_KEY not set" in done.stdout
    assert "http://gpu:9/v1, no key" in done.stdout
    assert "4f9a0c2d" not in done.output


def test_servers_are_asked_for_their_models(tmp_path: Path) -> None:
    names = ("loop", "a\u202eb", "\x1b[31mred")
    with ProviderServer(PROVIDERS["ollama"], models=names) as server:
        environment = named_at("ollama", server, tmp_path)
        # The other presets of this machine are nowhere, whatever else listens here.
        text = Path(environment["SEALEGS_CONFIG"])
        others = ("lmstudio", "llamacpp", "vllm", "sglang")
        text.write_text("".join(f'[presets.{name}]\nbase_url = "http://127.0.0.1:9/v1"\n' for name in others))
        shown = sealegs("list", "models", "--ask", **environment)
        listed = json.loads(sealegs("list", "models", "--ask", "--json", **environment).stdout)
    assert "    ollama:loop\n" in shown.stdout
    assert "\u202e" not in shown.stdout
    assert "\x1b" not in shown.stdout
    models = {provider["name"]: provider["models"] for provider in listed["providers"]}
    assert len(models["ollama"]) == 1
    assert models["vllm"] == models["groq"] == []
    assert "no connection" in shown.stdout
