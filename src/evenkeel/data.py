"""Find a data set: a person's own path, the starter set, or a published one fetched at a pinned commit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from evenkeel.cache import cache_dir, write_whole
from evenkeel.errors import DataError, EvenkeelError, UsageError

CHUNK = 1 << 16
TIMEOUT = 30

State: TypeAlias = Literal["missing", "whole", "changed"]


class DataFile(Struct, frozen=True):
    """A file to read samples from."""

    path: Path
    sha256: str
    lang: str | None = None
    """Known where Evenkeel made or fetched the file; otherwise the file says it."""


class Starter(NamedTuple):
    """A benchmark's own data: made on first use, and the same everywhere, which the hashes vouch for."""

    sha256: Mapping[str, str]
    """By file stem, which begins with the language: `en`, `en_int`."""
    make: Callable[[str], bytes]
    langs: tuple[str, ...] = ("en",)
    """Taken where no language is named."""

    def stems(self, lang: str) -> list[str]:
        return [stem for stem in self.sha256 if stem.partition("_")[0] == lang]


class PublishedFile(Struct, frozen=True):
    path: str
    lang: str
    blob: str = ""
    """Git's id of the content; empty where it is not known, and then noted when it is fetched."""
    samples: bool = True
    """Whether it holds samples, rather than prompts and the like."""


class PublishedSet(Struct, frozen=True):
    title: str
    licence: str
    home: str
    revision: str
    url: str
    files: list[PublishedFile]

    def address(self, file: PublishedFile) -> str:
        """Where the file is fetched from; EVENKEEL_MIRROR puts another scheme and host in front."""
        address = self.url.format(revision=self.revision, path=file.path)
        mirror = os.environ.get("EVENKEEL_MIRROR")
        if not mirror:
            return address
        if not mirror.startswith(("http://", "https://")):
            raise UsageError("EVENKEEL_MIRROR must be a web address such as https://mirror.example.org.")
        return urlunsplit((*urlsplit(mirror)[:2], *urlsplit(address)[2:]))


