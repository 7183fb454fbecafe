"""What is shown of multiview: metrics, terminal lines, pictures, tables and notes."""

from __future__ import annotations

from collections import defaultdict

from evenkeel.benchmarks.multiview.files import model_name
from evenkeel.benchmarks.multiview.names import models_and_options
from evenkeel.page.format import share
from evenkeel.page.layout import Bars, Column, Layout, Note, Points, Table
from evenkeel.page.metrics import Metric, units
from evenkeel.types import RunSpec, Summary

SIGNIFICANT = 0.05
"""Below this p-value two methods differ significantly."""


def blocks(summary: Summary) -> list[str]:
    """For each task its methods, the best first: `bm25 : 10.28% (26/253 correct)`."""
    tasks: defaultdict[str, list[tuple[float, str, int]]] = defaultdict(list)
    for figure in summary.values():
        if figure.metric == "accuracy" and "task" in figure.scope and figure.value is not None:
            tasks[figure.scope["task"]].append((figure.value, figure.scope["method"], figure.n))
    width = max([29, *(len(figure.scope.get("method", "")) for figure in summary.values())])
    return [
        "\n".join(
            [f"Task: {task}"]
            + [
                f"  {method:<{width}}: {accuracy:.2%} ({round(accuracy * n):,}/{n:,} correct)"
                for accuracy, method, n in sorted(rows, key=lambda row: -row[0])
            ]
        )
        for task, rows in tasks.items()
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
    Metric("accuracy_macro", "mean of the tasks' accuracies", "share", "higher", chance=0.5),
    Metric("chance", "what guessing gives, with the method's ties", "share", None),
    Metric("minus_chance", "accuracy minus what guessing gives", "share", "higher"),
    Metric("instruction_changes", "picks that change with the instruction", "share", None),
    Metric("instruction_gain", "accuracy minus that without the instruction", "share", "higher"),
    Metric("criterion_changes", "picks that change with the criterion, same documents", "share", None),
    Metric("criterion_both", "correct under both of two opposed criteria", "share", "higher", chance=0.25),
    Metric("minus_first", "accuracy minus that of the first method", "share", "higher"),
    Metric("minus", "accuracy minus that of another method", "share", "higher"),
)
UNITS = units(METRICS)

PROJECTIONS = (
    ("pca", "principal components", "first component of the embeddings", "second", ""),
    (
        "tsne", "t-SNE", "t-SNE", "",
        "t-SNE needs scikit-learn (pip install scikit-learn, then evenkeel rescore RUN) and a set of at "
        "least 5 documents that are not all alike.",
    ),
    (
        "umap", "UMAP", "UMAP", "",
        "UMAP needs umap-learn (pip install umap-learn, then evenkeel rescore RUN) and a set of at "
        "least 5 documents that are not all alike.",
    ),
)  # fmt: skip
"""How documents come into a plane: key, name, titles of the axes, and what is said where it is absent."""

LAYOUT = Layout(
    metrics=METRICS,
    question="Does a similarity method follow the stated criterion?",
    counted=("verdicts", "independent triplets"),
    blocks=blocks,
    pictures=(
        Bars(title="Methods by task", metric="accuracy", along="task", groups="method", y_title="accuracy"),
        *(
            Points(
                title=f"The same documents, coloured by each view: {name}",
                items="documents",
                position=position,
                colour="views",
                split="docset",
                x_title=x_title,
                y_title=y_title,
                absent=absent,
            )
            for position, name, x_title, y_title, absent in PROJECTIONS
        ),
    ),
    tables=(
        Table(title="Accuracy by task", rows="method", metric="accuracy", columns="task", total=False),
        Table(
            title="Accuracy, ties and flips",
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
            title="Over tasks, and against guessing",
            rows="method",
            metrics=(
                Column("accuracy_macro", "mean of the tasks"),
                Column("chance", "guessing"),
                Column("minus_chance", "minus guessing"),
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
        Table(
            title="How much the criterion matters",
            rows="method",
            metrics=(
                Column("instruction_changes", "picks that the instruction changes"),
                Column("instruction_gain", "accuracy gained by it"),
                Column("criterion_changes", "picks that the criterion changes"),
                Column("criterion_both", "both criteria right"),
            ),
            total=False,
        ),
        Table(
            title="Each method minus each other",
            rows="method",
            metric="minus",
            columns="other",
            pairs="minus",
            total=False,
        ),
    ),
    cautions=(
        "Triplets that share a document are not independent: intervals and tests allow for it; the number "
        "of independent triplets says to how many without a common document they amount.",
        "Easy triplets are those that BM25 orders correctly; the others, ties included, are hard.",
        "A tie or a verdict that cannot be read is not correct; both are counted beside the accuracy.",
        "A judge is asked in both orders and each counts; flips are how often it picked another document "
        "because the order was another.",
        "With logprobs, a judge's bias towards a letter is removed by summing over both orders: there is one "
        "verdict for a triplet, and flips are how often the two orders alone would have differed.",
        "Triplets whose negative was chosen to look alike are built to defeat BM25: its chance level there "
        "is not one half.",
        "A judge that made the triplets has seen them: another one is a fairer judge of methods.",
        "BM25 is Lucene's, with k1 = 1.5 and b = 0.75 and without stop words; it counts words over the "
        "documents of a task's triplets.",
    ),
    citation="multiview, of evenkeel: it follows the published idea of triplets of documents under a stated "
    "criterion, and is not the work of those who published it.",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """Which methods differ, and where BM25 is at a disadvantage by construction."""
    texts = []
    pairs = [figure for figure in summary.values() if figure.metric == "minus"]
    names = [
        f"{figure.scope['method']} and {figure.scope['other']}"
        for figure in pairs
        if figure.p is not None and figure.p < SIGNIFICANT
    ]
    if pairs:
        count = f"Of {len(pairs)} pairs of methods {len(names)} differ (p < {SIGNIFICANT}, corrected by Holm)"
        texts.append(f"{count}{': ' if names else ''}{'; '.join(names)}.")
    triplets = sum(figure.n for figure in summary.values() if figure.metric == "built_against_bm25")
    linked = [f for f in summary.values() if f.metric == "accuracy" and set(f.scope) == {"method"}]
    if fewest := min((f.clusters for f in linked if "linked" in f.method), default=0):
        texts.append(
            f"Triplets share documents: for intervals and tests these {triplets:,} amount to {fewest:,} "
            "independent ones."
        )
    below = [f for f in summary.values() if f.metric == "chance" and f.value is not None and f.value < 0.4995]
    if below:
        levels = ", ".join(f"{figure.scope['method']} {share(figure.value or 0)}" for figure in below)
        texts.append(f"Guessing gives 50%; with as many ties and unparsed verdicts: {levels}.")
    tasks = [f.scope["task"] for f in summary.values() if f.metric == "built_against_bm25" and f.value]
    if tasks and any(models == ["bm25"] for models, _ in _methods(spec).values()):
        texts.append(f"Built to defeat BM25, so that its chance level is not one half: {', '.join(tasks)}.")
    return [*builder_notes(spec), *map(Note, texts)]


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
                notes.append(Note(text, warning=True))
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
