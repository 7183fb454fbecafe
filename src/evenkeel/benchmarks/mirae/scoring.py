"""From the answers and their vectors to the scores of every prompt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenkeel.benchmarks.mirae import formulas as scoring
from evenkeel.benchmarks.mirae.files import METRICS
from evenkeel.benchmarks.mirae.page import READS
from evenkeel.files.package_data import read_json
from evenkeel.run.answers import Rule, is_blank
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Answered, Response, Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANSWERS = Rule(truncated=True)
"""A truncated answer is what the model said as far as it was let, and the published script scores it."""

HEADLINE = "embedder"


class Prompt(NamedTuple):
    """One prompt's usable answers: which of the responses they are, and their vectors."""

    item: Answered
    kept: list[int]
    vectors: NDArray[np.float32]

    @property
    def texts(self) -> list[str]:
        return [self.item.responses[index].text for index in self.kept]


def texts_to_embed(answered: Iterable[Answered]) -> list[str]:
    """Every distinct answer that can be scored, once."""
    responses = (response for item in answered for response in item.responses)
    return list(dict.fromkeys(response.text for response in responses if ANSWERS.counts(response)))


def measure(
    answered: Sequence[Answered],
    embedded: Mapping[str, Mapping[str, Response]],
    whole: Mapping[str, NDArray[np.float32]] | None,
    *,
    reads: Mapping[str, float],
    distance: float,
) -> list[Score]:
    """All scores of all prompts.

    `embedded` has the vectors of each embedder by text, `whole` those of texts read in windows, `reads` the
    share of probe sentences that the embedder matched in each language.
    """
    prompts = [_prompt(item, embedded[HEADLINE]) for item in answered]
    values = [_alone(prompt, embedded[HEADLINE], distance) for prompt in prompts]
    for prompt, row in zip(prompts, values, strict=True):
        for role, vectors in embedded.items():
            if role != HEADLINE:
                row[f"mean_similarity@{role}"] = _mean([vectors[text].vector for text in prompt.texts])
        if whole is not None:
            row["whole_similarity"] = _mean(
                [whole[t].tobytes() if t in whole else None for t in prompt.texts]
            )
        if (lang := str(prompt.item.sample.tags["lang"])) in reads:
            row["embedder_reads"] = reads[lang]
    _add_drift(prompts, values)
    unread = {lang for lang, share in reads.items() if share < READS}
    _add_languages(prompts, values, unread)
    return [_score(prompt, row, embedded[HEADLINE]) for prompt, row in zip(prompts, values, strict=True)]


def _prompt(item: Answered, embedded: Mapping[str, Response]) -> Prompt:
    kept = [
        index
        for index, response in enumerate(item.responses)
        if ANSWERS.counts(response) and embedded[response.text].vector is not None
    ]
    return Prompt(item, kept, _stack([embedded[item.responses[index].text].vector for index in kept]))


def _stack(vectors: Iterable[bytes | None]) -> NDArray[np.float32]:
    rows = [np.frombuffer(vector, dtype="<f4") for vector in vectors if vector is not None]
    return np.stack(rows) if rows else np.zeros((0, 1), np.float32)


def _mean(vectors: Iterable[bytes | None]) -> float | None:
    figures = scoring.similarity(scoring.cosine_matrix(_stack(vectors)))
    return figures["mean_similarity"] if figures else None


