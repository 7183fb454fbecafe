"""What leads an RGB run, what its verdict says, and what became of its answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import sealegs as sl
from jsonlines import write_lines
from rgb_rules import REJECTION, Item, ask, exported, false, given, plain, right, scattered
from sealegs.benchmarks.rgb.added import measure
from sealegs.benchmarks.rgb.benchmark import Rgb
from sealegs.benchmarks.rgb.data import DocKind, RgbInputs
from sealegs.benchmarks.rgb.prompts import load_prompts
from sealegs.page.layout import Bars
from sealegs.page.verdict import judge
from sealegs.report.notes import notes_of
from sealegs.types import Figure, Response, Sample, Status, Summary
from stored import undeclared

OUTCOMES = ("right", "wrong", "declined", "cut_off")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., sl.Run]:
    """A run over ten questions of each kind."""
    folder, runs = tmp_path_factory.mktemp("rgb"), tmp_path_factory.mktemp("runs")
    for name, item in (("en", plain), ("en_int", scattered), ("en_fact", false)):
        write_lines(folder / f"{name}.json", map(item, range(10)))

    def run(rule: Callable[[Item, str], str], **options: str) -> sl.Run:
        return ask(folder, runs / f"{rule.__name__}{options}", rule, noise_rates="0.8", **options)

    return run


def declining(item: Item, prompt: str) -> str:
    return REJECTION


# What leads


def test_the_lenient_check_leads_and_the_published_one_stands_beside_it(asked: Callable[..., sl.Run]) -> None:
    run = asked(right)
    assert run.layout.headline == "macro_lenient"
    titles = [title for title, _ in run.layout.main_figures(run.summary)]
    assert "accuracy, answers letter for letter (published check)" in titles
    assert "accuracy, answers in any spelling (lenient check)" not in titles
    first = run.layout.pictures[0]
    assert isinstance(first, Bars)
    assert (first.metric, first.along) == ("macro_lenient", "ability")
    assert undeclared(run) == []


def test_recorded_files_and_published_runs_lead_with_the_published_check(
    asked: Callable[..., sl.Run], tmp_path: Path
) -> None:
    run = asked(right)
    recorded = sl.score(
        "rgb", next((run.path / "export").glob("*en_loop*noise0.8*0.0.json")), out=tmp_path / "r"
    )
    assert recorded.layout.headline == "macro_published"
    spec = replace(run.spec, data=run.spec.data | {"source": "published"})
    assert Rgb.layout.of_run(spec, run.summary).headline == "macro_lenient"
    spec = replace(spec, options=spec.options | {"prompts": "published"})
    layout = Rgb.layout.of_run(spec, run.summary)
    assert layout.headline == "macro_published"
    assert layout.correct == ("published", "known_published")
    titles = [title for title, _ in layout.main_figures(run.summary)]
    assert "negative rejection: declined, or right from memory, where no document has the answer" in titles


def test_both_checks_average_the_same_abilities(asked: Callable[..., sl.Run], tmp_path: Path) -> None:
    """Recorded counterfactual answers cannot be checked leniently: then there is no lenient mean."""
    exports = asked(right).path / "export"
    files = [path for path in exports.iterdir() if not path.stem.endswith("result")]
    run = sl.score("rgb", files, out=tmp_path / "run")
    assert run.summary["macro_published"].value == 1.0
    lenient = run.summary["macro_lenient"]
    assert (lenient.value, lenient.reason) == (None, "not checked: counterfactual")
    assert run.summary["macro_lenient/ability=noise"].value == 1.0
    assert run.verdict.startswith("Right in 100%, averaged over four abilities")


# What the verdict says


def test_a_verdict_on_four_abilities_is_an_average(asked: Callable[..., sl.Run]) -> None:
    run = asked(right)
    # Where no document has the answer, it answers from memory.
    assert run.verdict == (
        "Right in 75%, averaged over four abilities (95% interval "
        f"{run.headline.low:.0%} to {run.headline.high:.0%}). "
        "The published check, which also counts an answer from memory or one that is only named, gives 100%."
    )


def test_a_verdict_on_one_ability_names_it(asked: Callable[..., sl.Run]) -> None:
    run = asked(right, ability="noise")
    assert run.verdict.startswith("Right in 10 of 10 prompts, noise only; there are only 10 prompts")


def test_a_model_that_declines_everything_is_said_to(asked: Callable[..., sl.Run]) -> None:
    run = asked(declining)
    assert run.verdict.startswith("Right in 25%, averaged over four abilities")
    # Ten prompts at noise 0.8, and thirty of integration.
    assert run.verdict.endswith(" It declined all 40 prompts whose documents hold the answer.")
    assert run.summary["right_minus_wrong"].value == 0
    assert run.summary["outcome_declined"].value == 1


def figure(value: float, low: float, high: float, metric: str = "") -> Figure:
    return Figure(
        value=value, low=low, high=high, method="", n=100, clusters=100, coverage=1.0, statuses={"ok": 100},
        unit="share", metric=metric,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("published", "remark"),
    [
        (figure(0.39, 0.33, 0.45), " The published check, which looks for the exact words, gives 39%."),
        (figure(0.7, 0.6, 0.79), ""),
    ],
)
def test_checks_that_differ_are_said_to(published: Figure, remark: str) -> None:
    lenient = figure(0.82, 0.77, 0.86, metric="macro_lenient")
    summary: Summary = {"macro_lenient": lenient, "macro_published": published}
    text = judge(Rgb.layout, summary, {"model": lenient}).text
    assert text == f"Right in 82 of 100 prompts (95% interval 77% to 86%).{remark}"


# What became of the answers


@pytest.mark.parametrize(
    ("text", "status", "outcome", "points"),
    [
        ("It is Ada Lock.", "ok", "right", 100),
        ("It is Ada Lock, who", "truncated", "right", 100),
        ("It is Nemo.", "ok", "wrong", -100),
        (REJECTION, "ok", "declined", 0),
        (f"{REJECTION} They", "truncated", "declined", 0),
        ("Let me read the documents one by one. Note 1 is", "truncated", "cut_off", 0),
    ],
)
def test_an_answer_has_one_of_four_outcomes(text: str, status: Status, outcome: str, points: int) -> None:
    values, _ = measure(sample("noise", 0.8, ("positive", "negative")), Response(status=status, text=text))
    assert [name for name in OUTCOMES if values[f"outcome_{name}"]] == [outcome]
    assert values["right_minus_wrong"] == points
    assert not any(name.startswith("no_answer") for name in values)


@pytest.mark.parametrize(
    ("text", "status", "outcome"),
    [
        (REJECTION, "ok", ""),
        ("It is Ada Lock.", "ok", "from_memory"),
        ("It is Nemo.", "ok", "invented"),
        ("Let me read the documents one by one. Note 1 is", "truncated", "cut_off"),
    ],
)
def test_without_the_answer_it_is_declined_remembered_or_invented(
    text: str, status: Status, outcome: str
) -> None:
    values, _ = measure(sample("rejection", 1.0, ("negative",)), Response(status=status, text=text))
    names = ("from_memory", "invented", "cut_off")
    assert [name for name in names if values[f"no_answer_{name}"]] == ([outcome] if outcome else [])
    assert values["rejected_lenient"] == (not outcome)
    assert not any(name.startswith("outcome") for name in values)


def test_the_outcomes_add_up_to_one(asked: Callable[..., sl.Run]) -> None:
    def mixed(item: Item, prompt: str) -> str:
        return (REJECTION, "It is Nemo.", f"It is {given(item['answer'])}.")[item["id"] % 3]

    run = asked(mixed)
    scopes = ["", "/setting=noise 0.8", "/setting=integration, noise 0.4".replace(", ", "%2C ")]
    for scope in scopes:
        shares = [run.summary[f"outcome_{name}{scope}"].value or 0.0 for name in OUTCOMES]
        assert sum(shares) == pytest.approx(1)
    # Of ten: four declined, three wrong, three right.
    assert run.summary["outcome_declined/setting=noise 0.8"].value == 0.4
    assert run.summary["right_minus_wrong/setting=noise 0.8"].value == 0
    beside = [run.summary[f"no_answer_{name}"].value for name in ("from_memory", "invented", "cut_off")]
    assert beside == [0.3, 0.3, 0]
    assert run.summary["rejected_lenient"].value == 0.4


def test_the_false_answer_counts_only_where_a_document_is_false(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en_fact.json", map(false, range(6)))

    def rule(item: Item, prompt: str) -> str:
        return "It is Wrongford."

    run = ask(data, tmp_path / "run", rule, ability="counterfactual", correct_rate="0,1")
    assert (run.summary["states_fake"].value, run.summary["states_fake"].n) == (1.0, 6)
    assert "states_fake/setting=no false documents" not in run.summary


def sample(ability: str, noise: float, kinds: tuple[DocKind, ...]) -> Sample[RgbInputs]:
    return Sample(
        id="en-0",
        group="en-0",
        tags={"lang": "en", "ability": ability, "setting": f"noise {noise}"},
        inputs=RgbInputs(
            dataset="en", instance=0, query="Who keeps the light?", answer="Ada Lock", fake=None,
            docs=kinds, kinds=kinds, note="", noise=noise, passages=len(kinds), correct=0.0,
        ),
    )  # fmt: skip


# As the published scripts do it


def test_an_empty_reply_that_was_recorded_counts_as_published(tmp_path: Path) -> None:
    rows = [("Ada Lock", [1], "It is Ada Lock."), ("Ben Moor", [0], ""), ("Cy Reef", [0], "Nemo.")]
    path = write_lines(
        tmp_path / "prediction_en_m_temp0.2_noise0.4_passage5_correct0.0.json",
        [
            {"id": n, "query": f"Who is {n}?", "ans": answer, "label": label, "prediction": text,
             "docs": ["a"], "noise_rate": 0.4, "factlabel": 0}
            for n, (answer, label, text) in enumerate(rows)
        ],
    )  # fmt: skip
    run = sl.score("rgb", path, out=tmp_path / "run")
    assert run.headline.value == pytest.approx(1 / 3)
    assert (run.headline.n, run.headline.coverage) == (3, 1.0)
    assert exported(run)[f"{path.stem}_result"] == {
        "all_rate": 1 / 3, "noise_rate": 0.4, "tt": 1, "nums": 3,
    }  # fmt: skip
    lenient = run.summary["lenient"]
    assert (lenient.value, lenient.n) == (0.5, 2)
    assert lenient.coverage == pytest.approx(2 / 3)
    assert run.agreement() == "3 published figures, largest difference from ours 0.0e+00"
    assert any("1 recorded reply is empty" in note.text for note in notes_of(run))


def test_no_document_at_all_is_asked_about_as_published(tmp_path: Path) -> None:
    """The published script sends no system text where a question has no documents."""
    path = tmp_path / "prompts.yaml"
    path.write_text("en:\n  system: Be brief.\n  instruction: 'Documents: {DOCS} Question: {QUERY}'\n")
    published, own = load_prompts(str(path))["en"], load_prompts("own")["en"]
    assert [each.role for each in published.messages("Who?", [], closed=False)] == ["user"]
    assert [each.role for each in published.messages("Who?", ["a"], closed=False)] == ["system", "user"]
    assert [each.role for each in own.messages("Who?", [], closed=False)] == ["system", "user"]
