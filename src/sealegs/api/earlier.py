"""What an earlier start of a run has left in its folder, read before anything is asked."""

from __future__ import annotations

import contextlib
from pathlib import Path

from sealegs.errors import SealegsError
from sealegs.harness.folder.layout import run_file
from sealegs.harness.folder.spec import read_spec, served_at, spec_changes
from sealegs.journal.database import JournalUsage
from sealegs.journal.recording import Recording
from sealegs.types import RunSpec


class EarlierStart:
    """The spec and the journal of a run that was begun. What cannot be read is refused when the folder is
    opened to be written, not here."""

    def __init__(self, folder: Path) -> None:
        self.is_begun = (folder / "spec.json").exists()
        """Whether it went as far as to have a spec, which says what its models were found to be able to."""
        self._folder = folder
        self._spec: RunSpec | None = None
        with contextlib.suppress(SealegsError):
            self._spec = read_spec(folder)

    def usage(self) -> dict[str, JournalUsage]:
        """What was asked of the model of each role."""
        with contextlib.suppress(SealegsError):
            if (journal := run_file(self._folder, "journal.sqlite")) is not None:
                with contextlib.closing(Recording(journal)) as recording:
                    return recording.usage()
        return {}

    def is_same(self, spec: RunSpec) -> bool:
        return self._spec is not None and not spec_changes(self._spec, spec)

    def has_tried(self, spec: RunSpec) -> bool:
        """Whether it has tried out every server of the same run. One of several may have been away."""
        servers = served_at(spec)
        several = any(len(addresses) > 1 for addresses in servers.values())
        return self._spec is not None and served_at(self._spec) == servers and not several
