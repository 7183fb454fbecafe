"""Passages of a user's documents: cut, ranked by nearness to a question, and checked for an answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Indel

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.sections import ANNOUNCEMENT, read_sections
from sealegs.make.documents import Document
from sealegs.text.answer_search.mention import find_answer, mentions, target
from sealegs.text.answer_search.normalization import HAN, Word, plain, words
from sealegs.text.answer_search.spelling import simplified_characters
from sealegs.text.bm25 import bm25_index

LONGEST: dict[Lang, int] = {"en": 150, "zh": 250}
"""Of a passage: words, in Chinese characters."""
SHORTEST: dict[Lang, int] = {"en": 6, "zh": 10}
"""A shorter one says nothing to ask about."""
GAP: dict[Lang, str] = {"en": " ", "zh": ""}
SHORT = 2
"""Answers of so few characters must be whole words to be revealed, except in Chinese, which has no gaps."""
NAME = 5
"""Letters from which a last name reveals who is meant."""
RUN = 3
MOST_SHARED = 0.5
"""Of the runs of RUN words of the shorter of two texts: a text that shares more with another repeats it."""
SAME_SPELLING = 0.85
"""Of the letters of two answers: with more in common they may be spellings of one (colour, color)."""

_SENTENCE_END = re.compile(
    # Not behind an initial or a title, "W. H. Street", "Dr. Street", nor behind "e.g.".
    r"(?<!\b(?:e\.g|i\.e)\.)(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|pp|vs)\.)(?<!\bMrs\.)(?<!\bProf\.)"
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"”’)]))\s+(?![a-z])|(?<=[。！？])(?![”’」』）])|(?<=[。！？][”’」』）])"
)

_DATE = (
    r"(?:(?:the|of|early|mid|late|later|spring|summer|autumn|winter|january|february|march|april|may|june|july|"
    r"august|september|october|november|december|\d[\w-]*),? )"
)
"""A word of a date, which a pronoun cannot stand for."""
_TIME = r"(?:moment|minute|hour|day|night|week|month|season|year|decade|generation|centur(?:y|ie))s?"
_JOINS = (
    r"(?:of|in|on|at|by|for|with|from|to|and|or|but|as|if|so|though|since|because|when|while|where|who|which|that|than|"
    r"until|unless|after|before|once|then)"
)
"""Words behind which a pronoun may stand for a thing named before it in its sentence."""
_LEANS: dict[Lang, re.Pattern[str]] = {
    "en": re.compile(
        r"[(\[]|[\"“‘'(]*(?:(?:(?:(?:as )?if|when|while|as|because|since|although|though|once|unless|until|"
        r"after|before|in|on|at|for|by|with|from|to|of|during|despite|under|without|among|like|"
        rf"unlike|\w+ly|today|now|soon|often|(?:every|each) \w+|\w+ of),? {_DATE}*)?"
        r"(?:he|she|it|they|his|hers?|him|its|their|theirs|them|this|that|these|those|such|then|later|subsequent|"
        r"the (?:former|latter|same|following|next|previous|above|others?|\w+ ones?))|"
        rf"(?-i:[A-Z])[\w.’'-]*(?: (?-i:[A-Z])[\w.’'-]*)*, (?:its|his|her|their)|"
        rf"(?:(?!{_JOINS}\b)[\w’'-]+ ){{1,5}}(?:it|them|him|her)(?=[.,;:!?]| {_JOINS}\b)|"
        rf"(?:[\w-]+ ){{0,3}}{_TIME} (?:(?:later|earlier|afterwards?)(?! than)|(?:after|before|on)(?=,))|"
        r"(?:shortly|soon|not long|immediately) (?:(?:after|before)(?=,)|afterwards?|thereafter)|"
        r"thereafter|subsequently|at the time(?=,)|"
        r"we|both|neither|here|however|but|and|or|so|thus|hence|therefore|also|moreover|furthermore|"
        r"besides|"
        r"instead|otherwise|nevertheless|nonetheless|still|yet|consequently|accordingly|likewise|similarly|"
        r"meanwhile|afterwards?|another|others?|for (?:example|instance|more|further|details)|e\.g|i\.e|"
        r"note|even (?:so|then)|"
        r"(?:previously|formerly|finally|next|again|in addition|as a result|in contrast)(?=,)|"
        r"(?:[^\W\d]+ ){1,4}(?:this|these|those)\b[^,.]*(?=,)|"
        r"[^,.]{1,60}, (?:this|these|those|such(?! as))|"
        r"[^.]{1,80}\b(?:this|these) (?:problem|issue|case|reason|way|method|situation)s?|"
        r"(?:[^\W\d]+ ){0,3}of (?:these|those|them)|(?:from|in|up|over|down) there|"
        r"there(?! (?:is|are|was|were|has|have|will)\b))\b(?!-)",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"[“‘（]*(?:[他她它]们?|其|该|此|这|那(?!曲|不勒斯|霸)|因此|因而|所以|但|然而|不过|于是|后来|随后|接[着著]|同时|"
        r"另外|而且|并且|或者|否则|同样|两者|前者|后者|以上|上述|如上|咱们|我们|本人|例如|比如|之[后前]|"
        r"[为对由与在从如除]此|[在从对由][这那]|同(?:年(?![级龄])|月|日(?!本))|[次翌][年月日]|第二[年天]|当[时年日天晚]|不久|事后|"
        r"(?:[一二两三四五六七八九十百几数]{1,3}|\d{1,2})多?(?:年|个月|[天日周]|个?世纪)[之以]?[后前])"
    ),
}
"""Beginnings of a sentence that speaks of what was said before it."""
_PARTS = (
    r"(?:section|chapter|paragraph|page|table|figure|chart|diagram|graph|example|list|listing|step|item)s?"
)
_SAID = r"(?:mentioned|described|discussed|noted|explained|stated|said|seen|shown|defined|introduced)"
_POINTS: dict[Lang, re.Pattern[str]] = {
    "en": re.compile(
        # Not "above the door" and "below 5 metres".
        r"\b(?:above|below|overleaf)\b(?! (?:the|an?|all|any|its?|his|her|their|this|that|these|those|sea|"
        r"zero|ground|water|average|freezing|\W?\d|(?-i:[A-Z])))|"
        r"\b(?:aforementioned|aforesaid|foregoing)\b|"
        r"\b(?:pages?|figures?|fig\.|tables?) \d|"
        rf"\b(?:earlier|later|elsewhere) in th(?:is|e) (?:{_PARTS}|document|article|report|guide|manual)\b|"
        rf"\b(?:previous|preceding|next|following) {_PARTS}\b|"
        rf"\b(?:see|in|cf\.|from|of|to|repeat) (?:the )?{_PARTS} (?:\d|[A-Z]\b)(?![^ ]* of\b)|"
        rf"\bas (?:{_SAID}(?=,)|(?:already|previously|we (?:have|saw))\b)|"
        rf"\b{_SAID} (?:earlier|before|previously|already)\b|"
        r"\b(?:earlier|previously|already)[ -](?:mentioned|discussed)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        # Not 地下图书馆, 历史上文化, 晚上节目, 以上海为例.
        r"如[上前下]?所[述示说言]|[如见参][见看阅照]?[上下前后附左右]一?[文面图表节章段页列述]|"
        r"[如见参](?:[图表][\d一二三四五六七八九十所）]|第.{1,3}[章节页]|附录)|[上前]面(?:[提说讲介列]|所)|(?<![以目之天])[上下前](?:述|文(?![化明学艺物献字件人]))|"
        r"[上下前后]一?[节章](?![目约省奏日])|[上下前后]一[段页](?!时)|"
        r"(?:^|[，。；：、“（由从在])(?:[上下左右][图表](?![书示演面])|以[上下](?![海简]))|"
        r"(?:^|[，；：。中读看由])[上下]面|以[上下](?:所|各|几|这|内容|数据|步骤|方法|情况)|"
        r"步[骤驟][\d一二三四五]"
    ),
}
"""Words that point outside a sentence to another place in its document."""
_PERSONAL: dict[Lang, re.Pattern[str]] = {
    "en": re.compile(r"[\"“‘'(]*(?:he|she|his|hers?|him)\b", re.IGNORECASE),
    "zh": re.compile(r"[“‘（]*[他她](?!们)"),
}
_PLACES = re.compile(r"\b(?i:at|in|near|from|to|of|on|the|since|until) (?:[A-Z][\w’'-]*[ ,]*(?:and )?)+")
_PERSON: dict[Lang, re.Pattern[str]] = {
    "en": re.compile(
        r"(?<=[a-z,;] )[A-Z][a-z]+|\b[A-Z][a-z’'-]+ (?:[A-Z]\w*\. )*[A-Z][a-z]|"
        r"(?:^|[.!?] )[A-Z]\w+ (?:\w+ed|is|was|has|had)\b|"
        r"\b(?:\w*(?:m[ae]n|woman|father|mother)|\w+(?:ist|eer|ian)|boy|girl|child|person|son|daughter|brother|"
        r"sister|wife|husband|king|queen)\b"
    ),
    "zh": re.compile(
        r"[人员师匠僧士民父母帝家者]|[主院校市县省董]长|先生|主任|教授|"
        # A surname that few words begin with, before one or two characters.
        r"(?:^|[，。；、由与和是叫为])[王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯董萧曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶"
        r"潘杜戴钟汪姜范姚谭廖邹熊陆郝孔崔邱秦史顾侯邵孟段钱汤尹黎乔贺赖龚](?![代朝围色州多经时木期年])[\u4e00-\u9fff]"
    ),
}
"""What a personal pronoun may stand for, once names of places are left out."""
_ENTRY = re.compile(r"[a-z][\w ’'-]{1,30}: ")
"""The word that an entry of a glossary explains."""
_NAME_INSIDE = re.compile(r"(?<![.!?…:])(?<![.!?…:][\"”’)]) [\"“‘(]*(?!I\b)[A-Z]|\d")


# --- cutting ----------------------------------------------------------------------------------------


class Passage(NamedTuple):
    document: str
    """The id of the document that it is from."""
    text: str


def cut(documents: Sequence[Document], lang: Lang) -> list[Passage]:
    """The passages of all documents, in order, each text once."""
    sources: dict[str, str] = {}
    for document in documents:
        for text in cut_text(document.text, lang):
            sources.setdefault(text, document.id)
    return [Passage(document, text) for text, document in sources.items()]


def cut_text(text: str, lang: Lang) -> list[str]:
    """The passages of a document that can be understood by themselves.

    Each is of whole sentences of one section, as long as LONGEST allows, after the document's title and the
    section's heading. A sentence that leans on the one before it ("Its engineer, ...") never begins one,
    unless its heading asks for it, and what follows a sentence that is longer than a passage is left out as
    far as it leans.
    """
    title, sections = read_sections(text, lang)
    passages: list[str] = []
    for section in sections:
        if points_outside(section.heading, "", lang):
            continue
        is_name = section.heading != title and not _LEANS[lang].match(section.heading)
        headings = [title, section.around, section.heading if is_name else ""]
        asked = is_name and section.heading.endswith(("?", "？"))
        paragraphs = [sentences(paragraph, lang) for paragraph in section.paragraphs]
        passages += [
            _headed(headings, body, lang)
            for body in _pack(paragraphs, lang, asked=asked)
            if length(body, lang) >= SHORTEST[lang] and (title or names_something(body, lang))
        ]
    return passages


def _headed(headings: Sequence[str], body: str, lang: Lang) -> str:
    """A passage after its headings; a heading that asks ("Who runs it?") keeps its mark."""
    joined = (" – " if lang == "en" else "：").join(filter(None, headings))
    colon = "" if joined[-1:] in ("", "?", "!", "？", "！") else ":" if lang == "en" else "："
    return f"{joined}{colon}{GAP[lang] if joined else ''}{body}"


def _pack(paragraphs: Sequence[Sequence[str]], lang: Lang, *, asked: bool) -> list[str]:
    """The sentences of paragraphs in passages, each of which begins with one that stands by itself, or that
    leans on the question that its heading asks. What follows a sentence that points outside is left out with
    it up to the end of its paragraph."""
    groups: list[str] = []  # a sentence that stands by itself, with those that lean on it
    whole = False
    for paragraph in paragraphs:
        for part in paragraph:
            leaning = leans(part, lang) and (bool(groups) or not asked)
            before = groups[-1] if whole and leaning else ""
            if points_outside(part, before, lang):
                whole = False
                break
            group = f"{before}{GAP[lang]}{part}" if before else part
            whole = (not leaning or bool(before)) and length(group, lang) <= LONGEST[lang]
            if whole:
                groups[len(groups) - bool(before) :] = [group]
    passages: list[list[str]] = []
    room = 0
    for group in groups:
        if length(group, lang) > room:
            passages.append([])
            room = LONGEST[lang]
        passages[-1].append(group)
        room -= length(group, lang)
    return [ANNOUNCEMENT.sub("", GAP[lang].join(passage)) for passage in passages]


def leans(sentence: str, lang: Lang) -> bool:
    """Whether a sentence cannot be understood without the one before it."""
    if sentence[:1].islower():
        return not _ENTRY.match(sentence)
    return bool(_LEANS[lang].match(simplified_characters(sentence)))


def points_outside(sentence: str, before: str, lang: Lang) -> bool:
    """Whether a sentence speaks of another place in its document, or of a person that what is before it in
    its passage does not name."""
    sentence = simplified_characters(sentence)
    if _POINTS[lang].search(sentence):
        return True
    return bool(_PERSONAL[lang].match(sentence)) and not _PERSON[lang].search(_PLACES.sub(" ", before))


def names_something(text: str, lang: Lang) -> bool:
    """Whether a text names anything: in English by a capital inside a sentence or a figure; of Chinese, which
    has no capitals, it is not known."""
    return lang == "zh" or bool(_NAME_INSIDE.search(text))


def sentences(paragraph: str, lang: Lang) -> list[str]:
    """The sentences of a paragraph."""
    return [part.strip() for part in _SENTENCE_END.split(" ".join(paragraph.split())) if part.strip()]


def length(text: str, lang: Lang) -> int:
    return len(text.split()) if lang == "en" else len(re.sub(r"\s", "", text))


# --- ranking ----------------------------------------------------------------------------------------


def ranked(passages: Sequence[str], queries: Sequence[str], lang: Lang) -> list[list[int]]:
    """For each query all passages by their index, nearest first by BM25.

    Those that share no word with it come last: an irrelevant document need not share any.
    """
    scores = bm25_index([*passages, *queries], lang)
    count = len(passages)
    rows = (scores(count + number)[:count] for number in range(len(queries)))
    return [np.argsort(-row, kind="stable").tolist() for row in rows]


# --- answers ----------------------------------------------------------------------------------------
# Two checks for two uses: a document with the answer must state it as whole words; one without it must not
# contain even its letters, nor the last name of the person it names.


def states(text: str, answer: str) -> bool:
    """Whether the text has the answer as whole words, in whatever spelling."""
    return any(True for _ in mentions(target(answer), _words(text)))


def reveals(text: str, answer: str, query: str | None = None) -> bool:
    """Whether the text might give the answer away.

    With the question, a capitalised last word of the answer is enough (Rudgard for Agnes Rudgard), unless
    the question has that word itself (which river, for Columbia River).
    """
    spellings = [answer]
    last = answer.rpartition(" ")[2]
    if query is not None and len(last) >= NAME and last[0].isupper() and not _contains(query, last):
        spellings.append(last)
    return states(text, answer) or any(_contains(text, spelling) for spelling in spellings)


def same_words(text: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, punctuation and gaps."""
    return [word.text for word in _words(text)] == [word.text for word in _words(other)]


