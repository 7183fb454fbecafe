"""Builds triplets: from a user's documents with a judge or with labels, or from a seed; and confirms them."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sealegs import __version__
from sealegs.benchmarks.multiview.data import encode_triplets, model_name
from sealegs.benchmarks.multiview.make.annotate import cut_note
from sealegs.benchmarks.multiview.make.criteria import (
    Build,
    Criterion,
    CriterionTriplets,
    criterion,
    dropped_words,
    label_criteria,
    portable_spec,
    read_criteria,
    readable,
    task_name,
)
from sealegs.benchmarks.multiview.make.generator import DOCSETS, TRIPLETS, compose, compose_documents
from sealegs.benchmarks.multiview.make.labels import label_triplets
from sealegs.benchmarks.multiview.make.sets import ChosenSet, choose_set, document_sets
from sealegs.benchmarks.multiview.make.triplets import judge_triplets, validate
from sealegs.errors import DataError, UsageError
from sealegs.files.cache import slug
from sealegs.files.datasets import data_file
from sealegs.make.asking import Asking
from sealegs.make.builder import Built
from sealegs.make.documents import Documents, read_documents
from sealegs.options import FILE, identity_options
from sealegs.page.format import nouns
from sealegs.types import Capability, to_jsonable

FORMAT = 1
LINES = msgspec.json.Encoder()
PATHS = ("docs", "criteria")
"""Options that name files of this machine."""
MIN_DOCUMENTS = 3
JUDGED = 100
"""The default number of triplets for each criterion."""
BUILDING = ("set", "criterion", "criteria", "judge", "label_field", "validate")


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building triplets."""

    docs: Annotated[
        str | None,
        Meta(
            description="Your documents: .jsonl, .csv, .parquet, also compressed, a folder of .txt and .md "
            "files, an address or hf:NAME[:SPLIT].  [default: the starter set of the seed]",
            extra=FILE,
        ),
    ] = None
    set: Annotated[
        str | None,
        Meta(
            description="A known document set with its criteria, or one of them (gsm8k__arithmetic): "
            f"{', '.join(document_sets())}."
        ),
    ] = None
    criterion: Annotated[
        str | None,
        Meta(description="The name of the criterion: in what respect documents are alike."),
    ] = None
    description: Annotated[str | None, Meta(description="What the criterion is, in a sentence or two.")] = (
        None
    )
    criteria: Annotated[
        str | None,
        Meta(description="A YAML file with several criteria, also with hints and instructions.", extra=FILE),
    ] = None
    judge: Annotated[str | None, Meta(description="The model that describes, chooses and checks.")] = None
    triplets: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description=f"How many for each criterion.  [default: {JUDGED}; {TRIPLETS} of the starter set]"),
    ] = None
    text_field: Annotated[str | None, Meta(description="The field with the text.")] = None
    label_field: Annotated[
        tuple[str, ...],
        Meta(
            description="A field with labels, or a list of them: triplets are made from them, without a "
            "judge; repeat for a task each. Documents are alike that share a label."
        ),
    ] = ()
    max_docs: Annotated[
        Annotated[int, Meta(ge=MIN_DOCUMENTS)] | None,
        Meta(description="Use this many documents, drawn by the seed.  [default: all]"),
    ] = None
    validate: Annotated[
        str | None,
        Meta(description="A second judge, which orders the triplets blind: only what it confirms is used."),
    ] = None
    seed: Annotated[int, Meta(description="Another seed gives other anchors, or another starter set.")] = 0

    def __post_init__(self) -> None:
        self._check_source()
        if self.criteria and (self.criterion or self.description):
            raise ValueError("--criteria has all criteria: leave out --criterion and --description")
        if self.validate and self.judge and model_name(self.validate) == model_name(self.judge):
            raise ValueError(
                f"--validate {self.validate}: the model that builds triplets cannot confirm them: "
                "name another"
            )

    def _check_source(self) -> None:
        """Which options go with what the triplets are made from."""
        if not self.docs:
            self._refuse("without --docs the starter set of the seed is made", *BUILDING)
        elif self.judge and self.label_field:
            raise ValueError("--label-field makes triplets without a judge: leave out one of the two")
        elif self.set:
            self._refuse(
                "--set names fields and criteria", "criterion", "criteria", "label_field", "text_field"
            )
        elif not self.judge and not self.label_field:
            raise ValueError("--docs needs a --judge SPEC, or a --label-field with labels")

    def _refuse(self, reason: str, *names: str) -> None:
        for name in names:
            if getattr(self, name):
                raise ValueError(f"{reason}: leave out --{name.replace('_', '-')}")

    @property
    def number(self) -> int:
        """Triplets for each criterion."""
        return self.triplets or (JUDGED if self.docs else TRIPLETS)

    def read_criteria(self) -> list[Criterion]:
        """At least one criterion, from the options or from a file; of labels, one for each field."""
        criteria = read_criteria(Path(self.criteria)) if self.criteria else []
        if self.criterion or not (self.criteria or self.label_field):
            criteria = [criterion(self.criterion, self.description)]
        return label_criteria(self.label_field, criteria) if self.label_field else criteria


