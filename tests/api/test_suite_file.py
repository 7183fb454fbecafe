"""The file of a suite: what it means, and what is said of one that is wrong."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from commandline import sealegs
from sealegs.api.suite.definition import example, read_suite
from sealegs.api.suite.runs import THIS_MACHINE, PlannedRun, planned_runs
from sealegs.errors import DataError

PLAIN = "models: [embedded]\nbenchmarks: [miron]\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "suite.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return path


def planned(tmp_path: Path, text: str) -> list[PlannedRun]:
    return planned_runs(read_suite(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [embedded]\nbenchmark: [miron]\n", r"line 2: .*Did you mean 'benchmarks'\?"),
        ("models:\n- {spec: embedded,\n   nmae: x}\nbenchmarks: [miron]\n", "line 3: .*Did you mean 'name'"),
        (PLAIN + "defaults:\n  limit: 0\n", "line 4: 'defaults.limit'"),
        ("models: [embedded]\nbenchmarks: [mirn]\n", "line 2: .*Did you mean 'miron'"),
        (
            "models:\n- embedded\nbenchmarks:\n- miron\n- benchmark: rgb\n  options: {noise_rate: 1}\n",
            "line 5: .*Did you mean 'noise_rates'",
        ),
        (
            "models: [embedded]\nbenchmarks:\n- {benchmark: rgb, options: {limit: 1}}\n",
            "line 3: .*'limit'. It is a setting of the run",
        ),
        ("models: [embedded]\nbenchmarks: [./evil.py]\n", "line 2: './evil.py': a suite runs no Python file"),
        ("models: [embedded, embedded]\nbenchmarks: [miron]\n", "line 1: the model is called 'embedded'"),
        ("models: [embedded]\nbenchmarks: [miron, miron]\n", "line 2: two runs would be called"),
        ("- embedded\n", "suite.yaml: this is not a suite"),
        ("models: ['openai:x']\nbenchmarks: [miron]\nbudget:\n  usd: 1\n", "line 4: .*price of openai:x"),
        (PLAIN + "defaults: {data: nowhere.jsonl}\n", "line 2: .*nowhere.jsonl"),
        *(
            (f"benchmarks: [miron]\nmodels: [{model}]\n", "line 2: the model 'hf:x': trust_remote_code")
            for model in ("{spec: 'hf:x', args: {trust_remote_code: true}}", "'hf:x?trust_remote_code=1'")
        ),
        (
            "models: []\nbenchmarks: [{benchmark: multiview, options: "
            "{method: 'judge:hf:x?trust_remote_code=true'}}]\n",
            "line 2: the model 'hf:x': trust_remote_code cannot be set",
        ),
        *(
            (f"models: [embedded]\nbenchmarks: [{{benchmark: rgb, data: '{data}'}}]\n", "line 2: .* address")
            for data in ("file:///a", "simplecache::file:///a", "hf:/a", "hf:../a", "https://h/a::/b")
        ),
    ],
)
def test_an_error_names_the_file_and_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        planned(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "suite.yaml"))


@pytest.mark.parametrize("out", ["../elsewhere", "/tmp/elsewhere", "a/../../b", "link/x"])
def test_the_file_names_no_folder_outside_its_own(tmp_path: Path, out: str) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path)
    file = read_suite(write(tmp_path / "inside", PLAIN + f"out: '{out}'\n"))
    with pytest.raises(DataError, match=r"line 3: out: .* is not below the folder of this file"):
        _ = file.out


def test_names_never_become_paths(tmp_path: Path) -> None:
    text = """
        models:
          - {spec: embedded, name: ../../up}
          - {spec: "embedded?dtype=bfloat16", name: /etc/passwd}
          - {spec: "embedded?dtype=float32", name: "a\\0b"}
        benchmarks:
          - {benchmark: miron, name: ..}
    """
    for run in planned(tmp_path, text):
        assert (tmp_path / run.name).resolve().parent == tmp_path
        assert not run.name.startswith(".")
        assert re.fullmatch(r"[\w.-]+", run.name)


@pytest.mark.parametrize(
    "text",
    [
        "models: ['openai:x?api_key=sk-Ab3dE6gH9jK2mN5p']\nbenchmarks: [miron]\n",
        "models: [{spec: 'openai:x', args: {api_key_env: sk-Ab3dE6gH9jK2mN5p}}]\nbenchmarks: [miron]\n",
        "models: [{spec: 'openai:x', args: sk-Ab3dE6gH9jK2mN5pQ8r}]\nbenchmarks: [miron]\n",
        "models: [{spec: 'openai:x', base_url: 'http://me:sk-Ab3dE6gH9jK2mN5p@h/v1'}]\nbenchmarks: [miron]\n",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    done = sealegs("suite", write(tmp_path, text))
    assert done.code == 2
    assert "suite.yaml, line 1" in done.stderr
    assert "sk-Ab3" not in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["suite.yaml"]


def test_the_last_setting_decides(tmp_path: Path, questions: Path) -> None:
    runs = planned(
        tmp_path,
        """
        defaults: {limit: 3, seed: 1}
        models:
          - embedded
          - {spec: "openai:b", name: two, seed: 7, base_url: "http://127.0.0.1:9/v1", args: {send_seed: true}}
        benchmarks:
          - {benchmark: mirae, limit: 2, data: questions.json, options: {repeats: 3, levels: 1}}
          - {benchmark: rgb, models: [embedded]}
        """,
    )
    mirae, other, rgb = runs
    assert [run.name for run in runs] == ["mirae-embedded", "mirae-two", "rgb-embedded"]
    assert mirae.task.settings | {"data": 0} == {
        "model": "embedded", "model_args": {}, "limit": 2, "seed": 1, "data": 0, "repeats": "3",
        "levels": "1", "label": "embedded",
    }  # fmt: skip
    assert mirae.task.settings["data"] == [str(questions.resolve())]
    assert rgb.task.settings["limit"] == 3
    assert other.task.settings["seed"] == 7
    assert other.task.settings["model_args"] == {"send_seed": "true", "base_url": "http://127.0.0.1:9/v1"}


def test_runs_of_one_server_or_of_this_machine_take_turns(tmp_path: Path) -> None:
    runs = planned(
        tmp_path,
        """
        models:
          - embedded
          - {spec: "openai:a", base_url: "http://127.0.0.1:9/v1"}
          - {spec: "openai:b", base_url: "http://127.0.0.1:9/other/v1"}
          - {spec: "openai:c", base_url: "http://127.0.0.1:10/v1"}
        benchmarks:
          - mirae
          - {benchmark: multiview, options: {method: ["{name}=judge:{model}", "embed:embedded-embedder"]}}
          - {benchmark: multiview, name: lexical}
        """,
    )
    servers = {run.name: set(run.servers) for run in runs}
    assert servers["mirae-embedded"] == servers["multiview-embedded"] == {THIS_MACHINE}
    assert servers["mirae-a"] == servers["mirae-b"] == {"127.0.0.1:9"}
    assert servers["mirae-c"] == servers["multiview-c"] == {"127.0.0.1:10"}
    assert servers["lexical"] == set()
    (method, _) = next(run for run in runs if run.name == "multiview-c").task.settings["method"]
    assert method == "c=judge:openai:c?base_url=http%3A%2F%2F127.0.0.1%3A10%2Fv1"


def test_changed_data_are_another_run(tmp_path: Path, questions: Path) -> None:
    text = "models: [embedded]\nbenchmarks: [{benchmark: mirae, data: questions.json}]\n"
    before = planned(tmp_path, text)[0]
    questions.write_text(questions.read_text().replace("told in", "said in"))
    assert planned(tmp_path, text)[0].task.identity != before.task.identity


def test_the_example_is_a_suite_and_replaces_no_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert sealegs("suite", "--init", path).code == 0
    runs = planned_runs(read_suite(path))
    assert {run.task.benchmark for run in runs} == {"mirae", "rgb", "miron", "multiview"}
    path.write_text("mine")
    assert sealegs("suite", "--init", path).code == 2
    assert path.read_text() == "mine"


def test_what_is_commented_out_in_the_example_is_right_too(tmp_path: Path) -> None:
    """Every commented entry, taken in, is a suite."""
    text = re.sub(r"^( *)# (?=- |  (?!sealegs)|budget:)", r"\1", example(), flags=re.MULTILINE)
    definition = read_suite(write(tmp_path, text)).definition
    assert len(definition.models) == 4
    assert len(definition.benchmarks) == 5
    assert definition.budget.usd == 5


FOREIGN = [
    "benchmarks: [rgb]\nmodels:\n- {spec: 'openai:x', base_url: 'http://llm.example:8000/v1'%s}\n",
    "benchmarks: [rgb]\nmodels:\n- 'openai:x?base_url=http://llm.example:8000/v1%s'\n",
    "models: [embedded]\nbenchmarks:\n- benchmark: rgb\n"
    "  options: {judge: 'openai:x?base_url=http://llm.example:8000/v1%s'}\n",
]


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "MY_BANK_PASSWORD"])
@pytest.mark.parametrize("text", FOREIGN)
def test_a_file_sends_a_key_only_to_hosts_that_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "secret-of-mine")
    named = f", args: {{api_key_env: {variable}}}" if "spec:" in text else f"&api_key_env={variable}"
    assert planned_runs(read_suite(write(tmp_path, text % "")))  # no key goes there
    path = write(tmp_path, text % named)
    with pytest.raises(DataError, match=f"line 3: .*{variable} to llm.example:8000") as refusal:
        planned_runs(read_suite(path))
    assert "secret-of-mine" not in str(refusal.value)
    assert "--allow-host llm.example:8000" in str(refusal.value)
    assert planned_runs(read_suite(path), ["llm.example"])
    assert planned_runs(read_suite(path), ["llm.example:8000"])
    with pytest.raises(DataError):
        planned_runs(read_suite(path), ["llm.example:9000", "example"])


def test_a_key_goes_to_its_own_provider_and_where_the_persons_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-mine")
    monkeypatch.setenv("GROQ_API_KEY", "another-secret")
    assert planned(tmp_path, "models: ['openai:x', 'groq:y']\nbenchmarks: [rgb]\n")
    with pytest.raises(DataError, match="OPENAI_API_KEY"):
        planned(tmp_path, "models: ['groq:y?api_key_env=OPENAI_API_KEY']\nbenchmarks: [rgb]\n")
    settings = tmp_path / "sealegs.toml"
    settings.write_text('[hosts."llm.example:8000"]\n')
    monkeypatch.setenv("SEALEGS_CONFIG", str(settings))
    assert planned(tmp_path, FOREIGN[0] % ", args: {api_key_env: OPENAI_API_KEY}")


def test_a_dry_run_shows_which_key_goes_where(tmp_path: Path) -> None:
    path = write(tmp_path, FOREIGN[0] % ", args: {api_key_env: OPENAI_API_KEY}")
    key = {"OPENAI_API_KEY": "secret-of-mine"}
    arguments = ("suite", str(path), "--dry-run", "--allow-host", "llm.example:8000")
    result = sealegs(*arguments, **key)
    assert "OPENAI_API_KEY goes to llm.example:8000" in result.stdout
    single = sealegs("run", "rgb", "--model", "openai:x", "--limit=2", "--dry-run", **key)
    assert "OPENAI_API_KEY goes to api.openai.com" in single.stdout
    assert "secret-of-mine" not in result.stdout + single.stdout


def test_the_gate_reads_nothing_outside_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, here = tmp_path / "suite", tmp_path / "here"
    for each in (folder, here / "base", tmp_path / "elsewhere"):
        each.mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(here)
    for name in (tmp_path / "elsewhere", "../elsewhere", "../later", "link"):
        path = write(folder, PLAIN + f"gate: {{baseline: '{name}'}}\n")
        done = sealegs("suite", path, "--dry-run")
        assert done.code == 2
        assert "suite.yaml, line 3: " in done.stderr
        assert "is not below the folder of this file or the current one" in done.stderr
    for name, found in (("base", here / "base"), ("later", folder / "later")):
        file = read_suite(write(folder, PLAIN + f"gate: {{baseline: {name}}}\n"))
        assert file.baseline() == found


@pytest.mark.parametrize("entry", ["data: 'PATH'", "options: {prompts: 'PATH'}"])
def test_a_file_reads_nothing_outside_its_own_folder_and_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    elsewhere, folder, here = (tmp_path / name for name in ("elsewhere", "suite", "here"))
    for each in (elsewhere, folder, here):
        each.mkdir()
        (each / "secret.yaml").write_text("a: b\n")
    (folder / "link.yaml").symlink_to(elsewhere / "secret.yaml")
    monkeypatch.chdir(here)
    for name in (elsewhere / "secret.yaml", "../elsewhere/secret.yaml", "link.yaml"):
        text = f"models: [embedded]\nbenchmarks:\n- {{benchmark: rgb, {entry.replace('PATH', str(name))}}}\n"
        with pytest.raises(DataError, match="line 3: .* is not below the folder of this file or the current"):
            planned(folder, text)


def test_a_folder_called_starter_is_not_the_starter_set(tmp_path: Path, questions: Path) -> None:
    (tmp_path / "starter").mkdir()
    shutil.copy(questions, tmp_path / "starter" / "questions.json")
    [run] = planned(tmp_path, "models: [embedded]\nbenchmarks: [mirae]\n")
    assert run.task.settings["data"] == ["starter"]
    [run] = planned(tmp_path, "models: [embedded]\nbenchmarks: [{benchmark: mirae, data: ./starter}]\n")
    assert run.task.settings["data"] == [str(tmp_path / "starter")]
