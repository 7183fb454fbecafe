"""Providers by name: each is a spec, a key goes only to its own host, and a person adds their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sealegs.api.setup import with_base_url
from sealegs.errors import DataError, UsageError
from sealegs.files import configuration
from sealegs.models.openai.backend import OpenAI
from sealegs.models.openai.endpoint import endpoints
from sealegs.models.presets import find_preset, presets
from sealegs.models.registry import load_model
from sealegs.types import ModelRef

KEY = "gsk-4f9a0c2d7b61e835aa"
Settings = Callable[[str], Path]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Write a person's settings."""

    def write(text: str) -> Path:
        path = tmp_path / "sealegs.toml"
        path.write_text(text)
        monkeypatch.setenv("SEALEGS_CONFIG", str(path))
        return path

    return write


def sent(spec: str, **args: str) -> dict[str, str]:
    """By address: the key that a model sends there."""
    model = load_model(spec, **args)
    assert isinstance(model, OpenAI)
    return {
        server.endpoint.shown: server.endpoint.headers.get("Authorization", "").removeprefix("Bearer ")
        for server in model._servers
    }


# Keys


ELSEWHERE = [
    "http://evil.example/v1",
    "https://api.groq.com.evil.example/v1",
    "http://api.groq.com/openai/v1",
    "https://api.groq.com:8443/openai/v1",
    "http://127.0.0.1:9/v1",
    "http://127.0.0.1:9/https://api.groq.com/v1",
    "http://127.0.0.1:9/v1,http://127.0.0.1:10/v1",
]
"""Addresses that are not Groq's, though some look like it."""


def test_a_key_goes_to_no_host_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for address in ELSEWHERE:
        assert not [value for value in sent("groq:x", base_url=address).values() if KEY in value], address


def test_a_key_goes_to_its_own_host_and_to_one_for_which_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    own = "https://api.groq.com/openai/v1"
    assert sent("groq:x") == {own: KEY}
    assert sent("groq:x", base_url="https://API.groq.com:443/other/v1").popitem()[1] == KEY
    assert sent("groq:x", base_url="http://127.0.0.1:9/v1", api_key_env="GROQ_API_KEY").popitem()[1] == KEY
    assert sent("groq:x", base_url=f"{own},http://127.0.0.1:9/v1") == {own: KEY, "http://127.0.0.1:9/v1": ""}
    assert sent("groq:x", api_key_env="") == {own: ""}
    assert set(sent("ollama:x", base_url="http://gpu.example:11434/v1").values()) == {""}


def test_a_provider_without_its_key_is_refused_another_host_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    for spec in ("groq:x?base_url=http://proxy.example/v1", "vllm:x?base_url=http://gpu.example:8000/v1"):
        load_model(spec).probe(frozenset())
    [elsewhere] = endpoints("http://proxy.example/v1", None, preset=find_preset("groq"))
    assert "GROQ_API_KEY goes to Groq alone" in elsewhere.key_advice(401)
    monkeypatch.delenv("GROQ_API_KEY")
    with pytest.raises(UsageError, match="set the environment variable GROQ_API_KEY"):
        load_model("groq:x").probe(frozenset())


def test_base_url_goes_to_local_models_before_providers() -> None:
    url = "http://127.0.0.1:9/v1"
    refs = {"model": ModelRef("openai:x"), "judge": ModelRef("anthropic:y"), "embedder": ModelRef("ollama:z")}
    assert [bool(ref.args) for ref in with_base_url(refs, url).values()] == [True, False, True]
    alone = with_base_url({"judge": ModelRef("anthropic:y")}, url)
    assert alone["judge"].args == {"base_url": url}
    named = with_base_url({"model": ModelRef("vllm:x?base_url=http://h/v1")}, url)
    assert named["model"].args == {}
    beside = with_base_url({**named, "judge": ModelRef("anthropic:y")}, url)
    assert beside["judge"].args == {"base_url": url}
    with pytest.raises(UsageError, match="goes with a model on a server"):
        with_base_url({"model": ModelRef("embedded")}, url)


# Addresses


HOSTS = {
    "gpu": "http://gpu:11434/v1",
    ":9000": "http://127.0.0.1:9000/v1",
    "0.0.0.0": "http://127.0.0.1:11434/v1",
    "https://gpu.example/": "https://gpu.example/v1",
    "[::1]:9": "http://[::1]:9/v1",
}


