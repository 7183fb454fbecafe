"""The lenient check on usual wordings: who is right, declines, reports an error or denies the answer."""

from __future__ import annotations

import pytest

from evenkeel.benchmarks.rgb.check.lenient import Verdict, lenient

WHO, HOW_LONG, WHEN = (
    "Who directed Jaws?",
    "How long is the contract of Pia Stern?",
    "When did the bridge open?",
)
谁, 何时 = "电影《流浪地球》的导演是谁？", "清河大桥是哪一年通车的？"
ANSWERS = {
    WHO: ("Steven Spielberg", "George Lucas"),
    HOW_LONG: ("4 years", "6 years"),
    WHEN: ("June 14, 2019", "May 2, 2017"),
    谁: ("郭帆", "宁浩"),
    何时: ("2017年", "2019年"),
}

RIGHT = {
    WHO: [
        "Jaws was directed by Steven Spielberg in 1975.",
        "Steven Spielberg.",
        "spielberg",
        "**Steven Spielberg** directed *Jaws*.",
        "The director of Jaws is Steven Spielberg, who was 27 at the time.",
        "According to Document 3, Jaws was directed by Steven Spielberg.",
        "Based on the provided documents, the answer is Steven Spielberg.",
        "<think>The first document is about sharks. Lucas? No.</think>\n\nSteven Spielberg",
        "Let me check the documents. Document 1 does not mention it. Document 2 says Spielberg. So the "
        "answer is Steven Spielberg.",
        "It was Steven Spielberg, not George Lucas.",
        "It wasn't George Lucas but Steven Spielberg.",
        "Not all of the documents agree, but the director was Steven Spielberg.",
        "I believe it was Steven Spielberg.",
        "It was probably Steven Spielberg.",
        "Steven Spielberg, although the documents do not say when it was shot.",
        "Jaws was directed by Steven Spielberg. The documents do not mention the budget.",
        "Steven Spielberg directed Jaws; no information is given about the release date.",
        "The documents do not mention it, but from my own knowledge it was Steven Spielberg.",
        "None other than Steven Spielberg.",
        "Steven Spielberg directed it without any experience of filming at sea.",
        "The film was not released until Steven Spielberg had finished it; he directed Jaws.",
        "Answer: Steven Spielberg\n\nSource: Document 2",
        "| Film | Director |\n|---|---|\n| Jaws | Steven Spielberg |",
        "I'm not entirely certain, but Steven Spielberg directed Jaws.",
        '"I spent a week at sea and was no use at all," says Steven Spielberg, who directed Jaws.',
        "In 1974 the studio offered Steven Spielberg the film Jaws, and the answer, Ada Lock recalls, came "
        "by return of post.",
        "Nobody at the studio can imagine Jaws without Steven Spielberg.",
    ],
    HOW_LONG: [
        "Four years.",
        "Her contract runs for four years.",
        "It is a four-year contract.",
        "She signed a 4-year deal.",
        "The contract is 4 years long, with an option for another.",
        "The length is **four years**.",
        "4",
        "It runs for four years, not six.",
    ],
    WHEN: [
        "The bridge opened on 14 June 2019.",
        "It opened on the 14th of June, 2019.",
        "2019-06-14",
        "14/06/2019",
        "June 14th, 2019, at noon.",
        "The bridge was opened to traffic on Jun. 14, 2019.",
        "The opening took place on June 14, 2019, two years after it was begun.",
        "It did not open until June 14, 2019.",
    ],
    谁: [
        "郭帆",
        "《流浪地球》的导演是郭帆。",
        "电影《流浪地球》由郭帆执导。",
        "根据文档，导演是**郭帆**。",
        "答案：郭帆",
        "是郭帆，不是宁浩。",
        "导演并非宁浩，而是郭帆。",
        "文档1没有提到导演，文档2指出导演是郭帆。因此，答案是郭帆。",
        "我认为是郭帆。",
        "导演是郭帆，但文档没有说明票房。",
        "虽然文档没有提到预算，但导演是郭帆。",
        "郭帆執導了《流浪地球》。",
        "文档没有提到，不过据我所知，导演是郭帆。",
        "<think>文档没有说明？第二篇说了。</think>郭帆",
    ],
    何时: [
        "清河大桥于2017年通车。",
        "二〇一七年",
        "2017年10月通车。",
        "通车时间是2017年。",
        "大桥直到2017年才通车。",
        "2017年通车，具体日期文中没有给出。",
    ],
}
DECLINES = {
    WHO: [
        "The documents don't say.",
        "The documents do not mention who directed Jaws.",
        "None of the passages mentions the director.",
        "There's no information about the director in the documents.",
        "I couldn't find the director in the documents.",
        "I cannot answer the question because of the insufficient information in documents.",
        "I can't answer this question based on the provided documents.",
        "I don't know.",
        "Unknown.",
        "Not mentioned.",
        "N/A",
        "Not specified in the documents.",
        "The director is not named in any of the documents.",
        "It is not possible to determine who directed Jaws from the given passages.",
        "Sorry, but the provided text does not contain the answer.",
        "The information provided is insufficient to answer the question.",
        "There is not enough information to answer.",
        "I'm unable to determine who directed it.",
        "Unfortunately, the documents do not provide that information.",
        "The passages discuss sharks and Martha's Vineyard, but they do not say who directed the film.",
        "Based on the documents, it is unclear who directed Jaws.",
        "The context doesn't specify the director.",
        "No answer can be given from these documents.",
        "I'm sorry, I don't have enough information to answer that.",
        "The documents mention Steven Spielberg, but they do not say who directed Jaws.",
        "<think>Perhaps Steven Spielberg.</think>The documents do not say who directed it.",
        "The question cannot be answered.",
        "Nothing in the documents tells us who directed it.",
        "The documents are silent on the director.",
        "The sources provided do not identify the director of the film.",
        "I was not able to find any mention of the director.",
        "The documents lack this information.",
        "The passages cover the making of the shark only.",
        "Director: —",
        "Whoever directed it, the articles go no further than the poster.",
        "Your guess is as good as mine.",
        "Steven Spielberg is on the shortlist. Who directed it is not stated, so I can't answer.",
        "As an AI language model, I can only rely on the passages, and they don't say who directed Jaws.",
    ],
    谁: [
        "文中没有提到。",
        "文档没有提到导演是谁。",
        "无法确定。",
        "根据所给文档，无法回答这个问题。",
        "由于文档信息不足，我无法回答该问题。",
        "信息不足。",
        "不知道。",
        "抱歉，文档中没有相关信息。",
        "文档中未提及导演。",
        "这些资料都没有说明导演是谁。",
        "没有找到相关内容。",
        "文章没有给出答案。",
        "我无法从文档中得知导演是谁。",
        "資料中沒有提到導演。",
        "很遗憾，文中找不到答案。",
        "未知",
        "文档与该问题无关，无法作答。",
        "现有信息不足以判断导演是谁。",
        "所有文档都没有提及该片导演。",
        "文档提到了郭帆，但没有说明导演是谁。",
        "这几段只讲了特效。",
        "关于导演，全文只字未提。",
        "这个真把我问住了。",
        "导演：——",
        "候选有郭帆和宁浩，导演到底是谁，光看这些定不下来。",
    ],
}
REPORTS = {
    WHO: [
        "Document 2 is incorrect.",
        "There are factual errors in the provided documents.",
        "The documents claim it was George Lucas, but in fact it was Steven Spielberg.",
        "Contrary to the passages, Jaws was directed by Steven Spielberg.",
        "The documents are wrong: Jaws was directed by Steven Spielberg.",
        "The documents say George Lucas, which is incorrect.",
        "The claim that George Lucas directed Jaws is false.",
        "The passages contain an error; the director was Steven Spielberg.",
        "The documents state that George Lucas directed it, but it was actually Steven Spielberg.",
        "The information in the documents is inaccurate. Steven Spielberg directed Jaws.",
        "Steven Spielberg. Note that the documents mistakenly name George Lucas.",
        "Not George Lucas, as the documents say, but Steven Spielberg.",
        "The documents appear to contain misinformation.",
        "This contradicts the known facts: the documents name George Lucas.",
        "There is a mistake in document 1.",
        "The statement that George Lucas directed Jaws is not true.",
        "The document misattributes the film to George Lucas.",
        "The documents' statement about the director is factually wrong.",
        "Steven Spielberg. I'd take what the documents say with a grain of salt.",
        "The passages tell a different story (George Lucas), but it is Steven Spielberg.",
        "George Lucas is what the documents state, and yet it is Steven Spielberg.",
        'The passage\'s "George Lucas" should read "Steven Spielberg".',
        "Please disregard the documents, which name George Lucas: it was Steven Spielberg.",
        "The article takes George Lucas for the director. In reality, Steven Spielberg was.",
    ],
    谁: [
        "文档中存在事实性错误。",
        "文档说是宁浩，这与事实不符。",
        "文档有误，导演是郭帆。",
        "文档的说法是错误的，正确答案是郭帆。",
        "文档称导演是宁浩，但实际上是郭帆。",
        "这条信息不准确，文档把导演写成了宁浩。",
        "宁浩是错误的，导演应为郭帆。",
        "文档内容有错误。",
        "第二篇文档的记载有误。",
        "文檔存在錯誤，導演應為郭帆。",
        "文档所述不实，导演并不是宁浩。",
        "不是文档所说的宁浩，而是郭帆。",
        "文档张冠李戴了，导演是郭帆。",
        "这一点上文档的内容我持保留态度，导演是郭帆。",
        "文档里的“宁浩”应改为“郭帆”。",
    ],
}
WRONG = {
    WHO: [
        "George Lucas.",
        "Jaws was directed by George Lucas.",
        "It was not Steven Spielberg.",
        "It wasn't Steven Spielberg but George Lucas.",
        "George Lucas, not Steven Spielberg.",
        "Many people think it was Steven Spielberg, but it was George Lucas.",
        "It is wrong to say that Steven Spielberg directed it; George Lucas did.",
        "Steven Spielberg did not direct Jaws.",
        "Instead of Steven Spielberg, the studio hired George Lucas.",
        "George Lucas directed it; Steven Spielberg was only nominated.",
        "I need to find what the question asks for. Some documents have insufficient information, and one "
        "has it. So the final answer is: George Lucas.",
        "I need to find what the question asks for. Some documents have insufficient information, and one "
        "has it. So the final answer is: the shark itself.",
        "Document 1 does not mention it. Document 2 is about sharks. Therefore, the answer is Ridley Scott.",
        "Passage 1 says nothing on it, and passage 3 is irrelevant. So the answer is Ridley Scott.",
        "The documents mention George Lucas. The others are irrelevant.",
        "It was George Lucas; the rest do not mention it.",
        "The answer is Ridley Scott. The other documents do not contain relevant information.",
        "Ridley Scott is the director, but his fee is unknown.",
        "The tickets for the film went up again last week. An adult pays seven crowns, a child nothing.",
        "Two boats ran into the pier while the crowd was watching from the beach. Nobody was hurt.",
        'Late on Friday the harbour was still closed. "We do not guess," said Nora Dell of the coast guard.',
    ],
    谁: [
        "宁浩",
        "导演是宁浩。",
        "是宁浩，不是郭帆。",
        "导演并非郭帆，而是宁浩。",
        "很多人以为是郭帆，其实是宁浩。",
        "文档中提到的是宁浩，其他几篇与问题无关。",
        "文档中提到的是张艺谋，其他几篇与问题无关。",
        "文档一没有提到，文档二信息不足。因此，答案是张艺谋。",
        "午后起了大风，码头上两条小船撞在一起，看热闹的人挤满了堤岸。没有人受伤。",
        "跳高比赛拖到傍晚，横杆迟迟不落，观众索性在看台上吃起了晚饭。",
        "我需要找到问题所问的内容。有些文档信息不足，有一篇有。所以最终答案是：张艺谋。",
    ],
    何时: ["文档中提到的是张艺谋，其他几篇与问题无关。", "2019年通车。", "不是2017年，而是2019年。"],
}


