"""Builds triplets: from a user's documents with a judge or with labels, or from a seed; and confirms them."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from evenkeel import __version__
from evenkeel.benchmarks.multiview.files import (
    Triplet,
    encode_triplets,
    model_name,
    read_triplets,
    with_okapi,
)
from evenkeel.benchmarks.multiview.make.annotate import split_in_parts
from evenkeel.benchmarks.multiview.make.build_options import MIN_DOCUMENTS, BuildOptions
from evenkeel.benchmarks.multiview.make.criteria import Criterion, portable_spec, task_name
from evenkeel.benchmarks.multiview.make.generator import COPIES, compose, compose_documents
from evenkeel.benchmarks.multiview.make.sets import ChosenSet, choose_set, document_sets, recognise_set
from evenkeel.benchmarks.multiview.make.triplets import (
    Dropped,
    JudgedTriplets,
    LabelledTriplets,
    judge_triplets,
    label_triplets,
)
from evenkeel.benchmarks.multiview.make.validation import by_judge, read_sheet, sheet, validate
from evenkeel.errors import DataError, UsageError
from evenkeel.files.cache import slug
from evenkeel.files.datasets import data_file
from evenkeel.make.asking import Asking
from evenkeel.make.builder import Built
from evenkeel.make.documents import Documents, read_documents
from evenkeel.options import identity_options
from evenkeel.types import Capability, to_jsonable

FORMAT = 1
LINES = msgspec.json.Encoder()
CALLS = 4
"""Requests for a triplet: the choice, the rating, and both orders."""
PATHS = ("docs", "criteria", "from_triplets", "validate_sheet")
"""Options that name files of this machine."""


class Draft(NamedTuple):
    """What was built before it is confirmed and written."""

    triplets: list[Triplet]
    facts: dict[str, Any]
    notes: list[str]
    failures: Sequence[str] = ()
    dropped: Sequence[Dropped] = ()
    files: Mapping[str, bytes] = MappingProxyType({})
    """Further files, which go with the triplets."""


class MultiviewBuilder:
    """Builds `triplets.jsonl`, with the schemas and annotations behind it, `dropped.jsonl` and a manifest."""

    Options = BuildOptions
    folder = True
    asks = True

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.set: ChosenSet | None = choose_set(options.set) if options.set else None
        if options.names_known_criterion:
            self.set = recognise_set(Path(options.docs or ""), options.criterion or "")
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
        specs = [spec for spec in (options.judge, options.validate) if spec and not options.dry_run]
        self.helpers: Mapping[str, str] = {f"judge:{spec}": spec for spec in specs}
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in self.helpers
        }

    @staticmethod
    def sets() -> list[tuple[str, str, list[str]]]:
        """Of each known document set its title, how to get it, and its tasks with their descriptions."""
        return [
            (
                known.title,
                known.source,
                [
                    f"{name}__{each.name}: {each.description}{' (labels known)' if each.labels else ''}"
                    for each in known.criteria
                ],
            )
            for name, known in document_sets().items()
        ]

    def build(self) -> Asking[Built]:
        options = self.options
        if options.starter:
            return self._starter()
        if options.from_triplets:
            path = Path(options.from_triplets)
            source = {"name": path.name, "sha256": data_file(path).sha256}
            draft = Draft(read_triplets(path), {"triplets": source}, [])
            return (yield from self._confirm(draft))
        path = Path(options.docs or "")
        read = self._read(path)
        count = len(read.documents)
        if count < MIN_DOCUMENTS:
            raise DataError(path, f"a triplet takes {MIN_DOCUMENTS} documents; there are {count}.")
        if not options.judge:
            return (yield from self._confirm(self._labelled(read, path), read))
        if options.dry_run:
            lengths = self._length_notes({"read": count, **self._lengths(read)})
            return Built({}, [*read.notes, *lengths, self._estimate(read)], [])
        results = []
        for each in self.criteria:
            result = yield from judge_triplets(read.documents, each, self._docset(path), options)
            results.append(result)
        return (yield from self._confirm(self._judged(read, path, results), read))

    def _read(self, path: Path) -> Documents:
        """The documents, or as many of them as asked for."""
        options = self.options
        read = read_documents(
            path,
            text_field=options.text_field,
            id_field=options.id_field,
            label_fields=options.label_field,
            label_separator=options.label_separator,
            compose=self.set.reader if self.set else None,
        )
        if options.max_docs is None or len(read.documents) <= options.max_docs:
            return read
        rng = random.Random(f"multiview/documents/{options.seed}")
        chosen = sorted(rng.sample(range(len(read.documents)), options.max_docs))
        return read._replace(documents=[read.documents[index] for index in chosen])

    def _docset(self, path: Path) -> str:
        return self.set.name if self.set else docset_name(path)

    def _estimate(self, read: Documents) -> str:
        """How often the judge would be asked, in words."""
        lengths = [len(split_in_parts(d.text, self.options.document_characters)) for d in read.documents]
        reading = sum(parts + (parts > 1) for parts in lengths)
        calls = (1 + reading + CALLS * self.options.number) * len(self.criteria)
        second = 2 * self.options.number * len(self.criteria)
        times = f"{calls:,} times{f' and the second judge {second:,}' if self.options.validate else ''}"
        return (
            f"the judge would be asked {times}, and more where an answer must be repaired or a triplet is "
            "discarded"
        )

    def _starter(self) -> Built:
        seed = self.options.seed
        triplets = compose(seed, self.options.number)
        files = {"triplets.jsonl": encode_triplets(triplets)}
        for docset in COPIES:
            documents = compose_documents(docset, seed)
            files[f"documents_{docset}.jsonl"] = LINES.encode_lines(
                {"id": d.id, "text": d.text, **d.views} for d in documents
            )
        tasks = Counter(triplet.task for triplet in triplets)
        return self._built(files, {"tasks": dict(tasks)}, [], [])

    def _labelled(self, read: Documents, path: Path) -> Draft:
        options = self.options
        fields = options.label_field or [each.name for each in self.criteria]
        results = [
            label_triplets(
                read.documents, each, options.number, field=field, docset=self._docset(path),
                seed=options.seed, lang=options.lang,
            )
            for field, each in zip(fields, self.criteria, strict=True)
        ]  # fmt: skip
        criteria, notes = [], list(read.notes)
        for each, result in zip(self.criteria, results, strict=True):
            criteria.append(_about(each, {**_label_counts(result), "kept": len(result.triplets)}))
            prefix = f"{each.name}: " if len(results) > 1 else ""
            notes += [f"{prefix}{note}" for note in self._label_notes(result)]
        triplets = [triplet for result in results for triplet in result.triplets]
        failures = [] if triplets else ["no label has two documents"]
        facts = {"documents": _about_documents(path, read), "criteria": criteria}
        return Draft(triplets, facts, notes, failures)

    def _label_notes(self, result: LabelledTriplets) -> list[str]:
        notes = self._too_few(len(result.triplets))
        if result.unlabelled:
            notes.append(f"left out: {result.unlabelled} documents without a label")
        if easy := sum(not triplet.hard_for for triplet in result.triplets):
            notes.append(
                f"{easy} triplets are not hard for bm25: no document of another label reads so much like "
                "the anchor"
            )
        return notes

    def _judged(self, read: Documents, path: Path, results: Sequence[JudgedTriplets]) -> Draft:
        files: dict[str, bytes] = {}
        criteria, failures = [], []
        notes = list(read.notes)
        documents = {**_about_documents(path, read), **self._lengths(read)}
        notes += self._length_notes(documents)
        for result in results:
            name, counts, number = result.criterion.name, result.counts, len(result.triplets)
            criteria.append(_about(result.criterion, {**counts, "kept": number}))
            task = task_name(self._docset(path), name)
            failures += [f"{task}: {failure}" for failure in failures_of(result)]
            if result.schema is None:
                continue
            suffix = f"_{name}" if len(results) > 1 else ""
            files[f"schema{suffix}.json"] = _readable(result.schema)
            files[f"annotations{suffix}.jsonl"] = LINES.encode_lines(result.annotations)
            summary = (
                f"{counts['annotate']['annotated']} documents annotated; of {counts['select']['proposed']} "
                f"anchors proposed the judge abstained from {counts['select']['abstained']}; "
                f"{counts['discarded'].total()} triplets discarded, {number} kept"
            )
            notes += [f"{task}: {note}" for note in (summary, *self._too_few(number))]
        return Draft(
            [triplet for result in results for triplet in result.triplets],
            {"documents": documents, "criteria": criteria},
            notes,
            failures,
            [each for result in results for each in result.dropped],
            files,
        )

    def _lengths(self, read: Documents) -> dict[str, int]:
        """How many documents are longer than the judge is shown at once."""
        longest, listed = self.options.document_characters, self.options.list_characters
        lengths = [len(document.text) for document in read.documents]
        return {
            "longest": max(lengths),
            "read_in_parts": sum(length > longest for length in lengths),
            "listed_in_excerpts": sum(length > listed for length in lengths),
        }

    def _length_notes(self, documents: Mapping[str, Any]) -> list[str]:
        notes = []
        if count := documents["read_in_parts"]:
            notes.append(
                f"warning: {count:,} of {documents['read']:,} documents are longer than "
                f"--document-characters {self.options.document_characters:,}: the judge read them whole, in "
                "parts, and rated and ordered their triplets by what it noted of the parts"
            )
        if count := documents["listed_in_excerpts"]:
            notes.append(
                f"warning: {count:,} of {documents['read']:,} documents are longer than "
                f"--list-characters {self.options.list_characters:,}: in lists the judge saw excerpts of "
                "them, beside a summary of the whole when it chose"
            )
        return notes

    def _too_few(self, number: int) -> list[str]:
        if number >= self.options.number:
            return []
        return [f"{number} triplets instead of {self.options.number}: every anchor was tried"]

    def _confirm(self, draft: Draft, read: Documents | None = None) -> Asking[Built]:
        """What was built, as far as a second judge or a person confirms it, with the files to write."""
        options = self.options
        triplets, dropped, facts = draft.triplets, list(draft.dropped), dict(draft.facts)
        if read:
            triplets = with_okapi(triplets, (document.text for document in read.documents))
        notes, failures = list(draft.notes), list(draft.failures)
        verdicts = None
        if triplets and options.validate:
            names = Counter(model_name(triplet.built_by) for triplet in triplets)
            if same := names[model_name(options.validate)]:
                raise UsageError(
                    f"--validate {options.validate}: the same model built {same} of these triplets and "
                    "cannot confirm them; name another."
                )
            name = portable_spec(options.validate) or ""
            verdicts = yield from by_judge(triplets, options.validate, name)
        elif triplets and options.validate_sheet:
            verdicts = read_sheet(Path(options.validate_sheet), triplets)
        if verdicts:
            validation = validate(triplets, verdicts)
            triplets, dropped = validation.triplets, [*dropped, *validation.dropped]
            reasons = Counter(each.reason for each in validation.dropped)
            facts["validation"] = {**validation.agreement, "dropped": dict(reasons)}
            notes.append(validation.note)
            if failed := validation.agreement["failed"]:
                failures.append(f"triplets whose validation failed: {failed}; the same command asks again")
        files = {**draft.files, "triplets.jsonl": encode_triplets(triplets)}
        if options.sheet:
            files["sheet.csv"] = sheet(triplets)
        if not triplets:
            files = {}
            failures.append("there is no triplet: those of an earlier build are unchanged")
        if triplets or dropped:
            files["dropped.jsonl"] = LINES.encode_lines(_dropped(each) for each in dropped)
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
            "evenkeel": __version__,
            "seed": options.pop("seed"),
            "judge": portable_spec(options.pop("judge")),
            "options": {**options, **names, **validator},
            **facts,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
        return Built({**files, "manifest.json": _readable(manifest)}, notes, failures)


def docset_name(path: Path) -> str:
    """The stem of a file's name as the first part of a task's: without `__`, which separates the two."""
    return re.sub(r"_+", "_", slug(path.stem)).strip("_") or "documents"


def failures_of(result: JudgedTriplets) -> list[str]:
    """What the same command, or another seed, may fix."""
    failed = result.counts.failed
    failures = [f"requests that failed: {failed}; the same command asks them again"] if failed else []
    if result.schema is None:
        failures.append("the judge wrote no schema that can be read; try another --judge, or another --seed")
    elif not result.triplets:
        failures.append("no triplet was kept; manifest.json has the reasons")
    return failures


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


def _label_counts(result: LabelledTriplets) -> dict[str, int]:
    return {name: getattr(result, name) for name in ("unlabelled", "without_partner", "without_negative")}


def _dropped(dropped: Dropped) -> dict[str, Any]:
    """A line of `dropped.jsonl`: a triplet and why it is not part of the set."""
    return {"reason": dropped.reason, **msgspec.to_builtins(dropped.triplet)}


def _about(criterion: Criterion, counts: Mapping[str, Any]) -> dict[str, Any]:
    return {**to_jsonable(criterion), "counts": counts}


def _readable(record: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
