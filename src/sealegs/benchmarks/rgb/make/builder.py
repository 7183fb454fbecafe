"""Builds an RGB set: from a seed, or from a user's documents with questions that a model writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.rgb.data import Kind, Lang, language
from sealegs.benchmarks.rgb.make.derived import Counterfactual, TwoPart, falsify, join
from sealegs.benchmarks.rgb.make.evidence import LEAST, gather
from sealegs.benchmarks.rgb.make.faults import faults
from sealegs.benchmarks.rgb.make.generator import compose
from sealegs.benchmarks.rgb.make.passages import Passage, cut
from sealegs.benchmarks.rgb.make.questions import (
    Contradiction,
    QuestionWithDocuments,
    SetWriter,
    write_questions,
)
from sealegs.errors import DataError
from sealegs.make.asking import Asking
from sealegs.make.builder import Built, parse_languages
from sealegs.make.documents import Document, read_documents
from sealegs.options import FILE
from sealegs.text.word_splitting import split
from sealegs.types import Capability

Row: TypeAlias = dict[str, Any]

LINES = msgspec.json.Encoder()
LANGUAGES: tuple[Lang, ...] = get_args(Lang)
KINDS: tuple[Kind, ...] = get_args(Kind)
QUESTIONS = 50
"""The default size of a set from documents."""
TEXT_FILES = (".txt", ".md", ".html", ".htm")
MOST_NAMED = 20
"""Documents, and pairs of contradicting ones, that are named."""


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building a set."""

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
        Meta(
            description="Your documents: a folder of .txt, .md and .html files, .jsonl, .csv, .parquet, also "
            "compressed, an address or hf:NAME[:SPLIT].",
            extra=FILE,
        ),
    ] = None
    model: Annotated[str | None, Meta(description="Writes questions about your documents.")] = None
    text_field: Annotated[str | None, Meta(description="The field of --docs with the text.")] = None

    def __post_init__(self) -> None:
        languages = parse_languages(self.lang, LANGUAGES)
        if self.docs is None:
            for name in ("model", "text_field"):
                if getattr(self, name) is not None:
                    flag = f"--{name.replace('_', '-')}"
                    raise ValueError(f"{flag} needs your documents: add --docs FOLDER or FILE")
        elif self.model is None:
            raise ValueError("--docs needs a --model that writes the questions")
        elif len(languages) > 1:
            raise ValueError(
                f"--lang {self.lang}: your documents are in one language; build one set for each"
            )


class RgbBuilder:
    """Builds a file for each language and kind, named as the published ones are."""

    Options = BuildOptions
    asks = True
    roles: Mapping[str, frozenset[Capability]] = {"model": frozenset({"generate"})}
    faults = staticmethod(faults)

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.languages = parse_languages(options.lang, LANGUAGES)
        self.helpers: Mapping[str, str] = {"model": options.model} if options.model else {}

    def build(self) -> Asking[Built]:
        if self.options.docs is None:
            return self._from_seed()
        return (yield from self._from_documents(Path(self.options.docs)))

    def _from_seed(self) -> Built:
        files = {}
        for lang in self.languages or LANGUAGES:
            for kind in KINDS:
                rows = compose(lang, kind, seed=self.options.seed, size=self.options.size)
                files[file_name(lang, kind)] = LINES.encode_lines(rows)
        return Built(files, notes=[], failures=[])

    def _from_documents(self, path: Path) -> Asking[Built]:
        options = self.options
        read = read_documents(path, text_field=options.text_field, endings=TEXT_FILES)
        detected = self.languages[0] if self.languages else language("", [d.text for d in read.documents])
        lang = next(lang for lang in LANGUAGES if lang == detected)
        passages = cut(read.documents, lang)
        if len(passages) <= LEAST:
            raise DataError(
                path,
                f"the number of its passages that can be understood alone is {len(passages)}, and at least "
                f"{LEAST + 1} are needed: one that answers a question and {LEAST} that do not. Add "
                "documents.",
            )
        split([passages[0].text], lang)  # a missing splitter shows before anything is asked
        writer = SetWriter(lang)
        rows = yield from self._rows(passages, writer)
        notes = [
            *read.notes,
            f"{len(read.documents)} documents, {len(passages)} passages",
            *_without_passages(read.documents, passages),
            *writer.tally.notes(),
            *_contradictions(writer.contradictions),
        ]
        if not any(rows.values()):
            listed = "\n  ".join(notes)
            raise DataError(
                path, f"no question came out of it: try a stronger --model, or other documents.\n  {listed}"
            )
        notes += [
            f"{file_name(lang, kind)} is left out: no question came out" for kind in rows if not rows[kind]
        ]
        files = {file_name(lang, kind): LINES.encode_lines(listed) for kind, listed in rows.items() if listed}
        failed = writer.tally.failed
        failures = [f"{failed} requests failed: the same command asks them again"] if failed else []
        return Built(files, notes, failures)

    def _rows(self, passages: Sequence[Passage], writer: SetWriter) -> Asking[dict[Kind, list[Row]]]:
        """As many plain questions as asked for, half as many two-part ones, and counterfactual ones."""
        size = self.options.size or QUESTIONS
        drafts = yield from write_questions(passages, size, writer, self.options.seed)
        questions = yield from gather(drafts, passages, writer)
        pairs = yield from join(questions, passages, writer)
        facts = yield from falsify(questions, writer)
        rows: dict[Kind, list[Row]] = {
            "plain": list(map(_plain_row, questions)),
            "int": list(map(_int_row, pairs)),
            "fact": list(map(_fact_row, facts)),
        }
        return {
            kind: [{"id": number, **row} for number, row in enumerate(listed)]
            for kind, listed in rows.items()
        }


def _without_passages(documents: Sequence[Document], passages: Sequence[Passage]) -> list[str]:
    """The documents of which nothing is used, by name."""
    used = {passage.document for passage in passages}
    names = [document.id for document in documents if document.id not in used]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return [f"without a passage of their own: {', '.join(names[:MOST_NAMED])}{more}"] if names else []


def _contradictions(found: Sequence[Contradiction]) -> list[str]:
    """Each pair of documents once, with the first question in which they differ."""
    pairs = {(each.document, each.source): each for each in reversed(found)}
    listed = [str(each) for each in reversed(pairs.values())]
    more = len(listed) - MOST_NAMED
    return listed[:MOST_NAMED] + (
        [f"{more} more pairs of documents contradict each other"] if more > 0 else []
    )


def _plain_row(question: QuestionWithDocuments) -> Row:
    return {
        "query": question.query,
        "answer": question.answer,
        "positive": question.positive,
        "negative": question.negative,
        "source": question.passage.document,
    }


def _int_row(pair: TwoPart) -> Row:
    return {
        "query": pair.query,
        "answer": pair.answers,
        **{f"answer{number}": answer for number, answer in enumerate(pair.answers, 1)},
        "positive": [part.positive for part in pair.parts],
        "negative": pair.negative,
        "source": [part.passage.document for part in pair.parts],
    }


def _fact_row(fact: Counterfactual) -> Row:
    """No model can have read a user's own documents: `private` says that it cannot know them to be false."""
    return _plain_row(fact.question) | {
        "private": True,
        "fakeanswer": fact.false_answer,
        "positive": fact.positive,
        "positive_wrong": fact.wrong,
        "negative": fact.negative,
    }


def file_name(lang: str, kind: Kind) -> str:
    return f"{lang}.json" if kind == "plain" else f"{lang}_{kind}.json"
