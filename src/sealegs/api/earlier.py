"""What an earlier start of a run has left in its folder, read before anything is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from sealegs.errors import SealegsError
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.folder.layout import run_file
from sealegs.harness.folder.spec import read_spec, spec_changes
from sealegs.journal.database import LOOKUP, JournalUsage
from sealegs.journal.journal import make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.types import Request, RunSpec, Sample


class EarlierStart:
    """The spec and the journal of a run that was begun. What cannot be read is refused when the folder is
    opened to be written, not here."""

    def __init__(self, folder: Path) -> None:
        self._spec: RunSpec | None = None
        self._journal: Path | None = None
        with contextlib.suppress(SealegsError):
            self._journal = run_file(folder, "journal.sqlite")
            self._spec = read_spec(folder)

    def usage(self) -> dict[str, JournalUsage]:
        """What was asked of the model of each role."""
        with contextlib.suppress(SealegsError):
            if self._journal is not None:
                with contextlib.closing(Recording(self._journal)) as recording:
                    return recording.usage()
        return {}

    def answers(
        self, spec: RunSpec, identity: Mapping[str, Any], benchmark: Benchmark, samples: Sequence[Sample]
    ) -> bool:
        """Whether it is the same run, and every request to its model is answered: nothing is left to ask."""
        if self._spec is None or self._journal is None or spec_changes(self._spec, spec):
            return False
        requests = chain.from_iterable(benchmark.requests(sample) for sample in samples)
        with contextlib.suppress(SealegsError), contextlib.closing(Recording(self._journal)) as recording:
            return _all_answered(recording, model_digest(identity), iter(requests))
        return False


def _all_answered(recording: Recording, digest: bytes, requests: Iterator[Request]) -> bool:
    while chunk := {make_key(digest, request) for request in islice(requests, LOOKUP)}:
        stored = recording.find(list(chunk))
        if len(stored) < len(chunk) or any(response.status == "error" for response in stored.values()):
            return False
    return True
