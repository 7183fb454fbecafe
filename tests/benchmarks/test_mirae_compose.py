"""The composer of MIRAE prompts: format, lengths, sameness of the question, and what seeds change."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel.benchmarks.mirae.benchmark import STARTER_SHA256, Mirae, MiraeOptions, make_starter
from evenkeel.benchmarks.mirae.files import TARGETS, read_questions
from evenkeel.benchmarks.mirae.make import phrases
from evenkeel.benchmarks.mirae.make.builder import BuildOptions, MiraeBuilder
from evenkeel.benchmarks.mirae.make.generator import compose, planned_levels
from evenkeel.benchmarks.mirae.make.lengths import (
    POSITIONS,
    TOLERANCE,
    Composer,
    Levels,
    balanced_positions,
    positions_of,
)
from evenkeel.benchmarks.mirae.make.phrases import (
    DOMAINS,
    KINDS,
    PADDINGS,
    Bank,
    Material,
    Padding,
    Sentence,
    Topic,
    connectives,
    generic,
    generic_bank,
    languages,
    topic_slots,
    topics,
)
from evenkeel.benchmarks.mirae.make.questions import UserQuestion
from evenkeel.benchmarks.mirae.make.subject import topics_of
from evenkeel.errors import DataError, UsageError
from evenkeel.files import package_data
from evenkeel.files.datasets import data_file
from evenkeel.files.package_data import read_json
from evenkeel.harness.benchmark import Data
from evenkeel.text.token_estimate import APPROXIMATE, TokenCounter, estimate_tokens

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


def split(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.?!:])\s+|(?<=[。？！：])|\n+", text) if part.strip()]


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
    fields = [f"level_{level}_{field}" for level in LEVELS for field in ("text", "tokens", "position")]
    fields.remove("level_1_position")
    expected = ["question_id", "domain", "padding", *fields]
    assert all(list(question) == expected for question in content["questions"])


@every_language
@every_padding
def test_there_are_ten_questions_of_each_domain_in_blocks(language: str, padding: str) -> None:
    questions = rows(language, 0, padding)
    assert [question["question_id"] for question in questions] == list(range(1, 41))
    assert [question["domain"] for question in questions] == [domain for domain in DOMAINS for _ in range(10)]
    assert len({question["level_1_text"] for question in questions}) == 40


@every_language
@pytest.mark.parametrize("seed", [0, 1, 2])
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


@every_language
def test_long_prompts_are_laid_out_in_paragraphs(language: str) -> None:
    for question in question_set(language, 0)["questions"]:
        assert 8 <= len(question["level_7_text"].split("\n\n")) <= 35
        assert "\n" not in question["level_2_text"]


@every_language
def test_the_position_of_the_question_is_recorded_as_it_is(language: str) -> None:
    for question in question_set(language, 0)["questions"]:
        recorded = [question.get(f"level_{level}_position") for level in LEVELS]
        assert recorded == positions_of(texts(question))


@pytest.mark.parametrize("seed", [0, 1])
def test_positions_are_balanced_over_levels_questions_and_paddings(seed: int) -> None:
    neutral, elaborate = (rows("en", seed, padding) for padding in PADDINGS)
    for level in LEVELS[1:]:
        at_level = [row[f"level_{level}_position"] for row in neutral]
        assert sorted(Counter(at_level).values()) == [13, 13, 14]
        assert at_level == [row[f"level_{level}_position"] for row in elaborate]
        by_domain = Counter((row["domain"], row[f"level_{level}_position"]) for row in neutral)
        assert {by_domain[domain, position] for domain in DOMAINS for position in POSITIONS} <= {2, 3, 4, 5}
    for row in neutral:
        assert Counter(row[f"level_{level}_position"] for level in LEVELS[1:]) == dict.fromkeys(POSITIONS, 2)


def test_a_question_in_the_middle_has_about_as_much_before_as_after() -> None:
    for row in question_set("en", 0)["questions"]:
        for level in (5, 6, 7):
            if row[f"level_{level}_position"] == "middle":
                before, _, after = row[f"level_{level}_text"].partition(row["level_1_text"])
                assert 0.4 < estimate_tokens(before) / estimate_tokens(after) < 2.5


def test_any_number_of_questions_has_balanced_positions() -> None:
    for count in range(1, 30):
        drawn = balanced_positions(list(range(count)), random.Random(count), 6)
        for level in range(6):
            numbers = Counter(positions[level] for positions in drawn.values())
            assert max(numbers.values()) - min(numbers[position] for position in POSITIONS) <= 1


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


def test_a_language_alone_has_the_text_of_the_set_of_all_three() -> None:
    levels = planned_levels.__wrapped__(7, "neutral", 1, tuple(languages()), APPROXIMATE)
    for language in languages():
        alone = compose(language, 1, questions=[7], paddings=["neutral"])["questions"][0]
        assert texts(alone) == levels.texts[language]


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
def test_neutral_padding_asks_for_nothing(language: str) -> None:
    asks = connectives(language).asks
    for question in rows(language, 0, "neutral"):
        for text in texts(question)[1:]:
            around = text.replace(question["level_1_text"], "")
            for ask in asks:
                around = around.replace(ask, "")
            assert [each for each in split(around) if re.search(WISHES[language], each)] == []


@every_language
def test_no_neutral_sentence_of_the_banks_voices_a_wish(language: str) -> None:
    for material in (*topics(language), generic(language)):
        neutral = [text for kind in PADDINGS["neutral"] for part in getattr(material, kind) for text in part]
        assert len(neutral) > 10
        sentences = [*material.askers, *neutral]
        assert [each for each in sentences if re.search(WISHES[language], each)] == []


@every_language
def test_elaborate_padding_asks_for_more(language: str) -> None:
    for topic, question in zip(topics(language), rows(language, 0, "elaborate"), strict=True):
        aspects = [text for paragraph in topic.aspect for text in paragraph]
        assert sum(text[1:] in question["level_7_text"] for text in aspects) == len(aspects) == 6
        assert not [text for p in topic.background for text in p if text[1:] in question["level_7_text"]]


def test_both_paddings_of_a_question_have_the_same_person_asking() -> None:
    for topic, neutral, elaborate in zip(
        topics("en"), rows("en", 0, "neutral"), rows("en", 0, "elaborate"), strict=True
    ):
        one, other = (
            [asker for asker in topic.askers if asker in row["level_7_text"]] for row in (neutral, elaborate)
        )
        assert one == other
        assert len(one) == 1


@every_language
def test_padding_stays_on_the_topic(language: str) -> None:
    """Up to 500 tokens nearly all of it is written for the question; what fits any names the topic."""
    shares: defaultdict[int, list[float]] = defaultdict(list)
    for topic, question in zip(topics(language), rows(language, 0, "neutral"), strict=True):
        levels = planned_levels(topic.id, "neutral", 0, tuple(languages()), APPROXIMATE)
        for level, sentences in enumerate(levels.sentences[1:], start=2):
            shares[level].append(sum(each.source for each in sentences) / len(sentences))
        named = question["level_7_text"].lower().count(topic.topic.lower())
        assert named >= 0.8 * sum(each.source for each in levels.sentences[-1])
    assert max(sum(shares[level]) / 40 for level in (2, 3, 4, 5)) < 0.2


# --- seeds -------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_texts() -> None:
    plan = planned_levels.__wrapped__
    first, second = (plan(5, "elaborate", 3, ("en", "zh"), APPROXIMATE) for _ in range(2))
    assert first == second


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


def test_a_question_does_not_depend_on_which_others_are_asked() -> None:
    some = compose("en", 0, questions={3, 31}, paddings=["neutral"])
    assert [question["question_id"] for question in some["questions"]] == [3, 31]
    assert some["questions"] == [rows("en", 0, "neutral")[at] for at in (2, 30)]
    assert some["metadata"]["total_questions"] == 2


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
def test_translations_are_of_about_the_same_length(language: str) -> None:
    """A sentence in another place than its translation would stand out."""
    for ours, english in zip(topics(language), topics("en"), strict=True):
        sizes = [
            estimate_tokens(mine) / estimate_tokens(theirs)
            for mine, theirs in zip(sentences_of(ours), sentences_of(english), strict=True)
        ]
        assert max(sizes) < 2.4
        assert min(sizes) > 0.45


@every_language
def test_no_sentence_of_a_factual_question_gives_its_answer_away(language: str) -> None:
    for topic in topics(language)[:10]:
        assert topic.answer
        for word in topic.answer:
            pattern = re.compile(rf"(?<![a-z0-9]){re.escape(word.lower())}")
            assert [text for text in sentences_of(topic) if pattern.search(text.lower())] == []


@every_padding
def test_two_questions_share_few_runs_of_words(padding: str) -> None:
    questions = rows("en", 0, padding)
    for level, most in ((4, 0.06), (5, 0.06), (7, 0.12)):
        shingles = [runs(question[f"level_{level}_text"], 8) for question in questions]
        for one, other in combinations(range(40), 2):
            assert len(shingles[one] & shingles[other]) / len(shingles[one] | shingles[other]) < most


def test_no_two_topics_share_a_run_of_nine_words() -> None:
    owners: dict[tuple[str, ...], set[str]] = defaultdict(set)
    materials = [(topic.topic, topic) for topic in topics("en")]
    for name, material in [*materials, ("any", generic("en"))]:
        for sentence in sentences_of(material):
            for run in runs(sentence, 9):
                owners[run].add(name)
    assert [run for run, names in owners.items() if len(names) > 1] == []


def test_no_english_sentence_begins_with_a_name() -> None:
    every = [s for m in (*topics("en"), generic("en")) for s in sentences_of(m)]
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


def composed(question: str, padding: Padding, seed: int = 0, count: Any = estimate_tokens) -> Levels:
    bank = generic_bank("en", topics_of({"en": question})["en"])
    positions = balanced_positions([0], random.Random(seed), 6)[0]
    return Composer({"en": question}, {"en": bank}, count).levels(
        padding, positions, random.Random(seed), TARGETS
    )


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
    assert levels.positions == positions_of(prompts)
    assert all(
        in_tolerance(text, target, count) for text, target in zip(prompts[1:], TARGETS[1:], strict=True)
    )


PARALLEL = [
    # What it is about is plain in all three languages.
    ("What is the capital of Australia?", "호주의 수도는 어디인가요?", "澳大利亚的首都是哪里？",
     "capital of Australia", "호주의 수도", "澳大利亚的首都"),
    ("Write a poem about the sea.", "바다에 관한 시를 써 주세요.", "请写一首关于大海的诗。",
     "sea", "바다", "大海"),
    ("What is the boiling point of water at sea level?", "해수면에서 물의 끓는점은 몇 도입니까?",
     "水的沸点是多少？", "boiling point of water", "물의 끓는점", "水的沸点"),
    ("What is a vaccine?", "백신은 무엇인가요?", "什么是疫苗？", "vaccine", "백신", "疫苗"),
    ("What is the history of bread?", "빵의 역사는 어떻게 되나요?", "面包的历史是怎样的？",
     "history of bread", "빵의 역사", "面包的历史"),
    ("Explain the difference between TCP and UDP.", "TCP와 UDP의 차이를 설명해 주세요.",
     "TCP和UDP有什么不同？", "difference between TCP and UDP", "TCP와 UDP의 차이", "TCP和UDP"),
    ("Who was Napoleon? Name the main weakness of your own view.",
     "나폴레옹은 누구입니까? 견해의 약점도 밝혀 주세요.", "拿破仑是谁？请指出自己看法的主要弱点。",
     "Napoleon", "나폴레옹", "拿破仑"),
    ("Be brief. What is the population of Ghana in 2020?", "짧게 답해 주세요. 가나의 인구는 얼마인가요?",
     "请简短回答。加纳的人口是多少？", "population of Ghana", "가나의 인구", "加纳的人口"),
]  # fmt: skip
UNPLAIN = [
    ("What makes the wind blow at night?", "밤에 바람이 부는 까닭은 무엇인가요?", "夜里为什么会刮风？"),
    ("How is bread baked at home?", "집에서 빵은 어떻게 굽나요?", "在家里怎么烤面包？"),
    ("What effect does artificial intelligence have on jobs?",
     "인공지능이 일자리에 미치는 영향은 무엇입니까?", "人工智能对就业有什么影响？"),
    ("Who wrote Hamlet?", "햄릿은 누가 썼나요?", "《哈姆雷特》是谁写的？"),
    ("At what temperature does water boil?", "물은 몇 도에서 끓나요?", "水在多少度沸腾？"),
    ("Why did King Sejong create Hangul?", "세종대왕이 한글을 만든 이유는 무엇인가요?",
     "世宗大王为什么创造韩文？"),
    ("Should children learn to cook at school?", "아이들이 학교에서 요리를 배워야 할까요?",
     "孩子们应该在学校学做饭吗？"),
    ("Can you explain why the sky is blue and sunsets are red?", "왜 하늘은 파란가요?",
     "为什么天空是蓝色的？"),
    ("How do I make good kimchi?", "김치를 맛있게 담그는 방법을 알려 주세요.", "怎样才能做好吃的泡菜？"),
    ("How long does it take to get from Paris to Rome by train?",
     "파리에서 로마까지 기차로 얼마나 걸리나요?", "从巴黎坐火车到罗马要多久？"),
    ("What is the best way to learn?", "가장 좋은 학습 방법은 무엇인가요?", "最好的学习方法是什么？"),
    ("Why?", "왜?", "为什么？"),
]  # fmt: skip


@pytest.mark.parametrize("case", PARALLEL)
def test_the_topic_of_a_question_is_found_in_its_words(case: tuple[str, ...]) -> None:
    topics = topics_of(dict(zip(("en", "ko", "zh"), case[:3], strict=True)))
    assert list(topics.values()) == [f"“{topic}”" for topic in case[3:]]


@pytest.mark.parametrize("case", UNPLAIN)
def test_a_topic_that_is_not_plain_in_one_language_is_named_in_none(case: tuple[str, ...]) -> None:
    topics = topics_of(dict(zip(("en", "ko", "zh"), case, strict=True)))
    assert list(topics.values()) == ["this subject", "이 주제", "这个话题"]


@pytest.mark.parametrize(
    ("lang", "question", "topic"),
    [
        ("ko", "물은 몇 도에서 끓나요?", "“물”"),
        ("ko", "집에서 빵은 어떻게 굽나요?", "“빵”"),
        ("zh", "水在多少度沸腾？", "“水”"),
    ],
)
def test_a_topic_may_have_one_syllable(lang: str, question: str, topic: str) -> None:
    assert topics_of({lang: question})[lang] == topic


@pytest.mark.parametrize(
    ("lang", "question"),
    [
        ("en", "photosynthesis"),
        ("en", "???"),
        ("en", "What are the odds a coin lands heads?"),
        ("en", "What is the sky made of?"),
        ("en", "What is the cat eating for lunch?"),
        ("en", "What was Caesar killed with?"),
        ("en", "What is the biggest, oldest tree?"),
        ("ko", "집에서는 어떻게 하나요?"),
        ("ko", "당신의 이름은 무엇인가요?"),
        ("ko", "인공지능이 미치는 영향은 무엇인가요?"),
        ("ko", "다음은 무엇인가요?"),
        ("zh", "你是谁？"),
        ("zh", "最近有什么新闻？"),
        ("zh", "地球上的海洋潮汐是由什么引起的？"),
        ("zh", "大多数海岸在大约一天之内会出现两次高潮的原因是什么？"),
    ],
)
def test_a_fragment_is_no_topic(lang: str, question: str) -> None:
    assert topics_of({lang: question})[lang] in ("this subject", "이 주제", "这个话题")


@every_padding
def test_a_question_without_an_end_mark_is_a_paragraph(padding: Padding) -> None:
    for seed in range(3):
        for text in composed("Is it raining", padding, seed).texts["en"]:
            paragraph = next(each for each in text.split("\n\n") if "Is it raining" in each)
            assert paragraph.endswith("Is it raining")


@every_padding
def test_padding_of_a_users_question_names_its_topic(padding: Padding) -> None:
    text = composed("What is the boiling point of water at sea level?", padding).texts["en"][4]
    least = 0.6 if padding == "neutral" else 0.15
    assert text.count("“boiling point of water”") >= least * len(split(text))


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


def test_a_counter_of_ones_own_is_used_and_named() -> None:
    content = compose("en", 0, TokenCounter("words", by_words), questions=[1])
    assert content["metadata"]["token_counter"] == "words"
    question = content["questions"][0]
    assert question["level_5_tokens"] == by_words(question["level_5_text"])
    assert in_tolerance(question["level_5_text"], 500, by_words)


def test_a_question_longer_than_a_level_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"level 2 .* outside 51 to 69: the question is too long"):
        composed("why " * 90, "neutral")


def test_a_bank_too_small_for_a_target_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"Question 1: level \d .*add sentences"):
        compose("en", 0, TokenCounter("coarse", lambda text: len(text) // 16), questions=[1])


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
                if len(split(paragraph)) < 3:  # a sentence that fits any question may be alone
                    continue
                assert paragraphs.setdefault(paragraph, question["question_id"]) == question["question_id"]
    owners: dict[str, int] = {}
    for topic in topics(language):
        for sentence in sentences_of(topic):
            assert owners.setdefault(sentence, topic.id) == topic.id


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
        (None, {"neutral"}, 28),
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
        "en-1-L1",
        "en-11-L1",
        "en-1-L1-elaborate",
        "en-11-L1-elaborate",
    ]
    assert len({(each.inputs.question_text, each.inputs.first_repeat) for each in samples}) == 4


def test_a_padding_that_the_data_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain_english.json"
    path.write_text('{"questions": [{"question_id": 1, "domain": "D", "level_1_text": "Why?"}]}')
    assert [sample.tags.get("padding") for sample in asked(path)] == [None]
    with pytest.raises(
        UsageError, match=r"--padding both: .*'neutral'. Available: none; leave the option out"
    ):
        asked(path, padding="both")


def test_the_same_question_and_padding_twice_is_refused(tmp_path: Path) -> None:
    rows_ = [{"question_id": 1, "domain": "D", "padding": "neutral", "level_1_text": "Why?"}] * 2
    path = tmp_path / "twice_english.json"
    path.write_bytes(msgspec.json.encode({"questions": rows_}))
    with pytest.raises(DataError, match="question_id 1 appears 2 times with padding 'neutral'"):
        read_questions(path)


def test_a_question_keeps_its_number_when_another_is_not_translated(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Why is bread baked?\nWhy do vaccines work?\nWhy is the sky blue?\n")
    builder = MiraeBuilder(BuildOptions(questions=str(path), padding="both"))
    questions = [
        UserQuestion(1, "Why is bread baked?", "OWN"),
        UserQuestion(2, "Why do vaccines work?", "OWN"),
        UserQuestion(3, "Why is the sky blue?", "OWN"),
    ]
    korean = [
        questions[0]._replace(text="빵은 왜 굽습니까?"),
        questions[2]._replace(text="하늘은 왜 파랗습니까?"),
    ]
    written, failures = builder._compose({"en": questions, "ko": korean}, tuple(PADDINGS))
    assert failures == []
    files = {lang: builder._file(questions, written, lang, {}) for lang in ("en", "ko")}
    for padding in PADDINGS:
        numbers = {
            lang: [row["question_id"] for row in file["questions"] if row["padding"] == padding]
            for lang, file in files.items()
        }
        assert numbers == {"en": [1, 2, 3], "ko": [1, 3]}
    assert files["ko"]["metadata"]["augmentation_status"] == {"successful": 2, "total_questions": 3}
    english, translated = (
        next(row for row in files[lang]["questions"] if row["question_id"] == 3) for lang in ("en", "ko")
    )
    assert "this subject" in english["level_7_text"]  # plain in Korean alone, so named in neither
    assert "이 주제" in translated["level_7_text"]
    assert "“하늘”" not in translated["level_7_text"]
    assert [english[f"level_{level}_position"] for level in LEVELS[1:]] == [
        translated[f"level_{level}_position"] for level in LEVELS[1:]
    ]
    assert english["level_7_text"].count("\n\n") == translated["level_7_text"].count("\n\n")
