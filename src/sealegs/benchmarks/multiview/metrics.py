"""Every metric of multiview, the published one first."""

from __future__ import annotations

from sealegs.page.metrics import Metric, units

METRICS = (
    Metric(
        "accuracy", "Triplet accuracy", "share", "higher", chance=0.5, main=True, needs_coverage=True,
        meaning="How often a method picks the document that is more like the anchor under the criterion; of "
        "a judge, which is asked in both orders, a triplet counts ½ where it is right in one of them.",
        caution="A tie is not correct, and on triplets that were built against BM25 one half is not its "
        "chance level.",
    ),
    Metric(
        "both_ways", "Accuracy both ways", "share", "higher", chance=0.25, main=True,
        meaning="How often a method is right under both of two criteria that give opposite answers for the "
        "same documents; of a judge, each of the two orders counts ½ (+logprobs: decided by the "
        "log-probabilities of its answers).",
        caution="A method that does not read the criterion has 0, and a tie is not right; guessing means a "
        "toss for each criterion.",
    ),
    Metric(
        "accuracy_macro", "mean of the tasks' accuracies", "share", "higher", chance=0.5, main=True,
        meaning="The mean of the tasks' accuracies, each task counted once.",
        caution="A small task counts as much as a large one, and it is unknown where a task has no answer.",
    ),
    Metric(
        "minus_chance", "accuracy minus what guessing gives", "share", "higher", main=True,
        meaning="How far a method's accuracy is above guessing: (share correct − share wrong) / 2.",
        caution="A method may be above chance by comparing words alone: see the hard triplets.",
    ),
    Metric(
        "minus_first", "accuracy compared with the first method", "share", "higher", main=True,
        meaning="Accuracy of a method minus that of the run's first method, on the same triplets.",
        caution="The interval is of this difference alone; the p-value is corrected for all methods.",
    ),
    Metric(
        "ties", "ties", "share", "lower", main=True,
        meaning="The share of triplets on which a method does not choose: the documents' scores differ by "
        "less than 1e-9, or a judge says tie; ½ where it does in one of two orders.",
        caution="Ties are never correct, so that a method that often ties has a low accuracy without being "
        "wrong: see minus_chance.",
    ),
    Metric(
        "flips", "picks that change with the order", "share", "lower", main=True,
        meaning="How often a judge picks the other document when the two are shown in the other order.",
        caution="Triplets without a document picked in both orders are left out; with logprobs, flips are "
        "what each order alone would have done.",
    ),
    Metric(
        "instruction_gain", "accuracy minus that without the instruction", "share", "higher", main=True,
        meaning="Accuracy with the instruction, or the rewriting, minus that without, on the same triplets.",
        caution="An embedder that was not trained on instructions may lose by them.",
    ),
    Metric(
        "cut_by_model", "documents longer than the model reads", "share", "lower", main=True,
        meaning="The share of documents of which the embedder does not read the end.",
        caution="The rest of a cut document is not compared, so that ties and wrong picks may come from the "
        "cut; servers do not report it.",
    ),
    Metric(
        "chance", "what guessing gives, with the method's ties", "share", None,
        meaning="What guessing would give a method that ties as often as this one: (1 − ties) / 2.",
        caution="On triplets that were built against BM25 that method does not guess.",
    ),
    Metric(
        "built_against_bm25", "triplets built to defeat BM25", "share", None,
        meaning="The share of a task's triplets whose negative was chosen because it reads like the anchor.",
        caution="It is a property of the data: BM25 is far below one half there by construction.",
    ),
)  # fmt: skip
UNITS = units(METRICS)
