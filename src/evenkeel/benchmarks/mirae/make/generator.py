"""Make MIRAE prompts: one question at seven lengths, the longer ones with more of a person's reasons.

The sentences are data (`bank/<language>/`); here they are chosen, ordered and joined. A seed decides
everything, so the same seed gives the same bytes on every machine. Of `random.Random` only `random()`
and `getrandbits()` are used: Python does not promise the other methods to stay the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias, TypeVar

from evenkeel.benchmarks.mirae.files import TARGETS
from evenkeel.benchmarks.mirae.make.phrases import KINDS, Bank, Kind, Material, connectives, topics
from evenkeel.errors import UsageError
from evenkeel.make.grammar import pick, shuffled
from evenkeel.text.token_estimate import APPROXIMATE, TokenCounter

GENERATOR = "evenkeel-mirae"
VERSION = 1
"""Goes up whenever the code or a bank changes the texts of a seed, so that a file tells which it is."""

TOLERANCE = 0.15

Count: TypeAlias = Callable[[str], int]
T = TypeVar("T")

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
    """One sentence of the material (or two that belong together), and where it stands there."""

    kind: Kind
    paragraph: int
    place: int
    text: str


class _Fit(NamedTuple):
    text: str
    size: int
    items: list[Item]


def compose(
    language: str = "en",
    seed: int = 0,
    counter: TokenCounter = APPROXIMATE,
    questions: Collection[int] | None = None,
) -> dict[str, Any]:
    """The question set of a seed, in the published file format; `questions` keeps only those ids.

    The language is no part of the random seed: with parallel banks, a seed then says much the same
    things in every language, as far as lengths allow.
    """
    phrases = connectives(language)
    asked = [topic for topic in topics(language) if questions is None or topic.id in questions]
    rows = []
    for topic in asked:
        rng = random.Random(f"{GENERATOR}/{VERSION}/{seed}/{topic.id}")
        try:
            texts = compose_levels(topic.question, Bank(phrases, topic), rng, TARGETS, counter.count)
        except UsageError as error:
            raise UsageError(f"Question {topic.id}: {error}") from None
        rows.append(row(topic.id, topic.domain, texts, counter.count))
    made_by = {"generator": GENERATOR, "generator_version": VERSION, "seed": seed}
    return question_file(rows, language=phrases.name, asked=len(rows), counter=counter, made_by=made_by)


def question_file(
    rows: list[dict[str, Any]],
    *,
    language: str,
    asked: int,
    counter: TokenCounter,
    made_by: Mapping[str, Any],
) -> dict[str, Any]:
    """Questions in the published file format, with how they came about."""
    return {
        "metadata": {
            "research_project": "MIRAE",
            "language": language,
            "total_questions": len(rows),
            "augmentation_status": {"successful": len(rows), "total_questions": asked},
            "level_token_ranges": level_token_ranges(TARGETS),
            **made_by,
            "token_counter": counter.name,
        },
        "questions": rows,
    }


def level_token_ranges(targets: Sequence[int]) -> dict[str, str]:
    """The targets as the published metadata words them."""
    return {
        f"level_{level}": f"~{target} tokens{' (baseline)' if level == 1 else ''}"
        for level, target in enumerate(targets, start=1)
    }


def row(question_id: int, domain: str, texts: Sequence[str], count: Count) -> dict[str, Any]:
    """One question with its levels as the published files have it."""
    result: dict[str, Any] = {"question_id": question_id, "domain": domain}
    for level, text in enumerate(texts, start=1):
        result |= {f"level_{level}_text": text, f"level_{level}_tokens": count(text)}
    return result


def compose_levels(
    question: str, bank: Bank, rng: random.Random, targets: Sequence[int], count: Count
) -> list[str]:
    """The question alone, then with ever more around it: one text a target.

    A level keeps every sentence of the level before and adds to them. A level that cannot come within
    the tolerance of its target is an error: the bank is too small, or the question too long.
    """
    pool = _by_priority(bank.material, rng)
    sizes = {item: count(item.text) for item in pool}
    texts = [question]
    kept: list[Item] = []
    for level, target in enumerate(targets[1:], start=2):
        layout = rng.getrandbits(64)

        def write(items: Sequence[Item], layout: int = layout) -> str:
            return _Layout(bank, random.Random(layout)).write(question, items)

        left = [item for item in pool if item not in kept]
        fit = _Fitter(target, write, count).fit(kept, left, sizes)
        _check(fit, level, target, bank.material, exhausted=len(fit.items) == len(pool))
        texts.append(fit.text)
        kept = fit.items
    return texts


def _by_priority(material: Material, rng: random.Random) -> list[Item]:
    """All items in the order in which levels take them: mixed so that every kind keeps its share."""
    ranked: list[tuple[float, Item]] = []
    for kind in KINDS:
        items = [
            Item(kind, number, place, text)
            for number, paragraph in enumerate(getattr(material, kind))
            for place, text in enumerate(paragraph)
        ]
        # A short note says who asks and what is wanted before it goes into the matter.
        delay = 0.04 if kind in PARTS["matter"] else 0.0
        for rank, item in enumerate(shuffled(items, rng)):
            ranked.append((delay + (rank + rng.random()) / len(items), item))
    # Whoever says anything says early who is asking; before all other sentences of the situation.
    asker = pick(material.askers, rng)
    ranked.append((rng.random() / 16, Item("situation", -1, 0, asker)))
    return [item for _, item in sorted(ranked)]


class _Fitter:
    """Chooses items for one level until its text is as near to the target as whole sentences allow."""

    def __init__(self, target: int, write: Callable[[Sequence[Item]], str], count: Count) -> None:
        self.target = target
        self.write = write
        self.count = count

    def measured(self, items: list[Item]) -> _Fit:
        text = self.write(items)
        return _Fit(text, self.count(text), items)

    def nearer(self, one: _Fit, other: _Fit) -> bool:
        return abs(one.size - self.target) < abs(other.size - self.target)

    def fit(self, kept: list[Item], pool: Sequence[Item], sizes: dict[Item, int]) -> _Fit:
        """All that is kept, and at least one more."""
        best = self.measured(kept)
        left = list(pool)
        while left:
            trial = self.extended(best, self.fill(left, self.target - best.size, sizes))
            if len(best.items) > len(kept) and not self.nearer(trial, best):
                break
            best = trial
            left = [item for item in left if item not in trial.items]
        return self.exchanged(best, kept, left, sizes)

    def fill(self, left: Sequence[Item], gap: int, sizes: dict[Item, int]) -> list[Item]:
        """Items for nine tenths of the gap (connectives come on top); if none fits, the nearest in size."""
        room = 0.9 * gap
        taken = []
        for item in left:
            if sizes[item] <= room:
                taken.append(item)
                room -= sizes[item]
        return taken or [min(left, key=lambda item: abs(sizes[item] - gap))]

    def extended(self, fit: _Fit, taken: list[Item]) -> _Fit:
        """With the items taken, less the last of them where the connectives have made it too long."""
        trial = self.measured([*fit.items, *taken])
        while trial.size > self.target and len(taken) > 1:
            taken = taken[:-1]
            shorter = self.measured([*fit.items, *taken])
            if not self.nearer(shorter, trial):
                break
            trial = shorter
        return trial

    def exchanged(self, fit: _Fit, kept: list[Item], left: Sequence[Item], sizes: dict[Item, int]) -> _Fit:
        """With one new item exchanged for another, where that should bring the text nearer by 2 % or more."""

        def miss(pair: tuple[Item, Item]) -> int:
            return abs(fit.size - sizes[pair[0]] + sizes[pair[1]] - self.target)

        pairs = [(out, into) for out in fit.items[len(kept) :] for into in left]
        pair = min(pairs, key=miss, default=None)
        if pair is None or abs(fit.size - self.target) - miss(pair) < 0.02 * self.target:
            return fit
        trial = self.measured([pair[1] if item == pair[0] else item for item in fit.items])
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
        self.phrases = bank.connectives
        self.rng = rng
        self.order = pick(ORDERS, rng)
        # Drawn before anything depends on the items, so that one more sentence changes little else.
        self.paragraphs = {
            kind: [-1, *shuffled(range(len(getattr(bank.material, kind))), rng)] for kind in KINDS
        }
        topic = bank.material.topic
        self.openings = {kind: self._deck(self.phrases.openings[kind], topic) for kind in KINDS}
        self.further = {kind: self._deck(self.phrases.further[kind], topic) for kind in KINDS}
        self.links = {kind: self._deck(self.phrases.links[kind], topic) for kind in KINDS}
        self.asks = self._deck(self.phrases.asks, topic)
        self.opened: set[Kind] = set()

    def _deck(self, phrases: Iterable[str], topic: str) -> Iterator[str]:
        """Phrases to be drawn, each once, so that no text repeats one."""
        return iter([phrase.replace("{topic}", topic) for phrase in shuffled(phrases, self.rng)])

    def write(self, question: str, items: Sequence[Item]) -> str:
        gap = self.phrases.gap
        if len(items) <= LONGEST_NOTE:
            sentences = []
            for part in self.order:
                sentences += (
                    [question] if part == "ask" else [item.text for item in self._sorted(part, items)]
                )
            return gap.join(sentences)
        paragraphs: list[str] = []
        for part in self.order:
            if part == "ask":
                paragraphs.append(self._ask(question, first=not paragraphs))
            else:
                paragraphs += [self._paragraph(block) for block in self._blocks(self._sorted(part, items))]
        return "\n\n".join(paragraphs)

    def _sorted(self, part: str, items: Sequence[Item]) -> list[Item]:
        """The items of a part as they will stand: kind by kind, paragraph by paragraph of the bank."""
        kinds = PARTS[part]

        def place(item: Item) -> tuple[int, int, int]:
            return kinds.index(item.kind), self.paragraphs[item.kind].index(item.paragraph), item.place

        return sorted((item for item in items if item.kind in kinds), key=place)

    def _blocks(self, items: Sequence[Item]) -> list[list[Item]]:
        """A short part is one paragraph; in a longer one every kind has paragraphs of its own."""
        if len(items) <= LONGEST_PARAGRAPH:
            return [list(items)] if items else []
        return [block for _, run in groupby(items, key=lambda item: item.kind) for block in self._joined(run)]

    def _joined(self, items: Iterable[Item]) -> list[list[Item]]:
        """Paragraphs of the bank, each joined with the one before where both together stay short."""
        blocks: list[list[Item]] = []
        for _, run in groupby(items, key=lambda item: item.paragraph):
            block = list(run)
            if blocks and (len(blocks[-1]) + len(block) <= LONGEST_PARAGRAPH or len(block) == 1):
                blocks[-1] += block
            else:
                blocks.append(block)
        return blocks

    def _ask(self, question: str, *, first: bool) -> str:
        return question if first else self.phrases.gap.join([next(self.asks), question])

    def _paragraph(self, items: Sequence[Item]) -> str:
        sentences = []
        kind = items[0].kind
        decks = self.further if kind in self.opened else self.openings
        self.opened |= {item.kind for item in items}
        lead = next(decks[kind], "") if len(items) > 1 and self.rng.random() < 0.85 else ""
        if lead:
            sentences.append(lead)
        linked, before = True, kind  # neither the first sentence nor two in a row are linked
        for item in items:
            # A link ties a sentence to one of its own kind; between two kinds it would claim too much.
            linked, before = not linked and item.kind == before and self.rng.random() < 0.35, item.kind
            link = next(self.links[item.kind], "") if linked else ""
            sentences.append(f"{link}{self.phrases.gap}{_decapitalised(item.text)}" if link else item.text)
        return self.phrases.gap.join(sentences)


def _decapitalised(sentence: str) -> str:
    """For a sentence after a link. Banks begin no sentence with a name; "I" and "DNA" stay as they are."""
    first = sentence.split(" ", 1)[0]
    if first == "A":
        return f"a{sentence[1:]}"
    keeps = len(first) < 2 or not first[1].islower()
    return sentence if keeps else sentence[0].lower() + sentence[1:]