def may_be_same(answer: str, other: str) -> bool:
    """Whether two answers may be spellings of one.

    The one is found in the other as answers are ("twelve", "3 percent"), its words are all in the other
    ("Venn, Tobias"), it is the initials of the other (FSF), its words are shortened (St. Petersburg, T. Venn)
    or differ in vowels (grey, gray), or hardly a letter differs (colour, color).
    """
    if any(all(find_answer(text, ((spelling,),))) for text, spelling in ((answer, other), (other, answer))):
        return True
    one, two = (re.findall(r"\w+", _normalise(text).replace(".", "")) for text in (answer, other))
    if {*one} <= {*two} or {*two} <= {*one}:
        return True
    if any(_are_initials("".join(short), long) for short, long in ((one, other), (two, answer))):
        return True
    if len(one) == len(two) and all(map(_are_alike, one, two)):
        return True
    figures = any(character.isdigit() for character in answer + other)
    return not figures and Indel.normalized_similarity("".join(one), "".join(two)) > SAME_SPELLING


def _are_initials(letters: str, name: str) -> bool:
    """Whether letters are those of a name's capitals, or with one more: USA for United States."""
    initials = "".join(re.findall(r"\b[A-Z]", name)).casefold()
    return len(initials) > 1 and letters.startswith(initials) and len(letters) <= len(initials) + 1


