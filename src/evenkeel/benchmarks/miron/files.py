"""MIRON's files: examples to read, and results to read and write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, UsageError
from evenkeel.files.tables import Row, read_rows
from evenkeel.messages import suggestion
from evenkeel.types import Record, Records

CATEGORIES = ("Morphology", "Facts", "Logic", "Noise")
LANGUAGES = {"en": ("en", "eng", "english"), "ru": ("ru", "rus", "russian")}


class Example(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text to continue, and how it goes on."""

    id: str
    prefix: str
    target: str
    category: str
    lang: str
    kind: str = ""
    twin: str = ""
    """The id of the same example without typos."""
    edits: int = 0
    edit_kinds: tuple[str, ...] = ()

    @property
    def edit(self) -> str:
        """The kind of all its typos, or `mixed`."""
        return self.edit_kinds[0] if len(set(self.edit_kinds)) == 1 else "mixed"


class Result(Struct, frozen=True, kw_only=True):
    """A line of a results file."""

    generated: str | None
    """None where the model gave no answer."""
    lev_score: float | None = None
    target_confidence: float | None = None


def read_examples(path: Path, lang: str | None = None) -> list[Example]:
    """The examples of a file: `prefix`, `target` and `category`, and what our own sets know besides."""
    examples = [example for example, _ in _rows_of(path, lang)]
    if not examples:
        raise DataError(path, "there is no example in it.")
    return examples


def _rows_of(path: Path, lang: str | None) -> Iterator[tuple[Example, Row]]:
    """The examples of a file with their rows; an id that comes again is an error."""
    fallback = language_of_name(path) or lang
    seen: set[str] = set()
    for number, row in enumerate(read_rows(path), 1):
        example = _example(row, number, fallback)
        if example.id in seen:
            raise row.error(f"the id '{example.id}' stands there twice; ids are unique.")
        seen.add(example.id)
        yield example, row


def read_results(path: Path, lang: str | None = None) -> list[tuple[Example, Result]]:
    """The lines of a results file: an example, what was generated, and the file's own scores."""
    results = []
    for example, row in _rows_of(path, lang):
        generated = None if row.fields.get("generated", "") is None else row.text("generated")
        scores = {name: value for name, value in row.fields.items() if value != ""}  # an empty cell of CSV
        try:
            result = msgspec.convert(scores | {"generated": generated}, Result, strict=False)
        except msgspec.ValidationError as error:
            raise row.invalid(error, scores) from None
        for name, score in (("lev_score", result.lev_score), ("target_confidence", result.target_confidence)):
            if score is not None and not 0 <= score <= 100:  # which is not so of what is no number
                raise row.error(f"the field '{name}' is {score}: a score from 0 to 100 is expected.")
        results.append((example, result))
    if not results:
        raise DataError(path, "there is no result in it.")
    return results


def _example(row: Row, number: int, lang: str | None) -> Example:
    prefix, target, category = (row.text(field) for field in ("prefix", "target", "category"))
    lang = str(row.fields.get("lang") or lang or "")
    if not prefix.strip():
        raise row.error("the prefix is empty: there is nothing to continue.")
    if not target.strip():
        raise row.error("the target is empty: there is nothing to compare with.")
    if category not in CATEGORIES:
        hint = suggestion(category, CATEGORIES)
        raise row.error(f"'{category}' is no category.{hint} There is: {', '.join(CATEGORIES)}.")
    if not lang:
        raise row.error(
            "the language is not told, neither by a field 'lang' nor by the file's name: give --lang."
        )
    known = {name: row.fields[name] for name in ("kind", "edits", "edit_kinds") if row.fields.get(name)}
    if isinstance(kinds := known.get("edit_kinds"), str):  # a cell of CSV
        known["edit_kinds"] = [kind.strip() for kind in kinds.split(",")]
    known |= {"id": _name(row, "id") or f"{lang}-{number}", "twin": _name(row, "twin")}
    given = {"prefix": prefix, "target": target, "category": category, "lang": lang}
    try:
        return msgspec.convert({**known, **given}, Example, strict=False)
    except msgspec.ValidationError as error:
        raise row.invalid(error, known) from None


def _name(row: Row, field: str) -> str:
    """An id, which may be a number; nothing where there is none."""
    value = row.fields.get(field)
    return "" if value is None else str(value)


def language_of_name(path: Path) -> str | None:
    """The one language that a file's name tells: `miron_ru.parquet`, `english-test.csv`."""
    words = re.split(r"[^a-z]+", path.stem.lower())
    told = [code for code, names in LANGUAGES.items() if set(names) & set(words)]
    return told[0] if len(told) == 1 else None


def told_apart(sets: Mapping[Path, Sequence[Example]]) -> list[Example]:
    """The examples of several files; where an id is in more than one, all carry their file's name."""
    found = [example for examples in sets.values() for example in examples]
    if len({example.id for example in found}) == len(found):
        return found
    return [
        msgspec.structs.replace(
            example,
            id=f"{path.stem}-{example.id}",
            twin=f"{path.stem}-{example.twin}" if example.twin else "",
        )
        for path, examples in sets.items()
        for example in examples
    ]


def choose(examples: Sequence[Example], limit: int | None) -> list[Example]:
    """`limit` examples of each language, as many of each category, in their own order.

    Of those with typos, the ones come first whose clean twins are chosen too.
    """
    if limit is None:
        return list(examples)
    chosen: set[tuple[str, str]] = set()
    for lang in dict.fromkeys(example.lang for example in examples):
        pools: defaultdict[str, list[Example]] = defaultdict(list)
        for example in examples:
            if example.lang == lang:
                pools[example.category].append(example)
        shares = _shares({category: len(pool) for category, pool in pools.items()}, limit)
        clean = {e.id for name, pool in pools.items() if name != "Noise" for e in pool[: shares[name]]}
        pools["Noise"].sort(key=lambda example: example.twin not in clean)
        chosen |= {(lang, e.id) for name, pool in pools.items() for e in pool[: shares.get(name, 0)]}
    return [example for example in examples if (example.lang, example.id) in chosen]


def _shares(sizes: dict[str, int], limit: int) -> dict[str, int]:
    """`limit` dealt out one by one, in turns, to categories that still have some."""
    shares = dict.fromkeys(sizes, 0)
    while limit > 0 and (open_ := [name for name in sizes if shares[name] < sizes[name]]):
        for name in open_[:limit]:
            shares[name] += 1
        limit -= len(open_)
    return shares


def check_langs(examples: Sequence[Example], langs: Sequence[str] | None) -> list[Example]:
    """The examples in the wanted languages; one that is not there is an error."""
    found = dict.fromkeys(example.lang for example in examples)
    for lang in langs or ():
        if lang not in found:
            hint = suggestion(lang, found)
            raise UsageError(f"the data has no examples in '{lang}'; it has: {', '.join(found)}.{hint}")
    return [example for example in examples if not langs or example.lang in langs]


def results_files(records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The run as published results files, one for each language, written as a stream."""
    for lang in dict.fromkeys(str(record.sample.tags["lang"]) for record in records()):
        yield (
            f"miron_{lang}.jsonl",
            (_result_line(record) for record in records() if record.sample.tags["lang"] == lang),
        )


def _result_line(record: Record) -> bytes:
    values, inputs = record.score.values, record.sample.inputs
    line: dict[str, Any] = {name: inputs[name] for name in ("prefix", "target", "category")}
    line["generated"] = record.score.detail["generated"]
    for name in ("lev_score", "target_confidence"):
        value = values.get(name)
        line[name] = None if value is None else round(value, 2)
    return msgspec.json.encode(line) + b"\n"
