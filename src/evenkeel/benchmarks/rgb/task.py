"""RGB: does the answer survive bad retrieval?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks import Recorded, Scoring
from evenkeel.benchmarks.rgb import data
from evenkeel.benchmarks.rgb.abilities import (
    DATA,
    Setting,
    parse_abilities,
    parse_rates,
    settings,
)
from evenkeel.benchmarks.rgb.layout import LAYOUT, examples, notes
from evenkeel.benchmarks.rgb.prompts import Prompts, load_prompts
from evenkeel.benchmarks.rgb.samples import make_sample, recorded_sample
from evenkeel.data import DataFile, Starter
from evenkeel.errors import UsageError
from evenkeel.options import ASKING
from evenkeel.types import (
    Answered,
    Capability,
    Generate,
    Records,
    Request,
    Response,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
)

STARTER_SHA256 = {
    "en": "",
    "en_int": "",
    "en_fact": "",
    "zh": "",
    "zh_int": "",
    "zh_fact": "",
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
        str, Meta(description="own, published (from the fetched data), or a YAML file.", extra=ASKING)
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
            msgspec.structs.force_setattr(self, name, ",".join(f"{rate:g}" for rate in rates))

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
    from evenkeel.benchmarks.rgb.compose import compose

    lang, _, kind = stem.partition("_")
    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(lang, KIND_OF_STEM[kind]))


class Rgb:
    """One sample is one question at one setting."""

    Options = RgbOptions
    layout = LAYOUT
    starter = Starter(STARTER_SHA256, make_starter)

    def __init__(self, options: RgbOptions, *, seed: int = 0) -> None:
        self.options = options
        self.helpers: Mapping[str, str] = {"judge": options.judge} if options.judge else {}
        self.needs: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in ("model", *self.helpers)
        }
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    @cached_property
    def _prompts(self) -> dict[str, Prompts]:
        return load_prompts(self.options.prompts)

    def samples(
        self, files: Sequence[DataFile], *, langs: Sequence[str] | None, limit: int | None
    ) -> list[Sample]:
        """`limit` questions of each data set, at every setting that its kind has an ability for."""
        fallback = langs[0] if langs and len(langs) == 1 else None
        sets = [
            data.read_instances(file.path, lang=data.known_language(file.lang or fallback))
            for file in self._wanted(files)
        ]
        if langs and (absent := [lang for lang in langs if lang not in {found.lang for found in sets}]):
            raise UsageError(f"the data has no questions in '{absent[0]}'.")
        sets = [found for found in sets if not langs or found.lang in langs]
        self._check(sets)
        return [
            make_sample(found, instance, setting, order=self.options.doc_order, index=index)
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

    def requests(self, sample: Sample) -> tuple[Generate, ...]:
        inputs = sample.inputs
        messages = self._prompts[str(sample.tags["lang"])].messages(inputs["query"], inputs["docs"])
        return (Generate(prompt=messages, sampling=self._sampling),)

    def score(self, answered: Sequence[Answered]) -> Scoring:
        from evenkeel.benchmarks.rgb.measures import judge_all, measure

        judged = (yield from judge_all(answered)) if self.options.judge else {}
        return [measure(item, judged.get(item.sample.id)) for item in answered]

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel.benchmarks.rgb.summary import summarise

        return summarise(scores)

    notes = staticmethod(notes)
    examples = staticmethod(examples)

    def without(self, capabilities: frozenset[Capability]) -> None:
        """There is nothing that it could leave out."""

    def forecast(self, samples: Sequence[Sample], asked: Iterable[Request]) -> dict[str, tuple[int, int]]:
        """At the most every answer is judged once, and its verdict repaired once."""
        if not self.options.judge:
            return {}
        tokens = [request.sampling.max_tokens for request in asked if isinstance(request, Generate)]
        return {"judge": (2 * len(tokens), 2 * sum(tokens))}

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        rows = data.read_predictions(path)
        told = data.Setting.of(path.stem)
        dataset = told.dataset if told else path.stem
        language = lang or data.language(dataset, [row.query for row in rows])
        samples = [recorded_sample(row, dataset=dataset, lang=language, told=told) for row in rows]
        return Recorded(
            model=told.model if told else path.stem,
            samples=samples,
            responses=[[Response(status="ok", text=row.prediction)] for row in rows],
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        from evenkeel.benchmarks.rgb.export import prediction_files

        temperature = spec.options.get("temperature", 0.0)
        return prediction_files(spec.models["model"]["name"], temperature, records)
