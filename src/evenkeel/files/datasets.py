"""Find a data set: a person's own path, the starter set, or a published one fetched at a pinned commit."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, DataUnreachable, EvenkeelError, StorageError, UsageError
from evenkeel.files.cache import cache_dir, write_whole
from evenkeel.files.jsonfile import read_bytes
from evenkeel.messages import suggestion

CHUNK = 1 << 16
TIMEOUT = 30
CLAIMS = ("x-repo-commit", "x-linked-etag", "etag")
"""What the Hugging Face Hub says of a file: its commit; SHA-256 of a large one, Git's id of a small one."""
DIGEST = re.compile("[0-9a-f]{64}|[0-9a-f]{40}")

State: TypeAlias = Literal["missing", "whole", "changed", "unchecked"]
"""`unchecked` is a file that was placed by hand and has no digest to hold it against yet."""


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
    """Git's id of the content; empty where it is not known."""
    samples: bool = True
    """Whether it holds samples, rather than prompts and the like."""

    @property
    def pinned_by(self) -> Literal["digest", "commit"]:
        """By the digest of its content, or by the commit alone; the digest is then recorded when fetched."""
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
        """Where the file is fetched from; EVENKEEL_MIRROR puts another scheme and host in front."""
        address = self.origin(file)
        mirror = os.environ.get("EVENKEEL_MIRROR")
        if not mirror:
            return address
        if not mirror.startswith(("http://", "https://")):
            raise UsageError("EVENKEEL_MIRROR must be a web address such as https://mirror.example.org.")
        return urlunsplit((*urlsplit(mirror)[:2], *urlsplit(address)[2:]))


@cache
def published_sets() -> dict[str, PublishedSet]:
    content = resources.files("evenkeel.files").joinpath("published.json").read_bytes()
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
        return DataFile(path, hashlib.sha256(read_bytes(path)).hexdigest())
    except DataError as error:
        if os.path.lexists(path) or "\0" in str(path):
            raise
        raise DataError(str(error).rstrip("."), "Give a path, 'starter' or 'published'.") from None


def published_set(name: str) -> PublishedSet:
    sets = published_sets()
    if name not in sets:
        hint = suggestion(name, sets)
        raise UsageError(f"there is no published data set for '{name}'.{hint} There is: {', '.join(sets)}.")
    return sets[name]


def fetch(
    name: str, *, progress: Callable[[PublishedFile, int, int | None], None] | None = None
) -> list[Path]:
    """Download a published set into the cache. What is there and whole is kept; what broke off is resumed.

    A file that was placed by hand and has no published digest is taken as it is, and its digest recorded.
    """
    chosen = published_set(name)
    for file in chosen.files:
        match state(name, file):
            case "whole":
                pass
            case "unchecked":
                _record(place(name, file))
            case "missing" | "changed":
                _download(name, file, progress)
    return [place(name, file) for file in chosen.files]


def state(name: str, file: PublishedFile) -> State:
    """Whether a published file is in the cache, and as it was published or first fetched."""
    target = place(name, file)
    if not target.is_file():
        return "missing"
    if file.blob:
        return "whole" if git_blob(target) == file.blob else "changed"
    known = recorded(target)
    if known is None:
        return "unchecked"
    return "whole" if own_file(target).sha256 == known else "changed"


def recorded(target: Path) -> str | None:
    """The SHA-256 that a file had when it was first fetched, or first taken as it was."""
    note = _note(target)
    return note.read_text().partition(" ")[0].strip() if note.is_file() else None


def _record(target: Path) -> None:
    """Write a file's SHA-256 beside it, as sha256sum does."""
    write_whole(_note(target), f"{own_file(target).sha256}  {target.name}\n")


