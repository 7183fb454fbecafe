"""`sealegs resume`: a run or a build with the settings that its folder has; also the process of one."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import click

from sealegs.cli.options import examples, run_argument


@click.command(name="resume", epilog=examples("sealegs resume runs/20261115-180400-mirae-embedded"))
@run_argument
@click.pass_context
def resume_command(ctx: click.Context, run: Path) -> None:
    """Resume a run that was stopped or failed, with the settings it was begun with.

    What was answered is not asked again; of a finished run, requests that ended in an error are asked again.
    RUN is the folder of a run, or of a data set that the app was building. Only what you began yourself on
    this machine is resumed: a folder may come from anyone.
    """
    from sealegs.api.launch import resumable
    from sealegs.cli.data import build_and_show
    from sealegs.cli.run import run_and_show, storing
    from sealegs.harness.control import interrupt_on_stop_file, is_assigned

    task = resumable(run).task
    # Shown as it was typed, unless that leads elsewhere from the directory of the settings.
    folder = run if Path(task.directory) == Path.cwd() else run.resolve()
    is_own = is_assigned(run)
    os.chdir(task.directory)
    if is_own and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by whoever began this process
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupt_on_stop_file(folder) if is_own else contextlib.nullcontext():
        if task.kind == "build":
            ctx.exit(build_and_show(task.benchmark, out=folder, progress=storing(task), **task.settings))
        ctx.exit(run_and_show(task, out=folder))
