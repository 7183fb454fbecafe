"""Tokenizers compared on MIRON's examples, without running a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sealegs.analysis.comparability import path_ends
from sealegs.benchmarks.miron.benchmark import Miron
from sealegs.benchmarks.miron.data import Example, read_files
from sealegs.benchmarks.miron.metrics import TOKENIZED_TARGETS, TOKENIZED_TEXTS
from sealegs.files import datasets
from sealegs.files.remote.sources import naming_source
from sealegs.harness.data import Data
from sealegs.models.boundary import find_boundary
from sealegs.models.registry import tokenizer
from sealegs.models.tokenizer_files import Encoded, TextTokenizer
from sealegs.page.format import number
from sealegs.page.grid import Content, Grid
from sealegs.page.layout import Bars
from sealegs.page.metrics import Metric, units
from sealegs.page.tables import figure, values_of
from sealegs.page.tokenized import Illustration, Tokenized
from sealegs.types import Score, Summary

PICTURES = tuple(
    Bars(title=metric.title, metric=metric.name, along="lang", y_title=metric.title.lower())
    for metric in TOKENIZED_TEXTS
)

WORD = re.compile(r"[^\W\d_]+")

CAUTIONS = (
    "A word is what spaces separate for tokens per word, and a run of letters for words that are one token.",
    "Characters per token depend on the script: compare tokenizers within a language.",
    "A tokenizer that does not know a script may write a whole word as one unknown token: its counts are "
    "low, and the word is lost.",
)
SHORTEST = 25
"""Characters of a text that is shown as tokens, at least."""
UNKNOWN = "[unknown]"
FILE = "tokenizer.json"
"""What nearly every tokenizer's file is called: it is known by its folder."""
NAMELESS = frozenset(("model", "models", "tokenizer", "tokenizers", "checkpoint"))
"""Folders whose names do not say which tokenizer is in them."""


def read(data: str | Sequence[str], langs: list[str] | None) -> list[Example]:
    """The examples of `--data`, in the chosen languages."""
    with naming_source():
        return read_files(Data(datasets.find("miron", data, langs, starter=Miron.starter), langs=langs))


def compare(examples: Sequence[Example], specs: Sequence[str]) -> Tokenized:
    """The figures of each tokenizer: by language, of the target by category too."""
    chosen = [
        Illustration(example.lang, category, example.prefix + example.target, [])
        for category, example in representative(examples)
    ]
    summaries: dict[str, Summary] = {}
    notes: list[str] = []
    for spec in dict.fromkeys(specs):
        tokenise = tokenizer(spec)
        summaries[spec] = measure(examples, tokenise)
        for illustration in chosen:
            illustration.tokens.append(spelt(illustration.text, tokenise))
        notes += [tokenise.note] if tokenise.note else []
    named = dict(zip(shown_names(list(summaries)), summaries.values(), strict=True))
    return Tokenized(
        summaries=summaries,
        names=list(named),
        verdict=verdict(named),
        pictures=PICTURES,
        grids=grids(named),
        illustrations=chosen,
        notes=notes,
        cautions=CAUTIONS,
    )


def shown_names(specs: Sequence[str]) -> list[str]:
    """What tokenizers are called: a folder or a file by the end of its path, if that is of no other."""
    paths = {spec: path for spec in specs if (path := Path(spec.removeprefix("hf:"))).exists()}
    paths = {spec: path.parent if path.name == FILE else path for spec, path in paths.items()}
    names = dict(zip(paths, path_ends(list(paths.values())), strict=True))
    names = {spec: f"{name}/{FILE}" if name in NAMELESS else name for spec, name in names.items()}
    shown = [names.get(spec, spec) for spec in specs]  # two links may lead to one folder
    return shown if len({*shown}) == len(shown) else list(specs)


def representative(examples: Sequence[Example]) -> list[tuple[str, Example]]:
    """A short text of each language and category; of one with typos, the same without them too."""
    by_id = {example.id: example for example in examples}
    shortest: dict[tuple[str, str], Example] = {}
    for example in sorted(examples, key=lambda each: len(each.prefix + each.target)):
        if len(example.prefix + example.target) >= SHORTEST:
            shortest.setdefault((example.lang, example.category), example)
    chosen = []
    for (_, category), example in sorted(shortest.items()):
        chosen.append((category, example))
        if example.clean_id in by_id:
            chosen.append((f"{category}, without the typos", by_id[example.clean_id]))
    return chosen


