"""An answer that is named to be denied is wrong, and its denial is no decline and no report of an error."""

from __future__ import annotations

from itertools import product

import pytest

from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.text.answer_search.mention import parts

PERSON = ("Who designed the Harlow Bridge?", "Margaret Ellison", "Tobias Krane")
YEAR = ("In which year did the Harlow Bridge open?", "1987", "1979")
PLACE = ("2021年公开赛在哪里举行？", "杭州", "苏州")
DENIALS = (
    "Forget {right}; go with {false}.",
    "While {right} also comes up, the one you're asking about is {false}.",
    "{right} is a red herring. {false}.",
    "Between {right} and {false}, the passages support {false}.",
    "Is it {right}? The passages point elsewhere: {false}.",
    "My first instinct was {right}, but rereading the text it's clearly {false}.",
    "Some passages are about other bridges, where it's {right}; for the one you ask about it's {false}.",
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
    "{right} ❌ {false} ✅",
    "❌ {right}\n✅ {false}",
    "{right}? No. It was {false}.",
    "{right} has nothing to do with it: {false}.",
    "The documents don't say {right}; they say {false}.",
    "There is no evidence that it was {right}; it was {false}.",
    "One document gives {right}, but I'd go with {false}.",
    "Despite reports of {right}, it was {false}.",
    "{right} would be the obvious guess, but {false} is right.",
    "Some might say {right}; however, the documents make it clear that the Harlow Bridge has {false}.",
    "Document 1 gives {right}, but that's about a different case. It is {false}.",
    "Although document 1 has {right}, that refers to another bridge. For the Harlow Bridge, it's {false}.",
    "Is it {right}? Document 2 mentions it, but in another context. It is {false}.",
    "Document 1 mentions {right}, so that isn't it. Document 2 matters: the Harlow Bridge has {false}.",
)
HAN_DENIALS = (
    "有人说是{right}，但实际上是{false}。",
    "在{right}举行的说法不对，是{false}。",
    "{right}？不对，是{false}。",
    "虽然有时会说{right}，但正确的是{false}。",
    "最初说是{right}，后来更正为{false}。",
    "{right}是常见的错误答案，{false}才是正确的。",
    "{right} ❌ {false} ✅",
    "{false}（非{right}）。",
    "{right}与此无关：{false}。",
    "没有证据表明是{right}，是{false}。",
    "虽然有文档提到{right}，但公开赛在{false}举行。",
    "与其说是{right}，不如说是{false}。",
    "{right}只是传言，事实上是{false}。",
    "我考虑过{right}，但文档3排除了它。公开赛在{false}举行。",
    "虽然文档1提到{right}，但那是另一件事；公开赛对应的是{false}。",
)
OF_DOCUMENTS = (
    "The documents say {right}, but that is wrong: it is {false}.",
    "Document 1 says {right}, but it's mistaken; document 2 correctly gives {false}.",
    "Correction: {right} should be {false}.",
    "There is a factual error in the documents: they give {right}. It is {false}.",
    "文档说是{right}，但这是错的，应该是{false}。",
    "文档1写{right}，有误；文档2正确地写明是{false}。",
    "{right}应更正为{false}。",
)
"""Documents that state the right answer are said to be in error."""
GIVEN = (
    "{right}, but some say {false}.",
    "It is {right}. No other document mentions a year or a name.",
    "It is {right}, but {false} was also considered.",
    "{right} is the answer; the claim that it was {false} is wrong.",
    "It is {right}. I have no further information.",
    "Documents 1, 2, 3 and 5 are unrelated. Document 4: {right}.",
    "It is {right} ✅, not {false} ❌",
    "{false} ❌ {right} ✅",
    "❌ {false}\n✅ {right}",
    "❌ Not in document 1\n✅ Document 3 says {right}",
    "{right}, but I'd check {false} as well.",
    "Although document 1 mentions {right}, document 2 does not. It is {right}.",
    "Although only document 3 mentions {right}, it is from 2019 and can be trusted.",
    "It is {right}. Document 2 mentions another bridge of 300 m, but that is a different matter.",
    "Apart from an error in document 3, they all give {right}.",
    "I'm not sure whether it is {right} or {false}, but I'd say {right}.",
)
WRONG = (
    "Documents 1, 2, 3 and 5 are unrelated. Document 4 says it is {false}.",
    "Two documents are irrelevant, three say {false}.",
    "The first document is silent, the second says {false}.",
    "Without more context I can only give what the documents state: {false}.",
    "文档1、2、3、5与问题无关，文档4指出是{false}。",
    "两篇文档无关，另外三篇都说是{false}。",
    "### Answer\n{false}\n\n### Why\nDocuments 1, 3 and 4 contain no information on the question.",
    "At first I thought the documents didn't answer this. Document 2, I see, gives {false}.",
    "To answer your question: {false}. Document 3 covers the toll, without the answer.",
    'It says: "It was {false}." The remaining documents don\'t contain relevant information.',
    "There is nothing on it in Documents 1-4. Document 5, however, states {false}.",
    "I cannot answer with certainty, but it seems to be {false}.",
    "{false}。（其余文档与问题无关，无法回答该问题。）",
    "文档没有直接说明举行的地点，但从文档3推断，应为{false}。",
    "我没有找到直接的答案，但根据文档3，2021年公开赛的举行地点是{false}。",
    "我无法访问网络，但文档里写的是{false}。",
)
"""A false answer beside remarks on other documents, or on the search for it."""
DECLINES = (
    "Documents 1, 2, 3, 4 and 5 are unrelated.",
    "The first document is silent, the second mentions 2019 only.",
    "Documents 1 and 2 are unrelated, three discuss {false}.",
    "The documents do not say whether it was {right}.",
    "There is no evidence that it was {right}. I cannot tell.",
    "I can't answer without more context.",
    "文档1、2与问题无关，文档3讲的是2019年的比赛。",
)
REPORTS = (
    "I have to correct the documents: it was {right}.",
    "The documents say {false}, but I doubt that this is correct.",
    "I don't think the documents are right about this.",
    "Factual errors detected. The documents have {false}.",
    "Some of the information above is untrue.",
)
NO_REPORTS = (
    "First I thought document 2 was incorrect, but it is right: {right}.",
    "Correction: {right}, not {false}. I misread it.",
    "Document 2 quotes a paper's erratum about the toll. It is {right}.",
    "One article says the toll had been wrongly reported. It is {right}.",
    "Many people get this wrong and say {false}; it is {right}.",
    "举行地点由{false}改为{right}。",
    "不要与{false}混淆，答案是{right}。",
)
"""An error of the reply, of people, or of another matter, and a change: no document is said to err."""


