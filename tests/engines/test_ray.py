"""`--engine ray` on a real cluster of several nodes on this machine, some of which are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from engines.plugin import install
from evenkeel.errors import ModelUnreachable
from evenkeel.harness.plugins import entry_points
from evenkeel.harness.progress import Silent
from evenkeel.models.engines.engine import EngineOptions, load_engine
from evenkeel.models.engines.exchange import LOST
from evenkeel.types import Generate, ModelRef, Response, Sampling
from models.tiny import tiny_model

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
psutil = pytest.importorskip("psutil", reason="psutil is not installed: it comes with the extra hf")
pytest.importorskip("ray", reason='ray is not installed: pip install "evenkeel-bench[ray]"')

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80_000_000}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A head that runs no workers, and two nodes with room for one worker each."""
    with pytest.MonkeyPatch.context() as patch:
        plugin = str(install(tmp_path_factory.mktemp("plugin")))
        source = str(Path(ek.__file__).parents[1])
        patch.setenv("PYTHONPATH", os.pathsep.join([plugin, source, os.environ.get("PYTHONPATH", "")]))
        patch.setattr(sys, "path", [plugin, *sys.path])
        patch.setenv("RAY_worker_niceness", "0")  # at Ray's own 15, workers wait for every other test
        entry_points.cache_clear()
        cluster = Cluster(
            initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False}
        )
        for _ in range(2):
            cluster.add_node(**NODE)
        yield cluster
        cluster.shutdown()
    entry_points.cache_clear()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


class Watching(Silent):
    """Calls a function once, after the first answer of a phase, and keeps the notes."""

    def __init__(self, title: str, then: Callable[[], None]) -> None:
        self._title = title
        self._then = then
        self._phase = ""
        self.called = 0
        self.notes: list[str] = []

    def phase(self, title: str, *, total: int, done: int) -> None:
        self._phase = title

    def answered(self, response: Response, *, usd: float) -> None:
        if self._phase == self._title and not self.called:
            self.called += 1
            self._then()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self) -> None:
        pass


def files(run: ek.Run) -> dict[str, bytes]:
    """What a run publishes, and its figures."""
    paths = [*(run.path / "export").iterdir(), run.path / "records.jsonl", run.path / "summary.json"]
    return {path.name: path.read_bytes() for path in paths}


def worker_processes(node: Any) -> list[Any]:
    """The processes of a node that hold a model."""
    [raylet] = node.all_processes["raylet"]
    children = psutil.Process(raylet.process.pid).children(recursive=True)
    return [child for child in children if "ray::Worker" in " ".join(child.cmdline())]


def connections(process: Any) -> list[Any]:
    try:
        return list(process.net_connections("inet"))
    except psutil.Error:  # it has ended
        return []


def command_line(process: Any) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def with_nodes(cluster: Cluster, number: int) -> Cluster:
    """The cluster with so many nodes that run workers."""
    for node in list(cluster.worker_nodes)[number:]:
        cluster.remove_node(node)
    while len(cluster.worker_nodes) < number:
        cluster.add_node(**NODE)
    return cluster


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


