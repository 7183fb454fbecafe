"""The composer of MIRAE prompts: format, lengths, sameness of the question, and what seeds change."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.benchmarks.mirae.benchmark import STARTER_SHA256, Mirae, MiraeOptions, make_starter
from evenkeel.benchmarks.mirae.files import TARGETS, read_questions
from evenkeel.benchmarks.mirae.make.generator import compose
from evenkeel.benchmarks.mirae.make.lengths import (
    TOLERANCE,
    Composer,
    Levels,
)
from evenkeel.benchmarks.mirae.make.phrases import (
    KINDS,
    PADDINGS,
    Bank,
    Material,
    Padding,
    Sentence,
    connectives,
    generic,
    generic_bank,
    languages,
    topic_slots,
    topics,
)
from evenkeel.errors import DataError, UsageError
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Data
from evenkeel.text.token_estimate import estimate_tokens

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = range(1, 8)
every_language = pytest.mark.parametrize("language", languages())
every_padding = pytest.mark.parametrize("padding", list(PADDINGS))


@cache
def question_set(language: str, seed: int) -> dict[str, Any]:
    return compose(language, seed, questions=None if seed < 2 else range(1, 41, 8))


def texts(question: dict[str, Any]) -> list[str]:
    return [question[f"level_{level}_text"] for level in LEVELS]


def rows(language: str, seed: int, padding: str) -> list[dict[str, Any]]:
    return [row for row in question_set(language, seed)["questions"] if row["padding"] == padding]


def sentences_of(material: Material) -> list[str]:
    material_texts = [text for kind in KINDS for paragraph in getattr(material, kind) for text in paragraph]
    return [*material.askers, *material_texts]


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    """All runs of so many words."""
    words = re.findall(r"[\w'-]+", text.lower())
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def place(sentence: str, text: str) -> int:
    """Where a sentence is in a text; after a link it begins with a small letter."""
    return max(text.find(sentence), text.find(sentence[0].lower() + sentence[1:]))


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
    expected = ["question_id", "domain", "padding", *fields]
    assert all(list(question) == expected for question in content["questions"])


@every_language
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_level_is_within_15_percent_of_its_target(language: str, seed: int) -> None:
    for question in question_set(language, seed)["questions"]:
        for level, target in zip(LEVELS, TARGETS, strict=True):
            text = question[f"level_{level}_text"]
            assert question[f"level_{level}_tokens"] == estimate_tokens(text)
            assert in_tolerance(text, target), (question["question_id"], level)


@every_language
@every_padding
def test_a_level_keeps_every_sentence_of_the_level_before_and_adds_some(language: str, padding: str) -> None:
    for topic, question in zip(topics(language), rows(language, 0, padding), strict=True):
        said = Bank(connectives(language), topic.topic, (topic, generic(language))).texts
        before: set[Any] = set()
        for text in texts(question)[1:]:
            present = {
                key for key, each in said.items() if isinstance(key, Sentence) and place(each, text) >= 0
            }
            assert before < present
            before = present


# --- one plan for all languages ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_question_is_the_same_prompt_in_every_language(seed: int) -> None:
    """The same person asks, with the same sentences in the same order, whichever language is composed."""
    for padding in PADDINGS:
        for english, korean, chinese in zip(
            *(rows(lang, seed, padding) for lang in ("en", "ko", "zh")), strict=True
        ):
            number = english["question_id"] - 1
            orders = []
            for lang, row in zip(("en", "ko", "zh"), (english, korean, chinese), strict=True):
                topic = topics(lang)[number]
                bank = Bank(connectives(lang), topic.topic, (topic, generic(lang)))
                said = {key: text for key, text in bank.texts.items() if isinstance(key, Sentence)}
                orders.append([_order(text, said) for text in texts(row)[1:]])
                assert all(sum(key.paragraph < 0 for key in order) <= 1 for order in orders[-1])
            assert orders[0] == orders[1] == orders[2]


def _order(text: str, said: dict[Sentence, str]) -> list[Sentence]:
    """The sentences of the banks in a text, in their order there."""
    places = {key: place(sentence, text) for key, sentence in said.items()}
    return sorted((key for key, at in places.items() if at >= 0), key=places.__getitem__)


# --- padding -----------------------------------------------------------------------------------------

WISHES = {
    "en": r"(?i)(?:^|[,;] )please\b|\byour (?:answer|reply)\b|I would ask you"
    r"|\b(?:I|they|we) (?:would|should) (?:like|love|prefer|rather)\b"
    r"|\bI (?:have )?(?:often )?wish(?:ed)?\b|\bI am (?:asking|looking) for\b|\bin the mood for\b",
    "ko": r"주십시오|주시기|주셨으면|답변|싶습니다|(?<!편이 )좋겠습니다|[았었]으면 합니다",
    "zh": r"^请(?!允许|店主)|希望您|[您这][的份]?回[答复]"
    r"|我(?:很|真)?(?:希望|想要|盼望)|我想(?:读|听|看到|知道|得到)",
}


@every_language
def test_no_neutral_sentence_of_the_banks_voices_a_wish(language: str) -> None:
    for material in (*topics(language), generic(language)):
        neutral = [text for kind in PADDINGS["neutral"] for part in getattr(material, kind) for text in part]
        assert len(neutral) > 10
        sentences = [*material.askers, *neutral]
        assert [each for each in sentences if re.search(WISHES[language], each)] == []


# --- seeds -------------------------------------------------------------------------------------------


def test_another_seed_gives_other_texts_for_the_same_questions() -> None:
    alike = 0
    first, second = (rows("en", seed, "neutral") for seed in (0, 1))
    for one, other in zip(first, second, strict=True):
        assert one["level_1_text"] == other["level_1_text"]
        assert not set(texts(one)[2:]) & set(texts(other)[2:])
        alike += one["level_2_text"] == other["level_2_text"]
        a, b = runs(one["level_7_text"], 8), runs(other["level_7_text"], 8)
        assert len(a & b) / len(a | b) < 0.5
    assert alike <= 8  # level 2 adds one or two sentences, so that two seeds may happen to agree


# --- the banks ---------------------------------------------------------------------------------------


def shape(material: Material) -> list[Any]:
    return [len(material.askers), *([len(p) for p in getattr(material, kind)] for kind in KINDS)]


@every_language
def test_the_banks_of_all_languages_are_parallel(language: str) -> None:
    for ours, english in zip(topics(language), topics("en"), strict=True):
        assert (ours.id, ours.domain, shape(ours)) == (english.id, english.domain, shape(english))
    assert shape(generic(language)) == shape(generic("en"))
    shared, english_shared = connectives(language), connectives("en")
    for name in ("openings", "further", "links"):
        ours, theirs = getattr(shared, name), getattr(english_shared, name)
        assert {kind: len(deck) for kind, deck in ours.items()} == {
            kind: len(deck) for kind, deck in theirs.items()
        }
        for kind in KINDS:  # what names the topic in one language names it in the others
            assert ["{topic" in each for each in ours[kind]] == ["{topic" in each for each in theirs[kind]]
    assert len(shared.asks) == len(english_shared.asks)


@every_language
def test_no_sentence_of_a_factual_question_gives_its_answer_away(language: str) -> None:
    for topic in topics(language)[:10]:
        assert topic.answer
        for word in topic.answer:
            pattern = re.compile(rf"(?<![a-z0-9]){re.escape(word.lower())}")
            assert [text for text in sentences_of(topic) if pattern.search(text.lower())] == []


# --- questions of a person's own ---------------------------------------------------------------------


def by_words(text: str) -> int:
    return len(text.split())


def by_characters(text: str) -> int:
    return -(-len(text) // 4)


def composed(question: str, padding: Padding, seed: int = 0, count: Any = estimate_tokens) -> Levels:
    return Composer({"en": question}, {"en": generic_bank("en")}, count).levels(padding, (seed,), TARGETS)


@settings(deadline=None, max_examples=12)
@given(
    words=st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=1, max_size=28),
    seed=st.integers(0, 10**6),
    count=st.sampled_from([estimate_tokens, by_words, by_characters]),
    padding=st.sampled_from(list(PADDINGS)),
)
def test_any_question_fits_the_generic_bank_by_any_counter(
    words: list[str], seed: int, count: Any, padding: Padding
) -> None:
    question = f"Zyx {' '.join(words)}?"
    levels = composed(question, padding, seed, count)
    prompts = levels.texts["en"]
    assert prompts[0] == question
    assert all(text.count(question) == 1 for text in prompts)
    assert all(
        in_tolerance(text, target, count) for text, target in zip(prompts[1:], TARGETS[1:], strict=True)
    )


@every_padding
def test_a_question_without_an_end_mark_is_a_paragraph(padding: Padding) -> None:
    for seed in range(3):
        for text in composed("Is it raining", padding, seed).texts["en"]:
            paragraph = next(each for each in text.split("\n\n") if "Is it raining" in each)
            assert paragraph.endswith("Is it raining")


@pytest.mark.parametrize(
    ("topic", "with_particles"),
    [
        ("윤년", "윤년은 윤년이 윤년을 윤년과 윤년으로"),
        ("우리가 숨 쉬는 공기", "공기는 공기가 공기를 공기와 공기로"),
        ("꽃집의 로봇", "로봇은 로봇이 로봇을 로봇과 로봇으로"),
        ("“서울”", "“서울”은 “서울”이 “서울”을 “서울”과 “서울”로"),
        ("규칙 7", "7은 7이 7을 7과 7로"),
        ("HTML", "HTML은 HTML이 HTML을 HTML과 HTML로"),
    ],
)
def test_korean_particles_follow_the_sound_of_the_topic(topic: str, with_particles: str) -> None:
    slot = topic_slots(topic)
    written = [slot(f"topic.{particle}") for particle in ("은", "이", "을", "과", "으로")]
    assert [each.split()[-1] for each in written] == with_particles.split()


# --- files, samples and ids --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built_both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mirae") / "both_english.json"
    path.write_bytes(msgspec.json.encode(compose("en", 0, questions=[1, 2, 11, 21])))
    return path


def asked(path: Path, *, limit: int | None = None, **options: Any) -> list[Any]:
    return Mirae(MiraeOptions(**options)).samples(Data([data_file(path)], langs=None, limit=limit))


@pytest.mark.parametrize(
    ("padding", "kinds", "count"),
    [
        (None, {"elaborate"}, 28),
        ("neutral", {"neutral"}, 28),
        ("elaborate", {"elaborate"}, 28),
        ("both", {"neutral", "elaborate"}, 56),
    ],
)
def test_padding_chooses_among_the_prompts(
    built_both: Path, padding: str | None, kinds: set[str], count: int
) -> None:
    samples = asked(built_both, padding=padding)
    assert {sample.tags["padding"] for sample in samples} == kinds
    assert len({sample.id for sample in samples}) == count
    assert {sample.group for sample in samples} == {"1", "2", "11", "21"}


def test_a_limit_counts_a_question_with_two_paddings_once(built_both: Path) -> None:
    samples = asked(built_both, padding="both", levels="1", limit=2)
    assert [sample.id for sample in samples] == [
        "en-1-L1-neutral",
        "en-11-L1-neutral",
        "en-1-L1",
        "en-11-L1",
    ]
    assert len({(each.inputs.question_text, each.inputs.first_repeat) for each in samples}) == 4


def test_a_padding_that_the_data_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain_english.json"
    path.write_text('{"questions": [{"question_id": 1, "domain": "D", "level_1_text": "Why?"}]}')
    assert [sample.tags.get("padding") for sample in asked(path)] == [None]
    with pytest.raises(
        UsageError, match=r"padding both: .*'elaborate'. Available: none; leave the option out"
    ):
        asked(path, padding="both")


def test_the_same_question_and_padding_twice_is_refused(tmp_path: Path) -> None:
    rows_ = [{"question_id": 1, "domain": "D", "padding": "neutral", "level_1_text": "Why?"}] * 2
    path = tmp_path / "twice_english.json"
    path.write_bytes(msgspec.json.encode({"questions": rows_}))
    with pytest.raises(DataError, match="question_id 1 appears 2 times with padding 'neutral'"):
        read_questions(path)
