"""A run for other programs: a table with one row per sample, or the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from sealegs.errors import DataError, UsageError
from sealegs.files import lock
from sealegs.files.cache import distinct_slug, replacing
from sealegs.files.columns import Cell, Extra, Key, columns, csv_line, titles, typed_rows
from sealegs.harness.folder import Run, load_run
from sealegs.harness.registry import load_stored
from sealegs.harness.stored.marks import Mark
from sealegs.page.format import csv_safe
from sealegs.types import Record

Form: TypeAlias = Literal["csv", "parquet", "published", "every-eval-ever", "hub"]


def export(run: Run | str | Path, to: Form, out: str | Path | None = None) -> list[Path]:
    """Write a run to `out` (a file for `csv` and `parquet`, else a folder) or into its `export/`; returns the
    paths.

    `sl.export("runs/mine", to="parquet", out="mine.parquet")`
    """
    if to not in get_args(Form):
        raise UsageError(f"cannot export to '{to}'. Available: {', '.join(get_args(Form))}.")
    run = load_run(run)
    lock.refuse_written(run.path)  # it may replace one file and not yet the other
    _ = run.spec  # of a version that is known here
    own = run.path / "export"
    if link := next((path for path in (own, *own.rglob("*")) if path.is_symlink()), None):
        raise DataError(link, "this is a link. The files of a run must lie in its own folder.")
    if to in ("csv", "parquet"):
        target = Path(out) if out else own / f"records.{to}"
        if target.is_dir():
            raise UsageError(f"--out {target} is a folder: give a file, such as {target / f'records.{to}'}.")
        _write_table(run, to, target)
        return [target]
    folder = Path(out) if out else own if to == "published" else own / to
    if folder.is_file():
        raise UsageError(f"--out {folder} is a file: give a folder.")
    if to == "published":
        return _publish(run, folder)
    from sealegs.report.formats import every_eval_ever, hub

    return every_eval_ever.write(run, folder) if to == "every-eval-ever" else hub.write(run, folder)


def _write_table(run: Run, to: Form, target: Path) -> None:
    """The records and their marks: Parquet, or CSV in UTF-8, where a text that a spreadsheet would
    take for a formula is defused."""
    from sealegs.files import frame

    marks: dict[str, list[Mark]] = {}
    for mark in run.marks():
        marks.setdefault(mark.sample, []).append(mark)

    def marked(record: Record) -> dict[Key, Cell]:
        about = [mark for mark in marks.get(record.sample.id, ()) if mark.is_about(record)]
        texts = {
            "marked": [": ".join(filter(None, (mark.metric, mark.verdict))) for mark in about],
            "mark_comment": [mark.comment for mark in about],
        }
        return {("mark", name): "; ".join(filter(None, parts)) or None for name, parts in texts.items()}

    extra: Extra = marked if marks else lambda record: {}
    with replacing(target) as draft:
        types = columns(run.records(), extra)
        if to == "parquet":
            frame.write_parquet(run.records, types, draft, extra)
            return
        names = titles(types)
        with draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(csv_line(csv_safe(names[key]) for key in types))
            file.writelines(map(csv_line, typed_rows(run.records, types, csv_safe, extra)))


def _publish(run: Run, folder: Path) -> list[Path]:
    """The published files of a run in `folder`, from its records: those in `export/` may be damaged."""
    written, taken = [], set[str]()
    benchmark = load_stored(run.spec)
    for name, chunks in benchmark.publishing.files(benchmark, run.spec, run.records):
        target = folder / distinct_slug(name, taken, longest=200)
        with replacing(target) as draft, draft.open("wb") as file:
            file.writelines(chunks)
        written.append(target)
    return written
