"""MIRAE's data: questions to read, and what a record holds.

A question file has `metadata` (its language) and `questions`, each with its text at every level, of which
some may be left out; `padding`, `wording` and `expected` are ours. Or it has one question on a line (.jsonl):

    {"metadata":{"language":"English"},"questions":[
     {"question_id":1,"domain":"science","level_1_text":"Why is the sky blue?","level_2_text":"…",
      "padding":"neutral","wording":1,"expected":["scattering"]}]}

A results file has `metadata` and `experiment_results`, the answers to each question by level (`results`):

    {"question_id":1,"domain":"science","level_analyses":[{"level":1,
     "question_text":"Why is the sky blue?...","num_responses":2,
     "similarity_analysis":{"mean_similarity":0.93,"std_similarity":0.0,"max_similarity":0.93,
     "min_similarity":0.93},"pairwise_similarities":[[1.0,0.93],[0.93,1.0]],
     "responses":["Air scatters blue light most.","…"]}]}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import DataError
from sealegs.files.jsonfile import convert, described, json_lines, read_json
from sealegs.harness.inputs import Inputs, RowText
from sealegs.text.answer_search.mention import Answer, RawAnswer, check_answer, parts
from sealegs.types import Record, Sample, Tag

T = TypeVar("T")

FIGURES = ("mean_similarity", "std_similarity", "max_similarity", "min_similarity")
"""Those of a published results file."""
LEVELS = tuple(range(1, 8))
TARGETS = (30, 60, 120, 250, 500, 1000, 2000)
"""About how many tokens a prompt has at each level."""
LANGUAGES = {"en": "English", "ko": "Korean", "zh": "Chinese"}
MOST_ANSWERS = 1000
"""To a prompt."""
BEGINNING = 100
"""Characters of a question in a published results file."""


class MiraeInputs(Inputs, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked: a question at one level."""

    question_id: str
    question_text: str
    samples: Annotated[int, Meta(ge=0, le=MOST_ANSWERS)]
    """How often it is asked."""
    first_repeat: int
    """The repeat number of its first request: samples of the same text have different ones."""
    published: dict[str, float] | None = None
    """The figures of the recorded file that it was read from."""
    expected: Answer = ()
    """The right answer, where the question has one that is known."""

    def row(self, tags: Mapping[str, Tag]) -> RowText:
        padding = ", padded with unrelated text" if tags.get("padding") == "neutral" else ""
        wording = f", wording {tags['wording']}" if "wording" in tags else ""
        expected = "; ".join(part[0] for part in self.expected)
        return RowText(self.question_text, expected, f"level {tags['level']}{padding}{wording}")

    def targets(self) -> list[str]:
        return [text for part in self.expected for text in part]

    def fingerprint(self) -> AskedText:
        """The prompt, as far as it is known: a published file holds its beginning."""
        text = self.question_text
        if is_abbreviated(text):
            return AskedText(text[:-3], None)
        return AskedText(text[:BEGINNING], sha256(text.encode()).digest() if text else None)


@dataclass(frozen=True, eq=False, slots=True)
class AskedText:
    """A prompt made short. Two are equal as far as they are known: of one that cannot be read, nothing is."""

    beginning: str
    """As much as a published file holds."""
    digest: bytes | None
    """Of the whole text; None where only its beginning is known."""

    __hash__ = None  # type: ignore[assignment]  # one that is known in part equals several that differ

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AskedText):
            return NotImplemented
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.beginning == other.beginning or "" in (self.beginning, other.beginning)


class MiraeDetail(Struct, frozen=True, kw_only=True):
    """What is kept with the score of a prompt."""

    responses: list[int]
    """Which of the answers were scored, by their indexes."""
    pairwise_similarities: list[list[float]]
    right: dict[int, list[str]] | None = None
    """By the index of each answer that is right: the words that give each part of the expected one. None
    where no answer is expected."""


MiraeRecord: TypeAlias = Record[MiraeInputs, MiraeDetail]


class QuestionAtLevels(Struct, frozen=True):
    """One question with its text at every level that the file has."""

    id: str
    domain: str
    """Empty where a recorded file does not state it."""
    lang: str
    texts: dict[int, str]
    published: dict[int, dict[str, float]] = {}
    """By level, the figures of a recorded file."""
    repeats: dict[int, int] = {}
    """By level, how often it was asked, where a recorded file has another number than usual."""
    padding: str = ""
    """What surrounds the question (`neutral`, `elaborate`), where the file says so."""
    expected: Answer = ()
    """The right answer, where the file gives it."""
    wording: int = 0
    """Which wording of the question it is, from 1 on, where the file has several."""


# The shapes of the published files


class Metadata(Struct, frozen=True):
    """What a file states of itself."""

    language: str | None = None
    model: str | None = None
    embedding_model: Any = ""
    num_repetitions: Any = None


class QuestionRow(Struct):
    """What every entry of a file has."""

    question_id: int | str
    domain: str


_QuestionTexts = msgspec.defstruct(
    "_QuestionTexts",
    [
        ("padding", str, ""),
        ("wording", Annotated[int, Meta(ge=0)], 0),
        ("expected", RawAnswer | None, None),
        *((f"level_{level}_text", str | None, None) for level in LEVELS),
    ],
    bases=(QuestionRow,),
)


class _PromptsFile(Struct):
    metadata: Metadata = Metadata()
    questions: list[_QuestionTexts] = []  # type: ignore[valid-type]


