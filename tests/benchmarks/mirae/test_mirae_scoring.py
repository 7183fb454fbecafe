"""What else the answers tell: drift, languages, refusals, and what the similarity hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from present import present
from records import score
from sealegs.benchmarks.mirae.added import probe_sentences
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from sealegs.benchmarks.mirae.data import QuestionAtLevels, make_samples
from sealegs.benchmarks.mirae.page import notes
from sealegs.benchmarks.mirae.refusals import refuses
from sealegs.harness.scoring import complete
from sealegs.page.tables import arrange
from sealegs.types import Answered, Embed, Figure, Request, Response, RunSpec, Score


def vector(values: Sequence[float]) -> bytes:
    return np.array(values, "<f4").tobytes()


def answered(
    level: int,
    texts: Sequence[str | Response],
    *,
    lang: str = "en",
    question: str = "1",
    domain: str = "FACTUAL",
) -> Answered:
    benchmark = Mirae(MiraeOptions())
    asked = QuestionAtLevels(question, domain, lang, {level: f"{question} {level} {lang}?"})
    (sample,) = make_samples([asked], len(texts))
    responses = tuple(Response(status="ok", text=t) if isinstance(t, str) else t for t in texts)
    return Answered(sample, tuple(benchmark.requests(sample)), responses)


def scored(items: Sequence[Answered], embed: Mapping[str, Any], **options: Any) -> list[Score]:
    """Score by hand; `embed` gives each text's vector."""
    asking = Mirae(MiraeOptions(**options)).score(items)
    return complete(asking, lambda requests: [_embedded(request, embed) for request in requests])


def _embedded(request: Request, embed: Mapping[str, Any]) -> Response:
    assert isinstance(request, Embed)
    values = embed.get(request.text, [1.0, 0.0, 0.0])
    return Response(status="ok", vector=vector(values), cut=request.text.startswith("long"))


def test_each_distinct_answer_is_embedded_once_and_a_failure_never() -> None:
    item = answered(1, ["a", "b", "a", Response(status="error")])
    asked = next(Mirae(MiraeOptions()).score([item]))
    assert [request.text for request in asked if isinstance(request, Embed)] == ["a", "b"]
    (score,) = scored([item], {"b": [0.0, 1.0, 0.0]})
    assert score.values["mean_similarity"] == pytest.approx(1 / 3)
    assert (score.answered, score.statuses) == (3, {"ok": 3, "error": 1})


def test_one_usable_answer_is_missing_not_perfect() -> None:
    (score,) = scored([answered(1, ["a", Response(status="error")])], {})
    assert (score.values["mean_similarity"], score.answered) == (None, 0)