def test_ollama_is_found_where_its_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, address in HOSTS.items():
        monkeypatch.setenv("OLLAMA_HOST", host)
        assert endpoints(None, None, preset=find_preset("ollama"))[0].shown == address
    for host in ("gpu:port", "ftp://gpu", "http://[::1"):
        monkeypatch.setenv("OLLAMA_HOST", host)
        with pytest.raises(UsageError, match="OLLAMA_HOST"):
            load_model("ollama:x")


def test_azure_is_asked_at_the_address_of_ones_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="set AZURE_OPENAI_ENDPOINT"):
        load_model("azure:mine")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/")
    [server] = endpoints(None, None, preset=find_preset("azure"))
    assert (server.shown, server.headers["api-key"]) == ("https://me.openai.azure.com/openai/v1", KEY)
    [other] = endpoints("https://evil.example", None, preset=find_preset("azure"))
    assert KEY not in str(other.headers)


# A person's own


def test_a_person_adds_presets_and_changes_known_ones(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("LAB_KEY", "lab-4f9a0c2d7b61e835aa")
    settings(
        '[presets.lab]\nbase_url = "https://lab.example/v1"\nkey = "LAB_KEY"\n'
        'names = {seed = "random_seed"}\nsupports = {embeddings = false}\n\n'
        '[presets.groq]\nbase_url = "https://proxy.example/v1"\n'
        '[presets.ollama]\nextra_body = {keep_alive = "1h"}\n'
    )
    assert sent("lab:m") == {"https://lab.example/v1": "lab-4f9a0c2d7b61e835aa"}
    lab, groq = load_model("lab:m"), presets()["groq"]
    assert "embed" not in lab.capabilities
    assert lab.identity()["spec"] == "lab:m"
    assert groq.supports["rerank"] is False  # what is not written stays
    assert groq.key == ""  # but the key is Groq's, not the proxy's
    assert sent("groq:x") == {"https://proxy.example/v1": ""}
    with_extra = load_model("ollama:m").identity()
    settings("")
    assert with_extra["extra_body"] != load_model("ollama:m").identity()["extra_body"] == ""
    with pytest.raises(UsageError, match="unknown model 'lab:m'"):
        load_model("lab:m")


def test_a_preset_with_anthropics_interfaces_sends_what_these_want(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    settings('[presets.lab]\nbase_url = "https://lab.example/v1"\nkey = "LAB_KEY"\nbatches = "anthropic"\n')
    [server] = endpoints(None, None, preset=find_preset("lab"))
    assert (server.headers["x-api-key"], server.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "Authorization" not in server.headers


MISTAKES = [
    ("[presets.lab]\nbase_url = 'https://me:pw-4f9a0c2d@x/v1'\n", ", [presets.lab", "may not hold a user"),
    ("[presets.lab]\nbase_url = 'http://x'\nkey = 'sk-4f9a0c2d7b61e835'\n", ", [presets.lab", "variable"),
    ("[presets.lab]\nbase_url = 'http://x'\nbase_urk = 1\n", ", [presets.lab", "Did you mean 'base_url'"),
    ("[presets.openai]\nbase_url = 'http://x'\n", ", [presets.openai", "is taken"),
    ("[presets.lab]\nbase_url = \n", ": is not TOML", "at line 2"),
]


def test_a_mistake_in_the_settings_is_named_with_its_place(settings: Settings) -> None:
    for text, place, problem in MISTAKES:
        path = settings(text)
        with pytest.raises(DataError) as raised:
            presets()
        assert str(raised.value).startswith(f"{path}{place}"), text
        assert problem in str(raised.value)
        assert "4f9a0c2d" not in str(raised.value)


def test_settings_in_the_working_directory_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEALEGS_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    for name in ("sealegs.toml", "presets.toml", ".sealegs.toml"):
        Path(name).write_text('[presets.groq]\nbase_url = "http://evil.example/v1"\nkey = "GROQ_API_KEY"\n')
    assert list(sent("groq:x")) == ["https://api.groq.com/openai/v1"]
    assert tmp_path / "config" in configuration.config_path().parents
