"""The pages of the app, over HTTP without a browser: what they show, and that a stranger's run is text."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import html5lib
import pytest

import sealegs as sl
from harness.test_canary import CANARY, Echo, leaks
from markup import NASTY
from readers import RANKS
from runs import run_small
from sealegs.app.rendering import PAGES
from sealegs.harness.registry import benchmark_class, benchmark_title
from sealegs.page.format import escape_controls
from sealegs.report.samples.flips import compare_sample
from serving import Serving, address, serving


@pytest.fixture(scope="module")
def runs(runs: Path) -> Path:
    """Also a broken run, one that is not finished, and one whose every file is hostile."""
    folder = runs
    for name, spec in (("broken", b"{"), ("unfinished", (folder / "one" / "spec.json").read_bytes())):
        (folder / name).mkdir()
        (folder / name / "spec.json").write_bytes(spec)
    hostile = folder / NASTY[0].replace("/", "_")
    shutil.copytree(folder / "one", hostile)
    process = {"kind": "run", "benchmark": NASTY[1], "settings": {"model": NASTY[2]}, "directory": "/"}
    (hostile / "started.json").write_text(json.dumps({"task": process, "created": NASTY[1], "pid": 1}))
    (hostile / "summary.json").unlink()
    (hostile / "log").write_text(NASTY[1])
    return folder


def tree(page: str) -> Any:
    return html5lib.parse(page, namespaceHTMLElements=False)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", "".join(tree(page).itertext()))


# A run that is not finished


def test_what_is_answered_of_an_unfinished_run_is_its_report(app: Serving, runs: Path) -> None:
    name = NASTY[0].replace("/", "_")
    page = text_of(app.visitor.settled(address("/run", run=name)))
    assert "So far, 8 of 8 samples: " in page
    assert "Samples, 8 of 8 samples so far" in page
    data = json.loads(app.visitor.get(address("/samples", run=name)).text)
    assert (data["live"], data["count"]) == (True, 8)
    assert app.visitor.get(address("/sample", run=name, sample=data["ids"][7])).status == 200
    assert "No sample is answered yet." in app.visitor.settled("/run?run=unfinished")
    assert app.visitor.get(address("/samples", run="unfinished")).status == 422


def test_methods_have_their_figures_at_the_end(app: Serving, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "suite" / "methods", tmp_path / "part")
    (tmp_path / "part" / "summary.json").unlink()
    with serving(tmp_path) as other:
        page = other.visitor.settled("/run?run=part")
    assert "The figures come at the end: nothing is answered sample by sample." in page


def test_answers_that_cannot_be_scored_are_said_to_be(tmp_path: Path, runs: Path) -> None:
    shutil.copytree(runs / "one", tmp_path / "part")
    (tmp_path / "part" / "summary.json").unlink()
    spec = json.loads((tmp_path / "part" / "spec.json").read_bytes())
    spec["models"] = {}
    (tmp_path / "part" / "spec.json").write_text(json.dumps(spec))
    with serving(tmp_path) as app:
        page = app.visitor.settled("/run?run=part")
    assert "What is answered cannot be scored (KeyError" in page


# A stranger's folder


def test_a_strangers_runs_are_text_on_every_page(app: Serving, runs: Path) -> None:
    names = [path.name for path in runs.iterdir()]
    addresses = [path for path in PAGES if path not in ("/events", "/samples")]
    addresses += [address(path, run=name) for path in ("/run", "/sample", "/compare") for name in names]
    addresses += [address("/new-run", like=name) for name in names]
    addresses += [
        "/compare?run=one&run=two",
        "/scorecard?of=one",
        *(f"/run?run={name}" for name in ("..", "/etc")),
    ]
    for each in addresses:
        reply = app.visitor.get(each)
        assert reply.status in (200, 422), each
        assert "Traceback" not in reply.text
        page = tree(reply.text)
        assert {element.get("src") for element in page.iter("script")} <= {
            "/static/app.js",
            "/static/table.js",
        }
        assert {element.get("src") for element in page.iter("img")} == {"/static/boat.svg"}, each
        assert not [name for element in page.iter() for name in element.attrib if str(name).startswith("on")]
        assert not [element for tag in ("iframe", "base", "object", "embed") for element in page.iter(tag)]
        links = [element.get("href") or "" for element in page.iter("a")]
        assert not [link for link in links if not link.startswith(("/", "#", "https://"))], each


def test_a_hostile_answer_is_shown_as_it_is(app: Serving, runs: Path) -> None:
    samples = sl.load_run(runs / "one").samples()
    for sample in samples.index.ids:
        reply = app.visitor.get(address("/sample", run="one", sample=sample))
        record = samples.record(samples.row_of(sample) or 0)
        answer = re.sub(r"\s+", " ", escape_controls(record.answers[0].text)[:60])
        assert answer.strip() in text_of(reply.text)


def test_names_that_lead_elsewhere_are_refused(app: Serving, runs: Path) -> None:
    (runs.parent / "outside").mkdir(exist_ok=True)
    for name in ("../outside", "/etc", "", "one/../../outside", "one\\..", ".hidden"):
        for path in ("/run", "/sample", "/samples", "/events", "/compare"):
            reply = app.visitor.get(address(path, run=name))
            assert reply.status in (200, 422), (path, name)
            if path != "/compare":
                assert reply.status == 422


@pytest.mark.parametrize("read_only", [False, True])
def test_a_fault_is_a_page_without_its_details(
    runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, read_only: bool
) -> None:
    damaged = shutil.copytree(runs / "one", tmp_path / "damaged")
    spec = json.loads((damaged / "spec.json").read_bytes())
    (damaged / "spec.json").write_text(json.dumps(spec | {"data": {}}))
    with serving(tmp_path, read_only=read_only) as app:
        reply = app.visitor.get("/run?run=damaged")
    assert reply.status == 500
    assert "script-src 'self'" in reply.headers["content-security-policy"]
    assert "The details are on the terminal that the app was started in." in text_of(reply.text)
    links = [link.get("href") for link in tree(reply.text).iter("a")]
    assert links.count("/") == 3  # the name, the list of runs, the way back
    assert [word for word in ("Traceback", "KeyError", str(tmp_path), ".py") if word in reply.text] == []
    assert "Traceback" in caplog.text
    assert "KeyError: 'source'" in caplog.text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/runs", 404, "There is no such page."),
        ("/static/absent.js", 404, "There is no such page."),
        ("/new-run/review", 405, "This address takes what a form sends"),
        ("/?benchmark=zz", 200, "No run here is of “zz”. Show all"),
        ("/run?run=absent", 422, "absent: there is no such folder."),
        ("/run?run=one&sample=zz", 422, "this run has no sample 'zz'."),
        ("/scorecard?of=zz", 422, "no finished run here is 'zz'."),
        ("/scorecard?model=zz", 422, "no finished run here is of 'zz'."),
        ("/scorecard?run=one&run=zz", 422, "no finished run here of this model is 'zz'."),
        (f"/run?run={'a' * 5_000}", 422, "a…' is not the name of a run below"),
        ("/samples?run=one&rows=8", 422, "rows=8: give numbers from 0 to 7"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_on_a_page(
    app: Serving, path: str, status: int, words: str
) -> None:
    reply = app.visitor.get(path)
    assert (reply.status, words in text_of(reply.text)) == (status, True), text_of(reply.text)
    assert 'href="/"' in reply.text


# What the pages show


def test_the_runs_are_listed_with_verdict_and_interval(app: Serving, runs: Path) -> None:
    text = text_of(app.visitor.get("/").text)
    run = sl.load_run(runs / "one")
    assert run.verdict in text
    assert "broken" in text
    assert "unfinished" in text
    only = app.visitor.get("/?benchmark=multiview").text
    assert "suite/methods" in only
    assert run.verdict not in text_of(only)


def test_a_runs_page_is_its_report_with_the_data_of_all_samples(app: Serving, runs: Path) -> None:
    page = app.visitor.get("/run?run=one").text
    report = (runs / "one" / "report.html").read_text(encoding="utf-8")
    headings = [heading.text for heading in tree(report).iter("h2")]
    assert [heading.text for heading in tree(page).iter("h2")] == headings
    run = sl.load_run(runs / "one")
    assert run.verdict in text_of(page)
    reply = app.visitor.get("/samples?run=one")
    assert reply.headers["content-type"].startswith("application/json")
    data = json.loads(reply.text)
    assert (data["count"], data["ids"]) == (8, run.samples().index.ids)
    assert data["source"] == "/sample?run=one"
    part = app.visitor.get(address("/sample", run="one", sample=data["ids"][1], part="1"))
    assert "<html" not in part.text
    assert "The check is right" in part.text


def test_the_texts_of_samples_come_with_the_rows_that_are_shown(app: Serving, runs: Path) -> None:
    samples = sl.load_run(runs / "one").samples()
    texts = [list(map(escape_controls, row)) for row in samples.row_texts([6, 2])]
    rows = json.loads(app.visitor.get("/samples?run=one&rows=6,2").text)
    assert rows == [[*texts[0], samples.index.ids[6]], [*texts[1], samples.index.ids[2]]]
    assert json.loads(app.visitor.get("/samples?run=one&search=zzz").text) == []
    question = samples.record(3).sample.inputs.query
    rows = json.loads(app.visitor.get(address("/samples", run="one", search=question)).text)
    assert rows == samples.select(search=question)
    for wrong in ("x", "8", "-1", "1.5", "9" * 5_000):
        assert app.visitor.get(address("/samples", run="one", rows=wrong)).status == 422


def test_a_page_shows_what_was_written_since(app: Serving, runs: Path) -> None:
    """Pages are kept, and made anew when a file of the run has changed."""
    copy = runs / "copied"
    shutil.copytree(runs / "one", copy)
    assert "Right in" in app.visitor.get("/run?run=copied").text
    summary = (copy / "summary.json").read_text()
    (copy / "summary.json").write_text(summary.replace("}", " }", 1))
    records = json.loads((copy / "spec.json").read_text())
    records["subjects"] = ["renamed"]
    (copy / "spec.json").write_text(json.dumps(records))
    assert "renamed" in app.visitor.get("/run?run=copied").text
    shutil.rmtree(copy)
    assert app.visitor.get("/run?run=copied").status == 422


def test_only_runs_that_were_asked_the_same_are_offered(app: Serving) -> None:
    page = app.visitor.get("/compare?run=one").text
    assert 'href="/compare?run=one&amp;run=two"' in page
    assert 'href="/compare?run=one&amp;run=other"' not in page
    assert "Passages: A 5, B 3" in text_of(page)
    compared = app.visitor.get("/compare?run=one&run=two")
    assert compared.status == 200
    assert "Differences, paired by sample" in compared.text
    assert app.visitor.get("/compare?run=one&run=other").status == 422


def test_runs_that_were_asked_the_same_are_tried_first(app: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealegs.app.pages.compare.MOST_OTHERS", 1)
    page = app.visitor.get("/compare?run=one").text
    assert "/compare?run=one&amp;run=two" in page, "the newest, which was asked something else, comes after"


def test_what_can_be_compared_is_known_without_statistics(
    app: Serving, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(sl.UsageError) as refusal:
        sl.compare(runs / "one", runs / "other")
    monkeypatch.setattr("sealegs.analysis.comparison.compared", None)
    page = app.visitor.get("/compare?run=one").text
    assert 'href="/compare?run=one&amp;run=two"' in page
    assert str(refusal.value) in text_of(page)


def test_a_damaged_run_is_not_compared_but_named(app: Serving, runs: Path) -> None:
    damaged = shutil.copytree(runs / "one", runs / "damaged")
    try:
        with (damaged / "records.jsonl").open("a") as file:
            file.write("{}")
        reply = app.visitor.get("/compare?run=damaged")
    finally:
        shutil.rmtree(damaged)
    assert reply.status == 422
    assert "damaged/records.jsonl: it has" in text_of(reply.text)
    assert "No other run" not in reply.text


def test_a_sample_is_shown_in_both_runs(app: Serving, runs: Path) -> None:
    sample = sl.load_run(runs / "one").samples().index.ids[0]
    reply = app.visitor.get(f"/compare?run=one&run=two&sample={quote(sample)}")
    assert reply.status == 200
    assert compare_sample(runs / "one", runs / "two", sample).title in text_of(reply.text)


def test_lists_of_runs_have_the_titles_of_benchmarks(app: Serving) -> None:
    legends = [legend.text for legend in tree(app.visitor.get("/compare").text).iter("legend")]
    assert set(legends) == {benchmark_title(name) for name in ("rgb", "multiview")}
    assert f">{benchmark_title('rgb')}, " in app.visitor.get("/scorecard?of=one").text


def test_a_leaderboard_ranks_what_can_be_ranked(app: Serving) -> None:
    alone = text_of(app.visitor.get("/leaderboard?suite=suite").text)
    assert "Not ranked, for want of another run with the same data and settings: suite/methods" in alone
    assert "nothing to rank" in app.visitor.get("/leaderboard?suite=suite").text
    page = app.visitor.get("/leaderboard").text
    assert 'href="/run?run=one"' in page
    assert 'href="/run?run=two"' in page


def test_a_scorecard_leads_to_its_reports(app: Serving) -> None:
    page = app.visitor.get("/scorecard?of=one").text
    assert 'href="/run?run=one"' in page
    assert "Scorecard of" in page


def test_every_metric_is_explained(app: Serving) -> None:
    text = text_of(app.visitor.get("/explained?benchmark=rgb").text)
    for metric in benchmark_class("rgb").layout.metrics:
        assert metric.meaning in text


def test_tokenizers_are_compared(app: Serving, tmp_path: Path) -> None:
    (tmp_path / "gpt2.tiktoken").write_bytes(RANKS)
    specs = {"specs": str(tmp_path / "gpt2.tiktoken")}
    reply = app.visitor.submit("/tokenizers", app.visitor.get("/tokenizers").text, specs)
    assert reply.status == 200
    assert "tokens" in reply.text
    assert app.visitor.submit("/tokenizers", reply.text, {"specs": ""}).status == 422
    absent = app.visitor.submit("/tokenizers", reply.text, {"specs": "embedded\r\nhf:someone/model"})
    assert absent.status == 422
    assert "this page does not call huggingface.co" in absent.text
    assert ">embedded\nhf:someone/model</textarea>" in absent.text, "what was typed is still there"


def test_a_run_has_one_name_in_the_app(app: Serving, runs: Path, tmp_path: Path) -> None:
    """Its model's, with its folder in the list of runs where another has that model too."""
    for name in ("same", "suite/same"):
        shutil.copytree(runs / "one", tmp_path / "folder" / name)
    model = "<b>one</b>"
    with serving(tmp_path / "folder") as app:
        board = text_of(app.visitor.get("/leaderboard").text)
        assert all(f"{model} ({name})" in board for name in ("same", "suite/same")), board
        for path in ("/compare?run=same&run=suite/same", "/scorecard?of=same"):
            page = app.visitor.get(path)
            assert page.status == 200
            assert str(tmp_path) not in page.text, path
        assert f"A: {model} (same)" in text_of(app.visitor.get("/compare?run=same&run=suite/same").text)
        for path in ("/", "/compare"):
            assert re.search(r"\d\d:\d\d UTC", text_of(app.visitor.get(path).text))


