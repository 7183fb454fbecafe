"""An expected answer in a text: every usual spelling of it, and nothing that only looks like it."""

from __future__ import annotations

import pytest

from sealegs.text.answer_search.korean import is_noun_ending
from sealegs.text.answer_search.mention import Match, find_answer, parts
from sealegs.text.answer_search.normalization import plain, words
from sealegs.text.answer_search.yes_no import polarity, yes_or_no


def test_every_part_of_an_answer_is_sought_by_its_alternatives() -> None:
    expected = parts([["4 years", "48 months"], "Ada Lock"])
    query = "Who served, and for how long?"
    assert find_answer("Lock served forty-eight months.", expected, query) == [Match(1, 2, 4), Match(0, 0, 1)]
    assert find_answer("She served for four years.", expected, query) == [Match(0, 3, 5), None]
    assert find_answer("", expected, query) == [None, None]


@pytest.mark.parametrize(
    ("query", "answer", "reply", "named"),
    [
        ("Who is it?", "Ada Lock", "Ada Maria Lock is the keeper.", True),
        ("What is its title?", "One Locksmith Too Many", "The Crooked Postcard [1]", False),
        ("How long?", "Four years", "It was 4.", True),
        ("Who plays it?", "Ada Lock", "The baker is Mr. Lock.", True),
        ("谁在2011年当选？", "岳延年", "岳延华", False),
        ("谁在2011年当选？", "岳延年", "岳延年", True),
        ("Who is it?", "Ada Lock", "Ada Moor took over from Ben Lock.", False),
        ("Where is it?", "Ada Lock", "Ada Maria Lock Street", False),
        ("Who is it?", "Ada Brown Lock", "It is Ada B. Lock.", True),
        ("Who is it?", "Ada Brown Lock", "It is Eva B. Lock.", False),
        ("Who is it?", "Ada Lock", "It is A. Lock.", True),
        ("Who is it?", "J. K. Lock", "It is JK Lock.", True),
        (
            "Who founded it?",
            "Ana, Bo, Cy and Dee",
            "- vocals: Ana\n- drums: Bo\n- bass: Cy\n- flute: Dee",
            True,
        ),
        ("Who founded it?", "Ana, Bo, Cy and Dee", "- vocals: Ana\n- drums: Bo\n- bass: Cy", False),
        ("乘组有哪些人？", "陈冬、刘洋", "- 指令长：陈冬\n- 航天员：刘洋", True),
        ("乘组有哪些人？", "陈冬、刘洋", "- 指令长：陈冬", False),
        ("她在哪所大学读书？", "普林斯顿大学", "她在普林斯顿读书。", True),
        ("她在哪所大学读书？", "南京大学", "她在南京。", False),
        ("她在哪里读书？", "普林斯顿大学", "她在普林斯顿。", False),
        ("四颗卫星中最外侧的是哪一颗？", "木卫四", "木卫三。", False),
        ("四颗卫星中最外侧的是哪一颗？", "木卫四", "木卫四。", True),
        ("五座大楼中最高的是哪座？", "大楼五", "大楼二。", False),
        ("八大行星中最远的是哪颗？", "行星八", "行星七。", False),
        ("第五号任务叫什么？", "天问任务五号", "天问任务三号。", False),
    ],
)
def test_what_the_question_asks_for_says_which_parts_of_a_name_may_be_left_out_or_added(
    query: str, answer: str, reply: str, named: bool
) -> None:
    assert (find_answer(reply, parts(answer), query) != [None]) is named


def test_a_surname_alone_names_only_a_person_that_is_asked_for() -> None:
    expected = parts("New York")
    assert find_answer("It is York.", expected, "Where is it?") == [None]
    assert find_answer("It is Lock.", parts("Ada Lock"), "Who is it?") == [Match(0, 2, 3)]


@pytest.mark.parametrize(
    ("query", "reply", "named"),
    [
        ("Who planted the Lock orchard?", "The Lock orchard was planted by Cy Dane.", False),
        ("Who planted the Lock orchard?", "Lock planted it.", True),
        ("Who planted the Lock orchard?", "The Lock orchard was planted by Lock.", True),
        ("Who wrote the life of Lock?", "Cy Dane wrote the life of Lock.", False),
        ("Who wrote the life of Lock?", "It was written by Lock herself.", True),
    ],
)
def test_a_surname_that_repeats_words_of_the_question_names_nobody(
    query: str, reply: str, named: bool
) -> None:
    assert (find_answer(reply, parts("Ada Lock"), query) != [None]) is named


