"""Write the pages of docs/gallery: complete runs, as a person gets them, and the index that lists them.

    python tools/gallery.py                    everything at full size: hours of a CPU
    python tools/gallery.py mirae=4 rgb=10     these benchmarks on so many questions of each language or task
    python tools/gallery.py --pages            only write the pages of what has been run
    python tools/gallery.py --device cuda      the embedded model on a GPU: minutes

The runs are below runs/gallery; the same call resumes there, and a smaller run takes the answers of the full
one. The index states the size that was run. Published answers are read from SEALEGS_REFERENCE_DATA, or
../shared/data; of them the page holds figures alone, and without them its page stays as it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs" / "gallery"
OUT = ROOT / "docs" / "gallery"
SUITE = Path(__file__).with_suffix(".yaml")
PUBLISHED = Path("mirae", "MIRAE_claude_haiku_results_english.json")
LONGEST = "--max-tokens 1024"
"""Enough for what ends by itself: of 22 answers that did, the longest had 584 tokens. To longer prompts
many repeat a sentence without end: three of four at level 7 still did at 2,048 tokens."""
TEMPERATURES = f"mirae --model embedded {LONGEST} --levels 1,3 --repeats 3 --temperature"

BENCHMARKS = {
    "mirae": f"mirae --model embedded {LONGEST}",
    "rgb": "rgb --model embedded",
    "miron": "miron --model embedded",
    "multiview": "multiview --method bm25 --method embed:embedded-embedder --method judge:embedded",
    "temperature-0": f"{TEMPERATURES} 0",
    "temperature-1": f"{TEMPERATURES} 1",
}
"""What is run, by the name that its size is given for."""

PAIR = ("temperature-0", "temperature-1")
FOUR = ("mirae", "rgb", "miron", "multiview")


class Page(NamedTuple):
    """A page of the gallery."""

    name: str
    shows: str
    runs: tuple[str, ...] = ()
    """Which of `BENCHMARKS` it is of: the index says their sizes."""


PAGES = (
    Page("scorecard", "the four benchmarks on one page, each with its verdict", FOUR),
    Page("mirae", "consistency, by length of the prompt and domain; of long prompts, many answers repeat "
         "a sentence until they are cut off, so the page calls itself a test run", ("mirae",)),
    Page("rgb", "retrieval robustness: four abilities of a model that is too small for them", ("rgb",)),
    Page("miron", "a base model's tests, asked of a small chat model: morphology, facts, typos", ("miron",)),
    Page("multiview", "BM25, an embedder and a judge on the same triplets, side by side", ("multiview",)),
    Page("temperatures", "a comparison: temperature 0, which repeats itself by construction, and 1", PAIR),
    Page("gate", "a gate that fails: temperature 1 against a baseline at temperature 0", PAIR),
    Page("leaderboard", "a suite's leaderboard: one model that samples from more or fewer tokens"),
    Page("claude-3-5-haiku", "1,400 published answers of Claude 3.5 Haiku, scored again: figures, no texts"),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", metavar="NAME=LIMIT", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--pages", action="store_true", help="only write pages")
    parser.add_argument("--device", default="cpu", help="where the embedded model under test runs")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    limits, out = sizes(given.sizes), given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    given.runs.mkdir(parents=True, exist_ok=True)
    os.chdir(given.runs)  # so that no page has a path of this machine
    if not given.pages:
        run_all(limits, given.device)
    write_pages(out, limits)
    write_index(out, limits, given.device)


def sizes(texts: list[str]) -> dict[str, int]:
    pairs = [text.partition("=") for text in texts]
    if wrong := [name for name, _, limit in pairs if name not in BENCHMARKS or not limit.isdigit()]:
        sys.exit(f"{wrong[0]}: NAME=LIMIT is expected, with NAME one of {', '.join(BENCHMARKS)}.")
    return {name: int(limit) for name, _, limit in pairs}


def folder(name: str, limits: Mapping[str, int]) -> Path:
    """A run's folder; a smaller run has one of its own, since its spec is another."""
    return Path(f"{name}-limit-{limits[name]}" if name in limits else name)


