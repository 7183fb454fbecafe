"""Look up the known vulnerabilities of every pinned version, in the data that PyPI publishes.

    python tools/audit.py [FILE …]        constraints.txt and constraints-inspect.txt, where none is given

PyPI describes each release under /pypi/NAME/VERSION/json. A mirror may describe the newest release only, in
/pypi/NAME/json: then a pinned version that is not the newest cannot be looked up, and is listed so.
Ends with 1 where a pinned version has a known vulnerability, with 2 where none is known but some could not
be looked up.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
FILES = (ROOT / "constraints.txt", ROOT / "constraints-inspect.txt")
INDEX = "https://pypi.org/pypi"
TIMEOUT_S = 60
CONNECTIONS = 8


@dataclass(frozen=True)
class Finding:
    """What is known of one pinned version: `problem` says why it could not be looked up, else it is empty."""

    name: str
    version: str
    vulnerabilities: tuple[str, ...] = ()
    problem: str = ""


def pinned(path: Path) -> list[tuple[str, str]]:
    """Name and version of every line `NAME==VERSION`; a line of another form is an error."""
    pins = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        requirement = Requirement(text)
        [specifier] = requirement.specifier or [None]
        if specifier is None or specifier.operator != "==":
            sys.exit(f"{path}:{number}: {text} does not pin a version. Expected: NAME==VERSION.")
        pins.append((requirement.name, specifier.version))
    return pins


def look_up(pin: tuple[str, str], index: str = INDEX) -> Finding:
    name, version = pin
    try:
        content = fetch(f"{index}/{name}/{version}/json") or fetch(f"{index}/{name}/json")
        if content is None:
            return Finding(name, version, problem="not in the index")
        newest = content["info"]["version"]
        if Version(newest) != Version(version):
            return Finding(name, version, problem=f"the index describes only the newest, {newest}")
        entries = [entry for entry in content["vulnerabilities"] if not entry.get("withdrawn")]
        return Finding(name, version, tuple(described(entry) for entry in entries))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Finding(name, version, problem=f"{type(error).__name__}: {error}")


def fetch(url: str) -> dict[str, Any] | None:
    """The JSON object at an address; None where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            content: dict[str, Any] = json.load(response)
            return content
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def described(entry: dict[str, Any]) -> str:
    fixed = ", ".join(entry.get("fixed_in") or ()) or "no release"
    return f"{entry['id']} (fixed in {fixed})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    parser.add_argument("--index", default=INDEX, help=f"another index than {INDEX}")
    arguments = parser.parse_args()
    pins = sorted({pin for path in arguments.files for pin in pinned(path)}, key=lambda pin: pin[0].lower())
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        findings = list(pool.map(lambda pin: look_up(pin, arguments.index), pins))
    vulnerable = [finding for finding in findings if finding.vulnerabilities]
    unknown = [finding for finding in findings if finding.problem]
    for finding in vulnerable:
        print(f"{finding.name} {finding.version}: {'; '.join(finding.vulnerabilities)}")
    for finding in unknown:
        print(f"{finding.name} {finding.version}: not looked up: {finding.problem}")
    print(
        f"{len(findings)} pinned versions: {len(vulnerable)} with known vulnerabilities, "
        f"{len(findings) - len(vulnerable) - len(unknown)} without, {len(unknown)} not looked up"
    )
    sys.exit(1 if vulnerable else 2 if unknown else 0)


if __name__ == "__main__":
    main()
