"""Embeddings: the digits that were published, in whatever order and company the texts come."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.hostile import Recorder
from models.tiny import ask, change_tensors, drop_tensors
from sealegs.errors import UsageError
from sealegs.harness.progress import watch
from sealegs.models.embedded import EmbeddedEmbedder, EmbeddedEmbedderOptions
from sealegs.models.registry import load_model
from sealegs.types import Embed

LONG = "The harbour lies below the old town, and boats come in at dawn. " * 60


@pytest.fixture(scope="module")
def embedder() -> Iterator[EmbeddedEmbedder]:
    model = EmbeddedEmbedder(EmbeddedEmbedderOptions())
    yield model
    model.close()


def vectors(model: Any, texts: list[str]) -> np.ndarray[Any, Any]:
    responses = ask(model, *(Embed(text=text) for text in texts))
    return np.stack([np.frombuffer(response.vector or b"", dtype="<f4") for response in responses])


def test_published_similarities_are_reproduced(embedder: EmbeddedEmbedder, reference: Path) -> None:
    """Every level of a question: mean of the cosines between each pair of five answers."""
    published = reference / "mirae" / "MIRAE_claude_haiku_results_english.json"
    levels = json.loads(published.read_bytes())["experiment_results"][0]["level_analyses"]
    rows = vectors(embedder, [answer for level in levels for answer in level["responses"]])
    for level, five in zip(levels, rows.reshape(len(levels), 5, -1), strict=True):
        unit = five / np.linalg.norm(five, axis=1, keepdims=True)
        cosines = (unit @ unit.T)[np.triu_indices(5, 1)]
        assert cosines.mean() == pytest.approx(level["similarity_analysis"]["mean_similarity"], abs=1e-5)


def test_vectors_are_those_of_encode(embedder: EmbeddedEmbedder) -> None:
    import sentence_transformers

    texts = [
        "short",
        LONG,
        "",
        "한국어 문장입니다.",
        "a somewhat longer text about rope and lighthouses",
        "x",
    ]
    published = sentence_transformers.SentenceTransformer(str(embedder.folder), device="cpu").encode(texts)
    assert np.abs(vectors(embedder, texts) - published).max() < 1e-6


def test_a_text_beyond_the_limit_is_marked_as_cut(embedder: EmbeddedEmbedder) -> None:
    short, long = ask(embedder, Embed(text="short"), Embed(text=LONG))
    assert (short.cut, short.tokens_in) == (False, 3)
    assert (long.cut, long.tokens_in) == (True, 256)


def test_a_folder_is_a_model_and_a_prompt_goes_before_the_text(
    embedder: EmbeddedEmbedder, tmp_path: Path
) -> None:
    copied = shutil.copytree(embedder.folder, tmp_path / "copied")
    plain = load_model(f"sbert:{copied}", device="cpu")
    prompted = load_model(f"sbert:{copied}", device="cpu", prompt="query: ")
    sha256 = plain.identity()["sha256"]
    assert sha256 == embedder.identity()["sha256"]
    assert prompted.identity() != plain.identity()
    assert np.abs(vectors(prompted, ["rope"]) - vectors(embedder, ["query: rope"])).max() < 1e-6
    (copied / "1_Pooling" / "config.json").write_text("{}")
    assert load_model(f"sbert:{copied}").identity()["sha256"] != sha256


@pytest.fixture
def copied(embedder: EmbeddedEmbedder, tmp_path: Path) -> Path:
    return shutil.copytree(embedder.folder, tmp_path / "copied")


def test_a_text_without_tokens_fails_alone(copied: Path) -> None:
    """A tokenizer that adds no special tokens gives none for an empty text, on which the library fails."""
    for name, change in (
        ("tokenizer.json", {"post_processor": None}),
        ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ):
        file = copied / name
        file.write_text(json.dumps({**json.loads(file.read_bytes()), **change}))
    model = load_model(f"sbert:{copied}", device="cpu")
    answered, failed = ask(model, Embed(text="a boat"), Embed(text=""))
    assert (answered.status, failed.status) == ("ok", "error")
    assert "without tokens" in failed.reason
    model.close()


def test_it_says_that_it_is_loaded(copied: Path) -> None:
    model, watcher = load_model(f"sbert:{copied}", device="cpu"), Recorder()
    watch(model, watcher)
    ask(model, Embed(text="a boat"))
    ask(model, Embed(text="an oar"))
    model.close()
    assert watcher.waits == ["loading the model", "loaded"]


def test_an_embedder_with_a_layer_too_many_is_refused_by_name(copied: Path) -> None:
    settings = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 5}))
    with pytest.raises(UsageError, match=r"16 tensors \(encoder\.layer\.5\..* are unexpected"):
        ask(load_model(f"sbert:{copied}", device="cpu"), Embed(text="rope"))


def test_a_pooler_and_a_head_that_are_not_used_may_be_missing_or_left(
    embedder: EmbeddedEmbedder, copied: Path
) -> None:
    def change(tensors: dict[str, Any]) -> None:
        drop_tensors("pooler")(tensors)
        tensors["cls.predictions.bias"] = tensors["embeddings.LayerNorm.bias"].clone()

    change_tensors(copied, change)
    model = load_model(f"sbert:{copied}", device="cpu")
    assert np.abs(vectors(model, ["rope"]) - vectors(embedder, ["rope"])).max() < 1e-6
