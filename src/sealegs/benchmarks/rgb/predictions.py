"""The files of the published scripts: predictions, those with a judge's verdicts, and the rates of both."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sealegs.benchmarks.rgb.data import Lang, Questions, RgbInputs, RgbRecord, language, read_lines
from sealegs.benchmarks.rgb.prompts import JudgePrompt
from sealegs.benchmarks.rgb.selection import Setting, ability_of
from sealegs.files.cache import slug
from sealegs.harness.published import PublishedFiles, Recorded
from sealegs.text.answer_search.mention import RawAnswer, check_answer
from sealegs.types import Response, RunSpec, Sample

if TYPE_CHECKING:
    from sealegs.benchmarks.rgb.published import Published

PREDICTION_SHAPE = (
    "each line is a JSON object as the published script writes it, with 'id', 'query', 'ans', 'label', "
    "'prediction', 'docs', 'noise_rate' and 'factlabel'"
)
IN_MEMORY_BYTES = 2**18
"""Of the lines of a file that is being put together."""
JUDGED = "_chatgpt"
"""Ends the stem of a file of predictions with a judge's verdicts, whichever model the judge is."""


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

    def __post_init__(self) -> None:
        if self.answer or self.noise_rate < 1:  # a question whose answer no document has may come without one
            check_answer("ans", self.answer)


def read_predictions(path: Path) -> list[Prediction]:
    """The lines of a file of predictions, judged or not."""
    return [row for _, row in read_lines(path, Prediction, PREDICTION_SHAPE)]


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
            rf"{names}_temp{rate}_noise{rate}_passage(\d+)_correct{rate}", stem.removesuffix(JUDGED)
        )
        if match is None:
            return None
        dataset, model, temperature, noise, passages, correct = match.groups()
        return cls(dataset, model, float(temperature), float(noise), int(passages), float(correct))


# Answers recorded in these files


def recorded(
    path: Path, lang: Lang | None, judge_prompt: Callable[[Setting], JudgePrompt | None]
) -> Recorded:
    """The lines of a prediction file as samples with their answers."""
    rows = read_predictions(path)
    file = PredictionFile.parse(path.stem)
    dataset = file.dataset if file else path.stem.removesuffix(JUDGED)
    lang = lang or language(dataset, [row.query for row in rows])
    samples: list[Sample] = []
    for row in rows:
        # What the name of the file does not say is read from the line.
        setting = Setting(
            ability_of(dataset, row.noise_rate),
            row.noise_rate,
            file.passages if file else len(row.docs),
            file.correct if file else 0.0,
        )
        inputs = RgbInputs(
            dataset=dataset,
            instance=row.id,
            query=row.query,
            answer=row.answer,
            fake=None,
            docs=row.docs,
            kinds=(),
            note="",
            noise=setting.noise,
            passages=setting.passages,
            correct=setting.correct,
            temperature=file.temperature if file else 0.0,
            judge=judge_prompt(setting),
            evaluation=row.evaluation,
            published=_published_figures(row, setting),
        )
        samples.append(
            Sample(
                id=f"{dataset}-{row.id}-{setting.name}",
                group=f"{dataset}-{row.id}",
                tags=setting.tags(lang),
                inputs=inputs,
            )
        )
    responses = [[Response(status="ok", text=row.prediction)] for row in rows]
    return Recorded(file.model if file else path.stem, _numbered(samples), responses)


def combine(recordings: Sequence[Recorded]) -> Recorded | None:
    """The files of one model as one; None where two of them answer a question at the same setting."""
    samples = [sample for recording in recordings for sample in recording.samples]
    models = {recording.model for recording in recordings}
    if len(models) > 1 or len({sample.id for sample in samples}) < len(samples):
        return None
    responses = [response for recording in recordings for response in recording.responses]
    return Recorded(models.pop(), _numbered(_grouped(samples)), responses)


