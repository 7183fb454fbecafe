"""Well-known servers: every entry is one that the registry takes, and no key is shown."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

import evenkeel as ek
from evenkeel.errors import UsageError
from evenkeel.models.presets import NO_KEY
from evenkeel.models.registry import check_spec, split_spec


@pytest.mark.parametrize("name", list(ek.presets()))
def test_a_preset_gives_specs_that_the_registry_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = ek.presets()[name]
    address = urlsplit(preset.base_url)
    assert preset.name == name
    assert 3 <= len(set(preset.models)) == len(preset.models) <= 9
    assert address.scheme == ("https" if preset.key else "http")
    assert bool(preset.key) == (address.hostname != "127.0.0.1")
    for model in preset.models:
        check_spec(preset.spec(model), {})
        bare, args = split_spec(preset.spec(model))
        assert bare == f"openai:{model}"
        assert args["base_url"] == preset.base_url
        assert args["api_key_env"] == (preset.key or NO_KEY)
    monkeypatch.delenv(preset.key or "NONE", raising=False)
    assert preset.key_is_set is not bool(preset.key)
    if preset.key:
        assert re.fullmatch(r"[A-Z]+_API_KEY", preset.key)
        monkeypatch.setenv(preset.key, "sk-secret")
        assert preset.key_is_set
        assert "sk-secret" not in repr(preset) + preset.spec("any")


def test_any_other_model_may_be_named_but_not_none() -> None:
    preset = ek.presets()["openrouter"]
    assert split_spec(preset.spec("org/name:free & fast"))[0] == "openai:org/name:free & fast"
    for name in (" ", "x?base_url=http://other/v1"):
        with pytest.raises(UsageError, match="give the name of a model"):
            preset.spec(name)


def test_the_list_given_is_the_callers_own() -> None:
    ek.presets().clear()
    assert "openai" in ek.presets()
