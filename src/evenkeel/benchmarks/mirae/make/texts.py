"""The texts that prompts are made of, and how a prompt of a length is cut from one.

A language is a folder `bank/<code>/`. `07.txt` is what somebody writes after asking question 7, so that the
question and the first so many sentences of it are a prompt that elaborates the question. `neutral-1.txt` has
nothing to do with any question. A file has a header, then paragraphs with one sentence a line:

    domain: FACTUAL
    question: At what temperature does pure water boil …?
    expected: 100 ; 373 | 373.15     the right answer: parts, each with its alternatives
    withheld: 100 | 373              words that the text must not give away
    names.pupil: Mina | Tom          one of them is written in the slot {pupil}
    free: 5-9                        paragraphs whose order among each other does not matter

    A sentence of the first paragraph.
    ~
    A sentence of another variant of the first paragraph.

The files of the languages are parallel, line by line.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias, get_args

from evenkeel.benchmarks.mirae.files import LANGUAGES, TARGETS
from evenkeel.errors import UsageError
from evenkeel.files.package_data import data_path, read_text
from evenkeel.make.grammar import fill, pick, shuffled

Count: TypeAlias = Callable[[str], int]
Padding: TypeAlias = Literal["neutral", "elaborate"]
PADDINGS: tuple[Padding, ...] = get_args(Padding)
"""What follows the question: `elaborate` adds demands, `neutral` only length."""
TOLERANCE = 0.35
"""How far a prompt may be from the length of its level: the shortest ones have room for a sentence or two."""
LABELS = {"en": "Unrelated text:", "ko": "관련 없는 글:", "zh": "无关的文字："}
"""What a neutral text begins with."""
GAPS = {"en": " ", "ko": " ", "zh": ""}
"""What separates two sentences."""


class Text(NamedTuple):
    """A file of the bank."""

    header: Mapping[str, str]
    paragraphs: Sequence[Sequence[Sequence[str]]]
    """Of each paragraph its variants, of each variant its sentences."""

    @property
    def expected(self) -> list[list[str]]:
        """The parts of the right answer, each with its alternatives; none for an open question."""
        listed = self.header.get("expected", "")
        return [[each.strip() for each in part.split("|")] for part in listed.split(";") if part]

    def draw(self, rng: random.Random) -> list[list[str]]:
        """The paragraphs with names, variants and order chosen: in each language the same."""
        slots = sorted(key for key in self.header if key.startswith("names."))
        names = {
            slot.removeprefix("names."): pick(self.header[slot].split("|"), rng).strip() for slot in slots
        }
        drawn = [[fill(sentence, names) for sentence in pick(variants, rng)] for variants in self.paragraphs]
        first, last = map(int, self.header["free"].split("-"))
        return [*drawn[: first - 1], *shuffled(drawn[first - 1 : last], rng), *drawn[last:]]


def question_ids() -> list[int]:
    """The numbers of the questions that have a text."""
    return sorted(int(path.stem) for path in data_path(__package__, "bank", "en").glob("[0-9]*.txt"))


def neutral_names() -> list[str]:
    return sorted(path.stem for path in data_path(__package__, "bank", "en").glob("neutral-*.txt"))


@cache
def bank_text(lang: str, name: str) -> Text:
    """A file of a language's bank."""
    if lang not in LANGUAGES:
        raise UsageError(f"MIRAE has no texts in '{lang}'. Available: {', '.join(LANGUAGES)}.")
    head, *paragraphs = re.split(r"\n{2,}", read_text(__package__, "bank", lang, f"{name}.txt").strip())
    header = dict(re.split(r":\s*", line, maxsplit=1) for line in head.splitlines())
    return Text(header, [[v.strip().splitlines() for v in p.split("\n~\n")] for p in paragraphs])


def elaborated(lang: str, question_id: int, rng: random.Random) -> list[list[str]]:
    """What follows a question of the starter set."""
    return bank_text(lang, f"{question_id:02}").draw(rng)


def neutral(lang: str, rng: random.Random) -> list[list[str]]:
    """A text that has to do with no question, and says so."""
    (first, *others), *paragraphs = bank_text(lang, pick(neutral_names(), rng)).draw(rng)
    return [[f"{LABELS[lang]}{GAPS[lang]}{first}", *others], *paragraphs]


def cut_to_levels(question: str, paragraphs: Sequence[Sequence[str]], lang: str, count: Count) -> list[str]:
    """The question alone, then at each level with as many sentences as come nearest to its length.

    No level is shorter than the one before, and none is longer than the longest length.
    """
    sizes = [count(sentence) for paragraph in paragraphs for sentence in paragraph]
    breaks = {at: count("\n\n") for at in accumulate((len(p) for p in paragraphs[:-1]), initial=0)}
    lengths = list(
        accumulate((size + breaks.get(at, 0) for at, size in enumerate(sizes)), initial=count(question))
    )
    texts, used = [question], 0
    for level, target in enumerate(TARGETS[1:], start=2):
        fitting = [n for n in range(used + 1, len(lengths)) if lengths[n] <= TARGETS[-1]]
        used = min(fitting, key=lambda n: abs(lengths[n] - target), default=used)
        if abs(lengths[used] - target) > TOLERANCE * target:
            raise UsageError(
                f"level {level} would have {lengths[used]} tokens instead of about {target}: the question is "
                f"too {'long' if lengths[used] > target else 'short'} for it."
            )
        text = _first_sentences(question, paragraphs, used, GAPS[lang])
        if count(text) > TARGETS[-1]:  # which is a little more than the sum of its sentences
            used -= 1
            text = _first_sentences(question, paragraphs, used, GAPS[lang])
        texts.append(text)
    return texts


def _first_sentences(question: str, paragraphs: Sequence[Sequence[str]], number: int, gap: str) -> str:
    blocks = [question]
    for paragraph in paragraphs:
        blocks.append(gap.join(paragraph[:number]))
        number -= len(paragraph)
        if number <= 0:
            break
    return "\n\n".join(blocks)
