"""Every command of docs/first-hour.md, and the README's Python, as a newcomer would paste them."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest

from commandline import sealegs
from librarian import ENGLISH, Librarian, write_documents
from loopback import Loopback
from sealegs.models.embedded import embedded_folder, embedder_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^## (.+?)\n.*?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATHS = {title: block.strip().splitlines() for title, block in BLOCK.findall(GUIDE)}
ADDRESS = "http://127.0.0.1:8000/v1"
CHANCES = {"gate": {0, 1}}
"""Of a gate both are a result."""
SHORTER = {"I train models": ("--limit 20", "--limit 2")}
"""What is changed for the tests: there the time of the local model is nearly all of it."""

LONG = ("I train models",)


def newcomers_files(folder: Path) -> None:
    """What the paths say that a person has: documents, checkpoints, an embedder, labelled texts."""
    write_documents(ENGLISH, folder / "my-documents")
    (folder / "checkpoints").mkdir()
    for checkpoint in ("1000", "2000"):
        (folder / "checkpoints" / checkpoint).symlink_to(embedded_folder())
    (folder / "my-embedder").symlink_to(embedder_folder())
    with (folder / "my-texts.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "topic"])
        topics = {"tea": "pot, leaf and cup", "sea": "wave, tide and boat", "bread": "flour, oven and crust"}
        for number, (topic, words) in enumerate(topic for topic in topics.items() for _ in range(15)):
            rows.writerow([number, f"Note {number} is about {words}, on day {number * 7}.", topic])


def test_there_are_four_paths_of_six_commands() -> None:
    assert {title: len(lines) for title, lines in PATHS.items()} == {
        "I have a model server": 6, "I have documents": 6, "I train models": 6, "I compare embedders": 6,
    }  # fmt: skip


# In `make full` where a local model answers much.
@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=pytest.mark.full if title in LONG else ()) for title in PATHS]
)
def test_every_command_of_a_path_works_in_its_order(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    newcomers_files(tmp_path)
    with Loopback(words=20) as model, Librarian(ENGLISH) as writer:
        for line in PATHS[title]:
            name, *words = shlex.split(line.replace(*SHORTER.get(title, ("", ""))))
            server = writer if words[0] == "build" else model
            done = sealegs(*(server.url if word == ADDRESS else word for word in words))
            assert name == "sealegs"
            assert done.code in CHANCES.get(words[0], {0}), line + done.output


@pytest.mark.full
def test_the_python_of_the_readme_runs_as_it_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "data" / "mine").is_dir()
    assert names["run"].summary["mean_similarity"].n > 0  # type: ignore[attr-defined]
