"""How RGB is shown: metrics, pictures, tables, notes, and what to be careful about."""

from __future__ import annotations

from pathlib import PurePath

from evenkeel.benchmarks.rgb.check import accuracy
from evenkeel.benchmarks.rgb.predictions import JUDGED, PredictionFile
from evenkeel.benchmarks.rgb.selection import ABILITIES, NOISE_RATES, REFERENCE, ability_of, mixtures
from evenkeel.page.layout import Bars, Column, Curve, Layout, Note, Table
from evenkeel.page.metrics import Metric, scope_of
from evenkeel.types import RunSpec, Summary

METRICS = (
    Metric(
        "macro_published",
        "Mean accuracy over the abilities (published check)",
        "share",
        "higher",
        mean_over="ability",
    ),
    Metric(
        "macro_lenient",
        "Mean accuracy over the abilities (lenient check)",
        "share",
        "higher",
        mean_over="ability",
    ),
    Metric("published", "right by the published check, of all prompts", "share", "higher"),
    Metric("lenient", "right by the lenient check, of all prompts", "share", "higher"),
    Metric("judge", "declined by the judge, where the documents hold no answer", "share", "higher"),
    Metric("rejected_*", "declined where the documents hold no answer", "share", "higher"),
    Metric("detected_*", "errors detected, of prompts with a false document", "share", "higher"),
    Metric("false_alarms_*", "errors reported, of prompts without a false document", "share", "lower"),
    Metric("youden_*", "detected minus false alarms (Youden's J)", "share", "higher"),
    Metric("dprime_*", "detected against false alarms (d′)", "deviations", "higher"),
    Metric(
        "corrected_published", "detected errors corrected", "share", "higher", ratio_to="detected_published"
    ),
    Metric("corrected_lenient", "detected errors corrected", "share", "higher", ratio_to="detected_lenient"),
    Metric("corrected_judge", "detected errors corrected", "share", "higher", ratio_to="detected_judge"),
    Metric("noise_change_*", "accuracy with noise minus without, same questions", "share", "higher"),
    Metric(
        "position_change_*", "accuracy at a position minus at the first, same questions", "share", "higher"
    ),
    Metric("learned_*", "right with documents, of what is not known without", "share", "higher"),
    Metric("retained_*", "right with documents, of what is known without", "share", "higher"),
    Metric("sampling_variance_*", "variance between repeats of a prompt", "variance", "lower"),
    Metric("retrieval_variance_*", "variance between prompts of a question", "variance", "lower"),
    Metric("sampling_share_*", "share of repeats in the variance within questions", "share", None),
    Metric("states_fake", "answers that name the false answer", "share", "lower"),
    Metric("known_*", "known without documents", "share", "higher"),
    Metric("judge_agrees_*", "judge and check agree", "share", None),
    Metric("judge_kappa_*", "agreement of judge and check beyond chance", "agreement", None),
    Metric("judge_unparsed", "verdicts that could not be read", "share", "lower"),
    Metric("lacks_documents", "prompts that lack documents", "share", "lower"),
)
CHECKS = (Column("published", "published"), Column("lenient", "lenient"), Column("judge", "judge"))
CURVES = (
    ("Accuracy by the share of noise, published check", "published", "noise"),
    ("Accuracy by the share of noise, lenient check", "lenient", "noise"),
    ("Accuracy where the answer is scattered over documents", "published", "integration_noise"),
)
"""Title, metric, and the tag along which it is drawn."""


def _table(title: str, rows: str, *columns: Column) -> Table:
    return Table(title=title, rows=rows, metrics=columns, total=False)


def _by_check(name: str) -> tuple[Column, ...]:
    return tuple(Column(f"{name}_{check.metric}", check.title) for check in CHECKS[:2])


