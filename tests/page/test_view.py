"""A view of a sample as HTML: everything is text, marks are where they belong, nothing is cut silently."""

from __future__ import annotations

import math
from typing import Any

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealegs.page.differences import diff_columns, differences
from sealegs.page.format import escape_controls
from sealegs.page.view import (
    Beside,
    Block,
    Facts,
    Matrix,
    Span,
    Text,
    Tokens,
    View,
    answer_texts,
)
from sealegs.page.view_html import LONG, marked_text
from sealegs.types import Response

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202eevil\x1b[31m"


def parsed(*blocks: Block, title: str = "one", label: str = "0.5") -> Any:
    html = View(title, label, blocks)._repr_html_()
    return html5lib.parse(html, treebuilder="etree", namespaceHTMLElements=False)


def content(element: Any) -> str:
    return "".join(element.itertext())


def by_class(tree: Any, name: str) -> list[Any]:
    return [each for each in tree.iter() if name in (each.get("class") or "").split()]


@given(
    st.text(alphabet="ab\x00\u202e\U0001f600 <&\n", max_size=30),
    st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40), st.sampled_from("xy")), max_size=8),
)
def test_marks_anywhere_leave_the_text_whole(text: str, marks: list[tuple[int, int, str]]) -> None:
    spans = [Span(start, end, "right", title) for start, end, title in marks]
    tree = html5lib.parseFragment(marked_text(text, spans), namespaceHTMLElements=False)
    assert content(tree) == escape_controls(text)
    titles: list[set[str]] = [set() for _ in tree.text or ""]
    for mark in tree:
        titles += [set(mark.get("title").split("; ")) for _ in mark.text]
        titles += [set() for _ in mark.tail or ""]
    wanted = [
        {title for start, end, title in marks if start <= at < end}
        for at, letter in enumerate(text)
        for _ in escape_controls(letter)
    ]
    assert titles == wanted


def test_everything_is_drawn_as_text() -> None:
    blocks: tuple[Block, ...] = (
        Text(HOSTILE, HOSTILE, (Span(3, 9, HOSTILE, HOSTILE),), kind=HOSTILE, note=HOSTILE),
        Text(HOSTILE, HOSTILE, collapsed=True),
        Tokens(HOSTILE, (HOSTILE,), (0.5,), HOSTILE),
        Matrix(HOSTILE, (HOSTILE, HOSTILE), ((1.0, 0.5), (0.5, 1.0)), HOSTILE),
        Facts(HOSTILE, ((HOSTILE, HOSTILE),), (HOSTILE, HOSTILE), HOSTILE),
        Beside(HOSTILE, (Text(HOSTILE, HOSTILE),), HOSTILE),
    )
    tree = parsed(*blocks, title=HOSTILE, label=HOSTILE)
    drawn = {"html", "head", "body", "div", "style", "p", "mark", "details", "summary", "span", "small"}
    drawn |= {"bdi", "table", "thead", "tbody", "tr", "th", "td", "b"}
    assert {each.tag for each in tree.iter()} <= drawn
    names = {name for each in tree.iter() for name in each.attrib}
    assert names <= {"class", "title", "dir", "style", "scope", "role", "tabindex", "aria-label"}
    html = View(HOSTILE, HOSTILE, blocks)._repr_html_()
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert content(tree).count("<script>alert(1)</script>") > 20


def test_a_text_is_drawn_to_the_letter_with_its_marks_explained() -> None:
    body = "  The capital\n\tis  Paris.\n"
    start = body.index("Paris")
    tree = parsed(Text("answer", body, (Span(start, start + 5, "right", "the right answer"),)))
    (drawn,) = by_class(tree, "sl-body")
    assert content(drawn) == body
    (mark,) = drawn.iter("mark")
    assert (mark.text, mark.get("class"), mark.get("title")) == ("Paris", "sl-right", "the right answer")
    assert "Marked: the right answer" in content(tree)


