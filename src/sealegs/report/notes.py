"""Notes on a run's figures: of its benchmark, about how requests ended, and of the models."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec import Struct

from sealegs.files.jsonfile import read_json_lines
from sealegs.harness.folder import Run, load_run
from sealegs.harness.folder.spec import served_at
from sealegs.harness.registry import benchmark_class, load_stored
from sealegs.page.format import capitalised, nouns
from sealegs.page.layout import Note
from sealegs.text.answers import IN_REASONING, is_blank
from sealegs.types import Generate, RunSpec, Status

MANY = 0.05
"""The share of requests from which a warning is due."""


OF_MODELS = {
    "embedded": "The weights of the embedded model are Q4_1 (four bits each): its figures are not those of "
    "the unquantised SmolLM2-135M-Instruct."
}
"""What is to be known of a model by its spec, also of runs that are older than the note."""


def notes_of(run: Run | str | Path) -> list[Note]:
    """What to say beside the figures of a run, warnings among it: `notes_of("runs/yesterday")[0].text`."""
    run = load_run(run)
    noted: dict[str, list[str]] = run.spec.provenance.get("notes", {})
    by_models = [(role, text) for role, texts in noted.items() for text in texts]
    by_models += [(role, OF_MODELS.get(model["spec"], "")) for role, model in run.spec.models.items()]
    texts = [text if role == "model" else f"{role}: {text}" for role, text in by_models if text]
    by_benchmark = benchmark_class(run.spec.benchmark).notes(run.spec, run.summary)
    return [*by_benchmark, *deciding_notes(run), *ending_notes(run), *failure_notes(run), *map(Note, texts)]


def deciding_notes(run: Run) -> list[Note]:
    """Warnings: which of the figures shown first have an interval that few groups decide."""
    layout = run.layout
    main, shown = layout.main_figures(run.summary), layout.first_figures(run.summary)
    figures = [(layout.headline_title, run.headline), *(each for each in main if each[0] in shown)]
    return [
        Note(
            f"{capitalised(title)}: {nouns(figure.deciding, f'unusual {layout.groups}')} of "
            f"{figure.clusters:,} decide{'s' * (figure.deciding == 1)} how wide this interval is; with other "
            f"{layout.groups} the figure may lie outside of it.",
            warning=True,
        )
        for title, figure in figures
        if figure.deciding
    ]


REASONING = "cut off inside the reasoning"
NO_ANSWER = (REASONING, "cut off before any text", "empty")
CUT = "cut off, and scored as far as they go"


class _Present(Struct, gc=False):
    """A part of a response that is not read."""


class _Ended(Struct, gc=False):
    """A response, as far as it says how a text ended. Only what its request asked for is filled in."""

    status: Status
    text: str = ""
    reasoning: str = ""
    reason: str = ""
    logprobs: _Present | None = None
    string: _Present | None = None
    vector: str | None = None
    rank: float | None = None


class _Statuses(Struct, gc=False):
    statuses: dict[str, int]


class _Line(Struct, gc=False):
    """What is read of a record: a tenth of it, in a fraction of the time."""

    answers: tuple[_Ended, ...]
    score: _Statuses


def endings(run: Run) -> Counter[str]:
    """How the texts that a model was asked for ended."""
    kinds: Counter[str] = Counter()
    samples, benchmark = run.samples(), load_stored(run.spec)
    for row, line in enumerate(read_json_lines(samples.path, _Line)):
        answers = line.answers
        if any(answer.status not in ("ok", "truncated") for answer in answers):  # of texts, or of others?
            pairs = zip(benchmark.requests(samples.record(row).sample), answers, strict=False)
            answers = tuple(answer for request, answer in pairs if isinstance(request, Generate))
        for answer in answers:
            if answer.logprobs is answer.string is answer.vector is answer.rank is None:
                kinds[_ending(answer, line.score.statuses)] += 1
    return kinds


def _ending(answer: _Ended, scored: dict[str, int]) -> str:
    """One that a stop rule completes is not cut off; an empty one is what the model itself ended."""
    blank = is_blank(answer.text)
    match answer.status:
        case "truncated" if blank:
            return REASONING if answer.reasoning or IN_REASONING in answer.reason else NO_ANSWER[1]
        case "truncated" if scored.get("truncated"):
            return CUT
        case "ok" | "unparsed" if blank and scored.get("unparsed"):
            return "empty"
        case _:
            return "other"


def failure_notes(run: Run) -> list[Note]:
    """Warnings: which subjects lack answers, and the most frequent reason of each."""
    failures = run.failures().most_common() if run.subjects else []
    notes = []
    for subject in run.subjects:
        reasons = [(reason, count) for reason, count in failures if reason.endswith(f" ({subject})")]
        if reasons:
            total, often = sum(count for _, count in reasons), reasons[0][0].removesuffix(f" ({subject})")
            text = f"{subject}: requests without a usable answer: {total:,}; most often: {often.rstrip('.')}."
            notes.append(Note(text, warning=True))
    return notes


def ending_notes(run: Run) -> list[Note]:
    """Warnings: how many answers are missing or cut off, and what to do."""
    ended = {status for figure in run.summary.values() for status, count in figure.statuses.items() if count}
    if "model" not in run.spec.models or ended.isdisjoint(("truncated", "unparsed")):
        return []
    counts = endings(run)
    requests, missing, cut = counts.total(), sum(counts[how] for how in NO_ANSWER), counts[CUT]
    texts = []
    if missing > MANY * requests:
        listed = ", ".join(f"{counts[how]:,} {how}" for how in NO_ANSWER if counts[how])
        have = f"{nouns(requests, 'requests')} {'has' if missing == 1 else 'have'}"
        text = f"{missing:,} of {have} no usable answer: {listed}; not scored."
        texts.append(f"{text} {_advice(run.spec, reasons=True)}")
    if cut > MANY * requests:
        were = f"{nouns(requests, 'answers')} {'was' if cut == 1 else 'were'}"
        text = f"{cut:,} of {were} cut off: scored as far as the text goes."
        texts.append(f"{text} {_advice(run.spec, reasons=False)}")
    return [Note(text.rstrip(), warning=True) for text in texts]


def _advice(spec: RunSpec, *, reasons: bool) -> str:
    """What to do about it, in the options that this run has; nothing for answers recorded elsewhere."""
    if spec.data.get("source") == "recorded":
        return ""
    limit = spec.options.get("max_tokens")
    ways = [f"a larger --max-tokens (here {limit})"] if limit else []
    if reasons and served_at(spec).get("model"):
        ways.append("more tokens for reasoning (--model-arg reasoning_tokens=8192)")
    return f"Try {' or '.join(ways)}." if ways else ""
