"""RGB's published files: written by a run, and scored again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from commandline import sealegs
from jsonlines import write_lines
from rgb_rules import (
    FACT_RATES,
    FIELDS,
    RATES,
    REJECTION,
    Item,
    ask,
    exported,
    hedging,
    rejecting,
    reporting,
    troubled,
    values,
)

pytestmark = pytest.mark.slow


def test_the_export_has_the_published_names_fields_and_rates(rgb_run: tuple[sl.Run, Any]) -> None:
    found = exported(rgb_run[0])
    stems = [f"en_loop_temp0.2_noise{rate}_passage5_correct0.0" for rate in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    stems += [f"en_int_loop_temp0.2_noise{rate}_passage5_correct0.0" for rate in (0.0, 0.2, 0.4)]
    stems += [f"en_fact_loop_temp0.2_noise0.0_passage{n}_correct0.0" for n in (0, 5)]
    assert sorted(found) == sorted(f"prediction_{stem}{end}" for stem in stems for end in ("", "_result"))
    for stem in stems:
        lines, rates = found[f"prediction_{stem}"], found[f"prediction_{stem}_result"]
        assert all(list(line) == FIELDS for line in lines)
        assert list(rates) == (FACT_RATES if "_fact_" in stem else RATES)
        assert rates["nums"] == len(lines)
        assert rates["all_rate"] == rates["tt"] / rates["nums"]
    assert found[f"prediction_{stems[4]}_result"] == {"all_rate": 0.5, "noise_rate": 0.8, "tt": 2, "nums": 4}
    line = found[f"prediction_{stems[0]}"][2]
    assert (line["id"], line["ans"], line["label"]) == (2, [["Cy Reef", "Captain Reef"]], [1])
    assert (line["prediction"], line["factlabel"], line["noise_rate"]) == ("It is Cy Reef.", 0, 0.0)
    assert (len(line["docs"]), found[f"prediction_{stems[0]}"][3]["label"]) == (5, [1, 1])


def test_an_export_scored_again_gives_the_same_published_figures(
    rgb_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(item: Item, prompt: str) -> str:
        return (hedging, troubled, reporting)[item["id"] % 3](item, prompt)

    run = ask(rgb_files, tmp_path / "run", half, correct_rate="0,0.4", temperature=0.7)
    rows = {check: values(run, check) for check in ("published", "lenient")}
    paths = sorted(path for path in (run.path / "export").iterdir() if "_result" not in path.name)
    assert len(paths) == 12
    met: set[str] = set()
    for number, path in enumerate(paths):
        again = sl.score("rgb", path, out=tmp_path / f"again{number}")
        assert again.spec.subject == "loop"
        assert again.headline.coverage == 1.0
        assert exported(again) == {name: part for name, part in exported(run).items() if path.stem in name}
        for check, expected in rows.items():
            # The false answers are not in the file, and the lenient check would decide otherwise without.
            if check == "lenient" and "_fact_" in path.name:
                assert not any(name.split("/")[0].endswith("lenient") for name in again.summary)
                continue
            for row, value in values(again, check).items():
                assert value == expected[row], (path.name, check, row)
                met.add(row)
    assert met == set(rows["published"])
    assert sealegs("score", "rgb", paths[0], "--out", tmp_path / "again0").code == 0
    said = capsys.readouterr()
    assert "3 published figures, largest difference from ours 0.0e+00" in said.err
    assert "no documents" in said.out


def predictions(path: Path, rows: Iterable[dict[str, Any]], **all_of_them: Any) -> Path:
    """A published file; each row has its number, a query of its own and one document unless it says."""
    usual = {"docs": ["a"], "factlabel": 0, **all_of_them}
    return write_lines(
        path, ({"id": n, "query": f"Who is {n}?", **usual, **row} for n, row in enumerate(rows))
    )


def test_predictions_are_scored_as_the_published_script_does(tmp_path: Path) -> None:
    """A quirk, by hand: right at noise 1 without the answer in the documents."""
    rows = [
        ("Ada Lock", [1], "Keeper ADA LOCK."),
        ("Ben", [-1], REJECTION),
        ("Cy", [0], "Rosewood."),
        (["Dora", ["Eli", "E."]], [1, 0], "Dora and another."),
    ]
    first = predictions(
        tmp_path / "prediction_en_chatgpt_temp0.7_noise1.0_passage5_correct0.0.json",
        ({"ans": answer, "label": label, "prediction": said} for answer, label, said in rows),
        docs=["a", "b"], noise_rate=1.0,
    )  # fmt: skip
    run = sl.score("rgb", first, out=tmp_path / "first")
    assert run.spec.subject == "chatgpt"
    assert values(run, "published") == {"no answer in the documents": 0.5}
    assert values(run, "lenient") == {"no answer in the documents": 0.25}
    assert run.agreement() == "4 published figures, largest difference from ours 0.0e+00"
    assert sorted(exported(run)) == [first.stem, f"{first.stem}_result"]


JUDGED = [
    # label, prediction, factlabel, the judge's verdict
    ([-1], "文档存在事实性错误。信息不足", 1, "Yes, the model has identified the factual errors."),
    ([1], "文档存在事实性错误,北京", 1, "It has identified the error."),
    ([0], "上海", 0, "NO, the model fail to identify the factual errors."),
    ([1], "文档存在事实性错误,答案是北京", 1, "no"),
]


def test_a_judged_file_is_scored_by_its_verdicts_and_written_as_it_was(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "prediction_zh_fact_gpt_temp0.7_noise0.2_passage5_correct0.4_chatgpt.json",
        [
            {"id": n, "query": "首都？", "ans": "北京", "label": label, "prediction": text, "docs": ["一"],
             "noise_rate": 0.2, "factlabel": fact, "evaluation": verdict}
            for n, (label, text, fact, verdict) in enumerate(JUDGED)
        ],
    )  # fmt: skip
    run = sl.score("rgb", path, out=tmp_path / "run")
    assert run.spec.subject == "gpt"
    assert run.summary["detected_judge"].value == 0.5
    # A reported error and a rejection: corrected, as published, but not by what the judge saw.
    assert run.summary["corrected_judge"].value == 0.5
    assert run.summary["corrected_published"].value == 1.0
    assert run.summary["detected_published"].value == 0.75
    # The false answers are not in the file, and the lenient check would decide otherwise without.
    assert not {"states_fake", "detected_lenient", "corrected_lenient"} & run.summary.keys()
    row = "false documents, 0.4 of them true, noise 0.2: error detection"
    assert values(run, "judge")[row] == 0.5
    found = exported(run)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [list(line.items()) for line in found[path.stem]] == [list(line.items()) for line in lines]
    stem = path.stem.removesuffix("_chatgpt")
    assert sorted(found) == [stem, path.stem, f"{path.stem}result", f"{stem}_result"]
    assert found[f"{stem}_result"] == {
        "all_rate": 0.5, "noise_rate": 0.2, "tt": 2, "nums": 4,
        "fact_check_rate": 0.75, "correct_rate": 1.0, "fact_tt": 3, "correct_tt": 3,
    }  # fmt: skip
    assert list(found[f"{path.stem}result"].items()) == [
        ("reject_rate", 0.5), ("all_rate", 0.5), ("correct_rate", 0.5), ("tt", 2), ("rejecttt", 2),
        ("correct_tt", 1), ("nums", 4), ("noise_rate", 0.2),
    ]  # fmt: skip
    # Four lines of the same wording: each keeps the answer that it was given.
    assert [record.answers[0].text for record in run.records()] == [text for _, text, _, _ in JUDGED]
    assert sl.rescore(run.path).summary == run.summary


def test_a_judged_file_of_rejections_is_not_one_of_noise_robustness(tmp_path: Path) -> None:
    rows = [
        ("No, the question is not addressed by the documents.", [-1]),
        ("Yes, addressed.", [1]),
        ("?", [0]),
    ]
    texts = {-1: REJECTION, 1: "Ada", 0: "Nemo"}
    path = predictions(
        tmp_path / "prediction_en_gpt_temp0.7_noise1.0_passage5_correct0.0_chatgpt.json",
        ({"label": label, "prediction": texts[label[0]], "evaluation": verdict} for verdict, label in rows),
        ans="Ada", noise_rate=1.0,
    )  # fmt: skip
    run = sl.score("rgb", path, out=tmp_path / "run")
    assert {str(record.sample.tags["ability"]) for record in run.records()} == {"rejection"}
    assert values(run, "judge") == {"no answer in the documents": pytest.approx(1 / 3)}
    assert list(exported(run)[f"{path.stem}result"].items()) == [
        ("reject_rate", 1 / 3), ("all_rate", 1 / 3), ("tt", 1), ("rejecttt", 1), ("nums", 3),
    ]  # fmt: skip


def test_verdicts_of_the_script_for_errors_are_no_verdicts_on_rejections(tmp_path: Path) -> None:
    verdicts = ["The question is not addressed.", "NO, the model fail to identify the factual errors."]
    path = predictions(
        tmp_path / "prediction_en_gpt_temp0.7_noise1.0_passage5_correct0.0_chatgpt.json",
        ({"evaluation": verdict} for verdict in verdicts),
        ans="Ada", label=[-1], prediction=REJECTION, noise_rate=1.0,
    )  # fmt: skip
    run = sl.score("rgb", path, out=tmp_path / "run")
    assert [record.score.values["rejected_judge"] for record in run.records()] == [1.0, None]


def test_noise_1_asked_for_two_abilities_is_exported_once(rgb_files: Path, tmp_path: Path) -> None:
    run = ask(rgb_files / "en.json", tmp_path / "run", rejecting, noise_rates="0.8,1")
    assert values(run, "published") == {"noise 0.8": 0, "noise 1": 1, "no answer in the documents": 1}
    lines = exported(run)["prediction_en_loop_temp0.2_noise1.0_passage5_correct0.0"]
    assert [line["id"] for line in lines] == [0, 1, 2, 3]


def test_the_files_of_one_model_are_one_run_with_a_curve(rgb_run: tuple[sl.Run, Any], tmp_path: Path) -> None:
    run, _ = rgb_run
    paths = sorted((run.path / "export").glob("prediction_en_loop_*noise0.*_correct0.0.json"))
    assert len(paths) == 5
    assert sealegs("score", "rgb", *paths, "--out", tmp_path / "again").code == 0
    again = sl.load_run(tmp_path / "again")
    assert again.summary["noise_change_published"] == run.summary["noise_change_published"]
    assert {record.sample.id for record in again.records()} < {record.sample.id for record in run.records()}
    published = {name: part for name, part in exported(run).items() if name.startswith("prediction_en_loop_")}
    assert exported(again) == {name: part for name, part in published.items() if "noise1.0" not in name}


def test_files_with_the_same_prompt_keep_their_own_answers(tmp_path: Path) -> None:
    """Noise 0.8 and 1.0 of an integration question may have the same documents."""
    line = {"id": 0, "query": "Who?", "ans": "Ada", "label": [1], "docs": ["d"], "factlabel": 0}
    paths = [
        write_lines(
            tmp_path / f"prediction_en_int_m_temp0.0_noise{rate}_passage5_correct0.0.json",
            [{**line, "noise_rate": rate, "prediction": text}],
        )
        for rate, text in ((0.8, "Ada"), (1.0, "Nemo"))
    ]
    run = sl.score("rgb", paths, out=tmp_path / "run")
    assert [record.answers[0].text for record in run.records()] == ["Ada", "Nemo"]
