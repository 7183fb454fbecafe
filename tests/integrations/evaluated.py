"""Run by test_inspect.py in an environment that has inspect-ai: evaluate, export runs.

python evaluated.py FOLDER < jobs.json > results.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.analysis import evals_df, messages_df
from inspect_ai.log import EvalLog, read_eval_log

from sealegs.harness.folder import load_run
from sealegs.inspect import tasks
from sealegs.inspect.export import export_log


def summary(log: EvalLog) -> dict[str, Any]:
    """What a test looks at in a log."""
    assert log.results is not None
    return {
        "status": log.status,
        "task": log.eval.task,
        "headline": log.results.headline and log.results.headline.metric,
        "metrics": {
            name: {"value": metric.value, "metadata": metric.metadata}
            for score in log.results.scores
            for name, metric in score.metrics.items()
        },
        "usage": {name: usage.model_dump() for name, usage in log.stats.model_usage.items()},
        "samples": [
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "values": sample.scores["sealegs"].value if sample.scores else None,
                "explanation": sample.scores["sealegs"].explanation if sample.scores else None,
                "answer": sample.output.completion,
                "messages": [message.text for message in sample.messages],
                "error": sample.error and sample.error.message,
            }
            for sample in log.samples or ()
        ],
        "reductions": {
            str(score.sample_id): score.value
            for reduction in log.reductions or ()
            for score in reduction.samples
        },
    }


def frames(path: Path, *, asked: bool) -> dict[str, Any]:
    """What Inspect's data frames make of a log; that of messages reads none without a model's calls."""
    roles = list(messages_df(str(path))["role"]) if asked else []
    evals = evals_df(str(path))
    return {
        "frame": {"messages": len(roles), "roles": sorted(set(roles))},
        "stderr": evals["score_headline_stderr"].tolist()[0],
        "headline_name": evals["score_headline_metric"].tolist()[0],
    }


def main() -> None:
    folder, jobs = Path(sys.argv[1]), json.load(sys.stdin)
    results: dict[str, Any] = {}
    for name, job in jobs["tasks"].items():
        task = getattr(tasks, job["benchmark"])(**job["parameters"])
        [log] = evaluate(task, model=job["model"], log_dir=str(folder / "logs" / name), display="none")
        results[name] = {**summary(log), "log": log.location}
    for name in jobs["exported"]:
        path = export_log(load_run(folder / name), folder / f"{name}.eval")
        log = summary(read_eval_log(str(path)))
        asked = any(sample["messages"] for sample in log["samples"])
        results[f"{name}-exported"] = {**log, **frames(path, asked=asked)}
    json.dump(results, sys.stdout, default=lambda missing: None)


if __name__ == "__main__":
    main()
