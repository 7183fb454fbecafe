"""How fast is a GPU used? MIRON's examples, answers, long prompts, embeddings; the libraries beside.

    python benchmarks/gpu.py [--tokenizer FOLDER] [--only miron answers embedding long] [--peers]

Needs torch, transformers and sentence-transformers, and a CUDA device; the models have random weights, in the
shape of SmolLM2-1.7B (bfloat16), of an 8B model (bfloat16, for `long`, which needs 40 GiB) and of
all-MiniLM-L6-v2 (float32), so that nothing is fetched. Times include the first pass; loading is apart.
`--peers` adds the generate() of transformers and the encode() of sentence-transformers; for `long` over one
batch of the prompts, its time multiplied up.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins

from sealegs.models.local.weights import use_expandable_memory

use_expandable_memory()  # as for a run, before torch is imported
import torch  # noqa: E402

from sealegs.harness.model import Model  # noqa: E402
from sealegs.models.local.batching import free_memory  # noqa: E402
from sealegs.models.registry import load_model  # noqa: E402
from sealegs.types import (  # noqa: E402
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    Response,
    Sampling,
)
from table import Row, show  # noqa: E402

WORDS = ["the", "boats", "come", "in", "at", "dawn", "with", "crates", "of", "fish", "and", "old", "light"]
EXAMPLES, ANSWERS, TOKENS, TEXTS = 4_000, 1_000, 256, 12_600
PEER_ROWS = 128
"""Of one batch of generate() on long prompts."""
LONG_PROMPTS, LEVELS, QUESTIONS, REPEATS = 1_000, (30, 60, 120, 250, 500, 1000, 2000), 40, 5
SHAPES = {
    "1.7B": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_key_value_heads": 32,
    },
    "8B": {
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokenizer", type=Path, help="a folder with a tokenizer  [default: one whose tokens are words]"
    )
    parser.add_argument("--only", nargs="*", default=["miron", "answers", "embedding"])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0, help="times the work: 0.1, 10")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    print(torch.cuda.get_device_name(), torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        if {"miron", "answers"} & set(args.only):
            causal = causal_model(Path(folder) / "causal", args.tokenizer, "1.7B")
            model = load_model(f"hf:{causal}", device="cuda")
            timed(lambda: list(model.answer([Embed(text="loads the weights")])), "load")
            if "miron" in args.only:
                miron(model, rng, int(EXAMPLES * args.scale))
            if "answers" in args.only:
                answers(model, rng, int(ANSWERS * args.scale))
            model.close()
            if args.peers:
                generate_peer(causal, rng, int(ANSWERS * args.scale))
                free_memory()
        if "long" in args.only:
            large = causal_model(Path(folder) / "large", args.tokenizer, "8B")
            model = load_model(f"hf:{large}", device="cuda")
            timed(lambda: list(model.answer([Embed(text="loads the weights")])), "load")
            asked = long_prompts(model, rng, args.scale)
            model.close()
            if args.peers:
                generate_long_peer(large, asked)
                free_memory()
        if "embedding" in args.only:
            embedding(Path(folder) / "sbert", args.tokenizer, rng, int(TEXTS * args.scale), peers=args.peers)


def timed(work: Callable[[], Any], name: str) -> tuple[Any, float]:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    used, held = torch.cuda.max_memory_allocated() / 2**30, torch.cuda.max_memory_reserved() / 2**30
    retries = torch.cuda.memory_stats()["num_alloc_retries"] - retries
    print(f"{name}: {seconds:.2f} s, {used:.1f} of {held:.1f} GiB used, {retries} retries", flush=True)
    return result, seconds


def words(rng: np.random.Generator, count: int) -> str:
    return " ".join(rng.choice(WORDS, count))


def miron(model: Any, rng: np.random.Generator, count: int) -> None:
    pairs = [
        (words(rng, int(rng.integers(4, 16))), f" {words(rng, int(rng.integers(1, 4)))}")
        for _ in range(count)
    ]
    requests: list[Request] = [
        request
        for prefix, target in pairs
        for request in (
            LogLikelihood(prefix=prefix, continuation=target),
            Generate(prompt=prefix, sampling=Sampling(max_tokens=8, stop=("\n",))),
        )
    ]
    rows: list[Row] = []
    for name in ("first pass", "second pass"):
        done, seconds = timed(lambda: dict(model.answer(requests)), f"MIRON, {name}")
        assert not any(response.status == "error" for response in done.values())
        rows.append((name, seconds, count / seconds))
    show(f"{count} examples scored and continued", rows)


def answers(model: Any, rng: np.random.Generator, count: int) -> None:
    model.causal().end_ids = frozenset()  # every answer has its full length
    rows: list[Row] = []
    for name, temperature, top_p in (
        ("sampled", 0.7, 1.0),
        ("sampled, top_p 0.9", 0.7, 0.9),
        ("greedy", 0.0, 1.0),
    ):
        requests = [
            Generate(
                prompt=(Message("user", words(rng, 20)),),
                sampling=Sampling(temperature=temperature, top_p=top_p, max_tokens=TOKENS, seed=number),
            )
            for number in range(count)
        ]
        _, seconds = timed(partial(_answered, model, requests), f"answers, {name}")
        rows.append((name, seconds, count * TOKENS / seconds))
    show(f"{count} answers of {TOKENS} tokens (tokens a second)", rows)


def long_prompts(
    model: Any, rng: np.random.Generator, scale: float
) -> dict[str, tuple[list[Generate], float]]:
    """As RGB asks, many documents and a short answer; and as MIRAE does, all lengths and five answers."""
    model.causal().end_ids = frozenset()  # every answer has its full length
    count, questions = int(LONG_PROMPTS * scale), int(QUESTIONS * scale)
    system = words(rng, 85)  # as long as RGB's, and the same before every prompt
    prompts = [f"{system} {words(rng, int(rng.normal(1_135, 80)))}" for _ in range(count)]
    rgb = [_asked(prompt, 40, 0.0, 0) for prompt in prompts]
    levels = [words(rng, length) for length in LEVELS for _ in range(questions)]
    mirae = [_asked(prompt, TOKENS, 0.7, repeat) for prompt in levels for repeat in range(REPEATS)]
    asked = {}
    for name, requests in (("RGB", rgb), ("MIRAE", mirae)):
        done, seconds = timed(partial(_answered, model, requests), f"long prompts, {name}")
        assert not any(response.status == "error" for response in done.values())
        asked[name] = requests, seconds
        show(f"An 8B model, {name}", [(f"{len(requests)} answers", seconds, len(requests) / seconds)])
    return asked


def _asked(prompt: str, tokens: int, temperature: float, repeat: int) -> Generate:
    sampling = Sampling(temperature=temperature, max_tokens=tokens, seed=0)
    return Generate(prompt=(Message("user", prompt),), sampling=sampling, repeat=repeat)


def _answered(model: Model, requests: list[Generate]) -> dict[Request, Response]:
    return dict(model.answer(requests))


def generate_long_peer(folder: Path, asked: dict[str, tuple[list[Generate], float]]) -> None:
    model, tokenizer = library_model(folder)
    for name, (requests, seconds_ours) in asked.items():
        part = requests[:: -(-len(requests) // PEER_ROWS)]
        chats = [[to_builtins(message) for message in request.prompt] for request in part]
        texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats]
        batch = tokenizer(texts, return_tensors="pt", padding=True).to("cuda")
        tokens, sampled = part[0].sampling.max_tokens, part[0].sampling.temperature > 0
        options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": sampled}
        _, taken = timed(
            partial(model.generate, **batch, **options),
            f"transformers' generate, {name}, one batch of {len(part)}",
        )
        seconds, count = taken * len(requests) / len(part), len(requests)
        rows: list[Row] = [
            (f"transformers' generate ({len(part)} of them)", seconds, count / seconds),
            ("sealegs", seconds_ours, count / seconds_ours),
        ]
        show(f"An 8B model, {name}, {count} answers", rows)


def library_model(folder: Path) -> tuple[Any, Any]:
    """A causal model and its tokenizer, as transformers itself gives them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.backends.cuda.enable_cudnn_sdp(True)  # as it is by itself: our own model has switched it off
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.eos_token
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to("cuda").eval(), tokenizer


