"""RGB's options, and the settings that they ask for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.rgb.selection import (
    NOISE_RATES,
    Ability,
    Setting,
    mixtures,
    parse_abilities,
    parse_rates,
    rate_text,
)
from evenkeel.errors import UsageError
from evenkeel.options import ASKING, FILE

JUDGE_FILE = {"file": True}
"""Of an option that may name a file, and that recorded answers can be judged with too."""


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
            description="Shares of irrelevant documents, for noise robustness and, where --ability names it, "
            "for counterfactual.  [default: 0,0.2,0.4,0.6,0.8; counterfactual: 0]",
            extra=ASKING,
        ),
    ] = None
    integration_rates: Annotated[str, Meta(description="The same, for integration.", extra=ASKING)] = (
        "0,0.2,0.4"
    )
    correct_rate: Annotated[
        str, Meta(description="Shares of true documents among false ones, counterfactual.", extra=ASKING)
    ] = "0"
    counterfactual_noise_rates: Annotated[
        str | None,
        Meta(
            description="The same, for counterfactual alone.  [default: see --noise-rates]",
            extra=ASKING,
        ),
    ] = None
    passages: Annotated[
        int, Meta(ge=0, description="Documents in a prompt; 0 asks for what is known.", extra=ASKING)
    ] = 5
    closed_book: Annotated[
        bool,
        Meta(description="Ask every question without documents too, as counterfactual does.", extra=ASKING),
    ] = False
    doc_order: Annotated[
        Literal["published", "balanced", "all"],
        Meta(
            description="published; balanced: the true document is at every position alike; or all: a "
            "question with one true document is asked with it at every position.",
            extra=ASKING,
        ),
    ] = "published"
    repeats: Annotated[int, Meta(ge=1, le=1000, description="Answers to each prompt.", extra=ASKING)] = 1
    prompts: Annotated[str, Meta(description="own, published (fetched) or a YAML file.", extra=FILE)] = "own"
    dataset: Annotated[str, Meta(description="Only these data sets: en,en_fact.", extra=ASKING)] = ""
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.", extra=ASKING)] = 0.2
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.", extra=ASKING)] = 256
    judge: Annotated[str | None, Meta(description="A model that also judges rejection and detection.")] = None
    judge_prompts: Annotated[
        str,
        Meta(
            description="What the judge is asked: own, published (fetched) or a YAML file.", extra=JUDGE_FILE
        ),
    ] = "own"

    def __post_init__(self) -> None:
        abilities = parse_abilities(self.ability)
        # `all` keeps counterfactual at noise 0: its figures do not depend on the rates of another ability.
        counterfactual = "0" if self.ability.strip() == "all" else self.noise_rates or "0"
        defaults = {"noise_rates": NOISE_RATES, "counterfactual_noise_rates": counterfactual}
        for name in ("noise_rates", "integration_rates", "correct_rate", "counterfactual_noise_rates"):
            text = defaults[name] if getattr(self, name) is None else getattr(self, name)
            rates = parse_rates(text, f"--{name.replace('_', '-')}")
            # One way to write it, so that 0,.2 and 0,0.2 are the same run.
            msgspec.structs.force_setattr(self, name, ",".join(map(rate_text, rates)))
        if self.judge_prompts != "own" and not self.judge:
            raise ValueError("--judge-prompts: there is no judge to ask. Name one with --judge")
        if abilities == ["rejection"] and not self.passages:
            raise ValueError("--ability rejection asks about documents: --passages must be at least 1")

    def _rates(self, name: str) -> tuple[float, ...]:
        return parse_rates(getattr(self, name), name)

    @property
    def settings(self) -> list[Setting]:
        """The settings of each ability; a counterfactual question is also asked without documents."""
        n = self.passages
        settings: dict[Ability, list[Setting]] = {
            "noise": [Setting("noise", rate, n) for rate in self._rates("noise_rates")],
            "rejection": [Setting("rejection", 1.0, n)],
            "integration": [Setting("integration", rate, n) for rate in self._rates("integration_rates")],
            "counterfactual": [
                setting for setting in mixtures(msgspec.structs.asdict(self)) if setting.possible
            ],
        }
        if n and "counterfactual" in parse_abilities(self.ability) and not settings["counterfactual"]:
            raise UsageError(
                f"--correct-rate {self.correct_rate}: with noise {self.counterfactual_noise_rates} the "
                f"irrelevant and the true documents are more than --passages {n}. Give lower rates."
            )
        asked: list[Setting] = []
        for ability in parse_abilities(self.ability):
            if ability != "rejection" and (self.closed_book or not n or ability == "counterfactual"):
                asked.append(Setting(ability, 0.0, 0))
            asked += settings[ability] if n else []
        return asked