@pytest.mark.parametrize(
    ("answer", "reply", "named"),
    [
        ("Miguel de Cervantes", "Miguel de Cervo wrote it.", False),
        ("Miguel de Cervantes", "Rodrigo de Cervantes wrote it.", False),
        ("Ludwig van Beethoven", "Ludwig van Halen", False),
        ("Ludwig van Beethoven", "It was Ludwig van der Rohe.", False),
        ("Ludwig van Beethoven", "Karl van Beethoven", False),
        ("Leonardo da Vinci", "Leonardo di Caprio", False),
        ("Charles de Gaulle", "Charles de Montesquieu", False),
        ("Catherine of Aragon", "Catherine of Braganza", False),
        ("Catherine of Aragon", "Ferdinand, the king of Aragon", False),
        ("Daphne du Maurier", "George du Maurier wrote it.", False),
        ("Ludwig van Beethoven", "Beethoven", True),
        ("Ludwig van Beethoven", "It was van Beethoven.", True),
        ("Ludwig van Beethoven", "L. van Beethoven", True),
        ("Leonardo da Vinci", "It was painted by da Vinci.", True),
        ("Leonardo da Vinci", "Leonardo painted it.", True),
        ("Charles de Gaulle", "General de Gaulle", True),
        ("Rembrandt van Rijn", "Rembrandt, of course", True),
        ("Catherine of Aragon", "Queen Catherine", True),
        ("Ada Lock", "Lock of the Reform Party won.", True),
    ],
)
def test_one_name_of_a_person_is_not_taken_from_somebody_elses(answer: str, reply: str, named: bool) -> None:
    assert (find_answer(reply, parts(answer), "Who is it?") != [None]) is named


