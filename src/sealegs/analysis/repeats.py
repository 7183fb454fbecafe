"""Answers to one prompt, asked several times: how often all of them are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from sealegs.analysis.figures import rows_by
from sealegs.analysis.intervals import interval_of
from sealegs.analysis.links import group_of, numbered
from sealegs.page.metrics import scope_name
from sealegs.types import Figure, Score, Summary

SHARES = ("right_every_time", "right_sometimes", "right_never")


def pass_hat_k(right: int, answers: int, k: int) -> float:
    """The chance that k answers, drawn from those to one prompt without putting any back, are all right:

        pass^k = C(c, k) / C(n, k)

    with c right ones of n answers. Averaged over prompts it estimates without bias how often k answers in a
    row are right (Yao, Shinn, Razavi and Narasimhan, τ-bench, 2024).
    """
    if not 1 <= k <= answers or not 0 <= right <= answers:
        raise ValueError(f"pass^{k} of {right} right answers among {answers}")
    return comb(right, k) / comb(answers, k)


class Repeated(NamedTuple):
    """A prompt that was asked several times."""

    score: Score
    """Its group, links and tags, and how all requests for it ended."""
    right: int
    answers: int

    @classmethod
    def of(cls, scores: Sequence[Score], metric: str) -> Repeated:
        """From the scores of its answers, of which a metric says 1 for right and 0 for wrong."""
        known = [value for score in scores if (value := score.values.get(metric)) is not None]
        statuses: Counter[str] = Counter()
        for score in scores:
            statuses.update(score.statuses)
        first = scores[0]
        whole = Score(
            sample_id=first.sample_id, group=first.group, tags=first.tags, links=first.links, values={},
            statuses=dict(statuses), answered=len(known),
        )  # fmt: skip
        return cls(whole, sum(value == 1 for value in known), len(known))

    @property
    def asked(self) -> int:
        return sum(self.score.statuses.values())


def repeat_figures(prompts: Sequence[Repeated], *tags: tuple[str, ...]) -> Summary:
    """pass^k for each k up to the number of answers, and the shares of prompts that are right every time,
    sometimes and never, within each combination of some tags. Nothing where no prompt was asked twice.

    A prompt that lacks any answer is left out, so that all of these figures are of the same prompts; where
    some were asked more often than others, k ends at the fewest times.
    """
    fewest = min((prompt.asked for prompt in prompts if prompt.asked > 1), default=0)
    if not fewest:
        return {}
    summary: Summary = {}
    for names in tags:
        for values, rows in rows_by([prompt.score for prompt in prompts], names).items():
            scope = {name: str(value) for name, value in zip(names, values, strict=True)}
            members = [prompts[row] for row in rows]
            whole = [prompt for prompt in members if prompt.answers >= max(2, prompt.asked)]
            for k in range(1, fewest + 1):
                chances = [pass_hat_k(prompt.right, prompt.answers, k) for prompt in whole]
                summary[scope_name("pass_hat_k", {"k": k, **scope})] = _mean(members, whole, chances)
            for name in SHARES:
                are = [float(_kind(prompt) == name) for prompt in whole]
                summary[scope_name(name, scope)] = _mean(members, whole, are)
    return summary


def _kind(prompt: Repeated) -> str:
    return SHARES[0] if prompt.right == prompt.answers else SHARES[1] if prompt.right else SHARES[2]


def _mean(prompts: Sequence[Repeated], known: Sequence[Repeated], values: Sequence[float]) -> Figure:
    """The mean over the known prompts, with the coverage and the statuses of all requests for all of them."""
    groups, links = numbered(group_of(prompt.score) for prompt in known)
    interval = interval_of(np.array(values, dtype=float), groups, "share", links=links)
    statuses: Counter[str] = Counter()
    for prompt in prompts:
        statuses.update(prompt.score.statuses)
    covered = sum(prompt.answers for prompt in known)
    coverage = covered / max(1, statuses.total())
    return Figure(coverage=coverage, statuses=dict(statuses), unit="share", **interval._asdict())