def test_a_report_names_options_as_the_forms_do(app: Serving, runs: Path) -> None:
    text = text_of(app.visitor.get("/run?run=one").text)
    assert "“Order of the documents” balanced varies it" in text
    assert "--doc-order" not in text
    assert "--doc-order balanced varies it" in text_of((runs / "one" / "report.html").read_text())


# Marks


def test_a_mark_is_saved_and_shown_at_once(app: Serving, runs: Path) -> None:
    run = sl.load_run(runs / "two")
    sample = run.samples().index.ids[1]
    page = app.visitor.get(address("/sample", run="two", sample=sample)).text
    form = {"run": "two", "sample": sample, "verdict": "wrong", "comment": NASTY[0]}
    headings = ("Answer 1", 'class="mark"', "What the checks say")
    assert [each for _, each in sorted((page.index(each), each) for each in headings)] == [*headings]
    part = app.visitor.submit("/run/mark", page, form | {"part": "1"})
    assert part.status == 200
    assert 'value="wrong" data-key="w" aria-pressed="true"' in part.text
    [mark] = run.marks()
    assert (mark.sample, mark.verdict, mark.comment) == (sample, "wrong", NASTY[0])
    data = json.loads(app.visitor.get("/samples?run=two").text)
    assert data["marks"] == {"1": "wrong"}
    again = app.visitor.submit("/run/mark", page, form | {"verdict": "", "comment": ""})
    assert again.status == 303, "without a script the page is opened anew"
    assert run.marks() == []
    assert app.visitor.submit("/run/mark", page, form | {"sample": "absent"}).status == 422
    assert app.visitor.submit("/run/mark", page, form | {"verdict": "maybe"}).status == 422


