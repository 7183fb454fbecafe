"""Tokenizers compared on MIRON's examples, without running a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from evenkeel.benchmarks.miron.benchmark import Miron
from evenkeel.benchmarks.miron.files import Example, read_files
from evenkeel.files import datasets
from evenkeel.files.remote.sources import naming_source
from evenkeel.harness.benchmark import Data
from evenkeel.models.boundary import find_boundary
from evenkeel.models.local.vocabulary import Vocabulary
from evenkeel.models.registry import tokenizer
from evenkeel.models.tokenizer_files import Encoded, TextTokenizer
from evenkeel.page.grid import Content, Grid
from evenkeel.page.layout import Bars
from evenkeel.page.metrics import Metric, units
from evenkeel.page.tables import figure, values_of
from evenkeel.types import Figure, Score, Summary

TEXT = (
    Metric("tokens_per_word", "Tokens per word", "count", "lower"),
    Metric("characters_per_token", "Characters per token", "count", "higher"),
    Metric("bytes_per_token", "Bytes per token", "count", "higher"),
    Metric("whole_words", "Words that are one token", "share", "higher"),
    Metric("byte_tokens", "Tokens that are part of a character", "share", "lower"),
    Metric("unknown_tokens", "Unknown tokens", "share", "lower"),
)
"""Of whole texts, by language."""
BOUNDARY = (
    Metric("target_tokens", "Tokens of the target", "count", None),
    Metric("boundary_merges", "Boundary merges", "share", "lower"),
)
"""Of the target, by language and category."""
NUMBERS = (
    Metric("digits_per_token", "Digits per token", "count", None),
    Metric("same_split", "Numbers that are split as most of their length", "share", "higher"),
)
"""Of numbers, by how many digits they have."""
METRICS = (*TEXT, *BOUNDARY, *NUMBERS)

PICTURES = tuple(
    Bars(title=metric.title, metric=metric.name, along="lang", y_title=metric.title.lower())
    for metric in (*TEXT[:2], *TEXT[3:5], BOUNDARY[1])
)

WORD = re.compile(r"[^\W\d_]+")
DIGITS = range(1, 9)
COUNT = 100
"""Numbers of each length."""
GOLDEN = (5**0.5 - 1) / 2
CARRIER = "In {number} cases"

CAUTIONS = (
    "A word is what spaces separate for tokens per word, and a run of letters for words that are one token.",
    "Characters and bytes per token depend on the script: a Cyrillic letter has two bytes, a Latin one has "
    "one. Compare tokenizers within a language.",
    "Tokens that are part of a character are single bytes, or bytes of several characters cut within one: "
    "what is left to a tokenizer without tokens for a script.",
    f"Numbers are the same {COUNT} of each length (fewer where there are fewer) in the text "
    f"'{CARRIER.format(number='…')}': they depend neither on the data nor on the language.",
)


class Comparison(NamedTuple):
    """The figures of each tokenizer, and what had to be assumed of some."""

    summaries: dict[str, Summary]
    splits: dict[str, dict[int, str]]
    """How most numbers of so many digits are split, by tokenizer: `3+1`."""
    notes: list[str]


def read(data: str | Sequence[str], langs: list[str] | None) -> list[Example]:
    """The examples of `--data`, in the chosen languages."""
    with naming_source():
        return read_files(Data(datasets.find("miron", data, langs, starter=Miron.starter), langs=langs))


def compare(examples: Sequence[Example], specs: Sequence[str]) -> Comparison:
    """The figures of each tokenizer: by language, of the target by category too, of numbers by digits."""
    comparison = Comparison({}, {}, [])
    for spec in dict.fromkeys(specs):
        tokenise = text_tokenizer(tokenizer(spec))
        comparison.summaries[spec] = measure(examples, tokenise)
        comparison.splits[spec] = {digits: usual_split(tokenise, digits) for digits in DIGITS}
        comparison.notes.extend([tokenise.note] if tokenise.note else [])
    return comparison


def text_tokenizer(tokenise: Callable[[str], list[int]]) -> TextTokenizer:
    """A tokenizer of another package may be a plain function: what its tokens cover is then not known."""
    if isinstance(tokenise, TextTokenizer):
        return tokenise
    return TextTokenizer(lambda text: Encoded(tokenise(text), None))


def measure(examples: Sequence[Example], tokenise: TextTokenizer) -> Summary:
    from evenkeel import analysis as stats

    scores = [score(example, tokenise) for example in examples]
    by_lang: list[tuple[str, ...]] = [(), ("lang",)]
    by_category = [*by_lang, ("category",), ("category", "lang")]
    breakdown = {metric.name: by_lang for metric in TEXT}
    breakdown |= {metric.name: by_category for metric in (*BOUNDARY, TEXT[0])}
    summary = stats.summarise(scores, breakdown, units=units(METRICS))
    numbers = [number for digits in DIGITS for number in number_scores(tokenise, digits)]
    of_numbers: list[tuple[str, ...]] = [(), ("digits",)]
    return summary | stats.summarise(
        numbers, {metric.name: of_numbers for metric in NUMBERS}, units=units(METRICS)
    )


def score(example: Example, tokenise: TextTokenizer) -> Score:
    """One example: its text by tokens, and what becomes of the boundary before its target."""
    text = example.prefix + example.target
    start = len(tokenise(""))
    whole, prefix = tokenise.encode(text), tokenise(example.prefix)
    target, merged = find_boundary(prefix, whole.ids)
    return Score(
        sample_id=example.id,
        group=example.clean_id or example.id,
        tags={"category": example.category, "lang": example.lang},
        values={
            **text_values(text, Encoded(whole.ids[start:], whole.spans and whole.spans[start:]), tokenise),
            "target_tokens": float(len(whole.ids) - target),
            "boundary_merges": float(merged),
        },
        statuses={"ok": 1},
        answered=1,
    )


def text_values(text: str, encoded: Encoded, tokenise: TextTokenizer) -> dict[str, float | None]:
    """The figures of a text's tokens, the start token left out; None where they are not known."""
    tokens, vocabulary = len(encoded.ids), tokenise.vocabulary
    if not tokens:
        return dict.fromkeys(metric.name for metric in TEXT)
    parts = None
    if vocabulary is not None:
        parts = sum(not _is_text(vocabulary.spellings.get(token, b"")) for token in encoded.ids)
    unknown = [token == tokenise.unknown for token in encoded.ids]
    values = {
        "tokens_per_word": tokens / len(text.split()),
        "characters_per_token": len(text) / tokens,
        "bytes_per_token": len(text.encode()) / tokens,
        "byte_tokens": None if parts is None else parts / tokens,
        "unknown_tokens": sum(unknown) / tokens,
    }
    words = [word.span() for word in WORD.finditer(text)]
    if encoded.spans is None:
        values["whole_words"] = None
    elif words:  # a text of numbers and marks has no word that could be whole
        counts = covering(words, _without_spaces(encoded, vocabulary))
        lost = covering(
            words, [span for span, is_unknown in zip(encoded.spans, unknown, strict=True) if is_unknown]
        )
        whole = sum(count == 1 and not missing for count, missing in zip(counts, lost, strict=True))
        values["whole_words"] = whole / len(words)
    return values


