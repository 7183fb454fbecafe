"""Building from ten documents of different shape, with a model that cheats wherever it is let."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from jsonlines import read_lines
from librarian import fields_asked
from scripted import Scripted
from sealegs import api
from sealegs.benchmarks.rgb.make.passages import cut_text, leans, repeats
from sealegs.benchmarks.rgb.page import notes

pytestmark = pytest.mark.slow

DOCUMENTS = Path(__file__).parents[2] / "documents"
FACTS = (
    (
        "Since when has the Pellmouth ferry crossed the Orr estuary?",
        "1904",
        r"crossed the Orr estuary since (\d+)",
    ),
    ("Who is the skipper of the Pellmouth ferry?", "Una Eastlake", r"The skipper is ([A-Z]\w+ [A-Z]\w+)"),
    (
        "Which boat is the present Pellmouth ferry?",
        "Agnes Rudgard",
        r"present boat is the ([A-Z]\w+ [A-Z]\w+)",
    ),
    ("Who built Gorscote Mill?", "Silas Crewe", r"It was built by (Silas Crewe)"),
    (
        "Who founded the Fenden Museum of Clocks?",
        "Basil Thorne",
        r"founded in 1922 by the watchmaker ([A-Z]\w+ \w+)",
    ),
    ("Who directs the Fenden Museum of Clocks?", "Rhoda Whitlock", r"directed by ([A-Z]\w+ [A-Z]\w+)"),
    ("Who chairs the harbour board of Oakmere?", "Ivor Pargeter", r"chaired by ([A-Z]\w+ [A-Z]\w+)"),
    ("Who kept the light of Oakmere for thirty years?", "Piers Ottway", r"thirty years was ([A-Z]\w+ \w+)"),
    ("Who chairs the Brindle Bathing Society?", "Cora Lindqvist", r"Its chair is ([A-Z]\w+ [A-Z]\w+)"),
    ("Who raised the bell of Brindle Lake?", "Max Harding", r"raised by the diver ([A-Z]\w+ [A-Z]\w+)"),
    ("Who roofs the village hall of Holmstead?", "Westerdale Roofing", r"awarded to ([A-Z]\w+ [A-Z]\w+)"),
    ("Who is the treasurer of the Ashby allotments?", "Ada Penrose", r"treasurer is ([A-Z]\w+ [A-Z]\w+)"),
    (
        "Who won the cup for the heaviest marrow at Ashby?",
        "Hugh Larkin",
        r"marrow went to ([A-Z]\w+ [A-Z]\w+)",
    ),
    ("Who dug the lade of Gorscote Mill?", "Silas Crewe", r"dug by ([A-Z]\w+ [A-Z]\w+)"),
    ("Who plays the accordion at the Tarnside Inn?", "Owen Drake", r"He is called ([A-Z]\w+ [A-Z]\w+)"),
)


class Cheat(Scripted):
    """Reads truly, and otherwise does as little as it can: it retells a passage by quoting it, answers every
    fourth question with a name of its own, and calls the true answer false every fourth time."""

    def __init__(self) -> None:
        super().__init__(self._write)
        self.asked = 0

    def _write(self, prompt: str) -> str:
        self.asked += 1
        lazy = self.asked % 4 == 0
        match fields_asked(prompt):
            case ["question", "answer"]:
                question, answer = next(
                    ((q, a) for q, a, pattern in FACTS if re.search(pattern, prompt)), ("", "")
                )
                fields = {"question": question, "answer": "Lord Nobody" if lazy else answer}
            case ["answer"]:
                passage, _, question = prompt.partition("Passage:")[2].rpartition("Question:")
                found = [re.search(pattern, passage) for q, _, pattern in FACTS if q in question]
                fields = {"answer": " / ".join(match[1] for match in found if match)}
            case ["false_answer"]:
                true = next(answer for question, answer, _ in FACTS if question in prompt)
                fields = {
                    "false_answer": true if lazy else "1899" if true.isdigit() else "Ernest Fairweather"
                }
            case _:
                passage = prompt.rpartition("Passage:")[2].split("Answer with")[0].strip()
                fields = {"text": passage if lazy else f"As I was told: {passage} And that is all I know."}
        return msgspec.json.encode(fields).decode()


def test_ten_documents_of_different_shape_survive_a_model_that_cheats(tmp_path: Path) -> None:
    with Cheat() as server:
        paths, made = api.build(
            "rgb", tmp_path / "set", docs=str(DOCUMENTS), model="openai:x", base_url=server.url, concurrency=1
        )
    files = {path.name: read_lines(path) for path in paths}
    told = "\n".join(made.notes)
    assert len(files["en.json"]) >= 5
    assert "the answer is not in the passage" in told
    assert "it repeats the passage or another rewriting" in told
    assert "not false" in told
    assert "valley-guide.txt contradicts ferry.md, or seems to" in told
    for row in files["en.json"]:
        (text,) = row["positive"]  # every retelling was a copy
        assert row["answer"] in text
        for passage in (text, *row["negative"]):
            assert not re.search(r"[#|`<>*]|Page \d|Harbour Board\n|- ?\n", passage)
            assert not leans(passage, "en")
        assert not any(repeats(text, other) for other in row["negative"])
    assert all(row["private"] for row in files["en_fact.json"])


def fact_set(path: Path, *, private: bool) -> Path:
    row = {
        "id": 0, "query": "Who built Pell Mill?", "answer": "Ann Lee", "fakeanswer": "Bo Reed",
        "positive": [f"Ann Lee built Pell Mill, says book {number}." for number in range(5)],
        "positive_wrong": [f"Bo Reed built Pell Mill, says book {number}." for number in range(5)],
        "negative": ["Pell Mill has a roof."] * 5,
    }  # fmt: skip
    path.write_bytes(msgspec.json.encode(row | ({"private": True} if private else {})) + b"\n")
    return path


@pytest.mark.parametrize(("private", "left"), [(True, {"0.4"}), (False, {"0", "0.4"})])
def test_what_no_model_can_know_to_be_false_is_left_out_of_accuracy_and_detection(
    tmp_path: Path, private: bool, left: set[str]
) -> None:
    """Where true documents stand beside the false ones, the contradiction can be detected."""
    with Scripted(lambda prompt: "Bo Reed") as server:
        run = api.run(
            "rgb", model="openai:x", base_url=server.url, out=tmp_path / "run",
            data=fact_set(tmp_path / "en_fact.json", private=private),
            ability="counterfactual", correct_rate="0,0.4",
        )  # fmt: skip
    scores = [record.score for record in run.records()]
    documented = [score for score in scores if "states_fake" in score.values]
    assert len(documented) == 2
    for name in ("detected_lenient", "lenient", "detected_published"):
        assert sum(name in score.values for score in documented) == len(left)
    (headline,) = {score.tags["setting"] for score in scores if "macro_lenient" in score.values}
    assert ("0.4 of them true" in str(headline)) == private
    assert private == any("no model can have read" in note.text for note in notes(run.spec, run.summary))


MANUAL = """BELL(1)                 Commands of Fenden                BELL(1)

