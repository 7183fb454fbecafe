"""Every metric of RGB: what is computed, and what to be careful about.

Published, by their names in the paper and in its result files; every other metric is added:

    accuracy  all_rate                                       published
    Rej       (all_rate counts right answers, too)           rejected_published
    Rej*      reject_rate of a rejection set                 rejected_judge
    ED        fact_check_rate                                detected_published
    ED*       reject_rate of a counterfactual set            detected_judge
    CR        correct_rate; of judged answers                corrected_published; corrected_judge
"""

from __future__ import annotations

from typing import TypeAlias

from sealegs.benchmarks.rgb.selection import ABILITIES
from sealegs.page.metrics import Better, Metric

_Rows: TypeAlias = tuple[tuple[str, str, Better | None, str], ...]
"""The end of a name, its words, which direction is better, and what the answers do."""
_OUTCOMES: _Rows = (
    ("right", "right", "higher", "are right"),
    ("wrong", "wrong", "lower", "are neither right nor decline, and were not cut off"),
    ("declined", "declined", None, "decline and are not right"),
    ("cut_off", "cut off", "lower", "were cut off before they were right or declined"),
)
_WITHOUT_ANSWER: _Rows = (
    ("from_memory", "right from memory", None, "do not decline and give the right answer"),
    ("invented", "invented", "lower", "do not decline, are not right and were not cut off"),
    ("cut_off", "cut off", "lower", "were cut off before they declined or were right"),
)
_HOW_OFTEN: _Rows = (
    ("every_time", "every time", "higher", "all answers are"),
    ("sometimes", "sometimes", None, "some answers, but not all, are"),
    ("never", "never", "lower", "no answer is"),
)
_ACCURACY = (
    Metric(
        "macro_lenient",
        "Accuracy (lenient check)",
        "share",
        "higher",
        "The share of answers that give every part of the expected answer, in any usual spelling of words, "
        "numbers and dates; where no document has the answer, of those that decline; averaged over the "
        "abilities asked, each at its hardest published setting or the nearest to it.",
        "The lenient check makes errors of its own.",
        main=True,
        mean_over="ability",
        parts=tuple(ABILITIES),
    ),
    Metric(
        "macro_published",
        "Accuracy (published check)",
        "share",
        "higher",
        "The share of answers that contain every part of the expected answer as a substring, in any case, "
        "and not the rejection phrase; where no document has the answer, the phrase is right as well; "
        "averaged over the same abilities and settings.",
        "A substring is found in a longer word or number (70 in 170) and in an answer that is named only to "
        "be denied; an answer in other words is not found.",
        main=True,
        mean_over="ability",
        parts=tuple(ABILITIES),
    ),
    Metric(
        "published",
        "right by the published check, of all prompts",
        "share",
        "higher",
        "Answers that contain every part of the right answer as a substring and not the rejection phrase; at "
        "noise 1, of every ability, answers with the phrase are right too (`all_rate`).",
        "Over all prompts together it depends on which rates were asked: compare settings.",
    ),
    Metric(
        "lenient",
        "right by the lenient check, of all prompts",
        "share",
        "higher",
        "Answers that give every part of the right answer, in any usual spelling; at noise 1 only answers "
        "that decline, except in integration, whose documents have the answer at every rate.",
        "Over all prompts together it depends on which rates were asked: compare settings.",
    ),
)
_BECAME = (
    *(
        Metric(
            f"outcome_{outcome}",
            f"{words}, of prompts whose documents hold the answer",
            "share",
            better,
            f"Answers that {meaning}, by the lenient check, of those to prompts with a document that has the "
            "answer. The four outcomes (right, wrong, declined, cut off) add up to 1.",
            "Over all prompts together it depends on which rates were asked: compare settings.",
        )
        for outcome, words, better, meaning in _OUTCOMES
    ),
    Metric(
        "right_minus_wrong",
        "right minus wrong, in points, of prompts whose documents hold the answer",
        "points",
        "higher",
        "The mean of +100 for a right answer, −100 for a wrong one and 0 for one that declines or was cut "
        "off (as CRAG scores), by the lenient check.",
        "A model that declines everything has 0, and one that is wrong as often as right has 0 too.",
    ),
    *(
        Metric(
            f"no_answer_{outcome}",
            f"{words} where no document has the answer",
            "share",
            better,
            f"Answers that {meaning}, by the lenient check, of those to prompts of negative rejection. With "
            "rejected_lenient these shares add up to 1.",
            "A right answer from memory is no error, but it does not come from the documents.",
        )
        for outcome, words, better, meaning in _WITHOUT_ANSWER
    ),
)
_REPEATS = (
    Metric(
        "pass_hat_k",
        "pass^k: k answers to a prompt all right",
        "share",
        "higher",
        "With --repeats: C(c, k) / C(n, k) for c answers of n that are right by the lenient check, averaged "
        "over prompts; k is its tag.",
        "A prompt that lacks any answer is left out, for each k.",
    ),
    *(
        Metric(
            f"right_{often}",
            f"right {words}, of prompts asked several times",
            "share",
            better,
            f"With --repeats: prompts of which {meaning} right by the lenient check.",
            "The more repeats, the fewer prompts are right, or wrong, every time.",
        )
        for often, words, better, meaning in _HOW_OFTEN
    ),
)
_CHECKS = {"published": "published check", "lenient": "lenient check", "judge": "judge"}


