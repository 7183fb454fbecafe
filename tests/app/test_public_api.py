"""The app stands on the public API, and what is not ours reaches no widget that reads Markdown."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenkeel as ek

APP = Path(ek.__file__).parent / "app"
FILES = sorted(APP.rglob("*.py"))
ALLOWED = ("evenkeel", "evenkeel.app", "evenkeel.page", "evenkeel.errors")
READ_MARKDOWN = {
    "markdown", "title", "header", "subheader", "caption", "error", "warning", "info", "success", "exception",
    "toast", "button", "checkbox", "radio", "expander", "popover", "toggle", "latex", "download_button",
    "metric", "status", "spinner", "form_submit_button", "link_button", "pills", "segmented_control",
    "text_input", "text_area", "number_input", "selectbox", "multiselect", "file_uploader",
}  # fmt: skip
"""Functions of Streamlit that read Markdown in their first argument."""


def imports(tree: ast.Module) -> Iterator[str]:
    """The modules of the package that are imported when the app runs."""
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "evenkeel")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "evenkeel":
            yield str(node.module)


def is_ours(node: ast.expr) -> bool:
    """Whether a text is written in the app, apart from numbers in it, or goes through `choose.plain`."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("plain", "len")
    if isinstance(node, ast.IfExp):
        return is_ours(node.body) and is_ours(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return all(
            isinstance(part, ast.Constant)
            or (
                isinstance(part, ast.FormattedValue) and (part.format_spec is not None or is_ours(part.value))
            )
            for part in node.values
        )
    return isinstance(node, ast.Name) and (node.id.isupper() or node.id in ("label", "help_text"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(APP)))
def test_the_app_uses_the_public_api_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = [name for name in imports(tree) if not name.startswith(ALLOWED[1:]) and name != ALLOWED[0]]
    assert inner == []
    names = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ek"
    ]
    assert set(names) <= set(ek.__all__)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(APP)))
def test_nothing_that_is_not_ours_is_read_as_markdown(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        receiver = ast.unparse(node.func.value)
        if node.func.attr in READ_MARKDOWN and receiver not in ("show", "re", "ek"):
            assert is_ours(node.args[0]), f"line {node.lineno}: {ast.unparse(node)[:120]}"
