"""What is said of a gate, also in the formats that CI systems read."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from sealegs.analysis.gate import Gate
from sealegs.page.format import as_json, escape_controls
from sealegs.page.grid import Cell, Content, Grid, Overview, plain_cell
from sealegs.page.html import overview_page


def gate_overview(gate: Gate) -> Overview:
    """The failed checks first: a log is often read from the top."""
    rows: list[tuple[str, list[Content]]] = [
        (
            "pass" if check.passed else "FAIL",
            [check.title, Cell(check.reason, "" if check.passed else "strong")],
        )
        for check in sorted(gate.checks, key=lambda check: check.passed)
    ]
    corrected = [f"p is corrected for several metrics: {gate.correction}."] if gate.correction else []
    return Overview(
        f"Gate {'passed' if gate.passed else 'FAILED'}: {gate.run} against {gate.baseline}",
        grids=[Grid("", "", ["check", "reason"], rows, left=3)],
        footnotes=[*corrected, *gate.notes],
    )


def _text(gate: Gate) -> str:
    """One line for each check, the failed ones first, and how the decisions are corrected."""
    overview = gate_overview(gate)
    lines = [f"{outcome}  {plain_cell(cells[1])}" for outcome, cells in overview.grids[0].rows]
    return "".join(f"{escape_controls(line)}\n" for line in (*lines, *overview.footnotes))


def _junit(gate: Gate) -> str:
    """One test case for each check, as CI systems read them."""

    def escaped(text: str) -> str:
        """Text that XML can hold: control characters are shown, non-characters replaced."""
        return escape_controls(text).translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})

    failures = str(sum(not check.passed for check in gate.checks))
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites, "testsuite", name="sealegs gate", tests=str(len(gate.checks)), failures=failures, errors="0"
    )
    for check in gate.checks:
        names = {"classname": escaped(gate.run), "name": escaped(check.name)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if check.passed:
            ElementTree.SubElement(case, "system-out").text = escaped(check.reason)
        else:
            failure = ElementTree.SubElement(case, "failure", message=escaped(check.reason))
            failure.text = escaped(f"{gate.run} against {gate.baseline}")
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _github(gate: Gate) -> str:
    """One annotation for each check, as GitHub Actions reads them from the log."""

    def escaped(text: str, more: str = "") -> str:
        """What would end or change a workflow command, as GitHub quotes it."""
        return text.translate({ord(mark): f"%{ord(mark):02X}" for mark in "%\r\n" + more})

    return "".join(
        f"::{'notice' if check.passed else 'error'} "
        f"title={escaped(f'sealegs gate: {check.name}', ':,')}::{escaped(escape_controls(check.reason))}\n"
        for check in gate.checks
    )


FORMATS: dict[str, Callable[[Gate], str]] = {
    "text": _text,
    "markdown": lambda gate: gate_overview(gate).to_markdown(),  # as for the summary of a CI job
    "junit": _junit,
    "github": _github,
    "html": lambda gate: overview_page(gate_overview(gate)),
    "json": lambda gate: f"{as_json(gate)}\n",
}
