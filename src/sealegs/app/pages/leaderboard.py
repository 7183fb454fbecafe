"""The runs below the folder in order: a board for each benchmark, data and settings, of a suite or of all."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from multidict import MultiMapping

from sealegs.analysis.leaderboard import leaderboard
from sealegs.app.rendering import Stamp, named_as_listed, render_page, stamp
from sealegs.app.settings import AppSettings
from sealegs.harness.folder import load_run
from sealegs.harness.stored.listing import list_runs
from sealegs.page.grid import Overview
from sealegs.report.suite import board_overview


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    folder = query.get("suite", "")
    finished = [run for run in list_runs(settings.runs) if run.state == "finished"]
    folders = sorted({run.name.rpartition("/")[0] for run in finished} - {""})
    chosen = [run for run in finished if not folder or run.name.startswith(f"{folder}/")]
    ranked, alone = _ranked(tuple((run.name, run.path, stamp(Path(run.path))) for run in chosen))
    page = render_page(
        settings, "leaderboard.html", "/leaderboard",
        title="Leaderboard", boards=ranked, alone=alone,
        folders={name: name for name in folders}, folder=folder,
    )  # fmt: skip
    return named_as_listed(settings, page)


@lru_cache(maxsize=16)
def _ranked(runs: tuple[tuple[str, str, Stamp], ...]) -> tuple[list[Overview], list[str]]:
    """The boards of some runs, and which are alone on theirs; kept while their files are the same."""
    names = {Path(path): name for name, path, _ in runs}
    boards = leaderboard([load_run(path) for path in names]) if runs else []
    alone = [names[Path(board.rows[0].path)] for board in boards if len(board.rows) == 1]
    ranked = [
        board_overview(board, lambda run: f"/run?run={quote(names[run])}")
        for board in boards
        if len(board.rows) != 1
    ]
    return ranked, alone
