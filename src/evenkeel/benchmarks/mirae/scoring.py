"""MIRAE's scores: the published cosines and the measures beside them as formulas, then prompt by prompt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations, islice
from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenkeel.benchmarks.mirae import chance
from evenkeel.benchmarks.mirae.files import METRICS, MiraeDetail, MiraeInputs, is_abbreviated
from evenkeel.benchmarks.mirae.meanings import group_answers, parse_methods
from evenkeel.benchmarks.mirae.page import READS
from evenkeel.files.package_data import read_json
from evenkeel.harness.benchmark import Scoring
from evenkeel.models.vectors import usable
from evenkeel.text.answers import Rule, is_blank, opening_of
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Answered, Asking, Embed, Response, Score, Tag

if TYPE_CHECKING:
    from evenkeel.benchmarks.mirae.benchmark import MiraeOptions

HEADLINE_ROLE = "embedder"
"""The role whose vectors give the headline; those of further embedders are shown beside it."""


# Formulas


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row divided by its length; a row of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: NDArray[np.float32] = (vectors / np.where(norms == 0, 1, norms)).astype(np.float32, copy=False)
    return result


def cosine_matrix(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """All pairwise cosines: Sᵢⱼ = vᵢ·vⱼ / (‖vᵢ‖‖vⱼ‖), in float32 as the published script computes them."""
    normed = unit(vectors)
    return normed @ normed.T


def similarity(matrix: NDArray[np.float32]) -> dict[str, float] | None:
    """Mean, population standard deviation, maximum and minimum of the matrix above its diagonal.

    None for fewer than two answers: there is nothing to compare.
    """
    n = len(matrix)
    if n < 2:
        return None
    pairs = matrix[np.triu_indices(n, k=1)]
    return {
        "mean_similarity": float(pairs.mean()),
        "std_similarity": float(pairs.std()),
        "max_similarity": float(pairs.max()),
        "min_similarity": float(pairs.min()),
    }


def cross_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """The mean cosine of all pairs of one answer from `first` and one from `second`."""
    return float((unit(first) @ unit(second).T).mean())


def drift(within_first: float, within_second: float, across: float) -> float:
    """gap = (W₁ + Wₖ) / 2 − C₁ₖ: the similarity within either level, less the similarity across them.

    Sampling alone lowers all three alike, so the gap is zero where growing the prompt changes nothing.
    """
    return (within_first + within_second) / 2 - across


def meanings(matrix: NDArray[np.float32], distance: float) -> list[int]:
    """A group number for each answer: two have the same meaning if a chain of steps no longer than
    `distance` (1 − cosine) leads from one to the other."""
    near = matrix >= 1 - distance
    near |= near.T
    groups = np.full(len(matrix), -1)
    for first in range(len(matrix)):
        reached = [first] if groups[first] < 0 else []
        while reached:
            groups[reached] = first
            reached = np.flatnonzero(near[reached].any(axis=0) & (groups < 0)).tolist()
    return [int(number) for number in np.unique(groups, return_inverse=True)[1]]


def semantic_entropy(groups: Sequence[int]) -> float:
    """H = −Σ pₖ ln pₖ over the meanings' shares (Kuhn, Gal & Farquhar 2023, the discrete form)."""
    shares = [count / len(groups) for count in Counter(groups).values()]
    return abs(sum(share * log(share) for share in shares))


def duplicates(texts: Sequence[str]) -> float:
    """The share of answers that repeat an earlier one to the letter."""
    return 1 - len(set(texts)) / len(texts)