class MultiviewBuilder:
    """Builds `triplets.jsonl`, with the schemas and annotations behind it, `dropped.jsonl` and a manifest."""

    Options = BuildOptions
    asks = True

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.set: ChosenSet | None = choose_set(options.set) if options.set else None
        self.criteria: list[Criterion] = []
        if self.set:
            self.criteria = [each.criterion for each in self.set.criteria]
            unlabelled = [each.name for each in self.set.criteria if not each.labels]
            if unlabelled and not options.judge:
                raise UsageError(
                    f"--set {self.set.name}: the file has no labels for {', '.join(unlabelled)}: give a "
                    "--judge SPEC."
                )
        elif options.docs:
            self.criteria = options.read_criteria()
        specs = [spec for spec in (options.judge, options.validate) if spec]
        self.helpers: Mapping[str, str] = {f"judge:{spec}": spec for spec in specs}
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in self.helpers
        }

    def build(self) -> Asking[Built]:
        options = self.options
        if not options.docs:
            return self._starter()
        path = Path(options.docs)
        read = self._read(path)
        count = len(read.documents)
        if count < MIN_DOCUMENTS:
            raise DataError(path, f"a triplet takes {MIN_DOCUMENTS} documents; there are {count}.")
        docset = self.set.name if self.set else docset_name(path)
        fields = options.label_field or [each.name for each in self.criteria]
        results = []
        for each, field in zip(self.criteria, fields, strict=True):
            build = Build(each, docset, options.number, options.seed)
            if options.judge:
                results.append((yield from judge_triplets(read.documents, build, options.judge)))
            else:
                results.append(label_triplets(read.documents, build, field))
        return (yield from self._confirm(results, read, path))

    def _read(self, path: Path) -> Documents:
        """The documents, or as many of them as asked for."""
        options = self.options
        read = read_documents(
            path,
            text_field=options.text_field,
            label_fields=options.label_field,
            compose=self.set.reader if self.set else None,
        )
        if options.max_docs is None or len(read.documents) <= options.max_docs:
            return read
        rng = random.Random(f"multiview/documents/{options.seed}")
        chosen = sorted(rng.sample(range(len(read.documents)), options.max_docs))
        return read._replace(documents=[read.documents[index] for index in chosen])

    def _starter(self) -> Built:
        seed = self.options.seed
        triplets = compose(seed, self.options.number)
        files = {"triplets.jsonl": encode_triplets(triplets)}
        for docset in DOCSETS:
            documents = compose_documents(docset, seed)
            files[f"documents_{docset}.jsonl"] = LINES.encode_lines(
                {"id": d.id, "text": d.text, **d.views} for d in documents
            )
        tasks = Counter(triplet.task for triplet in triplets)
        return self._built(files, {"tasks": dict(tasks)}, [], [])

    def _confirm(self, results: Sequence[CriterionTriplets], read: Documents, path: Path) -> Asking[Built]:
        """What was built, as far as a second judge confirms it, with the files to write."""
        triplets = [triplet for result in results for triplet in result.triplets]
        dropped = [each for result in results for each in result.dropped]
        cut = cut_note(read.documents) if self.options.judge else ()
        notes = [f"{nouns(len(read.documents), 'documents')} read", *read.notes, *cut]
        failures: list[str] = []
        files: dict[str, bytes] = {}
        criteria = []
        docset = self.set.name if self.set else docset_name(path)
        for result in results:
            name, kept = result.criterion.name, len(result.triplets)
            task = task_name(docset, name)
            counts = {**result.counts, "kept": kept}
            criteria.append({**to_jsonable(result.criterion), "counts": counts})
            notes += [f"{task}: {note}" for note in result.notes]
            if 0 < kept < self.options.number:
                wanted = f"instead of {self.options.number}: every anchor was tried"
                notes.append(f"{task}: {kept} triplets {wanted}")
            failures += [f"{task}: {failure}" for failure in result.failures]
            for file, content in result.files.items():
                files[file.replace(".", f"_{name}.") if len(results) > 1 else file] = content
        facts: dict[str, Any] = {"documents": _about_documents(path, read), "criteria": criteria}
        if triplets and (spec := self.options.validate):
            tried, name = len(triplets), portable_spec(spec) or ""
            triplets, unconfirmed, facts["validation"] = yield from validate(triplets, spec, name)
            dropped += unconfirmed
            notes.append(
                f"validated by {name}: {len(triplets)} of {tried} triplets confirmed; "
                f"{dropped_words(unconfirmed)}"
            )
            if failed := facts["validation"]["failed"]:
                failures.append(f"triplets whose validation failed: {failed}; the same command asks again")
        files["triplets.jsonl"] = encode_triplets(triplets)
        if not triplets:
            files = {f"empty_{name}": content for name, content in files.items() if name != "triplets.jsonl"}
            failures.append(
                "there is no triplet: those of an earlier build are unchanged; "
                f"{', '.join(files) or 'nothing else'} of this one can be looked at"
            )
        if triplets or dropped:
            files["dropped.jsonl"] = LINES.encode_lines(
                {"reason": each.reason, **msgspec.to_builtins(each.triplet)} for each in dropped
            )
        return self._built(files, facts, notes, failures)

    def _built(
        self, files: Mapping[str, bytes], facts: Mapping[str, Any], notes: list[str], failures: list[str]
    ) -> Built:
        """The files with a manifest: how they were made, and their hashes."""
        options = to_jsonable(identity_options(self.options))
        names = {name: Path(options[name]).name for name in PATHS if options[name]}
        validator = {"validate": portable_spec(options["validate"])}
        manifest = {
            "format": FORMAT,
            "sealegs": __version__,
            "seed": options.pop("seed"),
            "judge": portable_spec(options.pop("judge")),
            "options": {**options, **names, **validator},
            **facts,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
        return Built({**files, "manifest.json": readable(manifest)}, notes, failures)


def docset_name(path: Path) -> str:
    """The stem of a file's name as the first part of a task's: without `__`, which separates the two."""
    return re.sub(r"_+", "_", slug(path.stem)).strip("_") or "documents"


def _about_documents(path: Path, read: Documents) -> dict[str, Any]:
    """What was read. A folder's hash is that of the documents in it, as they were read."""
    sha256 = (
        hashlib.sha256(LINES.encode_lines(read.documents)).hexdigest()
        if path.is_dir()
        else data_file(path).sha256
    )
    return {
        "name": path.name,
        "sha256": sha256,
        "read": len(read.documents),
        "empty": read.empty,
        "duplicates": read.duplicates,
    }
