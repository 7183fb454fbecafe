"""What is shown of a run of multiview: pictures, tables and notes."""

from __future__ import annotations

from msgspec.structs import replace

from sealegs.benchmarks.multiview.data import model_name
from sealegs.benchmarks.multiview.metrics import METRICS
from sealegs.benchmarks.multiview.names import models_and_options, what_it_does
from sealegs.page.format import number, tag_value
from sealegs.page.layout import Bars, Column, Layout, Note, Table
from sealegs.types import RunSpec, Summary

LAYOUT = Layout(
    metrics=METRICS,
    question="Does a similarity method follow the stated criterion?",
    name="Similarity by criterion (multiview)",
    words={"docset": "document set"},
    verdict="Right in {}",
    counted=("triplets", "triplets"),
    linked=True,
    correct=("accuracy",),
    pictures=(
        Bars(title="Methods by task", metric="accuracy", along="task", lines="method", y_title="accuracy"),
        Bars(
            title="Right under both criteria, by document set",
            metric="both_ways",
            along="docset",
            lines="method",
            y_title="accuracy both ways",
        ),
    ),
    tables=(
        Table(title="Accuracy by task", rows="method", metric="accuracy", columns="task", total=False),
        Table(
            title="Accuracy both ways, by document set",
            rows="method",
            metric="both_ways",
            columns="docset",
            total=False,
        ),
        Table(
            title="Accuracy, ties, and picks that change with the order",
            rows="method",
            metrics=(
                Column("both_ways", "both ways"),
                Column("accuracy", "accuracy"),
                Column("minus_first", "compared with the first method"),
                Column("ties", "ties"),
                Column("flips", "changed by the order"),
                Column("cut_by_model", "documents cut"),
            ),
            total=False,
        ),
        Table(
            title="Over tasks, and against guessing",
            rows="method",
            metrics=(
                Column("accuracy_macro", "mean of the tasks"),
                Column("chance", "guessing"),
                Column("minus_chance", "minus guessing"),
                Column("instruction_gain", "gained by the instruction"),
            ),
            total=False,
        ),
        Table(
            title="Triplets that are easy and hard for BM25",
            rows="method",
            metric="accuracy",
            columns="difficulty",
            several=True,
            total=False,
        ),
    ),
    cautions=(
        "Triplets that share a document are not independent: intervals and tests allow for it. The number "
        "of independent triplets is how many without shared documents would say as much.",
        "Easy triplets are those that BM25 orders correctly; the others, ties included, are hard.",
        "A triplet with a failed or unreadable verdict is left out, and lowers the coverage.",
        "A judge is asked in both orders: a triplet counts one half where it is right in one of them.",
        "Both ways: the same documents are asked about under two criteria with opposite answers. A method "
        "that does not read the criterion is right under one of them at most.",
        "With logprobs, a judge's bias towards a letter is removed by summing over both orders.",
        "A judge that built the triplets has seen them: compare methods with another one.",
        "BM25 is Lucene's, with k1 = 1.5 and b = 0.75 and without stop words; it counts words over the "
        "documents of a task's triplets.",
    ),
    citation="the idea of triplets under a stated criterion: https://github.com/sarahlc888/multiview; "
    "these triplets, methods and prompts are Sealegs's own.",
)

BOTH_WAYS = replace(
    LAYOUT,
    metrics=tuple(sorted(METRICS, key=lambda metric: metric.name != "both_ways")),
    verdict="Right under both criteria in {}",
    counted=("pairs", "pairs"),
)
"""The page of a run with documents that are asked about both ways."""


def layout_for(spec: RunSpec, summary: Summary) -> Layout:
    """Accuracy both ways leads wherever documents are asked about both ways."""
    return BOTH_WAYS if "both_ways" in summary else LAYOUT


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """What the methods do, how many triplets are independent, and where BM25 is at a disadvantage."""
    methods = zip(spec.options.get("method", ()), spec.subjects, strict=False)
    explained = "; ".join(f"{name}: {what_it_does(text)}" for text, name in methods)
    texts = [f"The methods. {explained}."]
    triplets = sum(figure.n for figure in summary.values() if figure.metric == "built_against_bm25")
    linked = [f for f in summary.values() if f.metric == "accuracy" and set(f.scope) == {"method"}]
    if fewest := min((f.clusters for f in linked if f.linked), default=0):
        texts.append(
            f"Triplets share documents: for intervals and tests these {triplets:,} amount to {fewest:,} "
            "independent ones."
        )
    below = [f for f in summary.values() if f.metric == "chance" and f.value is not None and f.value < 0.495]
    if below:
        levels = ", ".join(
            f"{figure.scope['method']} {number(figure.value or 0.0, 'share')}" for figure in below
        )
        texts.append(f"Guessing gives 50%; with the method's ties: {levels}.")
    tasks = [f.scope["task"] for f in summary.values() if f.metric == "built_against_bm25" and f.value]
    if tasks and any(models == ["bm25"] for models, _ in _methods(spec).values()):
        listed = ", ".join(map(tag_value, tasks))
        texts.append(
            "Triplets in which BM25 fails were chosen where there were any, so that BM25 cannot be compared "
            f"there: {listed}."
        )
    return [*builder_notes(spec), *_cut_notes(summary), *map(Note, texts)]


def _cut_notes(summary: Summary) -> list[Note]:
    """Warnings: which methods compare documents that their models did not read to the end."""
    return [
        Note(
            f"{figure.scope['method']}: {number(figure.value, 'share')} of the documents are longer than the "
            "model reads; the rest of them is not compared.",
            warning=True,
        )
        for figure in summary.values()
        if figure.metric == "cut_by_model" and set(figure.scope) == {"method"} and figure.value
    ]


def builder_notes(spec: RunSpec) -> list[Note]:
    """Warnings: which models took part in making the triplets that they order here, and copies left out."""
    notes = []
    for field, did in (("built_by", "built"), ("confirmed_by", "confirmed")):
        builders = spec.data.get(field)
        for builder, count in builders.items() if isinstance(builders, dict) else ():
            name = model_name(builder)
            methods = [
                method for method, (models, _) in _methods(spec).items() if name in map(model_name, models)
            ]
            if methods:
                text = (
                    f"{', '.join(methods)}: the same model, {builder}, {did} {count} of these triplets and "
                    "chose those that it orders correctly. Its accuracy here is too high; compare it on "
                    "triplets that another model or a person built."
                )
                notes.append(Note(text, warning=True, involved=tuple(methods)))
    readers = [method for method, (_, options) in _methods(spec).items() if "annotations" in options]
    if readers and (builders := spec.data.get("built_by")):
        text = f"{', '.join(readers)}: reads summaries that the builder of the triplets wrote"
        notes.append(Note(f"{text} ({', '.join(builders)}), which chose the triplets by them.", warning=True))
    if copies := spec.data.get("copies"):
        notes.append(Note(f"{copies} copies of triplets were left out: each triplet counts once."))
    return notes


def _methods(spec: RunSpec) -> dict[str, tuple[list[str], list[str]]]:
    """By its name, the models of each method and its options."""
    texts = spec.options.get("method", ())
    return {name: models_and_options(text) for text, name in zip(texts, spec.subjects, strict=False)}
