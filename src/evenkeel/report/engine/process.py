"""Draws charts until its input ends; started by `client.py` as a script, and importing nothing of Evenkeel.

Each line of the input is a JSON object: `format` (svg or png) and `chart`, a Vega-Lite specification as text.
Each line of the output is one too: `content` (of a PNG in Base64), or `error`.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any


def draw(request: dict[str, str]) -> dict[str, Any]:
    try:
        import vl_convert

        if request["format"] == "png":
            png = vl_convert.vegalite_to_png(request["chart"], scale=2, allowed_base_urls=[])
            return {"content": base64.b64encode(png).decode()}
        return {"content": vl_convert.vegalite_to_svg(request["chart"], allowed_base_urls=[])}
    except Exception as error:  # noqa: BLE001  # whatever it is, the client says it
        return {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not an answer
    draw({"format": "svg", "chart": '{"data": {"values": []}, "mark": "point"}'})  # starts the engine
    for line in sys.stdin.buffer:
        answers.write(json.dumps(draw(json.loads(line))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
