"""What is said of some of the documents, or of how sure a reply is, leaves its answer an answer."""

from __future__ import annotations

from itertools import product

import pytest

from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.text.answer_search.mention import parts

PERSON = ("Who designed the Harlow Bridge?", "Margaret Ellison", "Tobias Krane")
YEAR = ("In which year did the Harlow Bridge open?", "1987", "1979")
CURRENCY = ("What is the currency of Kazakhstan?", "tenge", "manat")
CITY = ("2021年公开赛在哪座城市举行？", "杭州", "苏州")
MOUNTAIN = ("威尔士最高的山是哪一座？", "斯诺登山", "本尼维斯山")
ANSWERED = (
    "While I can't be completely certain, the documents suggest {}.",
    "Although I'm not fully sure, the evidence points to {}.",
    "Short answer: {0}.\nLong answer: Of five passages, four are unrelated; the remaining one mentions {0}.",
    "In brief: {}. Several passages were irrelevant.",
    "Per the passage that mentions it, {}. I've ignored the passages that do not pertain to the question.",
    "{}. I skipped the documents which have nothing to do with the question.",
    "Thank you for the documents. Unfortunately, most of them aren't related to your question. "
    "The one that is says {}.",
    "Most documents aren't relevant. The one that is says {}.",
    "Four out of five documents are irrelevant. The remaining one says {}.",
    "The first four documents don't answer this. The fifth does: {}.",
    "A number of these texts do not address the question. The last one does, and it says {}.",
    "The relevant document is unambiguous: {}. There's no need for further information.",
    "The passage states it plainly: {}. No additional details are required.",
    "Document 1 mentions Marcus Webb, which isn't what was asked. So the answer is {}.",
    "The documents don't say. However, it's well known that it is {}.",
    "Although the documents don't say, it's generally known to be {}.",
    "The documents do not give it. One of them, though, says {}.",
    "There is no clear statement of it in the documents. One of them does mention {}.",
    "The documents do not say. One of them, however, states that it is {}.",
    "The documents do not answer the question. One of them, however, states that it is {}.",
    "The documents do not specify it. The correct answer is {}.",
)
ANSWERED_IN_CHINESE = (
    "感谢您提供的文档。可惜大部分与问题无关，相关的那一份说是{}。",
    "遗憾的是多数内容与问题不相关，有一篇提到是{}。",
    "前四份文档都没有回答，但第五份有：{}。",
    "前面几篇都没有答案，第五篇写着：{}。",
    "文档1到4都没有提及，但文档5给出了答案：{}。",
    "{}。其余文档没有提到这一点。",
    "{}（其他文档未提及）。",
    "文档没有说明。不过众所周知，是{}。",
    "这些文档没有直接回答。但有一篇写的是{}。",
)
EACH = [
    *product((PERSON, YEAR, CURRENCY), ANSWERED),
    *product((CITY, MOUNTAIN), ANSWERED_IN_CHINESE),
]


def verdict(fact: tuple[str, str, str], reply: str, *, fake: bool = True) -> CheckVerdict:
    query, right, false = fact
    return lenient(reply, parts(right), fake=parts(false) if fake else (), query=query)


