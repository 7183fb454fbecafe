"""What makes a question of an edited RGB set measure something else: a document of the wrong kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sealegs.benchmarks.rgb.data import Instance, Kind, known_language, read_instances
from sealegs.files.datasets import DataFile
from sealegs.text.answer_search.mention import Answer, find_answer


def faults(files: Sequence[DataFile]) -> Iterator[str]:
    """A line for each question with a document that lacks its answer, or holds one that it must not hold."""
    for file in files:
        data = read_instances(file.path, lang=known_language(file.lang))
        for instance in data.instances:
            for problem in _problems(instance, data.kind):
                yield f"{file.path.name}, id {instance.id}: {problem}."


def _problems(instance: Instance, kind: Kind) -> Iterator[str]:
    def holding(documents: Sequence[str], answer: Answer) -> list[int]:
        return [
            number
            for number, text in enumerate(documents, 1)
            if answer and all(find_answer(text, answer, instance.query))
        ]

    # Of a question in several parts no single document has to hold the answer, nor any that is computed.
    if kind != "int":
        lacking = sorted(
            {*range(1, len(instance.positive) + 1)} - {*holding(instance.positive, instance.answer)}
        )
        if lacking:
            yield f"the answer is not in document {_listed(lacking)} of 'positive'"
    if found := holding(instance.negative, instance.answer):
        yield f"the answer is in document {_listed(found)} of 'negative'"
    if found := holding(instance.positive_wrong, instance.answer):
        yield f"the true answer is in document {_listed(found)} of 'positive_wrong'"
    if instance.positive_wrong and instance.fake:
        held = {*holding(instance.positive_wrong, instance.fake)}
        if lacking := sorted({*range(1, len(instance.positive_wrong) + 1)} - held):
            yield f"the false answer is not in document {_listed(lacking)} of 'positive_wrong'"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
