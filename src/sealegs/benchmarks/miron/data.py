"""MIRON's data: what a record holds, the examples, and results to read and write as published.

An example, a line of a data file (prefix, target and category are published, the rest is ours):

    {"id":"en-noise-0041","prefix":"THe four Beatles weere John, Paul, George and","target":" Ringo",
     "category":"Noise","lang":"en","kind":"culture","twin":"en-facts-0222","edits":2,
     "edit_kinds":["case","double"],"edited":"function","accepted":[" Ringo Starr"]}

`wrong` lists continuations that are not right, for a choice by log-likelihood; TokSuite's rows are read as
they are (`toksuite`). A result, a line of `export/miron_en.jsonl`, as published:

    {"prefix":"I saw one wug. Then I saw two","target":" wugs","category":"Morphology","generated":" wug",
     "lev_score":80.0,"target_confidence":60.0}
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sealegs.benchmarks.miron.matching import changed, language, script_of, with_clean_versions
from sealegs.benchmarks.miron.toksuite import as_example
from sealegs.errors import DataError
from sealegs.files.package_data import read_json
from sealegs.files.tables import Row, read_rows
from sealegs.harness.data import Data
from sealegs.harness.inputs import Inputs, RowText
from sealegs.harness.published import Recorded
from sealegs.page.format import nouns
from sealegs.text.word_splitting import UNSPACED
from sealegs.types import Logprobs, Record, Records, Response, Sample, Tag

CATEGORIES = ("Morphology", "Facts", "Logic", "Noise")
"""The published ones. A file may have others."""
ATTACHED = ".,;:!?…)]»”-–"
"""Characters before which no space need come."""
ATTACHING = "-–—([«“\"'/"
"""Characters after which none need come."""
LANGUAGES = {"en": ("en", "eng", "english"), "ru": ("ru", "rus", "russian")}
OTHER_CODES = {"pes": "fa", "fas": "fa", "tur": "tr", "ita": "it", "zho": "zh"}
"""Of languages with three letters, as in `pes_Arab`."""


class MironInputs(Inputs, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked: a text to continue, and how it goes on."""

    not_asked: ClassVar[Set[str]] = frozenset(("published", "baseline"))
    """What a results file says of the answer, and what is made from the other samples."""

    prefix: str
    target: str
    category: str
    kind: str
    clean_id: str
    """The id of the same example without typos; empty where it has none."""
    accepted: tuple[str, ...] = ()
    """Further right continuations, each with its leading space, as the target has."""
    wrong: tuple[str, ...] = ()
    """Continuations that are not right, to choose the target from."""
    baseline: str = ""
    """A continuation that needs no model (`baseline.py`); empty where there is none."""
    no_logprobs: bool = False
    """Whether the recorded file has no confidence at all: none is missing then."""
    repeat: int = 0
    """The number of the row among the recorded ones of the same prefix, each of which has its own answer."""
    published: dict[str, float] | None = None
    """The scores of the results file that it was read from; None where the model is asked."""

    def row(self, tags: Mapping[str, Tag]) -> RowText:
        typos = f", {nouns(int(tags['edits']), 'typos')}" if "edits" in tags else ""
        return RowText(self.prefix, self.target, f"{tags['category']}{typos}")

    def targets(self) -> list[str]:
        return [self.target]


class MironDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept with the score of an example."""

    generated: str | None
    """The continuation that was scored; None where there is no answer."""
    tokens: tuple[str, ...] | None = None
    """The tokens of the target."""


MironRecord: TypeAlias = Record[MironInputs, MironDetail]


class Example(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of a data file."""

    id: str
    prefix: str
    target: str
    category: str
    lang: str
    kind: str = ""
    clean_id: str = msgspec.field(name="twin", default="")
    """The id of the same example without typos."""
    edits: int = 0
    edit_kinds: tuple[str, ...] = ()
    edited: str = ""
    """The sort of words that the typos fall on: function or content."""
    accepted: tuple[str, ...] = ()
    """Further right continuations, each with its leading space, as the target has."""
    wrong: tuple[str, ...] = ()
    """Continuations that are not right, to choose the target from."""
    lang_by_script: bool = False
    """Whether the language is known by the letters alone, or against the file's name."""
    clean_by_text: bool = False
    """Whether the clean version was found by its text."""
    spaced: bool = False
    """Whether the space before its target was missing in the file."""


