"""Recorded answers of MIRAE in the published shapes; an entry that cannot be read does not cost the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.mirae.files import (
    LANGUAGES,
    LEVELS,
    Metadata,
    Question,
    QuestionRow,
    file_language,
    language_code,
    make_samples,
    most_frequent,
    repeated,
)
from evenkeel.errors import DataError, Fault, explain, shown
from evenkeel.files.jsonfile import convert, described, read_json
from evenkeel.harness.benchmark import Recorded
from evenkeel.types import Response

NOT_RECORDED = Response(status="error", reason="not recorded")
MOST_WARNINGS = 8
"""Places in a file that warnings name one by one."""
MOST_ANSWERS = 1000
"""To a prompt."""
_LEVEL_BY_NAME: dict[int | str, int] = {name: level for level in LEVELS for name in (level, str(level))}


class _ResultsFile(Struct):
    experiment_results: list[Any]
    metadata: Metadata | None = None


class _QuestionResults(QuestionRow):
    level_analyses: list[Any]


class _QuestionResponses(QuestionRow):
    level_responses: dict[str, Any]


class _Level(Struct):
    question_text: str
    responses: Annotated[list[Any], Meta(max_length=MOST_ANSWERS)]
    similarity_analysis: Any = None


class _Prompt(Struct, kw_only=True):
    """A question at one level."""

    question_id: str
    domain: str
    level: int
    text: str | None = None
    """None where it cannot be read; there are no answers then."""
    responses: list[Response] = []
    figures: dict[str, float] = {}


def read_recording(path: Path, lang: str | None = None) -> Recorded:
    """Recorded answers: the published results file, or the published list of raw answers.

    `lang` is the language of a file that does not state its own; one that states another is refused. A
    question or level that cannot be read counts as not answered, and a warning names it.
    """
    metadata, entries, name = _entries(path)
    reading = _Reading(path)
    for index, entry in enumerate(entries):
        reading.add_question(entry, f"{name}[{index}]", number=index + 1)
    prompts = reading.prompts()
    stated = file_language(path, metadata, lang)
    if lang and stated != lang:
        raise DataError(path, f"the answers are in '{stated}', and --lang asks for '{lang}'.")
    # A prompt with fewer answers than usual lacks some: they count as missing, not as never asked.
    usual, warnings = _usual_count(path, metadata, prompts)
    counts = [max(usual, len(prompt.responses)) for prompt in prompts]
    questions = [
        Question(
            p.question_id,
            p.domain,
            stated,
            {p.level: p.text or ""},
            {p.level: p.figures},
            repeats={p.level: count},
        )
        for p, count in zip(prompts, counts, strict=True)
    ]
    return Recorded(
        model=metadata.model or _without_language(path.stem),
        samples=make_samples(questions, usual),
        responses=[
            prompt.responses + [NOT_RECORDED] * (count - len(prompt.responses))
            for prompt, count in zip(prompts, counts, strict=True)
        ],
        embedder=str(metadata.embedding_model or "")[:200],
        warnings=[*reading.warnings(), *warnings],
    )


def _usual_count(path: Path, metadata: Metadata, prompts: Sequence[_Prompt]) -> tuple[int, list[str]]:
    """How often a prompt was asked: as the file states, or as most prompts have answers; and a warning that
    names those with more, which count for themselves."""
    number = metadata.num_repetitions
    stated = type(number) is int and 2 <= number <= MOST_ANSWERS
    sizes = Counter(len(prompt.responses) for prompt in prompts if prompt.responses)
    usual = number if stated else max(2, most_frequent(sizes))
    longer = [f"{p.question_id}-L{p.level}" for p in prompts if len(p.responses) > usual]
    if not longer:
        return usual, []
    source = "metadata.num_repetitions" if stated else "the usual number"
    named = f"{', '.join(longer[:MOST_WARNINGS])}{', …' if len(longer) > MOST_WARNINGS else ''}"
    more = f"prompts with more than {usual} answers ({source}): {len(longer):,} of {len(prompts):,}"
    return usual, [f"{path.name}: {more}, which are scored with all of theirs: {named}."]


def combine(recordings: Sequence[Recorded]) -> Recorded | None:
    """Recordings of one model, in several languages, as one; None for different models or the same prompts.

    Prompts of the same text in different files have different repeat numbers, as within one file.
    """
    samples = [sample for recording in recordings for sample in recording.samples]
    if len({each.model for each in recordings}) > 1 or repeated(sample.id for sample in samples):
        return None
    repeats_of_text: Counter[str] = Counter()
    numbered = []
    for sample in samples:
        inputs = msgspec.structs.replace(
            sample.inputs, first_repeat=repeats_of_text[sample.inputs.question_text]
        )
        repeats_of_text[inputs.question_text] += inputs.samples
        numbered.append(msgspec.structs.replace(sample, inputs=inputs))
    return Recorded(
        model=recordings[0].model,
        samples=numbered,
        responses=[responses for recording in recordings for responses in recording.responses],
        embedder=", ".join(dict.fromkeys(each.embedder for each in recordings if each.embedder)),
        warnings=[warning for recording in recordings for warning in recording.warnings],
    )


def _entries(path: Path) -> tuple[Metadata, list[Any], str]:
    """What a file states of itself, its entries, and the name of their list in messages."""
    raw = read_json(path)
    if isinstance(raw, dict) and "experiment_results" in raw:
        file = convert(path, raw, _ResultsFile)
        return file.metadata or Metadata(), file.experiment_results, "experiment_results"
    if isinstance(raw, list) and any(isinstance(each, dict) and "level_responses" in each for each in raw):
        return Metadata(), raw, "entries"
    expected = "an object with 'experiment_results', or a list of objects with 'level_responses'"
    raise DataError(path, f"expected recorded MIRAE answers: {expected}. {described(raw)}")


class _Reading:
    """The prompts of a file as far as they can be read, and the places where they cannot."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._prompts: dict[tuple[str, int], _Prompt] = {}
        self._domains: dict[str, str] = {}
        """By question, in the order of the file; empty where it is not known."""
        self._incomplete: set[str] = set()
        """Questions of which a part cannot be read."""
        self._places = 0
        """Those that cannot be read."""
        self._problems: list[tuple[str, str]] = []
        """Of the first of them: where it is, and what is wrong."""
        self._missing = 0
        """Answers that are not a text."""

    def add_question(self, raw: Any, where: str, *, number: int) -> None:
        """Add an entry of the file; its number takes the place of an id that cannot be read."""
        kind = _QuestionResponses if isinstance(raw, dict) and "level_responses" in raw else _QuestionResults
        question = self._converted(raw, kind, where)
        if question is None:
            stated = raw.get("question_id") if isinstance(raw, dict) else None
            question_id = str(stated) if type(stated) in (int, str) else f"entry-{number}"
            domain = raw.get("domain") if isinstance(raw, dict) else None
            self._domains.setdefault(question_id, domain if isinstance(domain, str) else "")
            self._incomplete.add(question_id)
            return
        question_id = str(question.question_id)
        self._domains[question_id] = self._domains.get(question_id) or question.domain
        levels: list[tuple[Any, Any, str]]
        if isinstance(question, _QuestionResponses):
            levels = [
                (name, level, f"{where}.level_responses[{shown(name)}]")
                for name, level in question.level_responses.items()
            ]
        else:
            levels = [
                (
                    level.get("level") if isinstance(level, dict) else None,
                    level,
                    f"{where}.level_analyses[{i}]",
                )
                for i, level in enumerate(question.level_analyses)
            ]
        if not levels:
            self._note(where, "it has no levels")
            self._incomplete.add(question_id)
        for name, level, level_where in levels:
            self._add_level(question_id, question.domain, name, level, level_where)

    def _add_level(self, question_id: str, domain: str, name: Any, raw: Any, where: str) -> None:
        number = _LEVEL_BY_NAME.get(name) if type(name) in (int, str) else None
        level = self._converted(raw, _Level, where)
        if number is None and level is not None:
            self._note(where, f"{shown(name)} is not a level from 1 to {len(LEVELS)}")
        if number is None or level is None:
            self._incomplete.add(question_id)
            return
        prompt = _Prompt(question_id=question_id, domain=domain, level=number)
        if (question_id, number) in self._prompts:  # which of them it is, and what the other, is not known
            self._incomplete.add(question_id)
            self._note(where, f"question_id {shown(question_id)} has level {number} before")
        else:
            prompt.text = level.question_text
            prompt.responses = [
                self._answer(text, f"{where}.responses[{index}]")
                for index, text in enumerate(level.responses)
            ]
            prompt.figures = _figures(level.similarity_analysis)
        self._prompts[question_id, number] = prompt

    def _answer(self, text: Any, where: str) -> Response:
        if isinstance(text, str):
            return Response(status="ok", text=text)
        self._note(where, f"expected text, got {shown(text)}")
        self._missing += 1
        return NOT_RECORDED

    def _converted(self, raw: Any, kind: Any, where: str) -> Any:
        try:
            return msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            fault = explain(error, raw) if self._places < MOST_WARNINGS else Fault("", ())
            steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path)
            self._note(f"{where}{steps}", fault.problem)
            return None

    def _note(self, where: str, problem: str) -> None:
        self._places += 1
        if self._places <= MOST_WARNINGS:
            self._problems.append((where, problem))

    def prompts(self) -> list[_Prompt]:
        """All prompts, question by question. One of which a part cannot be read counts at each level of the
        file."""
        if not any(each.status == "ok" for prompt in self._prompts.values() for each in prompt.responses):
            where, problem = self._problems[0] if self._problems else ("", "there are no answers in it")
            raise DataError(self._path, f"{problem}. No answer could be read.", where=where)
        levels = sorted({level for _, level in self._prompts})
        by_question: dict[str, list[_Prompt]] = {question_id: [] for question_id in self._domains}
        for prompt in self._prompts.values():
            by_question[prompt.question_id].append(prompt)
        for question_id in self._incomplete:
            domain, known = self._domains[question_id], {each.level for each in by_question[question_id]}
            by_question[question_id] += [
                _Prompt(question_id=question_id, domain=domain, level=level)
                for level in levels
                if level not in known
            ]
        return [prompt for prompts in by_question.values() for prompt in prompts]

    def warnings(self) -> list[str]:
        """The first places that cannot be read, and what all of them cost."""
        if not self._places:
            return []
        name, prompts = self._path.name, self.prompts()
        unread = sum(prompt.text is None for prompt in prompts)
        cost = f"{unread:,} of {len(prompts):,} prompts; single answers to others: {self._missing:,}"
        return [
            *(f"{name}, {where}: {problem}." for where, problem in self._problems),
            f"{name}: places that cannot be read: {self._places:,}. Not answered: {cost}.",
        ]


def _figures(raw: Any) -> dict[str, float]:
    """The numbers among the figures that a file gives of a prompt."""
    figures = raw.items() if isinstance(raw, dict) else ()
    return {name: float(value) for name, value in figures if type(value) in (int, float)}


def _without_language(stem: str) -> str:
    """`mine_responses` for `mine_responses_korean`, so that files of one model have one name."""
    name, _, last = stem.rpartition("_")
    return name if name and language_code(last) in LANGUAGES else stem
