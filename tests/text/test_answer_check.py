"""An answer that a text names: given as its own, or denied there or in another clause or sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from sealegs.files.jsonfile import read_json_lines
from sealegs.text.answer_check.stated import stated_answer
from sealegs.text.answer_search.mention import parts


class Wording(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply that names an answer, and whether it gives it."""

    lang: str
    question: str
    answer: str
    reply: str
    right: bool


WORDINGS = list(read_json_lines(Path(__file__).parents[1] / "labelled" / "denied.jsonl", Wording))


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
def test_an_answer_is_stated_unless_the_text_takes_it_back(lang: str, right: bool) -> None:
    rows = [row for row in WORDINGS if (row.lang, row.right) == (lang, right)]
    stated = [stated_answer(row.reply, parts(row.answer), row.question) != [None] for row in rows]
    assert len(rows) >= 40
    assert [row.reply for row, each in zip(rows, stated, strict=True) if each != right] == []


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ("It is not Paris.", False), ("It isn't actually Paris.", False), ("Rome rather than Paris.", False),
        ("Not Rome but Paris.", True), ("Not only Paris but Lyon too.", True),
        ("I can't say whether it is Paris or Rome.", False), ("无法判断是罗马还是Paris。", False),
        ("Paris인지 로마인지 알 수 없습니다.", False), ("Whether it is Rome is not said. It is Paris.", True),
        ("A little over Paris.", True), ("It is not far from Paris.", True),
        ("Some say it is not Paris. It is Paris.", True),
        ("不是Paris。", False), ("不是罗马，是Paris。", True),
        ("Paris가 아닙니다.", False), ("로마가 아니라 Paris입니다.", True), ("Paris입니다. 아니요.", True),
        ("not Paris, " * 30, False),
    ],
)  # fmt: skip
def test_an_answer_that_is_denied_where_it_is_named_is_not_stated(reply: str, stated: bool) -> None:
    assert [match is not None for match in stated_answer(reply, parts("Paris"))] == [stated]


def test_a_denial_of_something_else_denies_no_answer() -> None:
    reply = "Century years are exceptions if not divisible by 400."
    assert stated_answer(reply, parts("400")) != [None]


def test_a_surname_answers_where_the_question_asks_which_author_it_was() -> None:
    for query, stated in (
        ("Which playwright wrote Hamlet?", True),
        ("Which play is by the author Pym?", False),
    ):
        assert (stated_answer("Shakespeare.", parts("William Shakespeare"), query) != [None]) is stated


def test_each_part_of_an_answer_is_denied_by_itself() -> None:
    expected = parts(["nitrogen", ["21", "21%"]])
    reply = "Oxygen makes up 21% of the air, but it is not nitrogen that we breathe in."
    assert stated_answer(reply, expected, "What is in the air?") == [None, "21 %"]


HAMLET, PLANET, KOREAN = (
    ("Who wrote Hamlet?", "Shakespeare"),
    ("Which planet is closest to the Sun?", "Mercury"),
    ("태양에 가장 가까운 행성은 무엇입니까?", "수성"),
)


@pytest.mark.parametrize(
    ("asked", "reply", "stated"),
    [
        (HAMLET, "Marlowe wrote Hamlet; Shakespeare only acted in it.", False),
        (HAMLET, "Ben Jonson wrote it, a friend of Shakespeare.", False),
        (HAMLET, "Shakespeare wrote Hamlet; Marlowe only acted in it.", True),
        (HAMLET, "Actors wrote Hamlet down. It is by Shakespeare.", True),
        (HAMLET, "Londoners loved Hamlet. The author is Shakespeare.", True),
        (("What is the capital of Canada?", "Ottawa"), "Parliament is in the capital, Ottawa.", True),
        (PLANET, "Venus is closest to the Sun. Mercury is hotter.", False),
        (PLANET, "Venus is close to the Sun, Mercury closest.", True),
        (KOREAN, "금성은 태양에 가장 가까운 행성입니다. 수성은 작습니다.", False),
    ],
)
def test_an_answer_only_named_beside_another_in_the_questions_words_is_not_stated(
    asked: tuple[str, str], reply: str, stated: bool
) -> None:
    query, answer = asked
    assert (stated_answer(reply, parts(answer), query) != [None]) is stated


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ("The longest bone is the femur, above the knee and below the hip. There are 206 bones.", [True] * 3),
        ("The longest is the tibia, below the femur and the hip. 206 bones.", [False, False, True]),
        ("The femur. It reaches down from the hip. An adult has 206 bones.", [True] * 3),
        ("206 bones; the longest is the femur at the hip.", [True] * 3),
    ],
)
def test_each_part_of_an_answer_is_read_by_itself(reply: str, stated: list[bool]) -> None:
    query = "Which bone is the longest, where does it lie, and how many bones does the skeleton have?"
    answer = parts(["femur", "hip", "206"])
    assert [each is not None for each in stated_answer(reply, answer, query)] == stated