def test_a_comment_alone_keeps_the_mark_or_is_refused(app: Serving, runs: Path) -> None:
    run = sl.load_run(runs / "two")
    sample = run.samples().index.ids[2]
    page = app.visitor.get(address("/sample", run="two", sample=sample)).text
    form = {"run": "two", "sample": sample, "comment": "a spelling"}
    refused = app.visitor.submit("/run/mark", page, form)
    assert refused.status == 422
    assert "choose whether the check is right or wrong" in refused.text
    assert run.marks() == []
    run.mark(sample, verdict="wrong")
    assert app.visitor.submit("/run/mark", page, form).status == 303
    assert [(mark.verdict, mark.comment) for mark in run.marks()] == [("wrong", "a spelling")]
    with serving(runs, read_only=True) as shown:
        text = text_of(shown.visitor.get(address("/sample", run="two", sample=sample)).text)
    assert "Check disputed. a spelling" in text
    run.mark(sample, verdict="")


def test_of_several_methods_the_form_names_the_one_that_is_checked(app: Serving, runs: Path) -> None:
    page = app.visitor.get(address("/sample", run="suite/methods")).text
    assert "The check of bm25, whose figure is the verdict:" in page
    headings = ("What the methods picked", 'class="mark"', "Annotations")
    assert [each for _, each in sorted((page.index(each), each) for each in headings)] == [*headings]


# Keys


def test_a_key_is_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.chdir(tmp_path)
    with Echo() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        made = [run_small("rgb", tmp_path / name, model="openai:m", limit=2) for name in "ab"]
        assert server.received > 3
        with serving(tmp_path) as app:
            asked = [*(path for path in PAGES if path != "/events"), "/run?run=a", "/sample?run=a"]
            asked += ["/samples?run=a", "/compare?run=a&run=b", "/compare?run=a", "/new-run?like=a"]
            pages = {path: app.visitor.get(path).text.encode() for path in asked}
            form = {"benchmark": "rgb", "source": "openai", "name": "m", "size": "5", "lang": "en"}
            review = app.visitor.submit("/new-run/review", app.visitor.get("/new-run").text, form)
            assert review.status == 200
            pages["review"] = review.text.encode()
            pages["an error"] = app.visitor.get("/run?run=broken").text.encode()
    assert b"[key]" in b"".join(pages.values()), "what the server repeated is on a page"
    shown = {"run": made[0]._repr_html_(), "compare": sl.compare(*made)._repr_html_(), "repr": repr(made[0])}
    pages |= {name: text.encode() for name, text in shown.items()}
    assert {name: spelling for name, page in pages.items() if (spelling := leaks(page))} == {}
