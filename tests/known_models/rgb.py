"""Models for RGB: what each does with every prompt is decided beforehand, and so is what is true of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from evenkeel import api
from evenkeel.benchmarks.rgb.benchmark import Rgb, RgbOptions
from evenkeel.benchmarks.rgb.files import RgbSample
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Data
from evenkeel.harness.folder import Run
from evenkeel.text.answer_search.mention import parts
from known_models.server import KnownModel, Rule, in_chance_order, share_of
from known_models.wordings import Wording

Outcome: TypeAlias = Literal["right", "wrong", "declined", "reported"]
"""What a reply does. Reported: it says that the documents are wrong, and gives the right answer."""


class Dial(NamedTuple):
    """Shares of prompts."""

    right: float
    """Answered rightly, where the documents hold the answer or false versions of it."""
    rejects: float
    """Declined, where no document has the answer; the others get an invented answer."""
    declines: float = 0.0
    """Of the other prompts whose documents have the answer: declined instead of answered wrongly."""
    reports: float = 1.0
    """Of the right answers to prompts with false documents: those that report the error."""


def samples_of(data: Path, lang: str, limit: int, repeats: int = 1) -> tuple[Rgb, list[RgbSample]]:
    benchmark = Rgb(RgbOptions(repeats=repeats))
    stems = (f"{lang}{kind}.json" for kind in ("", "_int", "_fact"))
    files = Data([data_file(data / stem) for stem in stems], langs=[lang], limit=limit)
    return benchmark, benchmark.samples(files)


def outcomes(samples: Sequence[RgbSample], dial: Dial) -> dict[str, Outcome]:
    """The outcome of each sample by its id: of every setting just the shares that the dial says."""
    settings: defaultdict[str, list[RgbSample]] = defaultdict(list)
    for sample in samples:
        settings[str(sample.tags["setting"])].append(sample)
    decided: dict[str, Outcome] = {}
    for members in settings.values():
        shuffled = in_chance_order(members, lambda sample: sample.id)
        if members[0].tags["ability"] == "rejection":
            declined, invented = share_of(shuffled, dial.rejects)
            groups: dict[Outcome, Sequence[RgbSample]] = {"declined": declined, "wrong": invented}
        else:
            right, others = share_of(shuffled, dial.right)
            declined, wrong = share_of(others, dial.declines)
            false = [sample for sample in right if "wrong" in sample.inputs.kinds]
            reported, _ = share_of(false, dial.reports)
            groups = {"right": right, "declined": declined, "wrong": wrong}
            groups["reported"] = reported  # last: these are among the right ones
        decided |= {sample.id: outcome for outcome, listed in groups.items() for sample in listed}
    return decided


def true_accuracy(samples: Sequence[RgbSample], decided: Mapping[str, Outcome]) -> dict[str, float]:
    """By ability, at the setting that enters the headline: the share handled rightly."""
    hardest = {"noise": 0.8, "rejection": 1.0, "integration": 0.4, "counterfactual": 0.0}
    handled: defaultdict[str, list[bool]] = defaultdict(list)
    for sample in samples:
        ability = str(sample.tags["ability"])
        if sample.inputs.noise == hardest[ability] and sample.inputs.passages:
            rightly = ("declined",) if ability == "rejection" else ("right", "reported")
            handled[ability].append(decided[sample.id] in rightly)
    return {ability: sum(listed) / len(listed) for ability, listed in handled.items()}


def rule_of(
    benchmark: Rgb, samples: Sequence[RgbSample], decided: Mapping[str, Outcome], wording: Wording
) -> Rule:
    replies: defaultdict[str, list[str]] = defaultdict(list)
    for turn, sample in enumerate(samples):
        (request,) = benchmark.requests(sample)
        assert not isinstance(request.prompt, str)
        prompt = "\n".join(message.content for message in request.prompt)
        replies[prompt].append(_reply(sample, decided[sample.id], wording, turn, samples))
    return lambda prompt, time: replies[prompt][time % len(replies[prompt])]


def _reply(
    sample: RgbSample, outcome: Outcome, wording: Wording, turn: int, samples: Sequence[RgbSample]
) -> str:
    right = [alternatives[0] for alternatives in parts(sample.inputs.answer)]
    match outcome:
        case "right":
            return wording.answer(right, turn)
        case "declined":
            return wording.decline(turn)
        case "reported":
            return wording.report(right, _false_answer(sample, samples), turn)
        case "wrong":
            return wording.answer(_false_answer(sample, samples), turn)


def _false_answer(sample: RgbSample, samples: Sequence[RgbSample]) -> list[str]:
    """The false answer of the data, or else the right one of another question with as many parts."""
    if sample.inputs.fake:
        return [alternatives[0] for alternatives in parts(sample.inputs.fake)]
    return _wrong_parts(sample.inputs.dataset, sample.inputs.instance, tuple(samples_key(samples)))


def samples_key(samples: Sequence[RgbSample]) -> list[tuple[str, Any, tuple[str, ...]]]:
    return [
        (sample.inputs.dataset, sample.inputs.instance, tuple(p[0] for p in parts(sample.inputs.answer)))
        for sample in samples
    ]


@cache
def _wrong_parts(
    dataset: str, instance: Any, listed: tuple[tuple[str, Any, tuple[str, ...]], ...]
) -> list[str]:
    answers = dict.fromkeys((i, answer) for d, i, answer in listed if d == dataset)
    right = next(answer for i, answer in answers if i == instance)
    others = [answer for i, answer in answers if i != instance and len(answer) == len(right)]
    index = [i for i, _ in answers].index(instance)
    return list(next(a for a in others[index % len(others) :] + others if not set(right) & set(a)))


def play(
    data: Path, out: Path, dial: Dial, wording: Wording, *, limit: int, **options: Any
) -> tuple[Run, dict[str, float]]:
    """A run of the model with this dial in this wording, and its true accuracy by ability."""
    repeats = options.get("repeats", 1)
    benchmark, samples = samples_of(data, wording.lang, limit, repeats)
    decided = outcomes(samples, dial)
    with KnownModel(rule_of(benchmark, samples, decided, wording)) as server:
        run = api.run(
            "rgb", model="openai:known", base_url=server.url, data=str(data), lang=wording.lang, limit=limit,
            out=out, **options,
        )  # fmt: skip
    return run, true_accuracy(samples, decided)
