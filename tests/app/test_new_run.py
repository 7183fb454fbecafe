"""A run from the form to its end, over HTTP: the hosts it would call, its progress, stopping and resuming."""

from __future__ import annotations

import hmac
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest

import sealegs as sl
from commandline import sealegs
from dialects import PROVIDERS, ProviderServer, named_at
from runs import run_small
from scripted import Scripted
from sealegs.api.launch import started
from sealegs.api.listing import suggestions_date
from sealegs.app.progress import WatchedProcess, watched
from sealegs.files import lock
from sealegs.harness.registry import benchmark_title
from serving import Serving, address, serving
from suites import until
from triplets import store, triplet

FORM = {
    "benchmark": "rgb", "source": "server", "name": "m", "variable": "NO_KEY", "data": "starter", "size": "1",
    "lang": "en", "option-ability": "noise", "option-noise_rates": "0",
}  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path / "runs") as app:
        yield app


def fields(page: str) -> dict[str, str]:
    """What the last form of a page holds."""
    form = html5lib.parse(page, namespaceHTMLElements=False).findall(".//form")[-1]
    values: dict[str, str] = {}
    for field in form.iter():
        if (name := field.get("name")) is None:
            continue
        if field.tag == "select":
            chosen = [option for option in field.iter("option") if option.get("selected") is not None]
            values[name] = (chosen or list(field.iter("option")))[0].get("value") or ""
        elif field.tag == "textarea":
            values[name] = field.text or ""
        elif field.tag == "input" and field.get("type") not in ("file", "checkbox"):
            values[name] = field.get("value") or ""
    return values


def reviewed(app: Serving, form: dict[str, str]) -> str:
    reply = app.visitor.post("/new-run/review", app.form("/new-run") | form)
    assert reply.status == 200, reply.text
    return reply.text


def begun(app: Serving, form: dict[str, str]) -> str:
    """Start a run as a person does; its name."""
    reply = app.visitor.post("/new-run/start", fields(reviewed(app, form)))
    assert reply.status == 303, reply.text
    return reply.headers["location"].removeprefix("/run?run=")


# Hosts and keys


