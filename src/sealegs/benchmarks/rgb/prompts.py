"""RGB's prompts for models and judges: those of this package (`prompts.yaml`, `judge.json`), the published
ones, which are fetched, or a user's."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from sealegs.errors import DataError, explain
from sealegs.files import datasets, package_data
from sealegs.files.tables import read_text
from sealegs.files.yamlfile import read_entries
from sealegs.text.prompts import fill
from sealegs.types import Message

PUBLISHED_PROMPTS = "config/instruction.yaml"
PROMPTS_SHAPE = (
    "for each language (en, zh) a 'system' text and an 'instruction' with {DOCS} and {QUERY}, and, if "
    "wanted, a text 'closed' with {QUERY}"
)


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked in one language."""

    system: str
    instruction: str
    closed: str = ""
    """Asks without documents; empty: the instruction with none, and no system text, as published."""

    def __post_init__(self) -> None:
        for name in ("{DOCS}", "{QUERY}"):
            if name not in self.instruction:
                raise ValueError(f"the instruction lacks {name}")
        if self.closed and "{QUERY}" not in self.closed:
            raise ValueError("the text 'closed' lacks {QUERY}")

    def messages(self, query: str, docs: Sequence[str], *, closed: bool) -> tuple[Message, ...]:
        """`closed` asks for what is known. A search that found nothing is asked about like any other; where
        there is no text `closed`, as published: there no documents are no documents."""
        if closed or not (docs or self.closed):
            return (Message("user", fill(self.closed or self.instruction, QUERY=query, DOCS="")),)
        question = fill(self.instruction, QUERY=query, DOCS="\n".join(docs))
        return (Message("system", self.system), Message("user", question))


def load_prompts(source: str) -> dict[str, Prompts]:
    """By language: those of this package (`own`), the `published` ones from the fetched data, or a file's."""
    path = Path(source)
    if source == "own":
        path = package_data.data_path(__package__, "prompts.yaml")
    elif source == "published":
        path = datasets.published_path("rgb", PUBLISHED_PROMPTS)
    return _read_prompts(path)


class JudgePrompt(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a judge is asked about one answer."""

    prompt: str
    yes: tuple[str, ...] = ()
    """The verdict is yes where its text has one of these, to the letter, and no otherwise, as the published
    scripts read it. Empty: the verdict is asked for as JSON."""


class _JudgePrompts(Struct, frozen=True):
    """The data file: the prompts of this package, and where the published ones are."""

    own: dict[str, JudgePrompt]
    scripts: dict[str, str]
    yes: dict[str, tuple[str, ...]]


def load_judge_prompts(source: Literal["own", "published"]) -> dict[str, JudgePrompt]:
    """For `rejection` and `detection`: those of this package (`own`) or those of the fetched scripts."""
    data = _judge_data()
    if source == "own":
        return data.own
    return {
        name: JudgePrompt(_prompt_in(datasets.published_path("rgb", script)), data.yes[name])
        for name, script in data.scripts.items()
    }


def published_yes() -> dict[str, tuple[str, ...]]:
    """The texts by which the published scripts take a verdict on rejection or on detection for a yes."""
    return _judge_data().yes


def _judge_data() -> _JudgePrompts:
    return package_data.read_json(__package__, "judge.json", type=_JudgePrompts)


def _prompt_in(script: Path) -> str:
    """The text that the function `check` of a published script assigns to `prompt`; the script is parsed and
    never executed."""
    try:
        nodes = list(ast.walk(ast.parse(read_text(script))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = []
    checks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "check"]
    for node in (node for check in checks for node in ast.walk(check)):
        match node:
            case ast.Assign(targets=[ast.Name(id="prompt")], value=ast.Constant(value=str(text))):
                return text.replace("{question}", "{QUERY}").replace("{answer}", "{REPLY}")
    raise DataError(script, "no judge prompt was found in it. Run: sealegs data fetch rgb")


def _read_prompts(path: Path) -> dict[str, Prompts]:
    prompts: dict[str, Prompts] = {}
    for line, name, raw in read_entries(path, read_text(path)) or ():
        if not name:
            break
        try:
            prompts[name] = msgspec.convert(raw, Prompts)
        except msgspec.ValidationError as error:
            fault = explain(error, raw)
            problem = f"{fault.problem}. Expected {PROMPTS_SHAPE}."
            raise DataError(path, problem, line=line, where=fault.field) from None
    if not prompts:
        raise DataError(path, f"Expected {PROMPTS_SHAPE}.")
    return prompts
