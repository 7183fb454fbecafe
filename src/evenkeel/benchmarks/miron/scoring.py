"""From a response to the numbers of one example: where a text ends, and what its weights tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from evenkeel.benchmarks.miron import formulas as scoring
from evenkeel.run.answers import Rule
from evenkeel.types import Answered, Logprobs, Response, Score, Status, Tag

ANSWERS = Rule(truncated=True, empty=True)
"""A base model continues a text: to end it at once is a continuation too, which the published formula scores
(Levenshtein distance to the empty text). A text that was cut off before it began is none."""

QUADRANTS = ("knows", "doubts", "slips", "does_not_know")
MOST_PIECES = 8
"""Targets of more pieces are counted together: there are few."""
PUNCTUATION = ".,;:!?…\"')»”"

Values = dict[str, float | None]


def measure(answered: Sequence[Answered], *, stop: str) -> list[Score]:
    """Every example by itself, then those with typos against their clean twins."""
    scores = [measure_one(item, stop=stop) for item in answered]
    by_id = {score.sample_id: score for score in scores}
    return [_with_drift(score, by_id) for score in scores]


def measure_one(item: Answered, *, stop: str) -> Score:
    target, recorded = item.sample.inputs["target"], item.sample.inputs.get("recorded")
    stop = "" if recorded else stop  # what was cut elsewhere is taken as it is
    *weighing, written = item.responses  # the target is weighed where the model can
    generated = continuation(written, target, stop)
    parts: dict[str, Status] = {"weighed": weighing[0].status} if weighing else {}
    parts["written"] = status_of(written, target, stop)
    values: Values = {
        "lev_score": None if generated is None else scoring.lev_score(generated, target),
        "exact_match": None if generated is None else float(generated == target),
    }
    tags: dict[str, Tag] = dict(item.sample.tags)
    detail: dict[str, Any] = {"generated": generated}
    for response in weighing:
        logprobs = response.logprobs
        values["target_confidence"] = scoring.target_confidence(logprobs.values) if logprobs else None
        values |= quadrants(values["lev_score"], values["target_confidence"])
        if not recorded:  # recorded results do not tell of tokens
            values |= of_tokens(logprobs, target)
            if logprobs:
                tags["pieces"] = min(MOST_PIECES, len(logprobs.tokens))
                detail["tokens"] = logprobs.tokens
    return Score(
        sample_id=item.sample.id,
        group=item.sample.group,
        tags=tags,
        values=values,
        statuses=dict(Counter(parts.values())),
        answered=sum(response.logprobs is not None for response in weighing) + (generated is not None),
        parts=parts,
        detail=detail,
    )


def continuation(written: Response, target: str, stop: str) -> str | None:
    """What was written, as far as the stop rule (if any) lets it count; None where nothing was answered."""
    if not ANSWERS.counts(written):
        return None
    text = written.text.partition("\n")[0] if stop else written.text
    if stop != "word":
        return text
    cut = scoring.first_words(text, len(target.split()))
    return cut if target[-1] in PUNCTUATION else cut.rstrip(PUNCTUATION)


def status_of(written: Response, target: str, stop: str) -> Status:
    """A text that is cut where the stop rule wants it to end is whole, though the model was not done."""
    enough = stop == "word" and len(written.text.split()) > len(target.split())
    planned = (stop.startswith("tokens=") or enough) and ANSWERS.counts(written)
    return "ok" if written.status == "truncated" and planned else written.status


def of_tokens(logprobs: Logprobs | None, target: str) -> Values:
    """What the tokens of the target tell of the tokenizer."""
    names = (
        "bits_per_byte",
        "pieces",
        "last_word_pieces",
        "boundary_merges",
        "nothing_to_weigh",
        "start_token",
    )
    if logprobs is None:
        return dict.fromkeys(names)
    # Tokens that merge across the boundary spell more or less than the target.
    bits = None if logprobs.merged else scoring.bits_per_byte(logprobs.values, target)
    counts = (
        len(logprobs.tokens),
        logprobs.last_word,
        logprobs.merged,
        not logprobs.tokens,
        bool(logprobs.start),
    )
    return dict(zip(names, (bits, *map(float, counts)), strict=True))


def quadrants(score: float | None, confidence: float | None) -> Values:
    """In which of the four an example falls, as a share of one each."""
    if score is None or confidence is None:
        return dict.fromkeys(QUADRANTS)
    found = scoring.quadrant(score, confidence)
    return {name: float(name == found) for name in QUADRANTS}


def covering(score: Score, metric: str) -> Score:
    """A score with the requests alone that a metric rests on: a text keeps its Levenshtein score where the
    log-probabilities of the target are missing, and the other way round."""
    known = {"written": "lev_score", "weighed": "target_confidence"}
    parts = {name: score.parts[name] for name in parts_of(metric) if name in score.parts}
    return msgspec.structs.replace(
        score,
        statuses=dict(Counter(parts.values())),
        answered=sum(score.values[known[name]] is not None for name in parts),
    )


def parts_of(metric: str) -> tuple[str, ...]:
    if metric in ("lev_score", "exact_match", "score_drift"):
        return ("written",)
    return ("written", "weighed") if metric in QUADRANTS else ("weighed",)


def _with_drift(score: Score, by_id: Mapping[str, Score]) -> Score:
    """The score of an example with typos, with what its clean twin has more."""
    twin = by_id.get(score.group)
    if twin is None or twin is score:
        return score
    drift: Values = {}
    for name, of in (("score_drift", "lev_score"), ("confidence_drift", "target_confidence")):
        if of in score.values:
            clean, noisy = twin.values[of], score.values[of]
            drift[name] = None if clean is None or noisy is None else clean - noisy
    return msgspec.structs.replace(score, values={**score.values, **drift})
