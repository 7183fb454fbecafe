"""Whether a reply says yes or no to the question, in English, Korean and Chinese.

A reply says so with its first words ("Yes, …", "아니요.", "不是，…"), also behind a greeting, thanks, praise
or a question ("Great question! No, …"), or with a yes or no that is a clause of that sentence by itself
("Based on general knowledge, no."), unless it has both. Or it does where it concludes or corrects itself
("So no, …", "The answer is yes.", "Wait, no", a box in TeX): what it concludes counts, and the last
conclusion if there are several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sealegs.text.answer_search.normalization import plain

_PICTURES = "☀-➿🌀-🫿"
_END = rf"(?=\s*(?:$|[,.!?;:()\n。，！；：、—–{_PICTURES}-]))"
"""A word by itself: punctuation or the end follows."""
_SUBJECTS = "it|they|he|she|the|that|this|these|those|there|you|we|i|its|their|both"
_SENTENCE_END = rf"(?=\s*(?:$|[.!;:\n。！；：—–{_PICTURES}-]|,\s(?:in|on|at|since|from|by|when|because)\b))"
_THAT = r"(?:that|this|it|(?:the|this|that) (?:claim|statement|idea|assumption|premise))(?:'s| is) "
_PRONOUN = r"(?:it|they|he|she|we|you|that|this|these|those|there)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should)"
_THIS = r"(?:这|那|这个|这种|这一|该|此)?(?:说法|句话|观点)?是?"
_GOES_ON = rf"(?=\s+(?:{_SUBJECTS}|because|since|as|not|but)\b)"
YES = (
    r"(?:yes|yeah|yep)\b(?!,?\s+(?:and|or|&)\s+no\b|\s*/\s*no\b)",
    rf"(?:correct|true|right|indeed|certainly|absolutely|definitely|of course){_END}",
    rf"(?:네|예|응){_END}",
    rf"{_THAT}(?:(?:absolutely |indeed )?(?:correct|true|right|so)|the case){_END}",
    rf"(?:indeed,? )?{_PRONOUN} (?:(?:certainly|indeed|really) )?{_AUXILIARY}{_SENTENCE_END}",
    r"[네예](?=입니다|이에요|예요)",
    r"네(?=\s(?!가지|개|명|번|마리|살|시|권|장|대|곳|사람|배))",
    r"(?:그렇습니다|그래요|그렇다|맞습니다|맞아요|맞다|물론입니다|물론이죠|사실입니다|사실이에요|옳습니다)",
    rf"(?:是的|对的|没错|正确|当然|的确|确实){_END}",
    rf"(?:是|对|会|能|可以|相同|相等|一样){_END}",
    rf"{_THIS}(?:对的|正确的|真的|事实|没错){_END}",
    rf"(?:是|确实|的确|正是)(?:如此|这样|这样的){_END}",
)
NO = (
    rf"(?:no|nope|nah){_END}(?!,? and yes\b|\s*/\s*yes\b)",
    rf"no{_GOES_ON}",
    rf"(?:no longer|not any ?more|never){_END}",
    r"(?:false|incorrect|wrong|not (?:at all|really|quite|exactly)"
    rf"|(?:certainly|definitely|absolutely|of course|generally|usually|probably|unfortunately) not){_END}",
    rf"{_THAT}(?:not (?:correct|true|right|so|the case)|incorrect|false|wrong|untrue){_END}",
    rf"{_THAT}(?:a |an )?(?:(?:common|popular|widespread) )?(?:myth|misconception){_END}",
    rf"{_PRONOUN} (?:{_AUXILIARY} not|cannot){_END}",
    r"(?:아니[요오다]|아뇨|아닙니다|아니에요|그렇지\s?않(?:습니다|아요|다)|틀렸습니다|틀립니다"
    r"|사실이\s?아[니닙]|(?:맞|옳)지\s?않)",
    rf"(?:不对|不正确|不能|不可以|并不|否|错误?|没有|不同|不等){_END}",
    rf"{_THIS}(?:不对的?|不正确的?|错误?的|错了?|假的|误解|误区){_END}",
    r"(?:不是|并不是|并非|不会|不相同|不相等|不一样)",
    rf"不{_END}",
)
_CONCLUDES = re.compile(
    r"(?:(?<!wrong )(?<!usual )(?<!common )(?<!popular )(?<!obvious )(?<!their )"
    r"(?:answer|verdict|conclusion)(?: here| to (?:this|the|your) question)?(?: is|:| would be| has to be)"
    r"|wait|actually|on second thought|correction|I(?:'d| would)(?: have to)? (?:say|answer|go with)"
    r"|I(?:'m| am) going (?:to say|with)|(?:that|it) would be"
    r"|so|therefore|thus|hence|in short|in brief|in a word|in conclusion|in summary|overall|to sum up"
    r"|bottom line|tl;dr"
    r"|(?:최종 )?(?:정?답|결론)(?:은|:)|따라서|그러므로|그래서|결론적으로|요약하면|정리하면|즉"
    r"|(?:最终)?答案(?:是|为|:)|答:|所以|因此|结论(?:是|:)|总之|综上)[\s,:，\"'“(]*(?:(?:is|it's) )?(?:an? )?"
    r"(?:(?:clear|simple|definite|firm|resounding) )?[\s\"'“(]*",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{\s*(?:\\[a-z]{1,10}\{\s*)?([^{}\n]{1,40})\}{1,2}")
_SENTENCE = re.compile(rf"(?:[^.!?\n。！？{_PICTURES}]|\.(?=\d))*[.!?\n。！？{_PICTURES}\ufe0f\s]*")
_OPENINGS, _LONGEST_PREAMBLE = 4, 80
"""Sentences of a reply among which are those before its answer, and the characters of one of them."""
_PREAMBLE = re.compile(
    r"(?:hi|hello|hey|thanks?|sure|okay|ok|alright|hmm+|no (?:problem|worries)|let(?:'s| me| us)"
    r"|that(?:'s| is) an?|(?:i'm )?(?:happy|glad|pleased)"
    r"|(?:an? )?(?:good|great|nice|fair|interesting|excellent) (?:one|question)"
    r"|안녕하|(?:좋은|흥미로운|재미있는) 질문|질문|감사|고맙|차근차근"
    r"|您好|你好|感谢|谢谢|这是一?个|让我|很高兴|下面)",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"(?:of course|certainly|absolutely|definitely|물론(?:이죠|입니다|이에요)|当然(?:可以)?)[!！]\s*(?=\S)"
    r"|[네예], ?[^.!?\n]{0,40}(?:드리겠습니다|드릴게요|알겠습니다|보겠습니다|볼게요)[.!]",
    re.IGNORECASE,
)
"""Which may be said of the request, and not of what is asked."""
_BARE = re.compile(
    r"(?:^|[,:;、—–(]|\s-|(?<=[가-힣])(?=\s[네예아])|(?<=speaking)(?=\s)|(?<=answer)(?=\s))[\s\"'“]*"
    r"(?:(?:so|and|but|then|well|clearly|simply|generally|definitely) |其实|显然|实际上|事实上|当然)?"
    rf"(?:(?P<yes>(?:yes|yeah|yep|[네예](?:입니다)?|是的?|对的?|没错|会的?|能|可以){_END})"
    rf"|(?P<no>(?:no|nope|(?:아니[요오]|아뇨)(?:입니다)?|不|不是的?|不对|否|并非|并不是|不会|不能|不可以|没有){_END}"
    rf"|no{_GOES_ON}))",
    re.IGNORECASE,
)
"""Yes or no as a clause by itself."""
_BOTH = re.compile(
    r"\byes,? (?:and|or|&) no\b|\bno,? (?:and|or|&) yes\b|是,?(?:也|又)不是|对,?也不对", re.IGNORECASE
)
_BELIEVED = re.compile(
    r"\b(?:some|many|people|others|(?:you|one) (?:might|may|could))\b[^,;:]{0,40}"
    r"\b(?:say|think|believe|claim|answer|assume|guess)",
    re.IGNORECASE,
)
_DECIDED = {"肯定的": True, "否定的": False}
_BEGINNING = re.compile(rf"[\s\"'“(>{_PICTURES}\ufe0f-]*(?:1[.)]\s)?")


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_YES, _NO = _pattern(YES), _pattern(NO)
_WORDS = {
    **dict.fromkeys(("yes", "true", "네", "예", "是", "是的", "对", "对的", "会", "能", "可以"), True),
    **dict.fromkeys(
        ("no", "false", "아니요", "아니오", "不是", "不", "否", "不对", "不会", "不能", "不可以"), False
    ),
}


def polarity(answer: str) -> bool | None:
    """Of an expected answer that is nothing but yes or no, which of them."""
    return _WORDS.get(plain(answer).strip(" .!。！").lower())


def yes_or_no(text: str) -> bool | None:
    """What a reply says to a question of yes or no; None where it says neither."""
    text = _BOXED.sub(r"\nAnswer: \1.\n", plain(text))
    verdicts = [
        _read(text, match.end()) for match in _CONCLUDES.finditer(text) if _begins(text, match.start())
    ]
    said = [_opening(text), *verdicts]
    return next((verdict for verdict in reversed(said) if verdict is not None), None)


def consents(text: str) -> bool:
    """Whether a reply begins with a consent that may be one to the request: "Of course! …"."""
    consent = _CONSENT.match(text)
    return consent is not None and consent[0][0] not in "네예"


def _opening(text: str) -> bool | None:
    """What the first sentence says that is no greeting, praise or question; if none does, the question."""
    place, asked = 0, None
    for _ in range(_OPENINGS):
        place = _BEGINNING.match(text, place).end()  # type: ignore[union-attr]
        consent = _CONSENT.match(text, place)
        if consent:
            place = consent.end()
            continue
        sentence = _SENTENCE.match(text, place)[0]  # type: ignore[index]
        verdict = _read(text, place)
        if _BOTH.search(sentence):
            return None
        sides = {match.lastgroup == "yes" for match in _BARE.finditer(sentence)}
        if sentence.rstrip().endswith("?"):
            asked = verdict if asked is None else asked
        elif verdict is not None:
            return verdict
        elif sides:
            after = _SENTENCE.match(text, place + len(sentence))[0]  # type: ignore[index]
            sides |= {match.lastgroup == "yes" for match in _BARE.finditer(after) if match.start()}
            return sides.pop() if len(sides) == 1 and not _BELIEVED.search(sentence) else None
        elif not _is_preamble(sentence):
            break
        place += len(sentence)
    return asked


def _is_preamble(sentence: str) -> bool:
    """Whether a sentence is a heading, a greeting, thanks or praise."""
    if len(sentence) > _LONGEST_PREAMBLE:
        return False
    end = sentence.rstrip(" ")[-1:]
    return bool(_PREAMBLE.match(sentence)) or not (end.isalnum() or end in ".。")


def _begins(text: str, place: int) -> bool:
    """Whether a word begins here, so that the "so" of "also" concludes nothing."""
    return not (text[place - 1 : place].isalnum() and text[place].isascii())


def _read(text: str, place: int) -> bool | None:
    """What a text says at a place."""
    for phrase, verdict in _DECIDED.items():
        if text.startswith(phrase, place):
            return verdict
    if _NO.match(text, place):
        return False
    return True if _YES.match(text, place) else None
