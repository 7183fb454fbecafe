"""Where a model's files are and what identifies them: a folder, a GGUF file, or a repository of the Hub.

Nothing here imports torch: a run's spec is made before the first weight is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from evenkeel.errors import MissingExtra, UsageError
from evenkeel.files.cache import file_sha256

DESCRIBING = (
    *("config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.*", "merges.txt", "*.model", "chat_template*", "*.jinja", "*.py"),
    *("modules.json", "sentence_*_config.json", "config_sentence_transformers.json"),
)
"""The files beside the weights that decide what a model answers."""
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
OLD_WEIGHTS = ("pytorch_model*.bin", "pytorch_model*.bin.index.json")
"""Looked at only where there are no safetensors: many folders hold both, and transformers reads one."""


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
            return {"sha256": file_sha256(self.folder / self.gguf_file)}
        digest = hashlib.sha256()
        for file in self.files():
            digest.update(f"{file.relative_to(self.folder).as_posix()} {file_sha256(file)}\n".encode())
        return {"sha256": digest.hexdigest()}

    def files(self) -> list[Path]:
        """What is read when the model is loaded. A training folder's checkpoints and states are not."""
        folders = [self.folder, *(self.folder / module for module in self._modules())]
        found = {file for folder in folders for name in (*DESCRIBING, *WEIGHTS) for file in folder.glob(name)}
        if not any(file.suffix == ".safetensors" for file in found):
            found |= {file for folder in folders for name in OLD_WEIGHTS for file in folder.glob(name)}
        return sorted(file for file in found if file.is_file())

    def chat(self) -> Literal["template", "fallback"]:
        """Whether the model brings a chat template, read from its files alone."""
        if self.gguf_file:
            from gguf import GGUFReader

            try:
                has = "tokenizer.chat_template" in GGUFReader(self.path).fields
            except (ValueError, LookupError, struct.error) as error:
                raise UsageError(f"{self.path} is not a whole GGUF file: {first_line(error)}.") from None
        else:
            has = any(self.folder.glob("chat_template*")) or bool(
                read_json(self.folder / "tokenizer_config.json").get("chat_template")
            )
        return "template" if has else "fallback"

    def _modules(self) -> list[str]:
        """The folders of a sentence-transformers model: pooling, dense layers."""
        listed = read_json(self.folder / "modules.json")
        return [module["path"] for module in listed if module.get("path")] if isinstance(listed, list) else []


def locate(
    spec: str, *, revision: str | None = None, gguf_file: str | None = None, weights: bool = True
) -> Weights:
    """Find the files that `scheme:name` means, fetching them from the Hub where the name is no path.

    Without `weights` only what describes a model is fetched, its tokenizer for instance.
    """
    name = spec.partition(":")[2]
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        path, gguf_file = path.parent, path.name
    if path.is_dir():
        return check(Weights(path, gguf_file), spec, weights=weights)
    if path.exists():
        raise UsageError(f"{spec}: {path} is a file; name the model's folder, or a .gguf file.")
    if name.endswith(".gguf") or not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise UsageError(f"{spec}: there is nothing at {Path(name).expanduser()}; check the path.")
    return check(fetch(spec, name, revision, gguf_file, weights=weights), spec, weights=weights)


def check(found: Weights, spec: str, *, weights: bool) -> Weights:
    wanted = found.gguf_file or "config.json"
    if (found.folder / wanted).is_file():
        if weights and not found.gguf_file:
            check_files(found, spec)
        return found
    ggufs = sorted(file.name for file in found.folder.glob("*.gguf"))
    remedy = "name the folder that holds a model's config and weights"
    if ggufs:
        remedy = f"name a file in it: {', '.join(ggufs)}"
    raise UsageError(f"{spec}: the folder {found.folder} has no {wanted}; {remedy}.")


def check_files(found: Weights, spec: str) -> None:
    """Refuse a folder in which a file of weights is cut short, or one that its index names is missing."""
    index = read_json(found.folder / "model.safetensors.index.json")
    shards = index.get("weight_map", {}).values() if isinstance(index, dict) else ()
    whole = (found.folder / "model.safetensors").is_file()  # transformers prefers it to an index
    absent = [] if whole else sorted({shard for shard in shards if not (found.folder / shard).is_file()})
    if absent:
        raise UsageError(
            f"{spec}: {found.folder} lacks {len(absent)} of the files of weights that its index names: "
            f"{', '.join(absent[:3])}{', …' if len(absent) > 3 else ''}. Fetch the model again."
        )
    for file in found.files():
        if file.match("model*.safetensors") and (wrong := what_is_wrong(file)):
            raise UsageError(f"{spec}: {file} is not a whole file of weights: {wrong}. Fetch it again.")


def what_is_wrong(file: Path) -> str:
    """Why a file is not safetensors from its first byte to its last; empty where it is.

    Its first eight bytes say how long the header is, and the header where each tensor ends.
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
            header = msgspec.json.decode(opened.read(length), type=dict[str, dict[str, Any]])
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            expected = 8 + length + max(ends, default=0)
        except (msgspec.DecodeError, LookupError, TypeError):
            return "its header cannot be read"
    return "" if size == expected else f"it has {size:,} bytes, and its header names {expected:,}"


def fetch(spec: str, name: str, revision: str | None, gguf_file: str | None, *, weights: bool) -> Weights:
    """The snapshot of a Hub repository: what is cached already, what is missing fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    wanted = [*DESCRIBING]
    if weights:
        wanted += [
            *(f"*/{file}" for file in ("config.json", *WEIGHTS)),
            *([gguf_file] if gguf_file else WEIGHTS),
        ]
    try:
        with announced(f"looking for {name} in the Hugging Face cache and on the Hub"), quiet_downloads():
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
            if weights and not gguf_file and not any(folder.rglob("*.safetensors")):
                wanted = [*DESCRIBING, *OLD_WEIGHTS]
                folder = Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
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
            f"{spec}: there is no such folder, and the Hub cannot give it ({first_line(error)}); "
            "check the name and the connection, or name a local folder."
        ) from None
    return Weights(folder, gguf_file, commit=folder.name)


def installed(package: str, path: str, *, what: str, install: str) -> Path:
    """A file or folder inside an installed package, which is not imported: that might pull in much else."""
    try:
        found = Path(str(importlib.metadata.distribution(package).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found is None or not found.exists():
        raise MissingExtra(what, package=package, install=install)
    return found


def require_packages(*packages: str, what: str, extra: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(what, package=package, install=f'pip install "evenkeel[{extra}]"')


@contextlib.contextmanager
def announced(doing: str) -> Iterator[None]:
    """Say on stderr what takes a while: one moving line on a terminal, one plain line elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(doing):
            yield
    else:
        print(f"evenkeel: {doing}", file=sys.stderr)
        yield


@contextlib.contextmanager
def quiet_downloads() -> Iterator[None]:
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    were_on = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if were_on:
            enable_progress_bars()


def quiet_transformers() -> None:
    """Keep transformers' bars and remarks off the terminal; its errors still come as exceptions."""
    from transformers import modeling_gguf_pytorch_utils as gguf_reader
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # The reader of GGUF files draws a bar of its own, which no setting reaches.
    gguf_reader.tqdm = lambda tensors, **_: tensors


def read_json(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