def test_equal_texts_are_alike_by_exactly_one_so_that_rounding_has_no_trend() -> None:
    odd = np.random.default_rng(1).random((4, 384)).tolist()
    items = [answered(n % 2 + 1, [f"{n}"] * 3, question=f"{n // 2}") for n in range(8)]
    scores = scored(items, {f"{n}": odd[n // 2] for n in range(8)} | {"1": odd[3], "4": odd[1]})
    names = ("mean_similarity", "std_similarity", "max_similarity", "min_similarity")
    assert {tuple(score.values[name] for name in names) for score in scores} == {(1, 0, 1, 1)}
    lengths = ({"prompt_tokens": 30.0 if score.tags["level"] == 1 else 67.0} for score in scores)
    longer = [
        msgspec.structs.replace(each, values=each.values | n) for each, n in zip(scores, lengths, strict=True)
    ]
    trend = Mirae(MiraeOptions()).summarise(longer)["trend_per_doubling"]
    assert (trend.value, trend.low, trend.high, trend.p) == (0, None, None, None)


def test_drift_is_the_mean_similarity_within_minus_that_across() -> None:
    embed = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1]}
    _, longer = scored([answered(1, ["a", "a"]), answered(7, ["b", "c"])], embed)
    assert longer.values["drift"] == pytest.approx((1 + 0) / 2 - 0)


def test_drift_is_missing_where_a_level_has_no_figure() -> None:
    _, longer = scored([answered(1, ["a"]), answered(7, ["b", "b"])], {})
    assert longer.values["drift"] is None


# What the similarity hides


def test_cuts_and_refusals_are_counted() -> None:
    answers = [
        Response(status="ok", text="same"),
        Response(status="ok", text="I’m sorry, but I can’t help with that."),
        Response(status="truncated", text="long story", tokens_out=256),
        Response(status="ok", text="  "),
        Response(status="refused"),
        Response(status="error", reason="HTTP 500"),
    ]
    (score,) = scored([answered(1, answers)], {})
    assert score.values["cut_by_max_tokens"] == pytest.approx(1 / 4)
    assert score.values["cut_by_embedder"] == pytest.approx(1 / 3)
    assert score.values["refusals"] == pytest.approx(2 / 5)
    assert score.answered == 3
    assert score.statuses == {"ok": 2, "truncated": 1, "unparsed": 1, "refused": 1, "error": 1}
    assert score.failures == ("unparsed: empty answer",)


def test_identical_answers_are_said_not_to_be_independent() -> None:
    constant = [answered(1, ["a"] * 5, question=str(number)) for number in range(3)]
    varied = answered(1, ["a", "b"], question="varied")
    summary = Mirae(MiraeOptions()).summarise(scored([*constant, varied], {}))
    assert summary["identical_answers"].value == 0.75
    assert summary["mean_similarity"].method.endswith("; repeats not independent")
    warnings = [note.text for note in notes(of_source("starter"), summary) if note.warning]
    assert any("75% of the prompts got the same text every time" in text for text in warnings)


OPENINGS: list[dict[str, str]] = msgspec.json.decode(
    (Path(__file__).parent / "mirae_openings.json").read_bytes()
)


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
def test_openings_are_recognised_in_every_language(lang: str) -> None:
    wrong = [row for row in OPENINGS if refuses(row[lang], lang) != (row["verdict"] == "refusal")]
    assert len(wrong) <= 0.08 * len(OPENINGS)


def recorded(texts: Sequence[str], question: str) -> Answered:
    asked = QuestionAtLevels("1", "FACTUAL", "en", {1: question}, published={1: {}})
    (sample,) = make_samples([asked], len(texts))
    return Answered(sample, (), tuple(Response(status="ok", text=text) for text in texts))


@pytest.mark.parametrize(("text", "tokens"), [("Why is the sky blue?", 6), ("Why is the sky blue?...", None)])
def test_what_a_recording_does_not_hold_is_unknown(text: str, tokens: int | None) -> None:
    """How its answers ended, and how long a prompt is of which it has only the beginning."""
    (score,) = scored([recorded(["a", "b"], text)], {})
    assert score.values["prompt_tokens"] == tokens
    summary = Mirae(MiraeOptions()).summarise([score])
    assert score.values["cut_by_max_tokens"] is summary["cut_by_max_tokens"].value is None
    assert any("max-tokens cut them" in note.text for note in notes(of_source("recorded"), summary))


def of_source(source: str, **options: Any) -> RunSpec:
    return RunSpec(
        format=1, benchmark="mirae", options=options, models={}, data={"source": source}, seed=0, limit=None,
        provenance={}, subjects=("m",),
    )  # fmt: skip


def test_an_answer_that_could_not_be_embedded_is_named() -> None:
    item = answered(1, ["a", "b", "c"])
    asking = Mirae(MiraeOptions()).score([item])
    next(asking)
    with pytest.raises(StopIteration) as done:
        asking.send(
            [Response(status="error", reason="HTTP 400")] * 2 + [Response(status="ok", vector=vector([1]))]
        )
    (score,) = done.value.value
    assert score.answered == 0
    assert score.values["mean_similarity"] is None
    assert score.failures == ("not embedded: HTTP 400",) * 2


def test_a_probe_that_could_not_be_embedded_says_nothing_of_the_language() -> None:
    item = answered(1, ["예", "예"], lang="ko")
    asking = Mirae(MiraeOptions()).score([item])
    asked = next(asking)
    with pytest.raises(StopIteration) as done:
        asking.send(
            [Response(status="ok", vector=vector([1])), *[Response(status="error")] * (len(asked) - 1)]
        )
    assert "embedder_reads" not in done.value.value[0].values


# Languages


def in_two_languages() -> list[Score]:
    """Answers and probe sentences whose Korean vectors are all alike."""
    basis = np.eye(8)
    vectors = {sentence: list(basis[n]) for n, sentence in enumerate(probe_sentences()["en"])}
    vectors |= {sentence: list(basis[0]) for sentence in probe_sentences()["ko"]}
    items = [
        answered(level, texts, lang=lang)
        for level in (1, 2)
        for lang, texts in (("en", ["yes", "yes"]), ("ko", ["예", "예"]))
    ]
    return scored(items, {**vectors, "yes": basis[0], "예": basis[3]})


def test_every_language_has_a_table_by_level_and_domain() -> None:
    items = [
        answered(level, ["yes", "no"], lang=lang, domain=domain, question=domain)
        for level in (1, 2)
        for lang in ("en", "ko")
        for domain in ("FACTUAL", "OPINION")
    ]
    summary = Mirae(MiraeOptions()).summarise(scored(items, {}))
    layout = Mirae.layout.of_run(of_source("starter"), summary)
    tables = [table for table in layout.tables if table.columns == "domain" and table.within]
    assert [table.title for table in tables] == [
        "Similarity by level: English",
        "Similarity by level: Korean",
    ]
    for table in tables:
        grid = present(arrange(summary, table))
        assert grid.columns == ["all", "FACTUAL", "OPINION"]
        assert [name for name, _ in grid.rows] == ["1", "2", "all"]
        figures = [cell for _, cells in grid.rows for cell in cells]
        langs = {figure.scope["lang"] for figure in figures if isinstance(figure, Figure)}
        assert (langs, len(figures)) == ({table.within["lang"]}, 9)
    of_one = Mirae(MiraeOptions()).summarise(scored(items[:2], {}))
    assert Mirae.layout.of_run(of_source("starter"), of_one).tables == Mirae.layout.tables


def test_nothing_is_read_in_a_language_that_the_embedder_does_not_read() -> None:
    scores = in_two_languages()
    english, korean = scores[:2]
    assert "across_en_ko" not in english.values
    summary = Mirae(MiraeOptions()).summarise(scores)
    assert summary["embedder_reads/lang=ko"].value == pytest.approx(1 / 8)
    assert summary["embedder_reads/lang=ko"].n == 8
    cosines = ("mean_similarity", "corrected_similarity", "trend_per_doubling", "drift")
    pooled = [figure for name, figure in summary.items() if name.startswith(cosines) and "lang" not in name]
    assert len(pooled) > len(cosines)
    assert {figure.value for figure in pooled} == {figure.p for figure in pooled} == {None}
    assert summary["mean_similarity/lang=en"].value == pytest.approx(1)
    assert summary["drift/lang=en"].value == pytest.approx(0, abs=1e-6)
    warnings = [note.text for note in notes(of_source("starter"), summary) if note.warning]
    assert any("does not read 'ko': it matched 12% of 8" in text for text in warnings)
    assert any("no figure over all languages" in text for text in warnings)
    alone = Mirae(MiraeOptions()).summarise([korean])
    assert alone["mean_similarity"].value == pytest.approx(1)


# Trend


def graded(
    question: int, level: int, value: float, *, tokens: float | None = None, **tags: str | int
) -> Score:
    values = {"mean_similarity": value, "prompt_tokens": tokens, "drift": value / 10}
    all_tags = {"lang": "en", "domain": "F", "level": level, **tags}
    return score(f"{question}-{level}-{tags}", values, group=str(question), tags=all_tags)


LENGTHS = {1: 5, 2: 60, 4: 250, 7: 2000}
"""Questions of five tokens, stretched to the levels' lengths."""


def fitted(values: Mapping[int, float], lengths: Mapping[int, float]) -> float:
    x = [np.log2(lengths[level]) for level in values]
    return float(np.polyfit(x, list(values.values()), 1)[0])


def test_the_trend_is_over_the_real_lengths_of_the_prompts() -> None:
    """Short questions make the first step longer than a doubling: the nominal slope would be too steep."""
    falling = {1: 0.95, 2: 0.85, 4: 0.8, 7: 0.7}
    scores = [
        graded(q, level, value - q / 100, tokens=LENGTHS[level])
        for q in range(4)
        for level, value in falling.items()
    ]
    trend = Mirae(MiraeOptions()).summarise(scores)["trend_per_doubling"]
    nominal = fitted(falling, {1: 30, 2: 60, 4: 250, 7: 2000})
    assert trend.value == pytest.approx(fitted(falling, LENGTHS))
    assert trend.basis == "estimated lengths of the prompts"
    unknown = [*scores[1:], graded(0, 1, 0.95)]
    summary = Mirae(MiraeOptions()).summarise(unknown)
    assert summary["trend_per_doubling"].value == pytest.approx(nominal)
    assert summary["trend_per_doubling"].basis == "nominal lengths of the levels"


def test_each_padding_has_a_trend_and_a_drift_of_its_own() -> None:
    slopes = {"neutral": 0.0, "elaborate": -0.02}
    scores = [
        graded(question, level, 0.9 + slope * level, tokens=2.0**level, padding=padding)
        for question in range(4)
        for padding, slope in slopes.items()
        for level in (1, 2, 7)
    ]
    summary = Mirae(MiraeOptions()).summarise(scores)
    for padding, slope in slopes.items():
        trend = summary[f"trend_per_doubling/padding={padding}"]
        assert trend.value == pytest.approx(slope)
        assert trend.n == 4
        drift = summary[f"drift/padding={padding},level=7"].value
        assert drift == pytest.approx((0.9 + 7 * slope) / 10)


def test_drift_is_from_the_shortest_prompt_of_the_same_padding() -> None:
    def padded(level: int, text: str, padding: str) -> Answered:
        item = answered(level, [text, text])
        tags = {**item.sample.tags, "padding": padding}
        sample = msgspec.structs.replace(item.sample, id=f"{level}-{padding}", tags=tags)
        return msgspec.structs.replace(item, sample=sample)

    embed = {"a": [1, 0, 0], "b": [0, 1, 0]}
    items = [padded(1, "a", "neutral"), padded(1, "b", "elaborate"), padded(7, "a", "neutral")]
    scores = scored([*items, padded(7, "a", "elaborate")], embed)
    assert [score.values.get("drift") for score in scores] == [None, None, pytest.approx(0), pytest.approx(1)]