def _alone(prompt: Prompt, embedded: Mapping[str, Response], distance: float) -> dict[str, float | None]:
    """What the answers to one prompt tell by themselves."""
    matrix = scoring.cosine_matrix(prompt.vectors)
    figures = scoring.similarity(matrix)
    responses = prompt.item.responses
    answers = [response for response in responses if ANSWERS.counts(response)]
    arrived = [response for response in responses if response.status not in ("error", "refused")]
    lang = str(prompt.item.sample.tags["lang"])
    values: dict[str, float | None] = dict(figures) if figures else dict.fromkeys(METRICS)
    groups = scoring.meanings(matrix, distance) if figures else None
    values["meanings"] = len(set(groups)) if groups else None
    values["semantic_entropy"] = scoring.semantic_entropy(groups) if groups else None
    values["duplicates"] = scoring.duplicates(prompt.texts) if figures else None
    values["cut_by_embedder"] = _share(
        cut for text in prompt.texts if (cut := embedded[text].cut) is not None
    )
    values["cut_by_max_tokens"] = _share(response.status == "truncated" for response in arrived)
    values["empty"] = _share(is_blank(response.text) for response in arrived)
    values["refusals"] = _share(
        response.status == "refused" or is_refusal(response.text, lang)
        for response in responses
        if response.status != "error"
    )
    lengths = [response.tokens_out or estimate_tokens(response.text) for response in answers]
    values["answer_tokens"] = float(np.mean(lengths)) if lengths else None
    return values


def _share(facts: Iterable[bool]) -> float | None:
    known = list(facts)
    return sum(known) / len(known) if known else None


def _refusals() -> dict[str, list[str]]:
    return read_json(__package__, "refusals.json", type=dict[str, list[str]])


def is_refusal(text: str, lang: str) -> bool:
    """Whether an answer begins as refusals do; a phrase is looked for in its first hundred characters."""
    opening = text[:100].lower().replace("’", "'")
    return any(phrase in opening for phrase in _refusals().get(lang, []))


def _add_drift(prompts: Sequence[Prompt], values: Sequence[dict[str, float | None]]) -> None:
    """Hold the answers at every level against those at the question's shortest."""
    questions: defaultdict[tuple[str, Any], list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        questions[prompt.item.sample.group, prompt.item.sample.tags["lang"]].append(index)
    for indexes in questions.values():
        first, *longer = sorted(indexes, key=lambda index: prompts[index].item.sample.tags["level"])
        for index in longer:
            within = values[first]["mean_similarity"], values[index]["mean_similarity"]
            across = gap = None
            if within[0] is not None and within[1] is not None:
                across = scoring.cross_similarity(prompts[first].vectors, prompts[index].vectors)
                gap = scoring.drift_gap(within[0], within[1], across)
            values[index]["similarity_to_shortest"] = across
            values[index]["drift"] = gap


def _add_languages(
    prompts: Sequence[Prompt], values: Sequence[dict[str, float | None]], unread: Collection[str]
) -> None:
    """Hold the answers to one question in two languages against each other, level by level.

    Languages that the embedder does not read are left out: across them its cosine means nothing.
    """
    twins: defaultdict[tuple[str, Any], dict[str, int]] = defaultdict(dict)
    for index, prompt in enumerate(prompts):
        tags = prompt.item.sample.tags
        twins[prompt.item.sample.group, tags["level"]][str(tags["lang"])] = index
    for languages in twins.values():
        for first, second in combinations(sorted(set(languages) - set(unread)), 2):
            a, b = prompts[languages[first]], prompts[languages[second]]
            values[languages[first]][f"across_{first}_{second}"] = (
                scoring.cross_similarity(a.vectors, b.vectors) if a.kept and b.kept else None
            )


def _score(prompt: Prompt, values: dict[str, float | None], embedded: Mapping[str, Response]) -> Score:
    sample = prompt.item.sample
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags=sample.tags,
        values=values,
        statuses=dict(Counter(ANSWERS.status(response) for response in prompt.item.responses)),
        answered=len(prompt.kept) if values["mean_similarity"] is not None else 0,
        detail={
            "responses": prompt.kept,
            "pairwise_similarities": scoring.cosine_matrix(prompt.vectors).tolist() if prompt.kept else [],
        },
        failures=tuple(
            failure
            for response in prompt.item.responses
            for failure in ANSWERS.failure(response) or _not_embedded(response, embedded)
        ),
    )


def _not_embedded(response: Response, embedded: Mapping[str, Response]) -> list[str]:
    if not ANSWERS.counts(response) or embedded[response.text].vector is not None:
        return []
    return [f"not embedded: {embedded[response.text].reason or embedded[response.text].status}"]