def generate_peer(folder: Path, rng: np.random.Generator, count: int) -> None:
    model, tokenizer = library_model(folder)
    batch = tokenizer([words(rng, 20) for _ in range(count)], return_tensors="pt", padding=True).to("cuda")
    _, seconds = timed(
        lambda: model.generate(**batch, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False),
        "transformers' generate, greedy, one batch",
    )
    show("transformers' generate (tokens a second)", [("greedy", seconds, count * TOKENS / seconds)])


def embedding(
    folder: Path, tokenizer: Path | None, rng: np.random.Generator, count: int, *, peers: bool
) -> None:
    texts = [words(rng, 260) + f" {number}" for number in range(count)]  # cut at 256 tokens
    sbert_model(folder, tokenizer)
    model = load_model(f"sbert:{folder}", device="cuda")
    timed(lambda: list(model.answer([Embed(text="loads the weights")])), "load")
    rows: list[Row] = []
    for name in ("first pass", "second pass"):
        done, seconds = timed(
            lambda: {request: each.vector for request, each in model.answer(map(embed, texts))},
            f"embedding, {name}",
        )
        rows.append((name, seconds, count / seconds))
    model.close()
    if peers:
        from sentence_transformers import SentenceTransformer

        library = SentenceTransformer(str(folder), device="cuda")
        vectors, seconds = timed(
            lambda: library.encode(texts, batch_size=1024), "sentence-transformers, 1,024"
        )
        rows.append(("sentence-transformers", seconds, count / seconds))
        ours = np.stack([np.frombuffer(done[embed(text)], "<f4") for text in texts])
        print(f"largest difference of a number: {np.abs(ours - vectors).max():.1e}")
    show(f"{count} texts embedded", rows)


