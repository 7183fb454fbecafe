"""Questions whose answer is known: which replies are right, how often, and pass^k."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path

import msgspec
import pytest

from present import limits, present
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from sealegs.benchmarks.mirae.data import LANGUAGES, QuestionAtLevels, make_samples, read_questions
from sealegs.benchmarks.mirae.expected import given_words
from sealegs.benchmarks.mirae.make.texts import bank_text, question_ids
from sealegs.errors import DataError
from sealegs.files.jsonfile import read_json_lines
from sealegs.harness.scoring import complete
from sealegs.text.answer_search.mention import parts
from sealegs.types import Answered, Embed, Request, Response, Score, Summary

CLOSED = (*range(1, 11), 12, 18)
REPLIES: dict[int, dict[str, str]] = msgspec.json.decode(
    (Path(__file__).parent / "mirae_right.json").read_bytes(), type=dict[int, dict[str, str]]
)
"""A right reply in each language."""


def expected(lang: str, number: int) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, bank_text(lang, f"{number:02}").expected))


@pytest.mark.parametrize("number", CLOSED)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_right_reply_is_right_in_every_language(number: int, lang: str) -> None:
    question = bank_text(lang, f"{number:02}").header["question"]
    words = present(given_words(REPLIES[number][lang], expected(lang, number), question))
    assert len(words) == len(expected("en", number))
    others = [other for other in CLOSED if other != number]
    assert not any(given_words(REPLIES[other][lang], expected(lang, number), question) for other in others)


def test_replies_in_the_wording_of_models_are_read_right() -> None:
    rows = msgspec.json.decode((Path(__file__).parent / "mirae_replies.json").read_bytes())
    wrong = []
    for row in rows:
        question = bank_text(row["lang"], f"{row['question']:02}").header["question"]
        words = given_words(row["reply"], expected(row["lang"], row["question"]), question)
        if (words is not None) != row["right"]:
            wrong.append(row)
    assert len(rows) == 76
    assert wrong == []


class Labelled(msgspec.Struct):
    """`closed`: replies with preambles, with the conclusion last and with neither yes nor no, each wording
    filled both ways, by a writer who knew the rules, before they were changed (errors on wordings of even
    numbers were counted and not read; those called `fresh` were written after and read). The others:
    `rgb_labelled`."""

    lang: str
    question: str
    expected: list[str | list[str]]
    reply: str
    right: bool


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "right_share", "wrong_share"),
    [("asides", 0.9, 0.9), ("named", 0.85, 0.75), ("closed", 0.95, 0.97)],
)
def test_sentences_and_asides_are_read_as_labelled(
    name: str, right_share: float, wrong_share: float, lang: str
) -> None:
    path = Path(__file__).parents[2] / "labelled" / f"{name}.mirae.jsonl"
    rows = [row for row in read_json_lines(path, Labelled) if row.lang == lang]
    said = [given_words(row.reply, parts(row.expected), row.question) is not None for row in rows]
    for right, share in ((True, right_share), (False, wrong_share)):
        verdicts = [each is right for row, each in zip(rows, said, strict=True) if row.right is right]
        assert len(verdicts) >= 24
        assert sum(verdicts) >= share * len(verdicts)


def test_the_starter_set_has_an_answer_to_every_closed_question() -> None:
    for lang in LANGUAGES:
        known = [number for number in question_ids() if bank_text(lang, f"{number:02}").expected]
        assert tuple(known) == CLOSED


@pytest.mark.parametrize(
    ("lang", "reply"),
    [
        ("en", "Yes. Up by 20% and down by 20% cancel out, so the prices are not lower."),
        ("en", "Yes, 100 rises to 120 and falls back to 100."),
        ("ko", "네, 같습니다. 오른 만큼 내렸기 때문입니다."),
        ("zh", "相同，因为上调后又下调，正好抵消。"),
        ("zh", "是的，最后的价格与原价相同。"),
    ],
)
def test_the_other_side_of_yes_and_no_is_never_right(lang: str, reply: str) -> None:
    assert given_words(reply, expected(lang, 12), bank_text(lang, "12").header["question"]) is None


def test_a_plain_yes_or_no_decides_by_what_the_reply_says() -> None:
    for answer, right, wrong in (
        ("yes", "Yes, it does.", "No, it does not."),
        ("아니요", "아니요, 그렇지 않습니다.", "네, 그렇습니다."),
        ("是的", "是的，可以。", "不是，不可以。"),
    ):
        assert given_words(right, ((answer,),), "?")
        assert given_words(wrong, ((answer,),), "?") is None


def test_reasoning_before_the_answer_is_not_the_answer() -> None:
    assert given_words("<think>Carbon, diamond, graphite?</think>It is iron.", expected("en", 2), "?") is None


# How often


def prompt(question: str, texts: Sequence[str | None], answer: str = "Paris") -> Answered:
    asked = QuestionAtLevels(question, "FACTUAL", "en", {1: f"{question}?"}, expected=((answer,),))
    (sample,) = make_samples([asked], len(texts))
    failed = Response(status="error", reason="HTTP 500")
    return Answered(sample, (), tuple(Response(status="ok", text=t) if t else failed for t in texts))


def vectors(requests: Sequence[Request]) -> list[Response]:
    assert all(isinstance(request, Embed) for request in requests)
    return [Response(status="ok", vector=b"\0\0\x80?") for _ in requests]


def summary_of(prompts: Sequence[Answered]) -> tuple[list[Score], Summary]:
    benchmark = Mirae(MiraeOptions())
    scores = complete(benchmark.score(prompts), vectors)
    return scores, benchmark.summarise(scores)


def test_pass_hat_k_is_averaged_over_questions() -> None:
    rights = {"a": 5, "b": 3, "c": 0}
    prompts = [
        prompt(name, ["It is Paris."] * count + ["It is Rome."] * (5 - count))
        for name, count in rights.items()
    ]
    scores, summary = summary_of(prompts)
    assert [score.values["right_rate"] for score in scores] == [1, 0.6, 0]
    for name in ("right_every_time", "right_sometimes", "right_never"):
        assert summary[name].value == pytest.approx(1 / 3)
    for k in range(1, 6):
        truth = sum(comb(count, k) for count in rights.values()) / comb(5, k) / 3
        assert summary[f"pass_hat_k/k={k}"].value == pytest.approx(truth)
        assert summary[f"pass_hat_k/k={k},level=1"].value == pytest.approx(truth)
    assert "pass_hat_k/k=6" not in summary


def test_a_failed_request_is_no_answer_and_a_refusal_is_not_right() -> None:
    (score,), summary = summary_of([prompt("a", ["Paris.", "Paris.", None, "Paris."])])
    assert (score.values["right_rate"], score.values["right_every_time"]) == (1, None)
    assert [summary[f"pass_hat_k/k={k}"].value for k in range(1, 5)] == [None] * 4
    (score,), _ = summary_of([prompt("a", ["Paris.", "I cannot help with that."])])
    assert score.values["right_sometimes"] == 1
    (score,), _ = summary_of([prompt("a", ["Paris.", None])])
    assert score.values["right_rate"] is None


def test_a_prompt_that_failed_lowers_the_coverage_and_leaves_every_k_to_the_others() -> None:
    whole = [
        prompt(name, ["Paris."] * count + ["Rome."] * (4 - count))
        for name, count in zip("abc", (4, 2, 0), strict=True)
    ]
    failed = [prompt("d", [None, "Paris.", None, None]), prompt("e", ["Paris.", "Paris.", None, "Paris."])]
    _, of_whole = summary_of(whole)
    _, summary = summary_of([*whole, *failed])
    names = [f"pass_hat_k/k={k}" for k in range(1, 5)]
    for name in (*names, "right_every_time", "right_sometimes", "right_never"):
        assert summary[name].value == of_whole[name].value
        assert (summary[name].n, summary[name].coverage) == (3, 12 / 20)
    rates = [summary[name].value or 0 for name in names]
    assert rates == sorted(rates, reverse=True)
    sentence, *_ = present(Mirae.layout.remarks)(summary)
    assert sentence.startswith(
        "Of 3 prompts whose answer is known and of which no reply is missing, 33% were"
    )


def test_a_coin_between_yes_and_no_is_told_from_a_steady_answer() -> None:
    yes, no = "Yes, they are equal in the end.", "No, they are not equal in the end."
    flipped = [prompt(f"q{n}", [yes if (n >> bit) & 1 else no for bit in range(5)], "no") for n in range(32)]
    steady = [prompt(f"q{n}", [no] * 5, "no") for n in range(32)]
    _, coin = summary_of(flipped)
    _, sure = summary_of(steady)
    assert coin["mean_similarity"].value == sure["mean_similarity"].value
    assert coin["pass_hat_k/k=5"].value == pytest.approx(1 / 32)
    assert sure["pass_hat_k/k=5"].value == 1
    assert limits(coin["pass_hat_k/k=5"])[1] < limits(sure["pass_hat_k/k=5"])[0]


# Files


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        ("Paris", (("Paris",),)),
        (["Paris", "1789"], (("Paris",), ("1789",))),
        ([["Paris", "Lutetia"], ["1789"]], (("Paris", "Lutetia"), ("1789",))),
        (None, ()),
    ],
)
def test_a_file_gives_expected_answers_as_rgb_does(
    tmp_path: Path, answer: object, parts: tuple[tuple[str, ...], ...]
) -> None:
    path = tmp_path / "q_english.jsonl"
    row = {"question_id": 1, "domain": "D", "level_1_text": "Where?", "expected": answer}
    path.write_bytes(msgspec.json.encode(row))
    (question,) = read_questions(path, "en")
    assert question.expected == parts
    (sample,) = make_samples([question], 5)
    assert sample.inputs.expected == parts


@pytest.mark.parametrize("answer", [[], [""], [[]], " "])
def test_an_empty_expected_answer_is_refused_with_its_line(tmp_path: Path, answer: object) -> None:
    path = tmp_path / "q_english.jsonl"
    row = {"question_id": 1, "domain": "D", "level_1_text": "Where?", "expected": answer}
    path.write_bytes(msgspec.json.encode(row))
    with pytest.raises(DataError, match=r"line 1.*'expected'"):
        read_questions(path, "en")


def test_a_no_somewhere_is_no_answer_where_the_text_says_neither() -> None:
    expected = (("no", "not equal", "4% lower"),)
    question = "Are the two prices equal?"
    assert given_words("There is no simple answer to that.", expected, question) is None
    assert given_words("They are not equal.", expected, question) == ["no"]
    assert given_words("No, they differ.", expected, question) == ["no"]
    assert given_words("There is no difference.", (("no",),), question) is None


# What a person reads


def test_the_verdict_counts_prompts_that_are_right_every_time() -> None:
    texts = [["Paris."] * 4, ["Paris.", "Rome."] * 2, ["Rome."] * 4, ["Paris."] * 4]
    _, summary = summary_of([prompt(str(number), each) for number, each in enumerate(texts)])
    known, judged = present(Mirae.layout.remarks)(summary)
    assert (
        known
        == "Of 4 prompts whose answer is known, 50% were given it every time, 25% sometimes and 25% never."
    )
    assert judged.startswith("Contradictions between answers were not looked for")
