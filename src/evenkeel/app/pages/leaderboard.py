"""The runs below the folder in order: a board for each benchmark, data and settings, of a suite or of all."""

from __future__ import annotations

from aiohttp import web

from evenkeel.analysis.leaderboard import leaderboard
from evenkeel.app.rendering import html, in_thread, settings_of
from evenkeel.app.rendering import page as render_page
from evenkeel.app.settings import Settings
from evenkeel.harness.folder import load_run
from evenkeel.harness.stored.listing import list_runs


async def page(request: web.Request) -> web.Response:
    settings, folder = settings_of(request), request.query.get("suite", "")
    return html(await in_thread(_boards, settings, folder))


def _boards(settings: Settings, folder: str) -> str:
    finished = [run for run in list_runs(settings.runs) if run.state == "finished"]
    folders = sorted({run.name.rpartition("/")[0] for run in finished} - {""})
    chosen = [run for run in finished if not folder or run.name.startswith(f"{folder}/")]
    boards = leaderboard([load_run(run.path) for run in chosen]) if chosen else []
    ranked = [board.overview() for board in boards if len(board.rows) > 1]
    return render_page(
        settings, "leaderboard.html", "/leaderboard",
        title="Leaderboard", boards=ranked, alone=len(boards) - len(ranked),
        folders={name: name for name in folders}, folder=folder,
    )  # fmt: skip