class _ResultRow(Struct, frozen=True, kw_only=True):
    """What a row of a results file has beside the example; None where the model gave no answer."""

    generated: str | None
    lev_score: float | None = None
    target_confidence: float | None = None


# Examples


def read_examples(path: Path, lang: str | None = None) -> list[Example]:
    """The examples of a file: `prefix`, `target` and `category`, and the further fields of generated sets."""
    examples = [example for example, _ in _rows(path, lang)]
    if not examples:
        raise DataError(path, "there is no example in it.")
    return examples


def read_files(data: Data) -> list[Example]:
    """The examples of several files in the chosen languages.

    Where an id is in more than one file, all ids carry their file's name.
    """
    by_file = {file.path: _spaced(read_examples(file.path, file.lang or data.only_lang)) for file in data}
    examples = [example for of_file in by_file.values() for example in of_file]
    if len({example.id for example in examples}) < len(examples):
        examples = _named_by_file(by_file)
    examples = with_clean_versions(examples)
    langs = data.choose_langs(example.lang for example in examples)
    return [example for example in examples if example.lang in langs]


def _spaced(examples: Sequence[Example]) -> list[Example]:
    """The examples of a file, with a space before each target where most of them lack it."""
    if 2 * sum(map(_lacks_space, examples)) <= len(examples):
        return list(examples)
    return [
        replace(
            example,
            target=f" {example.target}",
            accepted=tuple(f" {answer.lstrip()}" for answer in example.accepted),
            wrong=tuple(f" {answer.lstrip()}" for answer in example.wrong),
            spaced=True,
        )
        if _lacks_space(example)
        else example
        for example in examples
    ]


def _lacks_space(example: Example) -> bool:
    """Whether prefix and target meet without a space, in a script that has spaces and not at a mark."""
    last, first = example.prefix[-1], example.target[0]
    spaced = last.isspace() or first.isspace()
    attaching = last in ATTACHING and not re.search(
        r"\s[-–—]$", example.prefix
    )  # unlike a dash in a sentence
    return not (spaced or attaching or first in ATTACHED or UNSPACED.match(first))


def _named_by_file(by_file: Mapping[Path, Sequence[Example]]) -> list[Example]:
    """Examples of files whose ids collide, each id with its file's name. A clean version that its own file
    does not have is found by the text."""
    stems = len({path.stem for path in by_file}) == len(by_file)
    named = []
    for path, examples in by_file.items():
        name = path.stem if stems else f"{path.parent.name}/{path.stem}"
        clean = {example.id for example in examples if not changed(example)}
        for example in examples:
            clean_id = f"{name}-{example.clean_id}" if example.clean_id in clean else ""
            named.append(replace(example, id=f"{name}-{example.id}", clean_id=clean_id))
    return named


def facts_of(examples: Sequence[Example]) -> dict[str, Any]:
    """What the files of some examples did not state, as numbers of examples."""
    ids = {example.id for example in examples}
    noise = [example for example in examples if changed(example)]
    facts = {
        "lang_by_script": dict(Counter(example.lang for example in examples if example.lang_by_script)),
        "clean_by_text": sum(example.clean_by_text for example in examples),
        "no_clean_version": sum(not example.clean_id or example.clean_id not in ids for example in noise),
        "spaced": sum(example.spaced for example in examples),
    }
    return {name: count for name, count in facts.items() if count}


