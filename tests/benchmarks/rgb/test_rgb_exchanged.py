"""A reply that gives the two values of a question in two parts to the wrong halves is wrong."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest

from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.text.answer_search.mention import parts


class Asked(NamedTuple):
    """A question, what its halves name, and their values."""

    query: str
    halves: tuple[str, str]
    values: tuple[str, str]


ENGLISH = (
    Asked(
        "How many people attended the Lantern Festival in 2002, and how many in 2004?",
        ("2002", "2004"),
        ("20,723 people", "62,744 people"),
    ),
    Asked(
        "Ormerod bought three firms. What did the most expensive cost, and what did the cheapest cost?",
        ("the most expensive", "the cheapest"),
        ("49.6 million crowns", "36.6 million crowns"),
    ),
    Asked(
        "Which companies won the contracts for the cycle tunnel and for the sewage works in Ravenbridge?",
        ("the cycle tunnel", "the sewage works"),
        ("Pomfret Builders", "Trevanion Brothers"),
    ),
)
HAN = (
    Asked("谁在1996年当选为碧坝市商会会长，2008年当选的又是谁？", ("1996年", "2008年"), ("熊鹿鸣", "温雨桐")),
    Asked("金穗文艺奖的诗歌类和散文类的得主分别是谁？", ("诗歌类", "散文类"), ("雷子衿", "莫天朗")),
)
TYING = (
    "{a}: {A}\n{b}: {B}",
    "- **{b}**: {B}\n- **{a}**: {A}",
    "| Item | Answer |\n|---|---|\n| {a} | {A} |\n| {b} | {B} |",
    "For {a} it was {A}, and for {b}, {B}.",
    "For {a} it was {A}. For {b} it was {B}.",
    "{B} for {b}, and {A} for {a}.",
    "{A} ({a}); {B} ({b})",
    "Document 1 says that {a} comes to {A}. Document 3 gives {B} for {b}. So the answers are {A} and {B}.",
)
HAN_TYING = (
    "{a}：{A}\n{b}：{B}",
    "{a}是{A}，而{b}是{B}。",
    "{A}（{a}），{B}（{b}）",
    "根据文档，{b}为{B}；{a}为{A}。",
)
NOT_TYING = (
    "{A} and {B}",
    "{a} and {b}: {A} and {B}, respectively.",
    "{A} for {a}, {B} for the other.",
    "The first answer is {A}, the second {B}.",
    "Comparing {a} with {b}: {A} and {B}.",
    "| {a} | {b} |\n|---|---|\n| {A} | {B} |",
    "{A}, not {B}, is the answer for {a}; for {b} it is {B}.",
    "Unlike {b}, {a} was {A}; {b} was {B}.",
)


def verdict(reply: str, asked: Asked, values: tuple[str, str]) -> CheckVerdict:
    (a, b), (first, second) = asked.halves, values
    return lenient(reply.format(a=a, b=b, A=first, B=second), parts(list(asked.values)), query=asked.query)


WORDINGS = (*product(TYING, ENGLISH), *product(HAN_TYING, HAN))


@pytest.mark.parametrize(("reply", "asked"), WORDINGS)
def test_two_values_that_are_given_to_each_others_half_are_wrong(reply: str, asked: Asked) -> None:
    exchanged = verdict(reply, asked, asked.values[::-1])
    assert not exchanged.right
    assert exchanged.words["denied"]
    assert exchanged.parts == (1, 1)
    assert not exchanged.rejected


@pytest.mark.parametrize(("reply", "asked"), [*WORDINGS, *product(NOT_TYING, ENGLISH)])
def test_two_values_with_their_own_half_or_with_none_are_right(reply: str, asked: Asked) -> None:
    assert verdict(reply, asked, asked.values).right


IN_A_ROW = (
    "{A} and {B}",
    "{A}; {B}",
    "1. {A}\n2. {B}",
    "**Answer:** {A} and {B} (Document 1)",
    "- First: {A}\n- Second: {B}",
    "The answer to the first part is {A}, and to the second part {B}.",
    "The first is {A} (Document 2), and the second is {B} (Document 3).",
    "{B} is the answer to the second question; {A} is the answer to the first.",
    "From Document 1: {A}.\nFrom Document 3: {B}.\n\nSo the answers are {A} and {B}.",
)
IN_A_ROW_IN_HAN = (
    "{A}和{B}。",
    "分别是{A}和{B}",
    "第一个问题的答案是{A}，第二个问题的答案是{B}。",
    "第一部分是{A}，第二部分是{B}。",
    "前者是{A}，后者是{B}。",
)


@pytest.mark.parametrize(("reply", "asked"), [*product(IN_A_ROW, ENGLISH), *product(IN_A_ROW_IN_HAN, HAN)])
def test_two_values_in_a_row_are_in_the_order_of_the_question(reply: str, asked: Asked) -> None:
    assert verdict(reply, asked, asked.values).right
    assert not verdict(reply, asked, asked.values[::-1]).right


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (
            "How many people attended the Brass Fair in the best attended of the years 2007 and 2016, "
            "and how many in the worst attended?",
            "- **Highest attendance:** {}\n- **Lowest attendance:** {}",
        ),
        ("比较芷泊市河灯节1999年和2002年的入场人次：最多是多少，最少是多少？", "最高为{}，最低为{}。"),
    ],
)
def test_the_ends_of_a_scale_may_be_in_other_words(query: str, reply: str) -> None:
    values = "63,882", "51,581"
    assert lenient(reply.format(*values), parts(list(values)), query=query).right
    assert not lenient(reply.format(*values[::-1]), parts(list(values)), query=query).right


BOUGHT = "For what price did Ormerod Works take over {a}, and for what price did it take over {b}?"
PLACED_WRONGLY = (
    "Ormerod Works bought Lunt Brothers for 42.5 million crowns. Ormerod Works also bought Lunt Brothers "
    "for 83.9 million crowns. Ormerod Works took over Redfern Mills later.",
    "For 42.5 million crowns, Ormerod Works took over Lunt Brothers, and for 83.9 million crowns. "
    "Ormerod Works took over Redfern Mills for 42.5 million crowns.",
)
PLACED_RIGHTLY = (
    "Ormerod Works took over Lunt Brothers for 42.5 million crowns. Redfern Mills cost 83.9 million crowns.",
    "Lunt Brothers: 42.5 million crowns\nRedfern Mills:\n83.9 million crowns",
    "Redfern Mills was the second. Lunt Brothers cost 42.5 million crowns, and the second 83.9 million.",
    "Ormerod Works paid 42.5 million crowns for the first firm and 83.9 million crowns for the second.",
)


@pytest.mark.parametrize(
    ("reply", "right"),
    [*((reply, False) for reply in PLACED_WRONGLY), *((reply, True) for reply in PLACED_RIGHTLY)],
)
def test_a_value_that_is_given_to_the_other_half_only_is_wrong(reply: str, right: bool) -> None:
    query = BOUGHT.format(a="Lunt Brothers", b="Redfern Mills")
    decided = lenient(reply, parts(["42.5 million crowns", "83.9 million crowns"]), query=query)
    assert decided.right == right
    assert bool(decided.words.get("denied")) != right


def test_a_winner_named_in_the_defeat_that_came_later_is_not_exchanged() -> None:
    query = "Who won the election in Ambleminster in 2003, and who won it in 2021?"
    reply = "In 2021, Silas Carrick was beaten by Elsa Abernald, and in 2003 Silas Carrick won."
    assert lenient(reply, parts(["Silas Carrick", "Elsa Abernald"]), query=query).right


@pytest.mark.parametrize(
    ("query", "answer", "reply"),
    [
        (
            "What is the title of the longer book, and how many pages does the shorter one have?",
            ["The Courtyard", "377 pages"],
            "The Courtyard, with 400 pages; the other book has 377.",
        ),
        ("Which two cities hosted the cup?", ["Tampere", "Aarhus"], "Aarhus first, then Tampere."),
        (
            "How many people came in 2002, and on which date did the fair open?",
            ["73,321", "13 September 2012"],
            "The first is 13 September 2012, and the second is 73,321.",
        ),
    ],
)
def test_values_of_two_kinds_and_halves_that_do_not_differ_are_not_exchanged(
    query: str, answer: list[str | list[str]], reply: str
) -> None:
    assert lenient(reply, parts(answer), query=query).right


def test_a_title_that_begins_with_a_number_is_exchanged_like_any_name() -> None:
    query = "Which book did Ada Lock publish in 2004, and which in 2007?"
    titles: list[str | list[str]] = ["Dark Ice", "One Lock Too Many"]
    for reply, right in (("1. {}\n2. {}", True), ("1. {1}\n2. {0}", False)):
        assert lenient(reply.format(*titles), parts(titles), query=query).right is right


def test_words_of_the_question_about_both_halves_do_not_hide_an_exchange() -> None:
    query = "Which firm built the hospital wing in Rushgate, and which firm the cycle tunnel?"
    firms: list[str | list[str]] = ["Trevanion and Nightingale", "Rookley Masonry"]
    reply = "The cycle tunnel in Rushgate was built by {}, while the hospital wing was built by {}."
    assert not lenient(reply.format(*firms), parts(firms), query=query).right
    assert lenient(reply.format(*firms[::-1]), parts(firms), query=query).right


def test_the_words_of_a_value_name_no_half_of_the_question() -> None:
    query = "樱溪市环路大桥的合同给了哪家公司,自来水塔的合同又给了哪家?"
    answer = (("栎溪路桥",), ("苍口钢构",))
    assert lenient("**栎溪路桥和苍口钢构**\n\n该信息出自第2篇文档。", answer, query=query).right
