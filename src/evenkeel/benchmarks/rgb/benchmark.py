"""RGB: does the answer survive bad retrieval?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.rgb import files as data
from evenkeel.benchmarks.rgb.abilities import (
    DATA,
    Setting,
    parse_abilities,
    parse_rates,
    settings,
    written,
)
from evenkeel.benchmarks.rgb.page import LAYOUT, examples, notes
from evenkeel.benchmarks.rgb.prompts import Prompts, load_prompts
from evenkeel.benchmarks.rgb.samples import make_sample, recorded_samples
from evenkeel.errors import UsageError
from evenkeel.files.datasets import DataFile, Starter
from evenkeel.options import ASKING, FILE
from evenkeel.run.benchmark import Benchmark, Data, Recorded, Scoring
from evenkeel.types import (
    Answered,
    Capability,
    Generate,
    Records,
    Response,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
    to_jsonable,
)

STARTER_SHA256 = {
    "en": "adc7aac9e73411e62f666c1af5a047b8cf1e6a8cf56298f03eba692fcc179389",
    "en_int": "580abc0c660eadb47a98f85af134af91ade5d1d668eb785b6ede635795c5feb5",
    "en_fact": "8d64054cad338d31dc83dd2cf0f8b130472a8bd383e22baef85e71ab9f48d9f3",
    "zh": "6f5e57397b45747bc2229a2a31970db67cbdaab26bd5340aef7082e8497a2a7d",
    "zh_int": "667bd209d90b5f1dfc9c8fc3bd8a47dc40b00d92e6666af72fbff6b9124328d0",
    "zh_fact": "ef9722032e449d23fb0d42b877c6c669cdf660fcd2db54b8d95287de96c1407f",
}
KIND_OF_STEM = {"": "plain", "int": "int", "fact": "fact"}


class RgbOptions(Struct, frozen=True, kw_only=True):
    """What can be set about an RGB run."""

    ability: Annotated[
        str,
        Meta(
            description="all that there is data for, or some of noise,rejection,integration,counterfactual.",
            extra=ASKING,
        ),
    ] = "all"
    noise_rates: Annotated[
        str, Meta(description="Shares of documents beside the point, for noise robustness.", extra=ASKING)
    ] = "0,0.2,0.4,0.6,0.8"
    integration_rates: Annotated[
        str, Meta(description="The same for information integration.", extra=ASKING)
    ] = "0,0.2,0.4"
    correct_rate: Annotated[
        str, Meta(description="Shares of true documents among false ones, counterfactual.", extra=ASKING)
    ] = "0"
    passages: Annotated[int, Meta(ge=1, description="Documents in a prompt.", extra=ASKING)] = 5
    doc_order: Annotated[
        Literal["published", "balanced"],
        Meta(
            description="As published, or balanced: the true document at every place alike.",
            extra=ASKING,
        ),
    ] = "published"
    prompts: Annotated[
        str, Meta(description="own, published (from the fetched data), or a YAML file.", extra=FILE)
    ] = "own"
    dataset: Annotated[
        str, Meta(description="Of several data sets only these: en,en_fact.", extra=ASKING)
    ] = ""
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.", extra=ASKING)] = 0.2
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.", extra=ASKING)] = 256
    judge: Annotated[
        str | None, Meta(description="A model that also decides rejection and error detection.")
    ] = None

    def __post_init__(self) -> None:
        parse_abilities(self.ability)
        for name in ("noise_rates", "integration_rates", "correct_rate"):
            rates = parse_rates(getattr(self, name), f"--{name.replace('_', '-')}")
            # One way to write it, so that 0,.2 and 0,0.2 are the same run.
            msgspec.structs.force_setattr(self, name, ",".join(map(written, rates)))

    @property
    def settings(self) -> list[Setting]:
        return [
            setting
            for ability in parse_abilities(self.ability)
            for setting in settings(
                ability,
                passages=self.passages,
                noise_rates=parse_rates(self.noise_rates, "--noise-rates"),
                integration_rates=parse_rates(self.integration_rates, "--integration-rates"),
                correct_rates=parse_rates(self.correct_rate, "--correct-rate"),
            )
        ]


def make_starter(stem: str) -> bytes:
    from evenkeel.benchmarks.rgb.make.generator import compose

    lang, _, kind = stem.partition("_")
    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(lang, KIND_OF_STEM[kind]))


class Rgb(Benchmark):
    """One sample is one question at one setting."""

    Options = RgbOptions
    layout = LAYOUT
    metrics = LAYOUT.metrics
    starter = Starter(STARTER_SHA256, make_starter)

    def __init__(self, options: RgbOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        self.helpers: Mapping[str, str] = {"judge": options.judge} if options.judge else {}
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in ("model", *self.helpers)
        }
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    @cached_property
    def _prompts(self) -> dict[str, Prompts]:
        return load_prompts(self.options.prompts)

    def samples(self, files: Data) -> list[Sample]:
        """`limit` questions of each data set, at every setting that its kind has an ability for."""
        langs, limit = files.langs, files.limit
        sets = [
            data.read_instances(file.path, lang=data.known_language(file.lang))
            for file in self._wanted(files)
        ]
        if langs and (absent := [lang for lang in langs if lang not in {found.lang for found in sets}]):
            raise UsageError(f"the data has no questions in '{absent[0]}'.")
        sets = [found for found in sets if not langs or found.lang in langs]
        self._check(sets)
        return [
            make_sample(
                found,
                instance,
                setting,
                order=self.options.doc_order,
                index=index,
                # A run's folder is whole: it is scored again where a file of prompts is no longer at hand.
                **(
                    {}
                    if self.options.prompts == "own"
                    else {"prompts": to_jsonable(self._prompts[found.lang])}
                ),
            )
            for setting in self.options.settings
            for found in sets
            if found.kind == DATA[setting.ability]
            for index, instance in enumerate(found.instances[:limit])
        ]

    def _wanted(self, files: Sequence[DataFile]) -> list[DataFile]:
        stems = [part.strip() for part in self.options.dataset.split(",") if part.strip()]
        there = [file.path.stem for file in files]
        if unknown := [stem for stem in stems if stem not in there]:
            raise UsageError(f"--dataset {unknown[0]}: the data has {', '.join(there)}.")
        if stems:
            return [file for file in files if file.path.stem in stems]
        # The published data has every plain set twice, the second time with documents that were mended.
        return [
            file
            for file in files
            if file.path.stem.removesuffix("_refine") not in set(there) - {file.path.stem}
        ]

    def _check(self, sets: Sequence[data.Dataset]) -> None:
        kinds = {found.kind for found in sets}
        for ability in parse_abilities(self.options.ability):
            if self.options.ability != "all" and DATA[ability] not in kinds:
                raise UsageError(
                    f"--ability {ability} needs a data set of kind '{DATA[ability]}'; "
                    f"there is: {', '.join(kinds)}."
                )
        for found in sets:
            if found.lang not in self._prompts:
                raise UsageError(f"--prompts {self.options.prompts} has nothing for '{found.lang}'.")
        twice = [name for name, n in Counter(found.name for found in sets).items() if n > 1]
        if twice:
            raise UsageError(f"two files are named '{twice[0]}': give one of them.")

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """`samples` has chosen already."""
        return samples

    def requests(self, sample: Sample) -> tuple[Generate, ...]:
        inputs = sample.inputs
        own = inputs.get("prompts")
        prompts = msgspec.convert(own, Prompts) if own else self._prompts[str(sample.tags["lang"])]
        messages = prompts.messages(inputs["query"], inputs["docs"], closed=inputs["passages"] == 0)
        return (Generate(prompt=messages, sampling=self._sampling, repeat=inputs.get("repeat", 0)),)

    def score(self, answered: Sequence[Answered]) -> Scoring:
        from evenkeel.benchmarks.rgb.headline import headline_settings, with_headline
        from evenkeel.benchmarks.rgb.scoring import judge_all, measure

        judged = (yield from judge_all(answered)) if self.options.judge else {}
        scores = [measure(item, judged.get(item.sample.id)) for item in answered]
        return with_headline(scores, headline_settings(item.sample for item in answered))

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel.benchmarks.rgb.summary import summarise

        return summarise(scores)

    notes = staticmethod(notes)
    examples = staticmethod(examples)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        rows = data.read_predictions(path)
        told = data.Setting.of(path.stem)
        dataset = told.dataset if told else path.stem
        language = data.known_language(lang) or data.language(dataset, [row.query for row in rows])
        return Recorded(
            model=told.model if told else path.stem,
            samples=recorded_samples(rows, dataset=dataset, lang=language, told=told),
            responses=[[Response(status="ok", text=row.prediction)] for row in rows],
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        from evenkeel.benchmarks.rgb.export import prediction_files

        temperature = spec.options.get("temperature", 0.0)
        return prediction_files(spec.models["model"]["name"], temperature, records)

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.rgb.make.builder import RgbBuilder

        return RgbBuilder