def _grouped(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of several files by their questions, as in a run."""
    integration = [sample.tags["ability"] == "integration" for sample in samples]
    questions = Questions(
        (sample.group, sample.inputs.query, not is_joined)
        for sample, is_joined in zip(samples, integration, strict=True)
    )
    return [
        replace(
            sample,
            group=questions.group(sample.inputs.query),
            inputs=replace(sample.inputs, joins=questions.joined(sample.inputs.query) if is_joined else ()),
        )
        for sample, is_joined in zip(samples, integration, strict=True)
    ]


def _numbered(samples: Sequence[Sample]) -> list[Sample]:
    """The samples with numbers for those of the same prompt, so that each keeps its own answer."""
    repeats: defaultdict[tuple[str, tuple[str, ...]], Iterator[int]] = defaultdict(count)
    return [
        replace(sample, inputs=replace(sample.inputs, repeat=next(repeats[prompt])))
        for sample in samples
        for prompt in [(sample.inputs.query, sample.inputs.docs)]
    ]


def _published_figures(row: Prediction, setting: Setting) -> dict[str, float]:
    """What the line itself says of its answer, to be compared with our values."""
    from sealegs.benchmarks.rgb.published import Published

    if not row.label:
        return {}
    right = float(Published(row.label, row.factlabel or 0, row.noise_rate).right)
    if setting.closed_book:
        return {"known_published": right}
    figures = {"published": right}
    if setting.ability == "counterfactual" and row.factlabel is not None:
        reported = "detected" if row.docs and setting.false_documents > 0 else "false_alarms"
        figures[f"{reported}_published"] = float(row.factlabel)
    return figures


# A run in these files


def prediction_files(spec: RunSpec, records: Callable[[], Iterator[RgbRecord]]) -> PublishedFiles:
    """For every data set and setting the predictions as JSON lines, and `…_result.json` with the rates; where
    a judge was asked as published, the same with its verdicts, `…_chatgpt.json` and `…_chatgptresult.json`.

    A further repeat has files of its own, under the name of the model with it. What failed is in none, as in
    the published script.
    """
    from sealegs.benchmarks.rgb.published import judged_rates, published_rates

    model, temperature = spec.models["model"]["name"], spec.options.get("temperature", 0.0)
    with contextlib.ExitStack() as spools:
        contents: defaultdict[PredictionFile, _Written] = defaultdict(lambda: _Written(spools))
        for record in records():
            inputs = record.sample.inputs
            used = temperature if inputs.temperature is None else inputs.temperature
            name = "_".join(filter(None, (slug(model), inputs.variant)))
            file = PredictionFile(inputs.dataset, name, used, inputs.noise, inputs.passages, inputs.correct)
            contents[file].add(record)
        for file, written in contents.items():
            answered = list(written.labels.values())
            yield f"{file.stem}.json", _lines(written.lines)
            rates = published_rates(answered, file.noise, fact=written.fact)
            yield f"{file.stem}_result.json", iter([_indented(rates)])
            if judged := list(written.verdicts.values()):
                rates = judged_rates(judged, file.noise, fact=written.fact)
                yield f"{file.stem}{JUDGED}.json", _lines(written.judged_lines)
                yield f"{file.stem}{JUDGED}result.json", iter([_indented(rates)])


class _Written:
    """What goes into the files of one setting: lines with texts, which may be long and lie on the disk, and
    the labels behind the rates. Each question is there once, as in the published script: at noise 1 two
    abilities may have the same prompt."""

    def __init__(self, spools: contextlib.ExitStack) -> None:
        self.fact = False
        self.lines, self.judged_lines = (
            spools.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES))  # noqa: SIM115
            for _ in range(2)
        )
        self.labels: dict[int | str, Published] = {}
        self.verdicts: dict[int | str, tuple[Published, bool]] = {}

    def add(self, record: RgbRecord) -> None:
        from sealegs.benchmarks.rgb.judging import published_verdict

        detail, question = record.score.detail, record.sample.inputs.instance
        if not detail:
            return
        self.fact |= record.sample.tags["ability"] == "counterfactual"
        if question not in self.labels:
            self.labels[question] = _labels(record)
            self.lines.write(_line(record))
        if detail.evaluation is not None and question not in self.verdicts:
            verdict = published_verdict(record.sample, detail.evaluation or "")
            self.verdicts[question] = _labels(record), verdict
            self.judged_lines.write(_line(record, with_verdict=True))


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    yield from file


def _labels(record: RgbRecord) -> Published:
    from sealegs.benchmarks.rgb.published import Published

    detail = record.score.detail
    return Published(detail.label, detail.factlabel, record.sample.inputs.noise)


def _line(record: RgbRecord, *, with_verdict: bool = False) -> bytes:
    from sealegs.benchmarks.rgb.published import published_text

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
        evaluation=detail.evaluation if with_verdict else None,
    )
    return msgspec.json.encode(prediction) + b"\n"


def _indented(rates: dict[str, float | None]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(rates), indent=4)