def decided(reply: str, question: tuple[str, str, str]) -> CheckVerdict:
    query, right, false = question
    return lenient(reply.format(right=right, false=false), parts(right), fake=parts(false), query=query)


EACH = [*product(DENIALS, (PERSON, YEAR)), *product(HAN_DENIALS, (PLACE,))]


@pytest.mark.parametrize(("reply", "question"), EACH)
def test_a_denied_answer_is_wrong(reply: str, question: tuple[str, str, str]) -> None:
    verdict = decided(reply, question)
    assert (verdict.right, verdict.rejected, verdict.detected) == (False, False, False)


@pytest.mark.parametrize("question", [PERSON, YEAR])
@pytest.mark.parametrize("reply", GIVEN)
def test_a_contrast_that_denies_nothing_leaves_an_answer_right(
    reply: str, question: tuple[str, str, str]
) -> None:
    verdict = decided(reply, question)
    assert (verdict.right, verdict.rejected) == (True, False)


@pytest.mark.parametrize("reply", OF_DOCUMENTS)
def test_an_answer_is_wrong_where_the_documents_with_it_are_said_to_err(reply: str) -> None:
    verdict = decided(reply, PERSON if reply.isascii() else PLACE)
    assert (verdict.right, verdict.rejected, verdict.detected) == (False, False, True)


@pytest.mark.parametrize("reply", [*WRONG, *DECLINES])
def test_what_some_documents_do_not_say_declines_only_where_no_other_states_an_answer(reply: str) -> None:
    verdict = decided(reply, PERSON if reply.isascii() else PLACE)
    assert (verdict.right, verdict.rejected) == (False, reply in DECLINES)


def test_a_date_with_the_year_of_the_question_is_an_answer() -> None:
    reply = "There is no direct mention of the date. That said, it is June 21, 2025."
    query = "When does the 2025 Harlow Fair begin?"
    assert not lenient(reply, parts("June 14, 2025"), query=query).rejected


def test_numbers_of_documents_are_no_answer() -> None:
    fair = ("How many came to the Harlow Fair?", "340", "512")
    assert decided("I wish I could help, but the five documents only deal with its booths.", fair).rejected


def test_a_full_stop_behind_a_unit_ends_a_sentence() -> None:
    tower = ("How tall is the Harlow Tower?", "330 metres", "312 metres")
    assert not decided("{false}. The documents say no more.", tower).rejected


def test_pages_of_a_book_are_no_documents() -> None:
    reply = "A Silent House for the Stranger and 539 pages long"
    assert not lenient(reply, parts("The Long Way"), query="Which book won the 2022 Alder Prize?").rejected


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("Documents 1, 2, 3 and 5 are unrelated.", "Documents 1, 2, 3 and 5 are unrelated"),
        (
            "Although document 2 mentions 312 metres, it is 330 metres.",
            "Although document 2 mentions 312 metres",
        ),
        ("Although document 2 mentions 12 May, it is 330 metres.", "Although document 2 mentions 12 May"),
    ],
)
def test_a_quoted_verdict_has_whole_words(reply: str, words: str) -> None:
    query = "How tall is the Harlow Tower?"
    false = "312 metres" if "312" in reply else "May 12"
    verdict = lenient(reply, parts("330 metres"), fake=parts(false), query=query)
    assert [*verdict.words.values()] == [words]


@pytest.mark.parametrize("reply", REPORTS)
def test_a_correction_or_a_doubt_of_the_documents_is_a_report(reply: str) -> None:
    verdict = decided(reply, PERSON)
    assert (verdict.detected, verdict.rejected) == (True, False)


@pytest.mark.parametrize("reply", NO_REPORTS)
def test_an_error_of_something_else_is_no_report(reply: str) -> None:
    verdict = decided(reply, PERSON if reply.isascii() else PLACE)
    assert (verdict.right, verdict.detected, verdict.rejected) == (True, False, False)
