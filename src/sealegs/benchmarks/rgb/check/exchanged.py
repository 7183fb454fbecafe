"""Whether a reply to a question of two parts exchanges their values: the visitors of 2004 for those of 2002.

The halves of a question differ by the words that only one of them has. Two values are exchanged where
the clause of each has words of the other half and none of its own; a reply that gives both rightly somewhere
exchanges nothing. Two values in a row, with words of no half about them, are in the order of the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from sealegs.text.answer_check.clauses import TokenSpan
from sealegs.text.answer_check.reply import NamedAnswer, answer_spans
from sealegs.text.answer_check.wording import ClassifiedReply, asked_forms, form
from sealegs.text.answer_search.mention import Answer, is_title, target
from sealegs.text.answer_search.normalization import Word

_ASKING = "(?:[谁么少几哪]|多远)"
_CLAUSE = "[^,;?。]*"
_BETWEEN_QUESTIONS = re.compile(
    rf"[,;]( and )|(?<![^,;?。])(?={_CLAUSE}{_ASKING}){_CLAUSE}+([,;?])(?={_CLAUSE}{_ASKING})"
)
_BETWEEN_NAMES = re.compile(r"( and |[和与及])")
_PAUSE = re.compile(r"[.?!:;,。]\s*(?=\S)")
_PRONOUN = re.compile(r"\b(?:it|he|she|they) (\w+)")
_UNTELLING = frozenset({"it", "they", "who", "was", "are", "1", *"一分别又其中得"})
"""Words of questions that name neither half."""
_JOINING = frozenset({"and", "but", "while", "whereas"})
_IN_A_ROW = frozenset(("and", "2", "b", "part", "question", "answer", "is", "to", "document")).union(
    "和与及第个问题的答案是为后者部分文档"
)
"""Words between two values that only list them: "1. York 2. Leeds", 第二个问题的答案是."""
MOST_BETWEEN = 12
_SCALES = (
    (
        frozenset({"best", "most", "highest", "largest", "longest", "biggest", *"多高大长贵"}),
        frozenset({"worst", "least", "fewest", "lowest", "smallest", "shortest", "cheapest", *"少低小短"}),
    ),
    (frozenset({"earliest", *"早先"}), frozenset({"latest", *"晚后"})),
)
"""Words for the two ends of a scale: who was asked for the best attended year gives the highest
attendance."""
_SUPERLATIVE = re.compile(r"[a-z]+|(?<=最).")
_ORDINALS = frozenset({"first", "former"}), frozenset({"second", "latter"})
"""Words that a reply may name the halves by, where the question has none of them."""


class _Mention(NamedTuple):
    start: int
    end: int
    part: int


def exchanged(reading: ClassifiedReply, query: str, right: NamedAnswer) -> TokenSpan | None:
    """The tokens by which a reply exchanges the two values of the right answer, or nothing."""
    halves = _halves(query) if len(right.answer) == 2 and _are_alike(right.answer) else None
    reading = reading._replace(words=_without_document_numbers(reading))
    mentions = _mentions(reading.words, query, right) if halves else []
    span = None
    for number, (first, second) in enumerate(pairwise(mentions)):
        if first.part == second.part:
            continue
        begin = _first_end(reading.words, mentions[number - 1].end, first.start) if number else 0
        behind = mentions[number + 2].start if number + 2 < len(mentions) else None
        end = len(reading.words) if behind is None else _first_end(reading.words, second.end, behind)
        limits = list(_ends(reading.words, first.end, second.start))
        for limit in {*limits[:1], *limits[-1:]}:
            forms = _forms(reading.words, begin, first, limit), _forms(reading.words, limit, second, end)
            names = [_most_named(forms[0] - forms[1], halves), _most_named(forms[1] - forms[0], halves)]
            if names == [first.part, second.part]:
                return None
            if names == [second.part, first.part]:
                span = span or _tokens(reading, first.start, second.end)
    return span or _misplaced(reading, mentions, halves) or _in_wrong_order(reading, mentions, halves)


def _without_document_numbers(reading: ClassifiedReply) -> Sequence[Word]:
    """The words of a reply, with "document" for the number of one."""
    pairs = (token for before, token in pairwise(reading.tokens) if before.letter + token.letter == "d#")
    numbers = {n for token in pairs for n in range(token.start, token.end)}
    return [word._replace(text="document") if n in numbers else word for n, word in enumerate(reading.words)]


def _in_wrong_order(
    reading: ClassifiedReply, mentions: Sequence[_Mention], halves: Sequence[frozenset[str]] | None
) -> TokenSpan | None:
    """The tokens that give the two values in a row, and never in the order of the question's halves."""
    listed, span = reading.words, None
    values = [word for each in mentions for word in (*listed[each.start : each.end], *_unit(listed, each))]
    own = {word.text for word in values}
    about = [word for word in listed if word.text not in own]
    named = _named_in(about, [word.sentence for word in about], halves)
    for first, second in pairwise(mentions):
        listing = _IN_A_ROW.union(word.text for word in _unit(listed, first))
        between = {word.text for word in listed[first.end : min(second.start, first.end + MOST_BETWEEN)]}
        near = second.start - first.end < MOST_BETWEEN
        if first.part == second.part or not near or not between <= listing:
            continue
        sentences = {listed[first.start].sentence, listed[second.start].sentence}
        after = listed[second.end : second.end + 1]
        longer = after and not between and after[0].sentence in sentences  # York, Leeds, Bath
        if first.part < second.part or longer or any(map(named.get, sentences)):
            return None
        span = span or _tokens(reading, first.start, second.end)
    return span


def _unit(listed: Sequence[Word], mention: _Mention) -> Sequence[Word]:
    """The word behind a number: its unit, where the value is found without it."""
    return listed[mention.end : mention.end + 1] if listed[mention.end - 1].number else ()


