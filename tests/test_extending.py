"""docs/extending.md works as it stands: its code is put where it says, its lines into the registries."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel import benchmarks, models
from evenkeel.run.registry import BACKENDS, BENCHMARKS, Backend, Entry

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


def blocks() -> dict[str, str]:
    """The code of the page by what its first line says of it."""
    found = re.findall(r"```python\n# ([^\n]+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return dict(found)


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    code = blocks()
    for name in ("benchmarks/parrot/task.py", "models/constant.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code[f"src/evenkeel/{name}"], encoding="utf-8")
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(tmp_path / "benchmarks")])
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path / "models")])
    for name, registry in (("BENCHMARKS", BENCHMARKS), ("BACKENDS", BACKENDS)):
        line = eval("{" + code[f"registry: {name}"] + "}", {"Entry": Entry, "Backend": Backend})
        for key, value in line.items():
            monkeypatch.setitem(registry, key, value)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if "parrot" in name or "constant" in name:
            del sys.modules[name]


@pytest.mark.usefixtures("extended")
def test_the_benchmark_and_the_backend_of_the_page_run_together(tmp_path: Path) -> None:
    data = tmp_path / "words.jsonl"
    data.write_text('{"word": "keel"}\n{"word": "KEEL", "lang": "de"}\n{"word": "mast"}\n')
    run = ek.run("parrot", model="constant:keel", data=data, out=tmp_path / "run")
    figure = run.summary["repeated"]
    assert figure.value == pytest.approx(1 / 3)
    assert (figure.n, figure.coverage, figure.method) == (3, 1.0, "Wilson score")
    assert "Words repeated of keel" in (run.path / "report.html").read_text()
    loud = ek.run(
        "parrot", model="constant:keel", model_args={"loud": "true"}, data=data, out=tmp_path / "loud"
    )
    assert loud.summary["repeated/lang=de"].value == 1.0
    assert ek.compare(run, loud).differences[0].metric == "repeated"


@pytest.mark.usefixtures("extended")
def test_a_backend_that_can_only_write_gets_the_part_of_miron_that_needs_no_more(tmp_path: Path) -> None:
    data = tmp_path / "miron_en.jsonl"
    data.write_text('{"prefix": "The boat has a", "target": " keel", "category": "Facts"}\n' * 1)
    run = ek.run("miron", model="constant: keel", data=data, out=tmp_path / "miron")
    assert run.summary["lev_score"].value == 100
    assert "target_confidence" not in run.summary
    assert (run.spec.options["confidence"], run.spec.options["stop"]) == ("no", "word")
