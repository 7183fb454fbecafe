"""What is said beside a run's figures: by its benchmark, of how requests ended, and by the models."""

from __future__ import annotations

from evenkeel.page.layout import Note
from evenkeel.report.endings import ending_notes
from evenkeel.run.folder import Run
from evenkeel.run.registry import benchmark_class


def notes_of(run: Run) -> list[Note]:
    by_models = run.spec.provenance.get("notes") or {}
    said = [
        text if role == "model" else f"{role}: {text}"
        for role, texts in (by_models.items() if isinstance(by_models, dict) else ())
        for text in texts
    ]
    own: list[Note] = benchmark_class(run.spec.benchmark).notes(run.spec, run.summary)
    return [*own, *ending_notes(run), *map(Note, said)]
