"""RGB's four abilities, and the settings at which each is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from evenkeel.benchmarks.rgb.files import Kind
from evenkeel.messages import suggestion

Ability: TypeAlias = Literal["noise", "rejection", "integration", "counterfactual"]

ABILITIES: dict[Ability, str] = {
    "noise": "noise robustness",
    "rejection": "negative rejection",
    "integration": "information integration",
    "counterfactual": "counterfactual robustness",
}
DATA: dict[Ability, Kind] = {
    "noise": "plain",
    "rejection": "plain",
    "integration": "int",
    "counterfactual": "fact",
}


class Setting(NamedTuple):
    """One way in which the questions of a set are asked."""

    ability: Ability
    name: str
    noise: float
    passages: int
    correct: float = 0.0


def ability_of(dataset: str, noise: float) -> Ability:
    """Of recorded answers, of which only the name of the data set tells the kind."""
    if dataset.endswith("_fact"):
        return "counterfactual"
    if dataset.endswith("_int"):
        return "integration"
    return "rejection" if noise == 1 else "noise"


def written(rate: float) -> str:
    """A rate as short as it can be told apart from any other: 0, 0.2, 0.12345678."""
    return repr(float(rate)).removesuffix(".0")


def settings(
    ability: Ability,
    *,
    passages: int,
    noise_rates: Sequence[float],
    integration_rates: Sequence[float],
    correct_rates: Sequence[float],
) -> Iterator[Setting]:
    """The settings of an ability. What is known without documents is asked once for counterfactual sets."""
    match ability:
        case "noise":
            for rate in noise_rates:
                yield Setting(ability, f"noise {written(rate)}", rate, passages)
        case "rejection":
            yield Setting(ability, "nothing to find", 1.0, passages)
        case "integration":
            for rate in integration_rates:
                yield Setting(ability, f"integration, noise {written(rate)}", rate, passages)
        case "counterfactual":
            yield Setting(ability, "no documents", 0.0, 0)
            for rate in correct_rates:
                yield Setting(ability, false_documents(rate), 0.0, passages, rate)


def false_documents(correct: float) -> str:
    """The name of the setting in which documents are false, save for a share of them."""
    return f"false documents, {written(correct)} of them true" if correct else "false documents"


def parse_abilities(text: str) -> list[Ability]:
    """`all`, or some of them separated by commas."""
    if text.strip() == "all":
        return list(ABILITIES)
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    chosen = [ability for ability in ABILITIES if ability in wanted]
    unknown = [part for part in wanted if part not in ABILITIES]
    if unknown or not chosen:
        hint = suggestion(unknown[0], ABILITIES) if unknown else ""
        raise ValueError(f"--ability: '{', '.join(unknown)}' is none of: all, {', '.join(ABILITIES)}.{hint}")
    return chosen


def parse_rates(text: str, option: str) -> tuple[float, ...]:
    """`0,0.2,0.4` as rates between 0 and 1, each once."""
    try:
        rates = tuple(dict.fromkeys(float(part) for part in text.split(",") if part.strip()))
    except ValueError:
        rates = ()
    if not rates or not all(0 <= rate <= 1 for rate in rates):
        raise ValueError(f"{option}: '{text}' is no list of rates between 0 and 1, such as 0,0.2,0.4")
    return rates
