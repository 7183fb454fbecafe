"""The composer of MIRAE prompts: format, lengths, sameness of the question, and what seeds change."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.benchmarks.mirae.benchmark import STARTER_SHA256, make_starter
from evenkeel.benchmarks.mirae.files import TARGETS
from evenkeel.benchmarks.mirae.make import phrases
from evenkeel.benchmarks.mirae.make.generator import compose
from evenkeel.benchmarks.mirae.make.lengths import TOLERANCE, compose_levels
from evenkeel.benchmarks.mirae.make.phrases import (
    DOMAINS,
    KINDS,
    Material,
    Topic,
    connectives,
    generic_bank,
    languages,
    topics,
)
from evenkeel.errors import DataError, UsageError
from evenkeel.files import package_data
from evenkeel.files.package_data import read_json
from evenkeel.text.token_estimate import TokenCounter, estimate_tokens

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = range(1, 8)
every_language = pytest.mark.parametrize("language", languages())


@cache
def question_set(language: str, seed: int) -> dict[str, Any]:
    return compose(language, seed)


def texts(question: dict[str, Any]) -> list[str]:
    return [question[f"level_{level}_text"] for level in LEVELS]


def sentences_of(material: Material) -> list[str]:
    material_texts = [text for kind in KINDS for paragraph in getattr(material, kind) for text in paragraph]
    return [*material.askers, *material_texts]


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    """All runs of so many words."""
    words = re.findall(r"[\w'-]+", text.lower())
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def split(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.?!:])\s+|(?<=[。？！：])|\n+", text) if part.strip()]


def in_tolerance(text: str, target: int, count: Any = estimate_tokens) -> bool:
    return abs(int(count(text)) - target) <= TOLERANCE * target


# --- the starter set ---------------------------------------------------------------------------------


@every_language
def test_seed_0_is_the_pinned_starter_set(language: str) -> None:
    assert hashlib.sha256(make_starter(language)).hexdigest() == STARTER_SHA256[language]


@every_language
def test_the_file_has_the_published_fields_and_says_how_it_was_made(language: str) -> None:
    content = question_set(language, 0)
    assert list(content) == ["metadata", "questions"]
    metadata = content["metadata"]
    assert metadata["research_project"] == "MIRAE"
    assert metadata["language"] == connectives(language).name
    assert metadata["total_questions"] == 40
    assert metadata["level_token_ranges"]["level_1"] == "~30 tokens (baseline)"
    assert metadata["level_token_ranges"]["level_7"] == "~2000 tokens"
    assert (metadata["generator"], metadata["seed"]) == ("evenkeel-mirae", 0)
    assert metadata["token_counter"] == "evenkeel-approx-1"
    fields = [f"level_{level}_{field}" for level in LEVELS for field in ("text", "tokens")]
    assert all(list(question) == ["question_id", "domain", *fields] for question in content["questions"])


@every_language
def test_there_are_ten_questions_of_each_domain_in_blocks(language: str) -> None:
    questions = question_set(language, 0)["questions"]
    assert [question["question_id"] for question in questions] == list(range(1, 41))
    assert [question["domain"] for question in questions] == [domain for domain in DOMAINS for _ in range(10)]
    assert len({question["level_1_text"] for question in questions}) == 40


@every_language
@pytest.mark.parametrize("seed", [0, 1, 2024])
def test_every_level_is_within_15_percent_of_its_target(language: str, seed: int) -> None:
    for question in question_set(language, seed)["questions"]:
        for level, target in zip(LEVELS, TARGETS, strict=True):
            text = question[f"level_{level}_text"]
            assert question[f"level_{level}_tokens"] == estimate_tokens(text)
            assert in_tolerance(text, target), (question["question_id"], level)


@every_language
@pytest.mark.parametrize("seed", [0, 1])
def test_every_level_asks_the_question_word_for_word_and_once(language: str, seed: int) -> None:
    for question in question_set(language, seed)["questions"]:
        question_text = question["level_1_text"]
        assert all(text.count(question_text) == 1 for text in texts(question))


@every_language
@pytest.mark.parametrize("seed", [0, 1])
def test_no_prompt_says_a_sentence_twice(language: str, seed: int) -> None:
    for question in question_set(language, seed)["questions"]:
        for text in texts(question):
            assert [sentence for sentence, times in Counter(split(text)).items() if times > 1] == []


@every_language
def test_a_level_keeps_every_sentence_of_the_level_before_and_adds_some(language: str) -> None:
    for topic, question in zip(topics(language), question_set(language, 0)["questions"], strict=True):
        before: set[str] = set()
        for text in texts(question)[1:]:
            sentences = {sentence for sentence in sentences_of(topic) if sentence[1:] in text}
            assert before < sentences
            before = sentences


@every_language
def test_long_prompts_are_laid_out_in_paragraphs(language: str) -> None:
    for question in question_set(language, 0)["questions"]:
        assert 8 <= len(question["level_7_text"].split("\n\n")) <= 35
        assert "\n" not in question["level_2_text"]


def test_the_question_stands_at_the_start_in_the_middle_and_at_the_end() -> None:
    positions: Counter[str] = Counter()
    for question in question_set("en", 0)["questions"]:
        for text in texts(question)[3:]:
            before, _, after = text.partition(question["level_1_text"])
            positions["start" if not before else "end" if not after else "middle"] += 1
    assert min(positions[position] for position in ("start", "middle", "end")) >= 10


# --- seeds -------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert make_starter("en") == make_starter("en")
    assert compose("en", 3) == question_set("en", 3)


def test_another_seed_gives_other_texts_for_the_same_questions() -> None:
    alike = 0
    first, second = (question_set("en", seed)["questions"] for seed in (0, 1))
    for one, other in zip(first, second, strict=True):
        assert one["level_1_text"] == other["level_1_text"]
        assert not set(texts(one)[2:]) & set(texts(other)[2:])
        alike += one["level_2_text"] == other["level_2_text"]
        a, b = runs(one["level_7_text"], 8), runs(other["level_7_text"], 8)
        assert len(a & b) / len(a | b) < 0.7
    assert alike <= 2  # level 2 adds one or two sentences, so that two seeds may happen to agree


def test_a_question_does_not_depend_on_which_others_are_asked() -> None:
    some = compose("en", 0, questions={3, 31})
    assert [question["question_id"] for question in some["questions"]] == [3, 31]
    assert some["questions"] == [question_set("en", 0)["questions"][at] for at in (2, 30)]
    assert some["metadata"]["total_questions"] == 2


# --- the banks ---------------------------------------------------------------------------------------


@every_language
def test_the_banks_of_all_languages_are_parallel(language: str) -> None:
    """The same questions and as many askers, and about as much material in each kind."""
    for ours, english in zip(topics(language), topics("en"), strict=True):
        assert (ours.id, ours.domain, len(ours.askers)) == (english.id, english.domain, len(english.askers))
        for kind in KINDS:
            mine, theirs = (sum(map(len, getattr(topic, kind))) for topic in (ours, english))
            assert 0.6 * theirs <= mine <= 1.7 * theirs


@every_language
def test_no_sentence_of_a_factual_question_gives_its_answer_away(language: str) -> None:
    for topic in topics(language)[:10]:
        assert topic.answer
        for word in topic.answer:
            pattern = re.compile(rf"(?<![a-z0-9]){re.escape(word.lower())}")
            assert [text for text in sentences_of(topic) if pattern.search(text.lower())] == []


def test_two_questions_share_no_more_than_connectives() -> None:
    questions = question_set("en", 0)["questions"]
    for level in LEVELS[3:]:
        paragraphs = [set(question[f"level_{level}_text"].split("\n\n")) for question in questions]
        shingles = [runs(question[f"level_{level}_text"], 8) for question in questions]
        for one, other in combinations(range(40), 2):
            assert not paragraphs[one] & paragraphs[other]
            assert len(shingles[one] & shingles[other]) / len(shingles[one] | shingles[other]) < 0.02
    # Longer than any connective with the few words that may follow it.
    owners: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for question in questions:
        for run in runs(question["level_7_text"], 17):
            owners[run].add(question["question_id"])
    assert [run for run, ids in owners.items() if len(ids) > 1] == []


def test_no_two_topics_share_a_run_of_nine_words() -> None:
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for material in (*topics("en"), generic_bank("en").material):
        for sentence in sentences_of(material):
            for run in runs(sentence, 9):
                owners[run].add(material.topic)
    assert [run for run, names in owners.items() if len(names) > 1] == []


def test_no_english_sentence_begins_with_a_name() -> None:
    every = [s for m in (*topics("en"), generic_bank("en").material) for s in sentences_of(m)]
    inside = {word for sentence in every for word in re.findall(r"[A-Za-z'-]+", sentence)[1:]}
    names = {word for word in inside if word[0].isupper() and word.lower() not in inside} - {"I"}
    assert [sentence for sentence in every if re.findall(r"[A-Za-z'-]+", sentence)[0] in names] == []


@every_language
def test_connectives_never_repeat_within_a_kind(language: str) -> None:
    shared = connectives(language)
    for decks in (shared.openings, shared.further, shared.links):
        assert set(decks) == set(KINDS)
        assert all(len(set(deck)) == len(deck) >= 6 for deck in decks.values())
    assert len(set(shared.asks)) == len(shared.asks)


# --- questions of a person's own ---------------------------------------------------------------------


def by_words(text: str) -> int:
    return len(text.split())


def by_characters(text: str) -> int:
    return -(-len(text) // 4)


@settings(deadline=None, max_examples=12)
@given(
    words=st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=1, max_size=28),
    seed=st.integers(0, 10**6),
    count=st.sampled_from([estimate_tokens, by_words, by_characters]),
)
def test_any_question_fits_the_generic_bank_by_any_counter(words: list[str], seed: int, count: Any) -> None:
    question = f"Zyx {' '.join(words)}?"
    levels = compose_levels(question, generic_bank("en"), random.Random(seed), TARGETS, count)
    assert levels[0] == question
    assert all(text.count(question) == 1 for text in levels)
    assert all(
        in_tolerance(text, target, count) for text, target in zip(levels[1:], TARGETS[1:], strict=True)
    )


def test_a_counter_of_ones_own_is_used_and_named() -> None:
    content = compose("en", 0, TokenCounter("words", by_words), questions=[1])
    assert content["metadata"]["token_counter"] == "words"
    question = content["questions"][0]
    assert question["level_5_tokens"] == by_words(question["level_5_text"])
    assert in_tolerance(question["level_5_text"], 500, by_words)


def test_a_question_longer_than_a_level_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"level 2 .* outside 51 to 69: the question is too long"):
        compose_levels("why " * 90, generic_bank("en"), random.Random(0), TARGETS, estimate_tokens)


def test_a_bank_too_small_for_a_target_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"Question 1: level \d .*add sentences"):
        compose("en", 0, TokenCounter("coarse", lambda text: len(text) // 9), questions=[1])


def test_an_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'tlh'. Available: en, ko, zh"):
        compose("tlh")


@every_language
def test_every_topic_is_in_the_file_of_its_domain(language: str) -> None:
    for domain in DOMAINS:
        group = read_json(phrases.__package__, "bank", language, f"{domain.lower()}.json", type=list[Topic])
        assert {topic.domain for topic in group} == {domain}


def test_a_broken_bank_is_refused_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bank" / "xx"
    folder.mkdir(parents=True)
    (folder / "connectives.json").write_text("[]")
    for module in (phrases, package_data):
        monkeypatch.setattr(module, "data_path", lambda package, *path: tmp_path.joinpath(*path))
    with pytest.raises(DataError, match=r"xx/connectives\.json"):
        connectives("xx")


@every_language
def test_no_two_questions_share_a_paragraph_or_a_sentence_of_their_own(language: str) -> None:
    paragraphs: dict[str, int] = {}
    for question in question_set(language, 0)["questions"]:
        for text in texts(question):
            for paragraph in text.split("\n\n"):
                assert paragraphs.setdefault(paragraph, question["question_id"]) == question["question_id"]
    owners: dict[str, int] = {}
    for topic in topics(language):
        for sentence in sentences_of(topic):
            assert owners.setdefault(sentence, topic.id) == topic.id
