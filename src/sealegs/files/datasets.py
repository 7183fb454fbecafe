"""Data sets: a path, a starter set made on first use, or a published set fetched at a pinned commit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from sealegs.errors import DataError, DataUnreachable, SealegsError, UsageError, suggestion
from sealegs.files.cache import cache_dir, write_whole
from sealegs.files.jsonfile import open_file
from sealegs.files.remote.download import download
from sealegs.files.remote.sources import ending, is_elsewhere, local
from sealegs.files.tables import ENDINGS

HINT = (
    "Run the same command again, set SEALEGS_MIRROR to a host that serves the same paths, or "
    "download by hand:"
)
DESCRIPTIONS = ("dataset_infos.json", "dataset_info.json")
"""Files of the Hugging Face Hub that describe data and hold none."""
State: TypeAlias = Literal["missing", "whole", "changed"]
PROBLEMS = {"missing": "not fetched yet", "changed": "not as published"}


class DataFile(Struct, frozen=True):
    """A file to read samples from."""

    path: Path
    sha256: str
    lang: str | None = None
    """Known where Sealegs made or fetched the file; otherwise the file says it."""
    folder: Path | None = None
    """The folder that was given, where the file is one of those in it."""


class Starter(NamedTuple):
    """The data set that comes with a benchmark: made on first use, and the same everywhere by its hashes."""

    sha256: Mapping[str, str]
    """By file stem, which begins with the language: `en`, `en_int`."""
    make: Callable[[str], bytes]
    langs: tuple[str, ...] = ("en",)
    """Used where no language is given."""
    tables: bool = True
    """Whether CSV and Parquet files are read as they are, by `Data.rows`; if not, they become JSON lines."""

    def stems(self, lang: str) -> list[str]:
        return [stem for stem in self.sha256 if stem.partition("_")[0] == lang]


class PublishedFile(Struct, frozen=True):
    path: str
    lang: str
    blob: str = ""
    """Git's id of the content; empty where it is not known."""
    samples: bool = True
    """Whether it holds samples, rather than prompts and the like."""
    results: bool = False
    """Whether it holds the results of a model that a run is shown beside, once they are fetched."""

    @property
    def pinned_by(self) -> Literal["digest", "commit"]:
        """By the digest of its content, or by the commit that it is fetched at."""
        return "digest" if self.blob else "commit"


class PublishedSet(Struct, frozen=True):
    title: str
    licence: str
    home: str
    revision: str
    url: str
    files: list[PublishedFile]

    def origin(self, file: PublishedFile) -> str:
        """Where the file was published."""
        return self.url.format(revision=self.revision, path=file.path)

    def address(self, file: PublishedFile) -> str:
        """Where the file is fetched from; SEALEGS_MIRROR replaces the scheme and the host."""
        address = self.origin(file)
        mirror = os.environ.get("SEALEGS_MIRROR")
        if not mirror:
            return address
        if not mirror.startswith(("http://", "https://")):
            raise UsageError("SEALEGS_MIRROR must be a web address such as https://mirror.example.org.")
        return urlunsplit((*urlsplit(mirror)[:2], *urlsplit(address)[2:]))


def find(
    benchmark: str,
    data: str | Sequence[str],
    langs: Sequence[str] | None,
    *,
    starter: Starter,
    columns: Mapping[str, str] | None = None,
) -> list[DataFile]:
    """The files that `--data` means for a benchmark: of one value, or of several one after the other.
    `columns` are those of other names."""
    if not isinstance(data, str):
        return [
            file
            for source in dict.fromkeys(data)
            for file in find(benchmark, source, langs, starter=starter, columns=columns)
        ]
    if columns and data in ("starter", "published"):
        raise UsageError(f"--column goes with your own data, not with --data {data}.")
    if data == "starter":
        return [
            _starter_file(benchmark, lang, stem, starter)
            for lang in langs or starter.langs
            for stem in starter.stems(lang) or [lang]
        ]
    if data == "published":
        files = [file for file in published_set(benchmark).files if file.samples]
        return [_published_file(benchmark, file) for file in files if not langs or file.lang in langs]
    path = Path(data)
    if is_elsewhere(data) or not path.is_dir():
        return [_user_file(data, columns, tables=starter.tables)]
    if columns:
        raise UsageError(f"--column goes with one file: {data} is a folder.")
    # A build leaves its journal and settings beside the files that it made, earlier versions also decisions.
    ignored = (".", "journal.sqlite", "started.json", "review.jsonl")
    paths = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith(ignored))
    # A clone of a repository has a README, a licence and descriptions beside its data.
    paths = [p for p in paths if ending(p) in ENDINGS and p.name not in DESCRIPTIONS] or paths
    folders = sorted(p for p in path.iterdir() if p.is_dir() and not p.is_symlink() and p.name[0] != ".")
    if not paths and folders:  # a folder for each task, as the public multiview project writes
        return find(benchmark, [str(folder) for folder in folders], langs, starter=starter)
    if not paths:
        raise DataError(path, "the folder has no files.")
    return [
        msgspec.structs.replace(_user_file(file, None, tables=starter.tables), folder=path) for file in paths
    ]


