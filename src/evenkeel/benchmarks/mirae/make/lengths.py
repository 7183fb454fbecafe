"""Stretch one question to seven prompts of 30 to 2,000 tokens, in several languages at once.

A plan says which sentences of the banks surround the question at each level, and how they are laid out. It
is made once and written in every language, so that the prompts of one question are translations of each
other; it is fitted so that the length is right in all of them.
"""

from __future__ import annotations

import heapq
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, groupby
from typing import Literal, NamedTuple, TypeAlias, get_args

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
from evenkeel.make.grammar import pick, shuffled

TOLERANCE = 0.15
WINDOW = 48
"""How many of the next sentences by priority are looked at when one is chosen."""
FEW = 8
TRIED = 4
"""How many of the moves that look best are tried out."""
SATISFYING = 0.12
CLOSE_ENOUGH = 0.10
"""A level within this of its target, in every language, is not fitted further; one within the value above
is not begun again."""

Count: TypeAlias = Callable[[str], int]
Position: TypeAlias = Literal["first", "middle", "last"]
POSITIONS: tuple[Position, ...] = get_args(Position)
"""Where the question is in its prompt."""
ENDS: tuple[Position, ...] = ("first", "last")

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
    positions: list[Position | None]
    """Where the question is at each level; None where there is nothing around it."""
    sentences: list[list[Sentence]]
    """What surrounds the question at each level: the same in every language."""


def balanced_positions(
    questions: Sequence[int], rng: random.Random, levels: int
) -> dict[int, list[Position]]:
    """For each question, the position at levels 2, 3 and so on.

    A Latin square: at every level each position is taken by a third of the questions (and of any run of
    `questions`, such as a domain), and every question has each position at a third of its levels.
    """
    start = int(rng.random() * len(POSITIONS))
    squares = [shuffled(questions[at : at + 3], rng) for at in range(0, len(questions), 3)]
    return {
        question: [POSITIONS[(start + rank + level) % 3] for level in range(levels)]
        for square in squares
        for rank, question in enumerate(square)
    }


def positions_of(texts: Sequence[str]) -> list[Position | None]:
    """Where the first text, the question, is in each of the others; None where it is not there literally."""
    question = texts[0].strip()
    positions: list[Position | None] = [None]
    for text in texts[1:]:
        before, literal, after = text.partition(question)
        position: Position = (
            "middle" if before.strip() and after.strip() else "last" if before.strip() else "first"
        )
        positions.append(position if literal else None)
    return positions


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


