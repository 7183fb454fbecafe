"""The same 2,000 requests as other harnesses would be told to make them.

lm-eval and Inspect are measured where they are installed; nothing here is needed otherwise.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

import msgspec

LM_EVAL = "lm_eval"
INSPECT = "inspect"
WORDS = [
    "harbour",
    "ledger",
    "meadow",
    "copper",
    "lantern",
    "orchard",
    "pebble",
    "saddle",
    "timber",
    "violet",
    "window",
    "yarn",
]


class Command(NamedTuple):
    argv: list[str]
    env: dict[str, str]


def write_questions(path: Path, number: int) -> Path:
    """A MIRAE question file of `number` different prompts of about 60 words."""
    rng = random.Random(0)
    questions = [
        {
            "question_id": n,
            "domain": "FACTUAL",
            "level_1_text": f"Question {n}: {' '.join(rng.choices(WORDS, k=60))}?",
        }
        for n in range(number)
    ]
    path.write_bytes(msgspec.json.encode({"metadata": {"language": "English"}, "questions": questions}))
    return path


def _prompts(questions: Path) -> list[str]:
    return [item["level_1_text"] for item in msgspec.json.decode(questions.read_bytes())["questions"]]


def lm_eval_command(
    url: str, questions: Path, folder: Path, repeats: int, connections: int
) -> Command | None:
    """lm-eval has no repeats that differ, so each prompt stands in its data set as often as it is asked."""
    if not shutil.which(LM_EVAL):
        return None
    lines = [
        {"question": f"{text} ({n})", "answer": "-"} for text in _prompts(questions) for n in range(repeats)
    ]
    (folder / "lm.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    task = f"""\
task: loop
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / "lm.jsonl"}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: [], max_gen_toks: 256, do_sample: false}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""
    (folder / "loop.yaml").write_text(task)
    model = f"model=loop,base_url={url}/chat/completions,num_concurrent={connections},max_retries=3"
    argv = [
        LM_EVAL, "--model", "local-chat-completions", "--model_args", f"{model},tokenized_requests=False",
        "--tasks", "loop", "--include_path", str(folder), "--apply_chat_template",
        "--output_path", str(folder / "lm"),
    ]  # fmt: skip
    return Command(argv, {"OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"})


def inspect_command(
    url: str, questions: Path, folder: Path, repeats: int, connections: int
) -> Command | None:
    """One sample a prompt and as many epochs as repeats."""
    if not shutil.which(INSPECT):
        return None
    samples = [{"input": text, "target": "-"} for text in _prompts(questions)]
    (folder / "inspect.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, samples)))
    (folder / "loop_task.py").write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import json_dataset\n"
        "from inspect_ai.scorer import includes\n"
        "from inspect_ai.solver import generate\n\n\n"
        "@task\n"
        "def loop():\n"
        f"    samples = json_dataset({str(folder / 'inspect.jsonl')!r})\n"
        "    return Task(samples, solver=generate(), scorer=includes())\n"
    )
    argv = [
        INSPECT, "eval", "loop_task.py", "--model", "openai/loop", "-M", "responses_api=false",
        "--epochs", str(repeats),
        "--max-tokens", "256",
        "--max-connections", str(connections), "--max-samples", str(connections), "--display", "none",
        "--log-dir", str(folder / "inspect-logs"),
    ]  # fmt: skip
    return Command(argv, {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url})
