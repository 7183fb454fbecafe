"""What is wrong is said in our own words, with the name that was probably meant."""

from __future__ import annotations

import inspect
import pickle
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

import sealegs as sl
from sealegs.api.run import RUN_ARGUMENTS
from sealegs.errors import (
    CapabilityError,
    DataError,
    MissingExtra,
    ModelUnreachable,
    OptionError,
    SealegsError,
    UsageError,
    explain,
)
from sealegs.harness.limits import Limits
from sealegs.options import describe, parse


class Part(Struct, forbid_unknown_fields=True):
    size: int
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    names: Annotated[list[str], Meta(min_length=1)] = msgspec.field(default_factory=lambda: ["x"])
    way: Literal["up", "down"] = "up"


@pytest.mark.parametrize(
    ("raw", "field", "problem"),
    [
        ({"size": "x"}, "field '[0].size'", "expected a whole number, got 'x'"),
        ({}, "field '[0]'", "the field 'size' is missing"),
        ({"size": 1, "colour": 2}, "field '[0]'", "the field 'colour' is not known"),
        ({"size": 1, "share": -1}, "field '[0].share'", "must be at least 0"),
        ({"size": 1, "names": []}, "field '[0].names'", "must have at least 1 entries"),
        ({"size": 1, "way": "left"}, "field '[0].way'", "'left' is not one of the values that are allowed"),
    ],
)
def test_a_wrong_value_is_explained(raw: Any, field: str, problem: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert([raw], list[Part])
    fault = explain(caught.value, [raw])
    assert (fault.field, fault.problem) == (field, problem)


class Options(Struct, frozen=True, kw_only=True):
    samples: Annotated[int, Meta(ge=2)] = 5
    noise_rates: str = ""
    dtype: Literal["auto", "float32"] = "auto"


@pytest.mark.parametrize(
    ("given", "of", "in_python", "on_command_line"),
    [
        ({"samples": 1}, "it", "samples=1: must be at least 2 (it).", "--samples 1: must be at least 2."),
        (
            {"samples": "x"},
            "it",
            "samples=x: expected a whole number, got 'x' (it).",
            "--samples x: expected a whole number, got 'x'.",
        ),
        (
            {"dtype": "flaot32"},
            "the model 'hf:x'",
            "dtype=flaot32: must be one of: auto, float32 (the model 'hf:x').",
            "--model-arg dtype=flaot32: must be one of: auto, float32.",
        ),
    ],
)
def test_an_option_is_named_as_it_was_given(
    given: dict[str, Any], of: str, in_python: str, on_command_line: str
) -> None:
    with pytest.raises(OptionError) as caught:
        parse(Options, given, of=of, flag="--model-arg" if of.startswith("the model") else "")
    assert (str(caught.value), caught.value.on_command_line) == (in_python, on_command_line)


def test_an_unknown_option_lists_the_known_and_hides_its_value() -> None:
    with pytest.raises(
        UsageError, match="it has no option 'api_key'. It knows: samples, noise_rates"
    ) as caught:
        parse(Options, {"api_key": "sk-canary"}, of="it")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "start a cluster (ray start --head) and give --engine-arg address=HOST:PORT.",
        "/data/--mine/x.json: this is not JSON.",
        "the server said: unrecognized arguments: --enable-prompt-logprobs",
    ],
)
def test_a_message_is_shown_as_it_was_written(text: str) -> None:
    assert str(UsageError(text)) == UsageError(text).on_command_line == text


def errors() -> list[SealegsError]:
    return [
        DataError("a.jsonl", "this is not JSON", line=3, where="field 'x'"),
        OptionError("samples", "1", "must be at least 2", of="it"),
        MissingExtra("hf:", package="torch", install="pip install torch"),
        CapabilityError("cannot", lacking=frozenset({"embed"})),
        ModelUnreachable("gone"),
    ]


@pytest.mark.parametrize("error", errors(), ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_its_notes(error: SealegsError) -> None:
    error.add_note("Answers are saved.")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ({"benchmark": "mriae", "model": "embedded"}, "mirae"),
        ({"benchmark": "mirae", "model": "embeded"}, "embedded"),
        ({"benchmark": "mirae", "model": "embedded", "levles": "1"}, "levels"),
        ({"benchmark": "mirae", "model": "hf:x", "model_args": {"dtpye": "auto"}}, "dtype"),
        ({"benchmark": "multiview", "method": ["jugde:embedded"]}, "judge"),
        ({"benchmark": "miron", "model": "embedded", "engine": "locla"}, "local"),
    ],
)
def test_a_misspelt_name_in_python_is_answered_with_the_right_one(call: dict[str, Any], meant: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{meant}'\\?"):
        sl.run(**call)


def test_the_names_that_every_run_takes_are_all_known() -> None:
    names = set(inspect.signature(sl.run).parameters) - {"benchmark", "benchmark_options"}
    assert names == set(RUN_ARGUMENTS)
    assert {option.name for option in describe(Limits)} <= names
