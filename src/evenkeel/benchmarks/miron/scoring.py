"""MIRON's scores: Levenshtein, confidence and other formulas, then example by example, then the summary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from evenkeel.benchmarks.miron import strings
from evenkeel.benchmarks.miron.files import MironDetail, MironInputs
from evenkeel.benchmarks.miron.page import METRICS, QUADRANTS
from evenkeel.page.metrics import units
from evenkeel.text.answers import Rule
from evenkeel.types import Answered, Logprobs, Response, Score, Status, StringLikelihood, Summary, Tag

RIGHT = 80.0
"""The Levenshtein score from which a continuation counts as the right one."""
SURE = 50.0
"""The confidence from which a model counts as sure of the true continuation."""
MOST_TOKENS = 8
"""Targets of more tokens are counted together: there are few."""
PUNCTUATION = ".,;:!?…\"')»”"

Values = dict[str, float | None]


# Formulas


def lev_score(generated: str, target: str) -> float:
    """The published score: (1 − Lev(generated, target) / max(|generated|, |target|)) × 100.

    Lev counts insertions, deletions and substitutions of characters. Two empty texts are equal: 100.
    """
    from rapidfuzz.distance import Levenshtein

    return 100 * Levenshtein.normalized_similarity(generated, target)


def target_confidence(logprobs: Sequence[float]) -> float:
    """The published confidence: exp(mean of log P(token | the text before it)) × 100; 0 for no token."""
    return 100 * math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else 0.0


def bits_per_byte(logprobs: Sequence[float], target: str) -> float:
    """−Σ log₂ P(token) over the bytes of the target in UTF-8: comparable between tokenizers."""
    return -math.fsum(logprobs) / math.log(2) / len(target.encode())


def quadrant(score: float, confidence: float) -> str:
    """What a score and a confidence mean together; `page.QUADRANTS` describes each name."""
    if score >= RIGHT:
        return "knows" if confidence >= SURE else "doubts"
    return "slips" if confidence >= SURE else "does_not_know"


def first_words(text: str, count: int) -> str:
    """A text up to the end of its `count`-th word, the spaces before it included."""
    end = 0
    for _ in range(count):
        while end < len(text) and text[end].isspace():
            end += 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return text[:end]


# Scores


def score_examples(answered: Sequence[Answered[MironInputs]], rule: Rule, *, stop: str) -> list[Score]:
    """Every example by itself, then those with typos against their clean versions."""
    scores = [score_example(item, rule, stop=stop) for item in answered]
    by_id = {score.sample_id: score for score in scores}
    return [_with_drift(score, by_id.get(score.group)) for score in scores]


def score_example(item: Answered[MironInputs], rule: Rule, *, stop: str) -> Score[MironDetail]:
    target, recorded = item.sample.inputs.target, item.sample.inputs.published is not None
    stop = "" if recorded else stop  # what was cut elsewhere is taken as it is
    *loglikelihoods, generation = [  # no log-likelihood of a model that cannot give it
        response
        for request, response in zip(item.requests, item.responses, strict=True)
        if not isinstance(request, StringLikelihood)
    ]
    generated = continuation(generation, target, rule, stop)
    parts: dict[str, Status] = {"logprobs": loglikelihoods[0].status} if loglikelihoods else {}
    parts["generated"] = status_of(generation, target, rule, stop)
    values: Values = {
        "lev_score": None if generated is None else lev_score(generated, target),
        "exact_match": None if generated is None else float(generated == target),
    }
    tags: dict[str, Tag] = dict(item.sample.tags)
    tokens = None
    for response in loglikelihoods:
        logprobs = response.logprobs
        values["target_confidence"] = target_confidence(logprobs.values) if logprobs else None
        values |= _quadrants(values["lev_score"], values["target_confidence"])
        if not recorded:  # recorded results have no tokens
            values |= _token_values(logprobs, target)
            if logprobs:
                tokens = logprobs.tokens
                tags["target_tokens"] = min(MOST_TOKENS, len(tokens))
    return Score(
        sample_id=item.sample.id,
        group=item.sample.group,
        tags=tags,
        values=values,
        statuses=Counter(parts.values()),
        answered=sum(each.logprobs is not None for each in loglikelihoods) + (generated is not None),
        parts=parts,
        detail=MironDetail(generated=generated, tokens=tokens),
    )


def continuation(response: Response, target: str, rule: Rule, stop: str) -> str | None:
    """What was generated, up to where the stop rule (if any) ends it; None where there is no answer."""
    if not rule.counts(response):
        return None
    text = response.text.partition("\n")[0] if stop else response.text
    if stop != "word":
        return text
    text = first_words(text, len(target.split()))
    return text if target[-1] in PUNCTUATION else text.rstrip(PUNCTUATION)


def status_of(response: Response, target: str, rule: Rule, stop: str) -> Status:
    """A text that is cut where the stop rule ends it is whole, though the model was not done."""
    enough = stop == "word" and len(response.text.split()) > len(target.split())
    planned = (stop.startswith("tokens=") or enough) and rule.counts(response)
    return "ok" if response.status == "truncated" and planned else response.status


def _quadrants(score: float | None, confidence: float | None) -> Values:
    """1 for the quadrant that an example falls into, 0 for the others."""
    if score is None or confidence is None:
        return dict.fromkeys(QUADRANTS)
    name = quadrant(score, confidence)
    return {each: float(each == name) for each in QUADRANTS}


def _token_values(logprobs: Logprobs | None, target: str) -> Values:
    """What the tokens of the target say about the tokenizer."""
    known = logprobs or Logprobs((), ())
    values: Values = {
        # Tokens that merge across the boundary spell more or less than the target.
        "bits_per_byte": None if known.merged else bits_per_byte(known.values, target),
        "target_tokens": float(len(known.tokens)),
        "last_word_tokens": float(known.last_word),
        "boundary_merges": float(known.merged),
        "targets_merged_into_prefix": float(not known.tokens),
        "start_token": float(bool(known.start)),
    }
    return values if logprobs else dict.fromkeys(values)


def _with_drift(score: Score, clean: Score | None) -> Score:
    """The score of an example with typos, with what its clean version scores more."""
    if clean is None or clean.sample_id == score.sample_id:
        return score
    drift: Values = {}
    for name, metric in (("score_drift", "lev_score"), ("confidence_drift", "target_confidence")):
        if metric in score.values:
            before, after = clean.values[metric], score.values[metric]
            drift[name] = None if before is None or after is None else before - after
    return msgspec.structs.replace(score, values={**score.values, **drift})


# Summary


def summarise(scores: Sequence[Score], *, seed: int) -> Summary:
    """The figures by category and language, by the tokens of the target, and by typos."""
    from evenkeel import analysis

    metrics = dict.fromkeys(name for score in scores for name in score.values)
    summary: Summary = {}
    for parts in dict.fromkeys(map(parts_of, metrics)):
        breakdown = {name: _breakdown(name) for name in metrics if parts_of(name) == parts}
        members = [_confined(score, parts) for score in scores]
        summary |= analysis.summarise(members, breakdown, units=units(METRICS))
    if "target_tokens" in metrics:
        for name in ("target_confidence", "lev_score"):
            figure = analysis.rank_correlation(scores, "target_tokens", name, seed=seed)
            summary[f"tokens_and_{name}"] = figure
    return {"lev_score": summary.pop("lev_score"), **summary}


def _breakdown(metric: str) -> list[tuple[str, ...]]:
    if metric in ("score_drift", "confidence_drift"):
        return [(), ("lang",), ("edits",), ("edits", "lang"), ("edit",)]
    by_tokens = [("target_tokens",), ("target_tokens", "lang")]
    published = metric in ("target_confidence", "lev_score")
    return [(), ("category",), ("lang",), ("category", "lang"), *(by_tokens if published else ())]


def parts_of(metric: str) -> tuple[str, ...]:
    """The requests that a metric rests on."""
    if metric in strings.NAMES:
        return (strings.PART,)
    if metric in ("lev_score", "exact_match", "score_drift"):
        return ("generated",)
    return ("generated", "logprobs") if metric in QUADRANTS else ("logprobs",)


def _confined(score: Score, parts: Sequence[str]) -> Score:
    """A score with the statuses of some requests alone: a text keeps its Levenshtein score where the
    log-probabilities of the target are missing, and the other way round."""
    values = {"generated": "lev_score", "logprobs": "target_confidence", strings.PART: "strings_known"}
    names = [name for name in parts if name in score.parts]
    return msgspec.structs.replace(
        score,
        statuses=Counter(score.parts[name] for name in names),
        answered=sum(score.values[values[name]] is not None for name in names),
    )