def test_every_host_is_listed_with_the_key_that_goes_there(
    app: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GROQ_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sk-0123456789abcdef")
    judge = "openai:j?base_url=http://judge.example/v1&api_key_env=GROQ_API_KEY"
    page = reviewed(app, FORM | {"source": "groq", "option-judge": judge})
    rows = [
        ["".join(cell.itertext()).strip() for cell in row]
        for row in html5lib.parse(page, namespaceHTMLElements=False).findall(".//table[@class='hosts']//tr")
    ]
    assert rows[1:] == [
        ["api.groq.com", "model groq:m", "GROQ_API_KEY"],
        ["judge.example", "judge openai:j", "GROQ_API_KEY (the key of another provider)"],
    ]


def test_the_last_look_says_each_key_once_and_has_the_words_of_the_form(
    app: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-0123456789abcdef")
    assert reviewed(app, FORM | {"source": "groq"}).count("GROQ_API_KEY") == 1
    with Scripted(lambda prompt: "Hello.") as server:
        page = reviewed(app, FORM | {"address": server.url})
        tested = app.visitor.post("/new-run/test", fields(page)).text
    assert "chat" in tested
    assert "--batch" not in tested
    for path in ("/new-run?benchmark=rgb", "/build?benchmark=rgb"):
        assert "[default:" not in app.visitor.get(path).text


@pytest.mark.parametrize(
    ("path", "field", "suggested", "example"),
    [
        ("/new-run?benchmark=rgb", "judge", "openai:", "Example: openai:"),
        ("/new-run?benchmark=mirae", "embedder", "embedded-embedder", "Example: sbert:"),
        ("/build?benchmark=multiview", "judge", "embedded", "Example: openai:"),
        ("/build?benchmark=rgb", "model", "hf:", "Example: openai:"),
    ],
)
def test_fields_of_models_have_suggestions_and_an_example(
    tmp_path: Path, path: str, field: str, suggested: str, example: str
) -> None:
    (tmp_path / "models" / "small").mkdir(parents=True)
    (tmp_path / "models" / "small" / "config.json").write_text("{}")
    with serving(tmp_path / "runs", models=tmp_path / "models") as app:
        page = app.visitor.get(path).text
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    names = {
        each.get("id"): [option.get("value") or "" for option in each.iter("option")]
        for each in tree.iter("datalist")
    }
    assert any(name.startswith(suggested) for name in names[f"option-{field}-list"])
    assert example in page


def test_another_method_is_the_first_field_when_a_run_of_methods_is_repeated(tmp_path: Path) -> None:
    run_small("multiview", tmp_path / "runs" / "methods")
    with serving(tmp_path / "runs") as app:
        page = app.visitor.get("/new-run?like=methods").text
    assert "Its models are in the field “Methods”: name another there." in page
    assert page.index('name="option-method"') < page.index('name="data"')
    for kind in ("embed:embedded-embedder", "rerank:hf:PATH", "rewrite:openai:NAME+", "judge:anthropic:NAME"):
        assert kind in page


def test_a_server_without_a_key_is_listed_too(app: Serving) -> None:
    page = reviewed(app, FORM | {"address": "http://127.0.0.1:9/v1"})
    assert "127.0.0.1:9" in page
    assert "(“Input price” and “Output price”, in dollars per million tokens)" in page, "not the flags"
    assert "everything runs on this machine" not in page


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "m?base_url=http://evil.example"}, "without a &#39;?&#39;"),
        ({"name": ""}, "give the name of the model"),
        ({"address": "http://user:key@x"}, "must not contain a password"),
        ({"address": "nonsense"}, "is not an address"),
        ({"size": "many"}, "is not a whole number"),
        ({"price_in": "cheap"}, "is not a number"),
        ({"data": "/nothing/there"}, "/nothing/there: cannot be read"),
        ({"benchmark": "../x"}, "is not a benchmark"),
        ({"source": "folder", "folder": "../x"}, "choose a folder of models"),
    ],
)
def test_a_mistake_is_said_above_the_form(app: Serving, change: dict[str, str], problem: str) -> None:
    form = FORM | {"address": "http://127.0.0.1:9/v1"} | change
    reply = app.visitor.post("/new-run/review", app.form("/new-run") | form)
    assert reply.status == 422
    assert problem in reply.text
    if change.get("benchmark") is None:
        assert fields(reply.text)["lang"] == "en"


def test_the_form_comes_back_as_it_was(app: Serving) -> None:
    form = FORM | {"address": "http://127.0.0.1:9/v1", "option-max_tokens": "77", "price_in": "0.5"}
    page = reviewed(app, form)
    back = fields(app.visitor.post("/new-run", fields(page)).text)
    assert {name: back.get(name) for name in ("name", "address", "size", "lang", "price_in")} == {
        name: form[name] for name in ("name", "address", "size", "lang", "price_in")
    }
    assert back["option-max_tokens"] == "77"


def test_another_benchmark_keeps_what_is_typed_but_not_the_options(app: Serving) -> None:
    form = app.form("/new-run") | FORM | {"address": "http://127.0.0.1:9/v1", "option-max_tokens": "77"}
    page = app.visitor.post("/new-run", form | {"choose": "mirae"}).text
    other = fields(page)
    for name in ("source", "name", "address", "lang", "size"):
        assert other[name] == form[name]
    usual = fields(app.visitor.get("/new-run?benchmark=mirae").text)
    assert (other["benchmark"], other["option-max_tokens"]) == ("mirae", usual["option-max_tokens"])


