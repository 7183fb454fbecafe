"""What does a kill cost? A run is killed with SIGKILL again and again, then finished, and compared with one
that was left alone.

    python benchmarks/kills.py
    python benchmarks/kills.py --kills 100 --at-start 40 --connections 64 --seed 1

Kills alternate between a number of answers after the start and a file that the process touches. Those at the
start each kill a run of their own in the first 50 ms after its folder has appeared. An answer
counts as repeated if it was sent as a whole and asked for again after a kill; as late if it had been sent
more than 50 ms before that kill.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from killing import PROMISED_S, Killed, Timed, contents

RESULTS = ("records.jsonl", "summary.json", "export")


def repeats(killed: Killed, server: Timed) -> list[float]:
    """Of each answer that was sent twice: how many seconds before the next kill the first one was sent."""
    first: dict[str, float] = {}
    seconds = []
    for at, text in server.sent:
        if text in first:
            kills = (kill - first[text] for kill in killed.kills if kill > first[text])
            seconds.append(min(kills, default=math.inf))
        first[text] = at
    return seconds


def different_results(folder: Path, whole: Path) -> list[str]:
    ours, expected = contents(folder), contents(whole)
    results = {name for name in {**ours, **expected} if name.startswith(RESULTS)}
    return sorted(name for name in results if ours.get(name) != expected.get(name))


def kill_at_start(parent: Path, server: Timed, number: int, chosen: random.Random) -> list[str]:
    """What came out different, or failed, of small runs that were each killed while they began."""
    problems = []

    def run(out: Path) -> Killed:
        arguments = [
            "run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--limit", 1, "--levels", 1,
            "--embedder", "openai:embed", "--model-arg", "send_seed=true", "--out", out,
        ]  # fmt: skip
        return Killed(arguments, out, server)

    whole = parent / "small"
    run(whole).finish()
    for attempt in range(number):
        folder = parent / f"small-{attempt}"
        killed = run(folder)
        killed.kill_after_start(chosen.uniform(0, PROMISED_S))
        killed.finish()
        different = different_results(folder, whole)
        unexpected = sorted(contents(folder).keys() - contents(whole).keys())
        problems += [f"{folder.name}: {text}" for text in (*killed.errors, *different, *unexpected)]
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--at-start", type=int, default=12, help="so many of the kills")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # connections that a kill has cut
    chosen = random.Random(settings.seed)
    with tempfile.TemporaryDirectory() as parent, Timed(latency=settings.latency, words=100) as server:
        whole, log = (Path(parent) / name for name in ("whole", "files"))

        def run(out: Path) -> Killed:
            arguments = [
                "run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--limit",
                settings.questions, "--embedder", "openai:embed", "--model-arg", "send_seed=true",
                "--concurrency", settings.connections, "--out", out,
            ]  # fmt: skip
            return Killed(arguments, out, server)

        problems = kill_at_start(Path(parent), server, settings.at_start, chosen)
        early = len(problems)
        server.sent.clear()
        run(whole).finish(log)
        asked, files = len(server.sent), int(log.read_text())
        later, kills = settings.kills - settings.at_start, 0
        share = asked // max(1, later)
        lost: list[float] = []
        different: list[str] = []
        unexpected: list[str] = []
        while kills < later:  # a run that ends before it is killed is followed by another
            folder = Path(parent) / f"run-{kills}"
            server.sent.clear()
            killed = run(folder)
            for number in range(later - kills):
                if number % 3 == 2:
                    killed.kill_at_file(chosen.randint(1, files * 2 // 5))
                else:
                    killed.kill_at_answer(chosen.randint(1, max(2, share)))
                if (folder / "report.html").is_file():
                    break
            killed.finish()
            kills += len(killed.kills)
            lost += repeats(killed, server)
            different += different_results(folder, whole)
            unexpected += sorted(contents(folder).keys() - contents(whole).keys())
            problems += killed.errors
    print(f"kills in the first 50 ms       {settings.at_start:,}, of which differ or fail: {early}")
    print(f"answers                        {asked:,}")
    print(f"kills                          {kills:,} at {settings.connections} connections")
    print(f"answers sent and repeated      {len(lost):,}")
    print(f"  sent > {PROMISED_S * 1000:.0f} ms before the kill   {sum(one > PROMISED_S for one in lost):,}")
    print(f"results that differ            {', '.join(dict.fromkeys(different)) or 'none'}")
    print(f"files left over                {', '.join(dict.fromkeys(unexpected)) or 'none'}")
    for error in problems:
        print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
