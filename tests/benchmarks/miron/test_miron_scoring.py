"""MIRON's measures: the published formulas, where a text ends, tokens, and drift under typos."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from present import limits
from records import score as scored
from records import store
from sealegs.benchmarks.miron.added import (
    answers_of,
    as_words,
    bits_per_byte,
    matches,
    quadrant,
    rescaled_scores,
    summarise,
    without_longer,
)
from sealegs.benchmarks.miron.baseline import against_copying, with_baseline
from sealegs.benchmarks.miron.benchmark import Miron, MironOptions
from sealegs.benchmarks.miron.data import Example, MironDetail, MironInputs, make_sample
from sealegs.benchmarks.miron.published import lev_score, target_confidence
from sealegs.harness.benchmark import degraded
from sealegs.harness.registry import load_benchmark
from sealegs.report.notes import endings
from sealegs.types import Answered, LogLikelihood, Logprobs, Record, Response, Sample, Score, Status

TEXT = st.text("абвabc ", max_size=9)


def levenshtein(a: str, b: str) -> int:
    """The fewest insertions, deletions and substitutions, by the textbook's table."""
    table = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, same)
    return table[-1][-1]


# The published formulas


@given(TEXT, TEXT)
@example("", "")
@example("", " ships")
def test_the_levenshtein_score_is_that_of_the_textbook(a: str, b: str) -> None:
    longest = max(len(a), len(b))
    expected = (1 - levenshtein(a, b) / longest) * 100 if longest else 100
    assert lev_score(a, b) == pytest.approx(expected)


def test_confidence_is_the_geometric_mean_and_bits_are_counted_by_bytes() -> None:
    assert target_confidence([math.log(0.5), math.log(0.125)]) == pytest.approx(25)
    assert target_confidence([0.0, 0.0]) == 100
    assert target_confidence([]) == 0.0
    # A quarter and an eighth are 2 + 3 bits, and " да" is five bytes.
    assert bits_per_byte([math.log(1 / 4), math.log(1 / 8)], " да") == pytest.approx(1.0)


def test_the_four_quadrants_part_at_right_and_at_one_half() -> None:
    assert [quadrant(True, 0.5), quadrant(True, 0.499)] == ["knows", "doubts"]
    assert [quadrant(False, 0.5), quadrant(False, 0.499)] == ["slips", "does_not_know"]


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("ships", " ships", True),
        (" ships, and", " ships", True),
        (' "ships".', " ships", False),  # its probability is not that of the answer
        (' "ships."', ' "ships"', True),  # how the quotation ends is left open, as in the probability
        ("Madrid—is old", "Madrid", True),
        (" Paris-based", " Paris", False),
        (" U.K.", " U", False),
        (" c\u0301\u0323d", " c\u0301", False),  # the mark changes the letter
        ("  Mexican   peso", " Mexican peso", True),
        (" cafe\u0301", " caf\u00e9", True),
        (" ship", " ships", False),  # at 83 of 100 points, and wrong
        (" ships'", " ships", True),  # a quotation may end there
        (" ship's", " ship", False),
        (" 4.5", " 4", False),
    ],
)
def test_a_text_is_right_where_it_begins_with_the_answer_word_for_word(
    text: str, answer: str, right: bool
) -> None:
    assert matches(text, answer) == right


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("3", "3", None),  # it may go on: 3.33
        ("3 ", "3", True),
        (" Mexican", " Mexican peso", None),
        (" Mexico", " Mexican peso", False),
        ("", " ships", None),
    ],
)
def test_a_text_that_was_cut_is_right_or_not_only_where_that_is_certain(
    text: str, answer: str, right: bool | None
) -> None:
    assert matches(text, answer, ended=False) is right


