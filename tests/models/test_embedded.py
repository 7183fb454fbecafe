"""The embedded model: found without an import, made into a folder once, and from there an `hf:` model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sealegs.errors import UsageError
from sealegs.files.cache import file_sha256
from sealegs.models.embedded import Embedded, EmbeddedOptions, embedded_folder, embedded_gguf, model_folder
from sealegs.models.registry import load_model
from sealegs.types import Generate, LogLikelihood, Message, Sampling


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

    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path))
    folder = model_folder(gguf)
    assert capfd.readouterr().err == "sealegs: making the embedded model ready, once (about half a minute)\n"
    stored = load_file(folder / "model.safetensors")
    [embeddings] = [t for t in GGUFReader(gguf).tensors if t.name == "token_embd.weight"]
    assert torch.equal(stored["model.embed_tokens.weight"], torch.tensor(embeddings.data))
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}
    modified = folder.stat().st_mtime_ns
    assert model_folder(gguf) == folder
    assert (folder.stat().st_mtime_ns, capfd.readouterr().err) == (modified, "")


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "broken.gguf").write_bytes(b"GGUF, but not really")
    with pytest.raises(UsageError, match="cannot be read.*Install it again"):
        model_folder(tmp_path / "broken.gguf")
    assert list((tmp_path / "cache" / "models").iterdir()) == []
