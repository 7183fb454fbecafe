"""Whether a reply says yes or no to the question, in English, Korean and Chinese.

A reply says so with its first words ("Yes, …", "아니요.", "不是，…"), or where it concludes or corrects
itself ("So no, …", "The answer is yes.", "Wait, no", a box in TeX): what it concludes counts, and the last
conclusion if there are several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sealegs.text.answer_search.normalization import plain

_END = r"(?=\s*(?:$|[,.!?;:)\n。，！；：、—–-]))"
"""A word by itself: punctuation or the end follows."""
_SUBJECTS = "it|they|he|she|the|that|this|these|those|there|you|we|i|its|their|both"
_SENTENCE_END = r"(?=\s*(?:$|[.!;:\n。！；：—–-]))"
_THAT = r"(?:that|this|it)(?:'s| is) "
_PRONOUN = r"(?:it|they|he|she|we|you|that|this|these|those|there)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should)"
_THIS = r"(?:这|那|这个|这种|这一|该|此)?(?:说法|句话|观点)?是?"
_GOES_ON = rf"(?=\s+(?:{_SUBJECTS}|because|since|as|not|but)\b)"
YES = (
    r"(?:yes|yeah|yep)\b(?!\s+(?:and|or)\s+no\b|\s*/\s*no\b)",
    rf"(?:correct|true|right|indeed|certainly|absolutely|definitely|of course){_END}",
    rf"(?:네|예|응){_END}",
    rf"{_THAT}(?:(?:absolutely |indeed )?(?:correct|true|right|so)|the case){_END}",
    rf"{_PRONOUN} (?:(?:certainly|indeed|really) )?{_AUXILIARY}{_SENTENCE_END}",
    r"네(?=\s(?!가지|개|명|번|마리|살|시|권|장|대|곳|사람|배))",
    r"(?:그렇습니다|그래요|그렇다|맞습니다|맞아요|맞다|물론입니다|물론이죠|사실입니다|사실이에요|옳습니다)",
    rf"(?:是的|对的|没错|正确|当然|的确|确实){_END}",
    rf"(?:是|对|会|能|可以|相同|相等|一样){_END}",
    rf"{_THIS}(?:对的|正确的|真的|事实|没错){_END}",
    rf"(?:是|确实|的确|正是)(?:如此|这样|这样的){_END}",
)
NO = (
    rf"(?:no|nope|nah){_END}",
    rf"no{_GOES_ON}",
    r"(?:false|incorrect|wrong|not (?:at all|really|quite|exactly)"
    rf"|(?:certainly|definitely|absolutely|of course) not){_END}",
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
    r"(?:(?:the |my )?(?:final |short |correct )?answer(?: here| to (?:this|the|your) question)?(?: is|:)"
    r"|wait|actually|on second thought|correction"
    r"|so|therefore|thus|hence|in short|in conclusion|in summary|overall"
    r"|(?:최종 )?(?:정?답|결론)(?:은|:)|따라서|그러므로|결론적으로|즉"
    r"|(?:最终)?答案(?:是|为|:)|答:|所以|因此|结论(?:是|:)|总之)[\s,:，\"'“(]*",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{\s*(?:\\[a-z]{1,10}\{\s*)?([^{}\n]{1,40})\}{1,2}")
_ASKED = re.compile(r"[^?.,!;:\n]{1,80}\?\s*")
_DECIDED = {"肯定的": True, "否定的": False}
_BEGINNING = re.compile(r"[\s\"'“(>-]*")


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_YES, _NO = _pattern(YES), _pattern(NO)
_WORDS = {
    **dict.fromkeys(("yes", "true", "네", "예", "是", "是的", "对", "对的"), True),
    **dict.fromkeys(("no", "false", "아니요", "아니오", "不是", "不", "否", "不对"), False),
}


def polarity(answer: str) -> bool | None:
    """Of an expected answer that is nothing but yes or no, which of them."""
    return _WORDS.get(plain(answer).strip(" .!。！").lower())


def yes_or_no(text: str) -> bool | None:
    """What a reply says to a question of yes or no; None where it says neither."""
    text = _BOXED.sub(r"\nAnswer: \1.\n", plain(text))
    begin = _BEGINNING.match(text).end()  # type: ignore[union-attr]
    asked = _ASKED.match(text, begin)
    first = _read(text, asked.end()) if asked else None  # "Yes? No, it is not."
    first = _read(text, begin) if first is None else first
    verdicts = [
        _read(text, match.end()) for match in _CONCLUDES.finditer(text) if _begins(text, match.start())
    ]
    return next((verdict for verdict in reversed([first, *verdicts]) if verdict is not None), None)


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