def _user_file(data: str | Path, columns: Mapping[str, str] | None, *, tables: bool) -> DataFile:
    """A user's file, wherever it is, with the hash of what is in it before any column has another name."""
    content = data_file(local(data))
    return msgspec.structs.replace(content, path=local(content.path, columns, tables=tables))


def data_file(path: Path) -> DataFile:
    """A user's file, with its hash."""
    try:
        with open_file(path) as file:
            return DataFile(path, hashlib.file_digest(file, "sha256").hexdigest())  # type: ignore[arg-type]
    except DataError as error:
        if os.path.lexists(path) or "\0" in str(path):
            raise
        raise DataError(
            str(error).rstrip("."), "Give a path, an address, 'starter', 'published' or 'hf:NAME'."
        ) from None


def _starter_file(benchmark: str, lang: str, stem: str, starter: Starter) -> DataFile:
    if stem not in starter.sha256:
        langs = dict.fromkeys(stem.partition("_")[0] for stem in starter.sha256)
        if not langs:
            raise UsageError(f"{benchmark} has no starter set: name your data with --data PATH.")
        hint = suggestion(lang, langs)
        raise UsageError(f"{benchmark} has no starter set in '{lang}'.{hint} Available: {', '.join(langs)}.")
    pinned = starter.sha256[stem]
    path = cache_dir() / "starter" / benchmark / pinned[:12] / f"{stem}.json"
    if not path.is_file() or data_file(path).sha256 != pinned:
        content = starter.make(stem)
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 != pinned:
            raise SealegsError(
                f"the starter set of {benchmark}, {stem}, has the hash {sha256}, not {pinned}."
            )
        write_whole(path, content)
    return DataFile(path, pinned, lang)


# Published sets


@cache
def published_sets() -> dict[str, PublishedSet]:
    content = Path(__file__).with_name("published.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, PublishedSet])


def published_set(name: str) -> PublishedSet:
    sets = published_sets()
    if name not in sets:
        hint = suggestion(name, sets)
        raise UsageError(f"there is no published data set for '{name}'.{hint} Available: {', '.join(sets)}.")
    return sets[name]


def published_path(name: str, path: str) -> Path:
    """The path of a published file in the cache, or an error that says how to fetch it."""
    return _published_file(name, next(file for file in published_set(name).files if file.path == path)).path


def cached_path(name: str, file: PublishedFile) -> Path:
    """Where a published file is in the cache, fetched or put there by hand."""
    return cache_dir() / "published" / name / published_set(name).revision / Path(file.path).name


def published_results(name: str) -> list[tuple[Path, str, str]]:
    """The results of models that were fetched with a published set, where each was published, and the
    language of its samples."""
    published = published_sets().get(name)
    files = [file for file in published.files if file.results] if published else []
    fetched = [file for file in files if state(name, file) == "whole"]
    return [(cached_path(name, file), published.origin(file), file.lang) for file in fetched if published]


def _published_file(name: str, file: PublishedFile) -> DataFile:
    path = cached_path(name, file)
    if problem := PROBLEMS.get(state(name, file)):
        raise DataError(path, f"{problem}. Run: sealegs data fetch {name}")
    return msgspec.structs.replace(data_file(path), lang=file.lang)


def state(name: str, file: PublishedFile) -> State:
    """Whether a published file is in the cache, and as it was published, where its digest is known."""
    path = cached_path(name, file)
    if not path.is_file():
        return "missing"
    return "whole" if file.blob in ("", git_blob(path.read_bytes())) else "changed"


def git_blob(content: bytes) -> str:
    """Git's id of a file's content: SHA-1 of `blob <size>\\0<content>`."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


# Fetching


def fetch(name: str) -> list[Path]:
    """Download a published set into the cache. Files that are whole are left as they are, and one that cannot
    be had does not stop the others: the error lists all that are missing."""
    published, failures = published_set(name), dict[str, SealegsError]()
    for file in published.files:
        if state(name, file) != "whole":
            try:
                _download(name, file)
            except (DataError, DataUnreachable) as error:
                failures[f"  {published.origin(file)}\n    to {cached_path(name, file)}"] = error
    if failures:
        number, (first, *others) = len(published.files), failures.values()
        for note in failures:
            first.add_note(note)
        for other in others:
            first.add_note(str(other).removesuffix(f" {HINT}"))
        first.add_note(f"In the cache: {number - len(failures)} of the {number} files.")
        raise first
    return [cached_path(name, file) for file in published.files]


def _download(name: str, file: PublishedFile) -> None:
    published, path = published_set(name), cached_path(name, file)
    content = download(published.address(file), hint=HINT)
    if file.blob and (blob := git_blob(content)) != file.blob:
        expected = f"(git blob {blob}, expected {file.blob})"
        raise DataError(published.origin(file), f"the content is not the published one {expected}.")
    write_whole(path, content)
