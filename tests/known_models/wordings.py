"""How a model words a reply: the same content in the ways that models of today write it.

A wording changes nothing of what is said. So whoever reads the replies finds the same answer right, wrong,
declined or reported in all of them, and an instrument that finds otherwise measures the wording.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

Parts: TypeAlias = Sequence[str]
"""The parts of an answer, each in one spelling."""


class Wording(NamedTuple):
    """One way to write replies in one language. `turn` varies a form where there are several."""

    name: str
    lang: str
    answer: Callable[[Parts, int], str]
    """Gives an answer, right or wrong: the words are the same."""
    decline: Callable[[int], str]
    """Says that the documents do not answer the question."""
    report: Callable[[Parts, Parts, int], str]
    """Says that the documents are wrong about the second, and gives the first."""


def _choose(forms: Sequence[str], turn: int, **slots: str) -> str:
    text = forms[turn % len(forms)]
    for name, value in slots.items():
        text = text.replace(f"<{name}>", value)
    return text


def _joined(parts: Parts, word: str = " and ") -> str:
    return word.join(parts)


# English

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_words(number: int) -> str:
    """`439` as four hundred and thirty-nine."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
    for size, name in ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred")):
        if number >= size:
            head, rest = divmod(number, size)
            link = " and " if rest and rest < 100 else " "
            return f"{number_words(head)} {name}" + (f"{link}{number_words(rest)}" if rest else "")
    raise AssertionError(number)


def other_form(part: str) -> str:
    """The same date, score, amount or number in another usual form."""
    if date := re.fullmatch(rf"(\d+) ({'|'.join(_MONTHS)}) (\d{{4}})", part):
        day, month, year = date.groups()
        ending = "th" if day in ("11", "12", "13") else {"1": "st", "2": "nd", "3": "rd"}.get(day[-1], "th")
        return f"{month} {day}{ending}, {year}"
    if score := re.fullmatch(r"(\d+)–(\d+)", part):
        return f"{number_words(int(score[1]))} to {number_words(int(score[2]))}"
    if length := re.fullmatch(r"(\d+)\.(\d+) metres", part):
        return f"{number_words(int(length[1]))} point {' '.join(_ONES[int(digit)] for digit in length[2])} m"
    if amount := re.fullmatch(r"([\d.]+) million crowns", part):
        return f"{round(float(amount[1]) * 1_000_000):,} crowns"
    if number := re.fullmatch(r"([\d,]+)( [a-z]+)?", part):
        value = int(number[1].replace(",", ""))
        is_year = len(number[1]) == 4 and not number[2]
        return part if is_year else number_words(value) + (number[2] or "")
    return part


_DECLINE_PLAIN = ("I cannot answer the question because of insufficient information in the documents.",)
_DECLINE_TODAY = (
    "The documents don't say.",
    "None of the documents answers this question.",
    "I looked through all of them, but the provided documents do not contain this information.",
    "There's no mention of that in the passages you shared, so I can't give you an answer.",
    "Unfortunately, that isn't covered by any of the sources.",
    "Based on the documents alone, it is not possible to determine this.",
)
_REPORT_PLAIN = ("There are factual errors in the documents. The right answer is <right>.",)
_REPORT_TODAY = (
    "The documents say <wrong>, but that is incorrect. It is <right>.",
    "Note that the passages are mistaken: the correct answer is <right>, not <wrong>.",
    "Contrary to what the documents claim, the answer is <right>; the statement about <wrong> is false.",
    "The documents contain an error here. The answer is <right> rather than <wrong>.",
)

_ENGLISH_ANSWERS: dict[str, tuple[str, ...]] = {
    "plain": ("<answer>", "<answer>.", "The answer is <answer>."),
    "paraphrase": (
        "According to the documents, it was <answer>.",
        "It's <answer>, as the second document reports.",
        "From what I can see in the sources, <answer> is what you are looking for.",
        "That would be <answer>. The documents mention other details too, but none of them matters here.",
    ),
    "markdown": (
        "**Answer:** <answer>",
        "### Answer\n\n- **<answer>** (see the documents)\n",
        "Based on the search results:\n\n* The answer is **<answer>**.\n* Other documents are not relevant.",
    ),
    "other forms": ("It was <answer>.", "The documents give <answer>."),
    "reasoning in tags": (
        "<think>The question is about one thing. Document 1 is not about it, and document 2 does not "
        "mention it either. Another one does.</think>\n\n<answer>",
        "<think>Let me look. Not the first one. I cannot find it in the third either... wait, here it is."
        "</think>It is <answer>.",
    ),
    "reasoning aloud": (
        "Let me go through the documents one by one. The first does not mention it. The next one is about "
        "something else. The last one answers the question directly.\n\nTherefore, the answer is <answer>.",
        "I need to find what the question asks for. Some documents have insufficient information, and one "
        "has it. So the final answer is: <answer>.",
    ),
}


def _english(name: str) -> Wording:
    plain, forms = name == "plain", _ENGLISH_ANSWERS[name]
    declines = _DECLINE_PLAIN if plain else _DECLINE_TODAY
    reports = _REPORT_PLAIN if plain else _REPORT_TODAY
    spell = other_form if name == "other forms" else str
    lead = ""
    if name == "reasoning in tags":
        lead = "<think>Which document has it? I will compare them with what I know.</think>\n"
    elif name == "reasoning aloud":
        lead = "Let me check the documents one by one. I have now read all of them.\n\n"

    def answer(parts: Parts, turn: int) -> str:
        return _choose(forms, turn, answer=_joined([spell(part) for part in parts]))

    def report(right: Parts, wrong: Parts, turn: int) -> str:
        return lead + _choose(reports, turn, right=_joined(right), wrong=_joined(wrong))

    return Wording(name, "en", answer, lambda turn: lead + _choose(declines, turn), report)


# Chinese

_ZH_ANSWERS: dict[str, tuple[str, ...]] = {
    "中文": ("<answer>", "<answer>。", "答案是<answer>。"),
    "中文，今天的说法": (
        "根据文档，答案是<answer>。",
        "**答案**：<answer>",
        "文档中提到的是<answer>，其他几篇与问题无关。",
        "我逐一看了这些文档，第一篇没有提到，后面一篇写得很清楚。所以答案是<answer>。",
    ),
}
_ZH_DECLINES = {
    "中文": ("文档信息不足，无法回答该问题。",),
    "中文，今天的说法": (
        "文档中没有提到这一点。",
        "这些资料里找不到答案，所以我无法作答。",
        "提供的文档并未包含相关信息。",
        "仅凭这些文档无法确定。",
    ),
}
_ZH_REPORTS = {
    "中文": ("文档存在事实性错误。正确答案是<right>。",),
    "中文，今天的说法": (
        "文档说是<wrong>，但这是错误的，应该是<right>。",
        "这些文档的说法与事实不符：正确答案是<right>，而不是<wrong>。",
        "文档有误，实际上是<right>。",
    ),
}


def _chinese(name: str) -> Wording:
    return Wording(
        name,
        "zh",
        lambda parts, turn: _choose(_ZH_ANSWERS[name], turn, answer=_joined(parts, "和")),
        lambda turn: _choose(_ZH_DECLINES[name], turn),
        lambda right, wrong, turn: _choose(
            _ZH_REPORTS[name], turn, right=_joined(right, "和"), wrong=_joined(wrong, "和")
        ),
    )


WORDINGS = {
    wording.name: wording for wording in (*map(_english, _ENGLISH_ANSWERS), *map(_chinese, _ZH_ANSWERS))
}
