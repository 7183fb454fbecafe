"""Hooks of the documentation's site (mkdocs.yml): links out of docs/, and the page of the Python names."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STUB = ROOT / "src" / "sealegs" / "__init__.pyi"
OUTSIDE = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Any, config: Any) -> Any:
    """Add the page of the public names, which is made of their docstrings."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "python.md", content=reference()))
    return files


def reference() -> str:
    """What mkdocstrings reads: each public name, by the module that the stub names."""
    names = [
        f"::: sealegs.{statement.module}.{alias.name}\n"
        for statement in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
    head = "# Python\n\nEvery name is imported from the package: `import sealegs as sl`, then `sl.run`.\n"
    return "\n".join([head, *names])


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Lead links that leave docs/ to the repository; one to a file that is not there is a warning."""
    folder = Path(page.file.abs_src_path).parent if page.file.abs_src_path else None
    if folder is None:
        return markdown

    def to_repository(link: re.Match[str]) -> str:
        target = (folder / link["up"] / link["path"]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        if not target.exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, link["path"])
        kind = "tree" if target.is_dir() else "blob"
        address = f"{config.repo_url}/{kind}/main/{target.relative_to(ROOT).as_posix()}"
        return f"]({address}{link['anchor'] or ''})"

    return OUTSIDE.sub(to_repository, markdown)
