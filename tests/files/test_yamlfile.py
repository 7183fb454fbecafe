"""YAML without what can blow up or run code."""

from __future__ import annotations

import pytest

from sealegs.errors import DataError
from sealegs.files.yamlfile import LARGEST_YAML_BYTES, YamlEntry, read_entries

MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 40)
)
LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MERGES, r"f\.yaml, line \d+: (merge keys|aliases)"),
        (LAUGHS, r"line 1: aliases"),
        ("a: b\nc:\n  <<: {k: v}\n", r"line 3: merge keys"),
        ("a: !!python/object/apply:os.system [x]\n", r"line 1: tags \(!\) are not read"),
        ("a:\n  b: c\n  b: d\n", r"line 3: the key 'b' appears twice"),
        ("a: b\n---\nc: d\n", r"line 2: this is not YAML: but found another document"),
        ("? [a]\n: b\n", r"line 1: a key must be a text"),
        ("a:\n\tb: c\n", r"line 2: this is not YAML"),
        ("a: b\nc: \x07\n", r"line 2: this is not YAML: it has a control character"),
        ("a: " + "[" * 500, r"nested more than 20 levels deep"),
        ("- " * 22 + "x", r"line 1: this is nested more than 20 levels deep"),
        ("a: b\n" * (LARGEST_YAML_BYTES // 4), r"f\.yaml: the file is too large"),
        ('a: "\\UFFFFFFFF"\n', r"f\.yaml: this is not YAML: a character or number in it is out of range"),
        (f"%YAML 1.{'9' * 5000}\n---\na: b\n", r"out of range"),
    ],
    ids=range(14),
)
def test_what_is_not_read_is_refused_with_its_line(content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_entries("f.yaml", content)


def test_values_are_texts_numbers_and_nothing() -> None:
    content = "a: {d: 2024-99-99, t: 12:30, q: '5', n: 5, no: yes, e: , s: !!str 7}\nb: \"x\\ud800y\"\n"
    assert read_entries("f.yaml", content) == [
        YamlEntry(
            1, "a", {"d": "2024-99-99", "t": "12:30", "q": "5", "n": 5, "no": True, "e": None, "s": "7"}
        ),
        YamlEntry(2, "b", "x\ufffdy"),
    ]


@pytest.mark.parametrize("content", ["", "# nothing\n", "text", "5", "---\n"])
def test_a_file_without_entries_has_none(content: str) -> None:
    assert read_entries("f.yaml", content) is None
