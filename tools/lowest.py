"""Write constraints-lowest.txt: every main dependency at the lowest version that pyproject.toml allows.

    python tools/lowest.py [--check]

`make lowest` installs the package with it and runs the tests. Those of the extras are included; what only
tests and checks need (the extra dev) is not, nor is what the main dependencies bring along. With --check
nothing is written, and it ends with 1 where the file is not what would be written.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "constraints-lowest.txt"
HEADER = (
    "# Written by tools/lowest.py: the main dependencies at the lowest versions that pyproject.toml allows."
)


def lowest(project: dict[str, object]) -> list[str]:
    """A line `NAME==VERSION` for every requirement `NAME>=VERSION` of the package and its extras."""
    extras = project["optional-dependencies"]
    texts = project["dependencies"]
    assert isinstance(extras, dict)
    assert isinstance(texts, list)
    texts = [*texts, *(text for extra, each in extras.items() if extra != "dev" for text in each)]
    lines = set()
    for text in texts:
        requirement = Requirement(text)
        if requirement.name == project["name"]:
            continue
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        if len(bounds) != 1:
            sys.exit(f"pyproject.toml: {text} has no lower bound. Expected: NAME>=VERSION.")
        lines.add(f"{requirement.name}=={bounds[0]}")
    return sorted(lines, key=str.lower)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    arguments = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = "\n".join([HEADER, *lowest(project), ""])
    if not arguments.check:
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.is_file() or FILE.read_text(encoding="utf-8") != text:
        sys.exit(f"{FILE.name} does not match pyproject.toml. Run: python tools/lowest.py")


if __name__ == "__main__":
    main()
