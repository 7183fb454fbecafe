"""A run as a table, one row a sample with typed columns, or as the files of the benchmark's own publication.

Records are read as a stream, once to learn the columns and once to write them: a run may be larger than
memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from evenkeel.errors import DataError, StorageError, UsageError
from evenkeel.files.cache import replacing, slug
from evenkeel.page.format import visible
from evenkeel.run.folder import Run
from evenkeel.run.registry import load_stored
from evenkeel.types import Record, Response, Status

if TYPE_CHECKING:
    import polars as pl

Form: TypeAlias = Literal["csv", "parquet", "published"]
Cell: TypeAlias = str | int | float | None
Key: TypeAlias = tuple[str, str]
"""What a cell is (a tag, a value, an input) and its name."""

KINDS = ("sample", "tag", "count", "value", "answer", "input")
"""The order of the columns."""
FIRST_TO_NAME = ("sample", "count", "answer", "value", "tag", "input")
"""Where two columns would have one name, the later of these puts its kind before it: `input_answer`."""

CHUNK = 256  # rows written at a time

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


def export(run: Run | str | Path, to: Form, out: str | Path | None = None) -> list[Path]:
    """Write a run to `out` (a file; a folder for `published`) or into its own `export/`; gives the paths.

    `ek.export("runs/mine", to="parquet", out="mine.parquet")`
    """
    if to not in get_args(Form):
        raise UsageError(f"cannot export to '{to}'. Available: {', '.join(get_args(Form))}.")
    run = run if isinstance(run, Run) else Run(run)
    if (run.path / "export").is_symlink():
        raise DataError(run.path / "export", "this is a link. The files of a run must lie in its own folder.")
    if to == "published":
        return publish(run, Path(out) if out else run.path / "export")
    target = Path(out) if out else run.path / "export" / f"records.{to}"
    if target.is_dir():
        raise UsageError(f"--out {target} is a folder: name a file, such as {target / f'records.{to}'}.")
    write = to_csv if to == "csv" else to_parquet
    write(run, target)
    return [target]


def frame(run: Run) -> pl.DataFrame:
    """A run's records in memory: the columns of a table, but the answers of a sample in one list."""
    import polars as pl

    types = columns(run.records())
    answers = [key for key in types if key[0] == "answer"]
    table = _scan(run, {key: kind for key, kind in types.items() if key not in answers}, str).collect()
    texts = [_answers(record, answers) for record in run.records()]
    name = "answers" if "answers" not in table.columns else "answer_texts"
    return table.with_columns(pl.Series(name, texts, dtype=pl.List(pl.String)))


def _answers(record: Record, keys: Iterable[Key]) -> list[Cell]:
    """The texts of one sample at the places where any sample has one; None where nothing came."""
    row = cells(record)
    return [row.get(key) for key in keys if int(key[1]) < len(record.answers)]


def to_csv(run: Run, target: Path) -> None:
    """Comma-separated, UTF-8. Text that a spreadsheet would take for a formula is defused."""
    _sink(run, target, lambda frame, draft: frame.sink_csv(draft), text=harmless)


def to_parquet(run: Run, target: Path) -> None:
    """Parquet, with every text as it stands."""
    _sink(run, target, lambda frame, draft: frame.sink_parquet(draft), text=str)


def publish(run: Run, folder: Path) -> list[Path]:
    """The published files of a run in `folder`: copied, or written from the records if they are not there."""
    if folder.is_file():
        raise UsageError(f"--out {folder} is a file: name a folder.")
    own = run.path / "export"
    tables = {f"records.{form}" for form in get_args(Form)}
    kept = [
        p
        for p in sorted(own.glob("*"))
        if p.is_file() and not p.is_symlink() and p.name[0] != "." and p.name not in tables
    ]
    if kept and folder.resolve() == own.resolve():
        return kept
    written = []
    for name, chunks in _copies(kept) if kept else _published(run):
        target = folder / slug(name, longest=200)
        with replacing(target) as draft, draft.open("wb") as file:
            file.writelines(chunks)
        written.append(target)
    return written


def _published(run: Run) -> Iterator[tuple[str, Iterable[bytes]]]:
    return load_stored(run.spec).publish(run.spec, run.scored)


def _copies(paths: Iterable[Path]) -> Iterator[tuple[str, Iterable[bytes]]]:
    for path in paths:
        with path.open("rb") as file:
            yield path.name, file