def test_an_answer_is_counted_in_another_only_if_its_tokens_begin_with_those() -> None:
    assert answers_of(" UK", [" U.K.", ' "UK"', " "]) == [" UK", " U.K.", ' "UK']
    split = {" gem": [" gem"], " gemstone": [" gem", "stone"], " jewel": [" jewel"]}
    assert without_longer(split) == [" gem", " jewel"]
    whole = {**split, " gemstone": [" gemstone"]}
    assert without_longer(whole) == [" gem", " gemstone", " jewel"]
    halves_of_letters = {" а": [" \ufffd", "\ufffd"], " б": [" \ufffd", "\ufffd"]}
    assert without_longer(halves_of_letters) == [" а", " б"]


# One example


def answered(
    written: Response | str = " ships", logprobs: Logprobs | Response | None = None, **more: Any
) -> Answered:
    sample = Sample(
        id=more.pop("id", "a"),
        group=more.pop("group", "a"),
        tags={"lang": "en", "category": "Logic"},
        inputs=MironInputs(
            prefix="One ship, two", target=" ships", category="Logic", kind="", clean_id="", **more
        ),
    )
    responses = [Response(status="ok", text=written) if isinstance(written, str) else written]
    if logprobs is not None:
        likelihood = Response(status="ok", logprobs=logprobs) if isinstance(logprobs, Logprobs) else logprobs
        responses.insert(0, likelihood)
    requests = Miron(MironOptions(confidence="auto" if logprobs else "no")).requests(sample)
    return Answered(sample, tuple(requests), tuple(responses))


def halves(count: int, **more: Any) -> Logprobs:
    """As many tokens, each of probability one half."""
    return Logprobs(tuple(" ships"[:count]), (math.log(0.5),) * count, **more)


def one(item: Answered) -> Score:
    (score,) = Miron(MironOptions()).score([item])
    return score


def test_the_values_of_one_example() -> None:
    score = one(answered(" shops", halves(3), baseline=" ship"))
    assert score.values == {
        "lev_score": pytest.approx(100 * 5 / 6),
        "exact_match": 0.0,
        "accepted_match": 0.0,
        "target_confidence": pytest.approx(50),
        "answer_probability": pytest.approx(1 / 8),
        "knows": 0.0,
        "doubts": 0.0,
        "slips": 0.0,
        "does_not_know": 1.0,
        "bits_per_byte": pytest.approx(3 / 6),
        "target_tokens": 3.0,
        "boundary_merges": 0.0,
        "targets_merged_into_prefix": 0.0,
        "target_bytes": 6.0,
        "copy_score": pytest.approx(100 * 5 / 6),
    }
    assert score.tags["target_tokens"] == 3
    assert (score.statuses, score.answered) == ({"ok": 2}, 2)
    assert score.detail == MironDetail(generated=" shops", tokens=(" ", "s", "h"))


# Where a text ends, and other right answers


@pytest.mark.parametrize(
    ("text", "target", "counted"),
    [
        (" ships sail on", " ships", " ships"),
        (" grey seas, and", " the sea", " grey seas"),
        (' ships." And', " ships", " ships"),
        ("Rome—is old", "Madrid", "Rome"),
        (" U.K. and", " UK", " U.K"),
        (" north–east–south it", " north–west", " north–east"),
    ],
)
def test_as_many_words_as_the_target_has_are_scored(text: str, target: str, counted: str) -> None:
    assert as_words(text, target) == counted


@pytest.mark.parametrize(
    ("status", "text", "ends", "generated", "right"),
    [
        ("ok", " ships\nsail", "ok", " ships", 1.0),
        ("truncated", " ships sai", "ok", " ships", 1.0),
        ("truncated", " ships", "truncated", " ships", None),  # the word itself may go on
        ("truncated", " boats", "truncated", " boats", 0.0),  # however it goes on
        ("error", "", "error", None, None),
    ],
)
def test_a_text_is_whole_where_its_words_are(
    status: Status, text: str, ends: Status, generated: str | None, right: float | None
) -> None:
    score = one(answered(Response(status=status, text=text)))
    assert score.parts["generated"] == ends
    assert (score.detail.generated, score.values["accepted_match"]) == (generated, right)


