"""What MIRAE adds to the published cosines: values of a prompt's answers, and figures with intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from math import log, log2
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from sealegs import analysis
from sealegs.analysis.figures import scopes
from sealegs.analysis.repeats import Repeated, repeat_figures
from sealegs.benchmarks.mirae import floor
from sealegs.benchmarks.mirae.data import FIGURES, LEVELS, TARGETS, MiraeDetail, MiraeInputs, is_abbreviated
from sealegs.benchmarks.mirae.expected import rates, right_answers
from sealegs.benchmarks.mirae.meanings import group_answers, same_meaning, semantic_entropy
from sealegs.benchmarks.mirae.page import (
    ESTIMATED,
    FLOOR,
    LAYOUT,
    NOMINAL,
    READS,
    are_identical,
    unread_languages,
)
from sealegs.benchmarks.mirae.published import cosine_matrix, similarity, unit
from sealegs.benchmarks.mirae.refusals import refuses
from sealegs.benchmarks.mirae.wordings import SHARE, SPREADS, wording_shares, wording_values
from sealegs.files.package_data import read_json
from sealegs.harness.benchmark import Scoring
from sealegs.models.vectors import usable
from sealegs.page.metrics import scope_of, unit_of
from sealegs.text.answers import Rule
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import Answered, Asking, Embed, Response, Score, Summary, Tag

# Formulas


def cross_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """The mean cosine of all pairs of one answer from `first` and one from `second`."""
    return float((unit(first) @ unit(second).T).mean())


def drift(within_first: float, within_second: float, across: float) -> float:
    """gap = (W₁ + Wₖ) / 2 − C₁ₖ: the similarity within either level, less the similarity across them.

    Sampling alone lowers all three alike, so the gap is zero where growing the prompt changes nothing.
    """
    return (within_first + within_second) / 2 - across


# Scores


class AnsweredPrompt(NamedTuple):
    """One prompt's answers that can be scored: indexes, vectors and cosines, and the values to fill in."""

    item: Answered[MiraeInputs]
    indexes: list[int]
    vectors: NDArray[np.float32]
    matrix: NDArray[np.float32]
    values: dict[str, float | None]
    failures: list[str]
    right: dict[int, list[str]] | None
    """The answers that give what is expected; None where nothing is."""

    @property
    def texts(self) -> list[str]:
        return [self.item.responses[index].text for index in self.indexes]

    @property
    def lang(self) -> str:
        return str(self.item.sample.tags["lang"])

    @property
    def kind(self) -> tuple[Tag, Tag]:
        """What of its text is neither the question nor its length: the padding, and which wording it is."""
        tags = self.item.sample.tags
        return tags.get("padding", ""), tags.get("wording", 0)


def score_prompts(answered: Sequence[Answered[MiraeInputs]], rule: Rule, *, judged: bool) -> Scoring:
    """Have each distinct answer embedded once, then score each prompt, and have a judge group its answers."""
    texts = list(dict.fromkeys(r.text for item in answered for r in item.responses if rule.counts(r)))
    sentences = probe_sentences()
    langs = dict.fromkeys(str(item.sample.tags["lang"]) for item in answered)
    probed = [lang for lang in langs if lang != "en" and lang in sentences]
    probe_langs = ["en", *probed] if probed else []
    inputs = [*texts, *(sentence for lang in probe_langs for sentence in sentences[lang])]
    responses = yield [Embed(text=text) for text in inputs]
    embedded = dict(zip(inputs, usable(responses), strict=True))
    shares = {lang: _share_matched(lang, embedded) for lang in probed}
    unread = {lang for lang, share in shares.items() if share is not None and share < READS}
    questions = _questions(answered)
    prompts = [_prompt(item, embedded, rule, questions[_question_key(item)]) for item in answered]
    for prompt in prompts:
        if (share := shares.get(prompt.lang)) is not None:
            prompt.values["embedder_reads"] = share
    _add_chance(prompts)
    _add_drift(prompts)
    _add_across_languages(prompts, unread)
    _add_wordings(prompts, rule)
    if judged:
        yield from _add_judged_meanings(prompts, questions)
    return [_score(prompt, embedded, rule) for prompt in prompts]