def spelt(text: str, tokenise: TextTokenizer) -> list[str] | None:
    """What each token of a text spells, without the start token; bytes that are no letter as `\\xd0`."""
    start = len(tokenise(""))
    ids, spans = tokenise.encode(text)
    if tokenise.vocabulary is not None:
        spellings = tokenise.vocabulary.spellings
        return [
            spellings[token].decode(errors="backslashreplace") if token in spellings else UNKNOWN
            for token in ids[start:]
        ]
    return None if spans is None else [text[begin:end] for begin, end in spans[start:]]


def measure(examples: Sequence[Example], tokenise: TextTokenizer) -> Summary:
    from sealegs import analysis as stats

    scores = [score(example, tokenise) for example in examples]
    by_lang: list[tuple[str, ...]] = [(), ("lang",)]
    by_category = [*by_lang, ("category",), ("category", "lang")]
    breakdown = {metric.name: by_lang for metric in TOKENIZED_TEXTS}
    breakdown |= {metric.name: by_category for metric in (*TOKENIZED_TARGETS, TOKENIZED_TEXTS[0])}
    return stats.summarise(scores, breakdown, units=units((*TOKENIZED_TEXTS, *TOKENIZED_TARGETS)))


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
    tokens = len(encoded.ids)
    if not tokens:
        return dict.fromkeys(metric.name for metric in TOKENIZED_TEXTS)
    values: dict[str, float | None] = {
        "tokens_per_word": tokens / len(text.split()),
        "characters_per_token": len(text) / tokens,
    }
    words = [word.span() for word in WORD.finditer(text)]
    if encoded.spans is None:
        values["whole_words"] = None
    elif words:  # a text of numbers and marks has no word that could be whole
        # The bytes of one letter may be several tokens, each of which covers it.
        tokens_of = Counter(
            (end - len(text[start:end].lstrip()), end)
            for token, (start, end) in zip(encoded.ids, encoded.spans, strict=True)
            if token != tokenise.unknown
        )
        values["whole_words"] = sum(tokens_of[word] == 1 for word in words) / len(words)
    return values


# Tables


def verdict(summaries: Mapping[str, Summary]) -> str:
    """`Fewest tokens per word: a in en (1.31), b in ru (2.20).`"""
    metric = TOKENIZED_TEXTS[0]
    first = next(iter(summaries.values()))
    parts = []
    for lang in values_of(first, metric.name, "lang"):
        figures = {name: figure(each, metric.name, {"lang": lang}) for name, each in summaries.items()}
        values = {name: each.value for name, each in figures.items() if each and each.value is not None}
        if values:
            best = min(values, key=values.__getitem__)
            parts.append((best, lang, number(values[best], metric.unit)))
    if len(summaries) == 1:
        return (
            f"{next(iter(summaries))}: {', '.join(f'{n} tokens per word in {lang}' for _, lang, n in parts)}."
        )
    return f"Fewest tokens per word: {', '.join(f'{best} in {lang} ({n})' for best, lang, n in parts)}."


def grids(summaries: Mapping[str, Summary]) -> list[Grid]:
    """A table for each metric, with a column for each tokenizer."""
    first = next(iter(summaries.values()))
    langs, categories = (values_of(first, "target_tokens", tag) for tag in ("lang", "category"))
    by_lang = [(lang, {"lang": lang}) for lang in langs]
    by_category = [
        (f"{lang} {category}", {"lang": lang, "category": category})
        for lang in langs
        for category in categories
    ]
    by_category += [(f"{lang}, all categories", {"lang": lang}) for lang in langs if len(langs) > 1]
    tables = [_grid(summaries, metric, by_lang) for metric in TOKENIZED_TEXTS]
    return tables + [_grid(summaries, metric, by_category) for metric in TOKENIZED_TARGETS]


def _grid(
    summaries: Mapping[str, Summary], metric: Metric, scopes: Sequence[tuple[str, Mapping[str, str]]]
) -> Grid:
    rows: list[tuple[str, list[Content]]] = [
        (name, [figure(summary, metric.name, scope) for summary in summaries.values()])
        for name, scope in [*scopes, ("all", {})]
    ]
    return Grid(metric.title, "", list(summaries), rows, lead=metric.meaning)