def test_a_file_is_uploaded_checked_and_used(app: Serving, tmp_path: Path) -> None:
    row = {"id": 1, "prefix": "a b", "target": " c", "category": "Logic"}
    form = app.form("/new-run") | {"benchmark": "miron", "source": "embedded", "size": ""}
    send = app.visitor.upload
    refused = send("/new-run/review", form, "data-upload", "../../x.jsonl", b"not a row")
    assert refused.status == 422
    assert "not a row" in refused.text or "line 1" in refused.text
    reply = send("/new-run/review", form, "data-upload", "../../miron_en.jsonl", json.dumps(row).encode())
    assert reply.status == 200, reply.text
    [path] = (tmp_path / "runs" / "data" / "uploads").glob("miron_en-*.jsonl")
    assert fields(reply.text)["data"] == str(path)


# Run again


def test_a_run_of_this_person_is_begun_again_with_its_server(app: Serving, tmp_path: Path) -> None:
    with Scripted(lambda prompt: "I do not know.") as server:
        name = begun(app, FORM | {"address": server.url})
        until(lambda: [run.state for run in sl.list_runs(tmp_path / "runs")] == ["finished"])
        page = app.visitor.get(address("/new-run", like=name)).text
        filled = fields(page)
        for key in ("source", "name", "address", "variable", "data", "size", "lang"):
            assert filled[key] == (server.url if key == "address" else FORM[key])
        other = begun(app, filled | {"name": "another", "option-ability": "noise", "option-noise_rates": "0"})
        until(lambda: [run.state for run in sl.list_runs(tmp_path / "runs")] == ["finished", "finished"])
    compared = app.visitor.get(f"/compare?run={name}&run={other}")
    assert compared.status == 200
    # The same folder elsewhere may come from anyone: what it says of servers and keys is not taken.
    shutil.copytree(tmp_path / "runs" / name, tmp_path / "runs" / "moved")
    filled = fields(app.visitor.get("/new-run?like=moved").text)
    assert (filled["source"], filled["address"], filled["name"]) == ("embedded", "", "")
    assert (filled["data"], filled["size"], filled["lang"]) == ("starter", "1", "en")


def test_a_strangers_run_fills_no_judge_and_no_file(app: Serving, tmp_path: Path) -> None:
    with Scripted(lambda prompt: "yes") as server:
        judge = f"openai:j?base_url={server.url}&api_key_env=NO_KEY"
        run_small("rgb", tmp_path / "runs" / "judged", server, limit=1, judge=judge, max_tokens=50)
    page = app.visitor.get("/new-run?like=judged").text
    assert server.url not in page
    assert fields(page)["option-judge"] == ""
    assert fields(page)["option-max_tokens"] == "50"
    assert "You did not start this run on this machine: choose Judge." in page


def test_a_run_of_the_terminal_is_begun_again_with_all_its_data(
    app: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "one.jsonl", [triplet(n) for n in range(3)])
    store(tmp_path / "two.jsonl", [triplet(n, task="tools__age") for n in range(3)])
    data = ("--data", "one.jsonl", "--data", "two.jsonl", "--limit", 2)
    assert sealegs("run", "multiview", *data, "--out", "runs/first").code == 0
    assert sealegs("run", "multiview", "--limit", 2, "--concurrency", 3, "--out", "runs/starter").code == 0
    monkeypatch.chdir("/")  # where the app was started need not be where the run was
    page = app.visitor.get("/new-run?like=first").text
    filled = fields(page)
    assert filled["data"] == f"{tmp_path / 'one.jsonl'}; {tmp_path / 'two.jsonl'}"
    assert "not taken over" not in page, "defaults are no news"
    again = begun(app, filled)
    until(lambda: (tmp_path / "runs" / again / "summary.json").exists())
    specs = [sl.load_run(tmp_path / "runs" / name).spec for name in ("first", again)]
    assert specs[0].data["sha256"] == specs[1].data["sha256"]
    page = app.visitor.get("/new-run?like=starter").text
    assert fields(page)["data"] == "starter"
    assert "Not in this form, and not taken over: Concurrency." in page


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        ("mirae", "questions of each language"),
        ("miron", "examples of each language"),
        ("rgb", "questions of each data set"),
        ("multiview", "triplets of each task"),
    ],
)
def test_a_size_says_what_it_counts(app: Serving, benchmark: str, words: str) -> None:
    page = app.visitor.get(f"/new-run?benchmark={benchmark}&size=7").text
    assert [f">{each} {words}<" in page for each in ("Quick: 5", "Standard: 50", "7")] == [True] * 3
    if benchmark == "multiview":
        review = app.visitor.submit("/new-run/review", page, {"benchmark": "multiview", "size": "7"}).text
        assert f"7 {words}" in review
        assert "time unknown" not in review, "no model is asked"


