"""MIRAE: does a model say the same thing when asked again, and when the prompt grows?

Published (https://github.com/greatgompang/MIRAE) and followed to the digit: four figures of the cosines
between a prompt's answers (`published`), and the files of questions (`data`) and of results (`results`). A
prompt is the question as the file words it: there is no other text. Its level is its length: the same
question in about 30 (level 1) to 2,000 tokens (level 7).

Added, under names of its own: the correction for chance (`floor`), known answers (`expected`), meanings by a
judge (`meanings`, asked by `prompts.json`), questions in several wordings (`wordings`), refusals
(`refusals`), drift and trend over lengths, figures across languages, what the embedder reads and every
interval (`added`), our own questions and texts (`make/`).
Every figure is declared in `metrics`; `page` shows a run, `view` a sample.

How a sample becomes a figure:

    row ─ data.read_questions ─► question ─ at a level: data.make_samples ─► sample ─ requests ─► five answers
    answers ─ vectors ─ published, floor, added.score_prompts ─► values ─ added.summarise ─► figures
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from sealegs.benchmarks.mirae import data as formats
from sealegs.benchmarks.mirae import results
from sealegs.benchmarks.mirae.data import MiraeDetail, MiraeInputs, QuestionAtLevels
from sealegs.benchmarks.mirae.metrics import METRICS
from sealegs.benchmarks.mirae.page import LAYOUT, layout_for, notes
from sealegs.benchmarks.mirae.view import view
from sealegs.errors import UsageError, listed
from sealegs.files.datasets import Starter
from sealegs.files.package_data import data_path
from sealegs.harness.benchmark import ANSWERS, Benchmark, Help, Scoring
from sealegs.harness.data import Data
from sealegs.harness.published import Publishing, Recordings
from sealegs.options import ASKING, IN_SAMPLES
from sealegs.types import (
    Answered,
    Capability,
    Generate,
    Message,
    Sample,
    Sampling,
    Score,
    Summary,
)

STARTER_SHA256 = {
    "en": "e61c366036fbc92d9a89a78106b89d4d34d5eeefec743afa6cfcbf7db1ef98b3",
    "ko": "ddd9e24fff2e1bcad60c847a2b6716d0a12a31f0cfd3fd60e5212dd0ddab4683",
    "zh": "a5966eb9530f28d0784698a28aefb4ab8fdb54511cb8012f50a4ccbfb19f3d86",
}


class MiraeOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a MIRAE run."""

    levels: Annotated[
        str,
        Meta(
            description="Prompt lengths to ask, 1 (about 30 tokens) to 7 (2,000): 1-7, 1,4,7 or all.",
            extra=IN_SAMPLES,
        ),
    ] = "all"
    padding: Annotated[
        Literal["neutral", "elaborate", "both"] | None,
        Meta(
            description="What surrounds the question: elaborate adds demands, neutral adds only length. "
            "Default: elaborate where the data has both.",
            extra=IN_SAMPLES,
        ),
    ] = None
    repeats: Annotated[
        int,
        Meta(
            ge=2,
            le=formats.MOST_ANSWERS,
            description="Answers to each prompt.",
            extra={**IN_SAMPLES, "former": ["samples"]},
        ),
    ] = 5
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.", extra=ASKING)] = 0.7
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.", extra=ASKING)] = 256
    embedder: Annotated[str, Meta(description="The model that turns answers into vectors.")] = (
        "embedded-embedder"
    )
    judge: Annotated[
        str | None,
        Meta(
            description="A model that says which answers mean the same, by whether they entail each other. "
            "Its figure is then the headline."
        ),
    ] = None

    def __post_init__(self) -> None:
        levels = formats.parse_levels(self.levels)
        if self.levels != "all":  # one way to write it, so that 1,2,3 and 1-3 are the same run
            msgspec.structs.force_setattr(self, "levels", formats.span(levels))


def make_starter(lang: str) -> bytes:
    from sealegs.benchmarks.mirae.make.generator import compose

    return msgspec.json.format(msgspec.json.encode(compose(lang)), indent=1)


