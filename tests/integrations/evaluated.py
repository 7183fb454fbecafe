"""Run by test_inspect.py in an environment that has inspect-ai: evaluate, score the logs, export runs.

python evaluated.py FOLDER < jobs.json > results.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog, read_eval_log

from evenkeel.harness.folder import load_run
from evenkeel.inspect import tasks
from evenkeel.inspect.export import export_log
from evenkeel.inspect.recorded import score_log


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
                "values": sample.scores["evenkeel"].value if sample.scores else None,
                "explanation": sample.scores["evenkeel"].explanation if sample.scores else None,
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


def main() -> None:
    folder, jobs = Path(sys.argv[1]), json.load(sys.stdin)
    results: dict[str, Any] = {}
    for name, job in jobs["tasks"].items():
        task = getattr(tasks, job["benchmark"])(**job["parameters"])
        [log] = evaluate(task, model=job["model"], log_dir=str(folder / "logs" / name), display="none")
        results[name] = {**summary(log), "log": log.location}
    for name, (benchmark, options) in jobs["scored"].items():
        log_file = next(iter(sorted((folder / "logs" / name).glob("*.eval"))))
        score_log(benchmark, log_file, out=folder / f"{name}-scored", progress=False, **options)
    for name, (benchmark, options) in jobs["exported"].items():
        path = export_log(load_run(folder / name), folder / f"{name}.eval")
        results[f"{name}-exported"] = summary(read_eval_log(str(path)))
        score_log(benchmark, path, out=folder / f"{name}-exported", progress=False, **options)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
