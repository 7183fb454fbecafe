"""Models for RGB: what each does with every prompt is decided beforehand, and so is what is true of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from known_models.server import KnownModel, Rule, in_chance_order, share_of
from known_models.wordings import Wording
from sealegs import api
from sealegs.benchmarks.rgb.benchmark import Rgb, RgbOptions
from sealegs.benchmarks.rgb.data import RgbSample
from sealegs.files.datasets import data_file
from sealegs.harness.data import Data
from sealegs.harness.folder import Run
from sealegs.text.answer_search.mention import RawAnswer, parts

Outcome: TypeAlias = Literal["right", "wrong", "declined", "reported"]
"""What a reply does. Reported: it says that the documents are wrong, and gives the right answer."""


HARDEST = {"noise": 0.8, "rejection": 1.0, "integration": 0.4, "counterfactual": 0.0}
"""The noise at which each ability enters the headline."""


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
    steady: bool = False
    """Whether all answers to one prompt have the same outcome."""


def samples_of(
    data: Path, lang: str, limit: int, noise: str = "0.8", repeats: int = 1
) -> tuple[Rgb, list[RgbSample]]:
    benchmark = Rgb(RgbOptions(noise_rates=noise, repeats=repeats))
    stems = (f"{lang}{kind}.json" for kind in ("", "_int", "_fact"))
    files = Data([data_file(data / stem) for stem in stems], langs=[lang], limit=limit)
    return benchmark, benchmark.samples(files)


def outcomes(samples: Sequence[RgbSample], dial: Dial) -> dict[str, Outcome]:
    """The outcome of each sample by its id: of every setting just the shares that the dial says.

    Where prompts are asked several times, a steady model has one outcome for all answers to a prompt, and
    any other the same shares among the answers to each.
    """
    settings: defaultdict[tuple[Any, ...], list[RgbSample]] = defaultdict(list)
    several = any(sample.inputs.repeat for sample in samples)
    for sample in samples:
        part = sample.inputs.repeat if dial.steady else sample.group if several else ""
        settings[sample.tags["setting"], part].append(sample)
    decided: dict[str, Outcome] = {}
    for members in settings.values():
        decided |= _decide(members, dial)
    return decided


def _decide(members: Sequence[RgbSample], dial: Dial) -> dict[str, Outcome]:
    """The outcomes of the prompts of one setting."""
    several = len({sample.group for sample in members}) == 1
    shuffled = in_chance_order(members, lambda sample: sample.id if several else sample.group)
    if members[0].tags["ability"] == "rejection":
        declined, invented = share_of(shuffled, dial.rejects)
        groups: dict[Outcome, Sequence[RgbSample]] = {"declined": declined, "wrong": invented}
    else:
        right, others = share_of(shuffled, dial.right)
        declined, wrong = share_of(others, dial.declines)
        false = [sample for sample in right if "wrong" in sample.inputs.kinds]
        groups = {"right": right, "declined": declined, "wrong": wrong}
        groups["reported"] = share_of(false, dial.reports)[0]  # last: these are among the right ones
    return {sample.id: outcome for outcome, listed in groups.items() for sample in listed}


def true_figures(samples: Sequence[RgbSample], decided: Mapping[str, Outcome]) -> dict[str, float]:
    """What is true of the replies, under the names of the figures that are to say so."""
    abilities: defaultdict[str, list[Outcome]] = defaultdict(list)
    answerable: list[Outcome] = []
    truth: dict[str, float] = {}
    for sample in samples:
        ability, outcome = str(sample.tags["ability"]), decided[sample.id]
        if not sample.inputs.passages:
            continue
        if sample.inputs.noise == HARDEST[ability]:
            abilities[ability].append(outcome)
        if ability in ("noise", "integration"):
            answerable.append(outcome)
    for ability, listed in abilities.items():
        rightly: tuple[Outcome, ...] = ("declined",) if ability == "rejection" else ("right", "reported")
        truth[f"macro_lenient/ability={ability}"] = _share(listed, *rightly)
    truth["macro_lenient"] = sum(truth.values()) / len(truth)
    truth["rejected_lenient"] = _share(abilities["rejection"], "declined")
    truth["no_answer_invented"] = _share(abilities["rejection"], "wrong")
    truth["no_answer_from_memory"] = 0.0
    truth["detected_lenient"] = _share(abilities["counterfactual"], "reported")
    if truth["detected_lenient"]:
        truth["corrected_lenient"] = 1.0
    for name in ("right", "wrong", "declined"):
        truth[f"outcome_{name}"] = _share(answerable, name)
    truth["outcome_cut_off"] = 0.0
    truth["right_minus_wrong"] = 100 * (truth["outcome_right"] - truth["outcome_wrong"])
    return truth


def _share(listed: Sequence[Outcome], *wanted: Outcome) -> float:
    return sum(outcome in wanted for outcome in listed) / len(listed)


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
    right = _spelled(sample.inputs.answer)
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
    dataset, instance = sample.inputs.dataset, sample.inputs.instance
    if sample.inputs.fake:
        return _spelled(sample.inputs.fake)
    inputs = (each.inputs for each in samples if each.inputs.dataset == dataset)
    answers = {each.instance: _spelled(each.answer) for each in inputs}
    place, right = list(answers).index(instance), answers.pop(instance)
    others = [answer for answer in answers.values() if len(answer) == len(right)]
    return next(a for a in others[place % len(others) :] + others if not set(right) & set(a))


def _spelled(answer: RawAnswer) -> list[str]:
    """Each part in its first spelling."""
    return [alternatives[0] for alternatives in parts(answer)]


class Known(NamedTuple):
    """A run of a model whose behaviour is known."""

    run: Run
    truth: dict[str, float]
    decided: dict[str, Outcome]

    def misread(self, name: str) -> list[tuple[Outcome, str]]:
        """Replies that were read otherwise than they were meant, with what they were meant to be."""
        metric = name.partition("/")[0].removeprefix("macro_")
        listed = []
        for record in self.run.records():
            meant, value = self.decided[record.sample.id], record.score.values.get(metric)
            rightly = ("declined",) if record.sample.tags["ability"] == "rejection" else ("right", "reported")
            if metric == "lenient" and value is not None and bool(value) != (meant in rightly):
                listed.append((meant, record.answers[0].text))
        return listed

    def shares(self) -> list[float]:
        """The shares that the verdict may speak of: values and bounds of the figures that it describes."""
        names = [name for name in self.run.summary if "/" not in name]
        figures = [self.run.summary[name] for name in names]
        bounds = (bound for figure in figures for bound in (figure.value, figure.low, figure.high))
        return [bound for bound in bounds if bound is not None]


def play(
    data: Path, out: Path, dial: Dial, wording: Wording, limit: int, *, noise: str = "0.8", **options: Any
) -> Known:
    """A run of the model with this dial in this wording."""
    benchmark, samples = samples_of(data, wording.lang, limit, noise, options.get("repeats", 1))
    decided = outcomes(samples, dial)
    with KnownModel(rule_of(benchmark, samples, decided, wording)) as server:
        run = api.run(
            "rgb", model="openai:known", base_url=server.url, data=str(data), lang=wording.lang, limit=limit,
            noise_rates=noise, out=out, **options,
        )  # fmt: skip
    return Known(run, true_figures(samples, decided), decided)
