"""`replay:FOLDER`: answers recorded earlier, given again without any model.

FOLDER is that of a run, or its journal. An answer is found by its request and the repeat number.
Answers in a published format come in through `RecordedAnswers`, which `sealegs score` uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from sealegs.errors import UsageError
from sealegs.files.cache import file_sha256
from sealegs.harness.folder.spec import read_spec
from sealegs.journal.database import refuse_links
from sealegs.journal.journal import make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.types import Capability, Request, Response


class Replay:
    """Answers from another run's journal. A request that it does not hold ends as `error`."""

    capabilities: frozenset[Capability] = frozenset({"generate", "loglikelihood", "stringlikelihood"})

    class Options(Struct, frozen=True, kw_only=True):
        """None: a recording answers as it is."""

    def __init__(self, name: str, options: Options | None = None) -> None:
        path = Path(name)
        self.path = path / "journal.sqlite" if path.is_dir() else path
        if not self.path.is_file():
            raise UsageError(f"replay:{name}: no journal there. Give a run's folder or its journal.sqlite.")
        refuse_links(self.path)
        with self.path.open("rb") as file:
            if not file.read(16).startswith(b"SQLite format 3"):
                raise UsageError(
                    f"replay:{name} is not a journal. For answers in a published format: sealegs score"
                )
        self._digest = self._model_digest()
        self._recording: Recording | None = None

    def identity(self) -> dict[str, Any]:
        log = self.path.with_name(f"{self.path.name}-wal")
        more = {"log_sha256": file_sha256(log)} if log.is_file() and log.stat().st_size else {}
        return {"spec": f"replay:{self.path}", "sha256": file_sha256(self.path), **more}

    def probe(self, needs: frozenset[Capability]) -> None:
        """A recording has nothing to probe: what it lacks shows as coverage."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        self._recording = self._recording or Recording(self.path)
        missing = Response(status="error", reason="not in the recording")
        for request in requests:
            key = make_key(self._digest, request)
            yield request, self._recording.find([key]).get(key, missing)

    def _model_digest(self) -> bytes:
        """That of the recorded run's model, as the spec beside the journal has it."""
        model = read_spec(self.path.parent).models.get("model")
        if model is None:
            raise UsageError(
                f"replay:{self.path.parent}: this run has no model under test, whose answers are replayed."
            )
        return model_digest(model["identity"])

    def close(self) -> None:
        if self._recording is not None:
            self._recording.close()
            self._recording = None


class RecordedAnswers:
    """Answers read from a file in a published format, handed over by `sealegs score`."""

    capabilities: frozenset[Capability] = frozenset({"generate", "loglikelihood"})

    def __init__(
        self, identity: dict[str, Any], answers: Mapping[bytes, Response], warnings: Iterable[str] = ()
    ) -> None:
        self._identity = identity
        self._answers = answers
        self._warnings = list(warnings)

    @staticmethod
    def key(request: Request) -> bytes:
        return make_key(b"", request)

    def identity(self) -> dict[str, Any]:
        return self._identity

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        missing = Response(status="error", reason="not recorded")
        for request in requests:
            yield request, self._answers.get(self.key(request), missing)

    def notes(self) -> list[str]:
        """What of the file could not be read."""
        return self._warnings

    def close(self) -> None:
        """Nothing to give back."""
