"""Published sets: fetched at a pinned commit, checked, resumed; and the other places data comes from."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from evenkeel import data
from evenkeel.errors import DataError, EvenkeelError, UsageError

NONE = data.Starter({}, lambda _: b"")
CONTENT = b"a small published file\n" * 10_000


class Mirror(BaseHTTPRequestHandler):
    """A file server that understands Range, and can be made to break off or to send something else."""

    content = CONTENT
    break_after: int | None = None
    ranges = True
    asked: list[tuple[str, str | None]] = []

    def do_GET(self) -> None:
        cls = type(self)
        wanted = self.headers.get("Range")
        cls.asked.append((self.path, wanted))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and cls.ranges else 0
        if start and start >= len(cls.content):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = cls.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cls.break_after is None else body[: cls.break_after])

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Mirror]]:
    """A mirror on loopback, an empty cache, and one published file whose content is known."""
    handler = type("Handler", (Mirror,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    monkeypatch.setenv("EVENKEEL_MIRROR", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path / "cache"))
    known = tmp_path / "known"
    known.write_bytes(CONTENT)
    chosen = msgspec.structs.replace(
        data.published_sets()["mirae"],
        files=[data.PublishedFile("data/one.json", "en", data.git_blob(known))],
    )
    monkeypatch.setattr(data, "published_sets", lambda: {"mirae": chosen})
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
    assert mirror.asked == [
        (f"/greatgompang/MIRAE/{data.published_set('mirae').revision}/data/one.json", None)
    ]


def test_what_is_there_is_not_fetched_again(mirror: type[Mirror]) -> None:
    data.fetch("mirae")
    data.fetch("mirae")
    assert len(mirror.asked) == 1


def test_a_download_that_broke_off_is_resumed(mirror: type[Mirror]) -> None:
    mirror.break_after = 70_000
    with pytest.raises(
        EvenkeelError, match="broke off after 70,000 of 230,000 bytes.*Run the same command again"
    ):
        data.fetch("mirae")
    mirror.break_after = None
    (path,) = data.fetch("mirae")
    assert path.read_bytes() == CONTENT
    assert [wanted for _, wanted in mirror.asked] == [None, "bytes=70000-"]


def test_a_server_without_ranges_starts_over(mirror: type[Mirror]) -> None:
    mirror.break_after = 70_000
    with pytest.raises(EvenkeelError):
        data.fetch("mirae")
    mirror.break_after, mirror.ranges = None, False
    (path,) = data.fetch("mirae")
    assert path.read_bytes() == CONTENT


def test_another_content_is_refused_and_not_kept(mirror: type[Mirror]) -> None:
    mirror.content = b"something else"
    with pytest.raises(DataError, match="not the published one"):
        data.fetch("mirae")
    assert state() == "missing"
    mirror.content = CONTENT
    data.fetch("mirae")
    assert state() == "whole"


def test_a_file_that_was_changed_is_noticed(mirror: type[Mirror]) -> None:
    (path,) = data.fetch("mirae")
    path.write_bytes(b"tampered")
    assert state() == "changed"
    with pytest.raises(DataError, match="not as published. Run: evenkeel data fetch mirae"):
        data.find("mirae", "published", ["en"], starter=NONE)


def test_what_was_never_fetched_says_how(mirror: type[Mirror]) -> None:
    with pytest.raises(DataError, match="not fetched yet. Run: evenkeel data fetch mirae"):
        data.find("mirae", "published", None, starter=NONE)


def test_without_a_network_the_address_is_given(
    mirror: type[Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(
        EvenkeelError, match=r"http://127.0.0.1:9/greatgompang/.*fetch it by hand and save it as .*one\.json"
    ):
        data.fetch("mirae")


def test_a_file_fetched_by_hand_is_taken(mirror: type[Mirror]) -> None:
    mirror.content = b""
    place = data._place("mirae", data.published_set("mirae").files[0])
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    assert data.fetch("mirae") == [place]
    assert mirror.asked == []


def test_the_git_blob_is_the_one_of_git(reference: Path) -> None:
    known = {file.path: file.blob for file in data.published_set("rgb").files}
    assert data.git_blob(reference / "rgb" / "en_fact.json") == known["data/en_fact.json"]


def test_the_starter_set_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
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


def test_a_starter_set_that_comes_out_otherwise_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
    with pytest.raises(EvenkeelError, match="came out as"):
        data.find("mirae", "starter", None, starter=data.Starter({"en": "0" * 64}, lambda _: b"other"))


def test_a_path_that_is_not_there_says_what_is_possible(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Give a path, 'starter' or 'published'"):
        data.find("mirae", str(tmp_path / "none.json"), None, starter=NONE)


def test_an_unknown_set_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="mirae, rgb, miron"):
        data.fetch("squad")
