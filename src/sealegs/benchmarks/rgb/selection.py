"""Which documents a question is asked with: the settings of each ability, and the choice at each.

The published script seeds Python's `random` with 2333 anew for every question, so a question's documents
depend on nothing but the question and the setting. It shuffles the groups of integration sets in place,
but reads its file afresh for every setting, so that leaves no trace either.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import zip_longest
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from sealegs.benchmarks.rgb.data import DocKind, Instance, Kind
from sealegs.errors import suggestion
from sealegs.types import Tag

SEED = 2333
Ability: TypeAlias = Literal["noise", "rejection", "integration", "counterfactual"]
Order: TypeAlias = Literal["published", "balanced"]
_Docs: TypeAlias = list[tuple[str, DocKind]]

ABILITIES: dict[Ability, str] = {
    "noise": "noise robustness",
    "rejection": "negative rejection",
    "integration": "information integration",
    "counterfactual": "counterfactual robustness",
}
DATA: dict[Ability, Kind] = {
    "noise": "plain", "rejection": "plain", "integration": "int", "counterfactual": "fact",
}  # fmt: skip
"""The kind of data set that each is asked with."""
NOISE_RATES: dict[Ability, str] = {
    "noise": "0,0.2,0.4,0.6,0.8", "rejection": "1", "integration": "0,0.2,0.4", "counterfactual": "0",
}  # fmt: skip
"""The published shares of irrelevant documents."""


# Settings


class Setting(NamedTuple):
    """One way in which the questions of a data set are asked."""

    ability: Ability
    noise: float
    passages: int
    correct: float = 0.0

    @property
    def name(self) -> str:
        noise = f"noise {rate_text(self.noise)}"
        match self.ability:
            case "rejection":
                return "no answer in the documents"
            case "noise":
                return "no documents, plain questions" if self.closed_book else noise
            case "integration":
                return "no documents, integration" if self.closed_book else f"integration, {noise}"
            case "counterfactual" if self.closed_book:
                return "no documents"
        some_false = self.false_documents > 0
        true = f"{rate_text(self.correct)} of them true" if some_false else f"{rate_text(self.correct)} true"
        parts = (
            "false documents" if some_false else "no false documents",
            true if self.correct and (some_false or self.correct < 1) else "",
            noise if self.noise else "",
        )
        return ", ".join(filter(None, parts))

    @property
    def closed_book(self) -> bool:
        """Whether it asks for what is known. A question that is to be rejected is about documents."""
        return not self.passages and self.ability != "rejection"

    @property
    def false_documents(self) -> int:
        """How many false documents a counterfactual prompt is to have: those that are neither irrelevant nor
        true. It is negative where these two are more than all, which the published script cannot do either.
        """
        counts = (ceil(self.passages * rate) for rate in (self.noise, self.correct))
        return self.passages - sum(counts)

    def distance(self, other: Setting) -> float:
        """How far the rates of two settings are apart."""
        return round(abs(self.noise - other.noise) + abs(self.correct - other.correct), 9)

    def tags(self, lang: str) -> dict[str, Tag]:
        tags: dict[str, Tag] = {"lang": lang, "ability": self.ability, "setting": self.name}
        if self.ability in ("noise", "integration") and not self.closed_book:
            tags["noise" if self.ability == "noise" else "integration_noise"] = rate_text(self.noise)
        return tags


_HARDEST: dict[Ability, float] = {"noise": 0.8, "rejection": 1.0, "integration": 0.4, "counterfactual": 0.0}
REFERENCE = {ability: Setting(ability, noise, passages=5) for ability, noise in _HARDEST.items()}
"""The hardest published setting of each ability, at which it enters the headline.

One setting and not the mean of all that were asked: the headline does not depend on which others were.
"""


def ability_of(dataset: str, noise: float) -> Ability:
    """Of recorded answers, where only the name of the data set indicates its kind."""
    if dataset.endswith("_fact"):
        return "counterfactual"
    if dataset.endswith("_int"):
        return "integration"
    return "rejection" if noise == 1 else "noise"


def rate_text(rate: float) -> str:
    """A rate in as few digits as distinguish it from any other: 0, 0.2, 0.12345678."""
    return repr(float(rate)).removesuffix(".0")


def parse_abilities(text: str) -> list[Ability]:
    """`all`, or some of them separated by commas."""
    if text.strip() == "all":
        return list(ABILITIES)
    names = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in names if name not in ABILITIES]
    if unknown or not names:
        hint = suggestion(unknown[0], ABILITIES) if unknown else ""
        available = ", ".join(ABILITIES)
        raise ValueError(
            f"--ability: '{', '.join(unknown)}' is not known.{hint} Available: all, {available}."
        )
    return [ability for ability in ABILITIES if ability in names]


def parse_rates(text: str, option: str) -> tuple[float, ...]:
    """`0,0.2,0.4` as rates between 0 and 1, each once."""
    try:
        rates = tuple(dict.fromkeys(float(part) for part in text.split(",") if part.strip()))
    except ValueError:
        rates = ()
    if not rates or not all(0 <= rate <= 1 for rate in rates):
        raise ValueError(f"{option}: '{text}' is not a list of rates between 0 and 1, such as 0,0.2,0.4")
    return rates


# Documents


class DocumentSelection(NamedTuple):
    """The documents of one prompt, in order."""

    docs: tuple[str, ...]
    kinds: tuple[DocKind, ...]
    note: str
    """What the choice lacks, with the question's id; empty where nothing."""