class Mirae(Benchmark[MiraeInputs, MiraeDetail]):
    """Does it say the same thing when asked again, and when the prompt grows?

    One sample is one question at one level in one language, asked several times.
    """

    Options = MiraeOptions
    layout = replace(LAYOUT, for_run=layout_for)
    metrics = METRICS
    notes = staticmethod(notes)
    view = staticmethod(view)
    starter = Starter(STARTER_SHA256, make_starter, tables=False)
    recordings = Recordings(
        lambda benchmark, path, lang: results.read_recording(path, lang),
        results.combine,
        results.published_result,
    )
    publishing = Publishing(lambda benchmark, spec, records: results.results_files(spec, records))
    builder = "sealegs.benchmarks.mirae.make.builder:MiraeBuilder"
    help = Help(
        examples={
            "run": (
                "sealegs run mirae --model embedded --limit 4 --levels 1-3",
                "sealegs run mirae --model hf:path/to/model --model-arg dtype=bfloat16 --out runs/mine",
                "sealegs run mirae --model openai:NAME --base-url http://127.0.0.1:8000/v1 --concurrency 256",
                "sealegs run mirae --model openai:NAME --dry-run",
            ),
            "score": (
                "sealegs score mirae MIRAE_claude_haiku_results_english.json --out runs/haiku",
                "sealegs score mirae A.json B.json C.json",
                "sealegs score mirae A.json --judge openai:NAME",
            ),
            "build": (
                "sealegs build mirae --questions mine.txt --out data/mine",
                "sealegs build mirae --seed 7 --padding both --out data/fresh",
                "sealegs build mirae --questions mine.csv --tokenizer hf:PATH --out data/mine",
                "sealegs build mirae --questions mine.txt --model openai:NAME --translate ko,zh "
                "--out data/mine",
                "sealegs build mirae --questions mine.txt --model openai:NAME --paraphrase 4 "
                "--judge anthropic:NAME --out data/mine",
            ),
        },
        # Questions of one's own, as `build mirae --questions` writes them: they ask for one sentence, so that
        # answers end soon.
        demo={
            "model": "embedded",
            "data": str(data_path("sealegs.benchmarks.mirae", "demo.json")),
            "levels": "1-2",
            "repeats": 3,
            "max_tokens": 128,
        },
    )
    options: MiraeOptions

    def __init__(self, options: MiraeOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        judge: dict[str, set[Capability]] = {"judge": {"generate"}} if options.judge else {}
        self.roles = {"model": {"generate"}, "embedder": {"embed"}, **judge}

    def samples(self, data: Data) -> list[Sample]:
        """`limit` questions of each language, spread evenly over the domains, at every chosen level."""
        read = [(file.path, formats.read_questions(file.path, data.only_lang)) for file in data]
        questions = [question for _, each in read for question in each]
        places: dict[tuple[str, str], list[str]] = {}
        for path, each in read:
            for question in each:
                places.setdefault((question.lang, question.id), []).append(str(path))
        langs = data.choose_langs(question.lang for question in questions)
        questions = with_padding(
            [question for question in questions if question.lang in langs], self.options.padding
        )
        questions = spread(questions, data.limit)
        ids = ((each.lang, each.id, each.padding, each.wording) for each in questions)
        for (lang, question_id, _, _), _ in formats.repeated(ids):
            where = listed(places[lang, question_id])
            raise UsageError(
                f"question {question_id} in '{lang}' is in several files: {where}. Give one of them."
            )
        levels = formats.parse_levels(self.options.levels)
        if self.options.levels == "all":
            levels = tuple(level for level in levels if any(level in each.texts for each in questions))
        for question in questions:
            if absent := [level for level in levels if level not in question.texts]:
                where = places[question.lang, question.id][0]
                raise UsageError(f"{where}: question {question.id} has no level {absent[0]}: see --levels.")
        return formats.make_samples(questions, self.options.repeats, levels)

    def requests(self, sample: Sample[MiraeInputs]) -> list[Generate]:
        options, inputs = self.options, sample.inputs
        sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=self.seed)
        prompt = (Message("user", inputs.question_text),)
        repeats = range(inputs.first_repeat, inputs.first_repeat + inputs.samples)
        return [Generate(prompt=prompt, sampling=sampling, repeat=repeat) for repeat in repeats]

    def score(self, answered: Sequence[Answered[MiraeInputs]]) -> Scoring:
        from sealegs.benchmarks.mirae.added import score_prompts

        return score_prompts(answered, ANSWERS, judged=self.options.judge is not None)

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from sealegs.benchmarks.mirae.added import summarise

        return summarise(scores)


def with_padding(questions: Sequence[QuestionAtLevels], padding: str | None) -> list[QuestionAtLevels]:
    """The questions with the padding that is asked for; without a choice, elaborate where there is any: the
    published prompts are of that kind."""
    if padding is None:
        elaborate = {(each.lang, each.id) for each in questions if each.padding == "elaborate"}
        return [
            question
            for question in questions
            if question.padding in ("", "elaborate") or (question.lang, question.id) not in elaborate
        ]
    available = sorted({question.padding for question in questions if question.padding})
    wanted = ["elaborate", "neutral"] if padding == "both" else [padding]
    if absent := [kind for kind in wanted if kind not in available]:
        raise UsageError(
            f"--padding {padding}: no question of the data has the padding '{absent[0]}'. "
            f"Available: {', '.join(available) or 'none; leave the option out'}."
        )
    return [question for question in questions if question.padding in wanted]


def spread(questions: Sequence[QuestionAtLevels], limit: int | None) -> list[QuestionAtLevels]:
    """The first `limit` questions of each language, taking turns among the domains, in their own order.

    Questions that all languages have come first, so that the languages are asked the same ones. A question
    with two kinds of padding, or in several wordings, is one question.
    """
    if limit is None:
        return list(questions)
    ids: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for question in questions:
        ids[question.lang].setdefault(question.id, question.domain)
    first = next(iter(ids.values()), {})
    shared = {
        each: domain for each, domain in first.items() if all(each in of_lang for of_lang in ids.values())
    }
    chosen: dict[str, set[str]] = {}
    for lang, of_lang in ids.items():
        others = {each: domain for each, domain in of_lang.items() if each not in shared}
        chosen[lang] = set([*_in_turns(shared), *_in_turns(others)][:limit])
    return [question for question in questions if question.id in chosen[question.lang]]


def _in_turns(domains: Mapping[str, str]) -> list[str]:
    """The ids of questions: the first of each domain, the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns: dict[str, int] = {}
    for question_id, domain in domains.items():
        turns[question_id] = seen[domain]
        seen[domain] += 1
    return sorted(turns, key=turns.__getitem__)
