"""The prompts of MIRAE's starter set and of a person's own questions: format, lengths, seeds."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealegs.benchmarks.mirae.benchmark import STARTER_SHA256, Mirae, MiraeOptions, make_starter
from sealegs.benchmarks.mirae.data import LANGUAGES, TARGETS
from sealegs.benchmarks.mirae.make.generator import compose
from sealegs.benchmarks.mirae.make.texts import (
    TOLERANCE,
    TextSource,
    bank_text,
    cut_to_levels,
    neutral,
    neutral_names,
    question_ids,
)
from sealegs.errors import UsageError
from sealegs.files.datasets import data_file
from sealegs.harness.data import Data
from sealegs.make.grammar import seeded, slots
from sealegs.text.token_estimate import estimate_tokens

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = range(1, 8)
every_language = pytest.mark.parametrize("language", list(LANGUAGES))
names = [*(f"{number:02}" for number in question_ids()), *neutral_names()]
SENTENCE_END = re.compile(r"""[.!?]["'”’)]*(?=\s|$)|[。！？]""")


@cache
def question_set(language: str, seed: int) -> dict[str, Any]:
    return compose(language, seed)


def texts(question: dict[str, Any]) -> list[str]:
    return [question[f"level_{level}_text"] for level in LEVELS]


def sentences(language: str, name: str) -> list[str]:
    return [each for p in bank_text(language, name).paragraphs for variant in p for each in variant]


def sentence_count(text: str) -> int:
    return len(SENTENCE_END.findall(text))


# The starter set


@every_language
def test_seed_0_is_the_pinned_starter_set(language: str) -> None:
    assert hashlib.sha256(make_starter(language)).hexdigest() == STARTER_SHA256[language]


@every_language
def test_the_file_has_the_published_fields_and_says_how_it_was_made(language: str) -> None:
    content = question_set(language, 1)
    assert list(content) == ["metadata", "questions"]
    metadata = content["metadata"]
    assert (metadata["language"], metadata["total_questions"]) == (LANGUAGES[language], 40)
    assert (metadata["generator"], metadata["seed"]) == ("sealegs-mirae", 1)
    fields = [f"level_{level}_{field}" for level in LEVELS for field in ("text", "tokens")]
    expected = ["question_id", "domain", "padding", *fields]
    assert all(
        [name for name in question if name != "expected"] == expected for question in content["questions"]
    )


def test_every_level_has_its_length_in_the_mean_of_the_languages() -> None:
    sets = [question_set(language, 1)["questions"] for language in LANGUAGES]
    for translations in zip(*sets, strict=True):
        for level, target in zip(LEVELS[1:], TARGETS[1:], strict=True):
            lengths = [estimate_tokens(question[f"level_{level}_text"]) for question in translations]
            assert lengths == [question[f"level_{level}_tokens"] for question in translations]
            assert fmean(lengths) <= TARGETS[-1]
            near = 0.35 if level == 2 else 0.15 if level < 5 else 0.08
            assert abs(fmean(lengths) - target) <= near * target, (translations[0]["question_id"], level)


@every_language
def test_a_file_states_how_long_its_levels_are(language: str) -> None:
    content = question_set(language, 1)
    for level in LEVELS:
        lengths = [question[f"level_{level}_tokens"] for question in content["questions"]]
        assert content["metadata"]["level_mean_tokens"][f"level_{level}"] == round(fmean(lengths))


def test_the_languages_are_cut_after_the_same_sentence() -> None:
    """What is in each is found by the sentences of its bank, filled as they are there."""
    for number in (1, 13, 23):
        drawn = {lang: bank_text(lang, f"{number:02}").draw(seeded("same")) for lang in LANGUAGES}
        sources = {
            lang: TextSource(bank_text(lang, f"{number:02}").header["question"], paragraphs)
            for lang, paragraphs in drawn.items()
        }
        prompts = cut_to_levels(sources, estimate_tokens)
        for level in LEVELS:
            places = {
                lang: [
                    sentence in prompts[lang][level - 1]
                    for paragraph in drawn[lang]
                    for sentence in paragraph
                ]
                for lang in LANGUAGES
            }
            assert places["en"] == places["ko"] == places["zh"]


def test_every_level_has_as_many_sentences_in_each_language() -> None:
    sets = [question_set(language, 0)["questions"] for language in LANGUAGES]
    for translations in zip(*sets, strict=True):
        for level in LEVELS:
            counts = [sentence_count(question[f"level_{level}_text"]) for question in translations]
            assert len(set(counts)) == 1, (translations[0]["question_id"], level, counts)


