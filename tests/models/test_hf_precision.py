"""Half precision: what depends on the batch is measured and shown, and with `deterministic` nothing does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import evenkeel as ek
from evenkeel.cli.output import show_run
from evenkeel.models.embedded import Embedded, EmbeddedOptions, embedded_folder
from evenkeel.models.local.precision import batch_dependence
from evenkeel.models.local.prompts import scored_prompts
from evenkeel.types import LogLikelihood, Request
from models.tiny import ARCHITECTURES, ask, logprobs_of, open_hf, say, tiny_model

TEXTS = ("The quick brown fox jumps over the lazy dog", "Hello", "Once upon a time there was", "A keel")
LOGPROBS = [
    LogLikelihood(prefix=text, continuation=after) for text in TEXTS for after in (" and more", " A", " B")
]
WRITING = [
    *(say(text, max_tokens=2) for text in TEXTS),
    *(say(text, temperature=1.0, repeat=repeat) for text in TEXTS for repeat in range(3)),
]


def test_log_probabilities_are_computed_in_float32(folder: Path) -> None:
    """Those of bfloat16 would have eight bits: steps of 0.06 at −10."""
    model = open_hf(folder, dtype="bfloat16", deterministic=True)
    loaded = model._causal()
    for request, response in zip(LOGPROBS, ask(model, *LOGPROBS), strict=True):
        whole = loaded.tokenise(request.prefix + request.continuation)
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([whole[:-1]])).logits[0]
        assert logits.dtype == torch.bfloat16
        start = len(loaded.tokenise(request.prefix))
        naive = logits.float().log_softmax(-1)
        expected = [float(naive[index - 1, whole[index]]) for index in range(start, len(whole))]
        assert list(logprobs_of(response).values) == pytest.approx(expected, abs=1e-6)
        assert any(value != float(torch.tensor(value).bfloat16()) for value in expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_deterministic_model_does_not_depend_on_the_batch(folder: Path, dtype: str) -> None:
    """The same bits at any concurrency, in any order, and whatever else is asked."""
    requests: list[Request] = [*LOGPROBS, *WRITING]
    if dtype == "float16":  # which a CPU computes slowly
        requests = requests[::3]
    model = open_hf(folder, dtype=dtype, deterministic=True, concurrency=16)
    assert scored_prompts(model._causal(), requests)  # what would be read together otherwise
    together = ask(model, *requests)
    one_by_one = open_hf(folder, dtype=dtype, deterministic=True, concurrency=1)
    assert ask(one_by_one, *requests[::-1]) == together[::-1]
    assert [ask(model, request)[0] for request in requests] == together
    assert model.notes() == []


def test_the_embedded_model_is_deterministic_in_bfloat16() -> None:
    embedded_folder()
    requests: list[Request] = [*LOGPROBS[:6:3], *(say(text, max_tokens=3) for text in TEXTS[:2])]
    answers = []
    for concurrency, order in ((16, requests), (1, requests[::-1])):
        model = Embedded(EmbeddedOptions(dtype="bfloat16", deterministic=True, concurrency=concurrency))
        answers.append(dict(model.answer(order)))
        model.close()
    assert answers[0] == answers[1]


def test_only_a_chosen_option_enters_the_identity(folder: Path) -> None:
    plain, chosen = open_hf(folder).identity(), open_hf(folder, deterministic=True).identity()
    assert "deterministic" not in plain
    assert chosen == {**plain, "deterministic": True}
    assert open_hf(folder, deterministic="true").identity() == chosen
    assert "deterministic" not in Embedded(EmbeddedOptions()).identity()


def test_what_depends_on_the_batch_is_measured(tmp_path: Path) -> None:
    """On a CPU nothing is padded, and the state of some models still depends on the number of rows."""
    model = open_hf(tiny_model(tmp_path, "MambaConfig", **ARCHITECTURES["MambaConfig"]))
    assert batch_dependence(model._causal()) < 1e-4
    for note in model.notes():
        assert "Computed in float32: answers depend on what shares a batch." in note


def test_half_precision_on_a_cpu_does_not_depend_on_the_batch(folder: Path) -> None:
    model = open_hf(folder, dtype="bfloat16")
    assert batch_dependence(model._causal()) == 0
    assert model.notes() == []


def test_the_report_shows_what_was_measured(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "Computed in bfloat16: answers depend on what shares a batch."
    monkeypatch.setattr("evenkeel.models.local.precision.precision_notes", lambda causal: [note])
    settings: dict[str, Any] = {"limit": 1, "lang": "en", "progress": False, "out": tmp_path / "run"}
    run = ek.run("miron", f"hf:{folder}", model_args={"device": "cpu", "dtype": "bfloat16"}, **settings)
    assert run.spec.provenance["notes"]["model"] == [note]
    capsys.readouterr()
    show_run(run, min_coverage=0, json=False)
    assert note in " ".join(capsys.readouterr().out.split())
    assert note in (run.path / "report.html").read_text()
    assert ek.rescore(run.path, progress=False).spec == run.spec