@pytest.mark.parametrize(
    ("answer", "reply", "named"),
    [
        ("Henry VIII", "It was Henry the Eighth.", True),
        ("Henry VIII", "Henry the Seventh.", False),
        ("25th anniversary", "On its twenty-fifth anniversary.", True),
        ("55 km", "It is 55,000 metres long.", True),
        ("55 km", "It is 5,500 m.", False),
        ("55公里", "全长五十五公里。", True),
        ("12人", "共有12名队员。", True),
        ("12人", "共有112名队员。", False),
        ("May", "It is held in may.", True),
        ("May", "It may be June.", False),
        ("2022年1月2日", "首演日期是January 2, 2022。", True),
        ("2枚", "两枚奖牌。", True),
        ("3.4 million", "Around 3.4M people.", True),
        ("3.4 million", "It is 3.4 m long.", False),
        ("2-0", "It ended two goals to one.", False),
        ("2-0", "二比零获胜。", True),
        ("1-0", "一比零获胜。", True),
        ("32", "Thirty to two.", False),
        ("7.2", "It is seven point two five.", False),
        ("$38,000-$45,000", "Between 38,000 and 45,000 dollars a year.", True),
        ("$38,000 to $45,000", "38,000–45,000 dollars", True),
        ("University of Szeged", "She went to the Univ. of Szeged.", True),
        ("0.75%", "It rose by 0.75 percentage points.", True),
        ("1/3", "不得低于三分之一。", True),
        ("3%", "百分之三", True),
        ("100元", "大约一百块钱。", True),
        ("2022年9月6日", "定在9月6日下午（2022年）。", True),
        ("March 4 to 13, 2022", "From March 4th through March 13th, 2022.", True),
        ("4-13 March 2022", "They ran from March 4 to March 13, 2022.", True),
        ("March 4-13", "It was held March 4-13, 2022.", True),
        ("March 13, 2022", "From 4 to 13 March 2022.", True),
        ("March 4 to 13, 2022", "From March 4 to April 13, 2022.", False),
        ("March 4 to 13, 2022", "From March 4, 2021 to March 13, 2022.", False),
        ("2021年6月3日至9日", "2021年6月3日到6月9日。", True),
        ("질소", "가장 많은 기체는 질소이며, 산소가 그다음이다.", True),
        ("질소", "질소입니다.", True),
        ("달", "달의 중력 때문입니다.", True),
        ("달", "그때그때 달라집니다.", False),
        ("탄소", "이산화탄소입니다.", False),
        ("탄소", "탄소화합물입니다.", False),
        ("넙다리뼈", "가장 긴 것은 넙다리 뼈(대퇴골)입니다.", True),
        ("206", "뼈는 모두 206개입니다.", True),
        ("206", "뼈는 이백육 개입니다.", True),
        ("13", "빗변은 113입니다.", False),
        ("78%", "약 78퍼센트를 차지한다.", True),
        ("Io", "위성은 Io와 Europa입니다.", True),
        ("3", "제3의 위성", False),
        ("서울", "수도는 서울특별시입니다.", True),
        ("서울", "서울시의 인구", True),
        ("서울특별시", "서울입니다.", True),
        ("부산", "부산광역시", True),
        ("제주특별자치도", "제주도이다.", True),
        ("서울", "서울우유입니다.", False),
        ("달", "달시입니다.", False),
        ("373.15K", "켈빈으로는 373.15K입니다.", True),
        ("€405 million", "A fine of EUR 405m.", True),
        ("405 million euro", "It paid 405m euros.", True),
        ("405 million", "It ran 405m.", False),
        ("5 hours 15 minutes", "5h15, in the end.", True),
        ("5 hours 15 minutes", "It took 5h 15m.", True),
        ("5 hours and 15 minutes", "5 hrs 15 min", True),
        ("5 hours 15 minutes", "It took five hours and fifteen minutes.", True),
        ("5 hours 15 minutes", "It took 5h 51m.", False),
        ("1 hour 55 minutes", "1h55", True),
        ("3 hours", "It was down for 3 hrs.", True),
        ("five years", "A 5-yr term.", True),
        ("90 kg", "He weighed 90 kilos.", True),
        ("147克", "147g", True),
        ("147 grams", "It weighed 147 g.", True),
        ("3克拉", "3克", False),
        ("120 sq km", "120km²", True),
        ("8小时", "早八个小时。", True),
        ("2小时", "两个钟头", True),
        ("8小时", "早八个月。", False),
        ("Spain and Peru", "Peru and Spain did.", True),
        ("Spain and Peru", "Peru did.", False),
        ("Manchester City", "Man City won.", True),
        ("Tromsø", "It is in Tromso.", True),
    ],
)
def test_an_answer_is_found_in_another_spelling_and_no_other_answer(
    answer: str, reply: str, named: bool
) -> None:
    assert [match is not None for match in find_answer(reply, ((answer,),))] == [named]


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ("It ended thirty-one to twenty-three.", True), ("Thirty-one points to 23.", True),
        ("31 vs 23", True), ("31 vs. 23", True), ("31 versus 23", True), ("31 against 23", True),
        ("31 points to 23", True), ("31 goals to 23", True), ("31:23", True), ("31 – 23", True),
        ("三十一比二十三", True), ("31比23", True), ("31 to 23, minutes before the end", True),
        ("23–31", False), ("twenty-three to thirty-one", False), ("23 vs 31", False),
        ("二十三比三十一", False),
        ("131 to 23", False), ("31 to 23.5", False), ("31 and 23", False), ("31 points, 23 fouls", False),
        ("from 31 to 23 km", False), ("thirty-one to twenty-three metres", False), ("31 to 23 °C", False),
        ("31 to 23 degrees", False), ("31比23公里", False), ("31 to 23%", False), ("31 to 23 million", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("score", ["31–23", "31-23", "31 to 23"])
def test_a_score_is_found_however_it_is_joined_and_no_other_score_or_range(
    score: str, reply: str, named: bool
) -> None:
    assert [match is not None for match in find_answer(reply, parts(score), "How did it end?")] == [named]


def test_a_range_is_found_with_the_unit_that_the_question_asks_for() -> None:
    assert find_answer("31 to 23 kilometres", parts("31–23"), "How many kilometres?") != [None]


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
        ["79.3 million", "seventy-nine point three million", "7930万", "七千九百三十万"],
        ["7.25", "seven point two five", "七点二五"],
        ["1.5", "The one point five"],
        ["30–2", "30 2", "thirty–two"],
        ["170", "one hundred and seventy", "a hundred seventy", "一百七十"],
        ["10.4 billion", "$10.4bn", "$10.4B", "10,400 million", "104亿", "104 亿"],
        ["13,610,000", "1361万", "一千三百六十一万", "13.61 million"],
        ["1.2亿", "1亿2000万", "一亿两千万", "120 million"],
        ["2.3%", "2.3 percent", "2.3 per cent", "百分之2.3", "百分之二点三", "2.3％"],
        ["1937", "一九三七年", "1937年", "1937년"],
        ["2024-03-05", "2024년 3월 5일", "2024년3월5일"],
        ["120000000", "1억 2천만", "1억2000만"],
        ["5 million", "fıve mıllion", "٥ million"],
        ["2024-04-05", "5 Aprıl 2024"],
    ],
)
def test_one_number_or_date_reads_the_same_in_every_form(forms: list[str]) -> None:
    assert len({tuple(word.text for word in words(plain(form))) for form in forms}) == 1