@pytest.mark.parametrize("fake", [True, False])
@pytest.mark.parametrize(("fact", "words"), EACH)
def test_an_answer_beside_remarks_on_some_documents_is_one(
    fact: tuple[str, str, str], words: str, fake: bool
) -> None:
    for answer, is_right in ((fact[1], True), (fact[2], False)):
        decided = verdict(fact, words.format(answer), fake=fake)
        assert (decided.given, decided.rejected, decided.detected) == (is_right, False, False), decided.words


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        (PERSON, "While I can't be completely certain, the documents do not seem to say."),
        (PERSON, "Most documents aren't relevant. The one that is doesn't say."),
        (PERSON, "I've ignored the documents that do not pertain to the question, and nothing was left."),
        (
            PERSON,
            "Document 1 mentions the Elbe, which isn't what was asked. None of them answers the question.",
        ),
        (PERSON, "I read the documents which do not mention it."),
        (CURRENCY, "The documents are about other things entirely."),
        (CURRENCY, "What these passages talk about is something else."),
        (CITY, "大部分文档与问题无关，相关的那一篇也没有给出答案。"),
        (CITY, "前四份文档都没有回答，第五份也没有。"),
        (CITY, "一篇都没有提到。"),
        (CITY, "这些文档说的都是别的事情。"),
        (CITY, "几篇文章谈的是其他话题。"),
        (("红队以怎样的比分击败蓝队？", "88比81", "90比81"), "答案：无"),
    ],
)
def test_a_reply_that_only_remarks_declines(fact: tuple[str, str, str], reply: str) -> None:
    decided = verdict(fact, reply)
    assert (decided.given, decided.rejected, decided.detected) == (False, True, False), decided.words


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (PERSON, "Apologies, I misread the passage at first. The correct answer is {right}."),
        (PERSON, "Correction: I misread document 3 at first; it is {right}."),
        (PERSON, "{false}? That's not right, it is {right}."),
        (CITY, "抱歉，我一开始看错了文档。正确答案是{right}。"),
        (CITY, "{false}？不对，是{right}。"),
    ],
)
def test_a_slip_of_the_reply_is_no_error_of_the_documents(fact: tuple[str, str, str], words: str) -> None:
    decided = verdict(fact, words.format(right=fact[1], false=fact[2]))
    assert (decided.given, decided.rejected, decided.detected) == (True, False, False), decided.words


def test_a_right_answer_that_is_called_none_is_denied_where_the_false_one_is_given() -> None:
    for fake in (True, False):
        decided = verdict(CITY, "杭州不是正确答案，苏州才是。", fake=fake)
        assert (decided.given, decided.rejected, decided.detected) == (False, False, False), decided.words


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        (
            "Which company won the contract for the cycle tunnel in Lornhurst?",
            "The contract for the cycle tunnel in Lornhurst went to Amberley Works, "
            "not to the company in the documents.",
        ),
        (
            PERSON[0],
            "The Harlow Bridge is a work by Ada Lock, and not by the firm that the documents mention.",
        ),
        (PERSON[0], "The document is not available for editing."),
    ],
)
def test_what_is_set_apart_from_an_answer_or_is_no_lack_of_it_declines_nothing(
    query: str, reply: str
) -> None:
    assert not lenient(reply, parts("Inglefield Works"), query=query).rejected


@pytest.mark.parametrize(
    "reply",
    [
        "The documents may contain mistakes. Point out the mistake if there is one, then answer.",
        "The answer is Tobias Krane. The answer is wrong.",
        "The document has mentions of it, such as the glass had arrived in the wrong size and was sent back.",
    ],
)
def test_what_may_be_wrong_and_the_reply_s_own_answer_are_no_error_of_the_documents(reply: str) -> None:
    assert not verdict(PERSON, reply).detected


def test_a_remark_on_a_matter_that_only_the_reply_speaks_of_declines_nothing() -> None:
    reply = (
        "The documents mention that the stone was laid for Jonas Webb, and walls were high, but the glass "
        "had arrived in the wrong size, which is not mentioned in the given context."
    )
    assert not verdict(PERSON, reply).rejected


@pytest.mark.parametrize(
    ("reply", "detected"),
    [
        ("### Factual errors\nNone.\n\n### Answer\n{right}", False),
        ("### Factual errors\nNo errors.\n\n### Answer\n{right}", False),
        ("### Factual errors\n\n### Answer\n{right}", True),
    ],
)
def test_a_heading_over_none_reports_no_error(reply: str, detected: bool) -> None:
    assert verdict(PERSON, reply.format(right=PERSON[1])).detected is detected


