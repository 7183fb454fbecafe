"""Stretch one question to seven prompts of 30 to 2,000 tokens: the longer, the more of a person's reasons.

The sentences are data (`bank/<language>/`); here they are chosen, ordered and joined.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from evenkeel.benchmarks.mirae.make.phrases import KINDS, Bank, Kind, Material
from evenkeel.errors import UsageError
from evenkeel.make.grammar import fill, pick, shuffled

TOLERANCE = 0.15

Count: TypeAlias = Callable[[str], int]

PARTS: dict[str, tuple[Kind, ...]] = {
    "asker": ("situation", "purpose"),
    "matter": ("background", "consideration"),
    "answer": ("constraint", "form"),
}
# Where people put the question: first, after saying who they are, before their wishes, or at the very end.
ORDERS = (
    ("ask", "asker", "matter", "answer"),
    ("asker", "ask", "matter", "answer"),
    ("asker", "matter", "ask", "answer"),
    ("matter", "asker", "ask", "answer"),
    ("asker", "matter", "answer", "ask"),
)
LONGEST_PARAGRAPH = 5
LONGEST_NOTE = 7
"""Up to this many sentences around a question are one paragraph without connectives."""


class Item(NamedTuple):
    """One sentence of the material (or two that belong together), and its position there."""

    kind: Kind
    paragraph: int
    position: int
    text: str


def compose_levels(
    question: str, bank: Bank, rng: random.Random, targets: Sequence[int], count: Count
) -> list[str]:
    """The question alone, then with ever more around it: one text for each target.

    A level keeps every sentence of the level before and adds to them. A level that cannot come within
    the tolerance of its target is an error: the bank is too small, or the question too long.
    """
    items = _by_priority(bank.material, rng)
    sizes = {item: count(item.text) for item in items}
    texts = [question]
    used: list[Item] = []
    for level, target in enumerate(targets[1:], start=2):
        layout = rng.getrandbits(64)

        def measure(items: list[Item], layout: int = layout) -> _Fit:
            text = _Layout(bank, random.Random(layout)).write(question, items)
            return _Fit(text, count(text), items)

        unused = [item for item in items if item not in used]
        fit = _Fitter(target, measure, sizes).fit(used, unused)
        _check(fit, level, target, bank.material, exhausted=len(fit.items) == len(items))
        texts.append(fit.text)
        used = fit.items
    return texts


def _by_priority(material: Material, rng: random.Random) -> list[Item]:
    """All items in the order in which levels take them: mixed so that every kind keeps its share."""
    ranked: list[tuple[float, Item]] = []
    for kind in KINDS:
        items = [
            Item(kind, number, position, text)
            for number, paragraph in enumerate(getattr(material, kind))
            for position, text in enumerate(paragraph)
        ]
        # A short note says who asks and what is wanted before it goes into the matter.
        delay = 0.04 if kind in PARTS["matter"] else 0.0
        for rank, item in enumerate(shuffled(items, rng)):
            ranked.append((delay + (rank + rng.random()) / len(items), item))
    # Who is asking comes early, and before all other sentences of the situation.
    asker = pick(material.askers, rng)
    ranked.append((rng.random() / 16, Item("situation", -1, 0, asker)))
    return [item for _, item in sorted(ranked)]


class _Fit(NamedTuple):
    """A text of one level, its size in tokens, and the items in it."""

    text: str
    size: int
    items: list[Item]


class _Fitter(NamedTuple):
    """Chooses items for one level until its text is as near to the target as whole sentences allow."""

    target: int
    measure: Callable[[list[Item]], _Fit]
    sizes: Mapping[Item, int]

    def fit(self, used: list[Item], unused: Sequence[Item]) -> _Fit:
        """All items of the level before, and at least one more."""
        best = self.measure(used)
        pool = list(unused)
        while pool:
            trial = self.extended(best, self.chosen(pool, self.target - best.size))
            if len(best.items) > len(used) and not self.nearer(trial, best):
                break
            best = trial
            pool = [item for item in pool if item not in trial.items]
        return self.exchanged(best, best.items[len(used) :], pool)

    def nearer(self, one: _Fit, other: _Fit) -> bool:
        return abs(one.size - self.target) < abs(other.size - self.target)

    def chosen(self, pool: Sequence[Item], gap: int) -> list[Item]:
        """Items for nine tenths of the gap (connectives come on top); if none fits, the nearest in size."""
        room = 0.9 * gap
        items = []
        for item in pool:
            if self.sizes[item] <= room:
                items.append(item)
                room -= self.sizes[item]
        return items or [min(pool, key=lambda item: abs(self.sizes[item] - gap))]

    def extended(self, fit: _Fit, items: list[Item]) -> _Fit:
        """With further items, less the last of them where the connectives have made the text too long."""
        trial = self.measure([*fit.items, *items])
        while trial.size > self.target and len(items) > 1:
            items = items[:-1]
            shorter = self.measure([*fit.items, *items])
            if not self.nearer(shorter, trial):
                break
            trial = shorter
        return trial

    def exchanged(self, fit: _Fit, added: Sequence[Item], pool: Sequence[Item]) -> _Fit:
        """With one added item exchanged for another, if that should bring the text nearer by at least 2 %."""

        def miss(pair: tuple[Item, Item]) -> int:
            return abs(fit.size - self.sizes[pair[0]] + self.sizes[pair[1]] - self.target)

        pair = min(((old, new) for old in added for new in pool), key=miss, default=None)
        if pair is None or abs(fit.size - self.target) - miss(pair) < 0.02 * self.target:
            return fit
        old, new = pair
        trial = self.measure([new if item == old else item for item in fit.items])
        return trial if self.nearer(trial, fit) else fit


def _check(fit: _Fit, level: int, target: int, material: Material, *, exhausted: bool) -> None:
    low, high = (1 - TOLERANCE) * target, (1 + TOLERANCE) * target
    if low <= fit.size <= high:
        return
    if fit.size > high:
        advice = "the question is too long for it, or every sentence of the bank is; shorten the question"
    elif exhausted:
        advice = "every sentence of the bank is used; add sentences to it"
    else:
        advice = "no sentence of the bank is short enough to fill the gap; add shorter ones"
    raise UsageError(
        f"level {level} about {material.topic} comes to {fit.size} tokens, "
        f"outside {low:.0f} to {high:.0f}: {advice}."
    )


# --- writing one text -------------------------------------------------------------------------------


class _Layout:
    """The look of one text: order of the parts, paragraphs, and which connectives go where."""

    def __init__(self, bank: Bank, rng: random.Random) -> None:
        phrases = bank.connectives
        self.gap = phrases.gap
        self.rng = rng
        self.order = pick(ORDERS, rng)
        # Drawn before anything depends on the items, so that one more sentence changes little else.
        self.paragraphs = {
            kind: [-1, *shuffled(range(len(getattr(bank.material, kind))), rng)] for kind in KINDS
        }

        def deck(templates: Iterable[str]) -> Iterator[str]:
            """Each phrase once, so that no text repeats one."""
            return (fill(template, {"topic": bank.material.topic}) for template in shuffled(templates, rng))

        self.openings = {kind: deck(phrases.openings[kind]) for kind in KINDS}
        self.further = {kind: deck(phrases.further[kind]) for kind in KINDS}
        self.links = {kind: deck(phrases.links[kind]) for kind in KINDS}
        self.asks = deck(phrases.asks)
        self.opened: set[Kind] = set()

    def write(self, question: str, items: Sequence[Item]) -> str:
        is_note = len(items) <= LONGEST_NOTE
        blocks: list[str] = []
        for part in self.order:
            if part == "ask":
                asked_first = is_note or not blocks
                blocks.append(question if asked_first else self.gap.join([next(self.asks), question]))
            elif is_note:
                blocks += [item.text for item in self._sorted(part, items)]
            else:
                blocks += [self._paragraph(group) for group in self._grouped(self._sorted(part, items))]
        return (self.gap if is_note else "\n\n").join(blocks)

    def _sorted(self, part: str, items: Sequence[Item]) -> list[Item]:
        """The items of a part in the order of the text: kind by kind, paragraph by paragraph of the bank."""
        kinds = PARTS[part]

        def order(item: Item) -> tuple[int, int, int]:
            return kinds.index(item.kind), self.paragraphs[item.kind].index(item.paragraph), item.position

        return sorted((item for item in items if item.kind in kinds), key=order)

    def _grouped(self, items: Sequence[Item]) -> list[list[Item]]:
        """The paragraphs of a part: one if it is short, else each kind apart.

        Within a kind a paragraph of the bank joins the one before where both together stay short.
        """
        if len(items) <= LONGEST_PARAGRAPH:
            return [list(items)] if items else []
        groups: list[list[Item]] = []
        for (kind, _), run in groupby(items, key=lambda item: (item.kind, item.paragraph)):
            group, before = list(run), groups[-1] if groups else []
            is_short = len(before) + len(group) <= LONGEST_PARAGRAPH or len(group) == 1
            if before and before[0].kind == kind and is_short:
                before += group
            else:
                groups.append(group)
        return groups

    def _paragraph(self, items: Sequence[Item]) -> str:
        sentences = []
        kind = items[0].kind
        decks = self.further if kind in self.opened else self.openings
        self.opened |= {item.kind for item in items}
        opening = next(decks[kind], "") if len(items) > 1 and self.rng.random() < 0.85 else ""
        if opening:
            sentences.append(opening)
        linked, before = True, kind  # neither the first sentence nor two in a row are linked
        for item in items:
            # A link ties a sentence to one of the same kind; between two kinds it would claim too much.
            linked, before = not linked and item.kind == before and self.rng.random() < 0.35, item.kind
            link = next(self.links[item.kind], "") if linked else ""
            sentences.append(f"{link}{self.gap}{_decapitalised(item.text)}" if link else item.text)
        return self.gap.join(sentences)


def _decapitalised(sentence: str) -> str:
    """For a sentence after a link. Banks begin no sentence with a name; "I" and "DNA" stay as they are."""
    first = sentence.split(" ", 1)[0]
    if first == "A":
        return f"a{sentence[1:]}"
    keeps = len(first) < 2 or not first[1].islower()
    return sentence if keeps else sentence[0].lower() + sentence[1:]
