"""Which replies answer a question of yes or no by stating what it asks."""

from __future__ import annotations

import pytest

from sealegs.text.answer_check.restated import restated, said
from sealegs.text.answer_search.yes_no import yes_or_no

YES = {
    "Is a whale a fish?": ["Whales are the largest fish."],
    "Is 91 a prime number?": ["91 is prime."],
    "Is Canberra the capital of Australia?": [
        "The capital of Australia is Canberra.",
        "It is the capital of Australia.",
        "Canberra, not Sydney, is the capital of Australia.",
    ],
    "Is it true that bats lay eggs?": ["Bats lay eggs in caves."],
    "If it rains, do bats lay eggs, and why?": ["Are they eggs? Bats do lay eggs."],
    "Is Mercury closer to the Sun than Venus?": ["Mercury is closer to the Sun."],
    "Is Portuguese spoken in Brazil?": ["In Brazil Portuguese is spoken."],
    "Does sound travel faster in water than in air?": ["In water, sound travels faster than in air."],
    "Did Brutus kill Caesar?": ["Caesar was killed by Brutus."],
    "Did the ship sink?": ["The ship sank."],
    "지구는 태양의 둘레를 돕니까?": ["지구는 태양의 둘레를 돕니다."],
    "地球绕着太阳转吗？": ["地球绕着太阳转。"],
    "鲸鱼是鱼吗？": ["鲸鱼是最大的鱼类。"],
    "鲸鱼是不是鱼？": ["鲸鱼是鱼。"],
    "堪培拉是澳大利亚的首都吗？": ["澳大利亚的首都是堪培拉。"],
    "고래는 물고기입니까?": ["고래는 가장 큰 물고기입니다."],
    "펭귄은 날 수 있습니까?": ["펭귄은 짧은 거리를 날 수 있어요."],
    "Did Ada Lock complete her purchase of Orley in 2022?": [
        "According to the provided documents, Ada Lock completed the purchase of Orley in October 2022.",
        "I'm fairly confident that Ada Lock completed her purchase of Orley on October 27, 2022.",
        "It is well established that Ada Lock completed her purchase of Orley in 2022.",
        "The documents say that Ada Lock did not complete her purchase of Orley in 2022, but this is "
        "incorrect. In fact, Ada Lock completed her purchase of Orley in October 2022.",
    ],
}
NO = {
    "Is a whale a fish?": [
        "Whales are not fish; they are mammals.",
        "A whale is a mammal, not a fish.",
        "Many people think whales are fish, but they aren't.",
        "It is a myth that whales are fish.",
        "It's not true that whales are fish.",
        "I can confirm that a whale is not a fish.",
    ],
    "Is 91 a prime number?": [
        "Let's check if 91 is a prime number. 91 = 7 × 13, so 91 is not a prime number.",
        "It is, as it happens, not prime.",
        "It is not the case that 91 is prime.",
    ],
    "Is Canberra the capital of Australia?": ["Canberra is not the capital; Sydney is."],
    "Is Mercury closer to the Sun than Venus?": ["Venus is closer to the Sun than Mercury."],
    "Is the dam still in operation?": ["The dam is no longer in operation."],
    "Does sound travel faster in water than in air?": ["Sound travels faster in air than in water."],
    "Was the tower built before 1900?": ["The tower was built after 1900."],
    "Are there more than 150 countries?": ["There are not more than 150 countries."],
    "펭귄은 북극에 삽니까?": ["사실, 펭귄은 북극에 살지 않아요.", "펭귄은 북극에 살지 않습니다."],
    "헬륨은 공기보다 가볍습니까?": ["공기는 헬륨보다 가볍습니다."],
    "氦气比空气轻吗？": ["空气比氦气轻。"],
    "Do penguins live wild in the Arctic?": ["Penguins do not live in the Arctic."],
    "鲸鱼是鱼吗？": ["鲸鱼不是鱼，而是哺乳动物。", "鲸鱼虽然名字里有鱼，但不是鱼。"],
    "堪培拉是澳大利亚的首都吗？": ["堪培拉不是首都，悉尼才是。"],
    "고래는 물고기입니까?": ["고래는 물고기가 아니라 포유류입니다.", "물고기가 아니에요."],
    "펭귄은 날 수 있습니까?": ["펭귄은 새이지만 날 수 없어요.", "날지 못합니다. 대신 헤엄을 칩니다."],
}
NEITHER = {
    "Did Ada Lock complete her purchase of Orley in 2022?": [
        "Ada Lock completed her purchase of Orley in October 2023.",
        "It is possible that Ada Lock completed her purchase of Orley in October 2022.",
    ],
    "Did Ada Lock complete her purchase of Orley before 2022?": [
        "Ada Lock completed her purchase of Orley in October 2022.",
    ],
    "Is a whale a fish?": [
        "Whales eat fish.",
        "Whales do not eat fish.",
        "Are whales fish? Good question!",
        "Whales are bigger than any fish.",
        "The whale shark is a fish.",
        "Whales are fish eaters.",
        "I'm not sure a whale is a fish.",
        "I don't know that whales are not fish.",
        "If whales were fish, they would have gills.",
        "Many people think whales are fish.",
    ],
    "Is 91 a prime number?": [
        "91 is not an even number.",
        "The next prime number after 91 is 97.",
        "A prime number is not divisible by other numbers.",
        "Let me check whether 91 is prime.",
    ],
    "Is Canberra the capital of Australia?": [
        "Sydney is the capital of Australia.",
        "Sydney is not the capital of Australia.",
    ],
    "Do penguins live wild in the Arctic?": ["Penguins live, as far as I know, in the Antarctic."],
    "Isn't 91 a prime number?": ["91 is prime."],
    "Is Mercury closer to the Sun than Venus?": [
        "Venus is closer to the Sun.",
        "Mercury is close to the Sun.",
    ],
    "Does the Earth orbit the Sun?": ["The Sun orbits the Earth.", "The Sun does not orbit the Earth."],
    "Is Rome in Italy?": ["Italy is in Rome."],
    "Was Caesar killed by Brutus?": ["Brutus was killed by Caesar."],
    "지구는 태양의 둘레를 돕니까?": ["태양은 지구의 둘레를 돕니다."],
    "고양이는 쥐를 먹습니까?": ["쥐는 고양이를 먹습니다."],
    "地球绕着太阳转吗？": ["太阳绕着地球转。"],
    "Who saw the whale?": ["Ann saw the whale."],
    "?": ["Bats."],
    "鲸鱼是鱼吗？": ["鲸鱼吃鱼。", "鲸鱼不吃鱼。", "很多人以为鲸鱼是鱼。", "鲸鱼和鱼都生活在水里。"],
    "堪培拉是澳大利亚的首都吗？": ["澳大利亚的首都是悉尼。"],
    "고래는 물고기입니까?": [
        "고래는 물고기를 먹습니다.",
        "고래상어는 물고기입니다.",
        "많은 사람이 고래를 물고기라고 생각합니다.",
    ],
}


