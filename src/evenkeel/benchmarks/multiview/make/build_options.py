"""The options of building triplets, and which of them go together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from evenkeel.benchmarks.multiview.files import model_name
from evenkeel.benchmarks.multiview.make.criteria import Criterion, criterion, label_criterion, read_criteria
from evenkeel.benchmarks.multiview.make.generator import TRIPLETS
from evenkeel.benchmarks.multiview.make.sets import document_sets
from evenkeel.errors import DataError, UsageError
from evenkeel.options import FILE, RUNTIME

MIN_DOCUMENTS = 3
JUDGED = 100
"""The default number of triplets for each criterion."""
LANGS = ("en", "zh", "ko")
"""How words can be split: by Unicode, or by a splitter of the language."""
DESCRIBING = ("criterion", "criteria", "label_field", "text_field")
BUILDING = ("docs", "set", "criterion", "criteria", "judge", "label_field")
CONFIRMING = ("validate", "sheet", "validate_sheet")


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building triplets."""

    docs: Annotated[
        str | None,
        Meta(
            description="Your documents: .jsonl, .csv, .parquet, also compressed, a folder of .txt and .md "
            "files, an address or hf:NAME[:SPLIT].",
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
        Meta(
            description="The name of the criterion: in what respect documents are alike. One of a known set, "
            "which the documents are recognised to be of, needs no description."
        ),
    ] = None
    description: Annotated[str | None, Meta(description="What the criterion is, in a sentence or two.")] = (
        None
    )
    hint: Annotated[tuple[str, ...], Meta(description="A hint for the judge; repeat.")] = ()
    instruction: Annotated[str, Meta(description="The criterion as an instruction for embedders.")] = ""
    criteria: Annotated[
        str | None, Meta(description="A YAML file with several criteria, instead of one.", extra=FILE)
    ] = None
    judge: Annotated[str | None, Meta(description="The model that describes, chooses and checks.")] = None
    triplets: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description=f"How many for each criterion.  [default: {JUDGED}; {TRIPLETS} of the starter set]"),
    ] = None
    text_field: Annotated[str | None, Meta(description="The field with the text.")] = None
    id_field: Annotated[str | None, Meta(description="The field with the document's id.")] = None
    label_field: Annotated[
        tuple[str, ...],
        Meta(
            description="A field with labels: triplets are made from them, without a judge; repeat for a "
            "task each. Documents are alike that share a label."
        ),
    ] = ()
    label_separator: Annotated[
        str, Meta(description="What separates several labels in one text, such as ';'. Lists need none.")
    ] = ""
    max_docs: Annotated[
        Annotated[int, Meta(ge=MIN_DOCUMENTS)] | None,
        Meta(description="Use this many documents, drawn by the seed.  [default: all]"),
    ] = None
    document_characters: Annotated[
        int,
        Meta(
            ge=1_000,
            description="The judge reads longer documents in parts of this length, then its notes on them.",
        ),
    ] = 8_000
    list_characters: Annotated[
        int,
        Meta(
            ge=100,
            description="In lists the judge sees excerpts of longer documents, beside a summary of them.",
        ),
    ] = 1_000
    validate: Annotated[
        str | None,
        Meta(description="A second judge, which orders the triplets blind: what it confirms is kept."),
    ] = None
    sheet: Annotated[
        bool, Meta(description="Also write sheet.csv, for a person to order the triplets blind.")
    ] = False
    validate_sheet: Annotated[
        str | None,
        Meta(description="A sheet that a person has filled in: what it confirms is kept.", extra=FILE),
    ] = None
    from_triplets: Annotated[
        str | None,
        Meta(
            description="Build nothing: confirm the triplets of this file, or write their sheet.", extra=FILE
        ),
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
        self._check_source()
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
        if self.validate and self.validate_sheet:
            raise ValueError(
                "--validate and --validate-sheet are one at a time; for both, give the result of one to "
                "--from-triplets with the other"
            )
        if self.validate and self.judge and model_name(self.validate) == model_name(self.judge):
            raise ValueError(
                f"--validate {self.validate}: the model that builds triplets cannot confirm them: "
                "name another"
            )

    def _check_source(self) -> None:
        """Which options go with what the triplets are made from."""
        if self.starter:
            self._refuse("--starter needs only a seed", *BUILDING, "from_triplets", *CONFIRMING)
        elif self.from_triplets:
            self._refuse("--from-triplets builds nothing", *BUILDING)
            if not any(getattr(self, name) for name in CONFIRMING):
                raise ValueError("--from-triplets: give --validate SPEC, --sheet or --validate-sheet FILE")
        elif not self.docs:
            raise ValueError("give your documents with --docs FILE, or use --starter")
        elif self.judge and self.label_field:
            raise ValueError("--label-field makes triplets without a judge: leave out one of the two")
        elif self.set:
            self._refuse("--set names fields and criteria", *DESCRIBING)
        elif not self.judge and not self.label_field and not self.names_known_criterion:
            raise ValueError("--docs needs a --judge SPEC, or a --label-field with labels")

    def _refuse(self, reason: str, *names: str) -> None:
        for name in names:
            if getattr(self, name):
                raise ValueError(f"{reason}: leave out --{name.replace('_', '-')}")

    @property
    def names_known_criterion(self) -> bool:
        """Whether the criterion is left to be that of the known document set which the documents are of."""
        described = self.description or self.hint or self.instruction or self.label_field or self.text_field
        return bool(self.docs and self.criterion) and not (self.set or self.criteria or described)

    @property
    def number(self) -> int:
        """Triplets for each criterion."""
        return self.triplets or (TRIPLETS if self.starter else JUDGED)

    @property
    def role(self) -> str:
        """The judge's role in requests, under which it also orders triplets in a run."""
        return f"judge:{self.judge}"

    def read_criteria(self) -> list[Criterion]:
        """At least one criterion, from the options or from the file that they name.

        Of several label fields each has the criterion of its name, from the file or made of the name.
        """
        criteria = read_criteria(Path(self.criteria)) if self.criteria else []
        if self.criteria and not criteria:
            raise DataError(self.criteria, "there is no criterion in it.")
        if len(self.label_field) > 1:
            if self.criterion or self.description:
                raise UsageError(
                    "--criterion names one criterion, and there are several --label-field: give their "
                    "criteria in a file with --criteria, under the names of the fields."
                )
            known = {each.name: each for each in criteria}
            if unused := [name for name in known if name not in self.label_field]:
                raise UsageError(
                    f"--criteria {self.criteria}: '{unused[0]}' is not one of the label fields. Available: "
                    f"{', '.join(self.label_field)}."
                )
            chosen = [known.get(field) or label_criterion(field) for field in self.label_field]
            if len({each.name.casefold() for each in chosen}) < len(chosen):
                raise UsageError("--label-field: two of the fields would have the same task.")
            return chosen
        if self.label_field and len(criteria) > 1:
            raise UsageError("--label-field has the labels of one criterion: give only one.")
        return criteria or [
            criterion(self.criterion, self.description, hints=self.hint, instruction=self.instruction)
        ]
