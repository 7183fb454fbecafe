"""A question at a setting as a sample, whether it is to be asked or was answered elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evenkeel.benchmarks.rgb import files as data
from evenkeel.benchmarks.rgb.abilities import Ability, Setting, ability_of, false_documents, written
from evenkeel.benchmarks.rgb.selection import Order, Selection, select
from evenkeel.types import Sample, Tag


def make_sample(
    dataset: data.Dataset,
    instance: data.Instance,
    setting: Setting,
    *,
    order: Order,
    index: int,
    **more: Any,
) -> Sample:
    chosen = select(
        instance,
        noise=setting.noise,
        passages=setting.passages,
        correct=setting.correct,
        order=order,
        index=index,
    )
    return Sample(
        id=f"{dataset.name}-{instance.id}-{setting.name}",
        group=f"{dataset.name}-{instance.id}",
        tags=_tags(setting, dataset.lang, chosen),
        inputs={
            "dataset": dataset.name,
            "instance": instance.id,
            "query": instance.query,
            "answer": instance.raw_answer,
            "fake": instance.raw_fake,
            "docs": chosen.docs,
            "kinds": chosen.kinds,
            "note": chosen.note,
            "noise": setting.noise,
            "passages": setting.passages,
            "correct": setting.correct,
            **more,
        },
    )


def recorded_samples(
    rows: Sequence[data.Prediction], *, dataset: str, lang: str, told: data.Setting | None
) -> list[Sample]:
    """The lines of a prediction file. Those of the same wording are told apart: each has its own answer."""
    asked: Counter[tuple[str, tuple[str, ...]]] = Counter()
    samples = []
    for row in rows:
        wording = (row.query, row.docs)
        samples.append(_recorded_sample(row, dataset=dataset, lang=lang, told=told, repeat=asked[wording]))
        asked[wording] += 1
    return samples


def _recorded_sample(
    row: data.Prediction, *, dataset: str, lang: str, told: data.Setting | None, repeat: int
) -> Sample:
    """What the name of a prediction file does not tell is read from the line."""
    passages = told.passages if told else len(row.docs)
    correct = told.correct if told else 0.0
    ability = ability_of(dataset, row.noise_rate)
    name = {
        "noise": f"noise {written(row.noise_rate)}",
        "rejection": "nothing to find",
        "integration": f"integration, noise {written(row.noise_rate)}",
        "counterfactual": false_documents(correct) if passages else "no documents",
    }[ability]
    setting = Setting(ability, name, row.noise_rate, passages, correct)
    return Sample(
        id=f"{dataset}-{row.id}",
        group=f"{dataset}-{row.id}",
        tags=_tags(setting, lang, None),
        inputs={
            "dataset": dataset,
            "instance": row.id,
            "query": row.query,
            "answer": row.raw_answer,
            "fake": None,
            "docs": row.docs,
            "kinds": (),
            "note": "",
            "noise": row.noise_rate,
            "passages": passages,
            "correct": correct,
            "temperature": told.temperature if told else 0.0,
            "repeat": repeat,
            "published": _figures(row, ability, passages),
        },
    )


def _figures(row: data.Prediction, ability: Ability, passages: int) -> dict[str, float]:
    """What the line itself says of its answer, to be set beside what we find."""
    from evenkeel.benchmarks.rgb.checks import Published

    if not row.label:
        return {}
    told = Published(row.label, row.factlabel or 0)
    if ability == "counterfactual" and not passages:
        return {"known_published": float(told.right(row.noise_rate))}
    figures = {"published": float(told.right(row.noise_rate))}
    if ability == "counterfactual" and row.factlabel is not None:
        figures["detected_published"] = float(row.factlabel)
    return figures


def _tags(setting: Setting, lang: str, chosen: Selection | None) -> dict[str, Tag]:
    tags: dict[str, Tag] = {"lang": lang, "ability": setting.ability, "setting": setting.name}
    if setting.ability == "noise":
        tags["noise"] = written(setting.noise)
        # Where several documents are true, the place of one of them says little.
        if chosen is not None and chosen.kinds.count("positive") == 1 and chosen.truth is not None:
            tags["position"] = chosen.truth + 1
    if setting.ability == "integration":
        tags["integration_noise"] = written(setting.noise)
    return tags