def _next(unused: Sequence[Sentence], added: Sequence[Sentence]) -> list[Sentence]:
    """The sentences that may be taken next: the topic's own for as long as there are several."""
    taken = set(added)
    free = [sentence for sentence in unused if sentence not in taken][:WINDOW]
    last = free[FEW - 1].source if len(free) >= FEW else max((each.source for each in free), default=0)
    return [sentence for sentence in free if sentence.source <= last]


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

    def levels(
        self, padding: Padding, positions: Sequence[Position], rng: random.Random, targets: Sequence[int]
    ) -> Levels:
        """The question alone, then with ever more around it: one text for each target and language.

        A level keeps every sentence of the level before and adds to them. A level that cannot come within
        the tolerance of its target is an error: the bank is too small, or the question too long.
        """
        pool = _by_priority(self.bank, padding, rng)
        levels = Levels({lang: [question] for lang, question in self.questions.items()}, [None], [[]])
        for level, (target, position) in enumerate(zip(targets[1:], positions, strict=True), start=2):
            layout = _Layout(self.bank, rng.getrandbits(64))
            used = levels.sentences[-1]
            for taken in (position, pick(ENDS, rng)):
                sentences = self.fit(used, pool, target, taken, layout)
                texts = self.write(self.lay_out(sentences, taken, layout))
                sizes = {lang: self.count(text) for lang, text in texts.items()}
                # One sentence cannot have the question in its middle, and two may be too long beside it.
                if taken != "middle" or _worst(sizes.values(), target) <= TOLERANCE:
                    break
            for lang, size in sizes.items():
                topic = f"{self.banks[lang].topic} ({lang})"
                _check(size, level, target, topic, exhausted=len(sentences) == len(pool))
                levels.texts[lang].append(texts[lang])
            levels.positions.append(taken)
            levels.sentences.append(sentences)
        return levels

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

    # --- fitting -------------------------------------------------------------------------------------

    def fit(
        self, used: list[Sentence], pool: Sequence[Sentence], target: int, position: Position, layout: _Layout
    ) -> list[Sentence]:
        """All sentences of the level before and some more, as near to the target as whole ones allow.

        Near means: with the smallest deviation in the language that deviates most.
        """
        taken = set(used)
        unused = [sentence for sentence in pool if sentence not in taken]
        fewest = 2 if position == "middle" and not used else 1
        if not unused:
            return used
        added = self._filling(used, unused, target, position, layout, fewest)
        fits: list[tuple[float, list[Sentence]]] = []
        # One more sentence may turn a note into paragraphs with connectives: fewer and longer ones may fit.
        for start in range(len(added), max(fewest, len(added) - 3) - 1, -1):
            fits.append(self._improved(used, added[:start], unused, target, position, layout, fewest))
            if fits[-1][0] <= SATISFYING:
                break
        else:
            if fewest == 2:
                pair = self._pair(unused, target, position, layout)
                fits.append(self._improved(used, pair, unused, target, position, layout, fewest))
        return [*used, *min(fits, key=lambda fit: fit[0])[1]]

    def _improved(
        self,
        used: Sequence[Sentence],
        added: list[Sentence],
        unused: Sequence[Sentence],
        target: int,
        position: Position,
        layout: _Layout,
        fewest: int,
    ) -> tuple[float, list[Sentence]]:
        """Single sentences exchanged, added or dropped for as long as that helps."""

        def deviation(candidate: Sequence[Sentence]) -> float:
            return _worst(self.measure([*used, *candidate], position, layout), target)

        best = deviation(added)
        while best > CLOSE_ENOUGH:
            sizes = self.measure([*used, *added], position, layout)
            # Connectives come and go with the sentences, so that the best move by their sizes may not be.
            moves = self._moves(sizes, added, unused, target, fewest)
            worst, move = min(((deviation(move), move) for move in moves), key=lambda pair: pair[0])
            if worst >= best:
                break
            added, best = move, worst
        return best, added

    def _filling(
        self,
        used: Sequence[Sentence],
        unused: Sequence[Sentence],
        target: int,
        position: Position,
        layout: _Layout,
        fewest: int,
    ) -> list[Sentence]:
        """Sentences by their priority, for nine tenths of the gap at a time: connectives come on top."""
        added: list[Sentence] = []
        while True:
            sizes = self.measure([*used, *added], position, layout)
            room = 0.9 * (target - (max(sizes) + min(sizes)) / 2)
            more: list[Sentence] = []
            for sentence in _next(unused, added):
                # Where two are needed, the first of them leaves room for the second.
                limit = 0.5 * room if len(added) + len(more) + 1 < fewest else room
                if self.centre(sentence) <= limit:
                    more.append(sentence)
                    room -= self.centre(sentence)
            if not more:
                break
            added += more
        if fewest == 2 and len(added) < fewest:
            return self._pair(unused, target, position, layout)
        return added or [min(unused, key=self.centre)]

    def _pair(
        self, unused: Sequence[Sentence], target: int, position: Position, layout: _Layout
    ) -> list[Sentence]:
        """The first two sentences by priority, of the shortest, with which the target is met, or nearly."""
        empty = self.measure([], position, layout)

        def deviation(pair: tuple[Sentence, Sentence]) -> float:
            sizes = zip(empty, *map(self.size, pair), strict=True)
            return max(CLOSE_ENOUGH, _worst(map(sum, sizes), target))

        shortest = set(sorted(unused, key=self.centre)[:WINDOW])
        pairs = combinations([sentence for sentence in unused if sentence in shortest], 2)
        return list(min(pairs, key=deviation, default=()))

    def _moves(
        self,
        sizes: Sequence[float],
        added: Sequence[Sentence],
        unused: Sequence[Sentence],
        target: int,
        fewest: int,
    ) -> list[list[Sentence]]:
        """With one sentence exchanged, more or less: what should come nearest to the target."""
        free: list[Sentence | None] = [*_next(unused, added)]
        nothing = (0,) * len(sizes)
        moves: list[tuple[float, int, Sentence | None]] = []
        # The last added are the last by priority: exchanging them changes the plan least.
        for at in range(max(0, len(added) - 4), len(added) + 1):
            old = self.size(added[at]) if at < len(added) else nothing
            left = [size - less for size, less in zip(sizes, old, strict=True)]
            for option in [*free, None] if at < len(added) > fewest else free:
                new = self.size(option) if option else nothing
                moved = (size + more for size, more in zip(left, new, strict=True))
                moves.append((max(CLOSE_ENOUGH, _worst(moved, target)), at, option))
        nearest = heapq.nsmallest(TRIED, moves, key=lambda move: move[0])
        return [
            [*added[:at], *([option] if option else []), *added[at + 1 :]] for _, at, option in nearest
        ] or [list(added)]

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


def _worst(sizes: Iterable[float], target: int) -> float:
    """The largest relative deviation from the target."""
    return max(abs(size - target) for size in sizes) / target


def _check(size: int, level: int, target: int, topic: str, *, exhausted: bool) -> None:
    low, high = (1 - TOLERANCE) * target, (1 + TOLERANCE) * target
    if low <= size <= high:
        return
    if size > high:
        advice = "the question is too long for it, or every sentence of the bank is; shorten the question"
    elif exhausted:
        advice = "every sentence of the bank is used; add sentences to it"
    else:
        advice = "no sentence of the bank is short enough to fill the gap; add shorter ones"
    raise UsageError(
        f"level {level} about {topic} comes to {size} tokens, outside {low:.0f} to {high:.0f}: {advice}."
    )


def _decapitalised(sentence: str) -> str:
    """For a sentence after a link. Banks begin no sentence with a name; "I" and "DNA" stay as they are."""
    first = sentence.split(" ", 1)[0]
    if first == "A":
        return f"a{sentence[1:]}"
    keeps = len(first) < 2 or not first[1].islower()
    return sentence if keeps else sentence[0].lower() + sentence[1:]
