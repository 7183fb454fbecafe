"""Options: typed, described, and strict about names."""

from __future__ import annotations

from typing import Annotated

import pytest
from msgspec import Meta, Struct

from evenkeel.errors import UsageError
from evenkeel.options import RUNTIME, describe, identity_options, parse


class Options(Struct, frozen=True, kw_only=True):
    size: Annotated[int, Meta(ge=1, description="How large.")] = 3
    fast: Annotated[bool, Meta(description="In a hurry.", extra=RUNTIME)] = False
    name: Annotated[str | None, Meta(description="What it is called.")] = None


def test_strings_of_the_command_line_become_what_they_mean() -> None:
    assert parse(Options, {"size": "7", "fast": "true"}, of="it") == Options(size=7, fast=True)


def test_an_unknown_name_lists_the_known_ones_and_keeps_the_value_to_itself() -> None:
    with pytest.raises(UsageError, match=r"it has no option 'api_key'. It knows: size, fast, name") as caught:
        parse(Options, {"api_key": "sk-canary"}, of="it")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("value", ["many", "0"])
def test_a_bad_value_names_the_option(value: str) -> None:
    with pytest.raises(UsageError, match="size"):
        parse(Options, {"size": value}, of="it")


def test_what_changes_no_answer_is_no_part_of_an_identity() -> None:
    assert identity_options(Options(fast=True)) == {"size": 3, "name": None}


def test_descriptions_are_found_where_they_are_written() -> None:
    assert [(o.name, o.description, o.runtime) for o in describe(Options)] == [
        ("size", "How large.", False),
        ("fast", "In a hurry.", True),
        ("name", "What it is called.", False),
    ]
