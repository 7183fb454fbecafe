"""A run for other programs: a table with one row a sample, or the files of the benchmark's publication."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from evenkeel.errors import DataError, StorageError, UsageError
from evenkeel.files.cache import replacing, slug
from evenkeel.files.frame import columns, scan
from evenkeel.page.format import harmless
from evenkeel.run.folder import Run
from evenkeel.run.registry import load_stored

Form: TypeAlias = Literal["csv", "parquet", "published"]


def export(run: Run | str | Path, to: Form, out: str | Path | None = None) -> list[Path]:
    """Write a run to `out` (a file; a folder for `published`) or into its `export/`; returns the paths.

    `ek.export("runs/mine", to="parquet", out="mine.parquet")`
    """
    if to not in get_args(Form):
        raise UsageError(f"cannot export to '{to}'. Available: {', '.join(get_args(Form))}.")
    run = run if isinstance(run, Run) else Run(run)
    if (run.path / "export").is_symlink():
        raise DataError(run.path / "export", "this is a link. The files of a run must lie in its own folder.")
    if to == "published":
        return _publish(run, Path(out) if out else run.path / "export")
    target = Path(out) if out else run.path / "export" / f"records.{to}"
    if target.is_dir():
        raise UsageError(f"--out {target} is a folder: give a file, such as {target / f'records.{to}'}.")
    _write_table(run, to, target)
    return [target]


def _write_table(run: Run, to: Form, target: Path) -> None:
    """CSV in UTF-8, where a text that a spreadsheet would take for a formula is defused, or Parquet."""
    import polars as pl

    with replacing(target) as draft:
        try:
            types = columns(run.records())
            if to == "csv":
                scan(run.records, types, harmless).sink_csv(draft)
            else:
                scan(run.records, types).sink_parquet(draft)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{target}: cannot be written ({error}). Make room, or give another --out."
            ) from error


def _publish(run: Run, folder: Path) -> list[Path]:
    """The published files of a run in `folder`: copied, or written from the records if they are missing."""
    if folder.is_file():
        raise UsageError(f"--out {folder} is a file: give a folder.")
    source = run.path / "export"
    tables = {f"records.{form}" for form in get_args(Form)}
    files = [
        path
        for path in sorted(source.glob("*"))
        if path.is_file() and not path.is_symlink() and path.name[0] != "." and path.name not in tables
    ]
    if files and folder.resolve() == source.resolve():
        return files
    written = []
    for name, chunks in _contents(files) if files else load_stored(run.spec).publish(run.spec, run.scored):
        target = folder / slug(name, longest=200)
        with replacing(target) as draft, draft.open("wb") as file:
            file.writelines(chunks)
        written.append(target)
    return written


def _contents(paths: Iterable[Path]) -> Iterator[tuple[str, Iterable[bytes]]]:
    for path in paths:
        with path.open("rb") as file:
            yield path.name, file