def test_a_build_is_the_same_byte_for_byte(cluster: Cluster, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("Why do ships have keels?\nWho was Ada Lovelace?\n")
    built = {}
    for name, engine in {"local": {}, "ray": {"engine": "ray", "ray_address": cluster.address}}.items():
        out = tmp_path / name / "mine.json"
        options: dict[str, Any] = {"questions": str(questions), "model": "scripted", **engine}
        paths, _ = ek.build("mirae", out, progress=False, **options)
        built[name] = [path.read_bytes() for path in paths]
    assert built["ray"] == built["local"]


def test_a_row_that_kills_its_worker_fails_alone(cluster: Cluster) -> None:
    prompts = [f"row {number}" for number in range(20)]
    prompts[3] += " [die]"
    prompts[17] += " [raise]"
    requests = [Generate(prompt=prompt, sampling=Sampling()) for prompt in prompts]
    options = EngineOptions(engine="ray", ray_address=cluster.address, workers=2)
    with load_engine(options) as engine:
        model = engine.open(ModelRef("scripted"))
        answers = list(model.answer(requests))
    assert sorted(id(request) for request, _ in answers) == sorted(map(id, requests))
    by_prompt = {request.prompt: response for request, response in answers if isinstance(request, Generate)}
    assert by_prompt[prompts[3]] == Response(status="error", reason=LOST)
    assert "a row that no model can read" in by_prompt[prompts[17]].reason
    whole = [prompt for prompt in prompts if "[" not in prompt]
    assert [by_prompt[prompt].text for prompt in whole] == [f"{prompt[::-1]} 0" for prompt in whole]


def test_a_server_is_asked_by_the_driver(cluster: Cluster) -> None:
    with load_engine(EngineOptions(engine="ray", ray_address=cluster.address)) as engine:
        model = engine.open(ModelRef("openai:name", {"base_url": "http://127.0.0.1:9/v1"}))
        assert type(model).__name__ == "OpenAI"


def test_losses_in_mid_run_change_no_byte(
    cluster: Cluster, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A node and the only process of the other are lost, both with requests that they had not answered."""
    with_nodes(cluster, 2)
    settings: dict[str, Any] = {"limit": 8, "model_args": {"concurrency": 3}}
    local = ek.run("miron", f"hf:{tiny}", out=tmp_path / "local", progress=False, **settings)
    watching = Watching("asking", lambda: kill_a_node_and_a_worker(cluster))
    engine: dict[str, Any] = {"engine": "ray", "ray_address": cluster.address, "workers": 2}
    there = ek.run("miron", f"hf:{tiny}", out=tmp_path / "ray", progress=watching, **settings, **engine)
    assert watching.called == 1
    assert len([note for note in watching.notes if "was lost; its requests go to others" in note]) >= 2
    assert files(there) == files(local)
    assert there.spec.models == local.spec.models
    assert capfd.readouterr().out == ""


def test_two_models_take_turns_where_there_is_room_for_one(cluster: Cluster, tmp_path: Path) -> None:
    """The model's worker ends for the embedder's."""
    with_nodes(cluster, 1)
    settings: dict[str, Any] = {"limit": 1, "levels": "1-2", "lang": "en", "progress": False}
    local = ek.run("mirae", "scripted", out=tmp_path / "local", **settings)
    engine: dict[str, Any] = {"engine": "ray", "ray_address": cluster.address, "workers": 1}
    there = ek.run("mirae", "scripted", out=tmp_path / "ray", **settings, **engine)
    assert files(there) == files(local)


@pytest.mark.usefixtures("cluster")
def test_a_cluster_of_this_machine_begins_and_ends_with_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    running = {child.pid for child in psutil.Process().children(recursive=True)}
    with load_engine(EngineOptions(engine="ray")) as engine:
        [(_, response)] = engine.open(ModelRef("scripted")).answer(
            [Generate(prompt="row", sampling=Sampling())]
        )
        assert response.text == "wor 0"
        assert signal.getsignal(signal.SIGTERM) is before
        new = [child for child in psutil.Process().children(recursive=True) if child.pid not in running]
        listening = {each.laddr.ip for child in new for each in connections(child) if each.status == "LISTEN"}
        assert listening
        assert all(address.removeprefix("::ffff:").startswith("127.") for address in listening)
        # The dashboard's process asks the metadata servers of clouds, though nothing is reported.
        assert [line for child in new if "dashboard.py" in (line := command_line(child))] == []
    assert not ray.is_initialized()


def test_no_cluster_at_an_address_is_said_at_once() -> None:
    with load_engine(EngineOptions(engine="ray", ray_address="127.0.0.1:9")) as engine:
        model = engine.open(ModelRef("embedded-embedder"))
        with pytest.raises(ModelUnreachable, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
            list(model.answer([ek.Embed(text="a text")]))
