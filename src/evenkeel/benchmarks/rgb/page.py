"""How RGB is shown: metrics, pictures, tables, notes, and what to be careful about."""

from __future__ import annotations

from evenkeel.benchmarks.rgb.selection import ABILITIES, REFERENCE
from evenkeel.page.layout import Bars, Column, Curve, Layout, Note, Table
from evenkeel.page.metrics import Metric, scope_of
from evenkeel.types import RunSpec, Summary

METRICS = (
    Metric(
        "macro_published",
        "Accuracy (published check)",
        "share",
        "higher",
        "The share of answers that contain the expected answer word for word, which is the published check; "
        "averaged over the abilities, each at its hardest published setting.",
        "The check looks for the answer as a part of the text: an answer that is named only to be denied "
        "counts as given.",
        main=True,
        mean_over="ability",
        parts=tuple(ABILITIES),
    ),
    Metric(
        "macro_lenient",
        "Accuracy (lenient check)",
        "share",
        "higher",
        "The same, where the expected answer also counts in another spelling or as another form of a number "
        "or a date (the lenient check).",
        "Where no document has the answer only a rejection is right; the check makes errors of its own.",
        mean_over="ability",
    ),
    Metric(
        "published",
        "right by the published check, of all prompts",
        "share",
        "higher",
        "Answers with every part of the right answer and without the rejection phrase; at noise 1 a "
        "rejection is right too (`all_rate`).",
        "Over all prompts together it depends on which rates were asked: compare settings.",
    ),
    Metric(
        "lenient",
        "right by the lenient check, of all prompts",
        "share",
        "higher",
        "Answers that give every part of the right answer, in any spelling; at noise 1, rejections.",
        "Over all prompts together it depends on which rates were asked: compare settings.",
    ),
    Metric(
        "rejected_*",
        "declined where the documents hold no answer",
        "share",
        "higher",
        "Answers that decline, of the prompts whose documents do not hold the answer (of a judge, Rej*).",
        "The published check sees only the exact phrase that the prompt asks for.",
    ),
    Metric(
        "detected_*",
        "errors detected, of prompts with a false document",
        "share",
        "higher",
        "Answers that report an error, of the prompts with at least one false document (ED; of a judge, "
        "ED*).",
        "A model that always reports errors detects all of them: see false_alarms_*.",
    ),
    Metric(
        "false_alarms_*",
        "errors reported, of prompts without a false document",
        "share",
        "lower",
        "Answers that report an error although no document is false.",
        "It needs prompts without a false document: --correct-rate 1, say.",
    ),
    *(
        Metric(
            f"corrected_{check}",
            "detected errors corrected",
            "share",
            "higher",
            f"Of the errors detected by the {by}, the share whose answer is right after all (CR).",
            caution,
            ratio_to=f"detected_{check}",
        )
        for check, by, caution in (
            ("published", "published check", "A rejection after a report counts as a correction here."),
            ("lenient", "lenient check", "Few detections make it uncertain."),
            ("judge", "judge", "Whether the answer is right is decided by the published label."),
        )
    ),
    Metric(
        "noise_change_*",
        "accuracy with noise minus without, same questions",
        "share",
        "higher",
        "Accuracy at a rate of noise minus that at the lowest rate, each question compared with itself; "
        "without a scope, that of the highest rate.",
        "Noise 1 is left out, because a rejection is right there.",
    ),
    Metric(
        "states_fake",
        "answers that name the false answer",
        "share",
        "lower",
        "Answers from false documents that name the false answer.",
        "An answer that quotes the false statement in order to correct it counts too.",
    ),
    Metric(
        "known_*",
        "known without documents",
        "share",
        "higher",
        "Right answers without any document: what the model knows by itself.",
        "A lucky guess counts as knowledge, and the data may be in what the model was trained on.",
    ),
    Metric(
        "judge_unparsed",
        "verdicts that could not be read",
        "share",
        "lower",
        "The judge's verdicts that could not be read, of those that arrived.",
        "They are left out of the judge's figures, which then rest on the answers that are easy to judge.",
    ),
    Metric(
        "lacks_documents",
        "prompts that lack documents",
        "share",
        "lower",
        "Prompts with fewer documents than asked for, or none with the answer where one should have it.",
        "It is a property of the data and the rates, not of the model.",
    ),
)
ABILITY_WORDS = {
    "noise": "noise robustness: right among irrelevant documents",
    "rejection": "negative rejection: declined where no document has the answer",
    "integration": "information integration: right from several documents",
    "counterfactual": "counterfactual robustness: right despite false documents",
}
CHECK_ACCURACY = (
    "The lenient check makes errors of its own: on replies that language models wrote and labelled, none of "
    "them from a real run, its precision and recall are between 0.85 and 1 (docs/rgb.md)."
)
CURVES = (
    ("Noise: accuracy by the share of noise, published check", "published", "noise"),
    ("Noise: accuracy by the share of noise, lenient check", "lenient", "noise"),
    ("Accuracy where the answer is scattered over documents", "published", "integration_noise"),
)
"""Title, metric, and the tag along which it is drawn."""