def read_questions(path: Path, fallback: str | None = None) -> list[QuestionAtLevels]:
    """The questions of a published (or built) question file, with whichever levels it has.

    `fallback` is the language of a file that does not state its own.
    """
    if path.suffix.lower() == ".jsonl":  # rows of a table
        lang = file_language(path, Metadata(), fallback)
        rows = ((line, convert(path, raw, _QuestionTexts, line=line)) for line, raw in json_lines(path))
        questions = [_question(path, item, lang, line=line) for line, item in rows]
    else:
        raw = read_json(path)
        if not isinstance(raw, dict) or "questions" not in raw:
            raise DataError(path, f"expected MIRAE questions: an object with 'questions'. {described(raw)}")
        file = convert(path, raw, _PromptsFile)
        lang = file_language(path, file.metadata, fallback)
        questions = [
            _question(path, item, lang, f"questions[{index}]") for index, item in enumerate(file.questions)
        ]
    if not questions:
        raise DataError(path, "there is no question in it.")
    keys = ((question.id, question.padding, question.wording) for question in questions)
    for (question_id, padding, wording), count in repeated(keys):
        with_padding = f" with padding '{padding}'" if padding else ""
        with_padding += f" and wording {wording}" if wording else ""
        raise DataError(
            path, f"question_id {question_id} appears {count} times{with_padding}; each must be unique."
        )
    return questions


def _question(
    path: Path, item: Any, lang: str, where: str = "", *, line: int | None = None
) -> QuestionAtLevels:
    texts = {level: getattr(item, f"level_{level}_text") for level in LEVELS}
    texts = {level: text for level, text in texts.items() if text is not None}
    for level, text in texts.items():
        if not text.strip():
            field = f"{where}.level_{level}_text" if where else f"field 'level_{level}_text'"
            raise DataError(path, "expected a text that is not empty.", line=line, where=field)
    if not texts:
        raise DataError(
            path, "expected level_1_text to level_7_text, and found none.", line=line, where=where
        )
    if item.expected is not None:
        try:
            check_answer("expected", item.expected)
        except ValueError as error:
            raise DataError(path, f"{error}.", line=line, where=where) from None
    return QuestionAtLevels(
        str(item.question_id),
        item.domain,
        lang,
        texts,
        padding=item.padding,
        expected=parts(item.expected),
        wording=item.wording,
    )


def make_samples(
    questions: Iterable[QuestionAtLevels], repeats: int, levels: Sequence[int] = ()
) -> list[Sample]:
    """A sample for each question at each of the levels, or at all that it has.

    Samples of the same wording have different repeat numbers, so that each has answers of its own.
    """
    repeats_of_text: Counter[str] = Counter()
    samples: list[Sample] = []
    for question in questions:
        for level in levels or question.texts:
            text, count = question.texts[level], question.repeats.get(level, repeats)
            inputs = MiraeInputs(
                question_id=question.id,
                question_text=text,
                samples=count,
                first_repeat=repeats_of_text[text],
                published=question.published.get(level),
                expected=question.expected,
            )
            repeats_of_text[text] += count
            sample_id = f"{question.lang}-{question.id}-L{level}"
            tags: dict[str, Tag] = {"lang": question.lang, "domain": question.domain, "level": level}
            if not question.domain:  # a recorded entry that does not state it
                del tags["domain"]
            if question.padding:
                tags["padding"] = question.padding
                # The elaborate prompts are the plain ones; both kinds of one question are in one group.
                sample_id += "" if question.padding == "elaborate" else f"-{question.padding}"
            if question.wording:
                tags["wording"] = question.wording
                sample_id += f"-w{question.wording}"
            samples.append(Sample(id=sample_id, group=question.id, tags=tags, inputs=inputs))
    return samples


def is_abbreviated(text: str) -> bool:
    """Whether a recorded question may be the beginning of a longer one."""
    return text.endswith("...") and len(text) <= BEGINNING + 3


# Languages, levels, ids


def file_language(path: Path, metadata: Metadata, fallback: str | None) -> str:
    """The language of a file: what it states, what its name ends in (`…_korean.json`), or the fallback."""
    by_name = language_code(path.stem.rpartition("_")[2])
    lang = language_code(metadata.language or "") or (by_name if by_name in LANGUAGES else fallback)
    if not lang:
        raise DataError(
            path, "the language is not stated in metadata.language or the file's name: give --lang."
        )
    return lang


def language_code(name: str) -> str:
    """`en` for English and so on; a language that has no code here goes by its own name."""
    lower = name.strip().lower()
    return next((code for code, full in LANGUAGES.items() if lower == full.lower()), lower)


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
            raise ValueError(f"'{text}' is not a range of levels: write 1-7 or 1,4,7") from None
        if not 1 <= low <= high <= len(LEVELS):
            raise ValueError(f"levels run from 1 to {len(LEVELS)}, not {part.strip()}")
        levels.update(range(low, high + 1))
    return tuple(sorted(levels))


def span(levels: Sequence[int]) -> str:
    """`1-7` for levels without a gap, `1,4,7` otherwise."""
    if len(levels) > 1 and list(levels) == list(range(levels[0], levels[-1] + 1)):
        return f"{levels[0]}-{levels[-1]}"
    return ",".join(map(str, levels))


def most_frequent(counts: Counter[int]) -> int:
    """The number that is there most often; of several the largest, and 0 of none."""
    return max(counts, key=lambda number: (counts[number], number), default=0)


def repeated(keys: Iterable[T]) -> list[tuple[T, int]]:
    """The keys that appear more than once, with how often they do."""
    return [(key, count) for key, count in Counter(keys).items() if count > 1]
