"""Builds triplets: from a user's documents with a judge or with labels, or from a seed."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenkeel import __version__
from evenkeel.benchmarks.multiview.files import encode_triplets
from evenkeel.benchmarks.multiview.make.criteria import Criterion, criterion, read_criteria, task_name
from evenkeel.benchmarks.multiview.make.generator import COPIES, TRIPLETS, compose, compose_documents
from evenkeel.benchmarks.multiview.make.triplets import JudgedTriplets, judge_triplets, label_triplets
from evenkeel.errors import DataError, UsageError
from evenkeel.files.cache import slug
from evenkeel.files.datasets import data_file
from evenkeel.make.asking import Asking
from evenkeel.make.builder import Built
from evenkeel.make.documents import Documents, read_documents
from evenkeel.options import RUNTIME, identity_options
from evenkeel.types import Capability, to_jsonable

FORMAT = 1
LINES = msgspec.json.Encoder()
MIN_DOCUMENTS = 3
JUDGED = 100
"""The default number of triplets for each criterion."""
CALLS = 4
"""Requests for a triplet: the choice, the rating, and both orders."""
NOTHING_WRITTEN = "only manifest.json was written, and the files of an earlier build are unchanged"
LANGS = ("en", "zh", "ko")
"""How words can be split: by Unicode, or by a splitter of the language."""


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building triplets."""

    docs: Annotated[
        str | None,
        Meta(description="Your documents: .jsonl, .csv, .parquet, or a folder of .txt and .md files."),
    ] = None
    criterion: Annotated[
        str | None, Meta(description="The name of the criterion: in what respect documents are alike.")
    ] = None
    description: Annotated[str | None, Meta(description="What the criterion is, in a sentence or two.")] = (
        None
    )
    hint: Annotated[tuple[str, ...], Meta(description="A hint for the judge; repeat.")] = ()
    instruction: Annotated[str, Meta(description="The criterion as an instruction for embedders.")] = ""
    criteria: Annotated[
        str | None, Meta(description="A YAML file with several criteria, instead of one.")
    ] = None
    judge: Annotated[str | None, Meta(description="The model that describes, chooses and checks.")] = None
    triplets: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description=f"How many for each criterion.  [default: {JUDGED}; {TRIPLETS} of the starter set]"),
    ] = None
    text_field: Annotated[str | None, Meta(description="The field with the text.")] = None
    id_field: Annotated[str | None, Meta(description="The field with the document's id.")] = None
    label_field: Annotated[
        str | None, Meta(description="A field with labels: triplets are made from them, without a judge.")
    ] = None
    candidates: Annotated[
        int, Meta(ge=1, description="Documents to choose from, for the positive and for the negative.")
    ] = 10
    reflect_sample: Annotated[
        int, Meta(ge=1, description="Documents that the judge sees before it writes the schema.")
    ] = 20
    min_quality: Annotated[int, Meta(ge=1, le=5, description="Discard what the judge rates below, of 5.")] = 3
    lang: Annotated[
        str | None, Meta(description="How words are split: en, zh, ko.  [default: by each text's script]")
    ] = None
    seed: Annotated[int, Meta(description="Another seed gives other anchors, or another starter set.")] = 0
    starter: Annotated[bool, Meta(description="Write the starter set of this seed, with its documents.")] = (
        False
    )
    dry_run: Annotated[
        bool, Meta(description="Say how often the judge would be asked, and stop.", extra=RUNTIME)
    ] = False

    def __post_init__(self) -> None:
        if self.starter:
            for name in ("docs", "criterion", "criteria", "judge", "label_field"):
                if getattr(self, name):
                    flag = name.replace("_", "-")
                    raise ValueError(f"--starter needs only a seed: leave out --{flag}")
        elif not self.docs:
            raise ValueError("give your documents with --docs FILE, or use --starter")
        elif self.judge and self.label_field:
            raise ValueError("--label-field makes triplets without a judge: leave out one of the two")
        elif not self.judge and not self.label_field:
            raise ValueError("--docs needs a --judge SPEC, or a --label-field with labels")
        if self.lang not in (None, *LANGS):
            raise ValueError(
                f"--lang {self.lang}: words can be split as in {', '.join(LANGS)}; leave it out for any other"
            )
        if self.dry_run and not self.judge:
            raise ValueError("--dry-run counts how often a judge is asked: give a --judge")
        if self.criteria and (self.criterion or self.description or self.hint or self.instruction):
            raise ValueError(
                "--criteria is a file with all criteria: leave out --criterion and what goes with it"
            )

    @property
    def number(self) -> int:
        """Triplets for each criterion."""
        return self.triplets or (TRIPLETS if self.starter else JUDGED)

    @property
    def role(self) -> str:
        """The judge's role in requests, under which it also orders triplets in a run."""
        return f"judge:{self.judge}"

    def read_criteria(self) -> list[Criterion]:
        """At least one criterion, from the options or from the file that they name."""
        if not self.criteria:
            return [
                criterion(self.criterion, self.description, hints=self.hint, instruction=self.instruction)
            ]
        criteria = read_criteria(Path(self.criteria))
        if not criteria:
            raise DataError(self.criteria, "there is no criterion in it.")
        if self.label_field and len(criteria) > 1:
            raise UsageError("--label-field has the labels of one criterion: give only one.")
        return criteria