def cells(record: Record) -> dict[Key, Cell]:
    """All that one row can hold. Of the inputs only texts and numbers: lists are left to records.jsonl."""
    sample, score = record.sample, record.score
    found: dict[Key, Cell] = {("sample", "sample"): sample.id, ("sample", "group"): sample.group}
    found |= {("tag", name): tag for name, tag in {**sample.tags, **score.tags}.items()}
    found |= {("count", "answered"): score.answered}
    found |= {("count", f"status_{name}"): score.statuses.get(name, 0) for name in get_args(Status)}
    found |= {("value", name): value for name, value in score.values.items()}
    found |= {
        ("answer", f"{place:06d}"): text
        for place, answer in enumerate(record.answers)
        if (text := _text(answer)) is not None
    }
    return found | {
        ("input", name): given
        for name, given in sample.inputs.items()
        if isinstance(given, str | int | float | None)
    }


def _text(answer: Response) -> str | None:
    """What was written, empty if need be; None where nothing came, or no text was asked for."""
    silent = answer.status != "ok" or answer.logprobs or answer.vector is not None or answer.rank is not None
    return answer.text or (None if silent else "")


def columns(records: Iterable[Record]) -> dict[Key, type]:
    """The columns of a table, in order, each with the type that holds all of its cells.

    An input that only repeats a tag of its name is left out.
    """
    types: dict[Key, set[type]] = {}
    telling: set[Key] = set()
    for record in records:
        row = cells(record)
        for key, cell in row.items():
            types.setdefault(key, set()).update(() if cell is None else (_type(cell),))
            if key[0] == "input" and cell != row.get(("tag", key[1])):
                telling.add(key)
    kept = [key for key in types if key[0] != "input" or ("tag", key[1]) not in types or key in telling]
    kept.sort(key=lambda key: (KINDS.index(key[0]), key[1] if key[0] == "answer" else ""))
    return {key: float if key[0] == "value" else _common(types[key]) for key in kept}


def _type(cell: str | int | float) -> type:
    """A number too long for 64 bits is kept as text."""
    return str if isinstance(cell, int) and not -(2**63) <= cell < 2**63 else type(cell)


def _common(types: set[type]) -> type:
    if len(types) == 1:
        return next(iter(types))
    return float if types == {int, float} else str


def titles(keys: Iterable[Key]) -> dict[Key, str]:
    """A name of its own for every column: answers are numbered from the second on."""
    names = {key: key[1] for key in keys}
    answers = sorted(key for key in names if key[0] == "answer")
    names |= {key: f"answer_{number}" if number > 1 else "answer" for number, key in enumerate(answers, 1)}
    taken: set[str] = set()
    for key in sorted(names, key=lambda key: FIRST_TO_NAME.index(key[0])):
        if names[key] in taken:
            names[key] = f"{key[0]}_{names[key]}"
        taken.add(names[key])
    return names


def harmless(text: str) -> str:
    """A text cell for a spreadsheet: never a formula, control characters shown and not obeyed.

    What looks like a formula is put behind an apostrophe, which spreadsheets take for "this is text".
    """
    text = text.replace("\r\n", "\n")
    # Nearly every text is printable as it is, and asking is much faster than looking at each character.
    shown = text if text.replace("\n", " ").replace("\t", " ").isprintable() else visible(text)
    return f"'{shown}" if FORMULA.match(shown) and not NUMBER.fullmatch(shown) else shown


def _sink(
    run: Run,
    target: Path,
    write: Callable[[pl.LazyFrame, Path], Any],
    *,
    text: Callable[[str], str],
) -> None:
    import polars as pl

    with replacing(target) as draft:
        try:
            write(_scan(run, columns(run.records()), text), draft)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StorageError(
                f"{target}: cannot be written ({error}). Make room, or name another --out."
            ) from error


def _scan(run: Run, types: Mapping[Key, type], text: Callable[[str], str]) -> pl.LazyFrame:
    """The rows as a stream that polars draws from while it writes."""
    import polars as pl
    from polars.io.plugins import register_io_source

    kinds = {str: pl.String(), int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean()}
    names = titles(types)
    schema = {text(names[key]): kinds[kind] for key, kind in types.items()}

    def typed(cell: Cell, kind: type) -> Cell:
        if cell is None:
            return None
        return text(str(cell)) if kind is str else cell

    def batches(*_: Any) -> Iterator[pl.DataFrame]:
        rows = ([typed(row.get(k), kind) for k, kind in types.items()] for row in map(cells, run.records()))
        while chunk := list(islice(rows, CHUNK)):
            yield pl.DataFrame(chunk, schema=schema, orient="row", strict=False)

    return register_io_source(batches, schema=schema)
