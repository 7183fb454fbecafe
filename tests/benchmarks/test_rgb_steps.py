"""The pieces of making an RGB set from own documents: passages, what counts as telling, false twins."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.documents.asking import Author, Tally, wordings
from evenkeel.benchmarks.rgb.make.documents.evidence import Item, gather
from evenkeel.benchmarks.rgb.make.documents.nearest import Nearest, by_words
from evenkeel.benchmarks.rgb.make.documents.pairs import apart, partners
from evenkeel.benchmarks.rgb.make.documents.passages import (
    AIM,
    LONGEST,
    Passage,
    cut,
    length,
    pieces,
    sentences,
)
from evenkeel.benchmarks.rgb.make.documents.questions import Question, in_turn
from evenkeel.benchmarks.rgb.make.documents.telling import of_one_kind, states, tells, twin
from evenkeel.benchmarks.rgb.make.documents.twins import falsify
from evenkeel.make.documents import Document
from evenkeel.types import Embed, Request, Response

T = TypeVar("T")

# Passages


def test_a_short_document_stays_whole() -> None:
    text = "One thing happened.\nThen another.  And a third!"
    assert pieces(text, "en") == ["One thing happened. Then another. And a third!"]
    assert pieces("第一句。\n第二句！", "zh") == ["第一句。第二句！"]


@pytest.mark.parametrize(
    ("lang", "sentence"), [("en", "Sentence number {} has seven words now. "), ("zh", "这是第{}句话。")]
)
def test_a_long_document_is_cut_evenly_at_the_ends_of_sentences(lang: Lang, sentence: str) -> None:
    text = "".join(sentence.format(number) for number in range(200))
    found = pieces(text, lang)
    assert len(found) > 3
    assert all(piece[-1] in ".。" for piece in found)
    assert all(AIM[lang] * 0.8 <= length(piece, lang) <= LONGEST[lang] for piece in found)
    assert "".join("".join(found).split()) == "".join(text.split())


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30))
def test_no_piece_is_overlong_and_no_word_is_lost(lengths: list[int]) -> None:
    text = " ".join(" ".join(["Word"] * (words - 1) + ["end."]) for words in lengths)
    found = pieces(text, "en")
    assert all(1 <= length(piece, "en") <= LONGEST["en"] * 1.5 for piece in found)
    assert " ".join(found).split() == text.split()


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Dr. Bell met J. R. Marsh. They left.", "en", ["Dr. Bell met J. R. Marsh.", "They left."]),
        ('"Go!" she said. "Now." He went.', "en", ['"Go!" she said.', '"Now."', "He went."]),
        ("It cost 3.50 in all, e.g. here.", "en", ["It cost 3.50 in all, e.g. here."]),
        ("# The Town\nIt is\nold.\n\nNo stop", "en", ["The Town.", "It is old.", "No stop"]),
        ("他说：“走吧。”他走了。", "zh", ["他说：“走吧。”", "他走了。"]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, lang: Lang, expected: list[str]) -> None:
    assert sentences(text, lang) == expected


def test_equal_passages_count_once_under_the_first_document() -> None:
    documents = [Document(name, text) for name, text in (("a", "Same.\n"), ("b", "Other."), ("c", " Same."))]
    assert cut(documents, "en") == [Passage("a", "Same."), Passage("b", "Other.")]


def test_every_document_has_its_turn_before_any_has_two() -> None:
    passages = [Passage(name, f"{name}{n}") for name in "abcd" for n in range(5)]
    order = in_turn(passages, random.Random("x"))
    assert sorted(order) == list(range(20))
    for start in range(0, 20, 4):
        assert {passages[place].document for place in order[start : start + 4]} == set("abcd")


def test_passages_are_ranked_by_the_words_they_share() -> None:
    passages = [
        "The mill burnt down in May.",
        "Apples are sold here.",
        "The mill in Selby burnt down.",
        "Nothing",
    ]
    assert by_words(passages, ["When did the mill in Selby burn down?", "apples"], "en") == [[2, 0], [1]]
    assert by_words(passages, [], "en") == []


def test_what_is_near_by_meaning_takes_turns_with_what_is_near_by_words() -> None:
    passages = [
        "The mill burnt.",
        "The mill stands.",
        "Flames took the grinding house.",
        "Unreadable",
        "Rain",
    ]
    vectors = [[1.0, 0.2], [0.0, 1.0], [1.0, 0.0], None, [-1.0, 0.0]]
    author = Author("en")
    asking = Nearest(passages, author, embeds=True).of(["mill burnt?"])
    assert [request.text for request in next(asking) if isinstance(request, Embed)] == passages
    assert asking.send([embedded(vector) for vector in vectors]) == [Embed(text="mill burnt?")]
    with pytest.raises(StopIteration) as done:
        asking.send([embedded([2.0, 0.0])])
    assert done.value.value == [[passages[place] for place in (0, 2, 1, 4)]]
    assert author.tally.notes() == ["embeddings: 5 of 6 (1 dropped: failed)"]


def embedded(vector: list[float] | None) -> Response:
    if vector is None:
        return Response(status="error", reason="HTTP 500")
    return Response(status="ok", vector=np.array(vector, "<f4").tobytes())


# Telling


@pytest.mark.parametrize(
    ("text", "answer", "stated", "told"),
    [
        ("It opened in 1871.", "1871", True, True),
        ("It has 170 seats.", "70", False, False),
        ("It has 1,700 seats.", "1700", True, True),
        ("She knows no one.", "no", False, True),
        ("We annually sing.", "Ann", False, True),
        ("It was not Hector Bell.", "Hector Bell", False, True),
        ("They came on 5 March 2004.", "March 5, 2004", True, True),
        ("A letter of Bellamy's.", "Hector Bell", False, False),
        ("由孔凤仪创办。", "孔凤仪", True, True),
        ("由孔先生创办。", "孔凤仪", False, False),
        ("他二十一岁。", "21", True, True),
    ],
)  # fmt: skip
def test_stating_is_strict_and_telling_is_not(text: str, answer: str, stated: bool, told: bool) -> None:
    assert states(text, answer) == stated
    assert tells(text, answer) == told


def test_a_last_name_tells_unless_the_question_has_it() -> None:
    assert tells("Rudgard gave books.", "Agnes Rudgard", "Who founded it?")
    assert not tells("Agnes gave books.", "Agnes Rudgard", "Who founded it?")
    assert not tells("The river Trent is long.", "Columbia River", "Which river is meant?")


@pytest.mark.parametrize(
    ("text", "answer", "fake", "expected"),
    [
        ("Bell came. BELL left.", "Bell", "Quill", "Quill came. Quill left."),
        ("Since 1871, not 18712.", "1871", "1902", None),
        ("Since 1871 it stands.", "1871", "1902", "Since 1902 it stands."),
        ("He ate an apple.", "apple", "pear", None),
        ("He ate the apple. Apple is good.", "apple", "pear", "He ate the pear. Pear is good."),
        ("Agnes Rudgard came. Rudgard left.", "Agnes Rudgard", "Dora Kemp", None),
        ("On 5 March 2004 it rained.", "March 5, 2004", "May 7, 2004", None),
        ("由孔凤仪创办。", "孔凤仪", "钟恒之", "由钟恒之创办。"),
    ],
)
def test_a_twin_has_the_false_answer_and_nothing_of_the_true_one(
    text: str, answer: str, fake: str, expected: str | None
) -> None:
    assert twin(text, answer, fake, query="What was it?") == expected


@pytest.mark.parametrize(
    ("answer", "fake", "expected"),
    [
        ("1871", "1902", True),
        ("1871", "long ago", False),
        ("Selby", "York", True),
        ("Selby", "a town that nobody has heard of", False),
        ("孔凤仪", "Dora Kemp", False),
    ],
)
def test_a_false_answer_is_of_the_kind_of_the_true_one(answer: str, fake: str, expected: bool) -> None:
    assert of_one_kind(answer, fake) == expected


# Writing


def written(asking: Generator[Sequence[Request], Sequence[Response], T], *rounds: Sequence[object]) -> T:
    """What comes of it where the model writes these, round by round."""
    next(asking)
    for replies in rounds:
        texts = [Response(status="ok", text=json.dumps(reply)) for reply in replies]
        try:
            asking.send(texts)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
    raise AssertionError("more was asked for")


def test_a_passage_told_anew_is_neither_much_longer_nor_much_shorter() -> None:
    """The passage has nine words: three to twenty-seven will do."""
    passages = ["The mill at Selby was built by Bell alone."]
    passages += [f"The mill at Selby has {number} doors." for number in range(5)]
    tellings = ["By Bell.", "Bell built it.", "Bell " * 27, "Bell " * 28]
    author = Author("en")
    asking = gather(
        [Question(0, "Who built the mill at Selby?", "Bell")], Nearest(passages, author, embeds=False), author
    )
    (item,) = written(asking, [], [{"text": text} for text in tellings])
    assert item.positive == [passages[0], "Bell built it.", " ".join(["Bell"] * 27)]
    assert author.tally.notes()[-1] == (
        "passages told in other words: 2 of 4 (2 dropped: much longer or shorter)"
    )


def test_a_document_that_has_the_false_answer_already_gets_no_twin() -> None:
    positive = ["The mill was built by Bell.", "The mill is Bell's, and the house next to it Quill's."]
    author = Author("en")
    asking = falsify([Item(Question(0, "Who built the mill?", "Bell"), positive, [])], author)
    (fact,) = written(asking, [{"false_answer": "Quill"}], [])
    assert (fact.positive, fact.wrong) == (positive[:1], ["The mill was built by Quill."])
    assert author.tally.notes()[-1] == (
        "false twins of documents: 1 of 2 (1 dropped: the document holds the false answer too)"
    )


# Pairs


def test_partners_are_alike_and_keep_their_answers_to_themselves() -> None:
    told = {
        "Bell": "The mill at Selby was built by Bell.",
        "Oats": "The mill at Marlow was built by Oats.",
        "Reed": "The school at Yarrow was built by Reed, a pupil of Bell.",
        "Lane": "The school at Ashby was built by Lane.",
        "Moss": "Nothing is known.",
    }
    items = [
        Item(Question(place, text.replace(answer, "whom").rstrip(".") + "?", answer), [text], [])
        for place, (answer, text) in enumerate(told.items())
    ]
    couples = partners(items, "en")
    assert [[item.question.answer for item in couple] for couple in couples] == [
        ["Bell", "Oats"],
        ["Reed", "Lane"],
    ]
    assert not apart(items[0], items[2])
    assert partners([items[0], items[2]], "en") == []
    assert partners([], "en") == []


# Counting and wording


def test_a_tally_tells_every_step_in_the_order_of_work() -> None:
    tally = Tally()
    tally.keep("questions")
    tally.drop("questions", "empty")
    tally.note("questions", "error")
    tally.note("twins", "unparsed")
    assert tally.notes() == [
        "questions: 1 of 3 (1 dropped: empty; 1 dropped: failed)",
        "twins: 0 of 1 (1 dropped: unparsed)",
    ]
    assert tally.failed == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_prompt_has_the_places_that_are_filled(lang: str) -> None:
    wording = wordings()[lang]
    places: dict[str, Sequence[str]] = {
        "question": ["PASSAGE"],
        "read": ["PASSAGE", "QUERY"],
        "rewrite": ["MANNER", "ANSWER", "QUERY", "PASSAGE"],
        "join": ["FIRST", "SECOND"],
        "fake": ["QUERY", "ANSWER"],
        "twin": ["ANSWER", "FAKE", "PASSAGE"],
    }
    for name, wanted in places.items():
        assert all(f"{{{place}}}" in getattr(wording, name) for place in wanted), name
    assert len(set(wording.manners)) >= 4