@pytest.mark.parametrize(("confidence", "remains"), [("auto", True), ("yes", False)])
def test_without_log_probabilities_the_text_is_scored(confidence: str, remains: bool) -> None:
    benchmark = load_benchmark("miron", {"confidence": confidence})
    remaining = degraded(benchmark, {"loglikelihood"})
    assert (remaining is not None) == remains
    assert remaining is None or remaining.roles["model"] == {"generate"}
    assert degraded(benchmark, {"generate"}) is None


def test_another_accepted_answer_is_right_and_shares_the_probability() -> None:
    sample = answered(accepted=(" vessels", " ships at sea"), logprobs=halves(1)).sample
    benchmark = Miron(MironOptions())
    requests = benchmark.requests(sample)
    assert [r.continuation for r in requests if isinstance(r, LogLikelihood)] == [
        " ships", " vessels", " ships at sea",
    ]  # fmt: skip
    at_sea = Response(status="ok", logprobs=Logprobs((" ships", " at", " sea"), (math.log(0.25), -1.0, -1.0)))
    vessels = Response(status="ok", logprobs=Logprobs((" vessels",), (math.log(0.3),)))
    ships = Response(status="ok", logprobs=Logprobs((" ships",), (math.log(0.25),)))
    wrote = Response(status="ok", text=" vessels at sea")

    def score_of(*responses: Response) -> Score:
        (score,) = benchmark.score([Answered(sample, tuple(requests), responses)])
        return score

    score = score_of(ships, vessels, at_sea, wrote)
    assert (score.values["exact_match"], score.values["accepted_match"]) == (0.0, 1.0)
    assert score.values["answer_probability"] == pytest.approx(0.55)
    assert score.values["knows"] == 1.0
    lost = score_of(ships, Response(status="error"), at_sea, wrote)
    assert lost.values["answer_probability"] is lost.values["knows"] is None
    assert lost.values["target_confidence"] == pytest.approx(25)
    figures = benchmark.summarise([score, lost])
    assert (figures["knows"].coverage, figures["target_confidence"].coverage) == (3 / 6, 1.0)


# Copying


def test_the_rarest_word_of_the_prefix_is_copied() -> None:
    fields = {"category": "Morphology", "lang": "en", "target": " blicks"}
    samples = with_baseline(
        [
            make_sample(Example(id=word, prefix=f"I saw a {word}. Here are two", **fields))  # type: ignore[arg-type]
            for word in ("wug", "blick")
        ]
    )
    assert [sample.inputs.baseline for sample in samples] == [" wug", " blick"]


def test_a_rescaled_score_is_what_is_left_of_copyings_errors() -> None:
    scores = [
        scored(number, {"lev_score": score, "copy_score": copy}, tags={"category": "Facts", "lang": lang})
        for number, (lang, score, copy) in enumerate(
            [("en", 90.0, 40), ("en", 70.0, 60), ("en", 80.0, 100), ("ru", 50.0, 60), ("ru", 30.0, 40)] * 3
        )
    ]
    figures = rescaled_scores(scores)
    english = figures["rescaled_score/category=Facts,lang=en"]
    assert english.value == pytest.approx(100 * (1 - (10 + 30 + 20) / (60 + 40 + 0)))
    low, high = limits(english)
    assert low < 40 < high <= 100
    assert figures["rescaled_score/lang=ru"].value == pytest.approx(100 * (1 - (50 + 70) / (40 + 60)))
    assert (figures["rescaled_score"].n, figures["rescaled_score"].coverage) == (15, 1.0)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (90.0, "Better than repeating a word of the prompt: 75.0 "),
        (60.0, "No significant difference"),
        (30.0, "Worse than repeating a word of the prompt"),
    ],
)
def test_the_verdict_says_what_separates_a_model_from_copying(score: float, words: str) -> None:
    scores = [
        scored(
            n, {"lev_score": score + shift, "copy_score": 60.0, "exact_match": float(n < 3)},
            tags={"category": "Morphology", "lang": "ru"}, parts={"generated": "ok"},
        )
        for n, shift in enumerate([-2.0, 0.0, 2.0] * 4)
    ]  # fmt: skip
    first, second = against_copying(summarise(scores))
    assert first.startswith(words)
    assert "on the scale from there (0) to all right (100), 95% interval" in first
    assert second.startswith("25% of continuations are the target, letter for letter")


