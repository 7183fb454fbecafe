"""The gallery's pages, and the page of a run without its samples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from markup import Elements
from runs import run_small

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small runs with names of the gallery: of its comparison, where the second is less consistent, and
    one of its scorecard."""
    folder = tmp_path_factory.mktemp("gallery")
    for name, variants in (("temperature-0", 1), ("temperature-1", 5)):
        with Loopback(words=20, variants=variants) as server:
            run_small("mirae", folder / name, server, limit=8, repeats=3)
    run_small("multiview", folder / "multiview")
    return folder


def test_a_page_without_samples_has_no_text_of_the_data_or_the_model(runs: Path, tmp_path: Path) -> None:
    run = sl.load_run(runs / "temperature-1")
    pages = {}
    for option in ("--samples", "--no-samples"):
        page = tmp_path / f"page{option}.html"
        assert sealegs("report", run.path, option, "--out", page).code == 0
        pages[option] = page.read_text()
    records = list(run.records())
    texts = [run.samples().row_texts([0])[0].question[:40], *(r.answers[0].text[:30] for r in records)]
    assert all(texts)
    assert texts[0] in pages["--samples"]
    assert not [text for text in texts if text in pages["--no-samples"]]
    assert "<script" not in pages["--no-samples"]
    assert run.verdict.split(";")[0][:20] in pages["--no-samples"]


def test_the_gallery_lists_the_pages_that_there_are_and_each_link_leads_to_one(
    runs: Path, tmp_path: Path
) -> None:
    (tmp_path / "former").mkdir()
    (tmp_path / "former" / "report.html").write_text("of a suite that has other runs now")
    (runs / "suite").mkdir()
    (runs / "suite" / "leaderboard.html").write_text("a leaderboard")
    script = [sys.executable, ROOT / "tools" / "gallery.py", "--pages", "--runs", runs, "--out", tmp_path]
    done = subprocess.run(list(map(str, script)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.name for path in tmp_path.glob("*.html")}
    index = (tmp_path / "index.md").read_text()
    assert pages == {
        "scorecard.html", "multiview.html", "temperatures.html", "gate.html", "leaderboard.html"
    }  # fmt: skip
    assert all(f"({page})" in index for page in pages)
    assert index.count(".html)") == len(pages)
    assert not (tmp_path / "former").exists()
    card = (tmp_path / "scorecard.html").read_text()
    assert "Similarity by criterion" in card
    assert str(runs) not in card
    gate = (tmp_path / "gate.html").read_text()
    assert "Gate FAILED" in gate
    assert "<h1>" in gate


def test_every_link_between_pages_of_the_gallery_leads_somewhere() -> None:
    gallery = ROOT / "docs" / "gallery"
    pages = list(gallery.rglob("*.html"))
    links = [(page, link) for page in pages for link in Elements(page.read_text()).links]
    local = [(page, link.partition("#")[0]) for page, link in links if "://" not in link]
    assert [(page.name, link) for page, link in local if link and not (page.parent / link).exists()] == []
    assert sum(page.stat().st_size for page in pages) < 10_000_000
