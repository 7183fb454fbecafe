"""MIRON's files: every format, every way a row can be wrong, and which examples a limit takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jsonlines import write_lines
from sealegs.benchmarks.miron.benchmark import Miron, MironOptions, balanced, read_recording
from sealegs.benchmarks.miron.data import CATEGORIES, Example, facts_of, read_examples
from sealegs.benchmarks.miron.make.generator import compose
from sealegs.benchmarks.miron.matching import with_clean_versions
from sealegs.errors import DataError, UsageError
from sealegs.files.datasets import data_file
from sealegs.harness.data import Data
from sealegs.types import Sample

GOOD = {"prefix": "One ship, two", "target": " ships", "category": "Morphology"}
TYPOS = {"category": "Noise", "twin": "a", "edits": 2, "edit_kinds": ["swap", "case"]}
OURS: list[dict[str, Any]] = [
    {"id": "a", "lang": "en", "kind": "plural", **GOOD},
    {"id": "b", "lang": "en", "kind": "plural", **GOOD, "prefix": "Noe Ship, two", **TYPOS},
]


# Files


def samples(paths: Sequence[Path], langs: list[str] | None = None, limit: int | None = None) -> list[Sample]:
    return Miron(MironOptions()).samples(Data([data_file(path) for path in paths], langs=langs, limit=limit))


def test_examples_of_two_files_with_the_same_ids_are_told_apart(tmp_path: Path) -> None:
    paths = [write_lines(tmp_path / name, OURS) for name in ("one_en.jsonl", "two_en.jsonl")]
    alone, both = samples(paths[:1]), samples(paths)
    assert [sample.id for sample in both] == [
        f"{stem}-{sample.id}" for stem in ("one_en", "two_en") for sample in alone
    ]
    # The clean version is that of the same file.
    assert {sample.group.partition("-")[0] for sample in both[: len(alone)]} == {"one_en"}


@pytest.mark.parametrize("other", [{"target": " anchors"}, {"lang": "ru"}])
def test_an_equal_id_of_another_question_is_no_clean_version(other: dict[str, str], tmp_path: Path) -> None:
    clean = write_lines(tmp_path / "clean.jsonl", [{**OURS[0], "id": "1"}])
    noisy = write_lines(tmp_path / "noise.jsonl", [{**OURS[1], "id": "1", "twin": "1", **other}])
    assert [sample.group for sample in samples([clean, noisy])] == ["clean-1", "noise-1"]


def test_languages_come_from_the_row_the_option_the_script_or_the_name(tmp_path: Path) -> None:
    greek = {**GOOD, "prefix": "Η πρωτεύουσα της Ελλάδας είναι η", "target": " Αθήνα"}
    rows = [GOOD, RUSSIAN, {**RUSSIAN, "lang": "English"}, {**GOOD, "lang": "en-GB"}, NUMBERS]
    mixed = read_examples(write_lines(tmp_path / "mixed.jsonl", rows))
    assert [example.lang for example in mixed] == ["en", "ru", "en", "en", "en"]
    assert [example.lang_by_script for example in mixed] == [True, True, False, False, True]
    # A name that says otherwise is not believed, and neither is --lang.
    named = read_examples(write_lines(tmp_path / "half_ru.jsonl", [GOOD, RUSSIAN, NUMBERS]))
    assert [example.lang for example in named] == ["en", "ru", "ru"]
    path = write_lines(tmp_path / "b.jsonl", [GOOD, greek, NUMBERS])
    assert [example.lang for example in read_examples(path, "de")] == ["de", "de", "de"]
    with pytest.raises(DataError, match=r"b\.jsonl, line 2: the language is not stated.*give --lang"):
        read_examples(path)


def test_lang_chooses_among_the_languages_of_the_data(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "english-mine.jsonl", [GOOD, {**GOOD, "lang": "ru"}])
    assert [sample.tags["lang"] for sample in samples([path], langs=["ru"])] == ["ru"]
    with pytest.raises(UsageError, match="lang fr: the data has no such language. Available: en, ru"):
        samples([path], langs=["fr"])
    numbers = write_lines(tmp_path / "mine.jsonl", [NUMBERS])
    assert samples([numbers], langs=["ru"])[0].tags["lang"] == "ru"
    with pytest.raises(DataError, match="give --lang"):
        samples([numbers], langs=["en", "ru"])  # which of them?


def test_a_run_reports_what_its_files_do_not_state(tmp_path: Path) -> None:
    rows = [{**GOOD, "generated": " ships"}, {**GOOD, "category": "Noise", "generated": " x", "target": " y"}]
    path = write_lines(tmp_path / "x_ru.jsonl", rows)
    assert facts_of(read_examples(path)) == {"lang_by_script": {"en": 2}, "no_clean_version": 1}
    recorded = read_recording(path, None)
    assert [warning.split()[1] for warning in recorded.warnings] == ["The", "What"]
    assert "leaves out 1 example with typos: its clean version is not in this run" in recorded.warnings[1]


def broken(**changes: Any) -> bytes:
    """Two good rows, a blank line, and one that is not."""
    bad = {name: value for name, value in {**GOOD, **changes}.items() if value != "gone"}
    return b"\n".join([*[msgspec.json.encode(GOOD)] * 2, b"", msgspec.json.encode(bad)])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"target": "gone"}, "the field 'target' is missing"),
        ({"target": ""}, "the target is empty"),
        ({"category": " "}, "the category is empty"),
        ({"prefix": "gone", "question": "a", "choices": ["b"]}, "the field 'answer' is missing"),
        ({"edits": "many"}, "expected a whole number, got 'many'"),
        ({"id": "en-1"}, "the id 'en-1' appears twice"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_line(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "x_en.jsonl").write_bytes(broken(**changes))
    with pytest.raises(DataError, match=rf"x_en\.jsonl, line 4.*{problem}"):
        samples([tmp_path / "x_en.jsonl"])


# Files of others


RUSSIAN = {"prefix": "Один корабль, два", "target": " корабля", "category": "Morphology"}
NUMBERS = {"prefix": "72 / 8 =", "target": " 9", "category": "Logic"}


@pytest.mark.parametrize(
    ("noisy", "clean", "same"),
    [
        ("diviee: 25 : 5 =", "divide: 30 : 6 =", False),
        ("diviee: 30 : 6 =", "divide: 30 : 6 =", True),
        ("A cat is a knid of", "A bat is a kind of", False),  # both are words of the data
        ("A catis a kind of", "A cat is a kind of", True),
    ],
)
def test_a_prefix_with_another_number_or_word_is_no_clean_version(noisy: str, clean: str, same: bool) -> None:
    examples = [
        Example(id="a", prefix=clean, target=" x", category="Facts", lang="en"),
        Example(id="b", prefix="Here is a cat", target=" y", category="Facts", lang="en"),
        Example(id="c", prefix=noisy, target=" x", category="Noise", lang="en"),
    ]
    assert with_clean_versions(examples)[-1].clean_id == ("a" if same else "")


def test_rows_that_name_no_clean_version_are_grouped_with_it_by_text(tmp_path: Path) -> None:
    """A row with typos and its clean version are one group: as two their intervals were too narrow."""
    examples = [example for lang in ("en", "ru") for example in compose(lang, per_category=60)]
    noisy = {example.id: example.clean_id for example in examples if example.clean_id}
    bare = [msgspec.structs.replace(example, clean_id="") for example in examples]
    found = {example.id: example.clean_id for example in with_clean_versions(bare) if example.clean_id}
    assert found.items() <= noisy.items()
    assert len(found) >= 0.95 * len(noisy)
    rows = [{**GOOD, "id": "a"}, {**GOOD, "id": "b", "prefix": "One shpi, two", "category": "Noise"}]
    rows = [{**row, "generated": " ships"} for row in rows]
    recorded = read_recording(write_lines(tmp_path / "x_en.jsonl", rows), None)
    assert {sample.group for sample in recorded.samples} == {"a"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a_en.csv", "prefix,target,category,accepted\nTwo, ships,Logic,vessels| boats\n"),
        (
            "a_en.json",
            '[{"prefix":"Two","target":" s","category":"Logic","accepted":["vessels"," boats"," "]}]',
        ),
    ],
)
def test_accepted_answers_get_the_space_that_the_target_has(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert [sample.inputs.accepted for sample in samples([tmp_path / name])] == [(" vessels", " boats")]


# Which examples a limit takes


def made(lang: str, sizes: dict[str, int], clean_ids: Sequence[str] = ()) -> list[Example]:
    clean_id = iter(clean_ids)
    return [
        Example(
            id=f"{lang}-{category}-{number}", prefix="p", target="t", category=category, lang=lang,
            clean_id=next(clean_id, "") if category == "Noise" else "",
        )
        for category, size in sizes.items()
        for number in range(size)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "limit", "shares"),
    [
        ((9, 9, 9, 9), 10, (3, 3, 2, 2)),
        ((9, 1, 9, 9), 10, (3, 1, 3, 3)),
        ((2, 2, 2, 0), 100, (2, 2, 2, 0)),
    ],
)
def test_a_limit_is_dealt_out_evenly_to_the_categories_of_each_language(
    sizes: tuple[int, ...], limit: int, shares: tuple[int, ...]
) -> None:
    of = dict(zip(CATEGORIES, sizes, strict=True))
    everything = [*made("en", of), *made("ru", of)]
    taken = balanced(everything, limit)
    for lang in ("en", "ru"):
        counted = Counter(example.category for example in taken if example.lang == lang)
        assert tuple(counted[category] for category in CATEGORIES) == shares
    assert [example for example in everything if example in taken] == taken  # in their own order
    assert balanced(everything, None) == everything


def test_examples_with_typos_are_taken_whose_clean_versions_are() -> None:
    sizes = {"Noise": 6, "Morphology": 6, "Facts": 6}
    clean_ids = [f"en-{category}-{number}" for number in (5, 1, 0) for category in ("Morphology", "Facts")]
    taken = balanced(made("en", sizes, clean_ids), 6)
    assert [example.id for example in taken] == [
        "en-Noise-2", "en-Noise-3",  # typos in the second of each; those of the sixth are left out
        "en-Morphology-0", "en-Morphology-1", "en-Facts-0", "en-Facts-1",
    ]  # fmt: skip