def _rows(path: Path, lang: str | None) -> Iterator[tuple[Example, Row]]:
    """The examples of a file with their rows; ids must be unique.

    The language of a row that does not state it is that of its script. Where it has no letters it is the one
    that the file's name or `lang` says, or that of most other rows.
    """
    stated = language_of_name(path) or (lang and code_of(lang))
    rows = [as_example(row, number) for number, row in enumerate(read_rows(path), 1)]
    scripts = [None if row.fields.get("lang") else script_of(_letters(row)) for row in rows]
    counts = Counter(script for script in scripts if script)
    default = stated or max(counts, key=lambda script: counts[script], default=None)
    ids: set[str] = set()
    for number, (row, script) in enumerate(zip(rows, scripts, strict=True), 1):
        lang_of_row = language(script, stated) if script else default
        if not script and any(map(str.isalpha, _letters(row))):  # of another script
            lang_of_row = stated
        by_script = not row.fields.get("lang") and lang_of_row != stated
        example = replace(_example(row, number, lang_of_row), lang_by_script=by_script)
        if example.id in ids:
            raise row.error(f"the id '{example.id}' appears twice; ids are unique.")
        ids.add(example.id)
        yield example, row


def _letters(row: Row) -> str:
    return "".join(text for name in ("prefix", "target") if isinstance(text := row.fields.get(name), str))


def _example(row: Row, number: int, fallback: str | None) -> Example:
    prefix, target, category = (row.text(field) for field in ("prefix", "target", "category"))
    lang = code_of(row.text("lang") if row.fields.get("lang") else fallback or "")
    if not prefix.strip():
        raise row.error("the prefix is empty: there is nothing to continue.")
    if not target.strip():
        raise row.error("the target is empty: there is nothing to compare with.")
    category = category.strip()
    if not category:
        raise row.error(f"the category is empty: name one, such as {', '.join(CATEGORIES)}.")
    if not lang:
        raise row.error(
            "the language is not stated, neither in a field 'lang' nor in the file's name: give --lang."
        )
    names = ("kind", "edits", "edit_kinds", "edited", "accepted", "wrong")
    fields = {name: row.fields[name] for name in names if row.fields.get(name)}
    if isinstance(kinds := fields.get("edit_kinds"), str):  # a cell of CSV
        fields["edit_kinds"] = [kind.strip() for kind in kinds.split(",")]
    for name in ("accepted", "wrong"):
        if isinstance(answers := fields.get(name), str):
            fields[name] = answers.split("|")
    # Ids may be numbers, 0 included.
    ids = {name: row.text(name) for name in ("id", "twin") if row.fields.get(name) is not None}
    fields |= {"id": f"{lang}-{number}"} | {name: text for name, text in ids.items() if text}
    fields |= {"prefix": prefix, "target": target, "category": category, "lang": lang}
    example: Example = _converted(row, fields, Example)
    # Another answer has the space before it that the target has.
    lead = target[: len(target) - len(target.lstrip())]
    others = {
        name: tuple(lead + answer.lstrip() for answer in getattr(example, name) if answer.strip())
        for name in ("accepted", "wrong")
    }
    return replace(example, **others)


def _converted(row: Row, fields: Mapping[str, Any], kind: Any) -> Any:
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise row.invalid(error, fields) from None


def code_of(lang: str) -> str:
    """The code of a language that is named: `English`, `EN`, `en-GB` and `eng_Latn` are `en`."""
    name = lang.strip().lower()
    first = re.split("[-_]", name)[0]
    return next((code for code, names in LANGUAGES.items() if first in names), OTHER_CODES.get(first, name))


def language_of_name(path: Path) -> str | None:
    """The one language in a file's name: `miron_ru.parquet`, `english-test.csv`."""
    words = set(re.split(r"[^a-z]+", path.stem.lower()))
    langs = [code for code, names in LANGUAGES.items() if words.intersection(names)]
    return langs[0] if len(langs) == 1 else None


@cache
def difficulties() -> dict[str, str]:
    """`easy` or `hard` by the digest of an example of the starter set: whether the embedded model was right
    (tools/miron_difficulty.py)."""
    digests = read_json(__package__, "difficulty.json", type=dict[str, list[str]])
    return {digest: difficulty for difficulty, several in digests.items() for digest in several}


def digest_of(prefix: str, target: str) -> str:
    return blake2b(f"{prefix}{target}".encode(), digest_size=5).hexdigest()