@every_language
def test_a_prompt_is_the_question_and_the_beginning_of_its_text(language: str) -> None:
    for question in question_set(language, 1)["questions"]:
        prompts = texts(question)
        for shorter, longer in pairwise(prompts):
            assert longer.startswith(shorter)
            assert len(longer) > len(shorter)
        assert not re.search(r"[{}~]", prompts[-1])


def test_another_seed_gives_other_texts_for_the_same_questions() -> None:
    for one, other in zip(*(question_set("en", seed)["questions"] for seed in (0, 1)), strict=True):
        assert one["level_1_text"] == other["level_1_text"]
        assert one["level_7_text"] != other["level_7_text"]


# The bank


@pytest.mark.parametrize("name", names)
def test_the_texts_of_all_languages_are_parallel(name: str) -> None:
    english = bank_text("en", name)
    shape = [[len(variant) for variant in p] for p in english.paragraphs]
    for language in LANGUAGES:
        text = bank_text(language, name)
        assert [[len(variant) for variant in p] for p in text.paragraphs] == shape
        same = [key for key in english.header if key in ("domain", "free") or key.startswith("names.")]
        assert [key for key in text.header if key in same] == same
        assert all(text.header[key] == english.header[key] for key in same if not key.startswith("names."))
        used = {slot for sentence in sentences(language, name) for slot in slots(sentence)}
        slot_keys = [key.removeprefix("names.") for key in same if key.startswith("names.")]
        assert used == {slot for key in slot_keys for slot in key.split("/")}
        counts = [len(text.header[key].split("|")) for key in same if key.startswith("names.")]
        assert counts == [len(english.header[key].split("|")) for key in same if key.startswith("names.")]


@every_language
def test_a_line_of_the_bank_is_one_sentence(language: str) -> None:
    lines = [line for name in names for line in sentences(language, name)]
    assert [line for line in lines if sentence_count(line) != 1] == []


@every_language
def test_no_text_of_a_factual_question_gives_its_answer_away(language: str) -> None:
    for number in range(1, 11):
        words = bank_text(language, f"{number:02}").header["withheld"].split("|")
        for word in words:
            pattern = re.compile(rf"(?<![a-z0-9]){re.escape(word.strip().lower())}")
            assert [
                text for text in sentences(language, f"{number:02}") if pattern.search(text.lower())
            ] == []


def test_no_sentence_is_in_two_texts() -> None:
    """What comes back in every prompt would be measured instead of the length."""
    for language in LANGUAGES:
        said = [sentence for name in names for sentence in set(sentences(language, name))]
        assert len(said) == len(set(said))


@pytest.mark.parametrize("name", names)
def test_a_korean_text_keeps_to_one_speech_level_and_writes_months_in_digits(name: str) -> None:
    text = bank_text("ko", name)
    question = re.split(r"(?<=[.?]) ", text.header.get("question", ""))
    ends = [each.rstrip(".?!”’\"'")[-1] for each in (*question, *sentences("ko", name)) if each]
    polite = sum(end in "요죠" for end in ends)
    assert polite in (0, len(ends)), [
        each for each in sentences("ko", name) if each.rstrip(".?!")[-1] in "요죠"
    ]
    spelt = re.compile(r"(?<![가-힣])(?:십일|십이|[일이삼사오유칠팔구시])월(?![가-힣]*요일)")
    assert [each for each in sentences("ko", name) if spelt.search(each)] == []


def test_unrelated_stories_vary_from_question_to_question() -> None:
    assert len(neutral_names()) >= 8
    beginnings = {neutral("en", seeded(number))[0][0] for number in range(60)}
    assert len(beginnings) >= 8


# Questions of a person's own


def by_words(text: str) -> int:
    return len(text.split())


@settings(max_examples=6)
@given(
    words=st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=10, max_size=28),
    seed=st.integers(0, 10**6),
    count=st.sampled_from([estimate_tokens, by_words]),
)
def test_any_question_is_surrounded_by_any_counter(words: list[str], seed: int, count: Any) -> None:
    question = f"Zyx {' '.join(words)}"
    prompts = cut_to_levels({"en": TextSource(question, neutral("en", seeded(seed)))}, count)["en"]
    assert prompts[0] == question
    assert all(text.startswith(f"{question}\n\nUnrelated text: ") for text in prompts[1:])
    for text, target in zip(prompts[1:], TARGETS[1:], strict=True):
        assert abs(count(text) - target) <= (TOLERANCE + 0.02) * target


def test_a_question_that_fills_a_level_alone_is_refused() -> None:
    with pytest.raises(UsageError, match="level 2 would have .* the question is too long"):
        cut_to_levels({"en": TextSource("word " * 70, neutral("en", seeded(0)))}, estimate_tokens)


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
