"""A suite of three models × four benchmarks on loopback, killed twice and resumed, and an undisturbed one.

    python benchmarks/suite.py

Their leaderboards must be equal byte for byte. It takes about two minutes of CPU time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from suites import FOUR, proof, serving


def main() -> None:
    questions = [
        {"question_id": n, "domain": "FACTUAL"}
        | {f"level_{level}_text": f"Question {n}, told in {level} ways?" for level in (1, 2)}
        | {f"level_{level}_tokens": 8 for level in (1, 2)}
        for n in range(1, 7)
    ]
    begun = time.monotonic()
    differing = {
        "one": {"words": 6},
        "two": {"words": 30, "variants": 2},
        "three": {"words": 90, "variants": 9},
    }
    with tempfile.TemporaryDirectory() as name, serving(**differing) as servers:
        folder = Path(name)
        content = {"metadata": {"language": "English"}, "questions": questions}
        (folder / "questions.json").write_bytes(msgspec.json.encode(content))
        proof(folder, servers, FOUR)
        print((folder / "killed" / "leaderboard.md").read_text())
    print(f"equal, in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
