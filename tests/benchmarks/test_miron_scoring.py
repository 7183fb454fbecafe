"""MIRON's measures: the published formulas, where a text ends, tokens, and drift under typos."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.benchmarks.miron.baselines import closest_copy, with_baselines
from evenkeel.benchmarks.miron.benchmark import Miron, MironOptions
from evenkeel.benchmarks.miron.files import Baselines, Example, MironDetail, MironInputs, make_sample
from evenkeel.benchmarks.miron.scoring import (
    MOST_TOKENS,
    answers_of,
    bits_per_byte,
    continuation,
    lev_score,
    matches,
    quadrant,
    rescaled_scores,
    status_of,
    target_confidence,
    target_probability,
    without_longer,
)
from evenkeel.errors import UsageError
from evenkeel.harness.registry import load_benchmark
from evenkeel.text.word_splitting import first_words
from evenkeel.types import Answered, LogLikelihood, Logprobs, Response, Sample, Score, Status

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


@pytest.mark.parametrize(
    ("generated", "target", "score"),
    [
        ("", "", 100.0),
        ("", " ships", 0.0),
        (" ships", "", 0.0),
        (" ships", " ships", 100.0),
        (" ship", " ships", 100 * 5 / 6),
        ("ships", " ships", 100 * 5 / 6),
        (" Ships", " ships", 100 * 5 / 6),
        ("kitten", "sitting", 100 * 4 / 7),
        (" кораблей", " кораблям", 100 * 7 / 9),  # letters, not bytes
        ("abc", "xyz", 0.0),
    ],
)
def test_the_levenshtein_score(generated: str, target: str, score: float) -> None:
    assert lev_score(generated, target) == pytest.approx(score)


@given(TEXT, TEXT)
def test_the_levenshtein_score_is_that_of_the_textbook(a: str, b: str) -> None:
    longest = max(len(a), len(b))
    expected = (1 - levenshtein(a, b) / longest) * 100 if longest else 100
    assert lev_score(a, b) == pytest.approx(expected)
    assert lev_score(a, b) == lev_score(b, a)
    assert (lev_score(a, b) == 100) == (a == b)


def test_confidence_is_the_geometric_mean_of_the_probabilities() -> None:
    assert target_confidence([math.log(0.5), math.log(0.125)]) == pytest.approx(25)
    assert target_confidence([0.0, 0.0]) == 100
    assert target_confidence([]) == 0.0


@given(st.lists(st.floats(-60, 0), min_size=1, max_size=9))
def test_confidence_lies_between_the_least_and_the_most_likely_token(logprobs: list[float]) -> None:
    confidence = target_confidence(logprobs)
    assert 100 * math.exp(min(logprobs)) * (1 - 1e-12) <= confidence
    assert confidence <= 100 * math.exp(max(logprobs)) * (1 + 1e-12)


def test_bits_per_byte_are_those_counted_by_hand() -> None:
    # A quarter and an eighth are 2 + 3 bits, and " да" is five bytes.
    assert bits_per_byte([math.log(1 / 4), math.log(1 / 8)], " да") == pytest.approx(1.0)
    assert bits_per_byte([math.log(1 / 2)], "abcd") == pytest.approx(0.25)


@given(st.lists(st.floats(-20, 0), min_size=2, max_size=8), st.text(min_size=1, max_size=9))
def test_bits_per_byte_do_not_depend_on_where_the_target_is_cut(logprobs: list[float], target: str) -> None:
    joined = [math.fsum(logprobs[:2]), *logprobs[2:]]
    assert bits_per_byte(joined, target) == pytest.approx(bits_per_byte(logprobs, target))


@pytest.mark.parametrize(
    ("right", "probability", "name"),
    [
        (True, 1.0, "knows"),
        (True, 0.5, "knows"),
        (True, 0.499, "doubts"),
        (True, 0.0, "doubts"),
        (False, 0.5, "slips"),
        (False, 0.499, "does_not_know"),
    ],
)
def test_the_four_quadrants_part_at_right_and_at_one_half(right: bool, probability: float, name: str) -> None:
    assert quadrant(right, probability) == name


def test_the_probability_of_a_target_is_that_of_all_its_tokens_together() -> None:
    """Eight tokens of 77 % each have a mean of 77 % and a probability of 12 %: that is not sure."""
    logprobs = [math.log(0.77)] * 8
    assert target_confidence(logprobs) == pytest.approx(77)
    assert target_probability(logprobs) == pytest.approx(0.77**8)
    assert quadrant(right=True, probability=target_probability(logprobs)) == "doubts"


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        (" ships", " ships", True),
        ("ships", " ships", True),
        (" ships sail on", " ships", True),
        (" ships, and", " ships", True),
        (' "ships".', " ships", False),  # its probability is not that of the answer
        (' "ships".', ' "ships"', True),
        (' "ships."', ' "ships"', True),  # how the quotation ends is left open, as in the probability
        (" «корабль,» и", " «корабль»", True),
        (" 'ships' are", " 'ships'", True),
        ("Madrid—is old", "Madrid", True),
        (" Berlin.[4]", " Berlin", True),
        (" Paris-based", " Paris", False),
        (" U.K.", " U", False),
        (" 5 %", " 5", True),
        (" c\u0301\u0323d", " c\u0301", False),  # the mark changes the letter
        ("  Mexican   peso", " Mexican peso", True),
        (" cafe\u0301", " caf\u00e9", True),
        (" ship", " ships", False),  # at 83 of 100 points, and wrong
        (" shipsmate", " ships", False),
        (" Ships", " ships", False),
        (" ships'", " ships", True),  # a quotation may end there
        (" ship's", " ship", False),
        (" ships'.", " ships'", True),
        (" 4.5", " 4", False),
        (" 4.", " 4", True),
        (" Mexican", " Mexican peso", False),
        ("", " ships", False),
        (" ...", " ships", False),
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
        ("3.", "3", None),
        ("3 ", "3", True),
        (" ships,", " ships", True),
        (" ships-", " ships", None),
        (" ships, and", " ships", True),
        ("北京", "北京", True),
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


# Where a text ends


@pytest.mark.parametrize(
    ("text", "count", "first"),
    [
        (" two ships sail", 1, " two"),
        ("  two  ships sail", 2, "  two  ships"),
        (" two", 3, " two"),
        ("", 1, ""),
        (" \t", 2, " \t"),
        ("two", 0, ""),
    ],
)
def test_the_first_words_of_a_text(text: str, count: int, first: str) -> None:
    assert first_words(text, count) == first


@given(st.text(" \tab", max_size=12), st.integers(0, 5))
def test_first_words_are_the_beginning_and_no_more_words_than_wanted(text: str, count: int) -> None:
    first = first_words(text, count)
    assert text.startswith(first)
    assert first.split() == text.split()[:count]


@pytest.mark.parametrize(
    ("stop", "text", "target", "counted"),
    [
        ("target", " ships sail", " ships", " ships sail"),
        ("target", " ships\nsail", " ships", " ships"),
        ("target", "\nships", " ships", ""),
        ("line", " ships sail.\nThe end", " ships", " ships sail."),
        ("tokens=3", " ships sail\non", " ships", " ships sail"),
        ("word", " ships sail on", " ships", " ships"),
        ("word", " grey seas, and", " the sea", " grey seas"),
        ("word", " ships, and", " ships", " ships"),
        ("word", ' ships." And', " ships", " ships"),
        ("word", " ships. And", " ships.", " ships."),
        ("word", " ships' sails", " ships'", " ships'"),
        ("word", " one\ntwo", " the sea", " one"),
        ("word", "", " ships", ""),
        ("word", "Madrid—is old", "Madrid", "Madrid"),
        ("word", "Rome—is old", "Madrid", "Rome"),
        ("word", " Berlin.[4] It", " Berlin", " Berlin"),
        ("word", " U.K. and", " UK", " U.K"),
        ("word", " 40% of", " 30%", " 40%"),
        ("word", "北京是中国的首都。", "北京", "北京"),
        ("word", " north–east–south it", " north–west", " north–east"),
        ("", " ships\nsail", " ships", " ships\nsail"),  # recorded elsewhere
    ],
)
def test_a_text_counts_as_far_as_the_stop_rule_lets_it(
    stop: str, text: str, target: str, counted: str
) -> None:
    assert continuation(Response(status="ok", text=text), target, Miron.answers, stop) == counted


@pytest.mark.parametrize("status", ["error", "refused", "unparsed"])
def test_what_is_no_answer_is_no_empty_text(status: Status) -> None:
    assert continuation(Response(status=status, text=" ships"), " ships", Miron.answers, "target") is None


@pytest.mark.parametrize(
    ("stop", "status", "text", "ends"),
    [
        ("target", "ok", " ships", "ok"),
        ("target", "truncated", " sh", "truncated"),  # less than the target has: the context was full
        ("tokens=2", "truncated", " sh", "ok"),
        ("line", "truncated", " ships sail", "truncated"),
        ("line", "ok", " ships sail", "ok"),
        ("word", "truncated", " ships sai", "ok"),
        ("word", "truncated", " shi", "truncated"),  # the word itself may be cut
        ("word", "error", "", "error"),
        ("tokens=2", "refused", "", "refused"),
    ],
)
def test_a_text_cut_where_the_rule_wants_it_is_whole(stop: str, status: Status, text: str, ends: str) -> None:
    assert status_of(Response(status=status, text=text), " ships", Miron.answers, stop) == ends


@pytest.mark.parametrize("stop", ["sentence", "tokens", "tokens=0", "tokens=-1", "tokens=2.5", "word=3", ""])
def test_a_stop_rule_that_is_none_is_refused(stop: str) -> None:
    with pytest.raises(UsageError, match="stop"):
        load_benchmark("miron", {"stop": stop})


@pytest.mark.parametrize(
    ("options", "less"),
    [
        ({}, {"stop": "word", "confidence": "no"}),
        ({"confidence": "no"}, {"stop": "word", "confidence": "no"}),
        ({"stop": "line"}, {"stop": "line", "confidence": "no"}),
        ({"stop": "tokens=3"}, {"stop": "tokens=3", "confidence": "no"}),
        ({"confidence": "yes"}, None),
    ],
)
def test_what_remains_without_log_probabilities(options: dict[str, str], less: dict[str, Any] | None) -> None:
    remaining = load_benchmark("miron", options).without(frozenset({"loglikelihood"}))
    options_left = remaining and msgspec.structs.asdict(remaining.options)
    assert options_left == (less and {"string_probability": False, **less})
    assert load_benchmark("miron", options).without(frozenset({"generate"})) is None
    if remaining:
        assert remaining.roles["model"] == {"generate"}


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


def one(item: Answered, stop: str = "target") -> Score:
    (score,) = Miron(MironOptions(stop=stop)).score([item])
    return score


def test_the_values_of_one_example() -> None:
    score = one(answered(" shops", halves(3, last_word=2, start="<s>")))
    assert score.values == {
        "lev_score": pytest.approx(100 * 5 / 6),
        "exact_match": 0.0,
        "accepted_match": 0.0,
        "lev_score_by_words": None,
        "target_confidence": pytest.approx(50),
        "target_probability": pytest.approx(1 / 8),
        "answer_probability": pytest.approx(1 / 8),
        "knows": 0.0,
        "doubts": 0.0,
        "slips": 0.0,
        "does_not_know": 1.0,
        "bits_per_byte": pytest.approx(3 / 6),
        "target_tokens": 3.0,
        "last_word_tokens": 2.0,
        "boundary_merges": 0.0,
        "targets_merged_into_prefix": 0.0,
        "start_token": 1.0,
    }
    assert score.tags["target_tokens"] == 3
    assert (score.statuses, score.answered) == ({"ok": 2}, 2)
    assert score.detail == MironDetail(generated=" shops", tokens=(" ", "s", "h"))


def test_a_target_that_merges_wholly_into_the_prefix_has_confidence_0_and_is_flagged() -> None:
    values = one(answered(logprobs=Logprobs((), (), merged=True))).values
    assert values["target_confidence"] == 0.0
    assert (values["targets_merged_into_prefix"], values["boundary_merges"], values["target_tokens"]) == (
        1.0,
        1.0,
        0.0,
    )
    assert values["bits_per_byte"] is values["target_probability"] is values["doubts"] is None


def test_tokens_across_the_boundary_give_no_bits_per_byte() -> None:
    values = one(answered(logprobs=halves(2, merged=True))).values
    assert values["bits_per_byte"] is None
    assert values["target_confidence"] == pytest.approx(50)
    assert values["targets_merged_into_prefix"] == 0


def test_targets_of_many_tokens_are_counted_together() -> None:
    logprobs = Logprobs(("x",) * 40, (-1.0,) * 40)
    score = one(answered(logprobs=logprobs))
    assert (score.tags["target_tokens"], score.values["target_tokens"]) == (MOST_TOKENS, 40)


def test_without_a_log_likelihood_there_is_no_confidence_and_no_quadrant() -> None:
    score = one(answered(logprobs=Response(status="unparsed", reason="null")))
    assert score.values["lev_score"] == 100
    known = {name for name, value in score.values.items() if value is not None}
    assert known == {"lev_score", "exact_match"}
    assert "target_confidence" in score.values  # asked for, and missing
    assert "target_tokens" not in score.tags
    assert (score.statuses, score.answered) == ({"ok": 1, "unparsed": 1}, 1)


def test_what_was_not_generated_keeps_its_confidence() -> None:
    score = one(answered(Response(status="error"), halves(1)))
    assert (score.values["lev_score"], score.values["exact_match"], score.values["knows"]) == (None,) * 3
    assert score.values["target_confidence"] == pytest.approx(50)
    assert (score.detail.generated, score.answered) == (None, 1)


def test_where_no_log_likelihood_was_asked_there_are_no_such_values() -> None:
    assert set(one(answered(), stop="word").values) == {"lev_score", "exact_match", "accepted_match"}


def test_recorded_results_tell_nothing_of_tokens() -> None:
    score = one(answered(logprobs=halves(1), published={}))
    assert score.values["target_confidence"] == pytest.approx(50)
    assert not {"target_tokens", "bits_per_byte", "start_token"} & set(score.values)
    assert "target_tokens" not in score.tags
    # The mean over tokens of an unknown number says nothing of the whole.
    assert not {"target_probability", "knows"} & set(score.values)


# Both stop rules, and other right answers


@pytest.mark.parametrize(
    ("stop", "text", "other", "by"),
    [
        ("target", " ship", " shipyards are", ("lev_score_by_words", " shipyards")),
        ("target", " ship", " ships, they", ("lev_score_by_words", " ships")),
        ("word", " shipyards are", " ship", ("lev_score_by_tokens", " ship")),
        ("target", " ship", None, ("lev_score_by_words", None)),
    ],
)
def test_one_generation_is_scored_under_both_rules(
    stop: str, text: str, other: str | None, by: tuple[str, str | None]
) -> None:
    score = one(answered(Response(status="ok", text=text, other=other), halves(1)), stop)
    name, counted = by
    assert score.values[name] == (None if counted is None else pytest.approx(lev_score(counted, " ships")))
    assert score.values["lev_score"] == pytest.approx(lev_score(text.split(" are")[0], " ships"))
    # Whether a text is right is seen in the longest of it, if that was long enough.
    right = None if other is None else float(other == " ships, they")
    assert score.values["accepted_match"] == right


def test_a_word_that_has_not_ended_is_neither_right_nor_wrong() -> None:
    values = one(answered(Response(status="ok", text=" ships"), halves(1))).values
    assert (values["lev_score"], values["exact_match"]) == (100.0, 1.0)
    assert values["accepted_match"] is values["knows"] is values["slips"] is None
    values = one(answered(Response(status="ok", text=" boats"), halves(2))).values
    assert (values["accepted_match"], values["does_not_know"]) == (0.0, 1.0)


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
    wrote = Response(status="ok", text=" vessels", other=" vessels at")

    def scored(*responses: Response) -> Score:
        (score,) = benchmark.score([Answered(sample, tuple(requests), responses)])
        return score

    score = scored(ships, vessels, at_sea, wrote)
    assert (score.values["exact_match"], score.values["accepted_match"]) == (0.0, 1.0)
    assert score.values["target_probability"] == pytest.approx(0.25)
    assert score.values["answer_probability"] == pytest.approx(0.55)
    assert score.values["knows"] == 1.0
    lost = scored(ships, Response(status="error"), at_sea, wrote)
    assert lost.values["answer_probability"] is lost.values["knows"] is None
    assert lost.values["target_confidence"] == pytest.approx(25)
    figures = benchmark.summarise([score, lost])
    assert (figures["knows"].coverage, figures["target_confidence"].coverage) == (3 / 6, 1.0)


# Baselines and rescaled scores


def example(number: int, prefix: str, target: str, **more: Any) -> Example:
    fields = {"category": "Morphology", "lang": "en", "kind": "plural", **more}
    return Example(id=str(number), prefix=prefix, target=target, **fields)


def baselines_of(*examples: Example) -> list[Baselines | None]:
    return [sample.inputs.baselines for sample in with_baselines([make_sample(e) for e in examples])]


def test_baselines_are_made_from_the_data_alone() -> None:
    first, second, third, noisy = baselines_of(
        example(1, "I saw a wug. Here are two", " wugs"),
        example(2, "I saw a blick. Here are two", " blicks"),
        example(3, "I saw a cat. Here are two", " blicks", kind="other"),
        example(4, "I saw a blikc. Here are two", " blicks", category="Noise", clean_id="2"),
    )
    # The rarest word of the prefix; the closest to the target; the most frequent target of other groups.
    assert first == Baselines(copy=" wug", closest_copy=" wug", majority=" blicks")
    assert second == Baselines(copy=" blick", closest_copy=" blick", majority=" wugs")
    assert third is not None
    assert third.majority == " blicks"  # no other of its kind: that of its category
    assert noisy == Baselines(copy=" blikc", closest_copy=" blikc", majority="")


def test_the_closest_copy_has_as_many_words_as_the_target() -> None:
    assert closest_copy("the red barn, a red barn door", " red barns") == " red barn"
    assert closest_copy("!?", " red") == ""


def scored_row(number: int, score: float, copy: float, majority: float, **tags: str) -> Score:
    tags = {"category": "Facts", "lang": "en", **tags}
    values = {"lev_score": score, "copy_score": copy, "majority_score": majority}
    return Score(
        sample_id=str(number), group=str(number), tags=dict(tags), values=dict(values),
        statuses={"ok": 1}, answered=1, parts={"generated": "ok"},
    )  # fmt: skip


def test_a_rescaled_score_is_what_is_left_of_the_better_baselines_errors() -> None:
    rows = [scored_row(1, 90, 40, 10), scored_row(2, 70, 60, 20), scored_row(3, 80, 100, 90)]
    rows += [scored_row(4, 50, 0, 60, lang="ru"), scored_row(5, 30, 0, 40, lang="ru")]
    figures = rescaled_scores(rows)
    english = figures["rescaled_score/category=Facts,lang=en"]  # copying scores 66.7 on average
    assert english.value == pytest.approx(100 * (1 - (10 + 30 + 20) / (60 + 40 + 0)))
    assert english.low is not None
    assert english.low < 40 < (english.high or 0) <= 100
    russian = figures["rescaled_score/lang=ru"]  # the majority scores 50: worse than that
    assert russian.value == pytest.approx(100 * (1 - (50 + 70) / (40 + 60)))
    whole = 100 * (1 - (60 + 120) / (100 + 100))
    assert figures["rescaled_score"].value == pytest.approx(whole)
    assert (figures["rescaled_score"].n, figures["rescaled_score"].coverage) == (5, 1.0)


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


def test_without_confidences_only_the_score_drifts() -> None:
    clean, noisy = answered(" ships", id="a", group="a"), answered(" keel", id="b", group="a")
    _, score = Miron(MironOptions(stop="word")).score([clean, noisy])
    assert score.values["score_drift"] == pytest.approx(100 - lev_score(" keel", " ships"))
    assert "confidence_drift" not in score.values
