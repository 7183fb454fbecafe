"""The texts that prompts are made of, and how a prompt of a length is cut from one.

A language is a folder `bank/<code>/`. `07.txt` is what somebody writes after asking question 7, so that the
question and the first so many sentences of it are a prompt that elaborates the question. `neutral-1.txt` is a
story that has nothing to do with any question. A file has a header, then paragraphs with one sentence a line:

    domain: FACTUAL
    question: At what temperature does pure water boil …?
    expected: 100 ; 373 | 373.15     the right answer: parts, each with its alternatives
    withheld: 100 | 373              words that the text must not give away
    names.pupil: Mina | Tom          one of them is written in the slot {pupil}
    names.tongue/mate: Turkish / Emre | Polish / Marek      slots whose values belong together
    free: 5-9                        paragraphs whose order among each other does not matter

    A sentence of the first paragraph.
    ~
    A sentence of another variant of the first paragraph.

The files of the languages are parallel, line by line, and all are cut after the same sentence, so that a
level asks the same in every language.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias, get_args

from sealegs.benchmarks.mirae.data import LANGUAGES, TARGETS
from sealegs.errors import UsageError
from sealegs.files.package_data import data_path, read_text
from sealegs.make.grammar import fill, pick, shuffled

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


class BankText(NamedTuple):
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
        names: dict[str, str] = {}
        for key in slots:
            values = pick(self.header[key].split("|"), rng).split("/")
            together = key.removeprefix("names.").split("/")
            names |= {slot: value.strip() for slot, value in zip(together, values, strict=True)}
        drawn = [[fill(sentence, names) for sentence in pick(variants, rng)] for variants in self.paragraphs]
        first, last = map(int, self.header["free"].split("-"))
        return [*drawn[: first - 1], *shuffled(drawn[first - 1 : last], rng), *drawn[last:]]


def question_ids() -> list[int]:
    """The numbers of the questions that have a text."""
    return sorted(int(path.stem) for path in data_path(__package__, "bank", "en").glob("[0-9]*.txt"))


def neutral_names() -> list[str]:
    return sorted(path.stem for path in data_path(__package__, "bank", "en").glob("neutral-*.txt"))


@cache
def bank_text(lang: str, name: str) -> BankText:
    """A file of a language's bank."""
    if lang not in LANGUAGES:
        raise UsageError(f"MIRAE has no texts in '{lang}'. Available: {', '.join(LANGUAGES)}.")
    head, *paragraphs = re.split(r"\n{2,}", read_text(__package__, "bank", lang, f"{name}.txt").strip())
    header = dict(re.split(r":\s*", line, maxsplit=1) for line in head.splitlines())
    return BankText(header, [[v.strip().splitlines() for v in p.split("\n~\n")] for p in paragraphs])


def elaborated(lang: str, question_id: int, rng: random.Random) -> list[list[str]]:
    """What follows a question of the starter set."""
    return bank_text(lang, f"{question_id:02}").draw(rng)


def neutral(lang: str, rng: random.Random) -> list[list[str]]:
    """Stories that have to do with no question, and say so, in an order that the seed decides."""
    paragraphs: list[list[str]] = []
    for name in shuffled(neutral_names(), rng):
        (first, *others), *following = bank_text(lang, name).draw(rng)
        paragraphs += [[f"{LABELS[lang]}{GAPS[lang]}{first}", *others], *following]
    return paragraphs


class TextSource(NamedTuple):
    """What prompts are cut from in one language."""

    question: str
    paragraphs: Sequence[Sequence[str]]

    def prompt(self, number: int, gap: str) -> str:
        """The question and the first so many sentences."""
        blocks = [self.question]
        for paragraph in self.paragraphs:
            if number <= 0:
                break
            blocks.append(gap.join(paragraph[:number]))
            number -= len(paragraph)
        return "\n\n".join(blocks)

    def lengths(self, count: Count) -> list[int]:
        """The tokens of the prompt with each number of sentences, from none."""
        sizes = [count(sentence) for paragraph in self.paragraphs for sentence in paragraph]
        breaks = {at: count("\n\n") for at in accumulate((len(p) for p in self.paragraphs[:-1]), initial=0)}
        return list(
            accumulate(
                (size + breaks.get(at, 0) for at, size in enumerate(sizes)), initial=count(self.question)
            )
        )


def cut_to_levels(sources: Mapping[str, TextSource], count: Count) -> dict[str, list[str]]:
    """In each language the question alone, then at each level with as many sentences as come nearest to its
    length: the same number in all languages, whose mean length it is.

    No level is shorter than the one before, and none is longer in the mean than the longest length.
    """
    means = [fmean(lengths) for lengths in zip(*(s.lengths(count) for s in sources.values()), strict=True)]
    texts = {lang: [source.question] for lang, source in sources.items()}
    used = 0
    for level, target in enumerate(TARGETS[1:], start=2):
        fitting = [n for n in range(used + 1, len(means)) if means[n] <= TARGETS[-1]]
        used = min(fitting, key=lambda n: abs(means[n] - target), default=used)
        if abs(means[used] - target) > TOLERANCE * target:
            raise UsageError(
                f"level {level} would have {means[used]:.0f} tokens instead of about {target}: the question "
                f"is too {'long' if means[used] > target else 'short'} for it."
            )
        prompts = {lang: source.prompt(used, GAPS[lang]) for lang, source in sources.items()}
        if fmean(map(count, prompts.values())) > TARGETS[-1]:  # a little more than the sum of its sentences
            used -= 1
            prompts = {lang: source.prompt(used, GAPS[lang]) for lang, source in sources.items()}
        for lang, prompt in prompts.items():
            texts[lang].append(prompt)
    return texts
