"""The files that a benchmark reads its samples from, with what a person chose of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sealegs.errors import UsageError, suggestion
from sealegs.files.datasets import DataFile
from sealegs.files.tables import Row, read_rows
from sealegs.types import Sample


class Data(tuple[DataFile, ...]):
    """The files to read samples from, with what a person chose of them."""

    langs: list[str] | None
    limit: int | None

    def __new__(
        cls, files: Sequence[DataFile], *, langs: list[str] | None = None, limit: int | None = None
    ) -> Data:
        data = super().__new__(cls, files)
        data.langs, data.limit = langs, limit
        return data

    @property
    def only_lang(self) -> str | None:
        """The language of files that do not state theirs: the chosen one, where it is a single one."""
        return self.langs[0] if self.langs and len(self.langs) == 1 else None

    def choose_langs(self, available: Iterable[str]) -> list[str]:
        """The chosen languages, each of which must be available; all of them where none was chosen."""
        langs = list(dict.fromkeys(available))
        for lang in self.langs or ():
            if lang not in langs:
                raise UsageError(
                    f"--lang {lang}: the data has no such language.{suggestion(lang, langs)} "
                    f"Available: {', '.join(filter(None, langs)) or 'none'}."
                )
        return self.langs or langs

    def choose(self, samples: Sequence[Sample]) -> ChosenSamples:
        """The samples of the chosen languages, and of each language the first `limit` groups."""
        langs = self.choose_langs(str(sample.tags.get("lang", "")) for sample in samples)
        groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
        chosen = []
        for sample in samples:
            lang = str(sample.tags.get("lang", ""))
            if lang not in langs:
                continue
            number = groups[lang].setdefault(sample.group, len(groups[lang]))
            if self.limit is None or number < self.limit:
                chosen.append(sample)
        return ChosenSamples(chosen)

    def rows(self) -> Iterator[Row]:
        """The rows of all files: JSON lines, CSV or Parquet; of several files, named after the file too."""
        for file in self:
            prefix = f"{file.path.stem}-" if len(self) > 1 else ""
            yield from (row._replace(name=f"{prefix}{row.name}") for row in read_rows(file.path))


class ChosenSamples(list[Sample]):
    """Samples that a benchmark chose itself by `langs` and `limit`, and facts for the run's spec."""

    def __init__(self, samples: Iterable[Sample], facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(samples)
        self.facts = dict(facts or {})
        """What the spec says of the data besides its hash, for `Benchmark.notes` to read."""