@pytest.mark.parametrize(
    ("stem", "rest", "same"),
    [
        ("달", "이", True), ("달", "가", False), ("해", "가", True), ("해", "이", False), ("달", "로", True),
        ("목성", "이며", True), ("이오", "와", True), ("이오", "과", False), ("Io", "와", False),
    ],
)  # fmt: skip
def test_particles_agree_with_the_end_of_the_noun(stem: str, rest: str, same: bool) -> None:
    assert is_noun_ending(stem, rest) == same


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Yes, they are.", True), ("**No.** It is lower.", False), ("No they are not.", False),
        ("No — they are lower", False), ("Of course not.", False), ("Yes and no.", None),
        ("No one knows.", None), ("No doubt it is.", None), ("It rises first. So no, it is lower.", False),
        ("1.2 × 0.8 = 0.96. The answer is no.", False), ("Also no.", None), ("Answer: Yes", True),
        ("네, 같습니다.", True), ("예, 맞습니다.", True), ("아니요, 4% 낮습니다.", False),
        ("아닙니다.", False),
        ("네 가지 이유가 있습니다.", None), ("예를 들어 봅시다.", None), ("다릅니다. 따라서 아니요.", False),
        ("是的，相同。", True), ("对。", True), ("不是，最后更低。", False), ("不，最后更低。", False),
        ("不相同。", False), ("是原价的96%。所以不相同。", False), ("答案是否定的。", False),
        ("不久以后", None), ("", None),
        (r"1.2 × 0.8 < 1. \boxed{\text{No}}", False), (r"\(\boxed{Yes}\)", True),
        (r"따라서 답은 \boxed{예}입니다.", True), (r"所以 \boxed{不是}", False), (r"\boxed{206}", None),
        ("Yes? No, they are lower.", False), ("Equal? Yes.", True), ("相同吗？不，更低。", False),
        ("Yes, they are. Wait, no, they are lower.", False), ("Yes, actually they are.", True),
        ("Great question! No, they are lower.", False), ("Thanks for asking. **Yes.**", True),
        ("Based on what I know, no.", False), ("In our case, yes: 0.39 and 0.39.", True),
        ("In law, yes; in fact, no.", None), ("In law: yes. In fact: no.", None), ("Yes, and no.", None),
        ("It depends.", None), ("Some would say: yes. It depends.", None), ("Hi! 😊 No.", False),
        ("# Answer\n\nNo\n\n## Why\n\nLower.", False), ("Good question, no doubt about it.", None),
        ("Equal? Good question! Hm? No.", False), ("I'd say no.", False), ("Verdict: yes", True),
        ("The popular answer is yes.", None), ("That's an easy one: no.", False),
        ("They are lower. Yes, many get this wrong.", None), ("Strictly speaking no.", False),
        ("Yes/No: No", False), ("This statement is false.", False),
        ("No longer. It fell.", False), ("Generally not.", False), ("It did, in April.", True),
        ("Quick answer: no ❌", False), ("Indeed it does!", True),
        ("간단히 답하자면 아니요입니다.", False), ("其实不是，更低。", False),
        ("좋은 질문입니다. 아니요, 다릅니다.", False), ("일반적으로는, 네.", True), ("답은 예입니다.", True),
        ("根据定义,不是。91=7×13。", False), ("好问题！是的。", True), ("是，也不是。", None),
    ],
)  # fmt: skip
def test_a_reply_says_yes_or_no_with_its_first_words_or_its_conclusion(reply: str, said: bool | None) -> None:
    assert yes_or_no(reply) is said


@pytest.mark.parametrize(
    ("answer", "side"),
    [
        ("Yes", True),
        ("no.", False),
        ("不会", False),
        ("네", True),
        ("不是", False),
        ("Norway", None),
        ("", None),
    ],
)
def test_an_expected_answer_may_be_yes_or_no(answer: str, side: bool | None) -> None:
    assert polarity(answer) is side


def test_a_number_too_long_to_be_one_stays_as_it_is() -> None:
    for digit in "7٧七①":
        for tail in ("", " million", "亿", "点七", " percent", "月", " March"):
            assert words(plain(digit * 9999 + tail))
