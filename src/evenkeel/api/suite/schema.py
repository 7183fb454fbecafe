"""The JSON schema of a suite's file, with which editors complete and check it.

It is made from the types of the definition and from the options of the benchmarks, and ships as
`suite.schema.json` beside this file: `python -m evenkeel.api.suite.schema` writes it anew.
"""

from __future__ import annotations

from typing import Any

import msgspec

from evenkeel.api.suite.definition import Definition
from evenkeel.files.package_data import data_path, read_text
from evenkeel.harness.registry import BENCHMARKS, benchmark_class

FILE = "suite.schema.json"
EXAMPLE = "example.yaml"
TITLE = "A suite of Evenkeel"
SCALAR = ["string", "number", "boolean"]


def make_schema() -> bytes:
    """The schema as it follows from the types."""
    schema = msgspec.json.schema(Definition)
    parts = schema["$defs"]
    entry = parts["BenchmarkEntry"]
    entry["properties"]["benchmark"]["examples"] = list(BENCHMARKS)
    entry["allOf"] = []
    for name in BENCHMARKS:
        options = benchmark_class(name).Options
        parts[options.__name__] = _options(options)
        one = {"$ref": f"#/$defs/{options.__name__}"}
        either = {"anyOf": [one, {"type": "array", "items": one}]}
        entry["allOf"].append(
            {
                "if": {"properties": {"benchmark": {"const": name}}, "required": ["benchmark"]},
                "then": {"properties": {"options": either}},
            }
        )
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE, **schema}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def shipped_schema() -> str:
    """The schema that comes with the package."""
    return read_text(__package__, FILE)


def example() -> str:
    """A commented file that runs as it is, on the embedded models."""
    return read_text(__package__, EXAMPLE)


def _options(options: Any) -> dict[str, Any]:
    """A benchmark's options. Texts may be written as numbers, lists of one as their entry."""
    described = msgspec.json.schema(options)
    (part,) = described["$defs"].values()
    properties = {name: _loosened(each) for name, each in part["properties"].items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _loosened(option: dict[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = {key: option[key] for key in ("description", "default") if key in option}
    if option.get("type") == "string":
        return {**about, "type": SCALAR}
    if option.get("type") == "array":
        return {**about, "anyOf": [{"type": "array", "items": {"type": SCALAR}}, {"type": SCALAR}]}
    return option


if __name__ == "__main__":
    data_path("evenkeel.api.suite", FILE).write_bytes(make_schema())
