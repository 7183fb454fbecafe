"""What an answer is worth: a hand-made table under both checks, published rates, labelled replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.benchmarks.rgb.check.lenient import lenient
from evenkeel.benchmarks.rgb.check.normalization import plain, words
from evenkeel.benchmarks.rgb.files import parts, read_instances
from evenkeel.benchmarks.rgb.page import CHECK_ACCURACY
from evenkeel.benchmarks.rgb.scoring import Published, published, published_rates
from rgb_labelled import DECISIONS, LANGUAGES, labelled, precision_recall

TABLE: list[dict[str, Any]] = json.loads(Path(__file__).with_name("rgb_answers.json").read_bytes())
"""Answers with their labels, all written by language models."""


def test_the_published_check_labels_the_table_as_published() -> None:
    for row in TABLE:
        labels = published(row["text"], parts(row["answer"]), row["lang"], row["noise"])
        assert labels == Published(tuple(row["label"]), row["factlabel"], row["noise"]), row["text"]


def test_the_lenient_check_labels_nearly_all_of_the_table() -> None:
    """Its classifier may err, but not in more than one of twenty of these traps."""
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


def test_the_documented_accuracy_is_that_of_the_replies_held_out() -> None:
    figures = [precision_recall(labelled(lang, "heldout")) for lang in LANGUAGES]
    page = (Path(__file__).parents[2] / "docs" / "rgb.md").read_text(encoding="utf-8")
    for decision, title in DECISIONS.items():
        cells = [str(accuracy) for language in figures for accuracy in language[decision]]
        assert f"| {title} | {' | '.join(cells)} |" in page
    values = [accuracy.value for language in figures for pair in language.values() for accuracy in pair]
    assert min(values) >= 0.85  # as the report says
    for text in (page, CHECK_ACCURACY):
        assert "language models" in text


@pytest.mark.parametrize(
    ("answer", "reply", "named"),
    [
        ("Henry VIII", "It was Henry the Eighth.", 1),
        ("Henry VIII", "Henry the Seventh.", 0),
        ("25th anniversary", "On its twenty-fifth anniversary.", 1),
        ("55 km", "It is 55,000 metres long.", 1),
        ("55 km", "It is 5,500 m.", 0),
        ("55公里", "全长五十五公里。", 1),
        ("12人", "共有12名队员。", 1),
        ("12人", "共有112名队员。", 0),
        ("May", "It is held in may.", 1),
        ("May", "It may be June.", 0),
        ("2022年1月2日", "首演日期是January 2, 2022。", 1),
        ("2枚", "两枚奖牌。", 1),
    ],
)
def test_an_answer_is_found_in_another_spelling_and_no_other_answer(
    answer: str, reply: str, named: int
) -> None:
    assert lenient(reply, ((answer,),)).parts == (named,)


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
    ],
)
def test_a_refusal_of_a_detail_is_no_rejection(reply: str, rejected: bool) -> None:
    query = "Who won the 2021 Harbour Prize?"
    assert lenient(reply, (("Ada Lock",),), query=query).rejected is rejected


@pytest.mark.parametrize(
    "forms",
    [
        ["2024-03-05", "2024/3/5", "March 5, 2024", "Mar. 5 2024", "5 March 2024", "5th of March, 2024"],
        ["2024-03-05", "2024年3月5日", "2024 年 3 月 5 号", "二〇二四年三月五日", "２０２４年３月５日"],
        ["7/21/2017", "21/7/2017", "July 21st, 2017", "21 Jul., 2017", "2017年7月21日"],
        ["June 2020", "Jun. 2020", "June, 2020", "2020年6月", "2020年六月"],
        ["1,000", "1000", "one thousand", "a thousand", "一千", "1千", "１０００", "1000.0"],
        ["21", "twenty-one", "Twenty One", "二十一", "２１"],
        ["1,234,567", "one million two hundred and thirty-four thousand five hundred and sixty-seven"],
        ["170", "one hundred and seventy", "a hundred seventy", "一百七十"],
        ["10.4 billion", "$10.4bn", "$10.4B", "10,400 million", "104亿", "104 亿"],
        ["13,610,000", "1361万", "一千三百六十一万", "13.61 million"],
        ["1.2亿", "1亿2000万", "一亿两千万", "120 million"],
        ["2.3%", "2.3 percent", "2.3 per cent", "百分之2.3", "百分之二点三", "2.3％"],
        ["1937", "一九三七年", "1937年"],
        ["5 million", "fıve mıllion", "٥ million"],
        ["2024-04-05", "5 Aprıl 2024"],
    ],
)
def test_one_number_or_date_reads_the_same_in_every_form(forms: list[str]) -> None:
    assert len({tuple(word.text for word in words(plain(form))) for form in forms}) == 1


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


def test_a_number_too_long_to_be_one_stays_as_it_is() -> None:
    for digit in "7٧七①":
        for tail in ("", " million", "亿", "点七", " percent", "月", " March"):
            assert words(plain(digit * 9999 + tail))