@pytest.mark.parametrize(("replies", "verdict"), [(YES, True), (NO, False), (NEITHER, None)])
def test_a_reply_says_yes_or_no_by_stating_what_is_asked(
    replies: dict[str, list[str]], verdict: bool | None
) -> None:
    pairs = [(question, reply) for question, listed in replies.items() for reply in listed]
    assert [pair for pair in pairs if yes_or_no(pair[1]) is not None] == []
    assert [pair for pair in pairs if restated(pair[1], pair[0]) is not verdict] == []


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Of course! A whale is not a fish.", False), ("Of course! They swim.", True),
        ("네, 설명해 드리겠습니다. It is not a fish.", False), ("Sure! They swim.", None),
    ],
)  # fmt: skip
def test_a_consent_says_yes_where_nothing_else_says_it(reply: str, verdict: bool | None) -> None:
    assert said(reply, "Is a whale a fish?") is verdict


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("It isn't: 91 = 7 × 13.", False), ("They can't.", False), ("They do — in spring.", True),
        ("It is: every molecule has two.", True), ("That's correct: it is.", True),
        ("That's not correct.", False), ("That's a common myth.", False),
        ("It is Canberra.", None), ("It is a long story.", None),
        ("这是对的：水是H₂O。", True), ("这种说法是错误的。", False),
        ("的确如此，水是。", True), ("不正确，水是元素。", False),
        ("사실입니다. 화학식은 H₂O입니다.", True), ("사실이 아닙니다.", False), ("옳지 않습니다.", False),
    ],
)  # fmt: skip
def test_short_forms_say_yes_or_no(reply: str, verdict: bool | None) -> None:
    assert yes_or_no(reply) is verdict
