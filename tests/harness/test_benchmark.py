"""What a benchmark has without writing it: choice, scores, summary, page, recorded answers, a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

import sealegs as sl
from models.hostile import Recorder
from plugins import Rule, Words, install, write_words
from sealegs.api.so_far import so_far
from sealegs.errors import UsageError
from sealegs.harness.benchmark import Benchmark, make_score
from sealegs.page.view import Text
from sealegs.types import Answered, Generate, Record, Response, Sample, Sampling, Score


class Options(Struct, frozen=True, kw_only=True):
    judge: str = "rule:judge"


class Echo(Words):
    """Does it say the word?"""

    Options = Options
    roles = {"model": {"generate"}, "judge": {"generate"}}
    metrics = [sl.Metric("said", "Words said", unit="share", better="higher", by=["lang"])]

    def score(self, answered: Sequence[Answered]) -> Any:
        verdicts = yield [
            Generate(prompt=f"right? {item.text}", sampling=Sampling(max_tokens=2), role="judge")
            for item in answered
        ]
        return [
            make_score(item, said=item.text == item.sample.inputs["word"] and bool(verdict.text))
            for item, verdict in zip(answered, verdicts, strict=True)
        ]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(monkeypatch, echo=Echo, patterns=Patterns)
    words = [("keel", "en"), ("mast", "en"), ("empty", "en"), ("Kiel", "de"), ("Mast", "de")]
    return write_words(tmp_path / "words.jsonl", words)


def test_every_default_is_there(data: Path, tmp_path: Path) -> None:
    run = sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
    assert run.headline.value == 1.0
    assert (run.headline.n, run.headline.coverage) == (4, 0.8)
    assert run.summary["said/lang=de"].scope == {"lang": "de"}
    assert run.summary["said/lang=de"].metric == "said"
    assert [record.score.values["said"] for record in run.records()] == [1.0, 1.0, None, 1.0, 1.0]
    assert run.failures() == {"unparsed: empty answer": 1}
    page = (run.path / "report.html").read_text()
    assert "Does it say the word?" in page
    assert "Caveats" not in page
    assert run.spec.subjects == ("m",)


def test_a_summary_that_fails_leaves_the_run_as_it_was(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
    before = (run.path / "records.jsonl").read_bytes()
    monkeypatch.setattr(
        Echo, "score", lambda self, answered: [make_score(each, other=1) for each in answered]
    )
    with pytest.raises(UsageError, match="declares the metric 'said'"):
        sl.rescore(run.path, models=["rule:judge"], progress=False)
    assert (run.path / "records.jsonl").read_bytes() == before
    assert sl.load_run(run.path).headline.value == 1.0


def test_languages_and_the_limit_are_applied_to_any_benchmark(data: Path, tmp_path: Path) -> None:
    def ids(**chosen: Any) -> list[str]:
        run = sl.run("echo", "rule:m", data=data, out=tmp_path / str(chosen), progress=False, **chosen)
        return [record.sample.inputs["word"] for record in run.records()]

    assert ids(limit=1) == ["keel", "Kiel"]
    assert ids(lang="de") == ["Kiel", "Mast"]
    with pytest.raises(UsageError, match="lang fr: the data has no such language. Available: en, de"):
        ids(lang="fr")


def test_answers_are_written_so_that_they_can_be_scored_again(data: Path, tmp_path: Path) -> None:
    run = sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
    scored = sl.score("echo", run.path / "export" / "answers.jsonl", out=tmp_path / "scored", progress=False)
    assert scored.headline.value == run.headline.value
    assert scored.headline.coverage == run.headline.coverage


def test_a_dry_run_counts_what_a_run_asks(data: Path, tmp_path: Path) -> None:
    plan = sl.dry_run("echo", "rule:m", data=data, price_in=1, price_out=2)
    assert plan.requests == {"generate": 5, "judge": 5}
    assert Rule.asked == []
    sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
    assert len(Rule.asked) == sum(plan.requests.values())
    assert plan.tokens_out == {"generate": 20, "judge": 10}
    assert plan.usd == pytest.approx((sum(plan.tokens_in.values()) + 2 * 30) / 1e6)


def test_equal_requests_are_asked_once(data: Path, tmp_path: Path) -> None:
    data.write_bytes(data.read_bytes() * 2)
    for _ in range(2):  # the second time all are in the journal
        run = sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
        assert len(Rule.asked) == 10
    assert run.headline.n == 8


def test_samples_that_could_not_be_stored_are_refused_before_anything_is_asked(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Held(Struct):
        word: str

    def sample(number: str, inputs: Any) -> Sample:
        return Sample(id=number, group=number, tags={"lang": "en"}, inputs=inputs)

    for samples, problem in (
        ([sample("1", {}), sample("1", {})], "the sample id '1' appears twice"),
        ([sample("1", Held("keel"))], "must give samples whose inputs are dict"),
        ([{"id": "1"}], "cannot read this data: AttributeError"),
    ):
        monkeypatch.setattr(Echo, "samples", lambda self, data, samples=samples: iter(samples))
        with pytest.raises(UsageError, match=problem):
            sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=False)
    assert Rule.asked == []


def test_a_sample_that_cannot_be_scored_costs_itself_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, notes = Echo.score, Recorder()

    def broken(self: Echo, answered: Sequence[Answered]) -> Any:
        if any(item.text == "mast" for item in answered):
            raise KeyError
        return (yield from score(self, answered))

    monkeypatch.setattr(Echo, "score", broken)
    run = sl.run("echo", "rule:m", data=data, out=tmp_path / "run", progress=notes)
    assert [record.score.values.get("said") for record in run.records()] == [1.0, None, None, 1.0, 1.0]
    assert run.headline.coverage == 0.6
    assert any(why.startswith("scoring failed: KeyError in harness/") for why in run.failures())
    assert any(note.startswith("scoring failed for 1 of 5 samples") for note in notes.notes)
    assert (run.path / "report.html").is_file()


def test_a_score_lacks_its_values_unless_all_was_answered() -> None:
    request = Generate(prompt="x", sampling=Sampling())
    sample: Sample = Sample(id="s", group="s", tags={}, inputs={})

    def scored(*responses: Response) -> Score:
        return make_score(Answered(sample, (request,) * len(responses), responses), said=True)

    ok, cut = Response(status="ok", text="a"), Response(status="truncated", text="b")
    assert scored(ok, cut).values == {"said": 1.0}
    for failure in (Response(status="error"), Response(status="ok", text=" "), Response(status="refused")):
        score = scored(ok, failure)
        assert (score.values, score.answered) == ({"said": None}, 1)


def test_a_benchmark_has_sixteen_members_and_helpers_are_none_of_them() -> None:
    members = {name for name in (*dir(Benchmark), *Benchmark.__annotations__) if not name.startswith("_")}
    assert len(members) <= 16
    assert {*vars(Echo(Options()))} == {"options", "seed"}


class Patterns(Echo):
    """Does it say the word, by its beginning?"""

    roles = {"model": {"generate"}}
    metrics = [
        sl.Metric("said", "Said in {json}", unit="share", better="higher", by=["lang"], main=True),
        sl.Metric("begins_*", "Begins right", unit="share", better="higher", main=True, meaning="Its start."),
        sl.Metric("error", "Relative error", "value", "lower", caution="Of <n>.", main=True, by=["lang"]),
    ]

    def score(self, answered: Sequence[Answered]) -> Any:
        words = [(item, item.sample.inputs["word"]) for item in answered]
        return [
            make_score(
                item, said=item.text == word, error=-1.5, **{f"begins_{word[0]}": item.text[:1] == word[0]}
            )
            for item, word in words
        ]


def test_a_pattern_a_title_with_braces_and_any_number_are_shown_of_a_plugin(
    data: Path, tmp_path: Path
) -> None:
    run = sl.run("patterns", "rule:m", data=data, out=tmp_path / "run", progress=False)
    assert run.verdict.startswith("Said in {json}: 4 of 4 samples; ")
    assert {name for name in run.summary if name.startswith("begins_")} != set()
    assert run.summary["error"].value == -1.5
    page = (run.path / "report.html").read_text()
    assert "Begins right" in page
    assert "<h2>Caveats</h2>\n<ul><li>Relative error: Of &lt;n&gt;.</li></ul>" in page
    live = so_far(run.path)
    assert live is not None
    assert live.verdict == run.verdict


def test_a_layout_may_say_that_no_answer_is_right_or_wrong() -> None:
    layout = Echo.layout
    assert layout.correct_metrics == ("said",)
    assert replace(layout, correct=()).correct_metrics == ()


def test_a_view_shows_lists_and_numbers_too() -> None:
    inputs = {"seats": 4, "options": ["keel", "mast"], "word": "keel", "nested": [{"a": 1}]}
    sample: Sample = Sample(id="s", group="s", tags={}, inputs=inputs)
    score = make_score(Answered(sample, (), ()), said=True)
    view = Echo.view(Record(sample=sample, answers=(), score=score))
    assert view.title == "s · keel"
    texts = [(block.heading, block.body) for block in view.blocks if isinstance(block, Text)]
    assert texts == [("seats", "4"), ("options", "keel\nmast"), ("word", "keel")]