def mean_of_windows(vectors: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """One vector for a text from those of its windows, weighted by their lengths."""
    average: NDArray[np.float32] = np.average(unit(vectors), axis=0, weights=lengths).astype(np.float32)
    return average


# Scores


class Prompt(NamedTuple):
    """One prompt's answers that can be scored: their indexes, their vectors, and the values to fill in."""

    item: Answered[MiraeInputs]
    indexes: list[int]
    vectors: NDArray[np.float32]
    values: dict[str, float | None]
    floors: dict[str, float]
    """By role of an embedder: the chance floor that the prompt is corrected by."""
    corrected: dict[str, float]
    """By role: the prompt's similarity corrected by that floor."""
    failures: list[str]

    @property
    def texts(self) -> list[str]:
        return [self.item.responses[index].text for index in self.indexes]

    @property
    def lang(self) -> str:
        return str(self.item.sample.tags["lang"])

    @property
    def padding(self) -> Tag:
        return self.item.sample.tags.get("padding", "")


def score_prompts(
    answered: Sequence[Answered[MiraeInputs]], rule: Rule, embedders: Sequence[str], options: MiraeOptions
) -> Scoring:
    """Have each distinct answer embedded once by every embedder (a role), then score each prompt."""
    texts = _distinct(r.text for item in answered for r in item.responses if rule.counts(r))
    sentences = probe_sentences()
    langs = _distinct(str(item.sample.tags["lang"]) for item in answered)
    probed = [lang for lang in langs if lang != "en" and lang in sentences]
    probe_langs = ["en", *probed] if probed else []
    inputs = [*texts, *(sentence for lang in probe_langs for sentence in sentences[lang])]
    responses = iter((yield [Embed(text=text, role=role) for role in embedders for text in inputs]))
    embedded = {
        role: dict(zip(inputs, usable(islice(responses, len(inputs))), strict=True)) for role in embedders
    }
    headline = embedded.pop(HEADLINE_ROLE)
    whole = (yield from _embed_whole(texts, headline)) if options.chunked else None
    shares = {lang: _share_matched(lang, headline) for lang in probed}
    prompts = [_prompt(item, headline, rule, options.meaning_distance) for item in answered]
    counted = any(r.tokens_out is not None for item in answered for r in item.responses)
    bases = chance.bases(item.sample for item in answered)
    _add_chance(prompts, bases, HEADLINE_ROLE, [prompt.vectors for prompt in prompts])
    for role, others in embedded.items():
        vectors = [_stack(others[text].vector for text in prompt.texts) for prompt in prompts]
        for prompt, rows in zip(prompts, vectors, strict=True):
            prompt.values[f"mean_similarity@{role}"] = _mean_similarity(rows)
        _add_chance(prompts, bases, role, vectors)
    for prompt in prompts:
        if counted:
            prompt.values["answer_tokens"] = _counted_tokens(prompt.item, rule)
        if whole is not None:
            prompt.values["whole_similarity"] = _mean_similarity(_stack(map(whole.get, prompt.texts)))
        if (share := shares.get(prompt.lang)) is not None:
            prompt.values["embedder_reads"] = share
    _add_drift(prompts)
    _add_across_languages(prompts, {lang for lang, s in shares.items() if s is not None and s < READS})
    yield from _add_meanings(prompts, options)
    return [_score(prompt, headline, rule, bases.get(prompt.lang, ())) for prompt in prompts]


def _prompt(
    item: Answered[MiraeInputs], embedded: Mapping[str, Response], rule: Rule, meaning_distance: float
) -> Prompt:
    """One prompt with the values that its answers give by themselves."""
    answers = [(index, r) for index, r in enumerate(item.responses) if rule.counts(r)]
    indexes = [index for index, r in answers if embedded[r.text].vector is not None]
    vectors = _stack(embedded[item.responses[index].text].vector for index in indexes)
    matrix = cosine_matrix(vectors)
    figures = similarity(matrix)
    values: dict[str, float | None] = dict(figures) if figures else dict.fromkeys(METRICS)
    prompt = Prompt(item, indexes, vectors, values, {}, {}, [])
    groups = meanings(matrix, meaning_distance) if figures else None
    arrived = [r for r in item.responses if r.status not in ("error", "refused")]
    openings = [opening_of(r.text, prompt.lang) for r in arrived]
    lengths = [estimate_tokens(r.text) for _, r in answers]
    inputs = item.sample.inputs
    values["meanings"] = len(set(groups)) if groups else None
    values["semantic_entropy"] = semantic_entropy(groups) if groups else None
    values["duplicates"] = duplicates(prompt.texts) if figures else None
    values["cut_by_embedder"] = _share(embedded[text].cut for text in prompt.texts)
    # A file of recorded answers does not say how they ended.
    recorded = inputs.published is not None
    values["cut_by_max_tokens"] = None if recorded else _share(r.status == "truncated" for r in arrived)
    values["empty"] = _share(is_blank(r.text) for r in arrived)
    refused = [True for r in item.responses if r.status == "refused"]
    values["refusals"] = _share([*refused, *(opening == "refusal" for opening in openings)])
    values["disclaimers"] = _share(opening == "disclaimer" for opening in openings)
    values["estimated_tokens"] = float(np.mean(lengths)) if lengths else None
    text = inputs.question_text
    whole = bool(text) and not (recorded and is_abbreviated(text))
    values["prompt_tokens"] = float(estimate_tokens(text)) if whole else None
    return prompt


def _counted_tokens(item: Answered[MiraeInputs], rule: Rule) -> float | None:
    """The mean of the counts that came with the answers; None where one of them came without."""
    counts = [r.tokens_out for r in item.responses if rule.counts(r)]
    known = [count for count in counts if count is not None]
    return float(np.mean(known)) if known and len(known) == len(counts) else None


def _add_chance(
    prompts: Sequence[Prompt],
    bases: Mapping[str, chance.Basis],
    role: str,
    vectors: Sequence[NDArray[np.float32]],
) -> None:
    """The chance floor of an embedder, and its similarity corrected for it, stratum by stratum."""
    suffix = "" if role == HEADLINE_ROLE else f"@{role}"
    strata: defaultdict[Hashable, list[tuple[Prompt, NDArray[np.float32]]]] = defaultdict(list)
    for prompt, rows in zip(prompts, vectors, strict=True):
        prompt.values[f"chance_floor{suffix}"] = prompt.values[f"corrected_similarity{suffix}"] = None
        key = chance.stratum(prompt.item.sample.tags, bases.get(prompt.lang, ("",)))
        if key is not None and prompt.values[f"mean_similarity{suffix}"] is not None:
            strata[key].append((prompt, rows))
    for members in strata.values():
        corrected = chance.corrected_for_chance(
            [prompt.item.sample.group for prompt, _ in members],
            np.stack([unit(rows).mean(axis=0, dtype=np.float64) for _, rows in members]),
            np.array([prompt.values[f"mean_similarity{suffix}"] for prompt, _ in members], dtype=float),
        )
        if corrected is None:
            continue
        for index, (prompt, _) in enumerate(members):
            prompt.floors[role] = corrected.floor
            prompt.values[f"chance_floor{suffix}"] = float(corrected.floors[index])
            if corrected.similarity is not None:
                prompt.values[f"corrected_similarity{suffix}"] = float(corrected.similarity[index])
                distance = 1 - (prompt.values[f"mean_similarity{suffix}"] or 0.0)
                prompt.corrected[role] = 1 - distance / (1 - corrected.floor)


def _add_drift(prompts: Sequence[Prompt]) -> None:
    """Compare the answers at every level with those at the question's shortest, of the same padding; a
    shortest without padding is that of every padding."""
    questions: defaultdict[tuple[str, str], list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        questions[prompt.item.sample.group, prompt.lang].append(prompt)
    paddings = (
        [prompt for prompt in levels if prompt.padding in ("", padding)]
        for levels in questions.values()
        for padding in dict.fromkeys(prompt.padding for prompt in levels)
        if padding or not any(prompt.padding for prompt in levels)
    )
    for levels in paddings:
        shortest, *longer = sorted(levels, key=lambda prompt: prompt.item.sample.tags["level"])
        for prompt in longer:
            first, second = shortest.values["mean_similarity"], prompt.values["mean_similarity"]
            across = gap = None
            if first is not None and second is not None:
                across = cross_similarity(shortest.vectors, prompt.vectors)
                gap = drift(first, second, across)
            prompt.values.update(similarity_to_shortest=across, drift=gap)


def _add_across_languages(prompts: Sequence[Prompt], unread: Collection[str]) -> None:
    """Compare the answers to one question in two languages, level by level.

    Languages that the embedder does not read are left out: across them its cosine means nothing.
    """
    translations: defaultdict[tuple[str, Tag, Tag], dict[str, Prompt]] = defaultdict(dict)
    for prompt in prompts:
        sample = prompt.item.sample
        translations[sample.group, sample.tags["level"], prompt.padding][prompt.lang] = prompt
    for by_lang in translations.values():
        for first, second in combinations(sorted(set(by_lang) - set(unread)), 2):
            a, b = by_lang[first], by_lang[second]
            both = a.indexes and b.indexes
            a.values[f"across_{first}_{second}"] = cross_similarity(a.vectors, b.vectors) if both else None


def _add_meanings(prompts: Sequence[Prompt], options: MiraeOptions) -> Asking[None]:
    """Group the answers by what they entail, with every model that --meanings names.

    The question is that of the shortest level: a longer prompt asks the same and is too long to be read.
    """
    questions: dict[tuple[str, str], str] = {}
    for prompt in sorted(prompts, key=lambda prompt: prompt.item.sample.tags["level"]):
        questions.setdefault((prompt.item.sample.group, prompt.lang), prompt.item.sample.inputs.question_text)
    asked = [
        (questions[prompt.item.sample.group, prompt.lang], prompt.texts if len(prompt.texts) > 1 else [])
        for prompt in prompts
    ]
    for method in parse_methods(options.meanings):
        for prompt, groups in zip(prompts, (yield from group_answers(asked, method)), strict=True):
            numbers = groups.numbers
            prompt.values[f"meanings@{method}"] = len(set(numbers)) if numbers else None
            prompt.values[f"semantic_entropy@{method}"] = semantic_entropy(numbers) if numbers else None
            prompt.values[f"cut_pairs@{method}"] = groups.cut / groups.pairs if groups.pairs else None
            if groups.reason:
                prompt.failures.append(f"meanings not compared by {method}: {groups.reason}")


def _score(
    prompt: Prompt, embedded: Mapping[str, Response], rule: Rule, floor_over: chance.Basis
) -> Score[MiraeDetail]:
    sample, responses = prompt.item.sample, prompt.item.responses
    failures = list(prompt.failures)
    for response in responses:
        failures += rule.failure(response)
        embedding = embedded[response.text] if rule.counts(response) else None
        if embedding and embedding.vector is None:
            failures.append(f"not embedded: {embedding.reason or embedding.status}")
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags=sample.tags,
        values=prompt.values,
        statuses=Counter(rule.status(response) for response in responses),
        answered=len(prompt.indexes) if prompt.values["mean_similarity"] is not None else 0,
        failures=tuple(failures),
        basis=" ".join(floor_over),
        detail=MiraeDetail(
            responses=prompt.indexes,
            pairwise_similarities=cosine_matrix(prompt.vectors).tolist() if prompt.indexes else [],
            floors=prompt.floors,
            corrected=prompt.corrected,
            floor_over=floor_over,
        ),
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _stack(vectors: Iterable[bytes | None]) -> NDArray[np.float32]:
    rows = [np.frombuffer(vector, dtype="<f4") for vector in vectors if vector is not None]
    return np.stack(rows) if rows else np.zeros((0, 1), np.float32)


def _mean_similarity(vectors: NDArray[np.float32]) -> float | None:
    figures = similarity(cosine_matrix(vectors))
    return figures["mean_similarity"] if figures else None


def _share(facts: Iterable[bool | None]) -> float | None:
    """The share of the known facts that are true; None where none is known."""
    known = [fact for fact in facts if fact is not None]
    return sum(known) / len(known) if known else None


# Long answers and other languages


def _embed_whole(texts: Sequence[str], embedded: Mapping[str, Response]) -> Asking[dict[str, bytes]]:
    """A vector of the whole of every text: what the embedder cut is halved until nothing is cut.

    A text of which the embedder does not say whether it was cut has none.
    """
    known = dict(embedded)
    windows = {text: [text] for text in texts}
    while cut := [w for parts in windows.values() for w in parts if known[w].cut and len(w) > 1]:
        halves = {window: halved(window) for window in _distinct(cut)}
        new = [half for pair in halves.values() for half in pair if half not in known]
        known.update(zip(new, (yield [Embed(text=half) for half in new]), strict=True))
        known = dict(zip(known, usable(known.values()), strict=True))
        windows = {text: [h for w in parts for h in halves.get(w, (w,))] for text, parts in windows.items()}
    return {
        text: mean_of_windows(_stack(known[w].vector for w in parts), list(map(len, parts))).tobytes()
        for text, parts in windows.items()
        if all(known[w].vector and known[w].cut is not None for w in parts)
    }


def halved(text: str) -> tuple[str, str]:
    """Both halves of a text, split at a space near its middle, or in the middle where there is none."""
    middle = len(text) // 2
    space = text.find(" ", middle, middle + len(text) // 4)
    at = space if space > 0 else middle
    return text[:at], text[at:]


def probe_sentences() -> dict[str, list[str]]:
    """The same sentences in every language: an embedder that reads one puts them near the English ones."""
    return read_json(__package__, "probes.json", type=dict[str, list[str]])


def _share_matched(lang: str, embedded: Mapping[str, Response]) -> float | None:
    """Does the embedder read a language? The share of the probe sentences whose nearest English one is
    their own; None where none was embedded."""
    sentences = probe_sentences()
    pairs = [
        (embedded[english].vector, embedded[other].vector)
        for english, other in zip(sentences["en"], sentences[lang], strict=True)
    ]
    known = [pair for pair in pairs if None not in pair]
    if not known:
        return None
    english, translated = (unit(_stack(vectors)) for vectors in zip(*known, strict=True))
    nearest = (translated @ english.T).argmax(axis=1)
    return float((nearest == np.arange(len(known))).mean())