def _question_key(item: Answered[MiraeInputs]) -> Hashable:
    tags = item.sample.tags
    return item.sample.group, tags["lang"], tags.get("wording", 0)


def _questions(answered: Sequence[Answered[MiraeInputs]]) -> dict[Hashable, str]:
    """Each question as the shortest level asks it: a longer prompt asks the same, among much else."""
    questions: dict[Hashable, str] = {}
    for item in sorted(answered, key=lambda item: item.sample.tags["level"]):
        questions.setdefault(_question_key(item), item.sample.inputs.question_text)
    return questions


def _prompt(
    item: Answered[MiraeInputs], embedded: Mapping[str, Response], rule: Rule, question: str
) -> AnsweredPrompt:
    """One prompt with the values that its answers give by themselves."""
    answers = [(index, r) for index, r in enumerate(item.responses) if rule.counts(r)]
    indexes = [index for index, r in answers if embedded[r.text].vector is not None]
    vectors = _stack(embedded[item.responses[index].text].vector for index in indexes)
    matrix = cosine_matrix(vectors)
    figures = similarity(matrix)
    values: dict[str, float | None] = dict(figures) if figures else dict.fromkeys(FIGURES)
    inputs = item.sample.inputs
    right = None
    if inputs.expected:
        counted = [index for index, _ in answers]
        right = right_answers(item.responses, counted, inputs.expected, question)
        values |= rates(len(item.responses), len(counted), right)
    prompt = AnsweredPrompt(item, indexes, vectors, matrix, values, [], right)
    identical = len(set(prompt.texts)) == 1
    values["identical_answers"] = float(identical) if figures else None
    if figures and identical:  # float32 gives 0.9999997, and its rounding would have a slope with a p-value
        values |= dict(zip(FIGURES, (1.0, 0.0, 1.0, 1.0), strict=True))
    values["cut_by_embedder"] = _share(embedded[text].cut for text in prompt.texts)
    # A file of recorded answers does not say how they ended.
    recorded = inputs.published is not None
    arrived = [r for r in item.responses if r.status not in ("error", "refused")]
    values["cut_by_max_tokens"] = None if recorded else _share(r.status == "truncated" for r in arrived)
    refused = [True for r in item.responses if r.status == "refused"]
    values["refusals"] = _share([*refused, *(refuses(r.text, prompt.lang) for r in arrived)])
    lengths = [estimate_tokens(r.text) for _, r in answers]
    values["estimated_tokens"] = float(np.mean(lengths)) if lengths else None
    text = inputs.question_text
    whole = bool(text) and not (recorded and is_abbreviated(text))
    values["prompt_tokens"] = float(estimate_tokens(text)) if whole else None
    return prompt


def _add_chance(prompts: Sequence[AnsweredPrompt]) -> None:
    """The chance floor, and the similarity corrected for it, stratum by stratum."""
    strata: defaultdict[Hashable, list[AnsweredPrompt]] = defaultdict(list)
    for prompt in prompts:
        prompt.values["chance_floor"] = prompt.values["corrected_similarity"] = None
        if prompt.values["mean_similarity"] is not None:
            strata[floor.stratum(prompt.item.sample)].append(prompt)
    for members in strata.values():
        corrected = floor.corrected_for_chance(
            [prompt.item.sample.group for prompt in members],
            np.stack([unit(prompt.vectors).mean(axis=0, dtype=np.float64) for prompt in members]),
            np.array([prompt.values["mean_similarity"] for prompt in members], dtype=float),
        )
        if corrected is None:
            continue
        for index, prompt in enumerate(members):
            prompt.values["chance_floor"] = float(corrected.floors[index])
            if corrected.similarity is not None:
                prompt.values["corrected_similarity"] = float(corrected.similarity[index])


def _add_drift(prompts: Sequence[AnsweredPrompt]) -> None:
    """Compare the answers at every level with those at the question's shortest, of the same kind."""
    questions: defaultdict[Hashable, list[AnsweredPrompt]] = defaultdict(list)
    for prompt in prompts:
        questions[prompt.item.sample.group, prompt.lang, prompt.kind].append(prompt)
    for levels in questions.values():
        shortest, *longer = sorted(levels, key=lambda prompt: prompt.item.sample.tags["level"])
        for prompt in longer:
            first, second = shortest.values["mean_similarity"], prompt.values["mean_similarity"]
            gap = None
            if first is not None and second is not None:
                gap = drift(first, second, cross_similarity(shortest.vectors, prompt.vectors))
            prompt.values["drift"] = gap