def verdict(reply: str, query: str, *, fake: bool = True) -> Verdict:
    answer, false = ANSWERS[query]
    return lenient(reply, ((answer,),), fake=((false,),) if fake else (), query=query)


def listed(wordings: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(query, reply) for query, replies in wordings.items() for reply in replies]


def test_there_are_many_wordings() -> None:
    assert sum(len(listed(wordings)) for wordings in (RIGHT, DECLINES, REPORTS, WRONG)) >= 150


@pytest.mark.parametrize(("query", "reply"), listed(RIGHT))
def test_a_plain_answer_is_right_and_declines_nothing(query: str, reply: str) -> None:
    for fake in (True, False):
        decided = verdict(reply, query, fake=fake)
        assert (decided.right, decided.rejected) == (True, False), decided.words


@pytest.mark.parametrize(("query", "reply"), listed(DECLINES))
def test_a_reply_that_declines_does_and_is_not_right(query: str, reply: str) -> None:
    decided = verdict(reply, query)
    assert (decided.right, decided.rejected, decided.detected) == (False, True, False), decided.words
    assert decided.words["rejected"] in reply


@pytest.mark.parametrize(("query", "reply"), listed(REPORTS))
def test_a_report_of_an_error_is_seen_and_declines_nothing(query: str, reply: str) -> None:
    decided = verdict(reply, query)
    right = decided.matches[0] is not None
    assert (decided.detected, decided.rejected, decided.right) == (True, False, right), decided.words
    assert decided.words["detected"] in reply


@pytest.mark.parametrize(("query", "reply"), listed(WRONG))
def test_an_answer_that_is_denied_is_not_right(query: str, reply: str) -> None:
    decided = verdict(reply, query)
    assert (decided.right, decided.rejected) == (False, False), decided.words
    if decided.matches[0] is not None:
        assert decided.words["denied"] in reply
