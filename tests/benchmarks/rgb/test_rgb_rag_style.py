"""What a reply makes of documents, in the wordings of chat models that answer from them."""

from __future__ import annotations

import re

import pytest

from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.text.answer_search.mention import parts

FILM = ("Who directed the film Harbor of Glass?", "Ingrid Solheim", "Pavel Dvorak")
HAN_FILM = ("电影《玻璃港湾》的导演是谁?", "林若溪", "陈志远")


def verdict(asked: tuple[str, str, str], reply: str, *, fake: bool = True) -> CheckVerdict:
    query, right, false = asked
    rival = parts(false) if fake else ()
    return lenient(reply.format(right=right, false=false), parts(right), fake=rival, query=query)


# Documents that disagree

DISAGREE = (
    "The documents contradict each other: Document 1 says {false}, while Document 3 says {right}.",
    "The documents are inconsistent on this point. Most say {false}, so I would go with {false}.",
    "The documents disagree: Document 1 names {false}, Document 3 {right}. I go with {right}.",
    "There is conflicting information in the documents: {false} in Document 1 and {right} in Document 3.",
    "The provided documents give conflicting answers ({false} in Document 1, {right} in Document 4).",
    "The sources conflict with each other on who directed Harbor of Glass.",
    "The documents do not agree on who directed the film: one says {false}, another {right}.",
    "There's a discrepancy between the documents: Document 2 says {false}, Document 3 {right}.",
    "There is a contradiction between Document 1 ({false}) and Document 3 ({right}).",
    "Documents 1 and 3 contradict one another about the director.",
    "Note that the sources are contradictory here. The director is {right}.",
    "I noticed that the documents contradict each other regarding the director: {false} vs. "
    "{right}. It is {right}.",
    "The answer is {right}, though the documents disagree on this: Document 2 says {false}.",
    "{right}. Note: there is conflicting information; Document 1 says it was {false}.",
    "The documents conflict: Document 1 says {false} and Document 2 says {right}.",
    "The documents conflict on this question. Based on Document 2, it was {false}.",
    "The documents offer conflicting accounts of who directed it. Three say {false}, two say {right}.",
    "Document 1 contradicts Document 3: the former says {false}, the latter {right}.",
    "The documents differ on who directed the film: {false} according to Document 1, {right} "
    "according to Document 3.",
    "The documents give different answers: Document 1 says {false}; Document 3 says {right}.",
)
AGREE = (
    "{right}. The documents disagree about the budget, but that is another matter.",
    "The documents contradict each other about the cost of the set, but all of them say that "
    "{right} directed the film.",
    "The documents do not contradict each other: {right} directed it.",
    "There is no contradiction between the documents; all name {right}.",
    "Critics disagree about the film, which {right} directed.",
    "{right} directed it. She and the producer disagreed over the ending.",
    "All documents agree: {right}.",
    "The documents are consistent: {right}.",
    "{right} directed the film. The documents give conflicting release dates, though.",
    "{right}. Document 2 mentions a conflict between the crew and the studio.",
    "The documents differ in length, but all name {right}.",
)
HAN_DISAGREE = (
    "各文档之间相互矛盾:文档1说是{false},文档3说是{right}。正确答案是{right}。",
    "文档之间说法不一：文档1说是{false}，文档3说是{right}。",
    "各文档的说法存在冲突。多数文档说是{false}，因此选{false}。",
    "文档1与文档3相互矛盾，前者说导演是{false}，后者说是{right}。",
    "文档中的信息不一致，有的说是{false}，有的说是{right}。",
    "关于导演是谁，各文档说法不一。",
    "这几篇文档彼此矛盾：{false}、{right}都有出现。",
    "文档之间存在矛盾，文档2为{false}，文档4为{right}。答案应为{right}。",
    "答案是{right}。不过各文档对此说法不一致，文档1写的是{false}。",
    "资料之间存在不一致之处：文档1称{false}，文档2称{right}。",
    "文档之间存在分歧：文档1认为是{false}，文档2认为是{right}。",
)
HAN_AGREE = (
    "各文档对票房的说法不一，但导演都写的是{right}。",
    "文档之间没有矛盾，导演是{right}。",
    "各文档一致：导演是{right}。",
    "导演是{right}，影片讲述了两家人的矛盾。",
    "文档1和文档2对上映日期的说法不一致，不过导演都是{right}。",
    "{right}与制片人意见不一，但仍由她导演了这部电影。",
)


