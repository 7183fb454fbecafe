"""The lenient check on usual wordings: who is right, declines, reports an error or denies the answer."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec import Struct

from rgb_labelled import FOLDER
from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.files.jsonfile import read_json_lines
from sealegs.text.answer_check.lexicon import PHRASES, lexicon
from sealegs.text.answer_search.normalization import plain, words


class Wording(Struct, frozen=True):
    """A reply to a question with a true and a false answer, and what kind of reply it is."""

    kind: Literal["right", "declines", "reports", "wrong"]
    query: str
    answer: str
    fake: str
    reply: str

    def verdict(self, *, fake: bool = True) -> CheckVerdict:
        false = ((self.fake,),) if fake else ()
        return lenient(self.reply, ((self.answer,),), fake=false, query=self.query)


WORDINGS = list(read_json_lines(FOLDER / "wordings.jsonl", Wording))


def each(kind: str) -> pytest.MarkDecorator:
    rows = [row for row in WORDINGS if row.kind == kind]
    return pytest.mark.parametrize("row", rows, ids=[row.reply[:60] for row in rows])


def test_there_are_many_wordings() -> None:
    assert len(WORDINGS) >= 150


@each("right")
def test_a_plain_answer_is_right_and_declines_nothing(row: Wording) -> None:
    for fake in (True, False):
        decided = row.verdict(fake=fake)
        assert (decided.right, decided.rejected) == (True, False), decided.words


@each("declines")
def test_a_reply_that_declines_does_and_is_not_right(row: Wording) -> None:
    decided = row.verdict()
    assert (decided.right, decided.rejected, decided.detected) == (False, True, False), decided.words
    assert decided.words["rejected"] in row.reply


@each("reports")
def test_a_report_of_an_error_is_seen_and_declines_nothing(row: Wording) -> None:
    decided = row.verdict()
    right = decided.matches[0] is not None
    assert (decided.detected, decided.rejected, decided.right) == (True, False, right), decided.words
    assert decided.words["detected"] in row.reply


@each("wrong")
def test_an_answer_that_is_denied_is_not_right(row: Wording) -> None:
    decided = row.verdict()
    assert (decided.right, decided.rejected) == (False, False), decided.words
    if decided.matches[0] is not None:
        assert decided.words["denied"] in row.reply


def test_each_phrase_is_in_one_class_and_stands_as_its_words_are_read() -> None:
    classes = [
        *PHRASES.classes.values(),
        *(listed for kind in PHRASES.kinds.values() for listed in (kind.asking, kind.nouns)),
    ]
    phrases = [phrase for listed in classes for phrase in (*listed.en, *listed.zh)]
    read = [tuple(word.text for word in words(plain(phrase))) or (phrase,) for phrase in phrases]
    assert len(set(read)) == len(read)
    assert set(read) == set(lexicon()[0])
    korean = [phrase for listed in classes for phrase in listed.ko]
    assert len(set(korean)) == len(korean)