def _are_alike(one: str, two: str) -> bool:
    """Whether one of two words is the other without some of its letters, but not the first, or with other
    vowels, or s, c or z for each other; no number is."""
    short, long = sorted((one, two), key=len)
    if one == two or short[0] != long[0] or not short.isalpha():
        return one == two
    letters = iter(long[1:])
    shortened = all(letter in letters for letter in short[1:])
    return shortened or (len(long) <= len(short) + 1 and _consonants(short) == _consonants(long))


def _consonants(word: str) -> str:
    return re.sub("[aeiouy]", "", re.sub("[cz]", "s", word))


def repeats(text: str, other: str) -> bool:
    """Whether a text has most of another's words in the other's order: it copies it, with or without more."""
    runs, theirs = _runs(text), _runs(other)
    return same_words(text, other) or len(runs & theirs) > MOST_SHARED * min(len(runs), len(theirs))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Every run of so many words of a text; of so many characters, in Chinese."""
    listed = [word.text for word in _words(text)]
    return {tuple(listed[start : start + RUN]) for start in range(len(listed) - RUN + 1)}


def false_version(text: str, answer: str, false: str, query: str) -> str | None:
    """The text with the true answer replaced by the false one; None where replacing is not enough.

    That is where another spelling still reveals the true answer, or "a" should become "an".
    """
    pattern = _pattern(answer)
    article = re.compile(rf"\ban?\s+(?:{pattern.pattern})", re.IGNORECASE)
    if article.search(text) and _takes_an(answer) != _takes_an(false):
        return None
    capitalised = false[:1].upper() + false[1:]
    lower = answer[:1].islower()
    version = pattern.sub(lambda match: capitalised if lower and match[0][0].isupper() else false, text)
    return version if states(version, false) and not reveals(version, answer, query) else None


def _contains(text: str, spelling: str) -> bool:
    text, spelling = _normalise(text), _normalise(spelling)
    if len(spelling) <= SHORT and not re.search(f"[{HAN}]", spelling):
        return bool(_pattern(spelling).search(text))
    return spelling in text


def _pattern(answer: str) -> re.Pattern[str]:
    """The answer literally, in any case and with any gaps; as whole words, where words have ends."""
    gapped = r"\s+".join(map(re.escape, answer.split()))
    if re.search(f"[{HAN}]", answer):
        return re.compile(gapped, re.IGNORECASE)
    start = r"(?<![^\W_])" if re.match(r"[^\W_]", answer) else ""
    end = r"(?![^\W_])" if re.search(r"[^\W_]$", answer) else ""
    return re.compile(f"{start}{gapped}{end}", re.IGNORECASE)


def _normalise(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _takes_an(word: str) -> bool:
    return word[:1].lower() in "aeiou"


@lru_cache(maxsize=16384)
def _words(text: str) -> tuple[Word, ...]:
    return words(plain(text))
