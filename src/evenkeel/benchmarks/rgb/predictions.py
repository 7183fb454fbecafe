"""The files of the published scripts: predictions, those with a judge's verdicts, and the rates of both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from evenkeel.benchmarks.rgb.files import RawAnswer, RgbRecord, check_answer, published_yes, read_lines
from evenkeel.errors import DataError
from evenkeel.files.cache import slug
from evenkeel.files.jsonfile import BOM, NOT_JSON, decode, read_bytes

PREDICTION_SHAPE = (
    "each line is a JSON object as the published script writes it, with 'id', 'query', 'ans', 'label', "
    "'prediction', 'docs', 'noise_rate' and 'factlabel'"
)
JUDGED = "_chatgpt"
"""Ends the stem of a file of predictions with a judge's verdicts, whichever model the judge is."""
LARGEST_RATES = 1 << 16
"""Bytes that a file of rates has at most."""


class Prediction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that a published script wrote: the answer to one question at one setting."""

    id: int | str
    query: str
    answer: RawAnswer = field(name="ans")
    label: tuple[int, ...]
    prediction: str
    docs: tuple[str, ...]
    noise_rate: float
    factlabel: int | None = None
    """Whether an error was reported; the first version of the script did not write it."""
    evaluation: str | None = None
    """The judge's verdict, in a file that was judged."""
    fakeanswer: RawAnswer | None = None
    """The false answer, where someone added it: the published script does not write it."""

    def __post_init__(self) -> None:
        check_answer("ans", self.answer)
        if self.fakeanswer is not None:
            check_answer("fakeanswer", self.fakeanswer)


def read_predictions(path: Path) -> list[Prediction]:
    """The lines of a file. Of one with rates, the lines beside it, from which the rates must follow."""
    rates = _read_rates(path)
    if rates is None:
        return _read_lines(path)
    judged = "rejecttt" in rates
    answers = path.with_name(f"{_answers_stem(path.stem)}{JUDGED if judged else ''}.json")
    listed = ", ".join(f"{name} {value}" for name, value in rates.items() if isinstance(value, float | int))
    if not answers.is_file():
        raise DataError(
            path,
            f"these are the rates of {'judged ' if judged else ''}predictions ({listed}), not the answers. "
            f"Give the file that they were computed from, or place it beside this one: {answers.name}.",
        )
    rows = _read_lines(answers)
    for name, value in _rates_of(rows, judged=judged, fact="correct_rate" in rates).items():
        stated = rates.get(name)
        if value is not None and (not isinstance(stated, float | int) or abs(stated - value) > 1e-9):
            raise DataError(path, f"{name} is {stated}, and {value} by the lines of {answers.name}.")
    return rows


def _read_lines(path: Path) -> list[Prediction]:
    return [row for _, row in read_lines(path, Prediction, PREDICTION_SHAPE)]


def _read_rates(path: Path) -> dict[str, Any] | None:
    """What a file of rates holds; None of any other file."""
    if not path.is_file() or path.stat().st_size > LARGEST_RATES:
        return None
    try:
        rates = decode(read_bytes(path).removeprefix(BOM))
    except (*NOT_JSON, DataError):
        return None
    return rates if isinstance(rates, dict) and {"all_rate", "nums"} <= rates.keys() else None


def _rates_of(rows: Sequence[Prediction], *, judged: bool, fact: bool) -> dict[str, float | None]:
    """The rates of lines, by their own labels and verdicts."""
    from evenkeel.benchmarks.rgb.scoring import Published, judged_rates, published_rates

    noise = rows[0].noise_rate if rows else 0.0
    labels = [Published(row.label, row.factlabel or 0, row.noise_rate) for row in rows]
    if not judged:
        return published_rates(labels, noise, fact=fact)
    phrases = published_yes()["detection" if fact else "rejection"]
    verdicts = [any(phrase in (row.evaluation or "") for phrase in phrases) for row in rows]
    return judged_rates(list(zip(labels, verdicts, strict=True)), noise, fact=fact)


def _answers_stem(stem: str) -> str:
    """The stem of the predictions that a judged file or a file of rates belongs to."""
    return stem.removesuffix("result").removesuffix(JUDGED).removesuffix("_")


