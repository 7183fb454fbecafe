"""What is left of a damaged journal, read into a new one; the damaged file is kept."""

from __future__ import annotations

import contextlib
import sqlite3
from itertools import count
from pathlib import Path

from evenkeel.journal.journal import SCHEMA, check, completed, harden, missing_bytes

TABLES = {
    "requests": ("digest, kind, body", ("digest",)),
    "responses": ("rowid, key, digest, repeat, status, body, at", ("rowid", "key")),
    "samples": ("rowid, id, body", ("rowid",)),
}
"""The columns of each table, and the orders in which its rows can be walked: each leads over other pages."""


def rescue(path: Path) -> str:
    """Put all readable rows into a new journal at `path`; says what was done."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(completed(path)) if missing_bytes(path) else path
        new = stack.enter_context(contextlib.closing(sqlite3.connect(draft)))
        new.executescript(SCHEMA)
        with contextlib.closing(sqlite3.connect(source)) as old, new:
            harden(old)
            check(old, path)
            old.text_factory = lambda text: text.decode(errors="replace")
            for table, (columns, orders) in TABLES.items():
                for order in orders:
                    for direction in ("ASC", "DESC"):  # from both ends up to the damage
                        _copy(old, new, table, columns, f"{order} {direction}")
        answers = new.execute("SELECT count(*) FROM responses").fetchone()[0]
    damaged = _free(path)
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(damaged.with_name(damaged.name + suffix))
    draft.rename(path)
    return (
        f"{path} was damaged: {answers:,} answers were read from it into a new journal. "
        f"The damaged one is kept as {damaged.name}."
    )


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str, columns: str, order: str) -> None:
    marks = ",".join("?" * (columns.count(",") + 1))
    with contextlib.suppress(sqlite3.DatabaseError):  # the walk ends where the damage begins
        for row in old.execute(f"SELECT {columns} FROM {table} ORDER BY {order}"):
            with contextlib.suppress(sqlite3.IntegrityError):
                new.execute(f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", row)


def _free(path: Path) -> Path:
    """A name beside the journal that nothing has."""
    names = (path.with_name(f"{path.stem}.damaged{n or ''}{path.suffix}") for n in count())
    return next(name for name in names if not name.exists())
