"""Steps in which a model writes an RGB set from passages: questions, rewordings, false versions, pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Sequence
from typing import TypeVar

import pytest

from sealegs.benchmarks.rgb.make.derived import falsify, partners
from sealegs.benchmarks.rgb.make.evidence import SAME_WORDS, gather, too_few
from sealegs.benchmarks.rgb.make.passages import Passage
from sealegs.benchmarks.rgb.make.questions import NOT_GIVEN, QuestionWithDocuments, SetWriter, write_questions
from sealegs.make.asking import Asking
from sealegs.types import Request, Response

T = TypeVar("T")

REFUSED = Response(status="refused")


def question(query: str, answer: str, *positive: str) -> QuestionWithDocuments:
    return QuestionWithDocuments(Passage("d", positive[0]), query, answer, list(positive))


def written(asking: Generator[Sequence[Request], Sequence[Response], T], *rounds: Sequence[object]) -> T:
    """What comes of it where the model writes these, round by round."""
    next(asking)
    for replies in rounds:
        responses = [
            reply if isinstance(reply, Response) else Response(status="ok", text=json.dumps(reply))
            for reply in replies
        ]
        try:
            asking.send(responses)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
    raise AssertionError("more was asked for")


PASSAGES = ["The mill at Selby was built by Bell alone."]
PASSAGES += [f"The mill at Selby has {number} doors." for number in range(5)]
EMPTY = {"answer": ""}
COW = "A cow named Bell jumped over the moon."
TOO_FEW = too_few([])


def gathering(writer: SetWriter, passages: Sequence[str] = PASSAGES) -> Asking[list[QuestionWithDocuments]]:
    """The documents of a question about the first passage."""
    draft = question("Who built the mill at Selby?", "Bell", passages[0])
    return gather([draft], [Passage(f"{n}.txt", text) for n, text in enumerate(passages)], writer)


QUERY = "Who built the mill at Selby?"


@pytest.mark.parametrize(
    ("query", "answer", "reading", "reason"),
    [
        (QUERY, " ", None, "the question or the answer is empty"),
        (QUERY, "x" * 61, None, "the answer is longer than 60 characters"),
        (QUERY, "Oats", None, "the answer is not in the passage"),
        ("Did Bell build the mill at Selby?", "Bell", None, "the question gives the answer away"),
        ("Who built the mill in the passage?", "Bell", None, "the question refers to its passage"),
        ("谁建了磨坊？", "Bell", None, "the question is in another language"),
        ("Who built it?", "Bell", None, "the question names nothing"),
        (QUERY, "Bell", "Oats", NOT_GIVEN),
        (QUERY, "Bell", "Bell", ""),
    ],
)
def test_a_question_is_dropped_for_its_real_reason(
    query: str, answer: str, reading: str | None, reason: str
) -> None:
    writer = SetWriter("en")
    replies = [] if reading is None else [{"answer": reading}]
    asking = write_questions([Passage("d", PASSAGES[0])], 1, writer, seed=0)
    questions = written(asking, [{"question": query, "answer": answer}], replies)
    assert [question.query for question in questions] == ([] if reason else [query])
    assert writer.tally["questions"] == {reason or "ok": 1}


def test_what_was_asked_before_or_refused_is_made_up_for_by_other_passages() -> None:
    writer = SetWriter("en")
    passages = [Passage("d", f"{text} Bell came.") for text in PASSAGES]
    replies = [{"question": f"Who came to mill {number}?", "answer": "Bell"} for number in (1, 1, 2)]
    bell = {"answer": "Bell"}
    asking = write_questions(passages, 2, writer, seed=0)
    questions = written(asking, replies[:2], [bell], [REFUSED], [], replies[2:], [bell])
    assert [question.query[-2] for question in questions] == ["1", "2"]
    assert writer.tally["questions"] == {"ok": 2, "asked before": 1, "refused": 1}


def test_a_passage_in_which_an_answer_is_read_is_not_irrelevant() -> None:
    passages = [*PASSAGES, *(f"The mill at Marlow has {number} doors." for number in range(9))]
    writer = SetWriter("en")
    readings = [{"answer": "Bell"}, {"answer": "Oats"}, *[EMPTY] * 8]
    (gathered,) = written(gathering(writer, passages), readings, [REFUSED] * 4, [])
    (contradiction,) = writer.contradictions  # "Bell" is the right answer: it contradicts nothing
    assert contradiction.source == "d"
    assert contradiction.reading == "Oats"
    assert str(contradiction).startswith(f"{contradiction.document} contradicts d, or seems to")
    assert len(set(gathered.negative)) == 8
    assert writer.tally["irrelevant documents"] == {"an answer can be read from it": 2, "ok": 8}
    assert written(gathering(SetWriter("en")), [{"answer": "Oats"}, *[EMPTY] * 4], [], []) == []  # four


@pytest.mark.parametrize(
    ("text", "reading", "reason"),
    [
        ("Bellamy built the mill at Selby.", None, "the answer was lost"),
        ("the mill at selby was built by Bell, alone!", None, SAME_WORDS),
        ("News! The mill at Selby was built by Bell alone. So they say at the inn.", None, SAME_WORDS),
        (COW, "It is not stated. Bell is a cow.", NOT_GIVEN),
        ("Oats built the mill, said Bell.", "Oats", NOT_GIVEN),
        ("Mill at Selby, built by Bell alone!", None, SAME_WORDS),
        ("It was Bell.", None, "it says hardly more than the answer"),
        ("The mill at Selby: Bell built it.", "It was built by Bell.", ""),
    ],
)
def test_a_rewritten_passage_is_dropped_for_its_real_reason(
    text: str, reading: str | None, reason: str
) -> None:
    writer = SetWriter("en")
    replies = [] if reading is None else [{"answer": reading}]
    asking = gathering(writer)
    (gathered,) = written(asking, [EMPTY] * 5, [{"text": text}, *[REFUSED] * 3], replies)
    assert gathered.positive[1:] == ([] if reason else [text])
    counts = writer.tally["rewritten passages"]
    assert counts == Counter({"refused": 3}) + Counter({reason or "ok": 1})


@pytest.mark.parametrize(
    ("text", "reading", "reason"),
    [
        ("Bell sold an apple.", None, "the answer cannot be replaced in it"),
        ("Bell sold the apple, not the pear.", None, "the document gives the false answer too"),
        ("Bell sold the apple.", "apple", "read again, it gives the true answer"),
        ("Bell sold the apple.", "plum", NOT_GIVEN),
        ("Bell sold the apple.", "a pear", ""),
    ],
)
def test_a_false_version_is_dropped_for_its_real_reason(text: str, reading: str | None, reason: str) -> None:
    writer = SetWriter("en")
    asked = question("What did Bell sell?", "apple", "Bell sold the apple.")
    asked = asked._replace(positive=[text], negative=["Bell has a hat."] * 5)
    replies: list[object] = [] if reading is None else [{"answer": reading}]
    facts = written(falsify([asked], writer), [{"false_answer": "pear"}], replies)
    assert [fact.wrong for fact in facts] == ([] if reason else [["Bell sold the pear."]])
    assert writer.tally["false versions of documents"] == {reason or "ok": 1}


@pytest.mark.parametrize(
    ("false", "negative", "reason"),
    [
        (" ", [], "empty"),
        ("Old Bell", [], "not false"),
        ("Selby", [], "in the question or its passage"),
        ("Quill", ["Quill has a hat."] * 5, TOO_FEW),
    ],
)
def test_a_false_answer_is_dropped_for_its_real_reason(false: str, negative: list[str], reason: str) -> None:
    writer = SetWriter("en")
    asked = question("Who built it?", "Bell", "Bell built it at Selby.")._replace(negative=negative)
    assert written(falsify([asked], writer), [{"false_answer": false}], []) == []
    assert writer.tally["false answers"] == {reason: 1}


# Pairs


def test_partners_are_alike_and_do_not_give_each_others_answers() -> None:
    documents = {
        "Bell": "The mill at Selby was built by Bell.",
        "Oats": "The mill at Marlow was built by Oats.",
        "Reed": "The school at Yarrow was built by Reed, a pupil of Bell.",
        "Lane": "The school at Ashby was built by Lane.",
    }
    questions = [
        question(text.replace(answer, "whom").rstrip(".") + "?", answer, text)
        for answer, text in documents.items()
    ]
    couples = partners(questions, "en")
    assert [[part.answer for part in couple] for couple in couples] == [["Bell", "Oats"], ["Reed", "Lane"]]
    assert partners([questions[0], questions[2]], "en") == []
