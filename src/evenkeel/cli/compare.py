"""`evenkeel gate RUN --baseline RUN`: exit 1 where a run is worse beyond noise, for CI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenkeel.cli import options

if TYPE_CHECKING:
    from evenkeel.analysis.gate import Check, Gate

EPILOG = """\b
Examples:
  evenkeel gate runs/today --baseline runs/yesterday --max-drop 0.01
  evenkeel gate runs/today --baseline runs/yesterday --metric mean_similarity --metric refusals
  evenkeel gate runs/today --baseline runs/yesterday --metric accuracy@bm25
  evenkeel gate runs/today --baseline runs/yesterday --metric answer_tokens --higher-is-worse
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
    help="A value of the samples, NAME/lang=ko or NAME@METHOD; repeat.  [default: the benchmark's headline]",
)
@click.option(
    "--max-drop",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How much worse it may be, in the metric's own unit (0.05 of a share is five points): how far it "
    "may fall, or rise where lower is better.",
)
@click.option(
    "--higher-is-worse",
    is_flag=True,
    help="A rise is a change for the worse, of metrics for which neither direction is better.",
)
@click.option("--lower-is-worse", is_flag=True, help="The same of a fall.")
@options.min_coverage
@click.option(
    "--min-overlap",
    type=click.FloatRange(min=0, max=1),
    default=0.8,
    show_default=True,
    help="The share of the larger run's samples that both must have.",
)
@click.option(
    "--min-groups",
    type=click.IntRange(min=2),
    default=6,
    show_default=True,
    help="The number of independent groups (questions, triplets) that both must have.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "junit", "github", "json"]),
    default="text",
    show_default=True,
    help="Lines to read, a table, a JUnit file, annotations of GitHub Actions, or everything as JSON.",
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
    lower_is_worse: bool,
    min_coverage: float,
    min_overlap: float,
    min_groups: int,
    form: str,
    out: str | None,
) -> None:
    """Exit with 1 where a run is worse than a baseline beyond noise, or too little of it was answered.

    It is worse where the 95% interval of the difference, paired by sample, lies wholly beyond --max-drop; of
    several metrics, where that holds after Holm's correction for their number. Each metric's declaration says
    whether a fall or a rise is the bad change. Runs with too little in common are refused with exit code 2.
    """
    from evenkeel.analysis.gate import gate
    from evenkeel.files.cache import write_whole

    found = gate(
        run,
        baseline,
        metrics=metrics,
        max_drop=max_drop,
        higher_is_worse=higher_is_worse,
        lower_is_worse=lower_is_worse,
        min_coverage=min_coverage,
        min_overlap=min_overlap,
        min_groups=min_groups,
    )
    if out:
        write_whole(Path(out), FORMATS[form](found))
    click.echo(FORMATS["text" if out else form](found), nl=False)
    ctx.exit(0 if found.passed else 1)


def as_text(found: Gate) -> str:
    """One line a check, the failed ones first, since a log is often read from the top."""
    from evenkeel.page.format import visible

    lines = [
        f"{'pass' if check.passed else 'FAIL'}  {visible(check.reason)}" for check in _failed_first(found)
    ]
    return "".join(f"{line}\n" for line in [*lines, *_correction(found)])


def _failed_first(found: Gate) -> list[Check]:
    return sorted(found.checks, key=lambda check: check.passed)


def _correction(found: Gate) -> list[str]:
    return [f"p is corrected for several metrics: {found.correction}."] if found.correction else []


def as_markdown(found: Gate) -> str:
    """A table, as for the summary of a job; nothing in it is read as markup."""
    rows = [
        f"| {'pass' if check.passed else '**FAIL**'} | {_markdown(check.name)} | {_markdown(check.reason)} |"
        for check in _failed_first(found)
    ]
    title = f"**Gate {'passed' if found.passed else 'failed'}**: {_markdown(found.run)} against "
    lines = [f"{title}{_markdown(found.baseline)}", "", "| | check | why |", "| --- | --- | --- |", *rows]
    return "\n".join([*lines, *(["", *_correction(found)] if found.correction else []), ""])


def _markdown(text: str) -> str:
    from evenkeel.page.format import visible

    line = visible(text).replace("\n", "␊").replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{mark}" if mark in "\\`*_{}[]()#+!|~>@" else mark for mark in line)


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
    from evenkeel.page.format import visible

    return visible(text).translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})


def as_github(found: Gate) -> str:
    """One annotation a check, as GitHub Actions reads them from the log."""
    from evenkeel.page.format import visible

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

    from evenkeel.page.format import escaped_json

    return escaped_json(msgspec.json.format(msgspec.json.encode(found), indent=2).decode()) + "\n"


FORMATS: dict[str, Callable[[Gate], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "junit": as_junit,
    "github": as_github,
    "json": as_json,
}