@pytest.mark.parametrize(
    ("asked", "reply", "reports"),
    [
        *((FILM, reply, True) for reply in DISAGREE),
        *((FILM, reply, False) for reply in AGREE),
        *((HAN_FILM, reply, True) for reply in HAN_DISAGREE),
        *((HAN_FILM, reply, False) for reply in HAN_AGREE),
    ],
)
def test_documents_that_disagree_on_what_was_asked_are_a_report(
    asked: tuple[str, str, str], reply: str, reports: bool
) -> None:
    decided = verdict(asked, reply)
    assert decided.detected is reports
    if reports:
        assert decided.words["detected"] in reply.format(right=asked[1], false=asked[2])


# Documents gone through one by one, and remarks on what is beside the question

BESIDE = (
    "It is {right}. The documents also cover the history and the construction costs, but that is "
    "not relevant here.",
    "{right}. The other documents don't address this question directly.",
    "**{right}**\n\nDocument 2 also discusses the early years, but that is irrelevant to the question.",
    "Document 1: about the builders; no answer here.\nDocument 2: unrelated.\nDocument 3: states "
    "that it is {right}.\n\nSo the answer is {right}.",
    "- Document 1: no relevant information.\n- Document 2: does not mention it.\n- Document 3: "
    "gives {right}.\n- Document 4: not relevant.\n\n**Answer:** {right}",
    "Going through the documents:\nDocument 1 does not answer the question.\nDocument 2 does not "
    "mention it either.\nDocument 4 says {right}.\nThe answer is {right}.",
    "Based on Document 4, the answer is {right}. The remaining documents do not contain relevant "
    "information.",
    "The answer is {right}. The other documents cover different topics and don't answer the question.",
    "[Document 1] Not relevant.\n[Document 2] Not relevant.\n[Document 3] {right}.\nAnswer: {right}",
    "Doc 1: no mention. Doc 2: no mention. Doc 3: it is {right}. Final answer: {right}.",
)
NOTHING = (
    "Document 1: about the builders; no answer here.\nDocument 2: unrelated.\nDocument 3: does "
    "not mention it.",
    "Document 1: no answer.\nDocument 2: no answer.\n\nTherefore, I cannot answer the question.",
    "- Document 1: no relevant information.\n- Document 2: does not mention it.\n\nThe documents "
    "do not contain the answer.",
    "The documents cover the history and the construction costs, but that is not relevant here.",
    "I checked each document.\nDocument 1: talks about the staff.\nDocument 2: talks about "
    "tickets.\nNone of them answers the question.",
)
BRIDGE = ("How long is the Kessel Bridge?", "1,420 metres", "1,180 metres")


@pytest.mark.parametrize("asked", [FILM, BRIDGE])
@pytest.mark.parametrize("reply", BESIDE)
def test_remarks_on_single_documents_decline_nothing(asked: tuple[str, str, str], reply: str) -> None:
    for fake in (True, False):
        decided = verdict(asked, reply, fake=fake)
        assert (decided.right, decided.rejected, decided.detected) == (True, False, False), decided.words
        assert not verdict(asked, reply.replace("{right}", "{false}"), fake=fake).rejected


@pytest.mark.parametrize("asked", [FILM, BRIDGE])
@pytest.mark.parametrize("reply", NOTHING)
def test_documents_of_which_none_answers_decline(asked: tuple[str, str, str], reply: str) -> None:
    decided = verdict(asked, reply)
    assert (decided.right, decided.rejected, decided.detected) == (False, True, False), decided.words


# Yes and no in a sentence

