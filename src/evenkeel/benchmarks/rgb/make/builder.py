"""Make an RGB set: from a seed, or by a model from a person's own documents."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.rgb.files import Kind, Lang, language
from evenkeel.errors import DataError
from evenkeel.run.benchmark import Built
from evenkeel.types import Capability, Request, Response

LANGUAGES: tuple[Lang, ...] = get_args(Lang)
KINDS: tuple[Kind, ...] = get_args(Kind)
QUESTIONS = 50
"""Asked for where own documents are given and no number."""
ABILITY: dict[Kind, str] = {
    "plain": "noise robustness and negative rejection",
    "int": "information integration",
    "fact": "counterfactual robustness",
}


class BuildOptions(Struct, frozen=True, kw_only=True):
    """What can be set about building a set."""

    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    lang: Annotated[
        str, Meta(description="The languages.  [default: en,zh; that of your documents, by their script]")
    ] = ""
    size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Questions in each file.  [default: as in the starter set; "
            f"{QUESTIONS} from your documents]"
        ),
    ] = None
    docs: Annotated[
        str | None,
        Meta(description="Your documents: a folder of .txt and .md files, .jsonl, .csv, .parquet."),
    ] = None
    model: Annotated[str | None, Meta(description="Who writes questions about your documents.")] = None
    embedder: Annotated[
        str | None, Meta(description="Finds near documents by meaning, besides BM25: embedded-embedder.")
    ] = None
    text_field: Annotated[str | None, Meta(description="The field of --docs that holds the text.")] = None
    id_field: Annotated[str | None, Meta(description="The field of --docs that holds the id.")] = None

    def __post_init__(self) -> None:
        for lang in self.languages:
            if lang not in LANGUAGES:
                raise ValueError(f"there is no language '{lang}'; there is: {', '.join(LANGUAGES)}")
        if self.docs is None:
            for name in ("model", "embedder", "text_field", "id_field"):
                if getattr(self, name) is not None:
                    flag = f"--{name.replace('_', '-')}"
                    raise ValueError(f"{flag} goes with your own documents: --docs FOLDER or FILE")
        elif self.model is None:
            raise ValueError("--docs needs a --model that writes the questions")
        elif len(self.languages) > 1:
            raise ValueError(
                f"--lang {self.lang}: your documents are in one language; build one set for each"
            )

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(part.strip() for part in self.lang.split(",") if part.strip()))


class RgbBuilder:
    """Makes a file for each language and kind, named as the published ones are."""

    Options = BuildOptions
    folder = True
    roles: Mapping[str, frozenset[Capability]] = {
        "model": frozenset({"generate"}),
        "embedder": frozenset({"embed"}),
    }

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        roles = {"model": options.model, "embedder": options.embedder}
        self.helpers: Mapping[str, str] = {role: spec for role, spec in roles.items() if spec}

    def build(self) -> Generator[Sequence[Request], Sequence[Response], Built]:
        if self.options.docs is None:
            return self._from_seed()
        return (yield from self._from_documents(Path(self.options.docs)))

    def _from_seed(self) -> Built:
        from evenkeel.benchmarks.rgb.make.generator import compose, relations_of

        files, notes = {}, []
        for lang in self.options.languages or LANGUAGES:
            facts = sum(len(relation.facts) for relation in relations_of(lang).values())
            for kind in KINDS:
                size = self.options.size
                if kind == "fact" and size is not None and size > facts:
                    # People, towns and prizes can be invented without end, well-known facts cannot.
                    notes.append(f"{file_name(lang, kind)}: all {facts} facts that there are, not {size}")
                    size = facts
                files[file_name(lang, kind)] = encoded(compose(lang, kind, seed=self.options.seed, size=size))
        return Built(files, notes, failures=[])

    def _from_documents(self, path: Path) -> Generator[Sequence[Request], Sequence[Response], Built]:
        from evenkeel.benchmarks.rgb.make.documents.asking import Author
        from evenkeel.benchmarks.rgb.make.documents.evidence import LEAST
        from evenkeel.benchmarks.rgb.make.documents.make import make
        from evenkeel.benchmarks.rgb.make.documents.passages import cut
        from evenkeel.make.documents import read_documents
        from evenkeel.text.word_splitting import split

        options = self.options
        read = read_documents(path, text_field=options.text_field, id_field=options.id_field)
        lang = self._language([document.text for document in read.documents])
        passages = cut(read.documents, lang)
        if len(passages) <= LEAST:
            raise DataError(
                path,
                f"it gives {len(passages)} passages; a question needs one that answers it and {LEAST} near "
                "ones that do not. Add documents.",
            )
        split([passages[0].text], lang)  # a missing splitter shows before anything is asked
        made = yield from make(
            passages, Author(lang), size=options.size or QUESTIONS, seed=options.seed,
            embeds=options.embedder is not None,
        )  # fmt: skip
        begun = f"{len(read.documents)} documents, {len(passages)} passages"
        notes = [*read.notes, begun, *made.notes]
        if not any(made.rows.values()):
            told = "\n  ".join(notes)
            raise DataError(
                path, f"no question came out of it: try a more able --model, or other documents.\n  {told}"
            )
        notes += [
            f"{file_name(lang, kind)} is left out, for {ABILITY[kind]}: no question came out"
            for kind, rows in made.rows.items()
            if not rows
        ]
        files = {file_name(lang, kind): encoded(rows) for kind, rows in made.rows.items() if rows}
        return Built(files, notes, _failures(made.failed))

    def _language(self, texts: Sequence[str]) -> Lang:
        named = self.options.languages
        return next(lang for lang in LANGUAGES if lang == (named[0] if named else language("", texts)))


def _failures(count: int) -> list[str]:
    return [f"{count} requests failed: the same command asks them again"] if count else []


def file_name(lang: str, kind: Kind) -> str:
    return f"{lang}.json" if kind == "plain" else f"{lang}_{kind}.json"


def encoded(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