def run_all(limits: Mapping[str, int], device: str) -> None:
    """The cheapest first, so that what is ready early can be looked at."""
    for name in ("temperature-0", "temperature-1", "multiview", "miron", "rgb", "mirae"):
        small = ("--limit", limits[name]) if name in limits else ()
        reuse = ("--reuse", name) if small and Path(name, "journal.sqlite").is_file() else ()
        where = ("--model-arg", f"device={device}") if "--model embedded" in BENCHMARKS[name] else ()
        sealegs("run", *BENCHMARKS[name].split(), *where, *small, *reuse, "--out", folder(name, limits))
    sealegs("suite", SUITE, "--out", "suite")
    if (answers := published()).is_file():
        sealegs("score", "mirae", answers, "--out", "claude-3-5-haiku")


def published() -> Path:
    return Path(os.environ.get("SEALEGS_REFERENCE_DATA", ROOT.parent / "shared" / "data")) / PUBLISHED


def write_pages(out: Path, limits: Mapping[str, int]) -> None:
    """The pages of what is there: drawn again, so that they are of this version."""
    four = {name: run for name in FOUR if finished(run := folder(name, limits))}
    for name, run in four.items():
        sealegs("report", run, "--out", out / f"{name}.html")
    if four:
        sealegs("scorecard", *four.values(), "--out", out / "scorecard.html")
    cold, hot = (folder(name, limits) for name in ("temperature-0", "temperature-1"))
    if finished(cold) and finished(hot):
        sealegs("report", cold, hot, "--out", out / "temperatures.html")
        gate = ("--baseline", cold, "--max-drop", "0.05", "--format", "html", "--out", out / "gate.html")
        sealegs("gate", hot, *gate, code=1)
    if finished(recorded := Path("claude-3-5-haiku")):
        sealegs("report", recorded, "--no-samples", "--out", out / "claude-3-5-haiku.html")
    if (board := Path("suite", "leaderboard.html")).is_file():
        if any(board.parent.glob("*/summary.json")):
            sealegs("suite", SUITE, "--out", "suite")  # nothing is asked: its boards are drawn again
        shutil.copyfile(board, out / "leaderboard.html")
        for old in out.glob("*/report.html"):
            shutil.rmtree(old.parent)
        for report in board.parent.glob("*/report.html"):  # the leaderboard links to them
            target = out / report.relative_to(board.parent)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(report, target)


def finished(run: Path) -> bool:
    return (run / "summary.json").is_file()


def write_index(out: Path, limits: Mapping[str, int], device: str) -> None:
    rows = [
        f"| [{page.name}]({page.name}.html) | {page.shows} | {size(page, limits)} |"
        for page in PAGES
        if (out / f"{page.name}.html").is_file()
    ]
    made = {name for page in PAGES if (out / f"{page.name}.html").is_file() for name in page.runs}
    where = "" if device == "cpu" else f", the model with `--model-arg device={device}`"
    text = f"""# Gallery

Finished runs, each the page that a run ends with: open one in a browser (on GitHub, download it first). The
model under test is the embedded one, SmolLM2-135M-Instruct with **Q4_1** weights: four bits each, so its
figures are not those of the unquantised model. That holds for the scorecard, the gate and the leaderboard
too, whose pages do not repeat it. It is here since everyone can run it, not because it is good.

| page | shows | size |
| --- | --- | --- |
{chr(10).join(rows)}

The commands, each with `--limit` where a size is given{where}:

```
{chr(10).join(f"sealegs run {BENCHMARKS[name]}" for name in BENCHMARKS if name in made)}
sealegs scorecard {" ".join(FOUR)} --out scorecard.html
sealegs gate temperature-1 --baseline temperature-0 --max-drop 0.05
```

Written by `make gallery`; the suite is [gallery.yaml](../../tools/gallery.yaml).
"""
    (out / "index.md").write_text(text, encoding="utf-8")


def size(page: Page, limits: Mapping[str, int]) -> str:
    """What was run of the data, in words."""
    if not page.runs:
        return "as in its file" if page.name == "leaderboard" else "all"
    given = {limits.get(name) for name in page.runs}
    words = {f"{limit} questions of each language, data set or task" if limit else "full" for limit in given}
    return ", ".join(sorted(words))


def sealegs(*arguments: object, code: int = 0) -> None:
    """Run a command as a person would; where it ends otherwise than with `code`, so does this."""
    words = list(map(str, arguments))
    print("sealegs", *words, flush=True)
    done = subprocess.run([sys.executable, "-m", "sealegs", *words], stdin=subprocess.DEVNULL, check=False)
    if done.returncode != code:
        sys.exit(f"sealegs {' '.join(words)} ended with {done.returncode}; the same call resumes.")


if __name__ == "__main__":
    main()