class MultiviewBuilder:
    """Builds `triplets.jsonl`, with the schemas and annotations behind it, and `manifest.json`."""

    Options = BuildOptions
    folder = True

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.criteria = [] if options.starter else options.read_criteria()
        self.helpers: Mapping[str, str] = (
            {options.role: options.judge} if options.judge and not options.dry_run else {}
        )
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in self.helpers
        }

    def build(self) -> Asking[Built]:
        options = self.options
        if options.starter:
            return self._starter()
        path = Path(options.docs or "")
        read = read_documents(
            path, text_field=options.text_field, id_field=options.id_field, label_field=options.label_field
        )
        count = len(read.documents)
        if count < MIN_DOCUMENTS:
            raise DataError(path, f"a triplet takes {MIN_DOCUMENTS} documents; there are {count}.")
        if options.label_field:
            return self._labelled(read, path)
        if options.dry_run:
            calls = (1 + count + CALLS * options.number) * len(self.criteria)
            estimate = (
                f"the judge would be asked {calls:,} times, and more where an answer must be repaired or a "
                "triplet is discarded"
            )
            return Built({}, [*read.notes, estimate], [])
        results = []
        for each in self.criteria:
            result = yield from judge_triplets(read.documents, each, docset_name(path), options)
            results.append(result)
        return self._judged(read, path, results)

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

    def _labelled(self, read: Documents, path: Path) -> Built:
        options = self.options
        (only,) = self.criteria
        labelled = label_triplets(
            read.documents, only, options.number, docset=docset_name(path), seed=options.seed,
            lang=options.lang,
        )  # fmt: skip
        triplets = labelled.triplets
        counts = {"without_partner": len(labelled.without_partner), "kept": len(triplets)}
        facts = {"documents": _about_documents(path, read), "criteria": [_about(only, counts)]}
        notes = [*read.notes, *self._too_few(len(triplets))]
        if easy := sum(not triplet.hard_for for triplet in triplets):
            notes.append(
                f"{easy} triplets are not hard for bm25: no document of another label reads so much like "
                "the anchor"
            )
        if not triplets:
            return self._built({}, facts, notes, [f"no label has two documents; {NOTHING_WRITTEN}"])
        return self._built({"triplets.jsonl": encode_triplets(triplets)}, facts, notes, [])

    def _judged(self, read: Documents, path: Path, results: Sequence[JudgedTriplets]) -> Built:
        files: dict[str, bytes] = {}
        criteria, failures = [], []
        notes = list(read.notes)
        for result in results:
            name, counts, number = result.criterion.name, result.counts, len(result.triplets)
            criteria.append(_about(result.criterion, {**counts, "kept": number}))
            task = task_name(docset_name(path), name)
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
        triplets = [triplet for result in results for triplet in result.triplets]
        files["triplets.jsonl"] = encode_triplets(triplets)
        if not triplets:
            files = {}
            failures.append(f"there is no triplet: {NOTHING_WRITTEN}")
        facts = {"documents": _about_documents(path, read), "criteria": criteria}
        return self._built(files, facts, notes, failures)

    def _too_few(self, number: int) -> list[str]:
        if number >= self.options.number:
            return []
        return [f"{number} triplets instead of {self.options.number}: every anchor was tried"]

    def _built(
        self, files: Mapping[str, bytes], facts: Mapping[str, Any], notes: list[str], failures: list[str]
    ) -> Built:
        """The files with a manifest: how they were made, and their hashes."""
        options = to_jsonable(identity_options(self.options))
        names = {name: Path(options[name]).name for name in ("docs", "criteria") if options[name]}
        manifest = {
            "format": FORMAT,
            "evenkeel": __version__,
            "seed": options.pop("seed"),
            "judge": portable_spec(options.pop("judge")),
            "options": {**options, **names},
            **facts,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
        return Built({**files, "manifest.json": _readable(manifest)}, notes, failures)


def docset_name(path: Path) -> str:
    """The stem of a file's name as the first part of a task's: without `__`, which separates the two."""
    return re.sub(r"_+", "_", slug(path.stem)).strip("_") or "documents"


def portable_spec(spec: str | None) -> str | None:
    """A model's spec without paths of this machine: of an absolute path only the last part."""
    scheme, colon, name = (spec or "").partition(":")
    return f"{scheme}{colon}{Path(name).name}" if Path(name).is_absolute() else spec


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


def _about(criterion: Criterion, counts: Mapping[str, Any]) -> dict[str, Any]:
    return {**to_jsonable(criterion), "counts": counts}


def _readable(record: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
