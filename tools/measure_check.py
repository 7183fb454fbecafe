"""Measure the lenient check of RGB on its labelled replies and write the figures that the report prints.

Run it after a change of the check, of its phrases or of the labelled replies:

    python tools/measure_check.py
"""

from __future__ import annotations

import msgspec

from evenkeel.benchmarks.rgb.check import accuracy
from evenkeel.files.package_data import data_path


def main() -> None:
    figures = accuracy.measured()
    content = msgspec.json.format(msgspec.json.encode(figures), indent=1)
    data_path(accuracy.PACKAGE, "labelled", "accuracy.json").write_bytes(content + b"\n")
    for item in figures:
        print(f"{item.lang} {item.half:8}{item.decision:10}precision {item.precision}  recall {item.recall}")


if __name__ == "__main__":
    main()
