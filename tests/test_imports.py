"""Heavy things load late."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from textwrap import dedent

import pytest

import sealegs
from commandline import python
from loopback import Loopback

pytestmark = pytest.mark.slow

HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "ray",
    "numpy",
    "aiohttp",
    "polars",
)


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    return set(python(script).split("\n")[-2].split())


@pytest.mark.parametrize(
    "code",
    [
        "import sealegs",
        "from sealegs.cli import cli; cli(['--help'], standalone_mode=False)",
        "from sealegs.cli import cli; cli(['run', 'mirae', '--help'], standalone_mode=False)",
        "import sealegs.api.run",
        "import sealegs; sealegs.load_run; sealegs.load_model",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    assert loaded_after(code) == set()


def test_a_model_that_is_not_asked_yet_needs_no_torch() -> None:
    specs = ("openai:x?base_url=http://127.0.0.1:1/v1", "embedded", "embedded-embedder")
    code = f"import sealegs\nfor spec in {specs}: sealegs.load_model(spec).identity()"
    assert not loaded_after(code) & {"torch", "transformers", "sentence_transformers"}


def test_the_exported_names_are_the_documented_ones_and_all_there() -> None:
    table = sealegs.__doc__.partition("under the names of the command line:")[2].partition("Each function")[0]
    documented = {name for line in table.splitlines() for name in re.split(r",? ", line[4:].split("  ")[0])}
    assert documented - {""} == set(sealegs.__all__) - {"__version__"}
    assert sealegs.__all__ == sorted(sealegs.__all__)
    assert len(sealegs.__all__) <= 45  # those that a person types; the app's steps import from their modules
    assert all(getattr(sealegs, name) is not None for name in sealegs.__all__)
    with pytest.raises(AttributeError):
        _ = sealegs.nothing  # type: ignore[attr-defined]


def test_every_function_has_an_example_in_its_help() -> None:
    functions = [name for name in sealegs.__all__ if inspect.isfunction(getattr(sealegs, name))]
    assert {"build", "compare", "dry_run", "export", "gate", "scorecard"} <= set(functions)
    for name in functions:
        assert re.search(rf"(sl\.)?{name}\(", inspect.getdoc(getattr(sealegs, name)) or ""), name


OPTIONAL = (
    "jsonschema",
    "narwhals",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sklearn",
    "torch",
)
REFUSING = f"""
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refusing())
"""


def test_the_core_needs_no_data_frames_and_no_scipy(tmp_path: Path) -> None:
    """Run, report, export, compare, gate, search and score recorded answers without any of them."""
    work = """
        import csv
        import sys
        from pathlib import Path

        import sealegs as sl

        url, folder = sys.argv[1], Path(sys.argv[2])
        options = dict(base_url=url, embedder="openai:embed", limit=6, levels="1-2", lang="en")
        runs = [sl.run("mirae", f"openai:{name}", out=folder / name, **options) for name in ("one", "two")]
        assert not any(run.problems for run in runs)
        page = (runs[0].path / "report.html").read_text()
        assert page.count("<svg") > 1
        assert sl.render(runs[0]) == page
        [table] = sl.export(runs[0], to="csv")
        with table.open(newline="") as file:  # a prompt may have several lines
            assert len(list(csv.reader(file))) == 1 + len(list(runs[0].records()))
        comparison = sl.compare(*runs)
        assert any(each.detectable or each.p is not None or each.n for each in comparison.differences)
        sl.gate(runs[1], baseline=runs[0])
        sl.scorecard(runs[:1], out=folder / "card.html")
        assert len(sl.flips(*runs)) == 12
        samples = runs[0].samples()
        assert samples.select(search="e", sort=samples.values[0], tags={"level": 1})
        [published] = [path for path in sl.export(runs[0], to="published") if path.suffix == ".json"]
        scored = sl.score("mirae", published, base_url=url, embedder="openai:embed", out=folder / "scored")
        assert scored.headline.value == runs[0].headline.value
        methods = sl.run("multiview", method="bm25", limit=6, out=folder / "methods")
        assert methods.headline.value is not None
        (folder / "x.parquet").write_bytes(b"PAR1")
        for needing in (
            runs[0].frame, lambda: sl.export(runs[0], to="parquet"), runs[0].to_pandas,
            lambda: sl.run("miron", "openai:one", data=folder / "x.parquet", base_url=url, out=folder / "no"),
        ):
            try:
                needing()
            except sl.SealegsError as error:
                assert "pip install" in str(error), error
                print(error)
            else:
                raise AssertionError(needing)
        assert not set(sys.modules) & set(OPTIONAL)
    """
    script = f"{REFUSING}\nOPTIONAL = {OPTIONAL!r}\n{dedent(work)}"
    with Loopback() as server:
        printed = python(script, server.url, tmp_path)
    assert printed.count("pip install 'sealegs[frames]'") == 3