def _table(title: str, rows: str, *columns: Column) -> Table:
    return Table(title=title, rows=rows, metrics=columns, total=False)


def _by_check(name: str, *more: str) -> tuple[Column, ...]:
    return tuple(Column(f"{name}{check}", check) for check in ("published", "lenient", *more))


def _errors(check: str, by: str) -> Table:
    return _table(
        f"Errors in the documents, {by}",
        "setting",
        Column(f"detected_{check}", "detected"),
        Column(f"corrected_{check}", "of these, corrected"),
        Column(f"false_alarms_{check}", "false alarms"),
    )


LAYOUT = Layout(
    metrics=METRICS,
    question="Does the answer survive bad retrieval?",
    name="Retrieval robustness (RGB)",
    verdict="Right in {} at the hardest settings",
    correct=("published", "known_published"),
    # By ability, which no metric of its own declares.
    facts=(
        *(Column(f"macro_published/ability={ability}", words) for ability, words in ABILITY_WORDS.items()),
        Column("macro_lenient", "accuracy by the lenient check"),
        Column("noise_change_published", "accuracy with the most noise minus with the least, same questions"),
        Column("detected_published", "errors detected"),
        Column("corrected_published", "of these, corrected"),
        Column("false_alarms_published", "errors reported though no document is false"),
        Column("states_fake", "answers that name the false answer"),
    ),
    pictures=(
        *(
            Curve(
                title=title,
                metric=metric,
                along=tag,
                lines="lang",
                x_title="share of documents that hold no part of the answer",
                y_title="answers right",
            )
            for title, metric, tag in CURVES
        ),
        Bars(
            title="Accuracy by the position of the document with the answer",
            metric="published",
            along="position",
            lines="lang",
            x_title="position",
            y_title="answers right",
        ),
    ),
    tables=(
        _table("Every ability and setting", "setting", *_by_check("")),
        _table("Declined where the documents hold no answer", "setting", *_by_check("rejected_", "judge")),
        _errors("published", "published check"),
        _errors("lenient", "lenient check"),
        _errors("judge", "judge"),
        _table("Known without documents", "setting", *_by_check("known_")),
        Table(
            title="By language, published check",
            rows="setting",
            metric="published",
            columns="lang",
            several=True,
            total=False,
        ),
    ),
    cautions=(
        "Where no document has the answer, the published check also counts a right answer; the lenient one "
        "counts only a rejection.",
        CHECK_ACCURACY,
        "The published order has the document with the answer at the same position in every prompt; "
        "--doc-order balanced varies it.",
    ),
    citation="Chen, Lin, Han and Sun, Benchmarking Large Language Models in Retrieval-Augmented Generation, "
    "AAAI 2024, https://github.com/chen700564/RGB",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    scopes = [scope_of(name) for name in summary]
    options, recorded = spec.options, spec.data.get("source") == "recorded"
    listed = _headline_notes(
        {s["ability"]: s["setting"] for metric, s in scopes if metric == LAYOUT.headline and "setting" in s}
    )
    asked = "" if recorded else f"Asked with {_named(options.get('prompts'))} prompts. "
    if judge := options.get("judge"):
        is_published = options.get("judge_prompts") == "published"
        asked += f"Judged by {judge}"
        asked += " with the published judge prompts: Rej*, ED* and CR." if is_published else "."
    elif {"rejected_judge", "detected_judge", "false_alarms_judge"} & summary.keys():
        asked += "The verdicts are those that the file has: the judge's figures are Rej*, ED* and CR."
    if asked:
        listed.append(Note(asked.strip()))
    unparsed, short = summary.get("judge_unparsed"), summary.get("lacks_documents")
    if unparsed and unparsed.value:
        listed.append(Note(f"{unparsed.value:.1%} of the judge's verdicts could not be read.", warning=True))
    if short and short.value:
        listed.append(
            Note(
                f"{short.value * short.n:.0f} prompts have fewer documents than asked for, or none with the "
                "answer: see their samples.",
                warning=True,
            )
        )
    if recorded and any(scope.get("ability") == "counterfactual" for _, scope in scopes):
        listed.append(
            Note(
                "The files do not have the false answers, which the lenient check of counterfactual answers "
                "needs: it is left out."
            )
        )
    return listed


def _named(source: object) -> str:
    return {"own": "Evenkeel's", "published": "the published"}.get(str(source), f"{source}'s")


def _headline_notes(settings: dict[str, str]) -> list[Note]:
    """What the headline is the mean of, and which of its usual settings were not asked."""
    if not settings:
        return []
    listed = "; ".join(f"{ABILITIES[a]} ({settings[a]})" for a in ABILITIES if a in settings)
    several = len(settings) > 1
    mean = f"the mean of {len(settings)} abilities, each counted once" if several else "that of one ability"
    notes = [Note(f"The headline is {mean}: {listed}.")]
    usual = {ability: setting.name for ability, setting in REFERENCE.items()}
    absent = [name for ability, name in usual.items() if settings.get(ability, name) != name]
    if several and absent:
        notes.append(Note(f"Usual settings that were not asked: {'; '.join(absent)}."))
    return notes
