"""How RGB is shown: pictures, tables, notes, and what to be careful about."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from sealegs.benchmarks.rgb.metrics import METRICS
from sealegs.benchmarks.rgb.selection import ABILITIES, REFERENCE, Ability
from sealegs.page.format import nouns, number
from sealegs.page.layout import Bars, Column, Curve, Layout, Note, Table
from sealegs.page.metrics import scope_of
from sealegs.types import RunSpec, Summary

ABILITY_WORDS: dict[Ability, str] = {
    "noise": "noise robustness: right among irrelevant documents",
    "rejection": "negative rejection: declined where no document has the answer",
    "integration": "information integration: right from several documents",
    "counterfactual": "counterfactual robustness: right despite false documents",
}
PUBLISHED_REJECTION = "negative rejection: declined, or right from memory, where no document has the answer"
"""What `all_rate` is at noise 1: the published check counts both."""
CHECK_WORDS = {
    "published": (
        "The published check, which looks for the exact words, gives {}.",
        "The published check, which also counts an answer from memory or one that is only named, gives {}.",
    ),
    "lenient": (
        "The lenient check, which counts neither an answer from memory nor one that is only named, gives {}.",
        "The lenient check, which also accepts other wordings, gives {}.",
    ),
}
"""The sentence on the check that does not lead: where it gives less, and where it gives more."""
LINKED = "linked questions"
"""What the headline's interval is over where integration questions join plain ones."""
MOST_IDS = 5
"""Questions that a note names."""
MANY_DECLINED = 0.9
"""The share declined from which a model is said to decline."""
OUTCOMES = ("right", "wrong", "declined", "cut_off")
REPEATED = ("right_every_time", "right_sometimes", "right_never")
CHECK_ACCURACY = (
    "The lenient check makes errors of its own: on hard replies that language models wrote and labelled, its "
    "precision and recall are between 0.8 and 1, on plain answers above 0.99 (docs/rgb.md)."
)


CHECKED = {
    "lenient": "in any spelling (lenient check)",
    "published": "letter for letter (published check)",
    "judge": "by the judge",
}
"""What each check looks for, with its name."""


def _table(title: str, rows: str, *columns: Column) -> Table:
    return Table(title=title, rows=rows, metrics=columns, total=False)


def _errors(check: str) -> Table:
    return _table(
        f"Errors in the documents, reported {CHECKED[check]}",
        "setting",
        Column(f"detected_{check}", "detected"),
        Column(f"corrected_{check}", "of these, corrected"),
        Column(f"false_alarms_{check}", "false alarms"),
    )


def _facts(lead: str, other: str) -> tuple[Column, ...]:
    """The figures beside the headline; by ability, which no metric of its own declares."""
    words = ABILITY_WORDS | ({"rejection": PUBLISHED_REJECTION} if lead == "published" else {})
    return (
        *(Column(f"macro_{lead}/ability={ability}", text) for ability, text in words.items()),
        Column(f"macro_{other}", f"accuracy, answers {CHECKED[other]}"),
        *(
            [Column("rejected_published", "declined where no document has the answer, by the exact phrase")]
            if lead == "published"
            else []
        ),
        Column("rejected_judge", "declined where no document has the answer, by the judge"),
        *_error_facts("judge", "by the judge"),
        Column("right_every_time", "right every time, of prompts asked several times"),
        Column("right_minus_wrong", "right minus wrong, in points, where the documents hold the answer"),
        Column("outcome_declined", "declined though the documents hold the answer"),
        Column("no_answer_from_memory", "right from memory where no document has the answer"),
        Column("no_answer_invented", "invented where no document has the answer"),
        Column("no_answer_cut_off", "cut off where no document has the answer"),
        Column(f"noise_change_{lead}", "accuracy with the most noise minus with the least, same questions"),
        Column("states_fake", "false answer named, where a document is false"),
        *_error_facts(lead, f"by the {lead} check"),
    )


def _error_facts(check: str, by: str) -> tuple[Column, ...]:
    return (
        Column(f"detected_{check}", f"errors detected, {by}"),
        Column(f"corrected_{check}", f"of the errors detected {by}, corrected"),
        Column(f"false_alarms_{check}", f"errors reported though no document is false, {by}"),
    )