def _by_check(
    name: str, title: str, better: Better, meaning: str, caution: str, **answers: str
) -> tuple[Metric, ...]:
    """A metric for each check, whose words for the answers that it counts are put into the meaning."""
    return tuple(
        Metric(
            f"{name}_{check}",
            f"{title} ({_CHECKS[check]})",
            "share",
            better,
            meaning.format(words),
            caution,
        )
        for check, words in answers.items()
    )


_REJECTION_AND_ERRORS = (
    *_by_check(
        "rejected",
        "declined where no document has the answer",
        "higher",
        "Answers {}, of those to prompts of negative rejection.",
        "Each check takes other words for declining, the published one only the exact phrase that the prompt "
        "asks for.",
        published="with the rejection phrase to the letter",
        lenient="that decline in any words",
        judge="that the judge takes for declining (Rej*)",
    ),
    *_by_check(
        "detected",
        "errors detected, of prompts with a false document",
        "higher",
        "Answers {}, of those to prompts with at least one false document.",
        "A model that always reports errors detects all of them: see the false alarms.",
        published="that report an error with the published phrase to the letter (ED)",
        lenient="that report an error in any words (ED)",
        judge="that the judge takes for reporting an error (ED*)",
    ),
    *_by_check(
        "false_alarms",
        "errors reported, of prompts without a false document",
        "lower",
        "Answers {}, of those to counterfactual prompts with documents of which none is false.",
        "It needs prompts without a false document: --correct-rate 1, say.",
        published="that report an error with the published phrase to the letter",
        lenient="that report an error in any words",
        judge="that the judge takes for reporting an error",
    ),
    *(
        Metric(
            f"corrected_{check}",
            f"detected errors corrected ({by})",
            "share",
            "higher",
            f"Of the errors detected by the {by}, the share whose answer {right} (CR).",
            caution,
            ratio_to=f"detected_{check}",
        )
        for check, by, right, caution in (
            (
                "published",
                "published check",
                "lacks no part of the right one, or declines",
                "A rejection after a report counts as a correction here.",
            ),
            (
                "lenient",
                "lenient check",
                "is right by the lenient check",
                "Few detections make it uncertain.",
            ),
            (
                "judge",
                "judge",
                "has every part of the right one by the published check",
                "Whether the answer is right is decided by the published label.",
            ),
        )
    ),
    Metric(
        "states_fake",
        "answers that name the false answer",
        "share",
        "lower",
        "Answers that name the false answer, of those to prompts with at least one false document.",
        "An answer that quotes the false statement in order to correct it counts too.",
    ),
)
METRICS = (
    *_ACCURACY,
    *_BECAME,
    *_REPEATS,
    *_REJECTION_AND_ERRORS,
    *_by_check(
        "noise_change",
        "accuracy with noise minus without, same questions",
        "higher",
        "Accuracy by the {} at a rate of noise minus that at the lowest rate asked, each question against "
        "itself; without a scope, that of noise robustness at its highest rate.",
        "Noise 1 is left out, because a rejection is right there.",
        published="published check",
        lenient="lenient check",
    ),
    *_by_check(
        "known",
        "known without documents",
        "higher",
        "Right answers, by the {}, to prompts without any document: what the model knows by itself.",
        "A lucky guess counts as knowledge, and the data may be in what the model was trained on.",
        published="published check",
        lenient="lenient check",
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