def _misplaced(
    reading: ClassifiedReply, mentions: Sequence[_Mention], halves: Sequence[frozenset[str]] | None
) -> TokenSpan | None:
    """The tokens that give the value of one half only to the other: by sentences about the other half alone,
    while those about its own half give the other value too, or by the clause of the value."""
    sentences = [word.sentence for word in reading.words]
    clauses = [word.clause for word in reading.words]
    own = {n for each in mentions for n in range(each.start, each.end)}
    about = _named_in(reading.words, sentences, halves, without=own) if mentions else {}
    about_clause = _named_in(reading.words, clauses, halves, without=own) if mentions else {}
    for part in (0, 1):
        other = {1 - part}
        mine = [mention.start for mention in mentions if mention.part == part]
        others = [mention.start for mention in mentions if mention.part != part]
        alone = {sentence for sentence, named in about.items() if named == {part}}
        if not mine or not alone or any(about[sentences[start]] != other for start in mine):
            continue
        both = any(sentences[start] in alone for start in others)
        if both or all(about_clause[clauses[start]] == other for start in mine):
            return _tokens(reading, mine[0], mine[0] + 1)
    return None


def _named_in(
    listed: Sequence[Word],
    groups: Sequence[int],
    halves: Sequence[frozenset[str]] | None,
    *,
    without: Collection[int] = (),
) -> dict[int, set[int]]:
    """Which halves of the question each sentence, or clause, names, not counting the words `without`: a
    company called Bridge Works names no bridge."""
    forms: dict[int, set[str]] = {group: set() for group in groups}
    for number, (word, group) in enumerate(zip(listed, groups, strict=True)):
        if number not in without:
            forms[group].add(form(word.text))
    return {group: _named(those, halves) for group, those in forms.items()}


def _forms(listed: Sequence[Word], begin: int, mention: _Mention, end: int) -> set[str]:
    """The words about a mention, without its own."""
    return {form(word.text) for word in (*listed[begin : mention.start], *listed[mention.end : end])}


def _named(forms: set[str], halves: Sequence[frozenset[str]] | None) -> set[int]:
    """Which halves of the question the words name."""
    return {part for part, half in enumerate(halves or ()) if half & forms}


def _most_named(forms: set[str], halves: Sequence[frozenset[str]] | None) -> int | None:
    """The half of the question of which the words name more."""
    first, second = (len(forms.intersection(half)) for half in halves or ("", ""))
    return None if first == second else int(second > first)


def _mentions(listed: Sequence[Word], query: str, right: NamedAnswer) -> list[_Mention]:
    """Where a reply has the values, without those inside others."""
    mentions = []
    for part, match in enumerate(right.matches):
        spans = answer_spans(NamedAnswer((right.answer[part],), (match,)), listed, "G", query)
        mentions += [_Mention(start, end, part) for start, (end, _) in spans.items()]
    mentions.sort(key=lambda mention: (mention.start, -mention.end))
    apart: list[_Mention] = []
    for mention in mentions:
        if not apart or mention.start >= apart[-1].end:
            apart.append(mention)
    return apart


def _ends(listed: Sequence[Word], start: int, end: int) -> Iterator[int]:
    """Where clauses end between two mentions."""
    for n in range(start, end + 1):
        if listed[n].clause != listed[n - 1].clause or (n < end and listed[n].text in _JOINING):
            yield n


def _first_end(listed: Sequence[Word], start: int, end: int) -> int:
    return next(_ends(listed, start, end), end)


def _tokens(reading: ClassifiedReply, start: int, end: int) -> TokenSpan:
    """The tokens of some words."""
    tokens = [n for n, token in enumerate(reading.tokens) if token.end > start and token.start < end]
    return TokenSpan(tokens[0], tokens[-1] + 1)


def _are_alike(answer: Answer) -> bool:
    """Whether both values are names, or numbers of the same unit: nobody exchanges others."""
    units = []
    for alternatives in answer:
        listed = target(alternatives[0]).words
        is_number = any(word.number for word in listed) and not is_title(alternatives[0])
        is_date = any(word.number and word.text[0] == "m" for word in listed)
        units.append({word.text for word in listed if not word.number} | {is_date} if is_number else None)
    return units[0] == units[1]


@lru_cache(maxsize=1024)
def _halves(query: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """The words that only one half of a question has, for each; None where no two halves can be told."""
    limits = list(_BETWEEN_QUESTIONS.finditer(query))
    names = list(_BETWEEN_NAMES.finditer(query))
    if not limits and len(names) != 1:
        return None
    limit = (limits or names)[-1]
    all_before, after = query[: limit.start(limit.lastindex or 0)], query[limit.end() :]
    before = _PAUSE.split(all_before)[-1]
    first, second = asked_forms(before) - _UNTELLING, asked_forms(after) - _UNTELLING
    if (pronoun := _PRONOUN.search(after)) and (verb := re.search(rf"\b{pronoun[1]}\b", before)):
        subject = asked_forms(before[: verb.start()])  # that the pronoun stands for: both halves are about it
        first, second = first - subject, second - subject
    first, second = first - second, second - first
    ordinals = [frozenset(map(form, half)) for half in _ORDINALS]
    if first and second and not (first & ordinals[1] or second & ordinals[0]):
        first, second = first | ordinals[0], second | ordinals[1]
    ends = [frozenset(_SUPERLATIVE.findall(half.lower())) for half in (all_before, after)]
    for scale in _SCALES:
        for top, bottom in (scale, scale[::-1]):
            if top & ends[0] and bottom & ends[1]:
                return first | top, second | bottom
    return (first, second) if first and second else None
