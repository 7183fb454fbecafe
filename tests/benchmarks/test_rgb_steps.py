"""The steps of building an RGB set from documents: passages, what reveals an answer, false versions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Generator, Sequence
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.passages import (
    LONGEST,
    TARGET,
    Nearest,
    Passage,
    cut,
    cut_text,
    false_version,
    length,
    rank_by_words,
    reveals,
    same_kind,
    sentences,
    states,
)
from evenkeel.benchmarks.rgb.make.questions import (
    Question,
    Writer,
    falsify,
    gather,
    in_turn,
    independent,
    partners,
)
from evenkeel.make.asking import Tally
from evenkeel.make.documents import Document
from evenkeel.types import Embed, Request, Response

T = TypeVar("T")

# Passages


def test_a_short_document_stays_whole() -> None:
    text = "One thing happened.\nThen another.  And a third!"
    assert cut_text(text, "en") == ["One thing happened. Then another. And a third!"]
    assert cut_text("第一句。\n第二句！", "zh") == ["第一句。第二句！"]


@pytest.mark.parametrize(
    ("lang", "sentence"), [("en", "Sentence number {} has seven words now. "), ("zh", "这是第{}句话。")]
)
def test_a_long_document_is_cut_evenly_at_the_ends_of_sentences(lang: Lang, sentence: str) -> None:
    text = "".join(sentence.format(number) for number in range(200))
    passages = cut_text(text, lang)
    assert len(passages) > 3
    assert all(passage[-1] in ".。" for passage in passages)
    assert all(TARGET[lang] * 0.8 <= length(passage, lang) <= LONGEST[lang] for passage in passages)
    assert "".join("".join(passages).split()) == "".join(text.split())


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30))
def test_no_passage_is_overlong_and_no_word_is_lost(lengths: list[int]) -> None:
    text = " ".join(" ".join(["Word"] * (words - 1) + ["end."]) for words in lengths)
    passages = cut_text(text, "en")
    assert all(1 <= length(passage, "en") <= LONGEST["en"] * 1.5 for passage in passages)
    assert " ".join(passages).split() == text.split()


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
    assert sorted(order) == passages
    for start in range(0, 20, 4):
        assert {passage.document for passage in order[start : start + 4]} == set("abcd")


def test_passages_are_ranked_by_the_words_they_share() -> None:
    passages = [
        "The mill burnt down in May.",
        "Apples are sold here.",
        "The mill in Selby burnt down.",
        "Nothing",
    ]
    assert rank_by_words(passages, ["When did the mill in Selby burn down?", "apples"], "en") == [[2, 0], [1]]
    assert rank_by_words(passages, [], "en") == []


def test_passages_near_by_embedding_and_by_words_take_turns() -> None:
    passages = [
        "The mill burnt.",
        "The mill stands.",
        "Flames took the grinding house.",
        "Unreadable",
        "Rain",
    ]
    vectors = [[1.0, 0.2], [0.0, 1.0], [1.0, 0.0], None, [-1.0, 0.0]]
    tally = Tally()
    asking = Nearest(passages, "en", tally, embeds=True).of(["mill burnt?"])
    assert [request.text for request in next(asking) if isinstance(request, Embed)] == passages
    assert asking.send([embedded(vector) for vector in vectors]) == [Embed(text="mill burnt?")]
    with pytest.raises(StopIteration) as done:
        asking.send([embedded([2.0, 0.0])])
    assert done.value.value == [[passages[index] for index in (0, 2, 1, 4)]]
    assert tally.notes() == ["embeddings: 5 of 6 (1 dropped: error)"]


def embedded(vector: list[float] | None) -> Response:
    if vector is None:
        return Response(status="error", reason="HTTP 500")
    return Response(status="ok", vector=np.array(vector, "<f4").tobytes())


# Answers


@pytest.mark.parametrize(
    ("text", "answer", "stated", "revealed"),
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
def test_stating_is_strict_and_revealing_is_not(text: str, answer: str, stated: bool, revealed: bool) -> None:
    assert states(text, answer) == stated
    assert reveals(text, answer) == revealed


def test_a_last_name_reveals_unless_the_question_has_it() -> None:
    assert reveals("Rudgard gave books.", "Agnes Rudgard", "Who founded it?")
    assert not reveals("Agnes gave books.", "Agnes Rudgard", "Who founded it?")
    assert not reveals("The river Trent is long.", "Columbia River", "Which river is meant?")


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
def test_a_false_version_has_nothing_of_the_true_answer(
    text: str, answer: str, fake: str, expected: str | None
) -> None:
    assert false_version(text, answer, fake, "What was it?") == expected


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
    assert same_kind(answer, fake) == expected


# Writing


def question(query: str, answer: str, *positive: str) -> Question:
    return Question(Passage("d", positive[0]), query, answer, list(positive))


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


def test_a_rewritten_passage_is_neither_much_longer_nor_shorter() -> None:
    """The passage has nine words: three to twenty-seven will do."""
    passages = ["The mill at Selby was built by Bell alone."]
    passages += [f"The mill at Selby has {number} doors." for number in range(5)]
    versions = ["By Bell.", "Bell built it.", "Bell " * 27, "Bell " * 28]
    writer = Writer("en")
    asking = gather(
        [question("Who built the mill at Selby?", "Bell", passages[0])],
        Nearest(passages, "en", writer.tally, embeds=False),
        writer,
    )
    (gathered,) = written(asking, [], [{"text": text} for text in versions])
    assert gathered.positive == [passages[0], "Bell built it.", " ".join(["Bell"] * 27)]
    assert writer.tally.notes()[-1] == "rewritten passages: 2 of 4 (2 dropped: much longer or shorter)"


def test_a_document_with_the_false_answer_gets_no_false_version() -> None:
    positive = ["The mill was built by Bell.", "The mill is Bell's, and the house next to it Quill's."]
    writer = Writer("en")
    asking = falsify([question("Who built the mill?", "Bell", *positive)], writer)
    (fact,) = written(asking, [{"false_answer": "Quill"}], [])
    assert (fact.positive, fact.wrong) == (positive[:1], ["The mill was built by Quill."])
    assert writer.tally.notes()[-1] == (
        "false versions of documents: 1 of 2 (1 dropped: the document gives the false answer too)"
    )


# Pairs


def test_partners_are_alike_and_do_not_give_each_others_answers() -> None:
    documents = {
        "Bell": "The mill at Selby was built by Bell.",
        "Oats": "The mill at Marlow was built by Oats.",
        "Reed": "The school at Yarrow was built by Reed, a pupil of Bell.",
        "Lane": "The school at Ashby was built by Lane.",
        "Moss": "Nothing is known.",
    }
    questions = [
        question(text.replace(answer, "whom").rstrip(".") + "?", answer, text)
        for answer, text in documents.items()
    ]
    couples = partners(questions, "en")
    assert [[part.answer for part in couple] for couple in couples] == [["Bell", "Oats"], ["Reed", "Lane"]]
    assert not independent(questions[0], questions[2])
    assert partners([questions[0], questions[2]], "en") == []
    assert partners([], "en") == []


# Prompts


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_prompt_has_the_slots_that_are_filled(lang: Lang) -> None:
    prompts = Writer(lang).prompts
    slots: dict[str, Sequence[str]] = {
        "question": ["PASSAGE"],
        "read": ["PASSAGE", "QUERY"],
        "rewrite": ["STYLE", "ANSWER", "QUERY", "PASSAGE"],
        "join": ["FIRST", "SECOND"],
        "false_answer": ["QUERY", "ANSWER"],
        "false_version": ["ANSWER", "FALSE", "PASSAGE"],
    }
    for name, names in slots.items():
        assert set(re.findall(r"\{([A-Z_]+)\}", getattr(prompts, name))) == set(names), name
    assert len(set(prompts.styles)) >= 4
