"""The published files of answers: recorded ones are read, of which a bad entry does not cost the file, and a
run is written."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.mirae.data import (
    BEGINNING,
    FIGURES,
    LANGUAGES,
    MOST_ANSWERS,
    Metadata,
    MiraeRecord,
    QuestionAtLevels,
    QuestionRow,
    file_language,
    is_abbreviated,
    language_code,
    make_samples,
    most_frequent,
    repeated,
    span,
)
from sealegs.errors import DataError, explain
from sealegs.files.cache import slug
from sealegs.files.jsonfile import convert, described, indented, read_json
from sealegs.harness.published import Recorded
from sealegs.types import Records, Response, RunSpec, Score, Summary

NOT_RECORDED = Response(status="error", reason="not recorded")
MOST_WARNINGS = 8
"""Entries of a file that warnings name one by one."""
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
"""How a whole number is written: no leading zeros, no digits of other scripts."""
LEVEL_NAMES = Literal["1", "2", "3", "4", "5", "6", "7"]


class _ResultsFile(Struct):
    experiment_results: list[Any]
    metadata: Metadata | None = None


class _LevelAnswers(Struct):
    """The answers to a question at one level; None is one that is not there."""

    question_text: str
    responses: Annotated[list[str | None], Meta(max_length=MOST_ANSWERS)]
    similarity_analysis: Any = None


class _Analysis(_LevelAnswers, kw_only=True):
    level: Annotated[int, Meta(ge=1, le=7)]


class _QuestionResults(QuestionRow):
    level_analyses: Annotated[list[_Analysis], Meta(min_length=1)]

    @property
    def levels(self) -> list[tuple[int, _LevelAnswers]]:
        return [(each.level, each) for each in self.level_analyses]


class _QuestionResponses(QuestionRow):
    level_responses: Annotated[dict[LEVEL_NAMES, _LevelAnswers], Meta(min_length=1)]

    @property
    def levels(self) -> list[tuple[int, _LevelAnswers]]:
        return [(int(name), answers) for name, answers in self.level_responses.items()]


class _RecordedPrompt(NamedTuple):
    """A question at one level."""

    question_id: str
    domain: str
    level: int
    answers: _LevelAnswers


def read_recording(path: Path, lang: str | None = None) -> Recorded:
    """Recorded answers: the published results file, or the published list of raw answers.

    `lang` is the language of a file that does not state its own; one that states another is refused. A
    question that cannot be read counts as not answered at each level of the file, and a warning names it.
    """
    metadata, entries, name = _entries(path)
    stated = file_language(path, metadata, lang)
    if lang and stated != lang:
        raise DataError(path, f"the answers are in '{stated}', and --lang asks for '{lang}'.")
    prompts, problems = _prompts(path, entries, name)
    # A prompt with fewer answers than usual lacks some: they count as missing, not as never asked.
    usual = _usual_count(metadata, prompts)
    responses = [_responses(prompt.answers, usual) for prompt in prompts]
    questions = [
        QuestionAtLevels(
            prompt.question_id,
            prompt.domain,
            stated,
            {prompt.level: prompt.answers.question_text},
            {prompt.level: _figures(prompt.answers.similarity_analysis)},
            repeats={prompt.level: len(answers)},
        )
        for prompt, answers in zip(prompts, responses, strict=True)
    ]
    listed = [f"{path.name}, {problem}." for problem in problems[:MOST_WARNINGS]]
    count = f"{path.name}: entries that cannot be read, and count as not answered: {len(problems):,}."
    return Recorded(
        model=metadata.model or _without_language(path.stem),
        samples=make_samples(questions, usual),
        responses=responses,
        helpers=_embedder(str(metadata.embedding_model or "")[:200]),
        warnings=[*listed, count] if problems else [],
    )


def _embedder(name: str) -> dict[str, str]:
    return {"embedder": name} if name else {}


def _responses(answers: _LevelAnswers, usual: int) -> list[Response]:
    responses = [
        NOT_RECORDED if text is None else Response(status="ok", text=text) for text in answers.responses
    ]
    return responses + [NOT_RECORDED] * (usual - len(responses))


def published_result(path: Path) -> tuple[str, Summary]:
    """The model of a published results file, and its figures by those that the file states of each prompt."""
    from sealegs.benchmarks.mirae.added import summarise

    recorded = read_recording(path)
    scores = [
        Score(
            sample_id=sample.id,
            group=sample.group,
            tags=sample.tags,
            values=dict(sample.inputs.published or {}),
            statuses={},
            answered=1,
        )
        for sample in recorded.samples
    ]
    lang = str(scores[0].tags["lang"])
    return f"{recorded.model} ({lang})" if lang != "en" else recorded.model, summarise(scores)


def _usual_count(metadata: Metadata, prompts: Sequence[_RecordedPrompt]) -> int:
    """How often a prompt was asked: as the file states, or as most prompts have answers."""
    number = metadata.num_repetitions
    if type(number) is int and 2 <= number <= MOST_ANSWERS:
        return number
    counts = Counter(len(prompt.answers.responses) for prompt in prompts if prompt.answers.responses)
    return max(2, most_frequent(counts))


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
        helpers=_embedder(
            ", ".join(dict.fromkeys(chain.from_iterable(r.helpers.values() for r in recordings)))
        ),
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


def _prompts(path: Path, entries: Sequence[Any], name: str) -> tuple[list[_RecordedPrompt], list[str]]:
    """The prompts of a file, and what is wrong with questions that cannot be read: they have no answers."""
    prompts: dict[tuple[str, int], _RecordedPrompt] = {}
    unread: dict[str, str] = {}
    problems: list[str] = []
    for number, raw in enumerate(entries):
        fields = raw if isinstance(raw, dict) else {}
        kind: Any = _QuestionResponses if "level_responses" in fields else _QuestionResults
        try:
            question = msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            fault = explain(error, raw)
            steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path)
            problems.append(f"{name}[{number}]{steps}: {fault.problem}")
            known = type(fields.get("question_id")) in (int, str)
            domain = fields.get("domain")
            question_id = str(fields["question_id"]) if known else f"entry-{number + 1}"
            unread[question_id] = domain if isinstance(domain, str) else ""
            continue
        for level, answers in question.levels:
            prompt = _RecordedPrompt(str(question.question_id), question.domain, level, answers)
            if prompts.setdefault((prompt.question_id, level), prompt) is not prompt:
                problem = f"question {prompt.question_id} has level {level} twice; each is unique."
                raise DataError(path, problem, where=f"{name}[{number}]")
    if not any(text is not None for prompt in prompts.values() for text in prompt.answers.responses):
        problem = problems[0] if problems else "there are no answers in it"
        raise DataError(path, f"{problem}. No answer could be read.")
    levels = sorted({level for _, level in prompts})
    for question_id, domain in unread.items():
        for level in levels:
            missing = _RecordedPrompt(question_id, domain, level, _LevelAnswers("", []))
            prompts.setdefault((question_id, level), missing)
    return list(prompts.values()), problems


def _figures(raw: Any) -> dict[str, float]:
    """The numbers among the figures that a file gives of a prompt."""
    figures = raw.items() if isinstance(raw, dict) else ()
    return {name: float(value) for name, value in figures if type(value) in (int, float)}


def _without_language(stem: str) -> str:
    """`mine_responses` for `mine_responses_korean`, so that files of one model have one name."""
    name, _, last = stem.rpartition("_")
    return name if name and language_code(last) in LANGUAGES else stem


# A run in these files


def results_files(spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The run as published results files, one for each language, padding and wording, written as a stream.

    A prompt with fewer than two answers has no figures: it is left out, as the published script skips it, so
    that what reads published files reads these.
    """
    questions: defaultdict[_Part, set[str]] = defaultdict(set)
    levels: defaultdict[_Part, set[int]] = defaultdict(set)
    repetitions: defaultdict[_Part, Counter[int]] = defaultdict(Counter)
    for record in _with_figures(records):
        part = _part(record)
        questions[part].add(record.sample.inputs.question_id)
        levels[part].add(int(record.sample.tags["level"]))
        repetitions[part][len(record.answers)] += 1
    model = spec.models["model"]["name"]
    for part in questions:
        lang, padding, wording = part
        language = LANGUAGES.get(lang, lang)
        level_span = span(sorted(levels[part]))
        metadata = {
            "research_project": "MIRAE",
            "experiment_type": f"Multi-level Consistency Analysis (Levels {level_span})",
            "model": model,
            "language": language,
            "num_repetitions": most_frequent(repetitions[part]),
            "embedding_model": spec.models["embedder"]["name"],
            "similarity_metric": "Cosine Similarity (SBERT)",
            "total_questions_analyzed": len(questions[part]),
            "levels_analyzed": level_span,
        }
        # The last word of a published name is the language: a second kind of prompt goes before it.
        kind = f"_{slug(padding)}" if padding not in ("", "elaborate") else ""
        kind += f"_wording{wording}" if wording else ""
        name = f"MIRAE_{slug(model)}{kind}_results_{slug(language.lower())}.json"
        yield name, _results(metadata, (each for each in _with_figures(records) if _part(each) == part))


