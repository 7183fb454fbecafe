"""How multiview is shown: lines at the terminal, pictures, tables, and what to be careful about."""

from __future__ import annotations

from evenkeel import analysis as stats
from evenkeel.page.examples import first, shortened
from evenkeel.page.layout import Bars, Column, Example, Examples, Layout, Note, Points, Table
from evenkeel.page.metrics import Metric, units
from evenkeel.types import Record, Records, RunSpec, Summary

LEVEL = 0.05
"""Below this p-value two methods are said to differ."""


def blocks(summary: Summary) -> list[str]:
    """For each task its methods, the best first: `bm25 : 10.28% (26/253 correct)`."""
    found = [(*stats.scope_of(name), figure) for name, figure in summary.items()]
    wide = max([29, *(len(scope.get("method", "")) for _, scope, _ in found)])
    tasks: dict[str, list[tuple[float, str]]] = {}
    for metric, scope, figure in found:
        if metric == "accuracy" and "task" in scope and figure.value is not None:
            correct = round(figure.value * figure.n)
            line = f"  {scope['method']:<{wide}}: {figure.value:.2%} ({correct:,}/{figure.n:,} correct)"
            tasks.setdefault(scope["task"], []).append((-figure.value, line))
    return [
        "\n".join([f"Task: {task}", *(line for _, line in sorted(lines, key=lambda pair: pair[0]))])
        for task, lines in tasks.items()
    ]


METRICS = (
    Metric("accuracy", "Triplet accuracy", "share", "higher", chance=0.5),
    Metric("ties", "ties", "share", "lower"),
    Metric("unparsed", "verdicts that cannot be read", "share", "lower"),
    Metric("flips", "picks that change with the order", "share", "lower"),
    Metric("*_accuracy", "accuracy in one of the two orders", "share", "higher", chance=0.5),
    Metric("*_ties", "ties in one of the two orders", "share", "lower"),
    Metric("*_unparsed", "verdicts of one of the two orders that cannot be read", "share", "lower"),
    Metric("*ended_*", "requests that ended so", "share", None),
    Metric("built_against_bm25", "triplets built to defeat BM25", "share", None),
    Metric("minus_first", "accuracy minus the first method", "share", "higher"),
    Metric("minus", "accuracy minus another method", "share", "higher"),
)
UNITS = units(METRICS)

LAYOUT = Layout(
    metrics=METRICS,
    question="Does a similarity method see the view it was asked for?",
    counted=("verdicts", "triplets"),
    blocks=blocks,
    pictures=(
        Bars(
            title="Methods by task",
            metric="accuracy",
            along="task",
            groups="method",
            y_title="triplet accuracy",
        ),
        Points(
            title="The same documents, coloured by each view",
            x="x",
            y="y",
            colour="views",
            split="docset",
            x_title="first component of the embeddings",
            y_title="second",
        ),
    ),
    tables=(
        Table(title="Accuracy by task", rows="method", metric="accuracy", columns="task", total=False),
        Table(
            title="Beside the accuracy",
            rows="method",
            metrics=(
                Column("accuracy", "accuracy"),
                Column("minus_first", "minus the first"),
                Column("ties", "ties"),
                Column("unparsed", "unparsed"),
                Column("flips", "flips"),
            ),
            total=False,
        ),
        Table(
            title="Each method minus each other",
            rows="method",
            metrics=(Column("minus", "minus"),),
            columns="other",
            total=False,
        ),
    ),
    cautions=(
        "A tie or a verdict that cannot be read is not correct; both are counted beside the accuracy.",
        "A judge is asked in both orders and each counts; flips say how often it picked another document "
        "because the order was another.",
        "With weigh, a judge's leaning to a letter is taken out by summing over both orders: there is one "
        "verdict for a triplet, and flips say how often the orders alone would have differed.",
        "Triplets whose negative was chosen to look alike are built to defeat BM25: its chance level there "
        "is not one half.",
        "A judge that made the triplets has seen them: another one is a fairer judge of methods.",
    ),
    citation="multiview, of evenkeel: it follows the published idea of triplets of documents under a stated "
    "criterion, and is not the work of those who published it.",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    methods = spec.options["method"]
    found = _pairs(summary)
    against = [
        scope["task"]
        for name, figure in summary.items()
        for metric, scope in [stats.scope_of(name)]
        if metric == "built_against_bm25" and figure.value
    ]
    if against and "bm25" in methods:
        found.append(
            Note(f"Built to defeat BM25, so that its chance level is not one half: {', '.join(against)}.")
        )
    return found


def _pairs(summary: Summary) -> list[Note]:
    """Which methods differ, where there are pairs enough to correct for."""
    pairs = [
        (scope, figure)
        for name, figure in summary.items()
        for metric, scope in [stats.scope_of(name)]
        if metric == "minus"
    ]
    apart = [
        f"{scope['method']} and {scope['other']}"
        for scope, figure in pairs
        if figure.p is not None and figure.p < LEVEL
    ]
    told = f"Of {len(pairs)} pairs of methods {len(apart)} differ (p < {LEVEL}, corrected by Holm)"
    return [Note(f"{told}{': ' if apart else ''}{'; '.join(apart)}.")] if pairs else []


def examples(records: Records) -> list[Examples]:
    def ordered(*, right: bool) -> tuple[Example, ...]:
        return first(records(), lambda record: _right(record) == {right}, _shown)

    return [
        Examples(title="Ordered wrong by every method", items=ordered(right=False)),
        Examples(title="Where the methods differ", items=first(records(), _differ, _shown)),
        Examples(title="Ordered right by every method", items=ordered(right=True)),
    ]


def _right(record: Record) -> set[bool]:
    """Whether the methods picked the right document, each time that they were asked and answered."""
    picks = record.score.detail["picks"].values()
    return {pick == "positive" for picked in picks for pick in picked if pick is not None}


def _differ(record: Record) -> bool:
    picks = [tuple(picked) for picked in record.score.detail["picks"].values()]
    return len({"positive" in picked for picked in picks}) > 1


def _shown(record: Record) -> Example:
    inputs = record.sample.inputs
    picks = record.score.detail["picks"]
    told = "\n".join(
        f"{method}: {', '.join(str(pick) for pick in picked)}" for method, picked in picks.items()
    )
    return Example(
        label=record.sample.id,
        title=shortened(inputs["anchor"]),
        parts=(
            ("criterion", f"{inputs['criterion']}: {inputs['description']}"),
            ("anchor", inputs["anchor"]),
            ("alike under the criterion", inputs["positive"]),
            ("not alike", inputs["negative"]),
            ("what the methods picked", told),
        ),
    )