# Progress


def test_a_run_is_watched_stopped_resumed_and_listed(app: Serving, tmp_path: Path) -> None:
    """The server answers a few prompts; the others wait until the run was stopped."""
    with Scripted(lambda prompt: "I do not know.", holds_after=3) as server:
        name = begun(app, FORM | {"address": server.url, "size": "40"})
        until(lambda: "I do not know." in app.visitor.get(address("/run", run=name)).text)
        page = app.visitor.get(address("/run", run=name)).text
        assert f'data-events="/events?run={name}"' in page
        assert '<noscript><meta http-equiv="refresh"' in page
        assert re.search("<b>So far, [0-9]+ of 40 samples:</b>", page)
        assert 'action="/run/stop"' in page
        assert "Stop" in app.visitor.get("/").text
        assert app.visitor.post("/run/stop", app.form("/new-run") | {"run": name}).status == 303
        last = events(app, name)[-1]
        assert (last["ended"], last["state"]) == (True, "Stopped")
        page = app.visitor.get(address("/run", run=name)).text
        assert "Resume" in page
        assert re.search("<b>So far, [0-9]+ of 40 samples:</b>", page)
        assert '<section id="samples">' in page
        assert page.count("sealegs resume") == 1, "the command is folded, and not in the log too"
        server.behaviour.holds_after = 0
        assert app.visitor.post("/run/resume", app.form("/new-run") | {"run": name}).status == 303
        assert events(app, name)[-1]["ended"]
    assert "Right in" in app.visitor.get(address("/run", run=name)).text
    [listed] = sl.list_runs(tmp_path / "runs")
    assert (listed.state, listed.headline and listed.headline.coverage) == ("finished", 1)


def events(app: Serving, name: str) -> list[dict[str, Any]]:
    """All events of a run until it ended."""
    reply = app.visitor.get(address("/events", run=name))
    assert reply.headers["content-type"] == "text/event-stream"
    return [json.loads(part.removeprefix("data: ")) for part in reply.text.split("\n\n") if part]


def test_a_start_that_reaches_no_server_leaves_its_reason_until_it_is_dismissed(
    app: Serving, tmp_path: Path
) -> None:
    name = begun(app, FORM | {"address": "http://127.0.0.1:9/v1"})
    assert events(app, name)[-1]["state"] == "Failed"
    assert sorted(path.name for path in (tmp_path / "runs" / name).iterdir()) == ["log", "started.json"]
    assert sl.list_runs(tmp_path / "runs") == []
    page = app.visitor.settled(address("/run", run=name))
    assert f"<h1>{benchmark_title('rgb')}: openai:m</h1>" in page
    assert "No sample is answered yet." in page
    for shown in (page, app.visitor.get("/").text):
        assert "Is the server running at http://127.0.0.1:9/v1?" in shown
        assert [words for words in ("Resume", "Dismiss") if f">{words}</button>" not in shown] == []
    assert app.visitor.post("/run/resume", app.form("/new-run") | {"run": name}).status == 303
    assert events(app, name)[-1]["state"] == "Failed"
    assert app.visitor.post("/run/dismiss", app.form("/new-run") | {"run": name}).headers["location"] == "/"
    assert list((tmp_path / "runs").iterdir()) == []
    assert app.visitor.post("/run/resume", app.form("/new-run") | {"run": name}).status == 422