DAM = ("Is the Marlin Valley dam still in operation?", ("No",))
LAPTOP = ("Does the Atlas 5 laptop have a touchscreen?", ("Yes",))
DESIGNED = ("Was the Orley Bridge designed by Ada Lock?", ("No",))
HAN_DAM = ("马岭水库现在还在使用吗?", ("否", "不在使用", "没有", "已停用", "不再使用"))


@pytest.mark.parametrize(
    ("asked", "kind", "reply"),
    [
        (DAM, "right", "The Marlin Valley dam is no longer in operation; it was closed in 2009."),
        (
            DAM,
            "right",
            "Looking at the documents provided, I can see that no, the Marlin Valley dam is not in "
            "operation. The other documents don't address this question directly.",
        ),
        (DAM, "right", "The dam is not in operation any more."),
        (DAM, "right", "The Marlin Valley dam has not been in operation since 2009."),
        (
            DAM,
            "right",
            "According to Document 2, the dam is no longer in operation. The other documents do not "
            "mention this.",
        ),
        (DAM, "wrong", "The Marlin Valley dam is still in operation."),
        (DAM, "wrong", "Yes, it is still in operation."),
        (DAM, "wrong", "Yes. There is no indication that the dam was closed."),
        (DAM, "declines", "The documents do not say whether the Marlin Valley dam is still in operation."),
        (DAM, "declines", "There is no information on whether the dam is still in operation."),
        (DAM, "declines", "The documents don't mention that the Marlin Valley dam is in operation."),
        (DAM, "declines", "I cannot determine whether the dam is in operation."),
        (DAM, "declines", "It is not clear whether the dam is still in operation."),
        (DAM, "declines", "No document states whether the Marlin Valley dam is still in operation."),
        (
            DAM,
            "right",
            "The documents say that the dam is still in operation, but this is wrong: it is no longer in "
            "operation.",
        ),
        (LAPTOP, "right", "Based on the documents, the Atlas 5 does have a touchscreen."),
        (LAPTOP, "right", "The Atlas 5 laptop has a touchscreen."),
        (LAPTOP, "right", "Yes, it does."),
        (LAPTOP, "wrong", "The Atlas 5 does not have a touchscreen."),
        (LAPTOP, "wrong", "No, the Atlas 5 doesn't have a touchscreen."),
        (LAPTOP, "declines", "The documents do not mention a touchscreen for the Atlas 5."),
        (LAPTOP, "declines", "None of the documents says whether the Atlas 5 has a touchscreen."),
        (
            LAPTOP,
            "right",
            "The Atlas 5 has a touchscreen, according to Document 3; the other documents don't mention it.",
        ),
        (
            LAPTOP,
            "declines",
            "The documents describe the Atlas 5 laptop, but don't say if it has a touchscreen.",
        ),
        (DESIGNED, "right", "The Orley Bridge was not designed by Ada Lock; Ben Moor designed it."),
        (DESIGNED, "wrong", "The Orley Bridge was designed by Ada Lock."),
        (DESIGNED, "right", "No, it was designed by Ben Moor."),
        (HAN_DAM, "declines", "根据提供的文档,没有提到马岭水库是否仍在使用。"),
        (HAN_DAM, "declines", "很抱歉,提供的文档中没有包含关于马岭水库是否仍在使用的信息。"),
        (
            HAN_DAM,
            "right",
            "虽然大部分文档没有直接提到马岭水库是否仍在使用,但文档4指出,马岭水库已经不再使用。",
        ),
        (HAN_DAM, "right", "没有,马岭水库已停用。"),
        (HAN_DAM, "wrong", "马岭水库仍在使用。"),
        (HAN_DAM, "right", "马岭水库现在没有在使用。"),
        (
            HAN_DAM,
            "declines",
            "从给出的材料来看,并没有明确的答案。文档提到水库建于1958年,但与问题无直接关系。",
        ),
    ],
)
def test_yes_and_no_are_given_by_a_sentence_of_the_words_of_the_question(
    asked: tuple[str, tuple[str, ...]], kind: str, reply: str
) -> None:
    query, answers = asked
    decided = lenient(reply, (answers,), query=query)
    assert (decided.right, decided.rejected) == (kind == "right", kind == "declines"), decided.words
    assert decided.parts == (int(decided.right),) or kind == "wrong"