def _add_across_languages(prompts: Sequence[AnsweredPrompt], unread: Collection[str]) -> None:
    """Compare the answers to one question in two languages, level by level.

    Languages that the embedder does not read are left out: across them its cosine means nothing.
    """
    translations: defaultdict[Hashable, dict[str, AnsweredPrompt]] = defaultdict(dict)
    for prompt in prompts:
        sample = prompt.item.sample
        translations[sample.group, sample.tags["level"], prompt.kind][prompt.lang] = prompt
    for by_lang in translations.values():
        for first, second in combinations(sorted(set(by_lang) - set(unread)), 2):
            a, b = by_lang[first], by_lang[second]
            both = a.indexes and b.indexes
            a.values[f"across_{first}_{second}"] = cross_similarity(a.vectors, b.vectors) if both else None


def _add_wordings(prompts: Sequence[AnsweredPrompt], rule: Rule) -> None:
    """Compare the answers to the wordings of a question, level by level; the first has what comes of it."""
    questions: defaultdict[Hashable, list[AnsweredPrompt]] = defaultdict(list)
    for prompt in prompts:
        padding, wording = prompt.kind
        if wording:
            sample = prompt.item.sample
            questions[sample.group, prompt.lang, sample.tags["level"], padding].append(prompt)
    for wordings in questions.values():
        right = [
            [index in prompt.right for index, r in enumerate(prompt.item.responses) if rule.counts(r)]
            for prompt in wordings
            if prompt.right is not None
        ]
        first = min(wordings, key=lambda prompt: prompt.kind[1])
        first.values.update(wording_values([unit(prompt.vectors) for prompt in wordings], right))


def _add_judged_meanings(
    prompts: Sequence[AnsweredPrompt], questions: Mapping[Hashable, str]
) -> Asking[None]:
    """Group the answers by what they entail."""
    asked = [
        (questions[_question_key(prompt.item)], prompt.texts if len(prompt.texts) > 1 else [])
        for prompt in prompts
    ]
    for prompt, (numbers, reason) in zip(prompts, (yield from group_answers(asked)), strict=True):
        prompt.values["same_meaning"] = same_meaning(numbers) if numbers else None
        prompt.values["judged_meanings"] = len(set(numbers)) if numbers else None
        prompt.values["judged_entropy"] = semantic_entropy(numbers) if numbers else None
        if reason:
            prompt.failures.append(f"meanings not judged: {reason}")


def _score(prompt: AnsweredPrompt, embedded: Mapping[str, Response], rule: Rule) -> Score[MiraeDetail]:
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
        detail=MiraeDetail(
            responses=prompt.indexes,
            pairwise_similarities=prompt.matrix.tolist(),
            right=prompt.right,
        ),
    )


def _stack(vectors: Iterable[bytes | None]) -> NDArray[np.float32]:
    rows = [np.frombuffer(vector, dtype="<f4") for vector in vectors if vector is not None]
    return np.stack(rows) if rows else np.zeros((0, 1), np.float32)


def _share(facts: Iterable[bool | None]) -> float | None:
    """The share of the known facts that are true; None where none is known."""
    known = [fact for fact in facts if fact is not None]
    return sum(known) / len(known) if known else None


# Does the embedder read a language?


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


# Figures: scores by level, domain, language and padding, and the trend over lengths

BY_LEVEL: list[tuple[str, ...]] = [(), ("level",)]
BY_LANG: list[tuple[str, ...]] = [("lang",), ("lang", "level")]
BY_DOMAIN: list[tuple[str, ...]] = [("domain",), ("level", "domain"), ("lang", "domain")]
BY_PADDING: list[tuple[str, ...]] = [("padding",), ("padding", "level")]
CHANCE = ("chance_floor", "corrected_similarity")
TREND, DRIFT = "trend_per_doubling", "drift"


