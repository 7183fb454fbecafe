"""The words in which a question and its documents are put to a model, and to a judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files import datasets, package_data
from evenkeel.files.tables import read_text
from evenkeel.files.yamlfile import read_entries
from evenkeel.messages import explain
from evenkeel.text.prompts import fill
from evenkeel.types import Message

PUBLISHED = "config/instruction.yaml"


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
        """`closed` asks for what is known; a search that found nothing is asked about like any other."""
        if closed:
            return (Message("user", fill(self.closed or self.instruction, QUERY=query, DOCS="")),)
        asked = fill(self.instruction, QUERY=query, DOCS="\n".join(docs))
        return (Message("system", self.system), Message("user", asked))


def load_prompts(source: str) -> dict[str, Prompts]:
    """By language: our own wording, the published one from the fetched data, or a person's file."""
    if source == "own":
        return _parsed("prompts.yaml", package_data.read_text(__package__, "prompts.yaml"))
    path = datasets.published_path("rgb", PUBLISHED) if source == "published" else Path(source)
    return _parsed(path, read_text(path))


def _parsed(path: Path | str, content: str) -> dict[str, Prompts]:
    shape = "for each language (en, zh) a 'system' text and an 'instruction' with {DOCS} and {QUERY}"
    shape += ", and, if wanted, a text 'closed' with {QUERY}"
    prompts: dict[str, Prompts] = {}
    for line, lang, raw in read_entries(path, content) or ():
        if not lang:
            break
        if lang in prompts:
            raise DataError(path, f"the language '{lang}' is there twice.", line=line)
        try:
            prompts[lang] = msgspec.convert(raw, Prompts)
        except msgspec.ValidationError as error:
            fault = explain(error, raw)
            raise DataError(
                path, f"{fault.problem}. Expected {shape}.", line=line, where=fault.field
            ) from None
    if not prompts:
        raise DataError(path, f"Expected {shape}.")
    return prompts


REJECTION = """A model was asked a question together with documents. Decide whether its reply declines to \
answer, because the documents do not hold the answer or because it does not know. A reply that declines and \
then still offers an answer as its own does not decline.

Question: {QUERY}

Reply: {REPLY}"""

DETECTION = """A model was asked a question together with documents, some of which state something false. \
Decide whether its reply says that the documents (or one of them) are wrong, contain an error or contradict \
the facts.

Question: {QUERY}

Reply: {REPLY}"""


def for_judge(template: str, query: str, reply: str) -> tuple[Message, ...]:
    return (Message("user", fill(template, QUERY=query, REPLY=reply)),)
