"""Stretch one question to seven prompts of 30 to 2,000 tokens, in several languages at once.

A plan says which sentences of the banks surround the question at each level, and how they are laid out. It
is made once and written in every language, so that the prompts of one question are translations of each
other. Levels are filled greedily; a plan of which a text is too far from its length is drawn again.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from evenkeel.benchmarks.mirae.make.phrases import (
    KINDS,
    PADDINGS,
    Bank,
    Kind,
    Padding,
    Phrase,
    Piece,
    Sentence,
)
from evenkeel.errors import UsageError
from evenkeel.make.grammar import pick, seeded, shuffled

TOLERANCE = 0.15
TRIES = 40
"""Plans that are drawn before a question is given up."""
FILLED = 0.9
"""The share of a gap that is filled at once: connectives come on top."""

Count: TypeAlias = Callable[[str], int]
Position: TypeAlias = Literal["first", "middle", "last"]
POSITIONS: tuple[Position, ...] = ("first", "middle", "last")
"""Where the question is in its prompt."""

PARTS: tuple[tuple[Kind, ...], ...] = (
    ("situation", "purpose"),
    ("background",),
    ("aspect", "consideration"),
    ("constraint", "form"),
)
"""Kinds of sentences that stay together."""
ORDERS = ((0, 1, 2, 3), (1, 2, 0, 3))
LONGEST_PARAGRAPH = 5
LONGEST_NOTE = 7
"""Up to this many sentences around a question are one paragraph without connectives."""
_END = re.compile(r"""[.?!…。？！][\s"'”’»)\]」』》）]*$""")
"""What ends a sentence."""
LONGEST_LETTER = 12
"""Up to this many are paragraphs that no sentence announces."""


class Levels(NamedTuple):
    """One question at every level."""

    texts: dict[str, list[str]]
    """By language, one text for each target."""
    sentences: list[list[Sentence]]
    """What surrounds the question at each level: the same in every language."""


def _by_priority(bank: Bank, padding: Padding, rng: random.Random) -> list[Sentence]:
    """All sentences in the order in which levels take them: mixed so that every kind keeps its share.

    The topic's own come before the generic ones, and who is asking before all others of the situation.
    """
    ranked: list[tuple[float, Sentence]] = []
    asker = pick(range(len(bank.materials[0].askers)), rng)
    ranked.append((rng.random() / 16, Sentence(0, "situation", -1, asker)))
    for source in range(len(bank.materials)):
        for kind in PADDINGS[padding]:
            of_kind = [
                piece
                for piece in bank.texts
                if isinstance(piece, Sentence)
                and (piece.source, piece.kind) == (source, kind)
                and piece.paragraph >= 0
            ]
            # What elaborates the question itself comes early, as in the published prompts.
            share = 0.6 if kind == "aspect" else 1.0
            for rank, sentence in enumerate(shuffled(of_kind, rng)):
                ranked.append((source + share * (rank + rng.random()) / len(of_kind), sentence))
    return [sentence for _, sentence in sorted(ranked)]


class _Line(NamedTuple):
    """One sentence of a text, with the words that link it to the one before; None is the question."""

    piece: Piece | None
    link: Phrase | None = None


_Blocks: TypeAlias = list[list[_Line]]
"""The paragraphs of a text, without their language."""


