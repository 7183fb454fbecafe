"""Passages of a person's documents: each can be understood alone; and what of one gives an answer away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.passages import (
    LONGEST,
    SHORTEST,
    cut_text,
    false_version,
    leans,
    length,
    may_be_same,
    repeats,
    reveals,
    sentences,
    states,
)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30))
def test_no_passage_is_overlong_and_nothing_but_a_short_rest_is_lost(lengths: list[int]) -> None:
    text = " ".join(" ".join(["Word"] * (words - 1) + ["End."]) for words in lengths)
    passages = cut_text(f"# Words\n\n{text}", "en")
    bodies = [passage.removeprefix("Words: ") for passage in passages]
    assert all(SHORTEST["en"] <= length(body, "en") <= LONGEST["en"] for body in bodies)
    whole = [sentence for sentence in sentences(text, "en") if length(sentence, "en") <= LONGEST["en"]]
    lost = length(" ".join(whole), "en") - length(" ".join(bodies), "en")
    assert 0 <= lost < SHORTEST["en"] * (len(bodies) + 1)


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        (
            "# Pell *Ferry*\n\nThe ferry was built in 1904. Its engineer was Colin Abbott.\n## Crew\n"
            "It sails daily. The mate is called Una Bell.\n",
            "en",
            [
                "Pell Ferry: The ferry was built in 1904. Its engineer was Colin Abbott.",
                "Pell Ferry – Crew: The mate is called Una Bell.",
            ],
        ),
        ("Its engineer, Colin Abbott, left. This was in May. They wept.", "en", []),
        ("The door is shut at nine. Bring a towel.", "en", []),
        (
            "Pell\n\n1904\n\nThe ferry began to sail daily.",
            "en",
            ["Pell – 1904: The ferry began to sail daily."],
        ),
        ("Doors\n\nThe door is shut at nine.", "en", ["Doors: The door is shut at nine."]),
        (
            "# Pell Ferry {#top}\n\n<!-- when? -->\n:::note\nThe <b>ferry</b> sails to [Selby][w] "
            "daily.\n:::\n\n> [!NOTE]\n> A trip costs 7 crowns.\n\n- [x] Una Bell is paid\n"
            '- [ ] The bell is hung\n\n[^1]: Figures of\n2020.\n[w]: https://selby.org "Selby"\n',
            "en",
            [
                "Pell Ferry: The ferry sails to Selby daily. A trip costs 7 crowns. Una Bell is paid. "
                "The bell is hung."
            ],
        ),
        (
            "# Pell\n\nUna Bell steers the ferry daily.\n<details><summary>Fares</summary>"
            "A trip costs Ann Lee 7 crowns.</details>",
            "en",
            ["Pell: Una Bell steers the ferry daily.", "Pell – Fares: A trip costs Ann Lee 7 crowns."],
        ),
        (
            "<h1>Pell [1]</h1><p>Ann Lee built the mill in 1979 [2]</p>"
            "<p>The mill burned in 1980 (see [3, 4]).[^a]</p>",
            "en",
            ["Pell: Ann Lee built the mill in 1979. The mill burned in 1980."],
        ),
        (
            "From: Ann Lee <ann@pell.org>\nTo: Bo Reed\nSubject: Re: Fares\n\n"
            "A trip costs Bo Reed 7 crowns.\n",
            "en",
            ["Fares: A trip costs Bo Reed 7 crowns."],
        ),
        (
            "<!DOCTYPE html><html><head><title>x</title></head><body><h1>Pell &amp; Co</h1>"
            "<p>Ann <b>Lee</b> runs it every day.</p><table><tr><td>7</td></tr></table></body></html>",
            "en",
            ["Pell & Co: Ann Lee runs it every day."],
        ),
        (
            "---\nauthor: X\n---\nTides\n=====\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n\n"
            "- See [the table](x.md) of Ann Lee\n",
            "en",
            ["Tides: See the table of Ann Lee."],
        ),
        (
            "# 槐川渡口\n\n渡口建于1904年。\n它由孔凤仪主持。\n",
            "zh",
            ["槐川渡口：渡口建于1904年。它由孔凤仪主持。"],
        ),
        ("# 槐川渡口\n\n其工程师是孔凤仪。\n", "zh", []),
        (
            "# 槐川渡口\n\n\u3000\u3000“槐川”号渡船由孔凤仪出资设立【今已停航】，当年每日往来两岸共八班\n",
            "zh",
            ["槐川渡口：“槐川”号渡船由孔凤仪出资设立【今已停航】，当年每日往来两岸共八班。"],
        ),
        (
            "# 槐川渡口\n\n## 一、由来\n\n渡口由孔凤仪出资设立。\n",
            "zh",
            ["槐川渡口：由来：渡口由孔凤仪出资设立。"],
        ),
        (
            "# 12 Mills\n\n## 2.1 Selby\n\nThe mill at Selby was built by Bell.\n",
            "en",
            ["12 Mills – Selby: The mill at Selby was built by Bell."],
        ),
    ],
)
def test_a_passage_can_be_understood_alone(text: str, lang: Lang, expected: list[str]) -> None:
    assert cut_text(text, lang) == expected


@pytest.mark.parametrize(
    ("sentence", "lang", "leaning"),
    [
        ("In the same year Colin Abbott sold the mill.", "en", True),
        ("Two years later the mill burned.", "en", True),
        ("Shortly afterwards, the mill burned.", "en", True),
        ("By then the mill was dry.", "en", True),
        ("At that time Abbott ran the mill.", "en", True),
        ("The following spring Abbott sold the mill.", "en", True),
        ("Colin Abbott, its engineer, replaced the engine.", "en", True),
        ("In the spring of 1931 their engine was replaced.", "en", True),
        ("Abbott replaced it in 1931.", "en", True),
        ("Originally, it had four sails.", "en", True),
        ("Shortly after 1904 the mill burned.", "en", False),
        ("Two years of drought closed the mill.", "en", False),
        ("The mill burned before Abbott sold it.", "en", False),
        ("Pell Mill says it will close in 1931.", "en", False),
        ("In 1931 Colin Abbott and his son sold the mill.", "en", False),
        ("同年，孔凤仪出售了磨坊。", "zh", True),
        ("两年后，磨坊被烧毁。", "zh", True),
        ("当时，磨坊由孔凤仪主持。", "zh", True),
        ("此后，磨坊一直停业。", "zh", True),
        ("1904年后，磨坊一直停业。", "zh", False),
    ],
)
def test_a_sentence_leans_on_the_time_or_the_thing_named_before_it(
    sentence: str, lang: Lang, leaning: bool
) -> None:
    assert leans(sentence, lang) == leaning


@pytest.mark.parametrize(
    ("text", "lang", "body"),
    [
        ("The ferry of Pell sails daily. As mentioned above, it is full. Tea is free.", "en",
         "The ferry of Pell sails daily."),
        ("The ferry of Pell sails daily; see below for its fares.\n\nTea is free on the ferry of Pell.", "en",
         "Tea is free on the ferry of Pell."),
        ("The ferry of Pell sails daily. The table below has its fares.", "en",
         "The ferry of Pell sails daily."),
        ("The bridge at Pell was built in 1904. He was hired last.", "en",
         "The bridge at Pell was built in 1904."),
        ("The bridge at Pell was built by Una Bell. She was hired last.", "en",
         "The bridge at Pell was built by Una Bell. She was hired last."),
        ("Above the door of Pell Mill hangs a bell, already seen in 1904 by section 3 of the Act.", "en",
         "Above the door of Pell Mill hangs a bell, already seen in 1904 by section 3 of the Act."),
        ("To use this, the crew of Pell Yard needs coal. Pell Yard has coal for seven days.", "en",
         "Pell Yard has coal for seven days."),
        ("For a trip to Pell, this is enough. Pell Yard burns fuel (e.g. Welsh coal) daily.", "en",
         "Pell Yard burns fuel (e.g. Welsh coal) daily."),
        ("渡口由孔凤仪出资设立。如上所述，渡口在槐川。每日八班。", "zh", "渡口由孔凤仪出资设立。"),
        ("渡口始建于一九〇四年。票价见下表。", "zh", "渡口始建于一九〇四年。"),
        ("渡口始建于一九〇四年。他于2001年退休。", "zh", "渡口始建于一九〇四年。"),
        ("渡口由孔凤仪主持。她于2001年退休。", "zh", "渡口由孔凤仪主持。她于2001年退休。"),
        ("槐川地下图书馆以上海的图书馆为样板，晚上节目很多。", "zh",
         "槐川地下图书馆以上海的图书馆为样板，晚上节目很多。"),
    ],
)  # fmt: skip
def test_no_sentence_of_a_passage_speaks_of_what_is_outside_it(text: str, lang: Lang, body: str) -> None:
    colon = ": " if lang == "en" else "："
    assert cut_text(f"# Pell\n\n{text}", lang) == [f"Pell{colon}{body}"]


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("# Pell\n\n**Crew**\n\nUna Bell steers the ferry daily.\n\n**2. Fares**\n"
         "A trip costs Ann Lee 7 crowns.", "en",
         ["Pell – Crew: Una Bell steers the ferry daily.", "Pell – Fares: A trip costs Ann Lee 7 crowns."]),
        ("# Pell\n\n1. Overview\nThe ferry of Pell sails daily.", "en",
         ["Pell – Overview: The ferry of Pell sails daily."]),
        ("# Pell\n\n1. Take the old road to\nPell Mill, and then turn.\n2. Walk on to Pell Yard.", "en",
         ["Pell: Take the old road to Pell Mill, and then turn. Walk on to Pell Yard."]),
        ("# 槐川渡口\n\n**由来**\n渡口由孔凤仪出资设立。\n\n二、船只\n渡船现有两艘，均为木船。", "zh",
         ["槐川渡口：由来：渡口由孔凤仪出资设立。", "槐川渡口：船只：渡船现有两艘，均为木船。"]),
        ("# Pell tool\n\n## 1.1\n\n### Fixed\n\n- The bell of Pell rings again.\n\n"
         "## 1.0\n\n### Fixed\n\n- The bell of Pell is quiet now.", "en",
         ["Pell tool – 1.1 – Fixed: The bell of Pell rings again.",
          "Pell tool – 1.0 – Fixed: The bell of Pell is quiet now."]),
        ("# Pell\n\nUna Bell steers Pell Ferry. The fares of 1904 are these:\n\n| a | b |\n|---|---|\n"
         "| 1 | 2 |\n\nAnn Lee keeps the till.", "en",
         ["Pell: Una Bell steers Pell Ferry. Ann Lee keeps the till."]),
        ("<html><body><div><a href='a'>Home</a> | <a href='b'>Shop</a></div><h1>Pell</h1>\n<p>Una Bell steers"
         "\nPell every day.</p><dl><dt>fare</dt><dd>A trip costs Ann Lee 7 crowns.</dd></dl></body></html>",
         "en", ["Pell: Una Bell steers Pell every day.", "Pell – fare: A trip costs Ann Lee 7 crowns."]),
        ("# Mills\n\nAnn Lee built Pell Mill in 1904.<br>\n\n<h1>Later</h1>\n"
         "<p>Bo Reed sold Pell Mill in 1931.</p>", "en",
         ["Mills: Ann Lee built Pell Mill in 1904.", "Mills: Bo Reed sold Pell Mill in 1931."]),
    ],
)  # fmt: skip
def test_a_heading_of_any_form_ends_a_passage(text: str, lang: Lang, expected: list[str]) -> None:
    assert cut_text(text, lang) == expected


def test_pages_lose_their_numbers_heads_and_broken_words() -> None:
    pages = [
        f"Harbour Report\nIn 19{n}0 the har-\nbour of Pell grew by {n} quays.\n\n- {n} -\n\f"
        for n in range(4)
    ]
    (passage,) = cut_text("".join(pages), "en")
    assert passage.startswith("In 1900 the harbour of Pell grew by 0 quays. In 1910 the harbour")
    assert "Report" not in passage
    assert " - " not in passage


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("Tobias Venn", "Venn, Tobias"),
        ("Tobias Venn", "Tobias Carl Venn"),
        ("Tobias Venn", "T. Venn"),
        ("Saint Petersburg", "St. Petersburg"),
        ("5 kilometres", "5 km"),
        ("Free Software Foundation", "F.S.F."),
        ("USA", "United States"),
        ("colour", "color"),
        ("bicycle", "bicycles"),
        ("grey", "gray"),
        ("the defence", "the defense"),
        ("3 %", "three per cent"),
        ("NYC", "New York City"),
        ("12", "a dozen"),
        ("百分之三", "3%"),
    ],
)
def test_another_spelling_of_an_answer_is_not_a_false_answer(answer: str, other: str) -> None:
    assert may_be_same(answer, other)
    assert may_be_same(other, answer)


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("Tobias Venn", "Cora Venn"),
        ("1904", "1905"),
        ("200", "20"),
        ("5 March 2004", "6 March 2004"),
        ("孔凤仪", "孔凤山"),
        ("grey", "green"),
        ("3 %", "4 %"),
    ],
)
def test_another_answer_of_the_same_kind_is_one(answer: str, other: str) -> None:
    assert not may_be_same(answer, other)


def test_a_retelling_that_contains_its_passage_repeats_it() -> None:
    passage = "The mill at Selby was built by Bell alone, in one summer, with a borrowed saw."
    assert repeats(f"Dear friend, listen to this. {passage} That is all.", passage)
    assert not repeats("It took Bell a summer and a saw that was not his to give Selby a mill.", passage)
    assert repeats(
        "你听我说：槐川图书馆由孔凤仪创办，捐书四百本。真的。", "槐川图书馆由孔凤仪创办，捐书四百本。"
    )


# Answers


@pytest.mark.parametrize(
    ("text", "answer", "stated", "revealed"),
    [
        ("It has 170 seats.", "70", False, False),
        ("It has 1,700 seats.", "1700", True, True),
        ("She knows no one.", "no", False, True),
        ("They came on 5 March 2004.", "March 5, 2004", True, True),
        ("A letter of Bellamy's.", "Hector Bell", False, False),
        ("由孔凤仪创办。", "孔凤仪", True, True),
        ("他二十一岁。", "21", True, True),
    ],
)  # fmt: skip
def test_stating_is_strict_and_revealing_is_not(text: str, answer: str, stated: bool, revealed: bool) -> None:
    assert states(text, answer) == stated
    assert reveals(text, answer) == revealed


def test_a_last_name_reveals_unless_the_question_has_it() -> None:
    assert reveals("Rudgard gave books.", "Agnes Rudgard", "Who founded it?")
    assert not reveals("Agnes gave books.", "Agnes Rudgard", "Who founded it?")
    assert not reveals("The river Trent is long.", "Columbia River", "Which river is meant?")


@pytest.mark.parametrize(
    ("text", "answer", "fake", "expected"),
    [
        ("Bell came. BELL left.", "Bell", "Quill", "Quill came. Quill left."),
        ("Since 1871 it stands.", "1871", "1902", "Since 1902 it stands."),
        ("He ate an apple.", "apple", "pear", None),
        ("He ate the apple. Apple is good.", "apple", "pear", "He ate the pear. Pear is good."),
        ("Agnes Rudgard came. Rudgard left.", "Agnes Rudgard", "Dora Kemp", None),
        ("On 5 March 2004 it rained.", "March 5, 2004", "May 7, 2004", None),
        ("由孔凤仪创办。", "孔凤仪", "钟恒之", "由钟恒之创办。"),
    ],
)
def test_a_false_version_has_nothing_of_the_true_answer(
    text: str, answer: str, fake: str, expected: str | None
) -> None:
    assert false_version(text, answer, fake, "What was it?") == expected
