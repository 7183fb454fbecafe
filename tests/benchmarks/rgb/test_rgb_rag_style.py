"""What a reply makes of documents, in the wordings of chat models that answer from them."""

from __future__ import annotations

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
    "I noticed that the documents contradict each other regarding the director: {false} vs. {right}. It is {right}.",
    "The answer is {right}, though the documents disagree on this: Document 2 says {false}.",
    "{right}. Note: there is conflicting information; Document 1 says it was {false}.",
    "The documents conflict: Document 1 says {false} and Document 2 says {right}.",
    "The documents conflict on this question. Based on Document 2, it was {false}.",
    "The documents offer conflicting accounts of who directed it. Three say {false}, two say {right}.",
    "Document 1 contradicts Document 3: the former says {false}, the latter {right}.",
    "The documents differ on who directed the film: {false} according to Document 1, {right} according to Document 3.",
    "The documents give different answers: Document 1 says {false}; Document 3 says {right}.",
)
AGREE = (
    "{right}. The documents disagree about the budget, but that is another matter.",
    "The documents contradict each other about the cost of the set, but all of them say that {right} directed the film.",
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