NAME
       The bell of the town hall of Fenden

HISTORY
       The first bell was cast by Dr. W. H. Street in 1988. It was re‐
       cast\tby  Una\tEastlake.
       Ring it as follows:
"""
QUESTIONS = """Who winds the clock of Fenden?

    Max Harding winds it on Mondays, says the rota of Fenden.

What did the clock of Fenden cost?

    The dial and the bell cost 900 crowns in 1904.

    dial          210   1904
"""
WEB_PAGE = """<html><head><title>Mills</title></head><body><h1>Keyboard shortcuts</h1><p>Press ? for help.</p>
<main><h1>Gorscote Mill</h1><p>Silas Crewe built <!-- when? -->the mill in 1811 * and sold it.</p>
<ul><li><p>The lade is dry in August</p></li><li>The wheel turns</li></ul></main></body></html>"""

NUMBERED = """Questions about Pell Ferry

 1. How can I hire the ferry for a party of more than forty persons, and
    what does that cost?

    Una Eastlake hires it out for 90 crowns.

 2. There is fog.

    A bell of Pell Yard rings every minute.

 3. Can dogs come?

    Dogs of Pell travel free: they stay on deck.
"""
ASKED = """Questions about Pell Ferry

Q. I stood on the quay of Pell. Why did
the ferry not come?
A. The boat runs only if Una Eastlake is well.