def _note(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def git_blob(path: Path) -> str:
    """Git's id of a file's content: SHA-1 of `blob <size>\\0<content>`."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def place(name: str, file: PublishedFile) -> Path:
    """Where a file of a published set lies, fetched or placed by hand."""
    revision = published_set(name).revision
    return cache_dir() / "published" / name / revision / Path(file.path).name


def _published_file(benchmark: str, file: PublishedFile) -> DataFile:
    target = place(benchmark, file)
    match state(benchmark, file):
        case "missing":
            raise DataError(target, f"not fetched yet. Run: evenkeel data fetch {benchmark}")
        case "unchecked":
            raise DataError(target, f"not checked yet. Run: evenkeel data fetch {benchmark}")
        case "changed":
            raise DataError(target, f"not as published. Run: evenkeel data fetch {benchmark}")
        case "whole":
            return msgspec.structs.replace(own_file(target), lang=file.lang)


def _starter_file(benchmark: str, lang: str, stem: str, starter: Starter) -> DataFile:
    if stem not in starter.sha256:
        langs = dict.fromkeys(stem.partition("_")[0] for stem in starter.sha256)
        hint = suggestion(lang, langs)
        raise UsageError(f"{benchmark} has no starter set in '{lang}'.{hint} There is: {', '.join(langs)}.")
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
    name: str, file: PublishedFile, progress: Callable[[PublishedFile, int, int | None], None] | None
) -> None:
    chosen, target = published_set(name), place(name, file)
    part = target.with_name(f"{target.name}.part")
    claims: dict[str, str] = {}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as out:
            for chunk, total in _stream(chosen.address(file), part.stat().st_size, claims):
                if chunk is None:  # the server sends the whole file again
                    out.truncate(0)
                else:
                    out.write(chunk)
                if progress:
                    progress(file, out.tell(), total)
    except DataUnreachable as error:
        for each in [each for each in chosen.files if state(name, each) in ("missing", "changed")]:
            error.add_note(f"  {chosen.origin(each)}\n    to {place(name, each)}")
        raise
    except OSError as error:
        raise StorageError(f"{part}: cannot be written ({error.strerror or error}).") from error
    try:
        _check(chosen, file, part, target, claims)
    except DataError:
        part.unlink()
        raise
    part.replace(target)
    _record(target)


def _check(
    chosen: PublishedSet, file: PublishedFile, part: Path, target: Path, claims: Mapping[str, str]
) -> None:
    """Hold a download against its pinned digest; without one, against the commit and the digest that the
    server names (the Hugging Face Hub does), and against what was recorded at the first fetch."""
    origin, blob, sha256 = chosen.origin(file), git_blob(part), own_file(part).sha256
    if file.blob:
        if blob != file.blob:
            raise DataError(
                origin, f"the content is not the published one (git blob {blob}, expected {file.blob})."
            )
        return
    commit = claims.get("x-repo-commit", "")
    if commit and commit != chosen.revision:
        raise DataError(origin, f"the server sent it at commit {commit}, not at {chosen.revision}.")
    named = claims.get("x-linked-etag") or (claims.get("etag", "") if commit else "")
    named = named.removeprefix("W/").strip('"').lower()
    if DIGEST.fullmatch(named) and named not in (sha256, blob):
        raise DataError(
            origin, f"the content is not what the server names (sha256 {sha256}, expected {named})."
        )
    known = recorded(target)
    if known not in (None, sha256):
        raise DataError(
            origin,
            f"the content is not the one that was fetched first (sha256 {sha256}, expected {known}). "
            f"To take it all the same, delete {_note(target)} and fetch again.",
        )


def _stream(address: str, start: int, claims: dict[str, str]) -> Iterator[tuple[bytes | None, int | None]]:
    """Chunks of a file from byte `start` on, each with the total size; None first where it starts over.

    `claims` receives what the server says of the file: the headers of the first response that has each.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException, HTTPMessage

    def claim(headers: HTTPMessage) -> None:
        for name in CLAIMS:
            if headers.get(name):
                claims.setdefault(name, headers[name])

    class Redirects(urllib.request.HTTPRedirectHandler):
        """The Hub names commit and digest where it redirects; the store behind it does not."""

        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            claim(headers)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    shown, login = _without_login(address)
    request = urllib.request.Request(shown, headers={"User-Agent": "evenkeel"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    if login:
        request.add_unredirected_header("Authorization", login)
    try:
        try:
            response = urllib.request.build_opener(Redirects).open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:  # nothing is left to send: the part is the whole file
                    return
                raise OSError(f"HTTP {error.code} {error.reason}") from None
        with response:
            claim(response.headers)
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
    except (OSError, HTTPException, ValueError) as error:  # urllib's errors are OSErrors
        raise DataUnreachable(
            f"{shown} could not be fetched ({getattr(error, 'reason', None) or error}). Run the same command "
            "again to go on, set EVENKEEL_MIRROR to a host that serves the same paths, or download by hand:"
        ) from None


def _without_login(address: str) -> tuple[str, str]:
    """An address to show and to ask, and the login that a mirror may need as a header."""
    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    header = f"Basic {base64.b64encode(unquote(login).encode()).decode()}" if login else ""
    return urlunsplit(parts._replace(netloc=host)), header
