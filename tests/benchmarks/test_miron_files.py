"""MIRON's files: every format, every way a row can be wrong, and which examples a limit takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import evenkeel
from evenkeel.benchmarks.miron.benchmark import Miron, MironOptions
from evenkeel.benchmarks.miron.files import (
    CATEGORIES,
    Example,
    balanced,
    facts_of,
    language_of_name,
    read_examples,
)
from evenkeel.benchmarks.miron.make.generator import compose
from evenkeel.benchmarks.miron.matching import with_clean_versions
from evenkeel.errors import DataError, UsageError
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Data
from evenkeel.types import Sample

GOOD = {"prefix": "One ship, two", "target": " ships", "category": "Morphology"}
TYPOS = {"category": "Noise", "twin": "a", "edits": 2, "edit_kinds": ["swap", "case"]}
OURS: list[dict[str, Any]] = [
    {"id": "a", "lang": "en", "kind": "plural", **GOOD},
    {"id": "b", "lang": "en", "kind": "plural", **GOOD, "prefix": "Noe Ship, two", **TYPOS},
]
PUBLISHED = [
    GOOD,
    {"prefix": "Он сказал", "target": ' "так, и\nтак"', "category": "Logic"},
    {"prefix": "После пятого идёт", "target": " шестой", "category": "Facts"},
]


def write(path: Path, items: Sequence[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in items))
    return path


# Files


def samples(paths: Sequence[Path], langs: list[str] | None = None, limit: int | None = None) -> list[Sample]:
    return Miron(MironOptions()).samples(Data([data_file(path) for path in paths], langs=langs, limit=limit))


def test_every_format_gives_the_same_samples(tmp_path: Path) -> None:
    import polars

    frame = polars.DataFrame(PUBLISHED)
    frame.write_parquet(tmp_path / "miron_ru.parquet")
    frame.write_csv(tmp_path / "miron_ru.csv")
    frame.write_ndjson(tmp_path / "miron_ru.jsonl")
    first, *others = [samples([tmp_path / f"miron_ru.{ending}"]) for ending in ("jsonl", "csv", "parquet")]
    assert [sample.id for sample in first] == ["en-1", "ru-2", "ru-3"]
    assert [sample.tags for sample in first] == [
        {"lang": lang, "category": row["category"]}
        for lang, row in zip(("en", "ru", "ru"), PUBLISHED, strict=True)
    ]
    for name in ("prefix", "target"):
        assert [getattr(sample.inputs, name) for sample in first] == [row[name] for row in PUBLISHED]
    assert others == [first, first]


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("miron_ru.parquet", "ru"),
        ("english-test.csv", "en"),
        ("MIRON.Russian.jsonl", "ru"),
        ("test_eng_2.jsonl", "en"),
        ("trends.jsonl", None),
        ("miron.csv", None),
    ],
)
def test_a_file_name_may_tell_the_language(name: str, lang: str | None) -> None:
    assert language_of_name(Path(name)) == lang


def test_the_language_comes_from_the_row_the_name_or_the_option(tmp_path: Path) -> None:
    numbers = write(tmp_path / "mine.jsonl", [{**GOOD, "prefix": "72 / 8 =", "target": " 9"}])
    with pytest.raises(DataError, match=r"mine\.jsonl, line 1: the language is not stated.*give lang"):
        samples([numbers])
    (stated,) = samples([numbers], langs=["ru"])
    assert (stated.id, stated.tags["lang"]) == ("ru-1", "ru")
    with pytest.raises(DataError, match="give lang"):
        samples([numbers], langs=["en", "ru"])  # which of them?
    (german,) = samples([write(tmp_path / "other.jsonl", [GOOD])], langs=["de"])
    assert german.tags["lang"] == "de"
    named = write(tmp_path / "mine_en.jsonl", [GOOD, {**GOOD, "lang": "ru"}])
    assert [sample.tags["lang"] for sample in samples([named])] == ["en", "ru"]
    assert [sample.tags["lang"] for sample in samples([named], langs=["ru"])] == ["ru"]
    with pytest.raises(UsageError, match="lang fr: the data has no such language. Available: en, ru"):
        samples([named], langs=["fr"])


def test_examples_of_two_files_with_the_same_ids_are_told_apart(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, OURS) for name in ("one_en.jsonl", "two_en.jsonl")]
    alone, both = samples(paths[:1]), samples(paths)
    assert [sample.id for sample in both] == [
        f"{stem}-{sample.id}" for stem in ("one_en", "two_en") for sample in alone
    ]
    # The clean version is that of the same file.
    assert {sample.group.partition("-")[0] for sample in both[: len(alone)]} == {"one_en"}


@pytest.mark.parametrize("other", [{"target": " anchors"}, {"lang": "ru"}])
def test_an_equal_id_of_another_question_is_no_clean_version(other: dict[str, str], tmp_path: Path) -> None:
    clean = write(tmp_path / "clean.jsonl", [{**OURS[0], "id": "1"}])
    noisy = write(tmp_path / "noise.jsonl", [{**OURS[1], "id": "1", "twin": "1", **other}])
    assert [sample.group for sample in samples([clean, noisy])] == ["clean-1", "noise-1"]


def test_languages_are_told_by_field_name_and_script(tmp_path: Path) -> None:
    greek = {**GOOD, "prefix": "Η πρωτεύουσα της Ελλάδας είναι η", "target": " Αθήνα"}
    rows = [GOOD, RUSSIAN, {**RUSSIAN, "lang": "English"}, {**GOOD, "lang": "en-GB"}, NUMBERS]
    mixed = read_examples(write(tmp_path / "mixed.jsonl", rows))
    assert [example.lang for example in mixed] == ["en", "ru", "en", "en", "en"]
    assert [example.lang_by_script for example in mixed] == [True, True, False, False, True]
    # A name that says otherwise is not believed, and neither is --lang.
    named = read_examples(write(tmp_path / "half_ru.jsonl", [GOOD, RUSSIAN, NUMBERS]))
    assert [example.lang for example in named] == ["en", "ru", "ru"]
    path = write(tmp_path / "b.jsonl", [GOOD, greek, NUMBERS])
    assert [example.lang for example in read_examples(path, "de")] == ["de", "de", "de"]
    with pytest.raises(DataError, match="line 2: the language is not stated"):
        read_examples(path)


def test_a_run_reports_what_its_files_do_not_state(tmp_path: Path) -> None:
    rows = [{**GOOD, "generated": " ships"}, {**GOOD, "category": "Noise", "generated": " x", "target": " y"}]
    path = write(tmp_path / "x_ru.jsonl", rows)
    assert facts_of(read_examples(path)) == {"lang_by_script": {"en": 2}, "no_clean_version": 1}
    recorded = Miron(MironOptions()).recorded(path, lang=None)
    assert [warning.split()[1] for warning in recorded.warnings] == ["The", "Drift"]


def broken(**changes: Any) -> bytes:
    """Two good rows, a blank line, and one that is not."""
    bad = {name: value for name, value in {**GOOD, **changes}.items() if value != "gone"}
    return b"\n".join([*[msgspec.json.encode(GOOD)] * 2, b"", msgspec.json.encode(bad)])


CSV = b"prefix,target,category\nOne,two,Logic\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "x_en.jsonl",
            broken(target="gone"),
            "line 4: the field 'target' is missing. Available: prefix, cat",
        ),
        ("x_en.jsonl", broken(target=""), "line 4: the target is empty"),
        ("x_en.jsonl", broken(prefix=""), "line 4: the prefix is empty"),
        (
            "x_en.jsonl",
            broken(category="Poetry"),
            "line 4: 'Poetry' is not a category. Available: Morph",
        ),
        ("x_en.jsonl", broken(prefix=["a"]), "line 4: the field 'prefix' should be text, not a list."),
        ("x_en.jsonl", broken(target=None), "line 4: the field 'target' should be text, not nothing."),
        ("x_en.jsonl", broken(edits="many"), "line 4, field 'edits': expected a whole number, got 'many'."),
        ("x_en.jsonl", broken(id="en-1"), "line 4: the id 'en-1' appears twice"),
        ("x_en.jsonl", broken()[:-9], "line 4: this line is not JSON"),
        ("x_en.jsonl", b"\n", "x_en.jsonl: there is no example in it."),
        ("x_en.csv", CSV + b"Three,four\n", "line 3: this row has 2 cells, the first line 3."),
        ("x_en.csv", b"prefix,category\na,Logic\n", "line 2: the field 'target' is missing"),
        ("x_en.parquet", b"PAR1 no more", "x_en.parquet: cannot be read"),
        ("mine.jsonl", broken(prefix="1", target="2")[-51:], "line 1: the language is not stated"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_file_and_line(
    name: str, content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    (tmp_path / name).write_bytes(content)
    code = evenkeel(
        "run", "miron", "--model", "embedded", "--data", tmp_path / name, "--out", tmp_path / "r"
    ).code
    shown = capsys.readouterr().err
    assert code == 2
    assert said in shown
    assert name in shown
    assert not (tmp_path / "r").exists()


# Files of others


RUSSIAN = {"prefix": "Один корабль, два", "target": " корабля", "category": "Morphology"}
NUMBERS = {"prefix": "72 / 8 =", "target": " 9", "category": "Logic"}


def test_clean_versions_are_found_by_text_where_ids_are_absent(tmp_path: Path) -> None:
    noise = {**GOOD, "category": "Noise"}
    rows = [
        {**noise, "prefix": "Oen ship at sea, two"},
        {**GOOD, "prefix": "One ship at sea, two"},
        {**GOOD, "prefix": "In the harbour there is one, and here are two"},
        {**noise, "prefix": "Something quite different, and here were"},  # near to none
        {**noise, "prefix": "One ship at sae, two", "target": " boats"},  # of another target
        {**GOOD, "prefix": "A ship here, two", "target": " hulls"},
        {**GOOD, "prefix": "A ship there, two", "target": " hulls"},
        {**noise, "prefix": "A ship ther, two", "target": " hulls"},
        {**noise, "prefix": "A ship xhere, two", "target": " hulls"},  # as near to one as to the other
    ]
    read = samples([write(tmp_path / "x_en.jsonl", rows)])
    assert [sample.group for sample in read] == [
        "en-2", "en-2", "en-3", "en-4", "en-5", "en-6", "en-7", "en-7", "en-9",
    ]  # fmt: skip
    assert [e.id for e in with_clean_versions(read_examples(tmp_path / "x_en.jsonl")) if e.clean_by_text] == [
        "en-1",
        "en-8",
    ]


@pytest.mark.parametrize(
    ("noisy", "clean", "same"),
    [
        ("diviee: 25 : 5 =", "divide: 30 : 6 =", False),
        ("diviee: 30 : 6 =", "divide: 30 : 6 =", True),
        ("The country of the city Tartu is", "The country of the city Pärnu is", False),
        ("A gorilla is a kind of", "A camel is a kind of", False),
        ("A cat is a knid of", "A bat is a kind of", False),  # both are words of the data
        ("A catis a kind of", "A cat is a kind of", True),
        ("A c at is a kind of", "A cat is a kind of", True),
    ],
)
def test_a_prefix_with_another_number_or_word_is_no_clean_version(noisy: str, clean: str, same: bool) -> None:
    rows = {"a": clean, "b": "Here is a cat", "c": noisy}
    examples = [
        Example(
            id=name, prefix=prefix, target=" x" if name != "b" else " y",
            category="Noise" if name == "c" else "Facts", lang="en",
        )
        for name, prefix in rows.items()
    ]  # fmt: skip
    assert with_clean_versions(examples)[-1].clean_id == ("a" if same else "")


def test_clean_versions_of_the_starter_set_are_found_by_text() -> None:
    examples = [example for lang in ("en", "ru") for example in compose(lang, per_category=120)]
    noisy = {example.id: example.clean_id for example in examples if example.clean_id}
    bare = [msgspec.structs.replace(example, clean_id="") for example in examples]
    found = {example.id: example.clean_id for example in with_clean_versions(bare) if example.clean_id}
    assert all(noisy[name] == clean_id for name, clean_id in found.items())
    assert len(found) >= 0.95 * len(noisy)
    without = [example for example in bare if example.id not in noisy.values()]
    wrong = [example.id for example in with_clean_versions(without) if example.clean_id]
    assert len(wrong) <= 1  # Знайка and Незнайка, by one author, are as close as a typo


def test_accepted_answers_are_read_from_json_and_csv(tmp_path: Path) -> None:
    plain = write(tmp_path / "a_en.jsonl", [{**GOOD, "accepted": [" vessels"]}])
    (tmp_path / "b_en.csv").write_text("prefix,target,category,accepted\nTwo, ships,Logic, vessels| boats\n")
    assert [sample.inputs.accepted for sample in samples([plain])] == [(" vessels",)]
    assert [s.inputs.accepted for s in samples([tmp_path / "b_en.csv"])] == [(" vessels", " boats")]


@pytest.mark.parametrize(
    ("prefix", "target", "answer", "read"),
    [
        ("Two", " ships", "vessels", " vessels"),
        ("Two", " ships", " vessels", " vessels"),
        ("Two ", "ships", " vessels", "vessels"),
        ("Two-", "ships", "vessels", "vessels"),
    ],
)
def test_an_accepted_answer_has_the_space_before_it_that_the_target_has(
    tmp_path: Path, prefix: str, target: str, answer: str, read: str
) -> None:
    row = {"prefix": prefix, "target": target, "category": "Facts", "accepted": [answer, " "]}
    (sample,) = samples([write(tmp_path / "a_en.jsonl", [row])])
    assert sample.inputs.accepted == (read,)


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
        ((9, 9, 9, 9), 8, (2, 2, 2, 2)),
        ((9, 9, 9, 9), 10, (3, 3, 2, 2)),
        ((9, 1, 9, 9), 10, (3, 1, 3, 3)),
        ((9, 9, 9, 0), 6, (2, 2, 2, 0)),
        ((2, 2, 2, 2), 100, (2, 2, 2, 2)),
        ((9, 9, 9, 9), 1, (1, 0, 0, 0)),
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
