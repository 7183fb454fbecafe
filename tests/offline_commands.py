"""What needs no network, one command after the other in one process: python tests/offline_commands.py FOLDER
WHAT, with WHAT one of commands, app. Writes the commands with their exit codes to FOLDER/WHAT.json."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import msgspec

from commandline import command, sealegs
from loopback import Loopback

PATIENCE = 300
SUITE = """
models:
  - {spec: "openai:loop", base_url: "ADDRESS", args: {api_key_env: NO_KEY}}
benchmarks:
  - {benchmark: rgb, limit: 1, options: {ability: noise, noise_rates: "0"}}
"""
COMMANDS = """
--help
--version
doctor
list benchmarks
list models
data list
build mirae --out data/mirae --seed 3
build miron --out data/miron --seed 3 --per-category 2
build multiview --out data/multiview --seed 3
run rgb SERVED --limit 1 --ability noise --noise-rates 0 --out runs/rgb
rescore runs/rgb
suite suite.yaml --out suite
run mirae SERVED EMBEDDER --limit 1 --levels 1 --repeats 2 --out runs/mirae
run miron SERVED --limit 8 --out runs/miron
run miron --model replay:runs/miron --limit 8 --lang en --out runs/replayed
run multiview --method bm25 --method embed:embedded-embedder --limit 1 --out runs/multiview
score miron runs/miron/export/miron_en.jsonl --out runs/scored
list runs
compare runs/miron runs/replayed
gate runs/replayed --baseline runs/miron
report runs/mirae
report runs/miron runs/replayed --out pages/report.html
scorecard runs/mirae runs/rgb runs/miron --out pages/scorecard.html
export runs/miron --to csv --out exports/miron.csv
export runs/miron --to parquet --out exports/miron.parquet
export runs/miron --to published --out exports/published
export runs/miron --to every-eval-ever --out exports/every
export runs/miron --to hub --out exports/hub
tokenizers embedded --data data/miron --out pages/tokenizers.html
"""


def run_all(text: str) -> list[tuple[str, int, str]]:
    """Each command with its exit code, and the end of what it printed. SERVED is a model on a server of this
    machine."""
    outcomes = []
    with Loopback(words=20) as server:
        Path("suite.yaml").write_text(SUITE.replace("ADDRESS", server.url))
        models = {
            "SERVED": ("--model", "openai:loop", "--base-url", server.url, "--lang", "en"),
            "EMBEDDER": ("--embedder", f"openai:embed?base_url={server.url}"),
        }
        for line in text.strip().splitlines():
            words = [word for part in line.split() for word in models.get(part, (part,))]
            outcome = sealegs(*words, OPENAI_API_KEY="none")
            outcomes.append((line, outcome.code, outcome.output[-2000:]))
    return outcomes


def visit_app() -> list[tuple[str, int, str]]:
    """Start the app, load its page and what the page loads, end it."""
    log = Path("app.log")
    with log.open("w") as file:
        process = subprocess.Popen(command("app", "--port", 0, "--no-open"), stderr=file, stdout=file)
    try:
        deadline = time.monotonic() + PATIENCE
        while " is at http" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                return [("app", process.returncode or 1, log.read_text())]
            time.sleep(0.1)
        address = log.read_text().partition(" is at ")[2].split()[0]
        outcomes = []
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address, timeout=PATIENCE).close()
        url = address.partition("/?")[0]
        for path in ("/", "/new-run", "/explained", "/static/app.css"):
            with browser.open(f"{url}{path}", timeout=PATIENCE) as reply:
                outcomes.append((path, int(reply.status != 200), reply.read().decode()))
        return outcomes
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    os.chdir(folder)
    for name in ("pages", "exports"):
        Path(name).mkdir(exist_ok=True)
    outcomes = visit_app() if what == "app" else run_all(COMMANDS)
    Path(f"{what}.json").write_bytes(msgspec.json.encode(outcomes))


if __name__ == "__main__":
    main()