LAYOUT = Layout(
    metrics=METRICS,
    question="Does the answer survive bad retrieval?",
    facts=(
        Column("macro_published/ability=noise", "noise robustness: answers right"),
        Column("macro_published/ability=rejection", "negative rejection: declined, or right"),
        Column("macro_published/ability=integration", "information integration: answers right"),
        Column("macro_published/ability=counterfactual", "counterfactual: right from false documents"),
        Column("macro_lenient", "mean of the abilities by the lenient check"),
        Column("noise_change_published", "accuracy with the most noise minus with the least, same questions"),
        Column("detected_published", "errors detected"),
        Column("corrected_published", "of these, corrected"),
        Column("false_alarms_published", "errors reported though no document is false"),
        Column("youden_published", "detected minus false alarms (Youden's J)"),
        Column("dprime_published", "the same as d′"),
        Column("judge", "declined, by the judge"),
        Column("detected_judge", "errors detected, by the judge"),
        Column("corrected_judge", "of these, corrected"),
        Column("false_alarms_judge", "errors reported though no document is false, by the judge"),
        Column("states_fake", "answers that name the false answer"),
        Column("known_published", "known without documents"),
        Column("learned_published/ability=noise", "right with documents, of what is not known without"),
        Column("retained_published/ability=counterfactual", "right from false documents, of what is known"),
        Column("judge_agrees_published", "judge and published check agree"),
        Column("judge_agrees_lenient", "judge and lenient check agree"),
        Column("judge_kappa_published", "the same beyond chance, published (kappa)"),
        Column("judge_kappa_lenient", "the same beyond chance, lenient (kappa)"),
        Column("judge_unparsed", "verdicts that could not be read"),
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
            title="Accuracy by the position of the one true document",
            metric="published",
            along="position",
            groups="lang",
            x_title="position",
            y_title="answers right",
        ),
    ),
    tables=(
        _table("Every ability, setting and check", "setting", *CHECKS),
        Table(
            title="By language, published check",
            rows="setting",
            metric="published",
            columns="lang",
            several=True,
            total=False,
        ),
        _table("By the position of the one true document", "position", *CHECKS[:2]),
        _table("Change with noise, same questions", "noise", *_by_check("noise_change")),
        _table("Change with noise, integration", "integration_noise", *_by_check("noise_change")),
        _table("Change with the position, same questions", "position", *_by_check("position_change")),
        _table(
            "With documents, by what is known without (published check)",
            "setting",
            Column("learned_published", "not known"),
            Column("retained_published", "known"),
        ),
        _table(
            "Variance within questions (published check)",
            "ability",
            Column("sampling_variance_published", "between repeats"),
            Column("retrieval_variance_published", "between prompts"),
            Column("sampling_share_published", "share of repeats"),
        ),
        _table("Judge and check agree beyond chance (kappa)", "setting", *_by_check("judge_kappa")),
    ),
    cautions=(
        "The published check looks for the answer as a part of the text: 70 is found in 170, and an answer "
        "that is named only to be denied counts as given. The lenient check reads words, numbers and dates.",
        "Where no document has the answer, the published check also counts a right answer; the lenient one "
        "counts only a rejection.",
        "The published check takes a detected error that is followed by a rejection for corrected; the "
        "lenient one requires the right answer.",
        *accuracy.cautions(),
        "The published order has the one true document at the same position in every prompt: see "
        "--doc-order balanced and --doc-order all.",
        "Correction is a share of the detected errors only: few detections make it uncertain.",
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
    positions = [s["position"] for metric, s in scopes if metric == "published" and [*s] == ["position"]]
    if options.get("doc_order") == "published" and len(positions) == 1:
        listed.append(Note(f"Where one document is true, it is at position {positions[0]} in every prompt."))
    if options.get("doc_order") == "all" and not positions:
        text = "--doc-order all moved nothing: no noise robustness prompt has exactly one true document."
        listed.append(Note(f"{text} At 5 passages that is --noise-rates 0.8.", warning=True))
    asked = "" if recorded else f"Asked with {_named(options.get('prompts'))} prompts. "
    if judge := options.get("judge"):
        prompts = options.get("judge_prompts")
        asked += f"Judged by {judge} with {_named(prompts)} judge prompts"
        asked += ": its figures are Rej*, ED* and CR." if prompts == "published" else "."
    elif {"judge", "detected_judge", "false_alarms_judge"} & summary.keys():
        asked += "The verdicts are those that the file has: the judge's figures are Rej*, ED* and CR."
    if asked:
        listed.append(Note(asked.strip()))
    impossible = [setting.name for setting in mixtures(options) if not setting.possible]
    if impossible:
        reason = "noise and true documents would be more than all documents"
        listed.append(Note(f"Not asked, since {reason}: {'; '.join(impossible)}."))
    rates = [options.get(name) for name in ("ability", "noise_rates", "counterfactual_noise_rates")]
    if "detected_published" in summary and rates[::2] == ["all", "0"] and rates[1] != NOISE_RATES:
        listed.append(Note("False documents are asked at noise 0: see --counterfactual-noise-rates."))
    unparsed, short = summary.get("judge_unparsed"), summary.get("lacks_documents")
    if unparsed and unparsed.value:
        listed.append(Note(f"{unparsed.value:.1%} of the judge's verdicts could not be read.", warning=True))
    if short and short.value:
        listed.append(
            Note(
                f"{short.value * short.n:.0f} prompts have fewer documents than asked for, or none with the "
                "answer: see the examples of the report.",
                warning=True,
            )
        )
    return listed + (_recorded_notes(spec, summary) if recorded else [])


def _named(source: object) -> str:
    return {"own": "Evenkeel's", "published": "the published"}.get(str(source), f"{source}'s")


def _headline_notes(settings: dict[str, str]) -> list[Note]:
    """What the headline is the mean of, and which of its usual settings were not asked."""
    if len(settings) < 2:
        return []
    listed = "; ".join(f"{ABILITIES[a]} ({settings[a]})" for a in ABILITIES if a in settings)
    notes = [Note(f"The headline counts each ability once: {listed}.")]
    usual = {ability: setting.name for ability, setting in REFERENCE.items()}
    absent = [name for ability, name in usual.items() if settings.get(ability, name) != name]
    if absent:
        notes.append(Note(f"Its usual settings were not all asked: {'; '.join(absent)}."))
    return notes


def _recorded_notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """What was read from the name of a prediction file, and what its lines do not say."""
    stem = PurePath(spec.models["model"]["spec"].removeprefix("replay:")).stem
    file = PredictionFile.parse(stem)
    dataset = file.dataset if file else stem.removesuffix(JUDGED)
    ability = ability_of(dataset, noise=0)
    kind = "plain" if ability == "noise" else ability
    notes = [Note(f"By its name the file holds answers to the {kind} data set '{dataset}'.")]
    if kind == "counterfactual" and not {"lenient", "known_lenient"} & summary.keys():
        notes.append(
            Note("The file does not have the false answers, which the lenient check needs: it is left out.")
        )
    return notes
