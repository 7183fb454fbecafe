"""`--engine ray` on a real cluster of this machine, whose workers and nodes are killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from models.hostile import Recorder
from models.tiny import tiny_model
from plugins import install_package
from sealegs.errors import ModelUnreachable
from sealegs.harness.plugins import entry_points
from sealegs.models.engines.engine import load_engine
from sealegs.types import ModelRef, Response

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
psutil = pytest.importorskip("psutil", reason="psutil is not installed: it comes with the extra hf")
pytest.importorskip("ray", reason="ray is not installed: it is the extra ray")

from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80_000_000}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("plugin"))
        backend = {"scripted_backend.py": Path(__file__).with_name("plugin.py").read_text(encoding="utf-8")}
        entry_point = "[sealegs.models]\nscripted = scripted_backend:Scripted\n"
        install_package(Path(folder), "scripted", backend, entry_point)
        source = str(Path(sl.__file__).parents[1])
        patch.setenv("PYTHONPATH", os.pathsep.join([folder, source, os.environ.get("PYTHONPATH", "")]))
        patch.setattr(sys, "path", [folder, *sys.path])
        patch.setenv("RAY_worker_niceness", "0")  # at Ray's own 15, workers wait for every other test
        entry_points.cache_clear()
        yield
    entry_points.cache_clear()


@pytest.fixture(scope="module")
def cluster(plugin: None) -> Iterator[Cluster]:
    """A head that runs no workers, and two nodes with room for one worker each."""
    head = {**NODE, "num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(**NODE)
    yield cluster
    cluster.shutdown()


class Watching(Recorder):
    """Calls a function once, after the first answer of a phase."""

    def __init__(self, title: str, then: Callable[[], None]) -> None:
        super().__init__()
        self._title = title
        self._then = then
        self._phase = ""
        self.called = 0

    def phase(self, title: str, *, total: int, done: int) -> None:
        self._phase = title

    def answered(self, response: Response, *, usd: float) -> None:
        if self._phase == self._title and not self.called:
            self.called += 1
            self._then()


def files(run: sl.Run) -> dict[str, bytes]:
    """What a run publishes, and its figures."""
    paths = [*(run.path / "export").iterdir(), run.path / "records.jsonl", run.path / "summary.json"]
    return {path.name: path.read_bytes() for path in paths}


def worker_processes(node: Any) -> list[Any]:
    """The processes of a node that hold a model."""
    [raylet] = node.all_processes["raylet"]
    children = psutil.Process(raylet.process.pid).children(recursive=True)
    return [child for child in children if "ray::Worker" in " ".join(child.cmdline())]


def kill_a_node_and_a_worker(cluster: Cluster) -> None:
    """What a machine takes with it, its raylet and its workers; and on the other node the process alone."""
    node, other = cluster.worker_nodes
    deadline = time.monotonic() + 300
    while not (worker_processes(node) and worker_processes(other)):
        assert time.monotonic() < deadline, "the second worker has not started"
        time.sleep(0.2)
    workers = [*worker_processes(node), *worker_processes(other)]
    cluster.remove_node(node, allow_graceful=False)
    for worker in workers:
        if worker.is_running():
            worker.kill()


@pytest.mark.full
def test_losses_in_mid_run_change_no_figure(cluster: Cluster, tmp_path: Path) -> None:
    """A node and the only process of the other are lost, both with requests that they had not answered."""
    model = f"hf:{tiny_model(tmp_path / 'tiny')}"
    settings: dict[str, Any] = {"limit": 8, "model_args": {"concurrency": 3}}
    local = sl.run("miron", model, out=tmp_path / "local", progress=False, **settings)
    watching = Watching("asking", lambda: kill_a_node_and_a_worker(cluster))
    engine: dict[str, Any] = {"engine": "ray", "engine_args": {"address": cluster.address, "workers": 2}}
    there = sl.run("miron", model, out=tmp_path / "ray", progress=watching, **settings, **engine)
    assert watching.called == 1
    assert [note for note in watching.notes if "was lost; its requests go to others" in note]
    assert there.summary.keys() == local.summary.keys()
    for name, figure in local.summary.items():
        assert there.summary[name].value == pytest.approx(figure.value, abs=1e-5, nan_ok=True)
    assert there.spec.models == local.spec.models


@pytest.mark.full
def test_two_models_take_turns_where_there_is_room_for_one(cluster: Cluster, tmp_path: Path) -> None:
    """The model's worker ends for the embedder's; the files are those of a local run."""
    for node in list(cluster.worker_nodes)[1:]:
        cluster.remove_node(node)
    settings: dict[str, Any] = {"limit": 1, "levels": "1-2", "lang": "en", "progress": False}
    local = sl.run("mirae", "scripted", out=tmp_path / "local", **settings)
    engine: dict[str, Any] = {"engine": "ray", "engine_args": {"address": cluster.address, "workers": 1}}
    there = sl.run("mirae", "scripted", out=tmp_path / "ray", **settings, **engine)
    assert files(there) == files(local)


LOCAL = """
import signal, sys, psutil
from sealegs.models.engines.engine import load_engine
from sealegs.models.engines.pool import FEWEST, LOST
from sealegs.models.openai.backend import OpenAI
from sealegs.types import Generate, ModelRef, Response, Sampling

before = signal.getsignal(signal.SIGTERM)
prompts = [f"row {number}" for number in range(40)]
prompts[3] += " [die]"
prompts[20] += f" [die once {sys.argv[1]}]"
prompts[37] += " [raise]"
with load_engine("ray", {"workers": 1}) as engine:
    served = ModelRef("openai:name", {"base_url": "http://127.0.0.1:9/v1"})
    assert isinstance(engine.open(served), OpenAI)  # a server is asked by the driver
    requests = [Generate(prompt=prompt, sampling=Sampling()) for prompt in prompts]
    answers = list(engine.open(ModelRef("scripted")).answer(requests))
    assert sorted(id(request) for request, _ in answers) == sorted(map(id, requests))
    responses = {request.prompt: response for request, response in answers}
    assert responses[prompts[3]] == Response(status="error", reason=LOST)
    assert "a row that no model can read" in responses[prompts[37]].reason
    for prompt in prompts[FEWEST:37]:  # not sent together with the row that kills whoever reads it
        assert responses[prompt].text == f"{prompt[::-1]} 0"
    assert signal.getsignal(signal.SIGTERM) is before
    listening = set()
    for child in psutil.Process().children(recursive=True):
        try:
            connections = child.net_connections("inet")
        except psutil.Error:  # it has ended
            continue
        listening |= {each.laddr.ip for each in connections if each.status == "LISTEN"}
    assert listening
    assert all(ip.removeprefix("::ffff:").startswith("127.") for ip in listening), listening
import ray
assert not ray.is_initialized()
"""


@pytest.mark.usefixtures("plugin")
def test_a_local_cluster_outlives_its_workers_and_is_reached_from_here_alone(tmp_path: Path) -> None:
    """A request that kills two workers is an error. In a process of its own: which address is used is
    decided when Ray is imported."""
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", LOCAL, str(tmp_path / "died")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_no_cluster_at_an_address_is_reported_at_once() -> None:
    with load_engine("ray", {"address": "127.0.0.1:9"}) as engine:
        model = engine.open(ModelRef("embedded-embedder"))
        with pytest.raises(ModelUnreachable, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
            list(model.answer([sl.Embed(text="a text")]))
