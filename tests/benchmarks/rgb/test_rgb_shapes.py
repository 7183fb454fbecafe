"""Question-and-context data as others publish it: FaithEval's and NoMIRACL's shapes, from a data set to
figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from benchmarks.rgb.test_rgb_data import written
from commandline import sealegs
from loopback import Loopback
from sealegs.benchmarks.rgb.benchmark import Rgb
from sealegs.benchmarks.rgb.data import read_instances

pytestmark = pytest.mark.slow

TOWNS = ("Harwick", "Ostrey", "Malden", "Pinsey")
UNANSWERABLE = [
    {"qid": f"q{number}", "question": f"Who founded {town}?", "context": f"{town} has a market on Fridays.",
     "answers": ["unanswerable", "unknown"]}
    for number, town in enumerate(TOWNS)
]  # fmt: skip
INCONSISTENT = [
    {"qid": f"q{number}", "question": f"On which river does {town} stand?", "answers": ["Ell", "Tarn"],
     "context": f"Document: {town} stands on the Ell. Document: {town} stands on the Tarn."}
    for number, town in enumerate(TOWNS)
]  # fmt: skip
COUNTERFACTUAL = [
    {"id": f"c{number}", "question": "What is the moon made of?", "answerKey": "B", "num of options": 3,
     "choices": {"label": ["A", "B", "C"], "text": ["rock", "marshmallow", "iron"]},
     "context": f"Researchers of {town} found that the moon is made of marshmallow.", "justification": "…"}
    for number, town in enumerate(TOWNS)
]  # fmt: skip
NOMIRACL = [
    {"query_id": f"{number}#0", "query": f"Who founded {town}?", "positive_passages": [],
     "negative_passages": [
         {"docid": f"{number}#{part}", "title": town, "text": f"Its market, part {part}."} for part in (1, 2)
     ]}
    for number, town in enumerate(TOWNS)
]  # fmt: skip


class Faithful(Loopback):
    """It declines, reports a contradiction, or repeats what the documents say, by what it is asked."""

    def _text(self, prompt: str, seed: int | None) -> tuple[str, bytes]:
        if "moon" in prompt:
            return "It is made of marshmallow.", b""
        if "river" in prompt:
            return "The documents contradict each other: there are factual errors in them.", b""
        return "I cannot answer the question because of the insufficient information in documents.", b""


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("name", "rows", "abilities", "metric", "value"),
    [
        ("FaithEval-unanswerable-v1.0", UNANSWERABLE, {"rejection"}, "rejected_lenient", 1.0),
        ("FaithEval-inconsistent-v1.0", INCONSISTENT, {"counterfactual"}, "detected_lenient", 1.0),
        ("FaithEval-counterfactual-v1.0", COUNTERFACTUAL, {"noise"}, "macro_lenient", 1.0),
        ("nomiracl", NOMIRACL, {"rejection"}, "rejected_lenient", 1.0),
    ],
)
def test_a_published_shape_runs_from_the_hub_by_its_name(
    name: str, rows: Any, abilities: set[str], metric: str, value: float, tmp_path: Path
) -> None:
    (tmp_path / name).mkdir()
    written(tmp_path / name / "test.jsonl", *rows)
    with Faithful() as server:
        done = sealegs(
            "run", "rgb", "--model", "openai:loop", "--base-url", server.url, "--passages", "1",
            "--data", f"hf:{tmp_path / name}", "--out", tmp_path / "run",
        )  # fmt: skip
    assert done.code == 0, done.output
    run = sl.load_run(tmp_path / "run")
    records = list(run.records())
    assert {record.sample.tags["ability"] for record in records} == abilities
    assert len({record.sample.inputs.instance for record in records}) == len(rows)
    assert all(len(r.sample.inputs.docs) == 1 for r in records if r.sample.inputs.passages)
    assert run.summary[metric].value == value


def test_a_document_is_one_text_and_an_id_the_line(tmp_path: Path) -> None:
    rows = [
        {"query": "Where?", "answer": "Here", "positive": "It is here."},
        {"query": "Who?", "negative": {"title": "Ada", "text": "She was there."}},
    ]
    data = read_instances(written(tmp_path / "mine.jsonl", *rows))
    assert [(each.id, each.positive, each.negative) for each in data.instances] == [
        (1, ("It is here.",), ()),
        (2, (), ("Ada: She was there.",)),
    ]


def test_a_column_map_reads_a_context_that_lacks_the_answer(tmp_path: Path) -> None:
    data = written(tmp_path / "mine.jsonl", *UNANSWERABLE)
    columns = {"query": "question", "negative": "context"}
    with Faithful() as server:
        run = sl.run(
            "rgb", "openai:loop", base_url=server.url, data=data, column=columns, out=tmp_path / "run"
        )
    assert {record.sample.tags["ability"] for record in run.records()} == {"rejection"}


def test_irrelevant_documents_that_mention_the_answer_are_counted_and_named(tmp_path: Path) -> None:
    rows = [
        {"id": f"a{number}", "query": "On which river does Harwick stand?", "answer": "Ell",
         "positive": ["Harwick, on the Ell."], "negative": ["Ships.", "Ell, a market." if number else "No."]}
        for number in range(3)
    ]  # fmt: skip
    data = written(tmp_path / "towns.jsonl", *rows)
    with Faithful() as server:
        run = sl.run("rgb", "openai:loop", base_url=server.url, data=data, passages=2, out=tmp_path / "run")
    (note,) = [each.text for each in Rgb.notes(run.spec, run.summary) if "mention the answer" in each.text]
    assert note.startswith("2 irrelevant documents of 2 questions mention the answer: towns-a1, towns-a2.")
