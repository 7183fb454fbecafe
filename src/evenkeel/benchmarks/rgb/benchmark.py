"""RGB: its samples, and what is asked for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice, product
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evenkeel.benchmarks.rgb import files, page, view
from evenkeel.benchmarks.rgb.files import RgbDetail, RgbInputs, RgbSample
from evenkeel.benchmarks.rgb.options import RgbOptions
from evenkeel.benchmarks.rgb.predictions import (
    JUDGED,
    Prediction,
    PredictionFile,
    prediction_files,
    read_predictions,
)
from evenkeel.benchmarks.rgb.selection import (
    DATA,
    Selection,
    Setting,
    ability_of,
    parse_abilities,
    select,
)
from evenkeel.errors import UsageError, listed
from evenkeel.files.datasets import DataFile, Starter
from evenkeel.harness.benchmark import Benchmark, Data, Question, Recorded, Scoring
from evenkeel.types import Answered, Generate, Records, Response, RunSpec, Sample, Sampling, Score, Summary

MOST_REFERENCES = 100
"""Ways to write the right answer that other formats are given: alternatives of several parts multiply."""

STARTER_SHA256 = {
    "en": "adc7aac9e73411e62f666c1af5a047b8cf1e6a8cf56298f03eba692fcc179389",
    "en_int": "d5864cd6837ae3fd925fd9f1c9d99adc978e33505ba6e1b095d96afc2f5997d2",
    "en_fact": "c06bacf7ef239f55575191a0dbc43e86169423f674fff5990c93798e7ed7f89e",
    "zh": "6f5e57397b45747bc2229a2a31970db67cbdaab26bd5340aef7082e8497a2a7d",
    "zh_int": "a57d532fb4e2a803223174be6ae1d548ef82faaf2d18ee63e11cf7ed147fdd07",
    "zh_fact": "7dbf07a487d335babdbcf4917bd730866a216c94ed76d9171442edfa704f6900",
}


def make_starter(stem: str) -> bytes:
    from evenkeel.benchmarks.rgb.make.generator import compose

    lang, _, kind = stem.partition("_")
    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(lang, kind or "plain"))


class Rgb(Benchmark):
    """Does the answer survive bad retrieval?

    One sample is one question at one setting.
    """

    Options = RgbOptions
    tables = False
    Inputs = RgbInputs
    Detail = RgbDetail | None
    layout = page.LAYOUT
    metrics = page.METRICS
    starter = Starter(STARTER_SHA256, make_starter)
    usage: ClassVar[Mapping[str, Sequence[str]]] = {
        "run": (
            "evenkeel run rgb --model embedded --ability all --limit 20",
            "evenkeel run rgb --model openai:NAME --ability noise --noise-rates 0,0.8 --doc-order balanced",
            "evenkeel run rgb --model openai:NAME --ability counterfactual --noise-rates 0.2 "
            "--correct-rate 0,0.4",
            "evenkeel run rgb --model openai:NAME --judge openai:OTHER --data published --lang en,zh "
            "--prompts published --judge-prompts published",
        ),
        "score": (
            "evenkeel score rgb prediction_en_NAME_temp0.2_noise0.4_passage5_correct0.0.json",
            "evenkeel score rgb prediction_en_NAME_temp0.2_noise1.0_passage5_correct0.0_chatgpt.json",
        ),
        "build": (
            "evenkeel build rgb --docs my-documents/ --model openai:NAME --out data/mine",
            "evenkeel build rgb --seed 7 --lang en,zh",
        ),
    }
    demo: ClassVar[Mapping[str, Any]] = {
        "model": "embedded",
        "limit": 2,
        "passages": 3,
        "noise_rates": "0,0.6",
        "integration_rates": "0",
        "max_tokens": 24,
    }
    notes = staticmethod(page.notes)
    examples = staticmethod(view.examples)
    view = staticmethod(view.view)

    def __init__(self, options: RgbOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        self.roles = {role: {"generate"} for role in ("model", *(["judge"] if options.judge else []))}
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    @cached_property
    def _prompts(self) -> dict[str, files.Prompts]:
        return files.load_prompts(self.options.prompts)

    @cached_property
    def _judge_prompts(self) -> dict[str, files.JudgePrompt]:
        return files.load_judge_prompts(self.options.judge_prompts)

    def samples(self, data: Data) -> list[Sample]:
        """`limit` questions of each data set, at every setting that its kind has an ability for; of each, as
        many repeats as asked for, and where every position is asked for, one at each."""
        datasets = self._datasets(data)
        return [
            self._sample(dataset, instance, setting, selection, variant, repeat)
            for setting in self.options.settings
            for dataset in datasets
            if dataset.kind == DATA[setting.ability]
            for index, instance in enumerate(dataset.instances[: data.limit])
            for variant, selection in self._selections(instance, setting, index)
            for repeat in range(self.options.repeats)
        ]

    def _selections(
        self, instance: files.Instance, setting: Setting, index: int
    ) -> Iterator[tuple[str, Selection]]:
        """The documents of a question at a setting, and which position of the true one was not published."""
        order = self.options.doc_order
        selection = select(
            instance, setting, order="balanced" if order == "balanced" else "published", index=index
        )
        if order != "all" or setting.ability != "noise" or selection.kinds.count("positive") != 1:
            yield "", selection
            return
        published = selection.kinds.index("positive")
        for position in range(len(selection.docs)):
            moved = select(instance, setting, order="all", index=position)
            yield "" if position == published else f"position{position + 1}", moved

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """`samples` has chosen already: its limit counts by data set."""
        return samples

    def _datasets(self, data: Data) -> list[files.Dataset]:
        datasets = [
            files.read_instances(file.path, lang=files.known_language(file.lang))
            for file in self._chosen_files(data)
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
            paths = [str(file.path) for file in self._chosen_files(data) if file.path.stem == twice[0]]
            raise UsageError(f"two files are named '{twice[0]}': {listed(paths)}. Give one of them.")
        return datasets

    def _chosen_files(self, data: Data) -> list[DataFile]:
        stems = [file.path.stem for file in data]
        chosen = [part.strip() for part in self.options.dataset.split(",") if part.strip()]
        if unknown := [stem for stem in chosen if stem not in stems]:
            raise UsageError(f"--dataset {unknown[0]}: the data has {', '.join(stems)}.")
        # The published data has every plain set twice, the second time with corrected documents.
        chosen = chosen or [stem for stem in stems if stem.removesuffix("_refine") not in {*stems} - {stem}]
        return [file for file in data if file.path.stem in chosen]

    def _sample(
        self,
        dataset: files.Dataset,
        instance: files.Instance,
        setting: Setting,
        selection: Selection,
        variant: str,
        repeat: int,
    ) -> RgbSample:
        variant = "_".join(filter(None, (variant, f"repeat{repeat + 1}" if repeat else "")))
        tags = setting.tags(dataset.lang)
        # Where several documents are true, the position of one of them says little.
        if setting.ability == "noise" and selection.kinds.count("positive") == 1:
            tags["position"] = selection.kinds.index("positive") + 1
        return Sample(
            id=f"{dataset.name}-{instance.id}-{setting.name}{variant and f'-{variant}'}",
            group=f"{dataset.name}-{instance.id}",
            tags=tags,
            inputs=RgbInputs(
                dataset=dataset.name,
                instance=instance.id,
                query=instance.query,
                answer=instance.raw_answer,
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
            ),
        )

    def _judge_prompt(self, setting: Setting) -> files.JudgePrompt | None:
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

    def question(self, sample: RgbSample) -> Question:
        """The right answer of a question in several parts has one of the alternatives of each."""
        answers = product(*files.parts(sample.inputs.answer))
        references = tuple(", ".join(each) for each in islice(answers, MOST_REFERENCES))
        return super().question(sample)._replace(references=references)

    def score(self, answered: Sequence[Answered[RgbInputs]]) -> Scoring:
        from evenkeel.benchmarks.rgb import judging, scoring

        counted = [item for item in answered if self.answers.counts(item.responses[0])]
        if self.options.judge:
            judged = yield from judging.ask(counted, self._judge_prompts)
        else:
            judged = judging.recorded(counted)
        settings = scoring.headline_settings(item.sample for item in answered)
        scores = []
        for item in answered:
            measured, detail = scoring.measure(item.sample, item.responses[0].text)
            score = self.scored(item, **measured)
            values = score.values | {"lacks_documents": float(bool(item.sample.inputs.note))}
            if verdict := judged.get(item.sample.id):
                detail = msgspec.structs.replace(detail, judge=verdict.status, evaluation=verdict.evaluation)
                labels = scoring.Published(detail.label, detail.factlabel, item.sample.inputs.noise)
                values |= scoring.judge_values(verdict, values, labels)
            values |= scoring.headline_values(score.tags, values, settings)
            scores.append(
                msgspec.structs.replace(score, values=values, detail=detail if score.answered else None)
            )
        return scores

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel.benchmarks.rgb.figures import summarise

        return summarise(scores)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        """The lines of a prediction file. Each keeps its answer, where several have the same prompt too."""
        rows = read_predictions(path)
        file = PredictionFile.parse(path.stem)
        dataset = file.dataset if file else path.stem.removesuffix(JUDGED)
        known = files.known_language(lang) or files.language(dataset, [row.query for row in rows])
        repeats: defaultdict[tuple[str, tuple[str, ...]], Iterator[int]] = defaultdict(count)
        return Recorded(
            model=file.model if file else path.stem,
            samples=[
                self._recorded_sample(row, file, dataset, known, next(repeats[row.query, row.docs]))
                for row in rows
            ],
            responses=[[Response(status="ok", text=row.prediction)] for row in rows],
        )

    def _recorded_sample(
        self, row: Prediction, file: PredictionFile | None, dataset: str, lang: str, repeat: int
    ) -> RgbSample:
        """What the name of a prediction file does not say is read from the line."""
        setting = Setting(
            ability_of(dataset, row.noise_rate),
            row.noise_rate,
            file.passages if file else len(row.docs),
            file.correct if file else 0.0,
        )
        return Sample(
            id=f"{dataset}-{row.id}",
            group=f"{dataset}-{row.id}",
            tags=setting.tags(lang),
            inputs=RgbInputs(
                dataset=dataset,
                instance=row.id,
                query=row.query,
                answer=row.answer,
                fake=row.fakeanswer,
                docs=row.docs,
                kinds=(),
                note="",
                noise=setting.noise,
                passages=setting.passages,
                correct=setting.correct,
                temperature=file.temperature if file else 0.0,
                repeat=repeat,
                judge=self._judge_prompt(setting),
                evaluation=row.evaluation,
                published=_published_figures(row, setting),
            ),
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        temperature = spec.options.get("temperature", 0.0)
        return prediction_files(spec.models["model"]["name"], temperature, records)

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.rgb.make.builder import RgbBuilder

        return RgbBuilder


def _published_figures(row: Prediction, setting: Setting) -> dict[str, float]:
    """What the line itself says of its answer, to be compared with our values."""
    from evenkeel.benchmarks.rgb.scoring import Published

    if not row.label:
        return {}
    right = float(Published(row.label, row.factlabel or 0, row.noise_rate).right)
    if setting.closed_book:
        return {"known_published": right}
    figures = {"published": right}
    if setting.ability == "counterfactual" and row.factlabel is not None:
        reported = "detected" if row.docs and setting.false_documents > 0 else "false_alarms"
        figures[f"{reported}_published"] = float(row.factlabel)
    return figures