def _pictures(lead: str, other: str) -> tuple[Curve, ...]:
    """The abilities first: they are what the headline is the mean of."""
    by_lead, by_other = CHECKED[lead], CHECKED[other]
    curves = (
        (f"Noise: accuracy by the share of noise, {by_lead}", lead, "noise"),
        (f"Noise: accuracy by the share of noise, {by_other}", other, "noise"),
        (f"Accuracy where the answer is scattered over documents, {by_lead}", lead, "integration_noise"),
    )
    return (
        Bars(
            title=f"Accuracy by ability, {by_lead}",
            metric=f"macro_{lead}",
            along="ability",
            y_title="answers right",
        ),
        *(
            Curve(
                title=title,
                metric=metric,
                along=tag,
                lines="lang",
                x_title="share of documents that hold no part of the answer "
                f'(20% is the setting "{"integration, " if tag == "integration_noise" else ""}noise 0.2")',
                x_unit="share",
                y_title="answers right",
            )
            for title, metric, tag in curves
        ),
        Curve(
            title="pass^k: how often k answers to a prompt are all right",
            metric="pass_hat_k",
            along="k",
            x_title="k",
            y_title="all k right",
        ),
        Bars(
            title=f"Accuracy by the position of the document with the answer, {by_lead}",
            metric=lead,
            along="position",
            lines="lang",
            y_title="answers right",
        ),
    )


def _tables(lead: str, other: str) -> tuple[Table, ...]:
    def by_check(name: str, *more: str) -> tuple[Column, ...]:
        return tuple(Column(f"{name}{check}", CHECKED[check]) for check in (lead, other, *more))

    return (
        _table(
            "Every ability and setting",
            "setting",
            *by_check(""),
            Column("right_minus_wrong", "right minus wrong, in points"),
        ),
        _table(
            "What became of the answers, where the documents hold the answer",
            "setting",
            *(Column(f"outcome_{name}", name.replace("_", " ")) for name in OUTCOMES),
        ),
        _table(
            "Prompts asked several times",
            "setting",
            *(Column(name, name.replace("_", " ")) for name in REPEATED),
        ),
        _table("Declined where no document has the answer", "setting", *by_check("rejected_", "judge")),
        *(_errors(check) for check in (lead, other, "judge")),
        _table("Known without documents", "setting", *by_check("known_")),
        Table(
            title=f"By language, {CHECKED[lead]}",
            rows="setting",
            metric=lead,
            columns="lang",
            several=True,
            total=False,
        ),
    )


def _remarks(lead: str, other: str, summary: Summary, *, counted: str = "prompts") -> list[str]:
    """Where the checks differ, and where a model does nothing but decline."""
    remarks = []
    first, second = summary.get(f"macro_{lead}"), summary.get(f"macro_{other}")
    limits = [each for figure in (first, second) if figure for each in (figure.low, figure.high)]
    bounds = [limit for limit in limits if limit is not None]
    apart = len(bounds) == 4 and (bounds[1] < bounds[2] or bounds[3] < bounds[0])
    if apart and second and second.value is not None:
        gives_more = bounds[1] < bounds[2]
        remarks.append(CHECK_WORDS[other][gives_more].format(number(second.value, "share")))
    declined = summary.get("outcome_declined")
    if declined and declined.value is not None and declined.value >= MANY_DECLINED:
        share = "all" if declined.value == 1 else f"{number(declined.value, 'share')} of"
        prompts = f"{share} {nouns(declined.n, counted)}" if declined.n > 1 else "the only prompt"
        remarks.append(f"It declined {prompts} whose documents hold the answer.")
    return remarks


def _layout(lead: str, other: str) -> Layout:
    return Layout(
        metrics=tuple(sorted(METRICS, key=lambda metric: metric.name != f"macro_{lead}")),
        question="Does the answer survive bad retrieval?",
        name="Retrieval robustness (RGB)",
        verdict="Right in {}",
        counting="at the hardest setting of each ability",
        remarks=partial(_remarks, lead, other),
        correct=(lead, f"known_{lead}"),
        facts=_facts(lead, other),
        pictures=_pictures(lead, other),
        tables=_tables(lead, other),
        cautions=(
            "Where no document has the answer, the published check also counts a right answer; the lenient "
            "one counts only a rejection.",
            CHECK_ACCURACY,
            "The published order has the document with the answer at the same position in every prompt; "
            "--doc-order balanced varies it.",
        ),
        citation="Chen, Lin, Han and Sun, Benchmarking Large Language Models in Retrieval-Augmented "
        "Generation, AAAI 2024, https://github.com/chen700564/RGB",
    )


LAYOUT, PUBLISHED_LAYOUT = _layout("lenient", "published"), _layout("published", "lenient")