class PredictionFile(NamedTuple):
    """What the name of a prediction file says."""

    dataset: str
    model: str
    temperature: float
    noise: float
    passages: int
    correct: float

    @property
    def stem(self) -> str:
        """The published file name, without its ending; rates as Python prints a float."""
        return (
            f"prediction_{self.dataset}_{self.model}_temp{float(self.temperature)}_noise{float(self.noise)}"
            f"_passage{self.passages}_correct{float(self.correct)}"
        )

    @classmethod
    def parse(cls, stem: str) -> PredictionFile | None:
        """Read back from a stem, of a judged file too; None where it has another form.

        Between two underscores a data set ends and a model begins: at the first `_refine`, `_int` or `_fact`
        where there is one, else a data set is taken to be one word.
        """
        rate = r"(\d+(?:\.\d+)?)"
        names = r"prediction_(.+?_(?:refine|int|fact)|[^_]+)_(.+)"
        match = re.fullmatch(
            rf"{names}_temp{rate}_noise{rate}_passage(\d+)_correct{rate}", _answers_stem(stem)
        )
        if match is None:
            return None
        dataset, model, temperature, noise, passages, correct = match.groups()
        return cls(dataset, model, float(temperature), float(noise), int(passages), float(correct))


def prediction_files(
    model: str, temperature: float, records: Callable[[], Iterator[RgbRecord]]
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """For every data set and setting the predictions as JSON lines, and `…_result.json` with the rates; where
    a judge was asked as published, the same with its verdicts, `…_chatgpt.json` and `…_chatgptresult.json`.

    A further position or repeat has files of its own, under the name of the model with it.
    """

    def file_of(record: RgbRecord) -> PredictionFile:
        inputs = record.sample.inputs
        used = temperature if inputs.temperature is None else inputs.temperature
        name = "_".join(filter(None, (slug(model), inputs.variant)))
        return PredictionFile(inputs.dataset, name, used, inputs.noise, inputs.passages, inputs.correct)

    def answered(file: PredictionFile, *, judged: bool = False) -> Iterator[RgbRecord]:
        """As in the published script without what failed, and each question once: at noise 1 it may have
        been asked for two abilities, with the same prompt."""
        seen: set[int | str] = set()
        for record in records():
            instance, detail = record.sample.inputs.instance, record.score.detail
            if file_of(record) != file or not detail or (judged and detail.evaluation is None):
                continue
            if instance not in seen:
                seen.add(instance)
                yield record

    judged_files = {file_of(record) for record in records() if _evaluation(record) is not None}
    for file in dict.fromkeys(map(file_of, records())):
        yield f"{file.stem}.json", map(_line, answered(file))
        yield f"{file.stem}_result.json", _rates(answered(file), file.noise)
        if file in judged_files:
            yield f"{file.stem}{JUDGED}.json", (_line(r, _evaluation(r)) for r in answered(file, judged=True))
            yield f"{file.stem}{JUDGED}result.json", _judged_rates(answered(file, judged=True), file.noise)


def _evaluation(record: RgbRecord) -> str | None:
    return record.score.detail.evaluation if record.score.detail else None


def _line(record: RgbRecord, evaluation: str | None = None) -> bytes:
    from evenkeel.benchmarks.rgb.scoring import published_text

    inputs, detail = record.sample.inputs, record.score.detail
    prediction = Prediction(
        id=inputs.instance,
        query=inputs.query,
        answer=inputs.answer,
        label=detail.label,
        prediction=published_text(record.answers[0].text, str(record.sample.tags["lang"])),
        docs=inputs.docs,
        noise_rate=inputs.noise,
        factlabel=detail.factlabel,
        evaluation=evaluation,
    )
    return msgspec.json.encode(prediction) + b"\n"


def _rates(records: Iterator[RgbRecord], noise: float) -> Iterator[bytes]:
    from evenkeel.benchmarks.rgb.scoring import Published, published_rates

    labels, fact = [], False
    for record in records:
        labels.append(Published(record.score.detail.label, record.score.detail.factlabel, noise))
        fact = fact or record.sample.tags["ability"] == "counterfactual"
    yield _indented(published_rates(labels, noise, fact=fact))


def _judged_rates(records: Iterator[RgbRecord], noise: float) -> Iterator[bytes]:
    from evenkeel.benchmarks.rgb.judging import judged_as, published_verdict
    from evenkeel.benchmarks.rgb.scoring import Published, judged_rates

    results, fact = [], False
    for record in records:
        detail = record.score.detail
        fact = judged_as(record.sample) == "detection"
        verdict = published_verdict(record.sample, detail.evaluation or "")
        results.append((Published(detail.label, detail.factlabel, noise), verdict))
    yield _indented(judged_rates(results, noise, fact=fact))


def _indented(rates: dict[str, float | None]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(rates), indent=4)