# The right value in another role than was asked for

ROLES = (
    (*FILM, "Harbor of Glass was directed by {}", "{} wrote the screenplay"),
    (
        "When was the Larkfield Observatory founded?", "1874", "1891",
        "the Larkfield Observatory was founded in {}", "{} is when the land was purchased",
    ),
    (
        "Where was the composer Anselm Ruiz born?", "Lima", "Quito",
        "Anselm Ruiz was born in {}", "he gave his first concert in {}",
    ),
    (
        "How many seasons of The Night Ferry are there?", "four", "six",
        "The Night Ferry has {} seasons", "{} is the number of awards it won",
    ),
    (*HAN_FILM, "《玻璃港湾》的导演是{}", "{}写了剧本"),
    ("青石大桥全长多少米?", "1420米", "1180米", "青石大桥全长{}", "引桥长{}"),
)  # fmt: skip
OTHER_ROLE = (
    "{asked}, whereas {beside}.",
    "{asked}, while {beside}.",
    "Although {beside}, {asked}.",
    "While {beside}, {asked}.",
    "{asked}. {beside}.",
    "{beside}. {asked}.",
    "According to Document 2, {asked}; {beside}.",
    "{asked}. In contrast, {beside}.",
    "{asked} (note that {beside}).",
    "I found two values. {beside}. {asked}.",
    "{asked}. Document 1 adds that {beside}.",
    "Document 4 tells us that {beside}. Document 2 says that {asked}.",
)
HAN_OTHER_ROLE = (
    "{asked}，而{beside}。",
    "虽然{beside}，但{asked}。",
    "{asked}。另外，{beside}。",
    "{beside}。{asked}。",
    "根据文档2，{asked}；{beside}。",
    "尽管{beside}，{asked}。",
    "{asked}（{beside}）。",
    "文档4提到{beside}。文档2指出，{asked}。",
    "{beside}，不过{asked}。",
)


def _sentences(text: str) -> str:
    return re.sub(r"(?:^|(?<=\. ))[a-z]", lambda match: match[0].upper(), text)


@pytest.mark.parametrize("fake", [True, False])
@pytest.mark.parametrize("role", ROLES)
def test_a_value_in_another_role_is_not_the_one_that_is_given(
    role: tuple[str, str, str, str, str], fake: bool
) -> None:
    query, right, false, asked, beside = role
    for reply in OTHER_ROLE if query.isascii() else HAN_OTHER_ROLE:
        text = _sentences(reply.format(asked=asked.format(false), beside=beside.format(right)))
        assert not verdict((query, right, false), text, fake=fake).right, text
        text = _sentences(reply.format(asked=asked.format(right), beside=beside.format(false)))
        assert verdict((query, right, false), text, fake=fake).right, text


@pytest.mark.parametrize("fake", [True, False])
def test_a_value_that_is_called_merely_something_else_is_not_given(fake: bool) -> None:
    asked = ("第19届亚运会在哪个城市举办？", "杭州", "广州")
    assert not verdict(asked, "第19届亚运会在{false}举办，{right}只是当时的候选城市之一。", fake=fake).right
    assert not verdict(asked, "第19届亚运会在{false}举办，而{right}只是浙江的省会。", fake=fake).right
    assert verdict(asked, "第19届亚运会在{right}举办，{false}只是当时的候选城市之一。", fake=fake).right
    assert verdict(asked, "第19届亚运会在{right}举办，{right}只是浙江的城市之一。", fake=fake).right


@pytest.mark.parametrize("fake", [True, False])
def test_the_half_of_a_clause_with_the_verb_of_the_question_decides(fake: bool) -> None:
    asked = ("When did the Tarn strike end?", "March 1926", "May 1927")
    assert not verdict(asked, "It began in {right} and ended in {false}.", fake=fake).right
    assert verdict(asked, "It began in {false} and ended in {right}.", fake=fake).right