@cache
def published_sets() -> dict[str, PublishedSet]:
    content = resources.files("evenkeel").joinpath("published.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, PublishedSet])


def find(benchmark: str, data: str, langs: Sequence[str] | None, *, starter: Starter) -> list[DataFile]:
    """The files that `--data` means for a benchmark."""
    if data == "starter":
        return [
            _starter_file(benchmark, lang, stem, starter)
            for lang in langs or starter.langs
            for stem in starter.stems(lang) or [lang]
        ]
    if data == "published":
        published = (file for file in published_set(benchmark).files if file.samples)
        wanted = [file for file in published if not langs or file.lang in langs]
        return [_published_file(benchmark, file) for file in wanted]
    path = Path(data)
    if path.is_dir():
        # A build leaves its journal beside the files that it made.
        files = sorted(
            p for p in path.iterdir() if p.is_file() and not p.name.startswith((".", "journal.sqlite"))
        )
        if not files:
            raise DataError(path, "the folder has no files.")
        return [own_file(file) for file in files]
    return [own_file(path)]


def published_path(name: str, path: str) -> Path:
    """Where a file of a published set lies, or an error that says how to fetch it."""
    return _published_file(name, next(file for file in published_set(name).files if file.path == path)).path


def own_file(path: Path) -> DataFile:
    try:
        return DataFile(path, hashlib.sha256(path.read_bytes()).hexdigest())
    except OSError as error:
        hint = " Give a path, 'starter' or 'published'." if isinstance(error, FileNotFoundError) else ""
        raise DataError(path, f"cannot be read: {error.strerror or error}.{hint}") from None


def published_set(name: str) -> PublishedSet:
    sets = published_sets()
    if name not in sets:
        raise UsageError(f"there is no published data set for '{name}'. There is: {', '.join(sets)}.")
    return sets[name]


def fetch(
    name: str, *, progress: Callable[[PublishedFile, int, int | None], None] | None = None
) -> list[Path]:
    """Download a published set into the cache. What is there and whole is kept; what broke off is resumed."""
    chosen = published_set(name)
    paths = []
    for file in chosen.files:
        target = _place(name, file)
        if state(name, file) != "whole":
            _download(chosen, file, target, progress)
        paths.append(target)
    return paths


def state(name: str, file: PublishedFile) -> State:
    """Whether a published file is in the cache, and as it was published."""
    target = _place(name, file)
    if not target.is_file():
        return "missing"
    return "whole" if git_blob(target) == _expected(target, file) else "changed"


def git_blob(path: Path) -> str:
    """Git's id of a file's content: SHA-1 of `blob <size>\\0<content>`."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _place(name: str, file: PublishedFile) -> Path:
    revision = published_set(name).revision
    return cache_dir() / "published" / name / revision / Path(file.path).name


def _expected(target: Path, file: PublishedFile) -> str:
    """The published id; where the publisher pins none, the id noted when the file was fetched."""
    if file.blob:
        return file.blob
    note = target.with_name(f"{target.name}.blob")
    return note.read_text().strip() if note.is_file() else ""


def _published_file(benchmark: str, file: PublishedFile) -> DataFile:
    target = _place(benchmark, file)
    match state(benchmark, file):
        case "missing":
            raise DataError(target, f"not fetched yet. Run: evenkeel data fetch {benchmark}")
        case "changed":
            raise DataError(target, f"not as published. Run: evenkeel data fetch {benchmark}")
        case "whole":
            return msgspec.structs.replace(own_file(target), lang=file.lang)


def _starter_file(benchmark: str, lang: str, stem: str, starter: Starter) -> DataFile:
    if stem not in starter.sha256:
        langs = dict.fromkeys(stem.partition("_")[0] for stem in starter.sha256)
        raise UsageError(f"{benchmark} has no starter set in '{lang}'. There is: {', '.join(langs)}.")
    pinned = starter.sha256[stem]
    target = cache_dir() / "starter" / benchmark / pinned[:12] / f"{stem}.json"
    if not target.is_file() or own_file(target).sha256 != pinned:
        content = starter.make(stem)
        made = hashlib.sha256(content).hexdigest()
        if made != pinned:
            raise EvenkeelError(
                f"the starter set of {benchmark}, {stem}, came out as {made}, not as {pinned}."
            )
        write_whole(target, content)
    return DataFile(target, pinned, lang)


def _download(
    chosen: PublishedSet,
    file: PublishedFile,
    target: Path,
    progress: Callable[[PublishedFile, int, int | None], None] | None,
) -> None:
    from http.client import HTTPException

    address = chosen.address(file)
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("ab") as out:
            for chunk, total in _stream(address, part.stat().st_size):
                if chunk is None:  # the server sends the whole file again
                    out.truncate(0)
                else:
                    out.write(chunk)
                if progress:
                    progress(file, out.tell(), total)
    except (OSError, HTTPException) as error:  # urllib's errors are OSErrors
        reason = getattr(error, "reason", None) or error
        host = urlsplit(address)
        shown = urlunsplit(
            host._replace(netloc=host.netloc.rpartition("@")[2])
        )  # a mirror may need a password
        raise EvenkeelError(
            f"{shown} could not be fetched ({reason}). Run the same command again to go on, or fetch it by "
            f"hand and save it as {target}"
        ) from None
    blob = git_blob(part)
    if file.blob and blob != file.blob:
        part.unlink()
        raise DataError(
            address, f"the content is not the published one (git blob {blob}, expected {file.blob})."
        )
    target.with_name(f"{target.name}.blob").write_text(f"{blob}\n")
    part.replace(target)


def _stream(address: str, start: int) -> Iterator[tuple[bytes | None, int | None]]:
    """Chunks of a file from byte `start` on, each with the total size; None first where it starts over."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(address, headers={"User-Agent": "evenkeel"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is the whole file
            error.close()
            return
        raise
    with response:
        resumed = response.status == 206
        length = response.headers.get("Content-Length")
        total = int(length) + (start if resumed else 0) if length else None
        if start and not resumed:
            yield None, total
        received = start if resumed else 0
        while chunk := response.read(CHUNK):
            received += len(chunk)
            yield chunk, total
        if total is not None and received < total:
            raise OSError(f"the connection broke off after {received:,} of {total:,} bytes")
