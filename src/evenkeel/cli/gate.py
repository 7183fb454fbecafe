"""`evenkeel gate RUN --baseline RUN`: exit 1 where a run is worse beyond noise, for CI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenkeel.cli import options

if TYPE_CHECKING:
    from evenkeel.gate import Gate

EPILOG = """\b
Examples:
  evenkeel gate runs/today --baseline runs/yesterday --max-drop 0.01
  evenkeel gate runs/today --baseline runs/yesterday --metric refusals --higher-is-worse
  evenkeel gate runs/today --baseline runs/yesterday --format junit --out gate.xml"""


@click.command(name="gate", epilog=EPILOG)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--baseline",
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="The run that it must not fall behind.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A value of the samples, or NAME/lang=ko; repeat.  [default: the benchmark's headline]",
)
@click.option(
    "--max-drop",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How much worse it may be, in the metric's own unit (0.05 of a share is five points).",
)
@click.option("--higher-is-worse", is_flag=True, help="A rise counts as a drop: refusals, entropy, drift.")
@options.min_coverage
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "junit", "github", "json"]),
    default="text",
    show_default=True,
    help="Lines to read, a JUnit file, annotations of GitHub Actions, or everything as JSON.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Write it there, and the text to the terminal all the same.",
)
@click.pass_context
def command(
    ctx: click.Context,
    run: str,
    baseline: str,
    metrics: tuple[str, ...],
    max_drop: float,
    higher_is_worse: bool,
    min_coverage: float,
    form: str,
    out: str | None,
) -> None:
    """Exit with 1 where a run is worse than a baseline beyond noise, or too little of it was answered.

    It is worse where the 95% interval of the difference, paired by sample, lies wholly beyond --max-drop.
    """
    from evenkeel.cache import write_whole
    from evenkeel.gate import gate

    found = gate(
        run,
        baseline,
        metrics=metrics,
        max_drop=max_drop,
        higher_is_worse=higher_is_worse,
        min_coverage=min_coverage,
    )
    if out:
        write_whole(Path(out), FORMATS[form](found))
    click.echo(FORMATS["text" if out else form](found), nl=False)
    ctx.exit(0 if found.passed else 1)


def as_text(found: Gate) -> str:
    """One line a check, the failed ones first, since a log is often read from the top."""
    from evenkeel.report.text import visible

    checks = sorted(found.checks, key=lambda check: check.passed)
    return "".join(f"{'pass' if check.passed else 'FAIL'}  {visible(check.reason)}\n" for check in checks)


def as_junit(found: Gate) -> str:
    """One test case a check, as CI systems read them."""
    from xml.etree import ElementTree

    failures = sum(not check.passed for check in found.checks)
    suite = ElementTree.Element(
        "testsuite", name="evenkeel gate", tests=str(len(found.checks)), failures=str(failures), errors="0"
    )
    for check in found.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(found.run), name=_xml(check.name))
        if check.passed:
            ElementTree.SubElement(case, "system-out").text = _xml(check.reason)
        else:
            ElementTree.SubElement(case, "failure", message=_xml(check.reason)).text = _xml(
                f"{found.run} against {found.baseline}"
            )
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _xml(text: str) -> str:
    """Text that XML can hold: control characters and lone surrogates are shown, non-characters replaced."""
    from evenkeel.report.text import visible

    return visible(text).translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})


def as_github(found: Gate) -> str:
    """One annotation a check, as GitHub Actions reads them from the log."""
    from evenkeel.report.text import visible

    return "".join(
        f"::{'notice' if check.passed else 'error'} "
        f"title={_escaped(f'evenkeel gate: {check.name}', ':,')}::{_escaped(visible(check.reason))}\n"
        for check in found.checks
    )


def _escaped(text: str, more: str = "") -> str:
    """What would end or change a workflow command, as GitHub quotes it."""
    return text.translate({ord(mark): f"%{ord(mark):02X}" for mark in "%\r\n" + more})


def as_json(found: Gate) -> str:
    import msgspec

    from evenkeel.report.text import escaped_json

    return escaped_json(msgspec.json.format(msgspec.json.encode(found), indent=2).decode()) + "\n"


FORMATS: dict[str, Callable[[Gate], str]] = {
    "text": as_text,
    "junit": as_junit,
    "github": as_github,
    "json": as_json,
}
