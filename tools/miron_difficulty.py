"""Say which examples of MIRON's starter set are easy: those that the embedded model continues rightly.

    sealegs run miron --model embedded --out RUN
    python tools/miron_difficulty.py RUN

Writes `difficulty.json`, from which every example of the set gets its tag.
"""

from __future__ import annotations

import json
import sys

import sealegs as sl
from sealegs.benchmarks.miron.data import digest_of
from sealegs.files.package_data import data_path


def main(folder: str) -> None:
    digests: dict[str, list[str]] = {"easy": [], "hard": []}
    for record in sl.load_run(folder).records():
        inputs, right = record.sample.inputs, record.score.values.get("accepted_match")
        digests["easy" if right == 1 else "hard"].append(digest_of(inputs.prefix, inputs.target))
    path = data_path("sealegs.benchmarks.miron", "difficulty.json")
    lines = [
        f' "{name}": [\n' + ",\n".join(f'  "{each}"' for each in sorted(set(several))) + "\n ]"
        for name, several in digests.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    json.loads(path.read_text(encoding="utf-8"))
    print(f"{path}: {', '.join(f'{len(several):,} {name}' for name, several in digests.items())}")


if __name__ == "__main__":
    main(*sys.argv[1:])