class Composer:
    """Writes the levels of one question in several languages, by their length in all of them."""

    def __init__(self, questions: Mapping[str, str], banks: Mapping[str, Bank], count: Count) -> None:
        self.questions = questions
        self.banks = banks
        self.count = count
        self.bank = next(iter(banks.values()))  # the banks of all languages have the same pieces
        self.break_size = count("\n\n")
        self.question_sizes = tuple(map(count, questions.values()))
        # A question without an end mark would run into the sentence after it.
        self.question_apart = not all(map(_END.search, questions.values()))
        self._sizes: dict[Piece, tuple[int, ...]] = {}

    def levels(self, padding: Padding, key: Sequence[object], targets: Sequence[int]) -> Levels:
        """The question alone, then with ever more around it: one text for each target and language.

        A level keeps every sentence of the level before and adds to them. Where no plan comes within the
        tolerance of every target that is an error: the bank is too small, or the question too long.
        """
        for attempt in range(TRIES):
            levels, problem = self._plan(padding, seeded(*key, attempt), targets)
            if not problem:
                return levels
        raise UsageError(problem)

    def _plan(self, padding: Padding, rng: random.Random, targets: Sequence[int]) -> tuple[Levels, str]:
        """One draw, and what is wrong with its first text that has another length than it should."""
        pool = _by_priority(self.bank, padding, rng)
        levels = Levels({lang: [question] for lang, question in self.questions.items()}, [[]])
        for level, target in enumerate(targets[1:], start=2):
            layout, position = _Layout(self.bank, rng.getrandbits(64)), pick(POSITIONS, rng)
            sentences = self.fill(levels.sentences[-1], pool, target, position, layout)
            texts = self.write(self.lay_out(sentences, position, layout))
            for lang, text in texts.items():
                topic = f"{self.banks[lang].topic} ({lang})"
                exhausted = len(sentences) == len(pool)
                if problem := _problem(self.count(text), level, target, topic, exhausted=exhausted):
                    return levels, problem
                levels.texts[lang].append(text)
            levels.sentences.append(sentences)
        return levels, ""

    def fill(
        self,
        used: Sequence[Sentence],
        pool: Sequence[Sentence],
        target: int,
        position: Position,
        layout: _Layout,
    ) -> list[Sentence]:
        """All sentences of the level before, by their priority those more that fit, and one that leaves the
        smallest gap. What brings connectives that are too long is left out again."""
        sentences = list(used)

        def gap() -> float:
            sizes = self.measure(sentences, position, layout)
            return target - (max(sizes) + min(sizes)) / 2

        while more := self._fitting(pool, sentences, FILLED * gap()):
            sentences += more
            if gap() < 0:
                while gap() < 0:
                    sentences.pop()
                break
        left = gap()
        unused = [sentence for sentence in pool if sentence not in set(sentences)]
        last = min(unused, key=lambda sentence: abs(left - self.centre(sentence)), default=None)
        if last and abs(left - self.centre(last)) < left:
            sentences.append(last)
            if abs(gap()) > left:
                sentences.pop()
        return sentences

    def _fitting(self, pool: Sequence[Sentence], used: Sequence[Sentence], room: float) -> list[Sentence]:
        """Sentences by their priority, for as long as there is room."""
        taken, fitting = set(used), []
        for sentence in pool:
            if sentence not in taken and self.centre(sentence) <= room:
                fitting.append(sentence)
                room -= self.centre(sentence)
        return fitting

    def size(self, piece: Piece) -> tuple[int, ...]:
        """A piece's tokens in each language."""
        if piece not in self._sizes:
            self._sizes[piece] = tuple(self.count(bank.texts[piece]) for bank in self.banks.values())
        return self._sizes[piece]

    def centre(self, piece: Piece) -> float:
        sizes = self.size(piece)
        return (max(sizes) + min(sizes)) / 2

    def write(self, blocks: _Blocks) -> dict[str, str]:
        return {lang: _written(blocks, self.questions[lang], bank) for lang, bank in self.banks.items()}

    def measure(self, sentences: Sequence[Sentence], position: Position, layout: _Layout) -> list[int]:
        """About how many tokens a text has in each language: the sum of its pieces."""
        blocks = self.lay_out(sentences, position, layout)
        pieces = [piece for block in blocks for line in block for piece in line if piece is not None]
        sizes = zip(self.question_sizes, *map(self.size, pieces), strict=True)
        return [sum(of_language) + self.break_size * (len(blocks) - 1) for of_language in sizes]

    # --- layout --------------------------------------------------------------------------------------

    def lay_out(self, sentences: Sequence[Sentence], position: Position, layout: _Layout) -> _Blocks:
        """The paragraphs of one text, the question among them."""
        ordered = layout.ordered(sentences)
        if len(sentences) <= LONGEST_NOTE:
            lines = [_Line(sentence) for part in ordered for sentence in part]
            at = self._place([[line] for line in lines], position)
            if self.question_apart:
                return [block for block in (lines[:at], [_Line(None)], lines[at:]) if block]
            return [[*lines[:at], _Line(None), *lines[at:]]]
        draft = _Draft(layout, announces=len(sentences) > LONGEST_LETTER)
        blocks = [draft.paragraph(group) for part in ordered for group in _grouped(part)]
        at = self._place(blocks, position)
        # A question after other paragraphs is introduced.
        blocks.insert(at, [_Line(layout.ask), _Line(None)] if at else [_Line(None)])
        return blocks

    def _place(self, blocks: _Blocks, position: Position) -> int:
        """The index at which the question goes; in the middle, where as much comes before as after."""
        if position == "first" or not blocks:
            return 0
        if position == "last" or len(blocks) == 1:
            return len(blocks)
        sizes = [sum(self.centre(piece) for line in b for piece in line if piece) for b in blocks]
        return min(range(1, len(blocks)), key=lambda at: abs(sum(sizes[:at]) - sum(sizes[at:])))


