"""An answer that is named to be denied is wrong, and its denial is no decline and no report of an error."""

from __future__ import annotations

import pytest

from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.text.answer_search.mention import parts

PERSON = ("Who designed the Harlow Bridge?", "Margaret Ellison", "Tobias Krane")
YEAR = ("In which year did the Harlow Bridge open?", "1987", "1979")
PLACE = ("2021年公开赛在哪里举行？", "杭州", "苏州")
DENIALS = (
    "Some say {right}, but the correct answer is {false}.",
    "{right} is often given, but wrongly: it is {false}.",
    "It isn't true that it was {right}.",
    "It is false that the answer is {right}; it is {false}.",
    "The claim that it was {right} is a myth; it was {false}.",
    "There is no truth in the claim that it was {right}: it was {false}.",
    "One might assume that it was {right}, but this is wrong. It was {false}.",
    "It was {false}. People sometimes say {right}, which is an error.",
    "I would have guessed {right}, yet it is {false}.",
    "{right}? No: {false}.",
    "{right} is not the answer. {false} is.",
    "It was initially {right}, but the final answer is {false}.",
    "- ~~{right}~~\n- {false}",
    "Wrong: {right}. Right: {false}.",
)
HAN_DENIALS = (
    "有人说是{right}，但实际上是{false}。",
    "在{right}举行的说法不对，是{false}。",
    "{right}？不对，是{false}。",
    "虽然有时会说{right}，但正确的是{false}。",
    "最初说是{right}，后来更正为{false}。",
    "{right}是常见的错误答案，{false}才是正确的。",
)
GIVEN = (
    "{right}, but some say {false}.",
    "It is {right}. No other document mentions a year or a name.",
    "It is {right}, but {false} was also considered.",
    "{right} is the answer; the claim that it was {false} is wrong.",
    "It is {right}. I have no further information.",
    "Documents 1, 2, 3 and 5 are unrelated. Document 4: {right}.",
)
REPORTS = (
    "I have to correct the documents: it was {right}.",
    "The documents say {false}, but I doubt that this is correct.",
    "I don't think the documents are right about this.",
)


@pytest.mark.parametrize(("query", "right", "false"), [PERSON, YEAR])
@pytest.mark.parametrize("reply", DENIALS)
def test_a_denied_answer_is_wrong(reply: str, query: str, right: str, false: str) -> None:
    verdict = lenient(reply.format(right=right, false=false), parts(right), fake=parts(false), query=query)
    assert not verdict.right
    assert not verdict.rejected
    assert not verdict.detected


@pytest.mark.parametrize("reply", HAN_DENIALS)
def test_a_denied_answer_is_wrong_in_chinese(reply: str) -> None:
    query, right, false = PLACE
    verdict = lenient(reply.format(right=right, false=false), parts(right), fake=parts(false), query=query)
    assert not verdict.right
    assert not verdict.rejected
    assert not verdict.detected


@pytest.mark.parametrize(("query", "right", "false"), [PERSON, YEAR])
@pytest.mark.parametrize("reply", GIVEN)
def test_a_contrast_that_denies_nothing_leaves_an_answer_right(
    reply: str, query: str, right: str, false: str
) -> None:
    verdict = lenient(reply.format(right=right, false=false), parts(right), fake=parts(false), query=query)
    assert verdict.right
    assert not verdict.rejected


@pytest.mark.parametrize("reply", REPORTS)
def test_a_correction_or_a_doubt_of_the_documents_is_a_report(reply: str) -> None:
    query, right, false = PERSON
    verdict = lenient(reply.format(right=right, false=false), parts(right), fake=parts(false), query=query)
    assert verdict.detected
    assert not verdict.rejected
