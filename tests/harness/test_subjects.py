"""A benchmark that sets the values of one of its options side by side, in place of testing a model."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.errors import UsageError

CASES = '''
from msgspec import Struct
from msgspec.structs import replace

from evenkeel import Benchmark, Metric, Sample, Score
from evenkeel.analysis import summarise


class Cases(Benchmark):
    """Which style leaves a word as it is?"""

    class Options(Struct, frozen=True, kw_only=True):
        style: tuple[str, ...] = ("upper", "lower")

    roles = {}
    subject = "style"
    metrics = [Metric("unchanged", "Words left as they are", unit="share", better="higher")]

    def samples(self, data):
        return [Sample(id=row.name, group=row.name, tags={}, inputs=row.fields) for row in data.rows()]

    def requests(self, sample):
        return ()

    def score(self, answered):
        return [self.styled(item.sample) for item in answered]

    def styled(self, sample):
        word = sample.inputs["word"]
        values = {f"unchanged@{style}": float(getattr(word, style)() == word) for style in self.subjects}
        return Score(
            sample_id=sample.id, group=sample.group, tags={}, values=values, statuses={"ok": 1}, answered=1
        )

    def summarise(self, scores):
        by_style = [
            replace(score, tags={"style": style}, values={"unchanged": score.values[f"unchanged@{style}"]})
            for score in scores
            for style in self.subjects
        ]
        return summarise(by_style, {"unchanged": [(), ("style",)]}, units={"unchanged": "share"})
'''


def test_subjects_are_compared_listed_and_shown_whatever_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cases.py").write_text(CASES)
    words = tmp_path / "words.jsonl"
    words.write_text("".join(f'{{"word": "{word}"}}\n' for word in ("keel", "mast", "SOS", "sail")))
    monkeypatch.setenv("EVENKEEL_BENCHMARKS", str(tmp_path / "cases.py"))
    one, two = (
        ek.run("cases", data=words, style=styles, out=tmp_path / "runs" / styles[0])
        for styles in (["upper", "lower"], ["lower", "title"])
    )
    assert (one.subject, one.subjects) == ("style", ("upper", "lower"))
    assert [figure.value for figure in one.headlines.values()] == [0.25, 0.75]
    compared = ek.compare(one, two)
    assert compared.metrics == ("unchanged@lower",)
    assert compared.differences[0].difference == 0
    with pytest.raises(UsageError, match="several styles, each .* unchanged@upper, unchanged@lower"):
        ek.compare(one, two, metrics="unchanged")
    assert "title" in evenkeel("list", "runs", tmp_path / "runs").stdout
    assert evenkeel("report", one.path).code == 0
    page = (one.path / "report.html").read_text()
    assert ">style</th>" in page
