"""Published sets: fetched at a pinned commit, checked, resumed; and the other places data comes from."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from commandline import sealegs
from sealegs.errors import DataError, DataUnreachable
from sealegs.files import datasets as data
from sealegs.files.remote.download import download

NONE = data.Starter({}, lambda _: b"")
CONTENT = b"a small published file\n" * 10_000


class Mirror(BaseHTTPRequestHandler):
    """A file server that can be made to break off or to send something else."""

    content = CONTENT
    contents: dict[str, bytes] = {}
    """By a file's name, what is sent in place of `content`; nothing is a 404."""
    break_after: int | None = None
    status = 200
    asked: list[str] = []
    logins: list[str] = []

    def do_GET(self) -> None:
        cls = type(self)
        cls.asked.append(self.path)
        cls.logins += self.headers.get_all("Authorization", [])
        endings = [content for path, content in cls.contents.items() if self.path.endswith(f"/{path}")]
        content = endings[0] if endings else cls.content
        status = cls.status if content else 404
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if status == 200 else 0))
        self.end_headers()
        if status == 200:
            self.wfile.write(content[: cls.break_after])

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Mirror]]:
    """A mirror of one published file whose content is known, and an empty cache."""
    handler = type("Handler", (Mirror,), {"asked": [], "logins": []})
    files = [data.PublishedFile("data/one.json", "en", data.git_blob(CONTENT))]
    chosen = msgspec.structs.replace(data.published_sets()["mirae"], files=files)
    monkeypatch.setattr(data, "published_sets", lambda: {"mirae": chosen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    monkeypatch.setenv("SEALEGS_MIRROR", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def state() -> str:
    return data.state("mirae", data.published_set("mirae").files[0])


def test_a_set_is_fetched_from_the_pinned_commit_and_checked(mirror: type[Mirror]) -> None:
    assert state() == "missing"
    (path,) = data.fetch("mirae")
    assert path.read_bytes() == CONTENT
    assert state() == "whole"
    assert mirror.asked == [f"/greatgompang/MIRAE/{data.published_set('mirae').revision}/data/one.json"]


def test_what_is_not_the_whole_published_file_is_not_kept(mirror: type[Mirror]) -> None:
    mirror.content = b"something else"
    with pytest.raises(DataError, match="not the published one"):
        data.fetch("mirae")
    mirror.content, mirror.break_after = CONTENT, 70_000
    with pytest.raises(DataUnreachable, match="could not be fetched .*Run the same command again"):
        data.fetch("mirae")
    assert state() == "missing"
    mirror.break_after = None
    data.fetch("mirae")
    assert state() == "whole"


def test_a_file_that_cannot_be_had_does_not_stop_the_others(
    mirror: type[Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {f"{name}.json": name.encode() for name in ("one", "gone", "other", "last")}
    files = [data.PublishedFile(path, "en", data.git_blob(content)) for path, content in contents.items()]
    chosen = msgspec.structs.replace(data.published_set("mirae"), files=files)
    monkeypatch.setattr(data, "published_sets", lambda: {"mirae": chosen})
    mirror.contents = contents | {"gone.json": b"", "other.json": b"something else"}
    done = sealegs("data", "fetch", "mirae")
    assert done.code == 3
    assert [data.state("mirae", file) for file in files] == ["whole", "missing", "missing", "whole"]
    assert "gone.json could not be fetched (HTTP 404" in done.stderr
    assert "other.json: the content is not the published one" in done.stderr
    for file in files[1:3]:
        assert f"  {chosen.origin(file)}\n    to {data.cached_path('mirae', file)}\n" in done.stderr
    assert f"    to {data.cached_path('mirae', files[3])}\n" not in done.stderr
    assert "In the cache: 2 of the 4 files." in done.stderr


def test_all_nine_results_of_mirae_are_pinned_at_one_commit_by_their_blobs(reference: Path) -> None:
    chosen = data.published_set("mirae")
    results = [file for file in chosen.files if "_results_" in file.path]
    folders = {Path(file.path).parent.name for file in results}
    assert len({file.blob for file in results}) == len(results) == 9
    assert folders == {"claude_haiku", "gemini2.0flash", "gpt4o_mini"}
    assert all(chosen.revision in chosen.origin(file) and file.pinned_by == "digest" for file in results)
    [haiku] = [file for file in results if "claude_haiku_results_english" in file.path]
    assert data.git_blob((reference / "mirae" / Path(haiku.path).name).read_bytes()) == haiku.blob


def test_a_file_that_was_changed_or_never_fetched_says_how(mirror: type[Mirror]) -> None:
    with pytest.raises(DataError, match="not fetched yet. Run: sealegs data fetch mirae"):
        data.find("mirae", "published", None, starter=NONE)
    (path,) = data.fetch("mirae")
    path.write_bytes(b"tampered")
    assert state() == "changed"
    with pytest.raises(DataError, match="not as published. Run: sealegs data fetch mirae"):
        data.find("mirae", "published", ["en"], starter=NONE)


def test_the_login_of_a_mirror_is_sent_and_never_shown(
    mirror: type[Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = os.environ["SEALEGS_MIRROR"].removeprefix("http://")
    monkeypatch.setenv("SEALEGS_MIRROR", f"http://me:s%40cret@{host}")
    data.fetch("mirae")
    assert mirror.logins == ["Basic " + base64.b64encode(b"me:s@cret").decode()]
    data.cached_path("mirae", data.published_set("mirae").files[0]).unlink()
    mirror.status = 403
    with pytest.raises(DataUnreachable) as caught:
        data.fetch("mirae")
    assert "cret" not in "".join([str(caught.value), *caught.value.__notes__])


MIRON = (
    "https://huggingface.co/datasets/apsua/MIRON_Benchmark/resolve/3cc121bdfd9714c7f2d79a563f013bbdbc430df5"
)


def test_every_published_set_is_pinned_to_a_whole_commit() -> None:
    for chosen in data.published_sets().values():
        assert len(chosen.revision) == 40
        assert set(chosen.revision) <= set("0123456789abcdef")
        assert "{revision}" in chosen.url
    miron = data.published_set("miron")
    assert [miron.origin(file) for file in miron.files] == [f"{MIRON}/{file.path}" for file in miron.files]


def test_the_git_blob_is_the_one_of_git(reference: Path) -> None:
    known = {file.path: file.blob for file in data.published_set("rgb").files}
    assert all(known.values())  # whatever is saved by hand can be verified
    assert data.git_blob((reference / "rgb" / "en_fact.json").read_bytes()) == known["data/en_fact.json"]


def test_the_starter_set_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path))
    made: list[str] = []

    def make(lang: str) -> bytes:
        made.append(lang)
        return lang.encode()

    starter = data.Starter({lang: hashlib.sha256(lang.encode()).hexdigest() for lang in ("en", "ko")}, make)
    first, second = (data.find("mirae", "starter", None, starter=starter) for _ in range(2))
    assert first == second
    assert first[0].path.read_bytes() == b"en"
    assert made == ["en"]
    first[0].path.write_bytes(b"tampered")
    assert data.find("mirae", "starter", ["en"], starter=starter)[0].path.read_bytes() == b"en"


@pytest.mark.usefixtures("mirror")
def test_a_server_that_sends_a_byte_now_and_then_is_given_up() -> None:
    address = f"{os.environ['SEALEGS_MIRROR']}/data/one.json"
    assert download(address, hint="") == CONTENT
    with pytest.raises(DataUnreachable, match="it took more than"):
        download(address, hint="", longest_s=-1.0)