def _without_spaces(encoded: Encoded, vocabulary: Vocabulary | None) -> list[tuple[int, int]]:
    """The characters of tokens that spell more than spaces: a space that the tokenizer puts before a text has
    the place of its first letter."""
    spellings = vocabulary.spellings if vocabulary is not None else {}
    pairs = zip(encoded.ids, encoded.spans or (), strict=True)
    return [span for token, span in pairs if not spellings.get(token, b"").isspace()]


def covering(parts: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> list[int]:
    """How many tokens have characters in each part of a text; the parts are in order."""
    counts = [0] * len(parts)
    first = 0
    for start, end in sorted(spans):
        while first < len(parts) and parts[first][1] <= start:
            first += 1
        number = first
        while number < len(parts) and parts[number][0] < end:
            counts[number] += start < end
            number += 1
    return counts


def _is_text(spelled: bytes) -> bool:
    """Whether bytes are whole characters."""
    try:
        spelled.decode()
    except UnicodeDecodeError:
        return False
    return True


# Numbers


def numbers_of(digits: int) -> list[int]:
    """Numbers with so many digits, spread evenly by multiples of the golden ratio: no digit is always 0."""
    first, end = 10 ** (digits - 1), 10**digits
    if end - first <= COUNT:
        return list(range(first, end))
    return sorted({first + int(place * GOLDEN % 1 * (end - first)) for place in range(COUNT)})


def split_of(tokenise: TextTokenizer, number: int) -> tuple[int, ...] | None:
    """How many digits each token of a number has, in order; None where that is not known."""
    text = CARRIER.format(number=number)
    start = text.index(str(number))
    spans = tokenise.encode(text).spans
    if spans is None:
        return None
    inside = (min(b, start + len(str(number))) - max(a, start) for a, b in spans)
    return tuple(digits for digits in inside if digits > 0)


def number_scores(tokenise: TextTokenizer, digits: int) -> list[Score]:
    """How the numbers of a length are split: digits per token, and whether as most of them."""
    splits = {number: split_of(tokenise, number) for number in numbers_of(digits)}
    (usual, _), *_ = Counter(splits.values()).most_common(1)
    return [
        Score(
            sample_id=str(number),
            group=str(number),
            tags={"digits": digits},
            values={
                "digits_per_token": digits / len(split) if split else None,
                "same_split": None if split is None else float(split == usual),
            },
            statuses={"ok": 1},
            answered=1,
        )
        for number, split in splits.items()
    ]


def usual_split(tokenise: TextTokenizer, digits: int) -> str:
    """How most numbers of a length are split: `3+1`."""
    splits = Counter(split_of(tokenise, number) for number in numbers_of(digits))
    split = splits.most_common(1)[0][0]
    return "+".join(map(str, split)) if split else "unknown"


def figures(comparison: Comparison) -> dict[str, dict[str, Figure | dict[int, str]]]:
    """All that is known of each tokenizer by its spec, for JSON."""
    return {
        spec: {**summary, "usual_split": comparison.splits[spec]}
        for spec, summary in comparison.summaries.items()
    }


# Tables


def grids(comparison: Comparison) -> list[Grid]:
    """A table for each metric, with a column for each tokenizer."""
    summaries = comparison.summaries
    first = next(iter(summaries.values()))
    langs, categories = (values_of(first, "target_tokens", tag) for tag in ("lang", "category"))
    by_lang = [(lang, {"lang": lang}) for lang in langs]
    by_category = [
        (f"{lang} {category}", {"lang": lang, "category": category})
        for lang in langs
        for category in categories
    ]
    by_category += [(f"{lang} together", {"lang": lang}) for lang in langs if len(langs) > 1]
    by_digits = [(_digits(digits), {"digits": str(digits)}) for digits in DIGITS]
    tables = [_grid(summaries, metric, by_lang) for metric in TEXT]
    tables += [_grid(summaries, metric, by_category) for metric in BOUNDARY]
    tables += [_grid(summaries, metric, by_digits) for metric in NUMBERS]
    splits: list[tuple[str, list[Content]]] = [
        (_digits(digits), [of_digits[digits] for of_digits in comparison.splits.values()])
        for digits in DIGITS
    ]
    return [*tables, Grid("How most numbers are split", "", list(summaries), splits)]


def _digits(count: int) -> str:
    return f"{count} digits" if count > 1 else "1 digit"


def _grid(
    summaries: Mapping[str, Summary], metric: Metric, scopes: Sequence[tuple[str, Mapping[str, str]]]
) -> Grid:
    rows: list[tuple[str, list[Content]]] = [
        (name, [figure(summary, metric.name, scope) for summary in summaries.values()])
        for name, scope in [*scopes, ("all", {})]
    ]
    return Grid(metric.title, "", list(summaries), rows)