def _with_figures(records: Records) -> Iterator[MiraeRecord]:
    return (record for record in records() if record.score.values[FIGURES[0]] is not None)


class _Part(NamedTuple):
    """What the records of one results file have in common."""

    lang: str
    padding: str
    wording: int


def _part(record: MiraeRecord) -> _Part:
    tags = record.sample.tags
    return _Part(str(tags["lang"]), str(tags.get("padding", "")), int(tags.get("wording", 0)))


def _results(metadata: dict[str, Any], records: Iterator[MiraeRecord]) -> Iterator[bytes]:
    yield b'{\n  "metadata": ' + indented(metadata, 2) + b',\n  "experiment_results": ['
    for number, (_, members) in enumerate(groupby(records, key=lambda record: record.sample.group)):
        levels = list(members)
        sample = levels[0].sample
        question_id = sample.inputs.question_id
        question = {
            "question_id": int(question_id) if NUMBER.fullmatch(question_id) else question_id,
            "domain": sample.tags.get("domain"),
            "level_analyses": [_level_analysis(record) for record in levels],
        }
        yield (b",\n    " if number else b"\n    ") + indented(question, 4)
    yield b"\n  ]\n}\n"


def _level_analysis(record: MiraeRecord) -> dict[str, Any]:
    detail = record.score.detail
    matrix = detail.pairwise_similarities
    return {
        "level": record.sample.tags["level"],
        "question_text": abbreviated(record.sample.inputs.question_text),
        "num_responses": len(detail.responses),
        "similarity_analysis": {name: record.score.values[name] for name in FIGURES},
        "pairwise_similarities": matrix,
        "pairwise_comparison_values": [cosine for i, row in enumerate(matrix) for cosine in row[i + 1 :]],
        "responses": [record.answers[index].text for index in detail.responses],
    }


def abbreviated(text: str) -> str:
    """The first hundred characters and three dots, even where nothing was cut: as published."""
    return text if is_abbreviated(text) else f"{text[:BEGINNING]}..."