def summarise(scores: Sequence[Score]) -> Summary:
    """The figures by level, language and padding, the published and the corrected ones by domain too; the
    trend along the lengths of the prompts."""
    metrics = list(dict.fromkeys(name for score in scores for name in score.values))
    breakdown = {
        name: [*BY_LEVEL, *BY_LANG, *BY_PADDING, *(BY_DOMAIN if name in (*FIGURES, *CHANCE) else ())]
        for name in metrics
    }
    if len({score.tags.get("lang") for score in scores}) > 1 and FIGURES[0] in breakdown:
        breakdown[FIGURES[0]].append(("lang", "level", "domain"))
    if "embedder_reads" in breakdown:
        breakdown["embedder_reads"] = [("lang",)]
    units = {name: unit_of(LAYOUT.metrics, name) for name in metrics}
    summary = analysis.summarise(scores, breakdown, units=units)
    summary.update(_trends(scores))
    known = [_repeated(score) for score in scores if "right_rate" in score.values]
    summary.update(repeat_figures(known, *BY_LEVEL, *BY_LANG))
    summary.update(wording_shares(scores, *BY_LEVEL, *BY_LANG))
    # The probe is one measurement of the embedder, not one of every prompt: no interval over questions.
    size = len(probe_sentences()["en"])
    answers = max((score.answered for score in scores), default=1) or 1
    possible = {"judged_meanings": (1.0, float(answers)), "judged_entropy": (0.0, log(answers))}
    for name, figure in summary.items():
        if name.startswith(CHANCE):
            summary[name] = msgspec.structs.replace(figure, basis=FLOOR)
        if name.startswith("embedder_reads"):
            count: dict[str, Any] = {"low": None, "high": None, "n": size, "clusters": size}
            reason = "a count of sentences"
            summary[name] = msgspec.structs.replace(figure, **count, method="", reason=reason)
        least, most = possible.get(figure.metric, (0.0, 0.0))
        if most and figure.low is not None and figure.high is not None:
            low, high = max(figure.low, least), min(figure.high, most)
            summary[name] = msgspec.structs.replace(figure, low=low, high=high)
    if are_identical(summary):
        headline = summary["mean_similarity"]
        method = "; ".join(filter(None, (headline.method, "repeats not independent")))
        summary["mean_similarity"] = msgspec.structs.replace(headline, method=method)
    return _by_language(summary) if unread_languages(summary) else summary


def _by_language(summary: Summary) -> Summary:
    """The summary of several languages of which the embedder does not read one: cosines in each by itself."""
    scopes_of = {name: scope_of(name) for name in summary}
    langs = {scope["lang"] for _, scope in scopes_of.values() if "lang" in scope}
    cosines = (*FIGURES, *CHANCE, TREND, DRIFT, *SPREADS, SHARE)
    return {
        name: msgspec.structs.replace(
            figure, value=None, low=None, high=None, p=None, method="", reason="one figure for each language"
        )
        if len(langs) > 1 and scopes_of[name][0] in cosines and "lang" not in scopes_of[name][1]
        else figure
        for name, figure in summary.items()
    }


def _repeated(score: Score) -> Repeated:
    """How many answers to a prompt give what is expected."""
    answers = score.answered
    return Repeated(score, round((score.values["right_rate"] or 0.0) * answers), answers)


def _trends(scores: Sequence[Score]) -> Summary:
    """The slope of the consistency over log₂ of the prompts' lengths: of all, of each language, of each
    padding.

    Lengths are estimates, one way for all prompts. Where a recorded file has only the beginning of a prompt,
    the nominal lengths of the levels stand in for all of them.
    """
    if len({score.tags["level"] for score in scores}) < 2:
        return {}
    known = [score for score in scores if score.values.get("mean_similarity") is not None]
    estimated = all(score.values.get("prompt_tokens") for score in known)
    nominal: dict[Tag, int] = dict(zip(LEVELS, TARGETS, strict=True))

    def length(score: Score) -> float:
        tokens = score.values["prompt_tokens"] if estimated else nominal[score.tags["level"]]
        return log2(tokens or 1)

    summary: Summary = {}
    for scope, members in scopes(scores, (), ("lang",), ("padding",)):
        trend = analysis.slope(members, "mean_similarity", "level", length, unit="cosine")
        summary[analysis.scope_name(TREND, scope)] = msgspec.structs.replace(
            trend, basis=ESTIMATED if estimated else NOMINAL
        )
    return summary
