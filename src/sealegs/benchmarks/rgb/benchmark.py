"""RGB: its options, its samples, and what is asked for each.

Published (Chen, Lin, Han and Sun, AAAI 2024) and followed to the digit: the abilities and the choice of
documents (`selection`), the labels of an answer and the rates (`published`), the prompts of model and judge
(fetched: `prompts`), and the files of questions (`data`) and of answers (`predictions`).

Added, under names of its own: questions with context as others publish them (`shapes`), the lenient check
(`check/`), a judge's verdicts as JSON (`judging`), the headline, false alarms, outcomes, repeats and every
interval (`added`), the balanced order of documents (`selection`), our own prompts (`prompts`) and data
(`make/`). Every figure is declared in `metrics`; `page` shows a run, `view` a sample.

How a sample becomes a figure:

    row ─ data.read_instances ─► question ─ at a setting: selection.select ─► documents ─ requests ─► answer
    answer ─ published, check.lenient, judging: added.measure ─► values ─ added.summarise ─► figures
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.rgb import data as formats
from sealegs.benchmarks.rgb import page, predictions, prompts, view
from sealegs.benchmarks.rgb.data import Questions, RgbDetail, RgbInputs, RgbSample
from sealegs.benchmarks.rgb.metrics import METRICS
from sealegs.benchmarks.rgb.selection import (
    DATA,
    NOISE_RATES,
    Ability,
    Order,
    Setting,
    parse_abilities,
    parse_rates,
    rate_text,
    select,
)
from sealegs.errors import UsageError, listed
from sealegs.files.datasets import Starter
from sealegs.harness.benchmark import ANSWERS, Benchmark, Help, Scoring, make_score
from sealegs.harness.data import ChosenSamples, Data
from sealegs.harness.published import Publishing, Recordings
from sealegs.options import ASKING, FILE
from sealegs.types import Answered, Generate, Sample, Sampling, Score, Summary


class RgbOptions(Struct, frozen=True, kw_only=True):
    """The options of an RGB run."""

    ability: Annotated[
        str,
        Meta(
            description="all that there is data for, or some of noise,rejection,integration,counterfactual.",
            extra=ASKING,
        ),
    ] = "all"
    noise_rates: Annotated[
        str | None,
        Meta(
            description="Shares of irrelevant documents, for noise and for other abilities that --ability "
            "names.  [default: 0,0.2,0.4,0.6,0.8; integration 0,0.2,0.4; counterfactual 0]",
            extra=ASKING,
        ),
    ] = None
    correct_rate: Annotated[
        str, Meta(description="Shares of true documents among false ones, counterfactual.", extra=ASKING)
    ] = "0"
    passages: Annotated[
        int,
        Meta(
            ge=0, description="Documents per prompt (0: none, tests the model's own knowledge).", extra=ASKING
        ),
    ] = 5
    doc_order: Annotated[
        Order,
        Meta(
            description="Balanced: the document with the answer is equally often at each position.",
            extra=ASKING,
        ),
    ] = "published"
    repeats: Annotated[int, Meta(ge=1, le=1000, description="Answers to each prompt.", extra=ASKING)] = 1
    prompts: Annotated[str, Meta(description="own, published (fetched) or a YAML file.", extra=FILE)] = "own"
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.", extra=ASKING)] = 0.2
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.", extra=ASKING)] = 256
    judge: Annotated[str | None, Meta(description="A model that also judges rejection and detection.")] = None
    judge_prompts: Annotated[Literal["own", "published"], Meta(description="What the judge is asked.")] = (
        "own"
    )

    def __post_init__(self) -> None:
        abilities = parse_abilities(self.ability)
        for name in ("noise_rates", "correct_rate"):
            if getattr(self, name) is not None:
                rates = parse_rates(getattr(self, name), f"--{name.replace('_', '-')}")
                # One way to write it, so that 0,.2 and 0,0.2 are the same run.
                msgspec.structs.force_setattr(self, name, ",".join(map(rate_text, rates)))
        if abilities == ["rejection"] and not self.passages:
            raise ValueError("--ability rejection asks about documents: --passages must be at least 1")
        for setting in self.settings:
            if setting.ability == "counterfactual" and setting.false_documents < 0:
                raise ValueError(
                    f"--correct-rate {rate_text(setting.correct)} with noise {rate_text(setting.noise)}: the "
                    f"true and the irrelevant documents are more than --passages {self.passages}. "
                    "Give lower rates"
                )

    def _noise_rates(self, ability: Ability) -> tuple[float, ...]:
        """`all` leaves the other abilities at their own rates: the headline does not depend on those of
        noise robustness."""
        applies = ability == "noise" or self.ability.strip() != "all"
        rates = self.noise_rates if self.noise_rates and applies else NOISE_RATES[ability]
        return parse_rates(NOISE_RATES["rejection"] if ability == "rejection" else rates, "--noise-rates")

    @property
    def settings(self) -> list[Setting]:
        """The settings of each ability; a counterfactual question is also asked without documents."""
        settings: list[Setting] = []
        for ability in parse_abilities(self.ability):
            if ability == "counterfactual" or (ability != "rejection" and not self.passages):
                settings.append(Setting(ability, 0.0, 0))
            correct = parse_rates(self.correct_rate, "") if ability == "counterfactual" else (0.0,)
            if self.passages:
                settings += [
                    Setting(ability, noise, self.passages, true)
                    for noise in self._noise_rates(ability)
                    for true in correct
                ]
        return settings


STARTER_SHA256 = {
    "en": "b74a91ac7095148168e3fe90f4c2b886cfd674277b7cf11d1f28b6c8caa7cdd7",
    "en_int": "157dae14109240939dff819ec8d578632b0f954d7b080b0d10a1bf347b27543c",
    "en_fact": "0dc441e640a3d6928194359c680651afcf9fad3f8be393563aa1e72329beb7c1",
    "zh": "facda71150f2845272bd9dafb54541d97c6a61ae70378506ff85b8fd459568cf",
    "zh_int": "ab43b15b9fcaaf35712463eaf33909a1e50d6f2cadbfb893eb347c9e7eb8e2f6",
    "zh_fact": "c12ee6fb6f97a02a7fefd02a0b263d38bad42b9122605c1d6b6261ba9d10ccf1",
}


def make_starter(stem: str) -> bytes:
    from sealegs.benchmarks.rgb.make.generator import compose

    lang, _, kind = stem.partition("_")
    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(lang, kind or "plain"))


class Rgb(Benchmark[RgbInputs, RgbDetail]):
    """Does the answer survive bad retrieval?

    One sample is one question at one setting.
    """

    Options = RgbOptions
    layout = msgspec.structs.replace(page.LAYOUT, for_run=page.layout_for)
    metrics = METRICS
    notes = staticmethod(page.notes)
    view = staticmethod(view.view)
    starter = Starter(STARTER_SHA256, make_starter, tables=False)
    recordings = Recordings(
        lambda benchmark, path, lang: predictions.recorded(
            path, formats.known_language(lang), benchmark._judge_prompt
        ),
        predictions.combine,
    )
    publishing = Publishing(lambda benchmark, spec, records: predictions.prediction_files(spec, records))
    builder = "sealegs.benchmarks.rgb.make.builder:RgbBuilder"
    help = Help(
        examples={
            "run": (
                "sealegs run rgb --model embedded --ability all --limit 20",
                "sealegs run rgb --model openai:NAME --ability noise --noise-rates 0,0.8 "
                "--doc-order balanced",
                "sealegs run rgb --model openai:NAME --ability counterfactual --noise-rates 0.2 "
                "--correct-rate 0,0.4",
                "sealegs run rgb --model openai:NAME --judge openai:OTHER --data published --lang en,zh "
                "--prompts published --judge-prompts published",
            ),
            "score": (
                "sealegs score rgb prediction_en_NAME_temp0.2_noise0.4_passage5_correct0.0.json",
                "sealegs score rgb prediction_en_NAME_temp0.2_noise1.0_passage5_correct0.0_chatgpt.json",
            ),
            "build": (
                "sealegs build rgb --docs my-documents/ --model openai:NAME --out data/mine",
                "sealegs build rgb --seed 7 --lang en,zh",
            ),
        },
        demo={"model": "embedded", "limit": 8, "passages": 2, "noise_rates": "0.5", "max_tokens": 120},
        limit="questions of each data set",
    )
    options: RgbOptions

    def __init__(self, options: RgbOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        self.roles = {role: {"generate"} for role in ("model", *(["judge"] if options.judge else []))}
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    @cached_property
    def _prompts(self) -> dict[str, prompts.Prompts]:
        return prompts.load_prompts(self.options.prompts)

    @cached_property
    def _judge_prompts(self) -> dict[str, prompts.JudgePrompt]:
        return prompts.load_judge_prompts(self.options.judge_prompts)

    def samples(self, data: Data) -> list[Sample]:
        """`limit` questions of each data set, at every setting that its kind has an ability for, as often as
        repeats are asked for."""
        datasets = self._datasets(data)
        questions = Questions(
            (f"{dataset.name}-{instance.id}", instance.query, dataset.kind != "int")
            for dataset in datasets
            for instance in dataset.instances
        )
        samples = [
            self._sample(dataset, instance, setting, index, repeat, questions)
            for setting in self.options.settings
            for dataset in datasets
            if dataset.kind == DATA[setting.ability] and dataset.can_ask(setting.noise, setting.passages)
            for index, instance in enumerate(dataset.instances[: data.limit])
            for repeat in range(self.options.repeats)
        ]
        if not samples:
            raise UsageError(
                "the questions lack documents for these settings. Without documents that have the answer "
                "('positive'), or without answers, use --ability rejection; without irrelevant ones "
                "('negative') --noise-rates 0."
            )
        return ChosenSamples(samples, facts=formats.held_by_irrelevant(samples))

    def _datasets(self, data: Data) -> list[formats.Dataset]:
        # The published data has every plain set twice, the second time with corrected documents.
        stems = {file.path.stem for file in data}
        chosen = [f for f in data if f.path.stem.removesuffix("_refine") not in stems - {f.path.stem}]
        datasets = [
            formats.read_instances(file.path, lang=formats.known_language(file.lang)) for file in chosen
        ]
        langs = dict.fromkeys(dataset.lang for dataset in datasets)
        if absent := [lang for lang in data.langs or () if lang not in langs]:
            raise UsageError(f"the data has no questions in '{absent[0]}'. Available: {', '.join(langs)}.")
        datasets = [dataset for dataset in datasets if not data.langs or dataset.lang in data.langs]
        kinds = dict.fromkeys(dataset.kind for dataset in datasets)
        for ability in parse_abilities(self.options.ability):
            if self.options.ability != "all" and DATA[ability] not in kinds:
                raise UsageError(
                    f"--ability {ability} needs a data set of kind '{DATA[ability]}'. "
                    f"Available: {', '.join(kinds)}."
                )
        for dataset in datasets:
            if dataset.lang not in self._prompts:
                raise UsageError(
                    f"--prompts {self.options.prompts} has no prompts for '{dataset.lang}'. "
                    f"Available: {', '.join(self._prompts)}."
                )
        names = Counter(dataset.name for dataset in datasets)
        if twice := [name for name, number in names.items() if number > 1]:
            paths = [str(file.path) for file in chosen if file.path.stem == twice[0]]
            raise UsageError(f"two files are named '{twice[0]}': {listed(paths)}. Give one of them.")
        return datasets

    def _sample(
        self,
        dataset: formats.Dataset,
        instance: formats.Instance,
        setting: Setting,
        index: int,
        repeat: int,
        questions: Questions,
    ) -> RgbSample:
        selection = select(instance, setting, order=self.options.doc_order, index=index)
        tags = setting.tags(dataset.lang)
        # Where several documents are true, the position of one of them says little.
        if setting.ability == "noise" and selection.kinds.count("positive") == 1:
            tags["position"] = selection.kinds.index("positive") + 1
        variant = f"repeat{repeat + 1}" if repeat else ""
        return Sample(
            id=f"{dataset.name}-{instance.id}-{setting.name}{variant and f'-{variant}'}",
            group=questions.group(instance.query),
            tags=tags,
            inputs=RgbInputs(
                dataset=dataset.name,
                instance=instance.id,
                joins=questions.joined(instance.query) if dataset.kind == "int" else (),
                query=instance.query,
                answer=instance.raw_answer or [],
                fake=instance.raw_fake,
                docs=selection.docs,
                kinds=selection.kinds,
                note=selection.note,
                noise=setting.noise,
                passages=setting.passages,
                correct=setting.correct,
                repeat=repeat,
                variant=variant,
                prompts=None if self.options.prompts == "own" else self._prompts[dataset.lang],
                judge=self._judge_prompt(setting),
                private=instance.private,
            ),
        )

    def _judge_prompt(self, setting: Setting) -> prompts.JudgePrompt | None:
        """What a sample stores: a run's folder is scored again without the file of the judge's prompts."""
        if not self.options.judge or self.options.judge_prompts == "own":
            return None
        kind = {"rejection": "rejection", "counterfactual": "detection"}.get(setting.ability, "")
        prompt = self._judge_prompts.get(kind)  # read before anything is asked, whatever is judged
        return prompt if setting.passages else None

    def requests(self, sample: RgbSample) -> tuple[Generate, ...]:
        inputs = sample.inputs
        prompts = inputs.prompts or self._prompts[str(sample.tags["lang"])]
        messages = prompts.messages(inputs.query, inputs.docs, closed=inputs.passages == 0)
        return (Generate(prompt=messages, sampling=self._sampling, repeat=inputs.repeat),)

    def score(self, answered: Sequence[Answered[RgbInputs]]) -> Scoring:
        from sealegs.benchmarks.rgb import added, judging, published

        counted = [item for item in answered if self._counts(item)]
        if self.options.judge:
            judged = yield from judging.ask(counted, lambda kind: self._judge_prompts[kind])
        else:
            judged = judging.recorded(counted)
        settings = added.headline_settings(item.sample for item in answered)
        scores = []
        for item in answered:
            measured, detail = added.measure(item.sample, item.responses[0])
            score = make_score(item, **measured)
            if self._counts(item) and not score.answered:
                score = added.empty_reply(score, measured)
            values = score.values | {"lacks_documents": float(bool(item.sample.inputs.note))}
            if verdict := judged.get(item.sample.id):
                detail = msgspec.structs.replace(detail, judge=verdict.status, evaluation=verdict.evaluation)
                labels = published.Published(detail.label, detail.factlabel, item.sample.inputs.noise)
                values |= added.judge_values(verdict, values, labels)
            values |= added.headline_values(score.tags, values, settings)
            scores.append(
                msgspec.structs.replace(
                    score,
                    values=values,
                    links=item.sample.inputs.joins,
                    detail=detail if score.answered else None,
                )
            )
        return scores

    def _counts(self, item: Answered[RgbInputs]) -> bool:
        """Whether there is an answer. The published scripts count an empty one that they recorded."""
        response = item.responses[0]
        recorded = item.sample.inputs.temperature is not None
        return ANSWERS.counts(response) or (recorded and response.status == "ok")

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from sealegs.benchmarks.rgb import added

        return added.summarise(scores)