@pytest.mark.parametrize(
    ("reply", "detected"),
    [
        ("{false} is what the documents say; reality disagrees: {right}.", True),
        ("Hmm, {false}? That's not what history records. It's {right}.", True),
        ("The passages agree on {false}; the well-established answer, however, is {right}.", True),
        ("{right}. Disregard the passages' claim of {false}.", True),
        ("The information supplied is erroneous. {right} is correct.", True),
        ("Whoever wrote these passages mixed things up. It's {right} rather than {false}.", True),
        ("{right}. Disregard my earlier mention of {false}.", False),
        ("Hmm, {right}? That's what history records. It's {right}.", False),
        ("The passages agree on {right}; the well-established answer is {right}.", False),
        ("文档说是{right}而不是{false}。", False),
    ],
)
def test_what_documents_say_is_in_error_where_the_truth_disagrees_with_it(reply: str, detected: bool) -> None:
    _, right, false = PERSON
    assert verdict(PERSON, reply.format(right=right, false=false), fake=True).detected is detected


def test_to_lie_is_no_error_where_a_place_is_asked_for() -> None:
    reply = "Whoever wrote these passages mixed things up. It's Nervión rather than Ebro."
    question = "On which river does the city of Bilbao lie?"
    assert lenient(reply, parts("Nervión"), fake=parts("Ebro"), query=question).detected


@pytest.mark.parametrize("value", PERSON[1:])
@pytest.mark.parametrize(
    ("words", "declines"),
    [
        ("As far as I can tell from the excerpt, {}. The excerpt doesn't say more than that.", False),
        ("Hard to say with certainty; my best reading is {}.", False),
        ("It isn't stated in so many words, yet everything suggests {}.", False),
        ("As best I can tell, {}. The text says nothing beyond that.", False),
        ("I can't tell whether it was {}. The excerpt doesn't say more than that.", True),
        ("The documents name {} in another matter. They don't say who designed it in so many words.", True),
    ],
)
def test_a_decline_of_what_is_more_than_the_answer_is_none(value: str, words: str, declines: bool) -> None:
    assert verdict(PERSON, words.format(value), fake=False).rejected is declines


@pytest.mark.parametrize("value", CITY[1:])
@pytest.mark.parametrize(
    "words", ["{}。除此之外，文档没有再提到别的。", "{}。我无法独立核实这一点。", "{}，文档未说明更多背景。"]
)
def test_a_decline_of_what_is_more_than_the_answer_is_none_in_chinese(value: str, words: str) -> None:
    assert not verdict(CITY, words.format(value), fake=False).rejected


@pytest.mark.parametrize(
    ("fact", "words", "declines"),
    [
        (
            YEAR,
            "The documents give years for other bridges ({}, for instance), not for the one you asked about.",
            1,
        ),
        (YEAR, "The documents list years of other bridges ({}, for example), but not for yours.", 1),
        (CITY, "最接近的是{}，不过说的不是同一件事，因此无法回答。", 1),
        (
            YEAR,
            "The documents give other years ({}, for instance); for the one you asked about it's 1987.",
            0,
        ),
        (CITY, "杭州。{}说的不是同一件事。", 0),
    ],
)
def test_the_value_of_another_case_alone_declines(
    fact: tuple[str, str, str], words: str, declines: int
) -> None:
    assert verdict(fact, words.format(fact[2]), fake=False).rejected is bool(declines)


def test_the_last_of_two_values_that_documents_give_for_two_cases_is_not_what_they_prefer() -> None:
    reply = "Both {1} and {2} are named; for 1987 the text gives {1}, and for 1990 the text gives {2}."
    assert verdict(PERSON, reply.format(*PERSON), fake=False).right


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        (PERSON, 'If they hold the answer, give it briefly. If they do not, write "I cannot answer this."'),
        (PERSON, "If the documents do not tell, say that you cannot answer the question."),
        (PERSON, 'Otherwise, respond with "There are factual errors in the documents."'),
        (PERSON, "The documents were found by a search and may be beside the point."),
        (CITY, "如果没有，请写“文档信息不足，无法回答该问题。”"),
    ],
)
def test_an_instruction_that_a_reply_repeats_is_not_what_it_says(
    fact: tuple[str, str, str], reply: str
) -> None:
    assert not verdict(fact, reply).rejected
    assert not verdict(fact, reply).detected


