"""What Sealegs adds beside the published formulas, and how an example gets the values of both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from sealegs.benchmarks.miron import strings
from sealegs.benchmarks.miron.data import MironDetail, MironInputs
from sealegs.benchmarks.miron.metrics import METRICS, QUADRANTS, TARGET_BYTES
from sealegs.benchmarks.miron.published import lev_score, target_confidence
from sealegs.page.metrics import units, weights
from sealegs.text.answers import Rule
from sealegs.text.word_splitting import first_words, has_whole_words, normalized, word_ends, word_goes_on
from sealegs.types import (
    Answered,
    Generate,
    LogLikelihood,
    Logprobs,
    Response,
    Score,
    Status,
    Summary,
    Tag,
)

SURE = 0.5
"""The probability from which a model counts as sure: a right continuation is likelier than all others."""
MOST_TOKENS = 8
"""Targets of more tokens are counted together: there are few."""
PUNCTUATION = ".,;:!?…\"')»”"
QUOTES = {'"': '"', "'": "'", "«": "»", "“": "”", "„": "“", "‘": "’"}
"""Each opening quotation mark with the closing one."""
ACCEPTED, CHOICE = "accepted", "choice"
"""What the log-likelihoods of other answers are called among the parts of a score."""
SCOPES: tuple[tuple[str, ...], ...] = ((), ("category",), ("lang",), ("category", "lang"))

Values = dict[str, float | None]


def bits_per_byte(logprobs: Sequence[float], target: str) -> float:
    """−Σ log₂ P(token) over the bytes of the target in UTF-8: comparable between tokenizers."""
    return -math.fsum(logprobs) / math.log(2) / len(target.encode())


def probability(logprobs: Sequence[float]) -> float:
    """P(text) = Π P(token | the text before it) = exp(Σ log P)."""
    return math.exp(math.fsum(logprobs))


def quadrant(right: bool, probability: float) -> str:
    """What a text and the probability of a right one mean together; a metric of that name describes it."""
    if right:
        return "knows" if probability >= SURE else "doubts"
    return "slips" if probability >= SURE else "does_not_know"


def matches(text: str, answer: str, *, ended: bool = True) -> bool | None:
    """Whether a text begins with an answer, and the answer's last word ends there.

    Spaces around it, how wide those in it are, and the Unicode form (NFC) make no difference; case does. Of
    an answer in quotation marks the closing one is left open. A text that has not `ended` may go on: None
    where that decides.
    """
    written, wanted = _plain(text), _plain(opened(answer))
    if not written.startswith(wanted):
        return None if not ended and wanted.startswith(written) else False
    if not wanted or word_goes_on(written, len(wanted)):
        return False
    open_end = not ended and not text[-1:].isspace()
    return None if open_end and any(word_goes_on(written + more, len(wanted)) for more in "a1") else True


def _plain(text: str) -> str:
    return " ".join(normalized("NFC", text).split())


def opened(answer: str) -> str:
    """An answer in quotation marks without the closing one, before which punctuation may come (`"UK."`)."""
    start, end = answer.lstrip(), answer.rstrip()
    quoted = len(start.rstrip()) > 2 and QUOTES.get(start[0]) == end[-1]
    return end[:-1] if quoted else answer


def answers_of(target: str, accepted: Sequence[str]) -> list[str]:
    """The target and the accepted answers as their probabilities are asked for."""
    return list(dict.fromkeys(opened(answer) for answer in (target, *accepted) if answer.strip()))


def without_longer(tokens_of: Mapping[str, Sequence[str]]) -> list[str]:
    """The answers whose tokens do not begin with all those of another: the probability of the other one has
    that of the longer one in it. ` gemstone` as one token is not in the probability of the token ` gem`."""
    return [
        answer
        for answer, tokens in tokens_of.items()
        if not any(
            answer != shorter and answer.startswith(shorter) and tuple(tokens[: len(first)]) == tuple(first)
            for shorter, first in tokens_of.items()
        )
    ]


# Scores


def score_examples(answered: Sequence[Answered[MironInputs]], rule: Rule) -> list[Score]:
    """Every example by itself, then those with typos against their clean versions."""
    scores = [score_example(item, rule) for item in answered]
    by_id = {score.sample_id: score for score in scores}
    return [_with_drift(score, by_id.get(score.group)) for score in scores]


def score_example(item: Answered[MironInputs], rule: Rule) -> Score[MironDetail]:
    inputs = item.sample.inputs
    target, recorded = inputs.target, inputs.published is not None
    generation, logprobs_of = _responses(item)
    generated, right = None, None
    if rule.counts(generation):
        # What was cut elsewhere is taken as it is.
        text, ended = (generation.text, True) if recorded else line_of(generation, inputs)
        generated = text if recorded else as_words(text, target)
        right = _right(text, target, inputs.accepted, ended=ended)
    parts: dict[str, Status] = {}
    if target in logprobs_of:  # no log-likelihood of a model that cannot give it
        parts["logprobs"] = logprobs_of[target].status
    others = ((text, each) for text, each in logprobs_of.items() if text != target)
    parts |= {f"{CHOICE if text in inputs.wrong else ACCEPTED}: {text}": e.status for text, e in others}
    parts["generated"] = status_of(generation, target)
    values: Values = {
        "lev_score": None if generated is None else lev_score(generated, target),
        "exact_match": None if generated is None else float(generated == target),
        "accepted_match": None if right is None else float(right),
    }
    tags: dict[str, Tag] = dict(item.sample.tags)
    tokens = None
    if target in logprobs_of:
        logprobs = logprobs_of[target].logprobs
        values["target_confidence"] = target_confidence(logprobs.values) if logprobs else None
        if not recorded:  # recorded results have no tokens
            answer = _answer_probability(logprobs_of, target, inputs.accepted)
            values |= {"answer_probability": answer, **_quadrants(right, answer)}
            values |= _token_values(logprobs, target)
            if inputs.wrong:
                values["choice_match"] = _choice_match(logprobs_of, target, inputs.wrong)
            if logprobs:
                tokens = logprobs.tokens
                tags["target_tokens"] = min(MOST_TOKENS, len(tokens))
    values["copy_score"] = lev_score(inputs.baseline, target) if inputs.baseline else None
    return Score(
        sample_id=item.sample.id,
        group=item.sample.group,
        tags=tags,
        values=values,
        statuses=Counter(parts.values()),
        answered=sum(each.logprobs is not None for each in logprobs_of.values()) + (generated is not None),
        parts=parts,
        detail=MironDetail(generated=generated, tokens=tokens),
    )


def _responses(item: Answered[MironInputs]) -> tuple[Response, dict[str, Response]]:
    """The response to the continuation, and those to the log-likelihoods by their text."""
    generation, logprobs_of = Response(status="error", reason="not asked"), {}
    for request, response in zip(item.requests, item.responses, strict=True):
        if isinstance(request, Generate):
            generation = response
        elif isinstance(request, LogLikelihood):
            logprobs_of[request.continuation] = response
    return generation, logprobs_of


def _right(text: str, target: str, accepted: Sequence[str], *, ended: bool = True) -> bool | None:
    """Whether a text begins with one of the answers; None where that depends on how it goes on."""
    each = [matches(text, answer, ended=ended) for answer in (target, *accepted)]
    return True if True in each else None if None in each else False


def line_of(response: Response, inputs: MironInputs) -> tuple[str, bool]:
    """A text up to the first line break, and whether it ended or has the words of every right answer."""
    line, line_break, _ = response.text.partition("\n")
    most = max(len(answer.split()) for answer in (inputs.target, *inputs.accepted))
    return line, bool(line_break) or response.status == "ok" or has_whole_words(line, most)


def as_words(text: str, target: str) -> str:
    """As many words of a text as the target has, without the punctuation behind them unless it has some."""
    if text.startswith(target) and not word_goes_on(text, len(target)):
        return target
    *before, last = target.split()
    words, start = first_words(text, len(before) + 1), len(first_words(text, len(before)))
    if target[-1] in PUNCTUATION:
        return words
    inside, ends = word_ends(last), word_ends(words[start:])
    if last[-1:].isalnum() and 0 < len(inside) <= len(ends):  # what a dash or bracket parts is another word
        return words[: start + ends[len(inside) - 1]]
    return words.rstrip(PUNCTUATION)


def status_of(response: Response, target: str) -> Status:
    """A text that was cut off after the words of the target is whole, though the model was not done."""
    whole = has_whole_words(response.text, len(target.split()))
    return "ok" if response.status == "truncated" and whole else response.status


def _quadrants(right: bool | None, probability: float | None) -> Values:
    """1 for the quadrant that an example falls into, 0 for the others."""
    if right is None or probability is None:
        return dict.fromkeys(QUADRANTS)
    name = quadrant(right, probability)
    return {each: float(each == name) for each in QUADRANTS}


def _answer_probability(
    logprobs_of: Mapping[str, Response], target: str, accepted: Sequence[str]
) -> float | None:
    """Of a right continuation: Σ P(answer), for a text begins with one of them alone; None where one of them
    is unknown, because tokens merge across the boundary and spell more or less than the answer."""
    known = {
        answer: logprobs
        for answer in answers_of(target, accepted)
        if answer in logprobs_of
        and (logprobs := logprobs_of[answer].logprobs)
        and not logprobs.merged
        and logprobs.values
    }
    if len(known) < len(answers_of(target, accepted)):
        return None
    alone = without_longer({answer: logprobs.tokens for answer, logprobs in known.items()})
    return min(1.0, math.fsum(probability(known[answer].values) for answer in alone))


def _choice_match(logprobs_of: Mapping[str, Response], target: str, wrong: Sequence[str]) -> float | None:
    """Whether log P(answer) / characters is highest for the target: `acc_norm` of lm-evaluation-harness."""
    means = []
    for answer in (target, *wrong):
        logprobs = logprobs_of[answer].logprobs if answer in logprobs_of else None
        if logprobs is None:
            return None
        means.append(math.fsum(logprobs.values) / len(answer.strip()))
    return float(means[0] > max(means[1:]))


def _token_values(logprobs: Logprobs | None, target: str) -> Values:
    """What the tokens of the target say about the tokenizer."""
    known = logprobs or Logprobs((), ())
    values: Values = {
        # Tokens that merge across the boundary spell more or less than the target.
        "bits_per_byte": None if known.merged else bits_per_byte(known.values, target),
        "target_tokens": float(len(known.tokens)),
        "boundary_merges": float(known.merged),
        "targets_merged_into_prefix": float(not known.tokens),
    }
    size: Values = {TARGET_BYTES: float(len(target.encode()))}
    return (values if logprobs else dict.fromkeys(values)) | size


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


def summarise(scores: Sequence[Score]) -> Summary:
    """The figures by category and language, by the tokens of the target, and by typos."""
    from sealegs import analysis

    metrics = dict.fromkeys(name for score in scores for name in score.values)
    summary: Summary = {}
    for parts in dict.fromkeys(map(parts_of, metrics)):
        breakdown = {name: _breakdown(name) for name in metrics if parts_of(name) == parts}
        members = [_confined(score, parts) for score in scores]
        summary |= analysis.summarise(members, breakdown, units=units(METRICS), weights=weights(METRICS))
    if "copy_score" in metrics:
        summary |= rescaled_scores([_confined(score, ("generated",)) for score in scores])
    summary |= relative_drops(scores)
    if "target_tokens" in metrics:
        for name in ("target_confidence", "lev_score"):
            for scope, members in analysis.scopes(scores, *SCOPES):
                figure = analysis.rank_correlation(
                    members, "target_tokens", name, within=("category", "lang")
                )
                summary[analysis.scope_name(f"tokens_and_{name}", scope)] = figure
    return {"lev_score": summary.pop("lev_score"), **summary}


def rescaled_scores(scores: Sequence[Score]) -> Summary:
    """100 · (1 − Σ (100 − score) / Σ (100 − copy)): 0 for the copy baseline, 100 for all right."""

    def errors(score: Score) -> tuple[float, float] | None:
        value, copy = score.values.get("lev_score"), score.values.get("copy_score")
        return None if value is None or copy is None else (100 - value, 100 - copy)

    return _shares_gone(scores, "rescaled_score", errors, "lev_score")


def relative_drops(scores: Sequence[Score]) -> Summary:
    """100 · (1 − Σ right / Σ right on the clean version) over the examples that name one, as TokSuite's.

    Right is `choice_match` where the data has wrong choices and the model log-probabilities, else
    `accepted_match`.
    """
    by_id = {score.sample_id: score for score in scores}
    right = "choice_match" if any("choice_match" in score.values for score in scores) else "accepted_match"

    def pair(score: Score) -> tuple[float, float] | None:
        after, before = score.values.get(right), by_id[score.group].values.get(right)
        return None if after is None or before is None else (after, before)

    changed = [score for score in scores if score.group != score.sample_id and score.group in by_id]
    return _shares_gone([_confined(s, parts_of(right)) for s in changed], "relative_drop", pair, right)


def _shares_gone(
    scores: Sequence[Score], name: str, pair: Callable[[Score], tuple[float, float] | None], of: str
) -> Summary:
    """100 · (1 − Σ rest / Σ whole) over the pairs of both that there are.

    What is left is an amount, and its interval that of one (log t over groups).
    """
    import numpy as np

    from sealegs import analysis

    summary: Summary = {}
    for scope, members in analysis.scopes(scores, *SCOPES) if scores else ():
        entering = [(score, both) for score in members if (both := pair(score))]
        rest, whole = (np.array([both[index] for _, both in entering], dtype=float) for index in (0, 1))
        groups = np.unique([score.group for score, _ in entering], return_inverse=True)[1]
        interval = analysis.interval_of(rest, groups, "count", weights=whole)
        value, low, high = (
            None if limit is None else 100 * (1 - limit)
            for limit in (interval.value, interval.high, interval.low)
        )
        interval = interval._replace(value=value, low=low, high=high, n=len(entering))
        figure = analysis.figure(members, of, interval, unit="points")
        summary[analysis.scope_name(name, scope)] = figure
    return summary


def _breakdown(metric: str) -> list[tuple[str, ...]]:
    if metric in ("score_drift", "confidence_drift"):
        return [(), ("lang",), ("edits",), ("edits", "lang"), ("edit",), ("edited",), ("edited", "edits")]
    by_tokens = [("target_tokens",), ("target_tokens", "lang")]
    if metric in ("lev_score", "target_confidence"):
        return [*SCOPES, *by_tokens, ("difficulty",)]
    return [*SCOPES, ("difficulty",)] if metric == "accepted_match" else [*SCOPES]


def parts_of(metric: str) -> tuple[str, ...]:
    """The requests that a metric rests on: none for what the data alone gives."""
    if metric in strings.NAMES:
        return (strings.PART,)
    if metric in ("copy_score", TARGET_BYTES):
        return ()
    if metric in ("lev_score", "exact_match", "accepted_match", "score_drift"):
        return ("generated",)
    if metric == "answer_probability":
        return ("logprobs", ACCEPTED)
    if metric == "choice_match":
        return ("logprobs", CHOICE)
    return ("generated", "logprobs", ACCEPTED) if metric in QUADRANTS else ("logprobs",)


def _confined(score: Score, parts: Sequence[str]) -> Score:
    """A score with the statuses of some requests alone: a text keeps its Levenshtein score where the
    log-probabilities of the target are missing, and the other way round."""
    if not parts:
        return msgspec.structs.replace(score, statuses={"ok": 1}, answered=1)
    statuses = [status for name, status in score.parts.items() if name.partition(":")[0] in parts]
    values = {"generated": "lev_score", "logprobs": "target_confidence", strings.PART: "strings_known"}
    answered = sum(
        score.values[values[name]] is not None for name in parts if name in values and name in score.parts
    )
    for other in {ACCEPTED, CHOICE}.intersection(parts):
        answered += sum(name.startswith(other) and status == "ok" for name, status in score.parts.items())
    return msgspec.structs.replace(score, statuses=Counter(statuses), answered=answered)