def test_documents_that_a_reply_contradicts_leave_the_answer_in_words_of_its_own_right() -> None:
    for reply in (
        "The documents say that Harbor of Glass was directed by {false}. However, film catalogues "
        "list {right}.",
        "The documents say that Harbor of Glass was directed by {false}, which is wrong; {right} shot it.",
        "According to the documents, Harbor of Glass was directed by {false}, but {right} stood "
        "behind the camera.",
    ):
        assert verdict(FILM, reply).right, reply


# The right value denied, another given in its place, and then named once more

NAMED_AGAIN = (
    "It is {false}, not {right}. {right} is well known, too.",
    "It is {false}, not {right}. Document 2 mentions {right}.",
    "The answer is not {right}. It is {false}. {right} is mentioned in Document 3.",
    "The documents don't say {right}; they say {false}. {right} is in a list of Document 3.",
    "It was not {right} but {false}. In Document 4, {right} is named in passing.",
    "{false}, rather than {right}. {right} appears in another document.",
    "It is {false} and not {right}. The name {right} is only in the second document.",
    "The film is by {false}, but it is not by {right}. The work of {right} is in the south.",
)
GIVEN = (
    "It is {right}, not {false}. {false} is well known, too.",
    "It was not {false} but {right}. In Document 4, {false} is named in passing.",
    "It is not {right}, you might think, but it is {right} after all.",
    "Some say it is not {right}. But the answer is {right}.",
    "It is not {false}. It is {right}. Document 3 confirms {right}.",
    "I first thought it was not {right}. Document 2 says that it is {right}.",
    "Is it {false}? No, it is {right}. {false} is another one.",
    "Not only {right} is named: {false} is, too. The answer is {right}.",
    "Document 1 says it isn't {right}, but this is wrong. It is {right}.",
)

CALLED_AN_ERROR = (
    (FILM, "The documents are inconsistent: some of them give {}, which is an error. {} directed the film."),
    (FILM, "One of the articles gives {}. That is a mistake; {} directed Harbor of Glass."),
    (FILM, "Some of them name {}, which is a mistake. The director was {}."),
    (FILM, "Document 2 lists {} as the director. This is incorrect. {} directed Harbor of Glass."),
    (HAN_FILM, "文档有误，其中写的是{}，正确答案应该是{}。"),
)
CONCEDED = (
    (FILM, "Many people would say {}, but the correct answer is actually {}."),
    (HAN_FILM, "有人认为是{}，但根据文档1，《玻璃港湾》由{}执导。"),
    (HAN_FILM, "虽然早期报道称是{}，但最新文档表明，《玻璃港湾》由{}执导。"),
    (HAN_FILM, "很多人会回答{}，但正确答案是{}。"),
)
TWO_CONCEDED = (
    "They say {}, but the correct answer is {}.",
    "Earlier reports pointed to {}. The latest document, however, makes clear that {} played.",
    "The teams {} are mentioned in Document 3, but the answer is {}.",
)


@pytest.mark.parametrize("fake", [True, False])
@pytest.mark.parametrize(("asked", "reply"), [*CALLED_AN_ERROR, *CONCEDED])
def test_a_value_that_is_called_an_error_or_conceded_is_not_given(
    asked: tuple[str, str, str], reply: str, fake: bool
) -> None:
    _, right, false = asked
    assert not verdict(asked, reply.format(right, false), fake=fake).right
    assert verdict(asked, reply.format(false, right), fake=fake).right
    if fake and (asked, reply) in CALLED_AN_ERROR:
        assert verdict(asked, reply.format(right, false)).detected


@pytest.mark.parametrize("fake", [True, False])
@pytest.mark.parametrize("reply", TWO_CONCEDED)
def test_two_values_are_conceded_as_one_is(reply: str, fake: bool) -> None:
    query = "Which two teams played in the Orley Cup?"
    right, false = parts(["Rooks", "Terns"]), parts(["Gulls", "49ers"])
    names = "the Holm Rooks and the Kessel Terns", "the Tarn City Gulls and the Marlin 49ers"
    rival = false if fake else ()
    for texts, given in ((names, False), (names[::-1], True)):
        decided = lenient(reply.format(*texts), right, fake=rival, query=query)
        assert decided.right is given, decided.words


