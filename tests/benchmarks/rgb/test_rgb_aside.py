"""A reply that names the right value only to set it aside, and gives another, is wrong; the other way round
it is right."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest

from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.text.answer_check.stated import stated_answer
from sealegs.text.answer_search.mention import parts


class Asked(NamedTuple):
    """A question, its answer, another value of the kind, and a sentence that answers."""

    query: str
    right: str
    wrong: str
    sentence: str


ENGLISH = (
    Asked("Who chairs the Ambleside Trust?", "Mara Dellow", "Jonas Pike", "{} chairs the Ambleside Trust"),
    Asked("In which year did the Corley Bridge open?", "1987", "1992", "The Corley Bridge opened in {}"),
    Asked("When did the Orwin Mill open?", "12 May 2003", "3 June 2001", "The Orwin Mill opened on {}"),
    Asked("Which city hosts the Film Week?", "Tartu", "Narva", "The Film Week is hosted by {}"),
    Asked("What is Ada Renshaw's first novel?", "The Lantern Keeper", "The Hollow Almanac",
          "Ada Renshaw's first novel is {}"),
    Asked("Which metal has the symbol Ag?", "silver", "gold", "The metal with the symbol Ag is {}"),
)  # fmt: skip
HAN = (
    Asked("西岭隧道是哪家公司承建的？", "汉川路桥", "敦化建设", "承建西岭隧道的公司是{}"),
    Asked("青峰天文台是哪一天开放的？", "2003年5月12日", "2001年9月3日", "青峰天文台于{}开放"),
    Asked("2014年花溪庙会有多少人参加？", "34210人", "28755人", "2014年有{}参加花溪庙会"),
)
SETTING_ASIDE = (
    "Although Document 2 gives {a}, the correct answer is {b}.",
    "Although Document 2 gives {a}, {said}.",
    "Document 3 seems to suggest {a}. However, {said}.",
    "The documents give conflicting values ({a} and {b}), but {b} is the correct one.",
    "Contrary to Document 1, which states {a}, {said}.",
    "Earlier I said {a}; I apologize for the confusion. The correct answer is {b}.",
    "**Answer:** {b}\n\n*Note: {a}, which appears in Document 1, refers to a different year.*",
    "Initially it looks like {a}, but {said}.",
    "{said}. The figure {a} in Document 4 concerns another matter.",
    "**{b}**\n\nDocument 2 mentions {a}, but that refers to a different event.",
    "While one document says {a}, this appears to be an error; {said}.",
    "I considered {a}, but ruled it out. {said}.",
)
SETTING_ASIDE_IN_HAN = (
    "虽然文档1写的是{a}，但正确答案是{b}。",
    "{said}。文档2中的{a}指的是另一年份。",
    "有文档说是{a}，但这并不准确，{said}。",
    "文档3提到{a}，但那是另一件事。{said}。",
    "我考虑过{a}，但已排除。最终答案：{b}",
)
CASES = [*product(ENGLISH, SETTING_ASIDE), *product(HAN, SETTING_ASIDE_IN_HAN)]


def verdict(reply: str, asked: Asked) -> CheckVerdict:
    return lenient(reply, parts([[asked.right]]), query=asked.query)


@pytest.mark.parametrize(("asked", "wording"), CASES)
def test_a_value_that_is_set_aside_is_not_the_answer(asked: Asked, wording: str) -> None:
    reply = wording.format(a=asked.right, b=asked.wrong, said=asked.sentence.format(asked.wrong))
    assert not verdict(reply, asked).right
    assert stated_answer(reply, parts([[asked.right]]), asked.query) == [None]


@pytest.mark.parametrize(("asked", "wording"), CASES)
def test_setting_another_value_aside_costs_nothing(asked: Asked, wording: str) -> None:
    reply = wording.format(a=asked.wrong, b=asked.right, said=asked.sentence.format(asked.right))
    assert verdict(reply, asked).right


@pytest.mark.parametrize(
    "reply",
    [
        "Document 2 says 1987. However, Document 5 describes the closing of the bridge in 2004.",
        "The document states that the bridge opened in 1987, but another bridge opened in 1992.",
        "Document 1 says 1987, but some say the bridge opened in 1992.",
        "Document 1 says that the Corley Bridge opened in 1987, but the Selby Bridge opened in 1992.",
        "It opened on 4 June 1987. The correct year is therefore 1987.",
        "The answer can be found in Document 2: 1987.",
        "Although the bridge opened in 1987, it was widened in 1992.",
        "Document 3 names 1987, but it gives no month. A tunnel followed in 1992.",
        "It looks like 1987, although the railway bridge is of 1992.",
    ],
)
def test_remarks_beside_a_right_answer_set_nothing_aside(reply: str) -> None:
    assert verdict(reply, ENGLISH[1]).right
