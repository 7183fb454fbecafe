"""The embedded model: found without an import, made into a folder once, and from there an `hf:` model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evenkeel.errors import UsageError
from evenkeel.files.cache import file_sha256
from evenkeel.models.embedded import Embedded, EmbeddedOptions, embedded_folder, embedded_gguf, model_folder
from evenkeel.models.registry import load_model
from evenkeel.types import Generate, LogLikelihood, Message, Sampling

pytestmark = pytest.mark.slow

CONVERT = """
import pathlib, sys
from evenkeel.models import embedded
convert, conversions = embedded._convert, []
embedded._convert = lambda *paths: (convert(*paths), conversions.append(paths))
folder = embedded.model_folder(pathlib.Path(sys.argv[1]))
print(len(conversions), folder)
"""
KILLED = """
import os, pathlib, signal, sys
from evenkeel.models import embedded
convert = embedded._convert
embedded._convert = lambda *paths: (convert(*paths), os.kill(os.getpid(), signal.SIGKILL))
embedded.model_folder(pathlib.Path(sys.argv[1]))
"""


def test_it_generates_and_gives_log_likelihoods() -> None:
    embedded_folder()
    model = load_model("embedded")
    question = Generate(
        prompt=(Message("user", "What is the capital of France?"),), sampling=Sampling(max_tokens=20)
    )
    scored = LogLikelihood(prefix="The capital of France is", continuation=" Paris.")
    answered = dict(model.answer([question, scored]))
    model.close()
    assert answered[question].text == "The capital of France is Paris."
    logprobs = answered[scored].logprobs
    assert logprobs is not None
    assert logprobs.tokens == (" Paris", ".")
    assert logprobs.values == pytest.approx((-0.258, -0.380), abs=0.01)


def test_identity_is_the_files_hash_and_the_chosen_options() -> None:
    identity = Embedded(EmbeddedOptions(concurrency=2, device="auto")).identity()
    assert identity == {
        "spec": "embedded",
        "model": "SmolLM2-135M-Instruct",
        "dtype": "float32",
        "sha256": file_sha256(embedded_gguf()),
    }


def test_the_folder_holds_the_weights_of_the_file(
    gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from gguf import GGUFReader

    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
    folder = model_folder(gguf)
    assert capfd.readouterr().err == "evenkeel: making the embedded model ready, once (about half a minute)\n"
    stored = load_file(folder / "model.safetensors")
    [embeddings] = [t for t in GGUFReader(gguf).tensors if t.name == "token_embd.weight"]
    assert torch.equal(stored["model.embed_tokens.weight"], torch.tensor(embeddings.data))
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}
    modified = folder.stat().st_mtime_ns
    assert model_folder(gguf) == folder
    assert (folder.stat().st_mtime_ns, capfd.readouterr().err) == (modified, "")


@pytest.mark.full
def test_processes_at_once_make_one_whole_copy_though_one_is_killed(gguf: Path, tmp_path: Path) -> None:
    settings = {**os.environ, "EVENKEEL_CACHE": str(tmp_path)}
    made = tmp_path / "models"

    def process(script: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-c", script, str(gguf)]
        return subprocess.Popen(line, env=settings, stdout=subprocess.PIPE, text=True)

    killed = process(KILLED)
    killed.communicate(timeout=600)
    assert killed.returncode == -signal.SIGKILL
    [left] = [path for path in made.iterdir() if path.is_dir()]
    assert list(left.rglob("model.safetensors"))  # it was killed when it had written the weights
    several = [process(CONVERT) for _ in range(2)]
    outputs = [process.communicate(timeout=600)[0].split() for process in several]
    assert [process.returncode for process in several] == [0, 0]
    assert sum(int(conversions) for conversions, _ in outputs) == 1
    [folder] = {folder for _, folder in outputs}
    assert list(made.iterdir()) == [Path(folder)]
    assert load_file(Path(folder) / "model.safetensors")


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, but not really")
    with pytest.raises(UsageError, match="cannot be read.*Install it again"):
        model_folder(tmp_path / "broken.gguf")
    assert list((tmp_path / "cache" / "models").iterdir()) == []
