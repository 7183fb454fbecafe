"""Ranking by cross-encoders: the scores of sentence-transformers, and no score from a model that has none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.tiny import ask, tiny_cross_encoder
from sealegs.errors import UsageError
from sealegs.harness.model import Model
from sealegs.models.embedded import embedder_folder
from sealegs.models.local.cross_encoder import PAIR_ROWS
from sealegs.models.registry import load_model
from sealegs.types import Rank

WORDS = ["keel", "harbour", "light", "rope", "tide", "sail", "anchor", "storm", "gull", "mast"]
LONG = "the boats come in at dawn and go out at dusk " * 40


def opened(folder: Path) -> Model:
    return load_model(f"sbert:{folder}", device="cpu")


def test_scores_are_those_of_predict_in_whatever_order_and_company(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = tiny_cross_encoder(tmp_path)
    ranker = opened(folder)

    pairs = [(" ".join(WORDS[: n % 9 + 1]), f"{WORDS[n % 10]} " * (n % 7 + 1)) for n in range(PAIR_ROWS + 5)]
    pairs += [("", "keel"), ("keel", ""), ("keel", LONG), (LONG, "keel"), ("한국어", "汉语")]
    plain = CrossEncoder(str(folder), device="cpu")
    # Each alone: beside longer ones, padding changes the sixth digit.
    expected = [float(plain.predict([pair], activation_fn=torch.nn.Identity())[0]) for pair in pairs]
    responses = ask(ranker, *(Rank(query=query, document=document) for query, document in pairs))
    assert [response.status for response in responses] == ["ok"] * len(pairs)
    assert [response.rank for response in responses] == pytest.approx(expected, abs=1e-6)
    assert len({round(response.rank or 0, 4) for response in responses}) > len(pairs) / 2
    backwards = ask(ranker, *(Rank(query=query, document=document) for query, document in pairs[:5:-1]))
    assert [response.rank for response in backwards] == pytest.approx(expected[:5:-1], abs=1e-6)


def test_a_model_that_gives_several_scores_is_refused(tmp_path: Path) -> None:
    model = opened(tiny_cross_encoder(tmp_path, labels=3))
    with pytest.raises(UsageError, match="gives one score; this one gives 3"):
        ask(model, Rank(query="a", document="b"))


def test_an_embedder_is_not_given_a_head_of_random_weights() -> None:
    model = opened(embedder_folder())
    with pytest.raises(UsageError, match="is not a cross-encoder: it has no weights that score a pair"):
        ask(model, Rank(query="a", document="b"))