class _Layout:
    """The look of one text: the order of its parts and paragraphs, and the connectives in their order.

    All of it is drawn before the sentences are known, so that one more of them changes little else.
    """

    def __init__(self, bank: Bank, seed: int) -> None:
        rng = random.Random(seed)
        self.seed = seed
        self.generic = len(bank.materials) - 1
        self.order = pick(ORDERS, rng)
        self.ranks = {
            (source, kind, paragraph): (source, rank)
            for source, material in enumerate(bank.materials)
            for kind in KINDS
            for rank, paragraph in enumerate([-1, *shuffled(range(len(getattr(material, kind))), rng)])
        }
        shared = bank.connectives

        def decks(name: Literal["openings", "further", "links"]) -> dict[Kind, list[Phrase]]:
            """Each phrase once, so that no text repeats one."""
            sizes = {kind: range(len(getattr(shared, name)[kind])) for kind in KINDS}
            return {kind: [Phrase(name, kind, at) for at in shuffled(sizes[kind], rng)] for kind in KINDS}

        self.openings, self.further, self.links = decks("openings"), decks("further"), decks("links")
        self.ask = Phrase("asks", None, pick(range(len(shared.asks)), rng))

    def ordered(self, sentences: Sequence[Sentence]) -> list[list[Sentence]]:
        """The parts of the text, each kind by kind and paragraph by paragraph of the bank."""
        parts = []
        for index in self.order:
            kinds = PARTS[index]
            part = [sentence for sentence in sentences if sentence.kind in kinds]
            parts.append(sorted(part, key=lambda each: (kinds.index(each.kind), self._rank(each))))
        return parts

    def _rank(self, sentence: Sentence) -> tuple[tuple[int, int], int]:
        return self.ranks[sentence.source, sentence.kind, sentence.paragraph], sentence.position


class _Draft:
    """Writes the paragraphs of one text with the connectives of its layout, each at most once."""

    def __init__(self, layout: _Layout, *, announces: bool) -> None:
        self.layout = layout
        self.announces = announces
        self.rng = random.Random(layout.seed)
        self.opened: set[Kind] = set()
        self.used: Counter[tuple[str, Kind]] = Counter()

    def next(self, name: Literal["openings", "further", "links"], kind: Kind) -> Phrase | None:
        deck: list[Phrase] = getattr(self.layout, name)[kind]
        self.used[name, kind] += 1
        return deck[self.used[name, kind] - 1] if self.used[name, kind] <= len(deck) else None

    def paragraph(self, sentences: Sequence[Sentence]) -> list[_Line]:
        lines = []
        first = sentences[0]
        # Generic background is of no particular kind that an opening could announce.
        fits = first.kind != "background" or first.source < self.layout.generic
        if len(sentences) > 1 and self.rng.random() < 0.85 and fits and self.announces:
            opening = self.next("further" if first.kind in self.opened else "openings", first.kind)
            lines += [_Line(opening)] if opening else []
        self.opened |= {sentence.kind for sentence in sentences}
        linked, before = True, first.kind  # neither the first sentence nor two in a row are linked
        for sentence in sentences:
            # A link ties a sentence to one of the same kind; between two kinds it would claim too much.
            linked = not linked and sentence.kind == before and self.rng.random() < 0.35
            before = sentence.kind
            lines.append(_Line(sentence, self.next("links", before) if linked else None))
        return lines


def _grouped(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """The paragraphs of a part: one if it is short, else each kind apart.

    Within a kind a paragraph of the bank joins the one before where both together stay short; the sentence
    that says who asks joins whatever follows it.
    """
    if len(sentences) <= LONGEST_PARAGRAPH:
        return [list(sentences)] if sentences else []
    groups: list[list[Sentence]] = []
    for (_, kind, _), run in groupby(sentences, key=lambda each: (each.source, each.kind, each.paragraph)):
        group, before = list(run), groups[-1] if groups else []
        is_short = len(before) + len(group) <= LONGEST_PARAGRAPH + (len(group) == 1)
        if before and (before[-1].kind == kind or before[-1].paragraph < 0) and is_short:
            before += group
        else:
            groups.append(group)
    return groups


def _written(blocks: _Blocks, question: str, bank: Bank) -> str:
    gap = bank.connectives.gap

    def line(part: _Line) -> str:
        text = bank.texts[part.piece] if part.piece else question
        return f"{bank.texts[part.link]}{gap}{_decapitalised(text)}" if part.link else text

    return "\n\n".join(gap.join(map(line, block)) for block in blocks)


def _problem(size: int, level: int, target: int, topic: str, *, exhausted: bool) -> str:
    """What is wrong with a text of so many tokens; empty where it is near enough to its target."""
    low, high = (1 - TOLERANCE) * target, (1 + TOLERANCE) * target
    if low <= size <= high:
        return ""
    if size > high:
        advice = "the question is too long for it, or every sentence of the bank is; shorten the question"
    elif exhausted:
        advice = "every sentence of the bank is used; add sentences to it"
    else:
        advice = "no sentence of the bank is short enough to fill the gap; add shorter ones"
    return f"level {level} about {topic} comes to {size} tokens, outside {low:.0f} to {high:.0f}: {advice}."


def _decapitalised(sentence: str) -> str:
    """For a sentence after a link. Banks begin no sentence with a name; "I" and "DNA" stay as they are."""
    first = sentence.split(" ", 1)[0]
    if first == "A":
        return f"a{sentence[1:]}"
    keeps = len(first) < 2 or not first[1].islower()
    return sentence if keeps else sentence[0].lower() + sentence[1:]