def test_a_long_text_is_collapsed_and_whole() -> None:
    body = "x" * (LONG + 1)
    tree = parsed(Text("answer", body))
    (details,) = tree.iter("details")
    assert details.get("open") is None
    assert "1,501 characters" in content(details)
    assert body in content(details)
    assert not list(parsed(Text("answer", "x" * LONG)).iter("details"))


def test_tokens_have_their_probability_in_figures() -> None:
    tokens = Tokens("t", (" the", "\n", "x", "y"), (0.25, None, 3e-9, math.nan))
    shown = [content(each) for each in by_class(parsed(tokens), "sl-token")]
    assert shown == ["␣the25%", "⏎–", "x3.0e-09", "y–"]


def test_a_matrix_of_any_shape_is_drawn() -> None:
    tree = parsed(Matrix("m", ("a",), ((1.0, math.nan), (0.5,))))
    cells = [content(cell) for cell in tree.iter("td")]
    assert cells[1:] == ["1.00", "–", "0.50"]
    assert parsed(Matrix("m", (), ())) is not None


def test_the_same_as_plain_text() -> None:
    view = View(
        "sample",
        "0.5",
        (
            Text("answer", "one\ntwo"),
            Beside("", (Text("left", "l"), Text("right", "r"))),
            Facts("facts", (("a", "b", ""), ("c", "d", "e"))),
            Facts("all values", (("x", "1"),), collapsed=True),
            Tokens("tokens", ("a", "b"), (0.5, None)),
        ),
    )
    assert repr(view) == (
        "0.5 · sample\n\nanswer\n  one\n  two\n\nleft\n  l\n\nright\n  r\n\n"
        "facts\n  a: b\n  c: d · e\n\ntokens\n  a 50% | b –"
    )


def test_an_answer_says_how_it_ended_and_what_was_reasoned() -> None:
    answers = [Response(status="ok", text="yes", reasoning="hm"), Response(status="error", reason="HTTP 500")]
    texts = answer_texts(answers)
    assert [text.heading for text in texts] == [
        "Answer 1",
        "reasoning before answer 1",
        "Answer 2 (error: HTTP 500)",
    ]
    assert texts[1].collapsed


@pytest.mark.parametrize(
    ("text", "other", "marked"),
    [
        ("The cat sat down.", "The dog sat down.", ["cat"]),
        ("The cat  sat", "The cat sat", []),
        ("a big red dog", "a dog", ["big red"]),
        ("首都是巴黎。", "首都是柏林。", ["巴黎"]),
        ("서울은 수도입니다", "부산은 수도입니다", ["서울은"]),
        ("", "something", []),
        ("something", "", ["something"]),
    ],
)
def test_words_that_another_text_lacks_are_found(text: str, other: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in differences(text, other).ranges] == marked


@given(st.text("ab 的.", max_size=40), st.text("ab 的.", max_size=40))
def test_what_is_not_marked_is_the_same_on_both_sides(first: str, second: str) -> None:
    left, right = diff_columns("", ("first", first), ("second", second)).columns
    assert isinstance(left, Text)
    assert isinstance(right, Text)
    rests = []
    for column in (left, right):
        marked = {at for span in column.spans for at in range(span.start, span.end)}
        rests.append("".join(c for at, c in enumerate(column.body) if at not in marked).replace(" ", ""))
    assert rests[0] == rests[1]


def test_every_character_is_shown_alike_alone_and_among_others() -> None:
    """A text that is printable as a whole is not looked at character by character."""
    printable = "".join(letter for letter in map(chr, range(0x110000)) if letter.isprintable())
    shown = escape_controls(f"{printable}\x07")
    assert shown == f"{escape_controls(printable)}\u2407"
    assert escape_controls("a\u202eb\ufeff\ud800\r\n\tc") == "a⟦U+202E⟧b⟦U+FEFF⟧⟦U+D800⟧\u240d\n\tc"
