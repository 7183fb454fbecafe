"""Where a model's files are and what identifies them: a folder, a GGUF file, or a repository of the Hub.

Nothing here imports torch: a run's spec is made before the first weight is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from sealegs.errors import MissingExtra, SealegsError, UsageError
from sealegs.files.cache import expanded, file_sha256
from sealegs.files.jsonfile import check_depth
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.models.local.gguf_header import check_gguf

DESCRIBING = (
    *("config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.*", "merges.txt", "*.model", "chat_template*", "*.jinja", "*.py"),
    *("adapter_config.json", "modules.json", "sentence_*_config.json", "config_sentence_transformers.json"),
)
"""The files beside the weights that decide what a model answers."""
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
OLD_WEIGHTS = ("pytorch_model*.bin", "pytorch_model*.bin.index.json")
"""Read only where there are no safetensors: many folders hold both, and transformers reads one."""


class Weights(NamedTuple):
    """A model's files on this machine."""

    folder: Path
    gguf_file: str | None = None
    commit: str | None = None
    """The Hub's commit, for a model that came from there."""

    @property
    def path(self) -> Path:
        """The folder, or the GGUF file in it."""
        return self.folder / (self.gguf_file or "")

    def identity(self) -> dict[str, str]:
        """The Hub's commit, or one digest over names and contents: equal files, equal answers."""
        if self.commit:
            return {"revision": self.commit}
        if self.gguf_file:
            return {"sha256": file_sha256(self.path)}
        digest = hashlib.sha256()
        for file in self.files():
            digest.update(f"{file.relative_to(self.folder).as_posix()} {file_sha256(file)}\n".encode())
        return {"sha256": digest.hexdigest()}

    def files(self) -> list[Path]:
        """What is read when the model is loaded, without a training folder's checkpoints and states."""
        # Pooling, dense layers of sentence-transformers.
        modules = read_json(self.folder / "modules.json", list)
        paths = [module.get("path") for module in modules if isinstance(module, dict)]
        folders = {self.folder, *(self.inside(path) for path in paths if isinstance(path, str))}
        files = {file for folder in folders for name in (*DESCRIBING, *WEIGHTS) for file in folder.glob(name)}
        if not any(file.suffix == ".safetensors" for file in files):
            files |= {file for folder in folders for name in OLD_WEIGHTS for file in folder.glob(name)}
        return sorted(file for file in files if file.is_file())

    def inside(self, name: str) -> Path:
        """A part of the folder that a file of it names."""
        path = self.folder / name
        if not Path(os.path.normpath(path)).is_relative_to(os.path.normpath(self.folder)):
            raise UsageError(f"{self.folder}: it names '{name}', which is not in this folder.")
        return path

    def chat(self) -> Literal["template", "fallback"]:
        """Whether the model brings a chat template, read from its files alone."""
        if self.gguf_file:
            from gguf import GGUFReader

            try:
                has_template = "tokenizer.chat_template" in GGUFReader(self.path).fields
            except (ValueError, LookupError, struct.error) as error:
                raise UsageError(f"{self.path} is not a complete GGUF file: {first_line(error)}.") from None
        else:
            config = read_json(self.folder / "tokenizer_config.json")
            has_template = any(self.folder.glob("chat_template*")) or bool(config.get("chat_template"))
        return "template" if has_template else "fallback"


def locate(
    spec: str, *, revision: str | None = None, gguf_file: str | None = None, weights: bool = True
) -> Weights:
    """Find the files that `scheme:name` means, fetching them from the Hub where the name is not a path.

    Without `weights` only what describes a model is fetched, its tokenizer for instance.
    """
    name = spec.partition(":")[2]
    if (folder := local_folder(spec)) is None:
        located = _fetch(spec, name, revision, gguf_file, weights=weights)
    else:
        located = Weights(folder, Path(name).name if name.endswith(".gguf") else gguf_file)
    expected = located.gguf_file or "config.json"
    if not (located.folder / expected).is_file():
        files = ", ".join(sorted(file.name for file in located.folder.glob("*.gguf")))
        remedy = f"give a file in it: {files}" if files else "give the folder of a model's config and weights"
        raise UsageError(f"{spec}: the folder {located.folder} has no {expected}; {remedy}.")
    if located.gguf_file:
        check_gguf(located.path)
    elif weights:
        _check_files(located, spec)
    return located


def local_folder(spec: str) -> Path | None:
    """The folder on this machine that `scheme:name` means; None for what may be a name on the Hub."""
    name = spec.partition(":")[2]
    path = expanded(name)
    folder = path.parent if path.suffix == ".gguf" else path
    if folder.is_dir():
        return folder
    if folder.exists():
        raise UsageError(f"{spec}: {folder} is a file; give the model's folder, or a .gguf file.")
    if name.endswith(".gguf") or not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise UsageError(f"{spec}: there is nothing at {path}; check the path.")
    return None


