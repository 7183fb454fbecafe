"""How RGB is shown: its pictures, its tables, and what to be careful about."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath

from evenkeel.benchmarks.rgb.abilities import ABILITIES, ability_of
from evenkeel.benchmarks.rgb.files import Setting
from evenkeel.page.examples import EACH, answer_parts, first, shortened
from evenkeel.page.layout import Bars, Column, Curve, Example, Examples, Layout, Note, Table
from evenkeel.page.metrics import Metric
from evenkeel.types import Record, Records, RunSpec, Summary

CHECKS = (Column("published", "published"), Column("lenient", "lenient"), Column("judge", "judge"))

METRICS = (
    Metric(
        "macro_published", "Mean accuracy over the abilities (published check)", "share", "higher",
        mean_over="ability",
    ),
    Metric(
        "macro_lenient", "Mean accuracy over the abilities (lenient check)", "share", "higher",
        mean_over="ability",
    ),
    Metric("published", "right by the published check, of all prompts", "share", "higher"),
    Metric("lenient", "right by the lenient check, of all prompts", "share", "higher"),
    Metric("judge", "right by the judge, of what it judges", "share", "higher"),
    Metric("rejected_*", "declined where the documents hold no answer", "share", "higher"),
    Metric("detected_*", "errors detected", "share", "higher"),
    Metric(
        "corrected_published", "detected errors corrected", "share", "higher", ratio_to="detected_published"
    ),
    Metric("corrected_lenient", "detected errors corrected", "share", "higher", ratio_to="detected_lenient"),
    Metric("states_fake", "answers that name the false answer", "share", "lower"),
    Metric("known_*", "known without documents", "share", "higher"),
    Metric("judge_agrees_*", "judge and check agree", "share", None),
    Metric("judge_kappa_*", "agreement of judge and check beyond chance", "agreement", None),
    Metric("judge_unparsed", "verdicts that could not be read", "share", "lower"),
    Metric("lacks_documents", "prompts that lack documents", "share", "lower"),
)  # fmt: skip

LAYOUT = Layout(
    metrics=METRICS,
    question="Does the answer survive bad retrieval?",
    facts=(
        Column("macro_published/ability=noise", "noise robustness: answers right"),
        Column("macro_published/ability=rejection", "negative rejection: declined, or right"),
        Column("macro_published/ability=integration", "information integration: answers right"),
        Column("macro_published/ability=counterfactual", "counterfactual: right from false documents"),
        Column("macro_lenient", "mean of the abilities by the lenient check"),
        Column("detected_published", "errors detected"),
        Column("corrected_published", "of these, corrected"),
        Column("states_fake", "answers that name the false answer"),
        Column("known_published", "known without documents"),
        Column("judge_agrees_published", "judge and published check agree"),
        Column("judge_agrees_lenient", "judge and lenient check agree"),
        Column("judge_kappa_published", "the same beyond chance, published (kappa)"),
        Column("judge_kappa_lenient", "the same beyond chance, lenient (kappa)"),
        Column("judge_unparsed", "verdicts that could not be read"),
    ),
    pictures=(
        Curve(
            title="Accuracy by the share of noise, published check",
            metric="published",
            along="noise",
            lines="lang",
            x_title="share of documents that do not hold the answer",
            y_title="answers right",
        ),
        Curve(
            title="Accuracy by the share of noise, lenient check",
            metric="lenient",
            along="noise",
            lines="lang",
            x_title="share of documents that do not hold the answer",
            y_title="answers right",
        ),
        Curve(
            title="Accuracy where the answer is scattered over documents",
            metric="published",
            along="integration_noise",
            lines="lang",
            x_title="share of documents that hold no part of the answer",
            y_title="answers right",
        ),
        Bars(
            title="Accuracy by the place of the one true document",
            metric="published",
            along="position",
            groups="lang",
            x_title="place",
            y_title="answers right",
        ),
    ),
    tables=(
        Table(title="Every ability, setting and check", rows="setting", metrics=CHECKS, total=False),
        Table(
            title="By language, published check",
            rows="setting",
            metric="published",
            columns="lang",
            several=True,
            total=False,
        ),
        Table(
            title="By the place of the one true document",
            rows="position",
            metrics=CHECKS[:2],
            total=False,
        ),
    ),
    cautions=(
        "The published check looks for the answer as a part of the text: 70 is found in 170, and an answer "
        "that is named only to be denied counts as given. The lenient check reads words, numbers and dates.",
        "With nothing to find, the published check also counts a right answer; the lenient one counts only "
        "a rejection.",
        "The published check takes a detected error that is followed by a rejection for corrected; the "
        "lenient one wants the right answer.",
        "The published order has the one true document at the same place in every prompt: see "
        "--doc-order balanced.",
        "Correction is a share of the detected errors only: few detections make it uncertain.",
    ),
    citation="Chen, Lin, Han and Sun, Benchmarking Large Language Models in Retrieval-Augmented Generation, "
    "AAAI 2024, https://github.com/chen700564/RGB",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    found = _parts(summary)
    if spec.options.get("doc_order") == "published" and len(_positions(summary)) == 1:
        found.append(
            Note(f"Where one document is true, it stands at place {_positions(summary)[0]} in every prompt.")
        )
    unparsed = summary.get("judge_unparsed")
    if unparsed is not None and unparsed.value:
        found.append(Note(f"{unparsed.value:.1%} of the judge's verdicts could not be read.", warning=True))
    short = summary.get("lacks_documents")
    if short is not None and short.value:
        found.append(
            Note(
                f"{short.value * short.n:.0f} prompts have fewer documents than asked for, or none with the "
                "answer: see the examples of the report.",
                warning=True,
            )
        )
    if spec.data.get("source") == "recorded":
        found += _assumed(spec)
    return found


def _parts(summary: Summary) -> list[Note]:
    """What the headline is the mean of, and where a setting had to stand in for the usual one."""
    from evenkeel.analysis import scope_of

    scopes = [scope for name in summary for metric, scope in [scope_of(name)] if metric == LAYOUT.headline]
    settings = {scope["ability"]: scope["setting"] for scope in scopes if "setting" in scope}
    if len(settings) < 2:
        return []
    listed = "; ".join(f"{ABILITIES[a]} ({settings[a]})" for a in ABILITIES if a in settings)
    notes = [Note(f"The headline counts each ability once: {listed}.")]
    usual = {
        "noise": "noise 0.8",
        "integration": "integration, noise 0.4",
        "counterfactual": "false documents",
    }
    other = [name for ability, name in usual.items() if settings.get(ability, name) != name]
    if other:
        notes.append(Note(f"Its usual settings were not all asked: {'; '.join(other)}."))
    return notes


def _assumed(spec: RunSpec) -> list[Note]:
    """What was read from the name of a file of predictions, and what cannot be told from its lines."""
    stem = PurePath(spec.models["model"]["spec"].removeprefix("replay:")).stem
    told = Setting.of(stem)
    dataset = told.dataset if told else stem
    ability = ability_of(dataset, noise=0)
    kind = "plain" if ability == "noise" else ability
    notes = [Note(f"By its name the file holds answers to the {kind} data set '{dataset}'.")]
    if kind == "counterfactual":
        notes.append(
            Note("The file does not tell the false answers, which the lenient check needs: it is left out.")
        )
    return notes


def _positions(summary: Summary) -> list[str]:
    return [
        name.rpartition("=")[2]
        for name in summary
        if name.startswith("published/position=") and "," not in name
    ]


def examples(records: Records) -> list[Examples]:
    return [
        Examples(
            title="Right without noise, wrong with the most",
            note="The same questions, answered from the same true documents among more that do not help.",
            items=_lost_to_noise(records),
        ),
        Examples(
            title="Right under the most noise",
            items=_held_against_noise(records),
        ),
        Examples(
            title="Answered though there was nothing to find",
            items=first(records(), lambda r: _is(r, "rejection") and r.score.values["lenient"] == 0, _shown),
        ),
        Examples(
            title="Taken in by false documents",
            items=first(records(), _taken_in, _shown),
        ),
        Examples(
            title="Where the two checks differ",
            items=first(records(), _differs, _shown),
        ),
        Examples(
            title="Prompts that lack documents",
            note="The question has fewer documents than were asked for, or none that holds the answer.",
            items=first(records(), lambda r: bool(r.sample.inputs["note"]), _shown),
        ),
    ]


def _is(record: Record, ability: str) -> bool:
    return record.sample.tags["ability"] == ability and bool(record.score.answered)


def _differs(record: Record) -> bool:
    values = record.score.values
    return "lenient" in values and values.get("published") != values["lenient"]


def _taken_in(record: Record) -> bool:
    """The false answer is given, and not only named to report it."""
    values = record.score.values
    return values.get("states_fake") == 1 and values["lenient"] == 0


def _lost_to_noise(records: Records) -> tuple[Example, ...]:
    """Questions that were right at the lowest rate and wrong at the highest, with the answers at both."""
    rates = _rates(records)
    if len(rates) < 2:
        return ()
    ends = (min(rates), max(rates))
    by_question: defaultdict[str, dict[float, Record]] = defaultdict(dict)
    for record in records():
        rate = float(record.sample.tags.get("noise", -1))
        if rate in ends and record.score.answered:
            by_question[record.sample.group][rate] = record
    lost = [
        (found[ends[0]], found[ends[1]])
        for found in by_question.values()
        if len(found) == 2
        and found[ends[0]].score.values["published"]
        and not found[ends[1]].score.values["published"]
    ]
    return tuple(
        Example(
            label=f"{len(lost)} in all",
            title=f"{quiet.sample.group} · {shortened(quiet.sample.inputs['query'])}",
            parts=(
                ("right answer", _answer(quiet)),
                (f"answer at noise {ends[0]:g}", quiet.answers[0].text),
                (f"answer at noise {ends[1]:g}", noisy.answers[0].text),
                (f"documents at noise {ends[1]:g}", _documents(noisy)),
            ),
        )
        for quiet, noisy in lost[:EACH]
    )


def _rates(records: Records) -> set[float]:
    return {float(r.sample.tags["noise"]) for r in records() if "noise" in r.sample.tags}


def _held_against_noise(records: Records) -> tuple[Example, ...]:
    most = max(_rates(records), default=0.0)
    return first(
        records(),
        lambda r: float(r.sample.tags.get("noise", -1)) == most and r.score.values.get("published") == 1,
        _shown,
    )


def _shown(record: Record) -> Example:
    inputs, values = record.sample.inputs, record.score.values
    verdicts = ", ".join(
        f"{check} {'yes' if values[check] else 'no'}" for check in ("published", "lenient") if check in values
    )
    parts = [("question", inputs["query"]), ("right answer", _answer(record))]
    if inputs["fake"]:
        parts.append(("false answer", _text(inputs["fake"])))
    if inputs["note"]:
        parts.append(("note", inputs["note"]))
    return Example(
        label=verdicts or record.sample.tags["setting"],  # type: ignore[arg-type]
        title=f"{record.sample.id} · {shortened(inputs['query'])}",
        parts=(*parts, *answer_parts(record.answers), ("documents", _documents(record))),
    )


def _answer(record: Record) -> str:
    return _text(record.sample.inputs["answer"])


def _text(answer: str | list[str | list[str]]) -> str:
    if isinstance(answer, str):
        return answer
    return " and ".join(part if isinstance(part, str) else " or ".join(part) for part in answer)


def _documents(record: Record) -> str:
    kinds = record.sample.inputs["kinds"] or [""] * len(record.sample.inputs["docs"])
    return "\n\n".join(
        f"{number}. {f'[{kind}] ' if kind else ''}{doc}"
        for number, (doc, kind) in enumerate(zip(record.sample.inputs["docs"], kinds, strict=True), 1)
    )
