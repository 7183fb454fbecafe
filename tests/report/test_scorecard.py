"""A model's runs on one page: each benchmark's own figures, and nobody's overall score."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sealegs as sl
from commandline import sealegs
from markup import Elements
from scripted import Scripted
from sealegs.analysis import scope_name
from sealegs.errors import DataError, UsageError
from sealegs.harness.folder import Run
from sealegs.page.format import value
from sealegs.report.scorecard import Scorecard, link, render, scorecard
from stored import store_run

DRAWS = np.random.default_rng(0)


def stored(
    path: Path, benchmark: str = "mirae", *, model: str = "one", created: str = "", **more: Any
) -> Run:
    """A finished run; multiview's has no model under test, and the model is one of its judges."""
    metric = {
        "mirae": "mean_similarity", "miron": "lev_score", "rgb": "macro_lenient", "multiview": "accuracy",
    }  # fmt: skip
    values = {metric[benchmark]: DRAWS.uniform(0.4, 0.9, (12, 2))}
    if benchmark == "miron":
        values["target_confidence"] = DRAWS.uniform(20, 60, (12, 2))
    run = store_run(path, values, model=model, benchmark=benchmark, **more)
    spec = msgspec.structs.replace(run.spec, provenance={"created": created or "2026-03-01T09:30:00+00:00"})
    if benchmark == "multiview":
        judge = {"name": model, "spec": f"openai:{model}", "identity": {}}
        models = {"embed:x": {"name": "x", "spec": "x", "identity": {}}, f"judge:openai:{model}": judge}
        names = methods(model)
        spec = msgspec.structs.replace(spec, models=models, options={"method": names}, subjects=tuple(names))
        summary = run.summary | {
            scope_name("accuracy", {"method": name}): msgspec.structs.replace(run.headline, value=0.1 * place)
            for place, name in enumerate(methods(model), 1)
        }
        (path / "summary.json").write_bytes(msgspec.json.encode(summary))
    (path / "spec.json").write_bytes(msgspec.json.encode(spec))
    (path / "report.html").write_text("<!doctype html>")
    return Run(path)


def methods(model: str) -> list[str]:
    return ["bm25", "embed:x", f"judge:openai:{model}+logprobs"]


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """The four benchmarks, given in another order than theirs."""
    return [stored(tmp_path / "runs" / name, name) for name in ("multiview", "miron", "rgb", "mirae")]


def test_each_benchmark_has_its_headline_and_facts(runs: list[Run], tmp_path: Path) -> None:
    card = scorecard(runs)
    assert card.model == "one"
    assert [entry.benchmark for entry in card.entries] == ["mirae", "rgb", "miron", *["multiview"] * 3]
    figures = [figure for run in reversed(runs[1:]) for figure in run.headlines.values()]
    assert [entry.headline.figure for entry in card.entries[:3]] == figures
    assert [line.title for line in card.entries[2].facts] == ["target confidence"]
    views = [entry for entry in card.entries if entry.benchmark == "multiview"]
    assert [entry.subject for entry in views] == methods("one")
    assert [entry.headline.figure.value for entry in views] == pytest.approx([0.1, 0.2, 0.3])
    done = sealegs("scorecard", *(run.path for run in runs), "--out", tmp_path / "x.html")
    assert re.search(r"^bm25 .*\nembed:x .*\njudge:openai:one\+logprobs ", done.output, re.MULTILINE)


def test_a_scorecard_is_of_one_model(tmp_path: Path) -> None:
    two = [stored(tmp_path / "a", model="one"), stored(tmp_path / "b", "miron", model="two")]
    with pytest.raises(UsageError, match=r"different models: one, two\."):
        scorecard(two)


def test_the_folder_of_several_runs_stands_for_them(tmp_path: Path) -> None:
    stored(tmp_path / "runs" / "a", model="one")
    stored(tmp_path / "runs" / "b", "miron", model="one")
    done = sealegs("scorecard", tmp_path / "runs", "--out", tmp_path / "card.html")
    assert done.code == 0, done.stderr
    titles = re.findall(r"^(.*\(MIR.*\)): ", done.stdout, re.MULTILINE)
    assert titles == ["Consistency (MIRAE)", "Tokenizer robustness (MIRON)"]


def test_the_card_begins_with_its_date_and_whether_it_is_a_test_run(tmp_path: Path) -> None:
    few, run = (
        store_run(tmp_path / "few", {"mean_similarity": np.array([[0.1], [0.9]])}),
        stored(tmp_path / "run"),
    )
    assert "A test run: there are too few" in repr(scorecard([few]))
    card = repr(scorecard([run]))
    assert "Runs of 2026-03-01." in card
    assert "A test run" not in card


def test_runs_of_one_benchmark_share_a_table(tmp_path: Path) -> None:
    two = [stored(tmp_path / "first"), stored(tmp_path / "second")]
    card = scorecard(two)
    assert [entry.name for entry in card.entries] == ["first", "second"]
    page = render(card, tmp_path / "x.html")
    assert '<th scope="col">first</th><th scope="col">second</th>' in page
    assert Elements(page).tags.count("table") == 2  # the picture, and more figures