def _check_files(weights: Weights, spec: str) -> None:
    """Refuse a folder in which a weights file is cut short, or one that its index names is missing."""
    folder = weights.folder
    parts = read_json(folder / "model.safetensors.index.json").get("weight_map")
    shards = [
        shard for shard in (parts.values() if isinstance(parts, dict) else ()) if isinstance(shard, str)
    ]
    unsharded = (folder / "model.safetensors").is_file()  # transformers prefers it to an index
    missing = [] if unsharded else sorted({name for name in shards if not weights.inside(name).is_file()})
    if missing:
        raise UsageError(
            f"{spec}: {folder} lacks {len(missing)} of the weights files that its index names: "
            f"{', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}. Fetch the model again."
        )
    for file in weights.files():
        if file.match("model*.safetensors") and (problem := safetensors_problem(file)):
            raise UsageError(f"{spec}: {file} is not a complete weights file: {problem}. Fetch it again.")


def safetensors_problem(file: Path) -> str:
    """Why a file is not safetensors from its first byte to its last; empty where it is.

    Its first eight bytes give the length of the header, and the header where each tensor ends.
    """
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = opened.read(8)
        if start == b"version ":
            return "it is a pointer of Git LFS, which `git lfs pull` replaces"
        length = int.from_bytes(start, "little")
        if len(start) < 8 or 8 + length > size:
            return f"its {size:,} bytes end within the header"
        try:
            header = msgspec.json.decode(check_depth(opened.read(length)), type=dict[str, dict[str, Any]])
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            expected = 8 + length + max(ends, default=0)
        except (ValueError, RecursionError, LookupError, TypeError):
            return "its header cannot be read"
    return "" if size == expected else f"it has {size:,} bytes, and its header names {expected:,}"


def _fetch(spec: str, name: str, revision: str | None, gguf_file: str | None, *, weights: bool) -> Weights:
    """The snapshot of a Hub repository: the cached files, and what is missing downloaded."""
    switch_off_telemetry()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    def download(*patterns: str) -> Path:
        return Path(snapshot_download(name, revision=revision, allow_patterns=[*DESCRIBING, *patterns]))

    modules = tuple(f"*/{file}" for file in ("config.json", *WEIGHTS))
    announce(f"looking for {name} in the Hugging Face cache and on the Hub")
    try:
        with _quiet_downloads():
            folder = download(*((*modules, *([gguf_file] if gguf_file else WEIGHTS)) if weights else ()))
            if weights and not gguf_file and not any(folder.rglob("*.safetensors")):
                folder = download(*OLD_WEIGHTS)
    except GatedRepoError:
        raise UsageError(
            f"{spec}: the Hub gives this model only to those who accepted its terms; run `hf auth login`."
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise UsageError(
            f"{spec}: there is no such folder, and no such model on the Hub; check the name."
        ) from None
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        raise UsageError(
            f"{spec}: there is no such folder, and the Hub cannot give it ({_redacted(first_line(error))}); "
            "check the name and the connection, or give a local folder."
        ) from None
    return Weights(folder, gguf_file, commit=folder.name)


def _redacted(text: str) -> str:
    """What the Hub, or whoever HF_ENDPOINT names, says, without the person's token."""
    from huggingface_hub import get_token

    from sealegs.models.openai.redaction import Redaction

    return Redaction([get_token() or ""]).text(text)


def installed(package: str, path: str) -> Path | None:
    """A file or folder inside an installed package, which is not imported: that might load much else."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        file = Path(str(importlib.metadata.distribution(package).locate_file(path)))
        if file.exists():
            return file
    return None


def require_packages(*packages: str, what: str, extra: str) -> None:
    if missing := missing_packages(*packages):
        raise MissingExtra(what, package=missing[0], install=f'pip install "sealegs[{extra}]"')


def missing_packages(*packages: str) -> list[str]:
    return [package for package in packages if importlib.util.find_spec(package) is None]


def announce(task: str) -> None:
    """Say on stderr what takes a while."""
    print(f"sealegs: {task}", file=sys.stderr)


@contextlib.contextmanager
def _quiet_downloads() -> Iterator[None]:
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_disabled = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not were_disabled:
            enable_progress_bars()


def use_expandable_memory() -> None:
    """Let PyTorch's blocks of GPU memory grow, unless the user set otherwise; before torch is imported.

    A cache that grows leaves blocks behind in which nothing larger fits: so more memory is asked for, which
    took a second and more of a run of ten.
    """
    if "PYTORCH_CUDA_ALLOC_CONF" not in os.environ:
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")


def quiet_transformers() -> None:
    """Keep transformers' progress bars and warnings off the terminal; errors still come as exceptions."""
    switch_off_telemetry()
    from transformers import modeling_gguf_pytorch_utils as gguf_reader
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # The reader of GGUF files draws a bar of its own, which no setting reaches.
    gguf_reader.tqdm = lambda tensors, **_: tensors


@contextlib.contextmanager
def tokenizer_errors(path: Path | str) -> Iterator[None]:
    """Whatever a tokenizer raises as an error that names its file: a panic of its library is no Exception."""
    try:
        yield
    except (SealegsError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise UsageError(f"{path}: its tokenizer cannot be used: {first_line(error)}.") from error


def read_json(path: Path, kind: type[Any] = dict) -> Any:
    """A JSON file's content; an empty object (or list) where it is missing, broken or of another kind."""
    try:
        return msgspec.json.decode(check_depth(path.read_bytes()), type=kind)
    except (OSError, ValueError, RecursionError):
        return kind()


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