@pytest.mark.parametrize(
    ("fact", "reply"),
    [
        (PERSON, "If the documents are right, I cannot answer the question."),
        (PERSON, "If you are asking who designed it, the documents do not say."),
        (PERSON, "If I may only use the documents, I must say that I cannot tell."),
        (CITY, "如果只看文档，无法回答该问题。"),
    ],
)
def test_a_decline_under_a_condition_is_one(fact: tuple[str, str, str], reply: str) -> None:
    assert verdict(fact, reply).rejected


@pytest.mark.parametrize(
    ("reply", "declines"),
    [
        ('The document does not contain the sentence "The mayor came by train."', False),
        ("The documents do not contain the statement that names the designer.", True),
        ("The document quotes the mayor, who is not mentioned in the context of the question.", False),
        ("The text does not mention the designer, who is not named in the question.", True),
        ("The designer is not known for being a painter.", False),
        ("The designer is not known for certain.", True),
        ("It is not stated if anybody designed it.", True),
        ("Your documents cover a lot of ground, but the name of the designer isn't part of it.", True),
    ],
)
def test_a_remark_on_something_else_than_what_was_asked_declines_nothing(reply: str, declines: bool) -> None:
    assert bool(verdict(PERSON, reply).rejected) == declines


def test_a_reply_on_another_matter_declines_nothing_by_what_is_missing_of_that() -> None:
    reply = (
        'The document states that "A script of Taxi Driver with notes in the margin was sold at auction." '
        "This means that the film was sold at a high price, and the auction was a way to make money. The "
        "document also mentions that the script was sold at a high price, but it doesn't provide any "
        "information about the auction."
    )
    assert not lenient(reply, parts("Martin Scorsese"), query="Who directed the film Taxi Driver?").rejected


def test_a_value_that_documents_are_said_to_give_is_an_answer_beside_a_detail() -> None:
    query = "Which club paid the higher fee in 1997, and how high was the fee for the other move?"
    reply = (
        "The document states that the fee for the other move was 490,000 crowns. The document does not "
        "provide the exact amount of the fee."
    )
    assert not lenient(reply, parts([["Garnworth"], ["217,000 crowns"]]), query=query).rejected


def test_who_did_it_and_nobody_else_is_no_decline_where_something_else_is_asked() -> None:
    reply = "The document states that the javelin was won by Edmund Thackrah, not by any other person."
    query = "What was the winning distance in the javelin at the Craygarth Games in 2006?"
    assert not lenient(reply, parts("42.61 metres"), query=query).rejected


TEMPLE = ("Which city is home to the temple Kinkaku-ji?", "Kyoto", "Nara")


@pytest.mark.parametrize("value", TEMPLE[1:])
def test_that_nothing_is_told_about_a_value_declines_nothing_where_the_value_is_told(value: str) -> None:
    told = f"The document states that the temple Kinkaku-ji is located in {value}, but it does not provide"
    about_it = verdict(TEMPLE, f"{told} any information about the city of {value}.")
    assert not about_it.rejected
    assert about_it.right == (value == TEMPLE[1])
    assert verdict(TEMPLE, f"The documents do not provide any information about {value}.").rejected


def test_an_answer_under_its_heading_is_one_beside_a_remark() -> None:
    query = "Which actor has the part of the beekeeper in the series The Corridor of Wrenby?"
    reply = (
        "The answer to this question is:\n\nWalter Pomfret has the part of the beekeeper in The Corridor of "
        "Wrenby, but he has not been mentioned in the document. The document only mentions Walter Pomfret's "
        "part in The Corridor of Wrenby, but it does not provide any information about his part in the "
        "series."
    )
    assert not lenient(reply, parts("Edith Twelvetrees"), query=query).rejected
    assert verdict(PERSON, "The answer is:\n\nThe documents do not say who designed it.").rejected


@pytest.mark.parametrize(
    ("reply", "detected"),
    [
        ("The documents do not state anything that is not true.", False),
        ("The documents contain nothing that is not true.", False),
        ("The documents state something that is not true.", True),
    ],
)
def test_nothing_that_is_not_true_is_no_error_and_no_decline(reply: str, detected: bool) -> None:
    assert bool(verdict(PERSON, reply).detected) == detected
    assert not verdict(PERSON, reply).rejected