def test_bits_per_byte_are_all_bits_over_all_bytes() -> None:
    """Two bits for one byte and one bit for three: 3/4, and not the mean of 2 and 1/3."""
    scores = [
        scored(
            n, {"target_confidence": 50, "bits_per_byte": ratio, "target_bytes": size, "lev_score": 0},
            tags={"category": "Facts", "lang": "en"}, parts={"logprobs": "ok", "generated": "ok"},
        )
        for n, (ratio, size) in enumerate([(2.0, 1.0), (1 / 3, 3.0)] * 5)
    ]  # fmt: skip
    figure = summarise(scores)["bits_per_byte/category=Facts,lang=en"]
    assert figure.value == pytest.approx(3 / 4)
    assert (figure.method, figure.n) == ("log t over groups", 10)
    low, high = limits(figure)
    assert low < 3 / 4 < high


# Typos


def test_drift_is_what_the_clean_version_scores_more_or_unknown() -> None:
    clean = answered(" ships", halves(1), id="a", group="a")
    worse = answered(" shops", Logprobs((" ships",), (math.log(0.2),)), id="b", group="a")
    better = answered(" ships", Logprobs((" ships",), (math.log(0.8),)), id="c", group="a")
    lost = answered(Response(status="error"), halves(1), id="d", group="a")
    alone = answered(" ships", halves(1), id="e", group="gone")
    scores = {
        score.sample_id: score for score in Miron(MironOptions()).score([worse, clean, better, lost, alone])
    }
    assert list(scores) == ["b", "a", "c", "d", "e"]
    assert scores["b"].values["score_drift"] == pytest.approx(100 - 500 / 6)
    assert scores["b"].values["confidence_drift"] == pytest.approx(30)
    assert scores["c"].values["score_drift"] == 0
    assert scores["c"].values["confidence_drift"] == pytest.approx(-30)
    assert scores["d"].values["score_drift"] is None
    assert scores["d"].values["confidence_drift"] == pytest.approx(0)
    for clean_one in ("a", "e"):
        assert not {"score_drift", "confidence_drift"} & set(scores[clean_one].values)


# What is shown of a record


def record_of(prefix: str) -> Record[MironInputs, MironDetail]:
    """A record of three requests: two log-likelihoods and one text."""
    row = Example(id="x", prefix=prefix, target=" one", category="Facts", lang="en", accepted=(" two",))
    asked: tuple[Status, ...] = ("ok", "ok", "truncated")
    parts = dict(zip(("logprobs", "accepted:  two", "generated"), asked, strict=True))
    likelihood = Response(status="ok", logprobs=Logprobs(tokens=(" one",), values=(-1.0,)))
    return Record(
        sample=make_sample(row),
        answers=(likelihood, likelihood, Response(status="truncated", text=" one")),
        score=Score(sample_id="x", group="x", tags={}, values={}, statuses={}, answered=3, parts=parts),
    )


@pytest.mark.parametrize(
    ("prefix", "shown"),
    [
        ("The first number is", "The first number is"),
        (f"{'Remarkably, ' * 9}the first number is", f"… {'Remarkably, ' * 3}the first number is"),
        (f"{'x' * 9} {'y' * 60}", f"… {'y' * 60}"),
        ("x" * 70, f"… {'x' * 60}"),
    ],
)
def test_the_title_of_an_example_begins_with_a_whole_word(prefix: str, shown: str) -> None:
    assert Miron.view(record_of(prefix)).title == f"x · {shown} ▸ one"


def test_log_likelihoods_are_not_counted_as_texts(tmp_path: Path) -> None:
    record = record_of("The first number is")
    assert endings(store(tmp_path / "run", [record], "miron")).total() == 1
    failed = msgspec.structs.replace(
        record, answers=(Response(status="error"), Response(status="error"), record.answers[2])
    )
    assert endings(store(tmp_path / "failed", [failed], "miron")).total() == 1
