"""From an answer to its scores under the three checks: published, lenient and, where asked for, a judge's."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from msgspec import Struct

from evenkeel.benchmarks.rgb import checks, prompts
from evenkeel.benchmarks.rgb.files import parts
from evenkeel.run import judge
from evenkeel.run.answers import Rule
from evenkeel.types import Answered, Request, Response, Sample, Score

ANSWERS = Rule(truncated=True)
"""An answer that was cut off is checked as far as it goes, as the published script does."""


class Rejection(Struct):
    """A judge's verdict on an answer to a question with nothing to find."""

    declines: bool


class Detection(Struct):
    """A judge's verdict on an answer from false documents."""

    reports_an_error: bool


class Judged(Struct, frozen=True):
    """What a judge said of one answer; None where its verdict could not be read."""

    decision: bool | None
    status: str


def judge_all(
    answered: Sequence[Answered],
) -> Generator[Sequence[Request], Sequence[Response], dict[str, Judged]]:
    """Verdicts on rejection and on error detection, by sample."""
    judged: dict[str, Judged] = {}
    for kind, template, wanted in _judging():
        items = [a for a in answered if wanted(a.sample) and ANSWERS.counts(a.responses[0])]
        questions = [
            prompts.for_judge(template, item.sample.inputs["query"], item.responses[0].text) for item in items
        ]
        verdicts: list[judge.Verdict[Any]] = yield from judge.ask(kind, questions)
        for item, verdict in zip(items, verdicts, strict=True):
            value = verdict.value
            decision = None
            if isinstance(value, Rejection):
                decision = value.declines
            elif isinstance(value, Detection):
                decision = value.reports_an_error
            judged[item.sample.id] = Judged(decision, verdict.status)
    return judged


def to_judge(sample: Sample) -> list[str]:
    """What a judge of its answer would be told, without the answer; nothing where none is wanted."""
    return [
        prompts.for_judge(template, sample.inputs["query"], "")[-1].content + judge.schema_of(kind)
        for kind, template, wanted in _judging()
        if wanted(sample)
    ]


def _judging() -> tuple[tuple[type[Rejection | Detection], str, Callable[[Sample], bool]], ...]:
    """The kinds of verdict: what is asked for, in which words, and of which samples."""
    return (Rejection, prompts.REJECTION, is_rejection), (Detection, prompts.DETECTION, is_detection)


def is_rejection(sample: Sample) -> bool:
    return sample.tags["ability"] == "rejection"


def is_detection(sample: Sample) -> bool:
    """Whether the documents are false; where none were asked for there is nothing to detect."""
    return sample.tags["ability"] == "counterfactual" and sample.inputs["passages"] > 0


def has_lenient(sample: Sample) -> bool:
    """Whether the lenient check can decide: of a counterfactual set only where the false answer is known,
    which the published files of predictions do not tell."""
    return sample.tags["ability"] != "counterfactual" or bool(sample.inputs["fake"])


def measure(item: Answered, judged: Judged | None) -> Score:
    sample, (response,) = item.sample, item.responses
    inputs, lang = sample.inputs, str(sample.tags["lang"])
    answered = ANSWERS.counts(response)
    values: dict[str, float | None] = dict.fromkeys(_metrics(sample))
    values["lacks_documents"] = float(bool(inputs["note"]))
    detail: dict[str, Any] = {}
    if answered:
        answer, fake = parts(inputs["answer"]), parts(inputs["fake"]) if inputs["fake"] else ()
        published = checks.published(response.text, answer, lang)
        lenient = checks.lenient(
            response.text, answer, fake=fake, noise=inputs["noise"], query=inputs["query"]
        )
        detail = {"label": published.label, "factlabel": published.factlabel}
        if has_lenient(sample):
            detail["how"] = lenient.how
        known = "known_" if "known_published" in values else ""
        decided = {
            f"{known}published": published.right(inputs["noise"]),
            f"{known}lenient": lenient.right,
            "rejected_published": published.rejected,
            "rejected_lenient": lenient.rejected,
            "detected_published": bool(published.factlabel),
            "detected_lenient": lenient.detected,
            "corrected_published": published.corrected,
            "corrected_lenient": lenient.corrected,
            "states_fake": lenient.states_fake,
        }
        values |= {name: float(decision) for name, decision in decided.items() if name in values}
        # Correction is a share of the detected errors: a sample without one is outside of it, not wrong.
        values |= {
            f"corrected_{check}": None
            for check in ("published", "lenient")
            if f"corrected_{check}" in values and not values[f"detected_{check}"]
        }
        if judged is not None:
            detail["judge"] = judged.status
            values |= _of_judge(judged, values)
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags=sample.tags,
        values=values,
        statuses={ANSWERS.status(response): 1},
        answered=int(answered),
        failures=tuple(ANSWERS.failure(response)),
        detail=detail,
    )


def _metrics(sample: Sample) -> list[str]:
    """All that a sample has a value of, once it is answered."""
    checked = ["published", "lenient"] if has_lenient(sample) else ["published"]
    if is_detection(sample):
        names = [f"{kind}{check}" for kind in ("", "detected_", "corrected_") for check in checked]
        return [*names, "states_fake"] if has_lenient(sample) else names
    if sample.tags["ability"] == "counterfactual":
        return [f"known_{check}" for check in checked]
    if is_rejection(sample):
        return [*checked, *(f"rejected_{check}" for check in checked)]
    return checked


def _of_judge(judged: Judged, values: dict[str, float | None]) -> dict[str, float | None]:
    """The judge's decision, and whether each check decided the same question the same way."""
    kind = "detected" if "detected_published" in values else "rejected"
    decision = judged.decision
    agrees = {
        f"judge_agrees_{check}": None
        if decision is None
        else float(values[f"{kind}_{check}"] == float(decision))
        for check in ("published", "lenient")
        if f"{kind}_{check}" in values
    }
    return {
        "detected_judge" if kind == "detected" else "judge": None if decision is None else float(decision),
        # A request that failed brought no verdict, neither one to be read nor one that could not be.
        "judge_unparsed": None if judged.status in ("error", "refused") else float(decision is None),
        **agrees,
    }