def make_sample(example: Example, **fields: Any) -> Sample[MironInputs]:
    tags: dict[str, Tag] = {"lang": example.lang, "category": example.category}
    if difficulty := difficulties().get(digest_of(example.prefix, example.target)):
        tags["difficulty"] = difficulty
    if example.clean_id and example.edits:
        tags["edits"] = example.edits
    if example.clean_id and (kinds := example.edit_kinds):
        tags["edit"] = kinds[0] if len(set(kinds)) == 1 else "mixed"
    if example.clean_id and example.edited:
        tags["edited"] = example.edited
    names = ("prefix", "target", "category", "kind", "clean_id", "accepted", "wrong")
    inputs = MironInputs(**{name: getattr(example, name) for name in names}, **fields)
    # An example with typos is not independent of its clean version: they are one group.
    return Sample(id=example.id, group=example.clean_id or example.id, tags=tags, inputs=inputs)


# Results


def read_results(path: Path, lang: str | None = None) -> tuple[Recorded, dict[str, Any]]:
    """The rows of a results file: an example, what was generated, and the scores of the file; and what the
    file did not state."""
    rows = list(_rows(path, lang))
    if not rows:
        raise DataError(path, "there is no result in it.")
    examples = with_clean_versions([example for example, _ in rows])
    results = [(example, _result(row)) for example, (_, row) in zip(examples, rows, strict=True)]
    # A file of a model without log-probabilities has no confidence at all: nothing is missing from that.
    no_logprobs = all(result.target_confidence is None for _, result in results)
    rows_of_prefix: Counter[str] = Counter()
    samples, responses = [], []
    for example, result in results:
        scores = {"lev_score": result.lev_score, "target_confidence": result.target_confidence}
        samples.append(
            make_sample(
                example,
                no_logprobs=no_logprobs,
                repeat=rows_of_prefix[example.prefix],
                published={name: score for name, score in scores.items() if score is not None},
            )
        )
        rows_of_prefix[example.prefix] += 1
        text = Response(status="ok", text=result.generated or "")
        generated = text if result.generated is not None else Response(status="error", reason="not recorded")
        responses.append([generated] if no_logprobs else [_logprobs(example, result), generated])
    return Recorded(path.stem, samples, responses), facts_of(examples)


def _result(row: Row) -> _ResultRow:
    generated = None if row.fields.get("generated", "") is None else row.text("generated")
    fields = {name: value for name, value in row.fields.items() if value != ""}  # an empty cell of CSV
    result: _ResultRow = _converted(row, fields | {"generated": generated}, _ResultRow)
    for name in ("lev_score", "target_confidence"):
        score = getattr(result, name)
        if score is not None and not 0 <= score <= 100:  # NaN is not
            raise row.error(f"the field '{name}' is {score}: a score from 0 to 100 is expected.")
    return result


def _logprobs(example: Example, result: _ResultRow) -> Response:
    """A recorded confidence as one token that gives it; the file does not have the real ones."""
    confidence = result.target_confidence
    if confidence is None:
        return Response(status="error", reason="not recorded")
    if confidence <= 0:
        return Response(status="ok", logprobs=Logprobs((), ()))
    return Response(status="ok", logprobs=Logprobs((example.target,), (math.log(confidence / 100),)))


def results_files(records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The run as published results files, one for each language, written as a stream."""
    for lang in dict.fromkeys(str(record.sample.tags["lang"]) for record in records()):
        yield (
            f"miron_{lang}.jsonl",
            (_result_line(record) for record in records() if record.sample.tags["lang"] == lang),
        )


def _result_line(record: MironRecord) -> bytes:
    inputs = record.sample.inputs
    line: dict[str, Any] = {
        "prefix": inputs.prefix,
        "target": inputs.target,
        "category": inputs.category,
        "generated": record.score.detail.generated,
    }
    for name in ("lev_score", "target_confidence"):
        value = record.score.values.get(name)
        line[name] = None if value is None else round(value, 2)
    return msgspec.json.encode(line) + b"\n"
