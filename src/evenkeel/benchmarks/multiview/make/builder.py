"""Make triplets: from own documents with a judge, from labels, or from a seed."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

import evenkeel
from evenkeel.benchmarks.multiview.files import encode_triplets, task_name
from evenkeel.benchmarks.multiview.make.annotate import Asking
from evenkeel.benchmarks.multiview.make.criteria import Criterion, criterion, read_criteria
from evenkeel.benchmarks.multiview.make.generator import COPIES, TRIPLETS, compose, compose_documents
from evenkeel.benchmarks.multiview.make.gold import gold_triplets
from evenkeel.benchmarks.multiview.make.pipeline import Made, Settings, make
from evenkeel.errors import DataError, UsageError
from evenkeel.files.cache import slug
from evenkeel.files.datasets import own_file
from evenkeel.make.documents import Documents, read_documents
from evenkeel.options import RUNTIME, identity_options
from evenkeel.run.benchmark import Built
from evenkeel.types import Capability, to_jsonable

FORMAT = 1
FEWEST = 3
"""Documents that a triplet takes."""
JUDGED = 100
"""Triplets for each criterion, unless told otherwise."""
CHECKS = 4
"""Calls for a triplet: the choice, the rating, and both orders."""


NOTHING_WRITTEN = "only manifest.json was written, and what an earlier build left is as it was"
LANGS = ("en", "zh", "ko")
"""How words can be split: by Unicode, or by a splitter of the language."""


class BuildOptions(Struct, frozen=True, kw_only=True):
    """What can be set about building triplets."""

    docs: Annotated[
        str | None,
        Meta(description="Your documents: .jsonl, .csv, .parquet, or a folder of .txt and .md files."),
    ] = None
    criterion: Annotated[str | None, Meta(description="The name of what likeness is to mean.")] = None
    description: Annotated[str | None, Meta(description="What the criterion is, in a sentence or two.")] = (
        None
    )
    hint: Annotated[tuple[str, ...], Meta(description="A hint for the judge; repeat.")] = ()
    instruction: Annotated[str, Meta(description="The criterion as an instruction for embedders.")] = ""
    criteria: Annotated[str | None, Meta(description="A YAML file with many criteria, in place of one.")] = (
        None
    )
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
        bool, Meta(description="Tell how often the judge would be asked, and stop.", extra=RUNTIME)
    ] = False

    def __post_init__(self) -> None:
        if self.starter:
            for name in ("docs", "criterion", "criteria", "judge", "label_field"):
                if getattr(self, name):
                    flag = name.replace("_", "-")
                    raise ValueError(f"--starter is made from a seed alone: leave out --{flag}")
        elif not self.docs:
            raise ValueError("name your documents with --docs FILE, or ask for --starter")
        elif self.judge and self.label_field:
            raise ValueError("--label-field makes triplets without a judge: leave out one of the two")
        elif not self.judge and not self.label_field:
            raise ValueError("--docs needs a --judge SPEC, or a --label-field with labels")
        if self.lang not in (None, *LANGS):
            raise ValueError(
                f"--lang {self.lang}: words are split as in {', '.join(LANGS)}; leave it out for any other"
            )
        if self.dry_run and not self.judge:
            raise ValueError("--dry-run counts how often a judge is asked: name a --judge")
        if self.criteria and (self.criterion or self.description or self.hint or self.instruction):
            raise ValueError(
                "--criteria is a file with all criteria: leave out --criterion and what goes with it"
            )

    def read_criteria(self) -> list[Criterion]:
        """The criteria that were named, of which there is one at least."""
        if not self.criteria:
            named = (self.criterion, self.description)
            return [criterion(*named, hints=self.hint, instruction=self.instruction)]
        found = read_criteria(Path(self.criteria))
        if not found:
            raise DataError(self.criteria, "there is no criterion in it.")
        if self.label_field and len(found) > 1:
            raise UsageError("--label-field holds the labels of one criterion: name one alone.")
        return found


class MultiviewBuilder:
    """Makes `triplets.jsonl`, what led to it, and `manifest.json`, which tells how."""

    Options = BuildOptions
    folder = True

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.criteria = [] if options.starter else options.read_criteria()
        judge = None if options.dry_run else options.judge
        self.helpers: Mapping[str, str] = {f"judge:{judge}": judge} if judge else {}
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in self.helpers
        }

    def build(self) -> Asking[Built]:
        options = self.options
        if options.starter:
            return self._starter()
        path = Path(options.docs or "")
        found = read_documents(
            path, text_field=options.text_field, id_field=options.id_field, label_field=options.label_field
        )
        if len(found.documents) < FEWEST:
            raise DataError(path, f"a triplet takes {FEWEST} documents; there are {len(found.documents)}.")
        if options.label_field:
            return self._gold(found, path)
        if options.dry_run:
            return Built({}, [*found.notes, self._forecast(len(found.documents))], [])
        settings = self._settings(path)
        made: dict[str, Made] = {}
        for wanted in self.criteria:
            made[wanted.name] = yield from make(found.documents, wanted, settings)
        return self._judged(found, path, list(made.values()))

    def _settings(self, path: Path) -> Settings:
        options = self.options
        return Settings(
            docset=docset_name(path),
            judge=options.judge or "",
            triplets=options.triplets or JUDGED,
            candidates=options.candidates,
            sample=options.reflect_sample,
            min_quality=options.min_quality,
            seed=options.seed,
            lang=options.lang,
        )

    def _forecast(self, documents: int) -> str:
        each = 1 + documents + CHECKS * (self.options.triplets or JUDGED)
        return (
            f"the judge would be asked {each * len(self.criteria):,} times, and more where an answer must be "
            "repaired or a triplet is discarded"
        )

    def _starter(self) -> Built:
        seed = self.options.seed
        triplets = compose(seed, self.options.triplets or TRIPLETS)
        files = {"triplets.jsonl": encode_triplets(triplets)}
        for docset in COPIES:
            files[f"documents_{docset}.jsonl"] = _lines(
                {"id": d.id, "text": d.text, **d.views} for d in compose_documents(docset, seed)
            )
        tasks = Counter(triplet.task for triplet in triplets)
        return self._built(files, {"tasks": dict(tasks)}, [], [])

    def _gold(self, found: Documents, path: Path) -> Built:
        (wanted,) = self.criteria
        number = self.options.triplets or JUDGED
        gold = gold_triplets(
            found.documents, wanted, number, docset=docset_name(path), seed=self.options.seed,
            lang=self.options.lang,
        )  # fmt: skip
        kept = len(gold.triplets)
        counts = {"without_partner": len(gold.without_partner), "kept": kept}
        told = {"documents": documents_told(path, found), "criteria": [_about(wanted, counts)]}
        notes = [*found.notes, *_too_few(kept, number)]
        if easy := sum(not triplet.hard_for for triplet in gold.triplets):
            notes.append(
                f"{easy} triplets are not hard for bm25: no document of another label reads so alike"
            )
        if not kept:
            return self._built({}, told, notes, [f"no label has two documents; {NOTHING_WRITTEN}"])
        return self._built({"triplets.jsonl": encode_triplets(gold.triplets)}, told, notes, [])

    def _judged(self, found: Documents, path: Path, made: Sequence[Made]) -> Built:
        files: dict[str, bytes] = {}
        criteria = []
        notes, failures = list(found.notes), []
        for wanted, own in zip(self.criteria, made, strict=True):
            suffix = f"_{wanted.name}" if len(made) > 1 else ""
            if own.schema:
                files[f"schema{suffix}.json"] = _readable(own.schema)
                files[f"annotations{suffix}.jsonl"] = _lines(own.annotations)
            criteria.append(_about(wanted, {**own.counts, "kept": len(own.triplets)}))
            task = task_name(docset_name(path), wanted.name)
            notes += [f"{task}: {note}" for note in self._notes(own)]
            failures += [f"{task}: {failure}" for failure in failures_of(own)]
        triplets = [triplet for own in made for triplet in own.triplets]
        files["triplets.jsonl"] = encode_triplets(triplets)
        if not triplets:
            files = {}
            failures.append(f"there is no triplet: {NOTHING_WRITTEN}")
        told = {"documents": documents_told(path, found), "criteria": criteria}
        return self._built(files, told, notes, failures)

    def _notes(self, made: Made) -> list[str]:
        if made.schema is None:
            return []
        noted, chosen, kept = made.counts["annotate"], made.counts["select"], len(made.triplets)
        summary = (
            f"{noted['annotated']} documents annotated; of {chosen['proposed']} anchors proposed the judge "
            f"abstained from {chosen['abstained']}; {made.counts['discarded'].total()} triplets discarded, "
            f"{kept} kept"
        )
        return [summary, *_too_few(kept, self.options.triplets or JUDGED)]

    def _built(
        self, files: Mapping[str, bytes], told: Mapping[str, Any], notes: list[str], failures: list[str]
    ) -> Built:
        """The files with a manifest: how they were made, and their hashes."""
        options = to_jsonable(identity_options(self.options))
        names = {name: Path(options[name]).name for name in ("docs", "criteria") if options[name]}
        manifest = {
            "format": FORMAT,
            "evenkeel": evenkeel.__version__,
            "seed": options.pop("seed"),
            "judge": shown_spec(options.pop("judge")),
            "options": {**options, **names},
            **told,
            "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        }
        return Built({**files, "manifest.json": _readable(manifest)}, notes, failures)


def docset_name(path: Path) -> str:
    """The stem of a file's name as the first part of a task's: without `__`, which parts the two."""
    return re.sub(r"_+", "_", slug(path.stem)).strip("_") or "documents"


def documents_told(path: Path, found: Documents) -> dict[str, Any]:
    """What was read. A folder's hash is that of the documents in it, as they were read."""
    whole = hashlib.sha256(_lines(found.documents)).hexdigest() if path.is_dir() else own_file(path).sha256
    return {
        "name": path.name,
        "sha256": whole,
        "read": len(found.documents),
        "empty": found.empty,
        "duplicates": found.duplicates,
    }


def shown_spec(spec: str | None) -> str | None:
    """A model's spec as others may read it: of a path on this machine only the last part."""
    scheme, colon, name = (spec or "").partition(":")
    return f"{scheme}{colon}{Path(name).name}" if Path(name).is_absolute() else spec


def failures_of(made: Made) -> list[str]:
    """What the same command, or another seed, may mend."""
    failed = sum(
        number for counts in made.counts.values() for what, number in counts.items() if what.endswith("error")
    )
    found = [f"requests that failed: {failed}; the same command asks them again"] if failed else []
    if made.schema is None:
        found.append("the judge wrote no schema that can be read; try another --judge, or another --seed")
    elif not made.triplets:
        found.append("no triplet was kept; manifest.json tells why")
    return found


def _about(wanted: Criterion, counts: Mapping[str, Any]) -> dict[str, Any]:
    return {**to_jsonable(wanted), "counts": counts}


def _too_few(kept: int, wanted: int) -> Sequence[str]:
    return [f"{kept} triplets instead of {wanted}: every anchor was tried"] if kept < wanted else []


def _lines(records: Any) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def _readable(record: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
