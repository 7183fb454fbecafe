"""MIRAE's files: the questions, recorded answers in both published shapes, and the published results file."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.cache import slug
from evenkeel.files.jsonfile import convert, read_json
from evenkeel.messages import KINDS
from evenkeel.types import Record, Records, RunSpec

LEVELS = tuple(range(1, 8))
TARGETS = (30, 60, 120, 250, 500, 1000, 2000)
"""About how many tokens a prompt has at each level."""
LANGUAGES = {"en": "English", "ko": "Korean", "zh": "Chinese"}
METRICS = ("mean_similarity", "std_similarity", "max_similarity", "min_similarity")


class Question(Struct, frozen=True):
    """One question with its wording at every level that the file has."""

    id: str
    domain: str
    lang: str
    texts: dict[int, str]


class Prompted(Struct, frozen=True):
    """Recorded answers to one question at one level, with the file's own figures where it has any."""

    id: str
    domain: str
    level: int
    text: str
    responses: list[str]
    published: dict[str, float]


class Recording(Struct, frozen=True):
    """A file of recorded answers."""

    model: str
    lang: str
    prompts: list[Prompted]


class _Metadata(Struct, frozen=True):
    language: str = ""
    model: str = ""


class _QuestionFile(Struct):
    questions: list[dict[str, Any]]
    metadata: _Metadata = _Metadata()


class _LevelAnalysis(Struct):
    level: int
    question_text: str
    responses: list[str]
    similarity_analysis: dict[str, float | None] = {}


class _QuestionResult(Struct):
    question_id: int | str
    domain: str
    level_analyses: list[_LevelAnalysis]


class _ResultsFile(Struct):
    experiment_results: list[_QuestionResult]
    metadata: _Metadata = _Metadata()


class _LevelResponses(Struct):
    question_text: str
    responses: list[str]


class _QuestionResponses(Struct):
    question_id: int | str
    domain: str
    level_responses: dict[str, _LevelResponses]


def read_questions(path: Path, fallback: str | None = None) -> list[Question]:
    """The questions of a published (or built) question file, with whichever levels it has.

    `fallback` is the language of a file that does not state its own.
    """
    raw = read_json(path)
    if not isinstance(raw, dict) or "questions" not in raw:
        raise DataError(path, f"expected MIRAE questions: an object with 'questions'. {_seen(raw)}")
    file = convert(path, raw, _QuestionFile)
    lang = language_code(file.metadata.language) or language_of_name(path) or fallback
    if not lang:
        raise DataError(
            path, "the language is not stated in metadata.language or the file's name: give --lang."
        )
    questions = [_question(path, index, item, lang) for index, item in enumerate(file.questions)]
    for question_id, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise DataError(
                path, f"question_id {question_id} stands here {count} times; each must be unique."
            )
    return questions


def _question(path: Path, index: int, item: dict[str, Any], lang: str) -> Question:
    where = f"questions[{index}]"
    for name, kinds in (("question_id", (int, str)), ("domain", (str,))):
        if not isinstance(item.get(name), kinds):
            raise DataError(
                path, f"expected '{name}' ({' or '.join(KINDS[k.__name__] for k in kinds)}).", where=where
            )
    texts = {}
    for level in LEVELS:
        text = item.get(f"level_{level}_text")
        if text is None:
            continue
        if not isinstance(text, str) or not text.strip():
            raise DataError(path, "expected a text that is not empty.", where=f"{where}.level_{level}_text")
        texts[level] = text
    if not texts:
        raise DataError(path, "expected level_1_text to level_7_text, and found none.", where=where)
    return Question(str(item["question_id"]), item["domain"], lang, texts)


def read_recording(path: Path, fallback: str | None = None) -> Recording:
    """Recorded answers: the published results file, or the published list of raw answers."""
    raw = read_json(path)
    if isinstance(raw, dict) and "experiment_results" in raw:
        results = convert(path, raw, _ResultsFile)
        prompts = [
            Prompted(
                str(q.question_id),
                q.domain,
                _level(path, f"experiment_results[{index}]", str(a.level)),
                a.question_text,
                a.responses,
                {name: value for name, value in a.similarity_analysis.items() if value is not None},
            )
            for index, q in enumerate(results.experiment_results)
            for a in q.level_analyses
        ]
        metadata = results.metadata
    elif isinstance(raw, list) and raw and isinstance(raw[0], dict) and "level_responses" in raw[0]:
        answers = convert(path, raw, list[_QuestionResponses])
        prompts = [
            Prompted(
                str(q.question_id),
                q.domain,
                _level(path, f"[{index}].level_responses", level),
                a.question_text,
                a.responses,
                {},
            )
            for index, q in enumerate(answers)
            for level, a in q.level_responses.items()
        ]
        metadata = _Metadata()
    else:
        expected = "an object with 'experiment_results', or a list of objects with 'level_responses'"
        raise DataError(path, f"expected recorded MIRAE answers: {expected}. {_seen(raw)}")
    for (question_id, level), count in Counter((prompt.id, prompt.level) for prompt in prompts).items():
        if count > 1:
            raise DataError(
                path, f"question_id {question_id} has level {level} {count} times; each must be unique."
            )
    lang = language_code(metadata.language) or language_of_name(path) or fallback
    if not lang:
        raise DataError(
            path, "the language is not stated in metadata.language or the file's name: give --lang."
        )
    if fallback and lang != fallback:
        raise DataError(path, f"the answers are in '{lang}', and --lang asks for '{fallback}'.")
    return Recording(metadata.model or path.stem, lang, prompts)