def layout_for(spec: RunSpec, summary: Summary) -> Layout:
    """The lenient check leads, except where the published figure is what the run is for: recorded prediction
    files, and the published data with the published prompts.

    Where integration questions join plain ones, what is counted is to how many independent ones they amount;
    with repeats, the samples are answers.
    """
    source = spec.data.get("source")
    published = source == "published" and spec.options.get("prompts") == "published"
    layout = PUBLISHED_LAYOUT if published or source == "recorded" else LAYOUT
    if _repeats(spec) > 1:
        checks = ("published", "lenient") if layout is PUBLISHED_LAYOUT else ("lenient", "published")
        remarks = partial(_remarks, *checks, counted="answers to prompts")
        layout = replace(layout, counted=("answers", "questions"), remarks=remarks)
    headline = summary.get(layout.headline)
    if headline and headline.linked:
        return replace(layout, linked=True)
    return layout


def _repeats(spec: RunSpec) -> int:
    """How many answers there are to a prompt."""
    return int(spec.options.get("repeats") or 1)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    scopes = [scope_of(name) for name in summary]
    options, recorded = spec.options, spec.data.get("source") == "recorded"
    headline = layout_for(spec, summary).headline
    listed = _headline_notes(
        {s["ability"]: s["setting"] for metric, s in scopes if metric == headline and "setting" in s}
    )
    asked = "" if recorded else f"Asked with {_named(options.get('prompts'))} prompts. "
    if judge := options.get("judge"):
        is_published = options.get("judge_prompts") == "published"
        asked += f"Judged by {judge}"
        asked += f" with the published judge prompts: {_judged(summary)}." if is_published else "."
    elif {"rejected_judge", "detected_judge", "false_alarms_judge"} & summary.keys():
        asked += f"The verdicts are those that the file has: {_judged(summary)}."
    if asked:
        listed.append(Note(asked.strip()))
    unparsed, short = summary.get("judge_unparsed"), summary.get("lacks_documents")
    if unparsed and unparsed.value:
        share = number(unparsed.value, "share")
        listed.append(Note(f"{share} of the judge's verdicts could not be read.", warning=True))
    if short and short.value:
        listed.append(
            Note(
                f"{short.value * short.n / _repeats(spec):.0f} prompts have fewer documents than asked for, "
                "or none with the answer: see their samples.",
                warning=True,
            )
        )
    if held := spec.data.get("answer_held"):
        ids = held["questions"]
        listed.append(
            Note(
                f"{nouns(held['documents'], 'irrelevant documents')} of {nouns(len(ids), 'questions')} "
                f"mention the answer: {', '.join(ids[:MOST_IDS])}{', …' if len(ids) > MOST_IDS else ''}. "
                "Answering from them is no failure to notice that the answer is missing."
            )
        )
    if unknowable := _unknowable(summary):
        listed.append(
            Note(
                f"{nouns(unknowable, 'prompts')} of a built set have only false documents, about what no "
                "model can have read: they are left out of accuracy and detection. With --correct-rate above "
                "0 true documents are beside them."
            )
        )
    lenient = summary.get("lenient")
    if recorded and lenient and lenient.coverage < 1:
        empty = round((1 - lenient.coverage) * sum(lenient.statuses.values()))
        replies = "1 recorded reply is" if empty == 1 else f"{empty:,} recorded replies are"
        listed.append(
            Note(f"{replies} empty: wrong by the published check, and left out by the lenient one.")
        )
    if recorded and any(scope.get("ability") == "counterfactual" for _, scope in scopes):
        listed.append(
            Note(
                "The files do not have the false answers, which the lenient check of counterfactual answers "
                "needs: it is left out."
            )
        )
    return listed


def _judged(summary: Summary) -> str:
    """What the published scripts call a judge's figures: `the judge's figures are Rej* and ED*`."""
    names = {"rejected_judge": "Rej*", "detected_judge": "ED*", "corrected_judge": "CR"}
    present = [name for metric, name in names.items() if metric in summary]
    if len(present) < 2:
        return f"the judge's figure is {present[0]}" if present else "they are of false alarms alone"
    return f"the judge's figures are {', '.join(present[:-1])} and {present[-1]}"


def _unknowable(summary: Summary) -> int:
    """Prompts with a false document in which nobody could detect it: of them only `states_fake` is known."""
    stated, detected = (summary.get(name) for name in ("states_fake", "detected_lenient"))
    return (stated.n if stated else 0) - (detected.n if detected else 0)


def _named(source: object) -> str:
    return {"own": "Sealegs's", "published": "the published"}.get(str(source), f"{source}'s")


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