def select(
    instance: Instance, setting: Setting, *, order: Order = "published", index: int = 0
) -> DocumentSelection:
    """The documents of a question at a setting.

    `published` is the published selection, element for element. `balanced` takes the same documents, but
    the first true one is at position `index mod (others + 1)`, where `others` counts the documents that
    are not true: with one true document of n that is `index mod n`. The rest is shuffled with a seed of
    the question.
    """
    if not setting.passages:
        return DocumentSelection((), (), "")
    rng = random.Random(SEED)
    docs = _CHOOSE[DATA[setting.ability]](instance, setting, rng)
    if order == "balanced":
        docs = _balanced(docs, index, random.Random(f"{SEED}:{instance.id}"))
    else:
        rng.shuffle(docs)
    kinds = tuple(kind for _, kind in docs)
    lacks = [f"{len(docs)} of {setting.passages} documents"] if len(docs) < setting.passages else []
    expected = setting.correct > 0 if setting.ability == "counterfactual" else setting.noise < 1
    if expected and "positive" not in kinds:
        lacks.append("no document with the answer")
    note = f"question {instance.id}: {', '.join(lacks)}" if lacks else ""
    return DocumentSelection(tuple(text for text, _ in docs), kinds, note)


def _plain(instance: Instance, setting: Setting, rng: random.Random) -> _Docs:
    """The first positives and negatives; where one kind has too few, the other fills up, save at noise 1."""
    passages, positive, negative = setting.passages, instance.positive, instance.negative
    negatives = ceil(passages * setting.noise)
    if setting.noise == 1:
        negatives = passages
    elif negatives > len(negative):
        negatives = len(negative)
    elif passages - negatives > len(positive):
        negatives = passages - len(positive)
    return _docs("positive", positive[: passages - negatives]) + _docs("negative", negative[:negatives])


def _integration(instance: Instance, setting: Setting, rng: random.Random) -> _Docs:
    """One document of each shuffled group whatever the noise, then their second, third… ones, then noise.

    So seven groups give seven documents even where five were asked for.
    """
    passages = setting.passages
    groups = [list(group) for group in instance.groups]
    for group in groups:
        rng.shuffle(group)
    in_turn = [doc for rank in zip_longest(*groups) for doc in rank if doc is not None]
    positives = in_turn[: max(len(groups), passages - ceil(passages * setting.noise))]
    negatives = instance.negative[: max(0, passages - len(positives))]
    return _docs("positive", positives) + _docs("negative", negatives)


def _counterfactual(instance: Instance, setting: Setting, rng: random.Random) -> _Docs:
    """A random sample of false documents, true ones from the positions left, and the first negatives."""
    negatives, trues = ceil(setting.passages * setting.noise), ceil(setting.passages * setting.correct)
    positions = range(len(instance.positive))
    false = rng.sample(positions, min(len(positions), setting.false_documents))
    left = [position for position in positions if position not in false]
    true = rng.sample(left, min(len(left), trues)) if trues and left else []
    return (
        _docs("wrong", (instance.positive_wrong[position] for position in false))
        + _docs("positive", (instance.positive[position] for position in true))
        + _docs("negative", instance.negative[:negatives])
    )


_CHOOSE = {"plain": _plain, "int": _integration, "fact": _counterfactual}


def _docs(kind: DocKind, texts: Iterable[str]) -> _Docs:
    return [(text, kind) for text in texts]


def _balanced(docs: _Docs, index: int, rng: random.Random) -> _Docs:
    others = [doc for doc in docs if doc[1] != "positive"]
    trues = [doc for doc in docs if doc[1] == "positive"]
    rng.shuffle(others)
    rng.shuffle(trues)
    position = index % (len(others) + 1)
    after = others[position:] + trues[1:]
    rng.shuffle(after)
    return others[:position] + trues[:1] + after
