"""docs/extending.md works as it is written: as a file and as an installed package, from the shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugins import install_package
from sealegs.errors import UsageError
from sealegs.harness import registry

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BROKEN = 'raise RuntimeError("half of it is missing")\n'


def blocks() -> dict[str, str]:
    """The code of the page by the name of its file."""
    pairs = re.findall(
        r"```(?:python|toml)\n# ([^\n]+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    return dict(pairs)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the page's package and a broken one are installed."""
    folder = tmp_path_factory.mktemp("site")
    code = blocks()
    points = re.sub(r'"', "", code["pyproject.toml"].replace("project.entry-points.", ""))
    install_package(
        folder, "parrot_plugin", {name: code[name] for name in ("parrot.py", "constant.py")}, points
    )
    install_package(
        folder,
        "broken_plugin",
        {"broken.py": BROKEN, "leaves.py": "import sys\nsys.exit(3)\n", "empty.py": "class Empty: ...\n"},
        "[sealegs.benchmarks]\nbroken = broken:Broken\nleaves = leaves:Leaves\nempty = empty:Empty\n"
        "mirae = empty:Empty\n[sealegs.models]\nsplit = broken:Split\nbare = empty:Empty\n",
    )
    return folder


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.jsonl"
    path.write_text('{"word": "keel"}\n{"word": "KEEL", "lang": "de"}\n{"word": "rudder"}\n')
    return path


def shell(site: Path, folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", **environment}
    return subprocess.run(
        [sys.executable, "-m", "sealegs", *args],
        capture_output=True, text=True, cwd=folder, env=environment, check=False,
    )  # fmt: skip


def test_an_installed_plugin_works_from_the_shell(site: Path, words: Path, tmp_path: Path) -> None:
    listed = shell(site, tmp_path, "list", "benchmarks")
    assert "parrot     Can it repeat a word?" in listed.stdout
    assert listed.returncode == 0
    assert "constant:NAME" in shell(site, tmp_path, "list", "models").stdout
    asked = ("--model", "constant:keel", "--model-arg", "loud=true", "--data", str(words), "--out", "run")
    ran = shell(site, tmp_path, "run", "parrot", *asked)
    assert ran.returncode == 0, ran.stderr
    assert "Words repeated of keel" in ran.stdout
    repeated = json.loads((tmp_path / "run" / "summary.json").read_text())["repeated"]
    assert (repeated["n"], repeated["value"]) == (3, pytest.approx(1 / 3))
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Repeated by length" in page  # the picture
    assert "<svg" in page
    assert "Further characters" in ran.stdout
    rescored = shell(site, tmp_path, "rescore", "run")
    assert rescored.returncode == 0, rescored.stderr
    answers = '{"word": "keel", "answer": "keel"}\n{"word": "mast", "answer": "sail"}\n'
    (tmp_path / "answers.jsonl").write_text(answers)
    scored = shell(site, tmp_path, "score", "parrot", "answers.jsonl", "--out", "scored")
    assert scored.returncode == 0, scored.stderr
    assert "50%" in scored.stdout


def test_a_broken_plugin_is_named_in_a_warning_and_hurts_nobody(site: Path, tmp_path: Path) -> None:
    listed = shell(site, tmp_path, "list", "benchmarks")
    assert (
        "the plug-in 'broken' (broken:Broken) of the package 'broken_plugin' cannot be loaded"
        in listed.stderr
    )
    assert "half of it is missing" in listed.stderr
    assert "Traceback" not in listed.stderr
    assert "mirae" in listed.stdout
    assert "the plug-in 'leaves' (leaves:Leaves)" in listed.stderr
    assert "the plug-in 'empty' (empty:Empty) of the package 'broken_plugin' is not a sub" in listed.stderr
    assert "is left out: the name 'mirae' is taken" in listed.stderr
    models = shell(site, tmp_path, "list", "models")
    assert "'split'" in models.stderr
    assert "is not a backend: it lacks Options, capabilities" in models.stderr
    assert models.returncode == 0
    assert "embedded" in models.stdout
    named = shell(site, tmp_path, "run", "broken", "--model", "embedded")
    assert (named.returncode, "half of it is missing" in named.stderr) == (2, True)
    assert "cannot be loaded" not in shell(site, tmp_path, "run", "mirae", "--help").stderr


def test_a_path_works_without_installing(site: Path, words: Path, tmp_path: Path) -> None:
    (tmp_path / "bird.py").write_text(blocks()["parrot.py"])
    args = ("--model", "constant:keel", "--data", str(words), "--out", "run")
    ran = shell(site, tmp_path, "run", "./bird.py", *args)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "run" / "spec.json").read_text())["benchmark"] == "bird"
    text = shell(site, tmp_path, "run", "./bird.py", "--help").stdout
    assert "--data" in text
    assert "default: starter" not in text
    unknown = shell(site, tmp_path, "report", "run")
    assert unknown.returncode == 2
    assert "unknown benchmark 'bird'" in unknown.stderr
    assert "SEALEGS_BENCHMARKS=" in unknown.stderr
    known = shell(site, tmp_path, "report", "run", SEALEGS_BENCHMARKS="bird.py")
    assert known.returncode == 0, known.stderr
    eager = re.sub(r"\)\] = 16", ")]", blocks()["parrot.py"])
    (tmp_path / "eager.py").write_text(eager)
    missing = shell(site, tmp_path, "run", "./eager.py", "--model", "constant:keel")
    assert "Missing option '--max-tokens'" in missing.stderr


def test_a_stored_run_never_chooses_a_file_to_execute(tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n" + blocks()["parrot.py"])
    for name in (str(trap), "trap.py", "./trap.py"):
        with pytest.raises(UsageError, match="unknown benchmark"):
            registry.benchmark_class(name)
    assert not (tmp_path / "sprung").exists()


def test_a_file_does_not_take_the_name_of_another_benchmark(tmp_path: Path) -> None:
    path = tmp_path / "mirae.py"
    path.write_text(blocks()["parrot.py"])
    with pytest.raises(UsageError, match="there is a benchmark 'mirae' already. Rename the file"):
        registry.chosen_class(path)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = 1\n", "must define one subclass of sealegs.Benchmark; it defines: none"),
        (
            "import sealegs\nclass A(sealegs.Benchmark):\n    '''?'''\n",
            "lacks: Options, roles, metrics, samples",
        ),
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError"),
        ("class A(:\n", r"cannot be loaded: SyntaxError in .*odd\.py:1"),
    ],
)
def test_a_file_that_is_not_a_benchmark_says_what_it_lacks(code: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(code)
    with pytest.raises(UsageError, match=problem):
        registry.chosen_class(str(path))
