"""Every metric is explained once, the docs have the same text, and the formulas are what is computed."""

from __future__ import annotations

import importlib.util
import json
import zlib
from collections import defaultdict
from math import exp, log, log2
from pathlib import Path
from statistics import NormalDist, mean, pstdev
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.api.explained import written
from evenkeel.errors import UsageError
from evenkeel.harness.registry import BENCHMARKS, benchmark_class, chosen_class
from evenkeel.page.metrics import declaration
from loopback import Loopback, embedding
from rgb_rules import Item, ask, false, misled, plain, reporting, right, write
from scripted import Scripted
from triplets import named, store, triplet

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_declared_metric_has_one_entry_and_no_other_is_there(benchmark: str) -> None:
    cls = benchmark_class(benchmark)
    declared = [metric.name for metric in cls.layout.metrics]
    if not written(cls):  # the declarations say it
        return
    assert sorted(written(cls)) == sorted(declared)
    entries = ek.explained(benchmark)
    assert [entry.name for entry in entries] == declared
    for entry in entries:
        texts = (entry.title, entry.what, entry.formula, entry.source, entry.careful)
        assert all(text and text == text.strip() and "\n" not in text for text in texts), entry.name


def test_the_page_of_all_metrics_is_what_the_text_gives() -> None:
    spec = importlib.util.spec_from_file_location("write_metrics", ROOT / "tools" / "write_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    stale = "docs/metrics.md is stale: python tools/write_metrics.py"
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == tool.page(), stale


PARROT = '''
from msgspec import Struct

from evenkeel import Benchmark, Metric


class Parrot(Benchmark):
    """Can it repeat a word?"""

    class Options(Struct, frozen=True, kw_only=True):
        pass

    roles = {}
    metrics = [
        Metric("repeated", "words <b>repeated</b>", unit="share", better="higher", chance=0.5),
        Metric("odd_*", "odd", unit="count", better="higher"),
    ]

    def samples(self, data):
        return []

    def requests(self, sample):
        return ()

    def score(self, answered):
        return []
'''


def test_a_benchmark_without_the_file_is_explained_by_its_declarations(tmp_path: Path) -> None:
    path = tmp_path / "parrot_explained.py"
    path.write_text(PARROT)
    chosen_class(path)
    first, second = ek.explained("parrot_explained")
    assert (first.name, second.name) == ("repeated", "odd_*")
    assert first.what == "Words <b>repeated</b>. Higher is better."
    assert first.formula.startswith("mean of repeated over samples")
    assert first.careful == "Chance 50%."
    assert "<b>" not in first._repr_html_()


def test_a_metric_is_shown_with_its_formula_and_a_link_to_its_source() -> None:
    [kappa] = [entry for entry in ek.explained("rgb") if entry.name == "judge_kappa_*"]
    assert "κ = (p − e)/(1 − e)" in kappa._repr_html_()
    html = ek.explained("mirae")[0]._repr_html_()
    assert 'href="https://github.com/greatgompang/MIRAE"' in html
    assert "<script" not in html
    assert "Careful: It says how alike" in repr(ek.explained("mirae")[0])


def test_the_command_lists_the_metrics_of_a_benchmark() -> None:
    printed = evenkeel("list", "metrics", "multiview").stdout
    assert "flips: Picks that change with the order" in printed
    assert "lev_score" not in printed
    listed = json.loads(evenkeel("list", "metrics", "--json").stdout)
    assert {*BENCHMARKS} <= {*listed}
    assert listed["miron"][0]["name"] == "lev_score"


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown benchmark 'mire'. Did you mean 'mirae'"):
        ek.explained("mire")


# The formulas by hand, from what the records hold


INTERVALS = {
    "paired logit t": "logit scale of differences",
    "logit t": "logit scale",
    "log t": "logarithmic scale",
    "Wilson": "Wilson",
    "bootstrap": "bootstrap",
    "slopes": "slopes",
}
"""What the name of an interval's method has in it, and what the formula then says."""


def check_intervals(run: ek.Run) -> None:
    """Every figure has the interval that the text of its metric names."""
    entries = {entry.name: entry.formula for entry in ek.explained(run.spec.benchmark)}
    metrics = ek.list_benchmarks()[run.spec.benchmark].layout.metrics
    seen = 0
    for figure in run.summary.values():
        metric = declaration(metrics, figure.metric)
        assert metric is not None, figure.metric
        _, _, interval = entries[metric.name].partition("Interval: ")
        words = next((words for method, words in INTERVALS.items() if method in figure.method), None)
        if words and interval and not interval.startswith("from "):  # from the interval of another figure
            seen += 1
            assert words in interval, (figure.metric, figure.method)
    assert seen > 10 or not any("Interval: t" in formula for formula in entries.values())


def test_the_formulas_of_mirae_by_hand(tmp_path: Path) -> None:
    words = ("tide", "lamp", "pier", "salt", "keel", "mast", "rope")

    def answer(prompt: str) -> str:
        number = zlib.crc32(prompt.encode())
        server.asked += 1
        return " ".join(words[(number >> shift) % 7] for shift in range(0, 9, 3)) + (
            f" {words[server.asked % 7]}" if server.asked % 3 else ""
        )

    class Counting(Scripted):
        asked = 0

    with Counting(answer) as server:
        run = ek.run(
            "mirae", "openai:m", lang=["en"], limit=6, samples=3, out=tmp_path / "run", concurrency=1,
            embedder="openai:e", base_url=server.url,
        )  # fmt: skip
    by_hand: defaultdict[str, list[float]] = defaultdict(list)
    units: dict[str, Any] = {}
    questions: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for record in run.records():
        vectors = np.array([embedding(response.text) for response in record.answers])
        units[record.sample.id] = unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        pairs = [float(unit[i] @ unit[j]) for i in range(3) for j in range(i + 1, 3)]
        texts = [response.text for response in record.answers]
        by_hand["mean_similarity"].append(mean(pairs))
        by_hand["std_similarity"].append(pstdev(pairs))
        by_hand["max_similarity"].append(max(pairs))
        by_hand["min_similarity"].append(min(pairs))
        by_hand["identical_answers"].append(float(len(set(texts)) == 1))
        questions[record.sample.group][int(record.sample.tags["level"])] = record.sample.id
    within = dict(zip(units, by_hand["mean_similarity"], strict=True))
    tokens = {record.sample.id: record.score.values["prompt_tokens"] for record in run.records()}
    slopes = []
    for levels in questions.values():
        first = levels[min(levels)]
        for level in sorted(levels)[1:]:
            across = float((units[first] @ units[levels[level]].T).mean())
            by_hand["drift"].append((within[first] + within[levels[level]]) / 2 - across)
        lengths = [log2(tokens[name] or 1) for name in levels.values()]
        slopes.append(float(np.polyfit(lengths, [within[name] for name in levels.values()], 1)[0]))
    by_hand["trend_per_doubling"] = slopes
    assert len(questions) == 6
    for metric, values in by_hand.items():
        assert run.summary[metric].value == pytest.approx(mean(values), abs=2e-6), metric
    assert run.summary["std_similarity"].value != 0
    check_intervals(run)


def test_the_formulas_of_rgb_by_hand(tmp_path: Path) -> None:
    def rule(item: Item, prompt: str) -> str:
        number = item["id"]
        if number % 5 == 0:
            return "insufficient information"
        if "fakeanswer" in item:
            report = number % 3 if "Wrongford" in prompt else number % 4 == 0
            if report and number % 2:
                return reporting(item, prompt)
            return f"{'There are factual errors. ' if report else ''}{misled(item, prompt)}"
        return right(item, prompt) if number % 4 else "nothing of the kind"

    write(tmp_path / "en.json", map(plain, range(14)))
    write(tmp_path / "en_fact.json", map(false, range(14)))
    run = ask(tmp_path, tmp_path / "run", rule, correct_rate="0,1", noise_rates="0,0.8")
    records = list(run.records())
    ok: list[float] = []
    known: list[float] = []
    hits: list[float] = []
    alarms: list[float] = []
    corrected: list[float] = []
    by_setting: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    changes: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for record in records:
        label, fact = record.score.detail.label, record.score.detail.factlabel
        noise, tags = record.sample.inputs.noise, record.sample.tags
        if not record.sample.inputs.passages:  # without documents: what is known
            known.append(float(1 in label and 0 not in label))
            continue
        good = float((noise == 1 and label == (-1,)) or (1 in label and 0 not in label))
        ok.append(good)
        by_setting[str(tags["ability"]), str(tags["setting"])].append(good)
        if tags["ability"] == "noise":
            changes[record.sample.group][str(tags["noise"])] = good
        if tags["ability"] == "counterfactual":
            (hits if "wrong" in record.sample.inputs.kinds else alarms).append(float(fact))
            if "wrong" in record.sample.inputs.kinds and fact:
                corrected.append(float(0 not in label))
    H, F = mean(hits), mean(alarms)
    z = NormalDist().inv_cdf
    reference = {
        "noise": "noise 0.8",
        "rejection": "no answer in the documents",
        "counterfactual": "false documents",
    }
    expected = {
        "macro_published": mean(mean(by_setting[each]) for each in reference.items()),
        "published": mean(ok),
        "known_published": mean(known),
        "detected_published": H,
        "false_alarms_published": F,
        "youden_published": H - F,
        "dprime_published": z((sum(hits) + 0.5) / (len(hits) + 1))
        - z((sum(alarms) + 0.5) / (len(alarms) + 1)),
        "corrected_published": mean(corrected),
        "noise_change_published": mean(each["0.8"] - each["0"] for each in changes.values()),
    }
    for metric, value in expected.items():
        assert run.summary[metric].value == pytest.approx(value), metric
    check_intervals(run)
    assert 0 < F < H < 1
    assert len(corrected) > mean(corrected) * len(corrected) > 0


def test_the_formulas_of_miron_by_hand(tmp_path: Path) -> None:
    from rapidfuzz.distance import Levenshtein

    with Loopback() as server:
        run = ek.run("miron", "openai:m", base_url=server.url, lang=["en"], limit=24, out=tmp_path / "run")
    by_hand: defaultdict[str, list[float]] = defaultdict(list)
    room: list[tuple[float, float]] = []
    for record in run.records():
        inputs, values = record.sample.inputs, record.score.values
        logprobs = record.answers[0].logprobs or record.answers[1].logprobs
        text, target = record.score.detail.generated, inputs.target
        score = 100 * (1 - Levenshtein.distance(text, target) / max(len(text), len(target)))
        by_hand["lev_score"].append(score)
        assert logprobs is not None
        by_hand["target_confidence"].append(100 * exp(mean(logprobs.values)) if logprobs.values else 0.0)
        if not logprobs.merged:
            by_hand["bits_per_byte"].append(-sum(logprobs.values) / log(2) / len(target.encode()))
        room.append((score, values["copy_score"] or 0.0))
    for metric, each in by_hand.items():
        assert run.summary[metric].value == pytest.approx(mean(each)), metric
    missed, copied = (sum(100 - row[column] for row in room) for column in (0, 1))
    assert run.summary["rescaled_score"].value == pytest.approx(100 * (1 - missed / copied))
    check_intervals(run)


def test_the_formulas_of_multiview_by_hand(tmp_path: Path) -> None:
    triplets = [triplet(n, positive=f"good {n} anchor" if n % 3 else f"good {n}") for n in range(30)]
    data = store(tmp_path / "triplets.jsonl", triplets)

    def judge(prompt: str) -> str:
        number = zlib.crc32(prompt.encode()) % 5
        return json.dumps({"more_alike": ("first", "first", "second", "tie", "first")[number]})

    with Scripted(judge) as server:
        method = ["bm25", "judge:openai:m"]
        run = ek.run("multiview", out=tmp_path / "run", data=data, method=method, base_url=server.url)
    picks = {name: [record.score.detail.picks[name] for record in run.records()] for name in method}
    for name, of_method in picks.items():
        every = [pick for each in of_method for pick in each]
        accuracy, ties = every.count("positive") / len(every), every.count("tie") / len(every)
        assert run.summary[named("accuracy", name)].value == pytest.approx(accuracy)
        assert run.summary[named("ties", name)].value == pytest.approx(ties)
        assert run.summary[named("chance", name)].value == pytest.approx((1 - ties) / 2)
        wrong = every.count("negative") / len(every)
        assert run.summary[named("minus_chance", name)].value == pytest.approx((accuracy - wrong) / 2)
    twice = [each for each in picks[method[1]] if "tie" not in each]
    assert run.summary[named("flips", method[1])].value == pytest.approx(mean(a != b for a, b in twice))
    first, second = ([each.count("positive") / len(each) for each in picks[name]] for name in method)
    difference = mean(b - a for a, b in zip(first, second, strict=True))
    assert run.summary[named("minus_first", method[1])].value == pytest.approx(difference)
    assert 0 < len(twice) < 30
