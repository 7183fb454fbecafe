"""What an answer is worth: a hand-made table under both checks, published rates, labelled replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from present import present
from rgb_labelled import LANGUAGES, Part, as_replies, labelled, precision_recall, table
from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.benchmarks.rgb.data import Lang, read_instances
from sealegs.benchmarks.rgb.page import CHECK_ACCURACY
from sealegs.benchmarks.rgb.published import Published, published, published_rates
from sealegs.text.answer_search.mention import parts

TABLE: list[dict[str, Any]] = json.loads(Path(__file__).with_name("rgb_answers.json").read_bytes())
"""Answers with their labels, all written by language models."""
PARTS: tuple[Part, ...] = (
    "heldout", "natural", "fresh", "plain", "plain_other", "real", "chat_style", "set_aside",
    "named", "reworded", "rag_style",
)  # fmt: skip


def test_the_published_check_labels_the_table_as_published() -> None:
    for row in TABLE:
        labels = published(row["text"], parts(row["answer"]), row["lang"], row["noise"])
        assert labels == Published(tuple(row["label"]), row["factlabel"], row["noise"]), row["text"]


def test_the_lenient_check_labels_nearly_all_of_the_table() -> None:
    """Its rules may err, but not in more than one of twenty of these traps."""
    errors = []
    for row in TABLE:
        verdict = lenient(
            row["text"], parts(row["answer"]), fake=parts(row["fake"]), noise=row["noise"],
            query=row.get("query", ""),
        )  # fmt: skip
        decided = {name: getattr(verdict, name) for name in ("right", "rejected", "detected", "states_fake")}
        if decided | {"parts": list(verdict.parts)} != {name: row[name] for name in (*decided, "parts")}:
            errors.append(f"{row['lang']} {row['trap']}: {row['text']}")
    assert len(errors) <= len(TABLE) // 20, errors


# The labelled replies, and how often the lenient check is right on them


def test_the_documented_accuracy_is_that_of_the_labelled_replies() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tables" / "rgb-check.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert "\n".join(table(LANGUAGES, part)) in page, part
    assert "language models" in page
    assert "language models" in CHECK_ACCURACY


def test_nearly_every_plain_right_answer_is_right() -> None:
    for lang in LANGUAGES:
        precision, recall = precision_recall(labelled(lang, "plain"))["right"]
        assert present(recall).value >= 0.995
        assert precision == (1.0, precision.low, 1.0) if precision else False


# Documents in place of replies: a model that copies or invents neither declines nor reports anything


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_document_given_as_a_reply_hardly_ever_declines_reports_or_misses_its_answer(lang: Lang) -> None:
    counts = as_replies(lang, seed=11, size=25)
    assert min(counts.irrelevant, counts.stating) >= 150
    assert counts.declining <= 0.02 * counts.irrelevant
    assert counts.reporting <= 0.01 * counts.irrelevant
    assert counts.missed <= 0.01 * counts.stating


# Published


def test_the_published_rates_come_in_the_published_order() -> None:
    labels: list[tuple[tuple[int, ...], int]] = [((1,), 1), ((0,), 1), ((-1,), 1), ((1, 0), 0), ((1,), 0)]
    results = [Published(label, factlabel, 0.2) for label, factlabel in labels]
    rates = published_rates(results, 0.2, fact=True)
    assert list(rates.items()) == [
        ("all_rate", 2 / 5),
        ("noise_rate", 0.2),
        ("tt", 2),
        ("nums", 5),
        ("fact_check_rate", 3 / 5),
        ("correct_rate", 2 / 3),  # the rejection after a reported error counts as corrected
        ("fact_tt", 3),
        ("correct_tt", 2),
    ]
    assert list(published_rates(results, 0.2, fact=False)) == ["all_rate", "noise_rate", "tt", "nums"]
    noisy = [Published(label, factlabel, 1.0) for label, factlabel in labels]
    assert published_rates(noisy, 1.0, fact=False)["tt"] == 3


# Lenient


@pytest.mark.parametrize(
    ("reply", "rejected"),
    [
        ("Unknown.", True),
        ("Who won it is passed over by all five passages.", True),
        ("Egan Holm, though the exact date is not given.", False),
        ("Passages 1 and 3 say nothing about it, but passage 2 names Egan Holm.", False),
        ("Unknown Tides", False),
        ("Egan Holm was nominated, but who won is not said.", True),
        ("The document is a list of the members, not a prize.", False),
        ("The documents list the winners for 2019 (Bo Ek), but not for 2021.", True),
        ("Ada Lock won the prize, which is not stated in the documents.", False),
        (
            "The text says that Ada Lock won the Harbour Prize, but it gives no information about the prize.",
            False,
        ),
        ("The text says that Ada Lock won the 2020 prize, but it gives no information about 2021.", True),
        ("The document states that the jury lacked a member.", False),
        ("The document states that the winner is missing.", True),
    ],
)
def test_a_refusal_of_a_detail_is_no_rejection(reply: str, rejected: bool) -> None:
    query = "Who won the 2021 Harbour Prize?"
    assert lenient(reply, (("Ada Lock",),), query=query).rejected is rejected


@pytest.mark.parametrize(
    ("query", "reply"),
    [
        ("What caused the crash of the probe?", "A factual mix-up in the flight tables: pounds for newtons."),
        (
            "Who found mistakes in the textbook?",
            "Ada Lock; she counted forty factual errors in the textbook.",
        ),
        ("谁指出了教科书里的错误？", "童晓指出的，她发现课本第12页的年代有误。"),
        ("Which station aired a false obituary?", "Kanal Fem, whose editor called it a grave error."),
        ("Who won the Leeds Cup?", "The documents say that Ada Lock won the contest."),
        ("How many came?", "The document states that the count was wrong, and that a new one was held."),
        ("Why did the launch slip to June?", "There wasn't enough fuel on the pad, so the launch slipped."),
    ],
)
def test_an_error_in_the_matter_is_no_report(query: str, reply: str) -> None:
    assert not lenient(reply, (("a unit error",),), query=query).detected


def test_every_true_document_of_the_published_files_names_its_answer_and_declines_nothing(
    reference: Path,
) -> None:
    for name in ("en_fact", "zh_fact"):
        for item in read_instances(reference / "rgb" / f"{name}.json").instances[::4]:
            verdicts = [lenient(doc, item.answer, fake=item.fake) for doc in item.positive]
            assert all(verdict.parts == (1,) * len(item.answer) for verdict in verdicts), item.id
            assert not any(verdict.rejected or verdict.detected for verdict in verdicts), item.id


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60), st.sampled_from(TABLE))
def test_no_text_is_too_strange_to_be_judged(text: str, row: dict[str, Any]) -> None:
    strange, answer = f"{text}{row['text']}{text}", parts(row["answer"])
    verdict = lenient(strange, answer, fake=((text or "-",),), noise=row["noise"])
    assert len(verdict.parts) == len(answer)
    assert len(published(strange, answer, row["lang"]).label) in (1, len(answer))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("<think>No, </think>Silverton", True),
        ("<think>Silverton</think>no", False),
        ("<think>Silverton", True),
    ],
)
def test_reasoning_blocks_are_left_out(text: str, right: bool) -> None:
    assert lenient(text, (("Silverton",),)).right == right