def test_a_build_is_started_and_its_files_can_be_chosen(app: Serving, tmp_path: Path) -> None:
    page = app.visitor.get("/build?benchmark=miron").text
    form = fields(page) | {"option-per_category": "2"}
    assert app.visitor.post("/build/review", form).status == 303
    [process] = started(tmp_path / "runs")
    until(lambda: not process.active)
    assert process.state == "finished", process.log_tail()
    page = app.visitor.get("/build").text
    assert f"/new-run?benchmark=miron&amp;data={process.name}" in page
    filled = fields(app.visitor.get(f"/new-run?benchmark=miron&data={process.name}").text)
    assert filled["data"] == process.name


def test_models_are_suggested_and_a_server_is_asked_for_its_own(
    app: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = app.visitor.get("/new-run").text
    assert '<datalist id="models-anthropic"><option value="claude-' in page
    assert f"as of {suggestions_date()}" in page
    with ProviderServer(PROVIDERS["openai"], models=("<b>own",)) as server:
        for variable, value in named_at("openai", server, tmp_path).items():
            monkeypatch.setenv(variable, value)
        form = app.form("/new-run") | {"benchmark": "rgb", "source": "openai", "size": "50"}
        reply = app.visitor.post("/new-run/models", form)
        assert '<datalist id="models-openai"><option value="&lt;b&gt;own"></option></datalist>' in reply.text
        assert '<option value="50" selected>' in reply.text
    monkeypatch.setenv("OPENAI_API_KEY", "")
    assert "OPENAI_API_KEY is not set." in app.visitor.post("/new-run/models", form).text
    assert app.visitor.post("/new-run/models", form | {"source": "server"}).status == 422


def test_a_build_lists_its_hosts_before_anything_is_sent(app: Serving, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("Why is the sky blue in the morning and red in the evening?\n")
    with Scripted(lambda prompt: "x") as server:
        model = f"openai:m?base_url={server.url}&api_key_env=NO_KEY"
        form = fields(app.visitor.get("/build?benchmark=mirae").text)
        form |= {"option-questions": str(tmp_path / "mine.txt"), "option-model": model}
        reply = app.visitor.post("/build/review", form)
        assert reply.status == 200
        assert server.url.split("/")[2] in reply.text
        sealed = fields(reply.text)
        changed = sealed | {"option-questions": str(tmp_path / "other.txt")}
        of_token = hmac.new(sealed["token"].encode(), repr(changed).encode(), "sha256").hexdigest()
        assert app.visitor.post("/build", changed | {"seal": of_token}).status == 422
        assert app.visitor.post("/build", changed).status == 422
        assert app.visitor.post("/build", form).status == 422, "without the look before"
        back = fields(app.visitor.post("/build/change", sealed).text)
        assert (back["option-model"], back["option-questions"]) == (model, str(tmp_path / "mine.txt"))
        assert (server.requests, started(tmp_path / "runs")) == (0, [])
        assert app.visitor.post("/build", sealed).status == 303
        [process] = started(tmp_path / "runs")
        until(lambda: not process.active)
        assert server.requests > 0


def test_a_phase_is_shown_with_what_is_waited_for_and_the_time(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{}")
    progress = {
        "phase": "asking", "total": 20, "done": 0, "waiting": "reading prompts: 3,827 tokens",
        "started": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    with lock.writing(tmp_path):
        (tmp_path / "progress.json").write_text(json.dumps(progress))
        shown = watched(tmp_path, None)
        assert shown.words.startswith("asking: 0 of 20 requests, reading prompts: 3,827 tokens, ")
        assert shown.words.endswith(" h so far")
        (tmp_path / "progress.json").write_text(json.dumps(progress | {"started": "<b>"}))
        assert watched(tmp_path, None).words.endswith("3,827 tokens")
    assert isinstance(shown, WatchedProcess)
