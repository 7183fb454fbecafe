"""The same spec and seed give the same bytes of records and summary, whatever the order of the answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from loopback import Loopback
from models.tiny import tiny_model
from sealegs.errors import BudgetReached

pytestmark = pytest.mark.slow

FILES = ("records.jsonl", "summary.json")

SERVED: dict[str, dict[str, Any]] = {
    "mirae": {"limit": 3, "levels": "1-2", "embedder": "openai:embed"},
    "rgb": {"limit": 3},
    "miron": {"limit": 2},
    "multiview": {"limit": 2, "method": ["judge:openai:loop", "embed:openai:embed"]},
}


def bytes_of(run: sl.Run) -> dict[str, bytes]:
    return {name: (run.path / name).read_bytes() for name in FILES}


class Uneven(Loopback):
    """Answers by prompt and seed alone, each after another time, and sometimes only when asked again."""

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        self.behaviour.latency = random.random() * 0.02
        return super()._answer(path, body, key)


@pytest.mark.parametrize("benchmark", SERVED)
def test_served_answers_give_the_same_bytes_in_any_order(benchmark: str, tmp_path: Path) -> None:
    settings = dict(SERVED[benchmark])
    if benchmark == "multiview":
        settings["model_arg"] = ["send_seed=true"]
    else:
        settings |= {"model": "openai:loop", "model_args": {"send_seed": True}}
    written = {}
    with Uneven(words=12, variants=97) as server:
        for concurrency in (1, 64):
            server.behaviour.fail = 0.2 if concurrency > 1 else 0.0
            run = sl.run(
                benchmark, base_url=server.url, concurrency=concurrency, out=tmp_path / f"{concurrency}",
                progress=False, **settings,
            )  # fmt: skip
            written[concurrency] = bytes_of(run)
        if benchmark != "multiview":
            settings |= {"model": f"replay:{tmp_path / '64'}", "model_args": {}}
            settings |= {"base_url": server.url} if "embedder" in settings else {}
            written[0] = bytes_of(sl.run(benchmark, out=tmp_path / "replayed", progress=False, **settings))
    assert all(written[1].values())
    assert all(contents == written[1] for contents in written.values())
    sl.rescore(tmp_path / "64")
    assert bytes_of(sl.load_run(tmp_path / "64")) == written[1]


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("miron", {"limit": 2}),
        pytest.param("mirae", {"limit": 2, "levels": "1-2", "max_tokens": 12}, marks=pytest.mark.full),
    ],
)
def test_local_models_give_the_same_figures_in_any_batch(
    benchmark: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Also after a run that was stopped half-way at another concurrency, with other batches. Of the embedded
    models: `tests/models/test_invariance.py`."""
    model = f"hf:{tiny_model(tmp_path / 'model', max_position_embeddings=2048)}"

    def run(name: str, concurrency: int | None, **limits: Any) -> sl.Run:
        return sl.run(
            benchmark, model, model_args={"device": "cpu"}, out=tmp_path / name, concurrency=concurrency,
            progress=False, **options, **limits,
        )  # fmt: skip

    expected = run("first", None).summary
    with pytest.raises(BudgetReached):
        run("stopped", 1, max_requests=3)
    resumed = run("stopped", 64).summary
    assert resumed.keys() == expected.keys()
    for name, figure in expected.items():
        assert resumed[name].value == pytest.approx(figure.value, abs=1e-5, nan_ok=True)