Q. Is there a bar?
A. Tea comes from the Pell Inn.

Q. What if I miss the last ferry?
A. Walk home by way of Selby.
"""
PDF = """1. Introduction
1.1. Version
Version 3 of the report of the ferry board of Pell was made in 2018.
1.2. Crew
The crew of four is led by Una Eastlake, who has held the tiller since the
ferry was built at Skerry Yard.
Safety rules
The board of Pell meets in May to look at them.
"""
CODE = """# Pell tool

Files that match "*.log" or the *whole* name are sent to Pell. Do it so:

    $ pell send *.log
    sent 3 files

# This file was made by the
# pell command. DO NOT EDIT!

The `pell' command reads 20 files.

    +------+    +------+
    | pell |--->| yard |
    +------+    +------+

Ann Lee wrote it in 1988, says she.
"""

LAID_OUT = """<html><body><table><tr><td><ul><li><a href="x">Home</a></li></ul></td>
<td><h2>Pell Ferry</h2><p>Una Eastlake steers the ferry of Pell.</p><p><code>Pell=1</code></p>
<table><tr><td>Fare</td><td><p>7</p></td></tr></table></td></tr></table></body></html>"""


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        (LAID_OUT, ["Pell Ferry: Una Eastlake steers the ferry of Pell."]),
        (
            NUMBERED,
            [
                "Questions about Pell Ferry – How can I hire the ferry for a party of more than forty "
                "persons, and what does that cost? Una Eastlake hires it out for 90 crowns.",
                "Questions about Pell Ferry – There is fog: A bell of Pell Yard rings every minute.",
                "Questions about Pell Ferry – Can dogs come? Dogs of Pell travel free: they stay on deck.",
            ],
        ),
        (
            ASKED,
            [
                "Questions about Pell Ferry – I stood on the quay of Pell. Why did the ferry not come? "
                "The boat runs only if Una Eastlake is well.",
                "Questions about Pell Ferry – Is there a bar? Tea comes from the Pell Inn.",
                "Questions about Pell Ferry – What if I miss the last ferry? Walk home by way of Selby.",
            ],
        ),
        (
            PDF,
            [
                "Version: Version 3 of the report of the ferry board of Pell was made in 2018.",
                "Crew: The crew of four is led by Una Eastlake, who has held the tiller since the ferry "
                "was built at Skerry Yard.",
                "Safety rules: The board of Pell meets in May to look at them.",
            ],
        ),
        (
            CODE,
            [
                'Pell tool: Files that match "*.log" or the whole name are sent to Pell. '
                "The 'pell' command reads 20 files. Ann Lee wrote it in 1988, says she.",
            ],
        ),
        (
            MANUAL,
            [
                "The bell of the town hall of Fenden – HISTORY: The first bell was cast by Dr. W. H. Street "
                "in 1988. It was recast by Una Eastlake.",
            ],
        ),
        (
            QUESTIONS,
            [
                "Who winds the clock of Fenden? Max Harding winds it on Mondays, says the rota of Fenden.",
                "What did the clock of Fenden cost? The dial and the bell cost 900 crowns in 1904.",
            ],
        ),
        (
            WEB_PAGE,
            [
                "Gorscote Mill: Silas Crewe built the mill in 1811 * and sold it. The lade is dry in August. "
                "The wheel turns."
            ],
        ),
    ],
    ids=[
        "page laid out by a table",
        "numbered FAQ",
        "FAQ with Q and A",
        "text of a PDF",
        "indented code",
        "page of a manual",
        "FAQ in plain text",
        "page with menus",
    ],
)
def test_passages_have_their_headings_and_nothing_else(text: str, passages: list[str]) -> None:
    assert cut_text(text, "en") == passages