def results_files(spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The run as published results files, one for each language, written as a stream."""
    by_language: defaultdict[str, _Extent] = defaultdict(_Extent)
    for record in records():
        by_language[str(record.sample.tags["lang"])].add(record)
    model = spec.models["model"]["name"]
    for lang, extent in by_language.items():
        name = f"MIRAE_{slug(model)}_results_{slug(LANGUAGES.get(lang, lang).lower())}.json"
        metadata = extent.metadata(model, LANGUAGES.get(lang, lang), spec.models["embedder"]["name"])
        yield name, _results(metadata, (r for r in records() if r.sample.tags["lang"] == lang))


class _Extent:
    """What the head of a results file says about the records below it."""

    def __init__(self) -> None:
        self.questions: set[str] = set()
        self.levels: set[int] = set()
        self.repetitions = 0

    def add(self, record: Record) -> None:
        self.questions.add(record.sample.inputs["question_id"])
        self.levels.add(int(record.sample.tags["level"]))
        self.repetitions = max(self.repetitions, len(record.answers))

    def metadata(self, model: str, language: str, embedder: str) -> dict[str, Any]:
        levels = span(sorted(self.levels))
        return {
            "research_project": "MIRAE",
            "experiment_type": f"Multi-level Consistency Analysis (Levels {levels})",
            "model": model,
            "language": language,
            "num_repetitions": self.repetitions,
            "embedding_model": embedder,
            "similarity_metric": "Cosine Similarity (SBERT)",
            "total_questions_analyzed": len(self.questions),
            "levels_analyzed": levels,
        }


def _results(metadata: dict[str, Any], records: Iterator[Record]) -> Iterator[bytes]:
    yield b'{\n  "metadata": ' + _indented(metadata, 2) + b',\n  "experiment_results": ['
    for number, (_, members) in enumerate(groupby(records, key=lambda record: record.sample.group)):
        first, *rest = members
        question_id = first.sample.inputs["question_id"]
        question = {
            "question_id": int(question_id) if is_number(question_id) else question_id,
            "domain": first.sample.tags["domain"],
            "level_analyses": [_level_analysis(record) for record in (first, *rest)],
        }
        yield (b",\n    " if number else b"\n    ") + _indented(question, 4)
    yield b"\n  ]\n}\n"


def _indented(value: Any, spaces: int) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return text.replace(b"\n", b"\n" + b" " * spaces)


def _level_analysis(record: Record) -> dict[str, Any]:
    text = record.sample.inputs["question_text"]
    kept = record.score.detail["responses"]
    return {
        "level": record.sample.tags["level"],
        "question_text": abbreviated(text),
        "num_responses": len(kept),
        "similarity_analysis": {name: record.score.values[name] for name in METRICS},
        "pairwise_similarities": record.score.detail["pairwise_similarities"],
        "responses": [record.answers[index].text for index in kept],
    }


def abbreviated(text: str) -> str:
    """The first hundred characters and three dots, even where nothing was cut: as published."""
    return text if text.endswith("...") and len(text) <= 103 else f"{text[:100]}..."


def language_code(name: str) -> str:
    """`en` for English and so on; a language without a code of ours goes by its own name."""
    wanted = name.strip().lower()
    return next((code for code, full in LANGUAGES.items() if wanted == full.lower()), wanted)


def language_of_name(path: Path) -> str | None:
    """The language that a published file's name ends in, as `…_korean.json` does."""
    code = language_code(path.stem.rpartition("_")[2])
    return code if code in LANGUAGES else None


def parse_levels(text: str) -> tuple[int, ...]:
    """`1-7`, `1,4,7`, `2` or `all` as levels, in order."""
    if text.strip() == "all":
        return LEVELS
    levels: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last) if dash else int(first)
        except ValueError:
            raise ValueError(f"'{text}' is no range of levels: write 1-7 or 1,4,7") from None
        if not 1 <= low <= high <= len(LEVELS):
            raise ValueError(f"levels run from 1 to {len(LEVELS)}, not {part.strip()}")
        levels.update(range(low, high + 1))
    return tuple(sorted(levels))


def span(levels: Sequence[int]) -> str:
    """`1-7` for levels without a gap, `1,4,7` otherwise."""
    if len(levels) > 1 and list(levels) == list(range(levels[0], levels[-1] + 1)):
        return f"{levels[0]}-{levels[-1]}"
    return ",".join(map(str, levels))


def _level(path: Path, where: str, name: str) -> int:
    if is_number(name) and int(name) in LEVELS:
        return int(name)
    raise DataError(path, f"'{name}' is no level from 1 to 7.", where=where)


def is_number(text: str) -> bool:
    """Whether a text is how a whole number is written: no leading zeros, no digits of other scripts."""
    return re.fullmatch(r"0|[1-9][0-9]{0,17}", text) is not None


def _seen(raw: Any) -> str:
    if isinstance(raw, dict):
        return f"Found an object with {', '.join(repr(key) for key in list(raw)[:6]) or 'nothing'}."
    return f"Found {'a list' if isinstance(raw, list) else type(raw).__name__}."