def test_one_name_for_a_model_in_two_states_is_said(tmp_path: Path) -> None:
    two = [stored(tmp_path / "a"), stored(tmp_path / "b", "miron")]
    assert scorecard(two).notes == []
    models = {"model": {"name": "one", "spec": "hf:one", "identity": {"spec": "openai:one", "dtype": "int4"}}}
    spec = msgspec.structs.replace(two[1].spec, models=models)
    (tmp_path / "b" / "spec.json").write_bytes(msgspec.json.encode(spec))
    card = scorecard([two[0], Run(tmp_path / "b")])
    assert card.notes == ["one is not the same in all of its runs; they differ in: dtype."]
    assert card.notes[0] in render(card, Path("x.html"))


def test_the_page_gives_figures_as_the_terminal_does(runs: list[Run], tmp_path: Path) -> None:
    page = render(scorecard(runs), tmp_path / "x.html")
    done = sealegs("scorecard", *(run.path for run in runs), "--out", tmp_path / "x.html")
    assert done.code == 0
    assert "\x1b" not in done.output
    for run in runs:
        figure = list(run.headlines.values())[-1]
        assert value(figure) in done.output
        assert value(figure) in page
    assert "2026-03-01 09:30" in page
    assert (tmp_path / "x.html").read_text() == page


@pytest.mark.parametrize("name", ["plain", "javascript:alert(1)", 'a"b <i>&', "한국어 %41", "#mirae?x"])
def test_a_run_below_the_page_is_linked_and_its_name_stays_a_path(tmp_path: Path, name: str) -> None:
    from urllib.parse import unquote, urlsplit

    run = stored(tmp_path / "runs" / name)
    links = Elements(render(scorecard([run]), tmp_path / "x.html")).links
    (address,) = (each for each in links if not each.startswith("https://"))
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    assert (tmp_path / unquote(parts.path)).samefile(run.path / "report.html")


def test_a_run_elsewhere_or_without_a_report_is_not_linked(tmp_path: Path) -> None:
    run = stored(tmp_path / "runs" / "a")
    assert link(run.path, tmp_path / "pages" / "x.html") == ""
    (run.path / "report.html").unlink()
    assert link(run.path, tmp_path / "x.html") == ""


def test_a_scorecard_is_printed_as_json_without_a_page(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = sealegs("scorecard", *(run.path for run in runs), "--json")
    assert msgspec.json.decode(done.stdout, type=Scorecard) == scorecard(runs)
    assert not (tmp_path / "scorecard.html").exists()
    sealegs("scorecard", *(run.path for run in runs))
    assert (tmp_path / "scorecard.html").exists()


def test_a_run_that_lacks_its_headline_is_named(tmp_path: Path) -> None:
    run = store_run(tmp_path / "odd", {"drift": np.full((3, 2), 0.5)})
    with pytest.raises(DataError, match=r"odd/summary\.json: there is no 'mean_similarity' in it"):
        scorecard([run])


def test_a_line_shows_interval_baseline_and_published_models(runs: list[Run], tmp_path: Path) -> None:
    done = sealegs("scorecard", *(run.path for run in runs), "--out", tmp_path / "x.html")
    line = next(line for line in done.output.splitlines() if line.startswith("embed:x"))
    bar = line.split()[2]
    assert len(bar) == 40
    assert bar.index("●") == round(0.2 * 39)
    assert bar.count("◆") >= 3
    assert bar.index("┆") == round(0.5 * 39)
    text = " ".join(done.output.split())
    assert "1 BM25 0.10, 2 Qwen3-Embedding-8B with" in text
    assert "(GSM8K, arithmetic structure, 253 triplets)" in text
    page = (tmp_path / "x.html").read_text()
    assert '<a href="https://github.com/sarahlc888/multiview" rel="noreferrer">' in page


def test_ones_own_run_is_a_mark_beside_the_published(tmp_path: Path) -> None:
    run, other = stored(tmp_path / "now"), stored(tmp_path / "suite" / "mirae", model="older")
    [entry] = scorecard([run], reference=[tmp_path / "suite"]).entries
    own = next(mark for mark in entry.marks if mark.kind == "own")
    assert (own.label, own.value) == ("older", other.headline.value)
    with pytest.raises(UsageError, match="there is no run"):
        scorecard([run], reference=[tmp_path / "suite" / "mirae" / "export"])


def test_a_run_of_one_ability_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    rows = [
        {"id": n, "query": f"Q{n}?", "answer": "yes", "positive": ["yes"], "negative": ["no"]}
        for n in range(7)
    ]
    data = tmp_path / "en.json"
    data.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    with Scripted(lambda prompt: "It is yes.") as server:
        settings: dict[str, Any] = {"data": data, "passages": 1, "noise_rates": "0", "base_url": server.url}
        runs = [
            sl.run("rgb", f"openai:{name}", ability="noise", out=tmp_path / name, **settings)
            for name in ("a", "b")
        ]
    assert runs[0].verdict.startswith("Right in 7 of 7 prompts, noise only")
    [entry] = scorecard(runs[:1]).entries
    assert entry.name == "a, noise only"
    assert {listed.part for listed in sl.list_runs(runs[0].path.parent)} == {"noise only"}
    assert "Accuracy (lenient check), noise only: no clear difference" in repr(sl.compare(*runs))
