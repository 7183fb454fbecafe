"""What a benchmark declares is checked before anything is asked: a typo costs no answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import sealegs as sl
from models.hostile import Recorder
from plugins import Rule, Words, install, write_words
from sealegs.errors import UsageError
from sealegs.harness.benchmark import make_score
from sealegs.page.layout import Picture
from sealegs.types import Answered, Generate, Sample, Sampling, Score


def metric(*by: str | tuple[str, ...]) -> sl.Metric:
    return sl.Metric("same", "Same word", unit="share", better="higher", by=by)


class Shuffle(Words):
    """Is it the same?"""

    class Options(Struct, frozen=True, kw_only=True):
        pass

    metrics = [metric("lang", "letters")]

    def samples(self, data: Any) -> list[Sample]:
        return [
            Sample(id=each.id, group=each.id, tags={**each.tags, "letters": 4}, inputs=each.inputs)
            for each in super().samples(data)
        ]

    def score(self, answered: Sequence[Answered]) -> list[Score]:
        return [make_score(item, same=item.text == item.sample.inputs["word"]) for item in answered]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(monkeypatch, shuffle=Shuffle)
    return write_words(
        tmp_path / "words.jsonl", [("keel", "en"), ("mast", "en"), ("empty", "de"), ("Kiel", "de")]
    )


def run(data: Path, progress: Any = False) -> sl.Run:
    return sl.run("shuffle", "rule:m", data=data, out=data.parent / "run", progress=progress)


def layout(*pictures: Picture, tables: tuple[sl.Table, ...] = ()) -> sl.Layout:
    return sl.Layout(metrics=tuple(Shuffle.metrics), question="?", pictures=pictures, tables=tables)


def table(*metrics: str, columns: str = "") -> sl.Table:
    return sl.Table(
        title="T", rows="lang", columns=columns, metrics=tuple(sl.Column(each, each) for each in metrics)
    )


@pytest.mark.parametrize(
    ("shown", "problem"),
    [
        (
            layout(sl.Bars(title="P", metric="smae", along="lang")),
            "Shuffle's layout names the metric 'smae' in 'P'. Did you mean 'same'? Declared: same.",
        ),
        (layout(tables=(table("same", "gap"),)), "names the metric 'gap' in 'T'"),
        (
            layout(sl.Curve(title="P", metric="same", along="letter")),
            "shows 'same' by letter in 'P': the metric's `by` lacks 'letter'",
        ),
        (
            layout(sl.Bars(title="P", metric="same", along="lang", lines="letters")),
            "by lang and letters in 'P': the metric's `by` lacks ('lang', 'letters')",
        ),
        (layout(tables=(table("same", columns="letters"),)), "lacks ('lang', 'letters')"),
    ],
)
def test_a_layout_that_would_show_nothing_is_refused(
    shown: sl.Layout, problem: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shuffle, "layout", shown)
    with pytest.raises(UsageError) as refused:
        run(data)
    assert problem in str(refused.value)
    assert Rule.asked == []


@pytest.mark.parametrize("value", [["a"], None, 0.5, True])
def test_a_tag_is_a_text_or_a_whole_number(value: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Sample(id="1", group="1", tags={"lang": "en", "options": value}, inputs={"word": "keel"})
    monkeypatch.setattr(Shuffle, "samples", lambda self, data: [odd])
    with pytest.raises(UsageError, match=f"sample 1: the tag 'options' is a {type(value).__name__}; a tag"):
        run(data)
    assert Rule.asked == []


def test_a_tag_of_by_that_no_sample_has_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Recorder()
    monkeypatch.setattr(Shuffle, "metrics", [metric("lang", "leters", ("lang", "leters"))])
    monkeypatch.setattr(Shuffle, "layout", layout())
    assert run(data, notes).summary["same/lang=de"].n == 1
    assert notes.notes == [
        "No sample has the tag 'leters', which is in a metric's `by`. Did you mean 'letters'? "
        "Tags of the samples: lang, letters."
    ]


def test_a_metric_is_broken_down_by_several_tags_together(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shuffle, "metrics", [metric("lang", ("lang", "letters"))])
    bars = sl.Bars(title="Both", metric="same", along="lang", lines="letters")
    monkeypatch.setattr(Shuffle, "layout", layout(bars))
    finished = run(data)
    assert finished.summary["same/lang=en,letters=4"].value == 1.0
    (drawn,) = sl.charts(finished)
    assert drawn.title == "Both"
    assert "Same word" in drawn.to_svg()


def test_the_default_layout_has_a_table_for_each_breakdown() -> None:
    class Pairs(Shuffle):
        """Is it?"""

        metrics = [metric("lang", ("lang", "letters"))]

    shown = [(table.title, table.rows, table.columns) for table in Pairs.layout.tables]
    assert shown == [("By language", "lang", ""), ("By language and letters", "lang", "letters")]


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        (
            lambda self, sample: Generate(prompt="x", sampling=Sampling()),
            r"Shuffle\.requests failed: TypeError in harness/scoring\.py:\d+: .Generate. object is not it",
        ),
        (
            lambda self, sample: [sample.inputs["words"]],
            r"Shuffle\.requests failed: KeyError in harness/test_declarations\.py:\d+: 'words'",
        ),
        (lambda self, sample: ["x"], r"Shuffle\.requests must give Generate, …, Rank; it gave a str"),
    ],
)
def test_requests_that_fail_name_the_benchmark(
    requests: Any, problem: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shuffle, "requests", requests)
    with pytest.raises(UsageError, match=problem):
        run(data)
