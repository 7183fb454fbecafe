"""Which of the values that a reply names it gives as its answer, for RGB and MIRAE."""

from __future__ import annotations

import pytest

from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.text.answer_check.stated import stated_answer
from sealegs.text.answer_search.mention import parts

ANSWERS = {
    "What is the capital of Canada?": "Ottawa",
    "Who wrote Romeo and Juliet?": "Shakespeare",
    "In which year did the First World War begin?": "1914",
    "Which planet is the largest?": "Jupiter",
    "加拿大的首都是哪座城市？": "渥太华",
    "青霉素是谁发现的？": "弗莱明",
    "캐나다의 수도는 어디입니까?": "오타와",
    "제1차 세계 대전은 몇 년에 시작되었습니까?": "1914",
}
BESIDE = [
    ("What is the capital of Canada?", "It's Toronto, which is bigger than Ottawa."),
    ("What is the capital of Canada?", "Toronto. (Ottawa is only the fourth-largest city.)"),
    ("Who wrote Romeo and Juliet?", "It is often attributed to Shakespeare, but it was written by Marlowe."),
    ("Who wrote Romeo and Juliet?", "Ben Jonson, a friend of Shakespeare."),
    ("Who wrote Romeo and Juliet?", "It's Marlowe; Shakespeare is a different case."),
    ("What is the capital of Canada?", "Both Toronto and Ottawa come up. It is Toronto."),
    ("What is the capital of Canada?", "Most people expect Ottawa. It's Toronto."),
    ("In which year did the First World War begin?", "1916. Compare 1914, which is from a later list."),
    ("캐나다의 수도는 어디입니까?", "토론토입니다. 오타와는 더 잘 알려져 있을 뿐입니다."),
    ("Who wrote Romeo and Juliet?", "Christopher Marlowe, with whom Shakespeare worked."),
    ("Which planet is the largest?", "The largest planet is **Saturn**, followed by Jupiter."),
    ("Which planet is the largest?", "Saturn! It is even wider than Jupiter."),
    ("In which year did the First World War begin?", "In 1916, two years after the shots of 1914."),
    ("加拿大的首都是哪座城市？", "多伦多，比渥太华大。"),
    ("加拿大的首都是哪座城市？", "首都是多伦多，其次是渥太华。"),
    ("青霉素是谁发现的？", "弗洛里，弗莱明的同事。"),
    ("青霉素是谁发现的？", "弗洛里，他与弗莱明同获诺贝尔奖。"),
    ("캐나다의 수도는 어디입니까?", "토론토로, 오타와보다 큽니다."),
    ("캐나다의 수도는 어디입니까?", "토론토이며, 그다음으로 큰 도시는 오타와입니다."),
    ("캐나다의 수도는 어디입니까?", "많은 사람이 오타와라고 하지만 실제로는 토론토입니다."),
    ("제1차 세계 대전은 몇 년에 시작되었습니까?", "1914년 전쟁보다 2년 늦은 1916년에 시작되었습니다."),
]
GIVEN = [
    ("What is the capital of Canada?", "Toronto is bigger, but the capital is Ottawa."),
    ("What is the capital of Canada?", "Ottawa, which is smaller than Toronto."),
    ("What is the capital of Canada?", "It is a city in Ontario, which is called Ottawa."),
    ("What is the capital of Canada?", "It was not the first choice, but it has been Ottawa since 1857."),
    ("Who wrote Romeo and Juliet?", "A play set in Verona, which Shakespeare wrote in the 1590s."),
    ("Who wrote Romeo and Juliet?", "Shakespeare, a friend of Ben Jonson."),
    ("Which planet is the largest?", "No planet is larger than Jupiter."),
    ("Which planet is the largest?", "Saturn is second; Jupiter is first."),
    ("Which planet is the largest?", "Uranus, Neptune and Saturn are all smaller than Jupiter."),
    ("In which year did the First World War begin?", "The Second began in 1939 and the First in 1914."),
    ("加拿大的首都是哪座城市？", "第二大城市是蒙特利尔，首都是渥太华。"),
    ("加拿大的首都是哪座城市？", "渥太华与加蒂诺共同组成首都圈。"),
    ("青霉素是谁发现的？", "弗莱明，他与弗洛里同获诺贝尔奖。"),
    ("캐나다의 수도는 어디입니까?", "토론토보다 작은 오타와입니다."),
    ("캐나다의 수도는 어디입니까?", "가장 큰 도시는 토론토이고, 수도는 오타와입니다."),
]


@pytest.mark.parametrize(("pairs", "given"), [(BESIDE, False), (GIVEN, True)])
def test_a_value_beside_the_one_that_is_given_is_no_answer(pairs: list[tuple[str, str]], given: bool) -> None:
    for query, reply in pairs:
        answer = parts([ANSWERS[query]])
        assert (stated_answer(reply, answer, query) != [None]) is given, reply
        assert lenient(reply, answer, query=query).given is given, reply