def embed(text: str) -> Embed:
    return Embed(text=text)


def causal_model(folder: Path, tokenizer: Path | None, shape: str) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM

    copy_tokenizer(folder, tokenizer)
    torch.manual_seed(0)
    config = LlamaConfig(
        **SHAPES[shape], num_attention_heads=32, vocab_size=49_152, max_position_embeddings=8192,
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    with torch.device("cuda"):
        LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


def sbert_model(folder: Path, tokenizer: Path | None) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel

    inner = folder.with_name("bert")
    copy_tokenizer(inner, tokenizer)
    (inner / "chat_template.jinja").unlink(missing_ok=True)  # with one, every text would become a chat
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=384,
        intermediate_size=1536,
        num_hidden_layers=6,
        num_attention_heads=12,
        vocab_size=49_152,
    )
    BertModel(config).save_pretrained(inner)
    module = Transformer(str(inner), max_seq_length=256)
    SentenceTransformer(modules=[module, Pooling(384)], device="cpu").save(str(folder))


def copy_tokenizer(folder: Path, tokenizer: Path | None) -> None:
    folder.mkdir(parents=True)
    if tokenizer is None:
        word_tokenizer().save_pretrained(folder)
        return
    for path in tokenizer.iterdir():
        if path.suffix in (".json", ".jinja", ".txt") and path.name not in (
            "config.json",
            "generation_config.json",
        ):
            (folder / path.name).write_bytes(path.read_bytes())


def word_tokenizer() -> Any:
    """Bytes, and one token for each of the words, as a large vocabulary has."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator([word for each in WORDS for word in (each, f" {each}")], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    # About as long around a question as a template with a system message.
    tokenizer.chat_template = f"{' '.join(2 * WORDS)} {{{{ messages[0].content }}}} {' '.join(WORDS[:5])}"
    return tokenizer


if __name__ == "__main__":
    main()