@pytest.mark.parametrize("fake", [True, False])
@pytest.mark.parametrize("asked", [FILM, ("In which city is the Orley Tower?", "Dubai", "Abu Dhabi")])
def test_a_value_that_was_replaced_is_not_given_by_naming_it_again(
    asked: tuple[str, str, str], fake: bool
) -> None:
    for reply in NAMED_AGAIN:
        assert not verdict(asked, reply, fake=fake).right, reply
    for reply in GIVEN:
        assert verdict(asked, reply, fake=fake).right, reply


# Answers beside remarks on other documents, or on what else is missing

WITH_REMARK = (
    "Document 2 says {value}. None of the others say anything.",
    "Only document 2 is useful. It gives {value} as the answer; the rest make no mention of it.",
    "Document 2 has what you need: {value}. You can disregard the others, as they don't touch on it.",
    "I had to ignore a few passages that don't contain the answer. The remaining one says: {value}.",
    "The question can be answered from passage 4 alone: {value}. Passages on other films can't be used.",
    "It's not spelled out word for word, but the passages point to {value}.",
    "The documents don't state it; however, document 2 strongly suggests that it is {value}.",
    "1. Relevant document: 2\n2. Irrelevant documents: the others, which don't answer the question\n"
    "3. Answer: {value}",
)
HAN_WITH_REMARK = (
    "经查,{value}。文档没有提供更多细节。",
    "我的判断是{value},文档未说明原因。",
    "没有证据表明有其他答案,应为{value}。",
    "{value},除此之外文档没有别的信息。",
    "{value}。文档中没有其他相关内容。",
    "尽管文档1和文档2没有说明,文档4明确指出是{value}。",
    "五篇文档中有四篇没有提到,剩下的一篇写的是{value}。",
    "{value}\n依据:文档4。其他文档:无关。",
)
OTHER, HAN_OTHER = "Pavel Dvorak", "苍口钢构"


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("reply", WITH_REMARK)
def test_an_answer_beside_a_remark_on_others_is_no_decline(reply: str, right: bool) -> None:
    told = verdict(FILM, reply.format(value=FILM[1] if right else OTHER), fake=False)
    assert (told.right, told.rejected) == (right, False)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("reply", HAN_WITH_REMARK)
def test_a_chinese_answer_beside_a_remark_on_others_is_no_decline(reply: str, right: bool) -> None:
    told = verdict(HAN_FILM, reply.format(value=HAN_FILM[1] if right else HAN_OTHER), fake=False)
    assert (told.right, told.rejected) == (right, False)


@pytest.mark.parametrize(
    "reply",
    [
        "A few of the documents are close, but none of them answers this.",
        "The rest of the documents don't help either, so I can't say who directed it.",
        "The other documents don't mention it, and neither does document 2.",
        "The documents talk about other years and places; they leave your question open.",
        "I cannot answer the question. Final answer: not stated in the documents.",
        "While the documents mention {false}, they don't say who directed the film.",
        "Document 2 mentions {false}, but does not say who directed the film.",
        "A few documents mention {false}, but none of them says who directed the film.",
        "Document 2 mentions {right}, but does not say who directed the film.",
    ],
)
def test_a_decline_that_speaks_of_others_stays_one(reply: str) -> None:
    told = verdict(FILM, reply)
    assert (told.rejected, told.detected) == (True, False)


def test_a_document_that_names_a_value_and_does_not_answer_is_no_answer() -> None:
    query = "2012年的标枪比赛,冠军投出了多远?"
    told = lenient("只有文档1提到了63.17米,但没有回答这个问题。", parts("60.91米"), query=query)
    assert told.rejected
    assert not verdict(FILM, "Document 2 says {right}, but document 3 does not say who directed it.").rejected


def test_a_remark_that_nothing_contradicts_a_false_answer_is_no_report() -> None:
    assert not verdict(FILM, "It was {false}. No other document contradicts this.").detected


def test_documents_that_mix_things_up_are_in_error() -> None:
    assert verdict(FILM, "The texts seem to be mixing things up: it is {right}, not {false}.").detected
