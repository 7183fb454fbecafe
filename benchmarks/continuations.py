"""How fast are texts scored and continued? One example at a time, as published, against ours.

    python benchmarks/continuations.py [--model FOLDER] [--examples N] [--device cuda] [--dtype bfloat16]

Takes MIRON's starter set, both languages. The naive way reads prefix + target for the log-probabilities, and
then has transformers' own generate() read the prefix again; it runs over a part of the examples, and its time
is multiplied up. Without --model it is the embedded model.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

from sealegs.benchmarks.miron.make.generator import compose
from sealegs.models.embedded import embedded_folder
from sealegs.models.registry import load_model
from sealegs.types import Generate, LogLikelihood, Sampling
from table import Row, show

TOKENS = 8
"""Of each continuation."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", metavar="FOLDER", help="a model's folder  [default: the embedded model]")
    parser.add_argument("--examples", type=int, default=None, metavar="N", help="take only the first N")
    parser.add_argument("--naive", type=int, default=40, metavar="N", help="examples of the naive way")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()

    folder = args.model or str(embedded_folder())
    pairs = [(row.prefix, row.target) for lang in ("en", "ru") for row in compose(lang)][: args.examples]
    model = load_model(f"hf:{folder}", device=args.device, dtype=args.dtype)
    list(model.answer([LogLikelihood(prefix="load the weights", continuation=" before the clock starts")]))
    requests = [
        request
        for prefix, target in pairs
        for request in (
            LogLikelihood(prefix=prefix, continuation=target),
            Generate(prompt=prefix, sampling=Sampling(max_tokens=TOKENS, stop=("\n",))),
        )
    ]
    start = time.perf_counter()
    done = dict(model.answer(requests))
    seconds_ours = time.perf_counter() - start
    model.close()

    part = pairs[:: max(1, len(pairs) // args.naive)]
    seconds, agree = naive(folder, part, args.device, args.dtype, done)
    seconds_naive = seconds * len(pairs) / len(part)
    rows: list[Row] = [
        (f"one at a time ({len(part)} of them)", seconds_naive, len(pairs) / seconds_naive),
        ("together, one reading for both", seconds_ours, len(pairs) / seconds_ours),
    ]
    show(f"{len(pairs)} examples on {args.device}, {args.dtype}", rows)
    print(f"the same text as the naive way: {agree} of {len(part)}")


@torch.inference_mode()
def naive(
    folder: str, pairs: list[tuple[str, str]], device: str, dtype: str, done: dict[Any, Any]
) -> tuple[float, int]:
    """Seconds for these examples, and how many texts are the same as ours."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).to(device).eval()
    agree = 0
    start = time.perf_counter()
    for prefix, target in pairs:
        before = tokenizer(prefix, return_tensors="pt").input_ids.to(device)
        whole = tokenizer(prefix + target, return_tensors="pt").input_ids.to(device)
        logprobs = model(whole).logits[0].float().log_softmax(-1)
        logprobs[
            torch.arange(before.shape[1] - 1, whole.shape[1] - 1), whole[0, before.shape[1] :]
        ].exp().mean().item()
        written = model.generate(
            before, attention_mask=torch.ones_like(before), max_new_tokens=TOKENS, do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )  # fmt: skip
        text = tokenizer.decode(written[0, before.shape[1] :], skip_special_tokens=True).partition("\n")[0]
        ours = done[Generate(prompt=prefix, sampling=Sampling(max_tokens=TOKENS, stop=("\n",)))]
        agree += text == ours.text
    return time.perf_counter() - start, agree


if __name__ == "__main__":
    main()
