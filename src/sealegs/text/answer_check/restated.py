"""Whether a reply answers a question of yes or no by stating what it asks, or that it is not so.

"Whales are not fish" says no to "Is a whale a fish?", and "Bats lay eggs" yes to "Do bats lay eggs?". The
first clause decides that has all words of the question, or nothing but words of it: for a yes all but the
subject, which may be left out or a pronoun, for a no the predicate or half of them. "It is not" and "they do"
decide, too. Clauses on what others believe, on conditions and on what is not known state nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from sealegs.text.answer_check.clauses import Clause, clauses, ends_sentence
from sealegs.text.answer_check.denials import CALLED_ERROR
from sealegs.text.answer_check.wording import ClassifiedReply, asks_yes_or_no, form, read
from sealegs.text.answer_search.korean import FINALS, HANGUL, RIEUL, noun
from sealegs.text.answer_search.mention import ends, plain_query, text_words
from sealegs.text.answer_search.normalization import HAN, Word
from sealegs.text.answer_search.yes_no import consents, yes_or_no

_SENTENCE = re.compile(r"[^.!?;\n。！？；]+[.!?;\n。！？；]?")
_ASKS_WHETHER_TRUE = re.compile(r"^is it (?:true|correct|right|the case) that ", re.IGNORECASE)
_SURELY = re.compile(
    r"\b(?:I(?:[’']m| am)|it(?:[’']s| is))"
    r"(?: (?:fairly|quite|pretty|very|reasonably|absolutely|now|well|widely|generally))?"
    r" (?:confident|sure|certain|clear|known|established|documented|accepted) that ",
    re.IGNORECASE,
)
"""What only says how sure it is: "I'm fairly confident that"."""
_EITHER = re.compile(f"(?:([{HAN}])(?:不|没)\\1|是否)")
"""会不会 and 是否, which ask."""
_ASKING_VERB = re.compile(
    f"(?<![{HANGUL}])([{HANGUL}]+?)(?:습니까|니까|나요|까요|을?(?= 수 있))(?![{HANGUL}])"
)
_BIEUP = 17
"""Among the ways in which a Korean syllable can end."""
_VERB_ENDINGS = "습니다|니다|아요|어요|지만?|는다?|다|고|으며|며"
_KOREAN_NOT = re.compile(f"(?<![{HANGUL}])(?:없|못하|못합|못해)[{HANGUL}]+")
_NO_LONGER = re.compile(r"\bno longer\b|不再", re.IGNORECASE)
_SHORT = re.compile(
    r"(?:(?:but|though|although) )?(?:it|they|he|she|we|you|that|this|these|those|there)"
    r"(?: (?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should|not|cannot))+"
)
MANY_WORDS = 4
"""Words of a question of which one more may be left out."""
_PRONOUNS = frozenset(("it", "they", "he", "she", "this", "that", "these", "those"))
_UNSTATED = re.compile("[LfFlAWqk]|d[^Q]*n[^Q]*c|n[xm]*(?:[ids]|cj)")
"""What others believe, a condition, whether; what is asked, not known or not said."""
_NEGATED = re.compile("[nY~]")
_OTHER_CONTENT = re.compile("[wMO#zE]")
_OF_ANOTHER = re.compile("[wMO#]x[xom]*Q")
"""A word of the question that only belongs to another: "bigger than a fish"."""
_ANOTHER_IS = re.compile("Q[wM]+B|B[^BQ]*$|QM")
"""Another subject or predicate beside the question's words: "whale sharks are fish"."""
_LEADING = re.compile("[xm]{1,3}Q{1,4}")
"""What may begin a sentence: "In water, sound is faster"."""
_CONFIRMED = re.compile("^b?(?:[pj]|d#?)[xm]*k(?=j)")
"""I can confirm that, they do confirm that."""
_PREPOSITIONS = frozenset((
    "in", "on", "at", "of", "to", "from", "into", "than", "by", "with", "for", "under", "over", "above",
    "below", "before", "after", "through", *"比在绕被由于到",
))  # fmt: skip
_PARTICLES = frozenset(("보다", "를", "을", "의", "에서", "에게", "에", "으로", "로"))
_ROLES = _PREPOSITIONS | _PARTICLES
_OF_SUBJECTS = ("은", "는", "이", "가")
_OPPOSITE = {"before": "after", "above": "below", "over": "under"}
_OPPOSITE |= {after: before for before, after in _OPPOSITE.items()}
_NOT_THE_CASE = {"not", "case"}
_COMPARING = ("than", "比", "보다")
_COMPARATIVE = re.compile("[a-z]{2,20}er|more|less|更|더|还")
_NO_MORE = re.compile("not (?:more|less|fewer) than")
_MYTHS = frozenset(("myth", "misconception", "fallacy"))


def said(text: str, question: str) -> bool | None:
    """Whether a text says yes or no: by the word, or by stating what the question asks. "Of course!" counts
    where nothing else says it."""
    verdict = yes_or_no(text)
    verdict = restated(text, question) if verdict is None else verdict
    return True if verdict is None and consents(text) else verdict


def restated(text: str, question: str) -> bool | None:
    """What a reply says to the question by stating it, or that it is not so; None where it does neither."""
    asked = _asked_clause(plain_query(question))
    asked_words, asked_letters = _content(asked)
    roles = _roles(text_words(asked))
    if not asked_words or _NEGATED.search(asked_letters):
        return None
    reading = read(text_words(_same_verbs(_SURELY.sub("", _without_questions(text)), asked)), asked, {})
    rows = clauses(reading, asked)
    copula = "B" in asked_letters
    wrong = {n for n, row in enumerate(rows[1:]) if CALLED_ERROR.fullmatch(row.letters)}
    verdicts = (
        _stated(rows, number, reading, asked_words, roles, copula=copula)
        for number in range(len(rows))
        if number not in wrong
    )
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _without_questions(text: str) -> str:
    return _SENTENCE.sub(lambda match: " " if match[0][-1] in "?？" else match[0], ends(text))


@lru_cache(maxsize=1024)
def _asked_clause(question: str) -> str:
    """The part of a question that asks for yes or no: "Are they equal" of "... Are they equal, and why?"."""
    sentences = [part for part in re.split(r"(?<=[.!?。])\s*", question) if part]
    parts = re.split("[,、:]", sentences[-1]) if sentences else []
    asking = [part.strip(" ?") for part in parts if asks_yes_or_no(part)]
    asked = _ASKS_WHETHER_TRUE.sub("", asking[-1] if asking else "")
    return _EITHER.sub(r"\1", asked)


@lru_cache(maxsize=1024)
def _content(asked: str) -> tuple[list[str], str]:
    """The words of a question that are in no class of function words, in their order, and its letters."""
    listed = text_words(asked)
    reading = read(listed, asked, {})
    content = _repeated(reading, 0, len(reading.tokens))
    return [word for word in content if not word.startswith("있")], read(listed, "", {}).letters


def _repeated(reading: ClassifiedReply, start: int, end: int) -> list[str]:
    """The forms of the question's words among some tokens."""
    tokens = [token for token in reading.tokens[start:end] if token.letter == "Q"]
    return [form(word.text) for token in tokens for word in reading.words[token.start : token.end]]


def _stated(
    rows: Sequence[Clause],
    number: int,
    reading: ClassifiedReply,
    asked: Sequence[str],
    roles: Mapping[str, str],
    *,
    copula: bool,
) -> bool | None:
    """What one clause says to the question."""
    letters, start = rows[number].letters, rows[number].start
    tokens = reading.tokens[start : start + len(letters)]
    texts = [word.text for word in reading.words[tokens[0].start : tokens[-1].end]]
    before = rows[number - 1] if number and not ends_sentence(rows, number - 1) else None
    led = start if before is None or not _LEADING.fullmatch(before.letters) else before.start
    listed = reading.words[reading.tokens[led].start : tokens[-1].end]
    wrong = "e" in letters or not _MYTHS.isdisjoint(texts)
    compared = next((word for word in asked if roles.get(word) in _COMPARING), "")
    no_more = bool(compared) and bool(_NO_MORE.search(" ".join(texts)))
    denied = (bool(_NEGATED.search(letters)) or no_more or set(texts) >= _NOT_THE_CASE) != wrong
    if _SHORT.fullmatch(" ".join(texts)):
        return not denied if denied or ends_sentence(rows, number) else None
    repeated = _repeated(reading, led, start + len(letters))
    missing = Counter(asked) - Counter(repeated)
    if not denied:  # "in October 2022" says "in 2022"
        missing -= Counter(word.text for word in listed if word.number and roles.get(word.text) in ("in", ""))
    if texts[0] in _PRONOUNS:
        missing.pop(asked[0], None)
    if compared in missing and any(map(_COMPARATIVE.fullmatch, texts)):
        for word in asked[asked.index(compared) :] if roles[compared] == "than" else [compared]:
            missing.pop(word, None)
    bare = not _OTHER_CONTENT.search(letters)
    korean = bool(re.match(f"[{HANGUL}]", asked[0]))
    if _UNSTATED.search(_CONFIRMED.sub("", letters)) or _OF_ANOTHER.search(letters):
        return None
    if korean and not re.search("Q[x~n]*$", letters):
        return None  # the predicate comes last
    exchanged = _exchanged(listed, asked, roles, copula=copula)
    if exchanged:  # "A is bigger than B" says that B is not bigger
        return False if exchanged in _COMPARING and bare and not missing and not denied else None
    is_said = "B" in letters or any("是" in text for text in texts)
    longer = re.search("Q(w+)m*$", letters)  # "fish eaters", but 鱼类 is one character longer than 鱼
    longer = longer if longer and len(longer[1]) > bool(re.match(f"[{HAN}]", asked[0])) else None
    if copula and not bare and (longer or not is_said or _ANOTHER_IS.search(letters)):
        return None
    names_predicate = bare and asked[-1] in repeated
    if denied:
        complete = not missing or names_predicate or (bare and 2 * missing.total() <= len(asked))
    else:
        subject = set(missing) == {asked[0]} or (missing.total() == 1 and len(asked) >= MANY_WORDS)
        complete = not missing or (names_predicate and (korean or subject))
    return not denied if complete else None


def _roles(listed: Sequence[Word]) -> dict[str, str]:
    """By the form of each word, the preposition before it, or the particle that is written on to it."""
    roles: dict[str, str] = {}
    before = ""
    for word in listed:
        if word.text == "着" or (before == "than" and word.text in _PREPOSITIONS):  # "than in air"
            continue
        own = word.text[len(noun(word.text)) :] if re.match(f"[{HANGUL}]", word.text) else ""
        roles.setdefault(form(word.text), own or (before if before in _PREPOSITIONS else ""))
        before = word.text
    return roles


def _exchanged(
    listed: Sequence[Word], asked: Sequence[str], roles: Mapping[str, str], *, copula: bool
) -> str | None:
    """By which preposition, particle or order a clause has the subject of the question for its object: "The
    Sun orbits the Earth", of "Does the Earth orbit the Sun?". The opposite preposition counts as "than"."""
    order = {word: place for place, word in reversed(list(enumerate(asked)))}
    found = [text for word in listed if (text := form(word.text)) in order]
    now, subject = _roles(listed), asked[0]
    for word in found:
        others = [each for each in asked if roles.get(each) == now[word]]
        moved = others and all(order[word] < order[each] and now.get(each) != now[word] for each in others)
        if moved and now[word] in _ROLES:
            return now[word]
        if _OPPOSITE.get(roles[word]) == now[word]:
            return "than"
    if subject not in found:
        compared = any(roles[word] in _COMPARING and now[word] not in _COMPARING for word in found)
        return "order" if compared else None
    if copula or found[0] == subject or roles[subject] in _ROLES or now[subject] == "by":
        return None
    first, between = found[0], found[1 : found.index(subject)]
    if now[first] in _OF_SUBJECTS:
        return None if now[subject] in _OF_SUBJECTS or found[-1] == subject else now[first]
    verbs = [word for word in between if order[subject] < order[word] < order[first]]
    return "order" if verbs and not now[first] else None


def _same_verbs(text: str, asked: str) -> str:
    """A Korean text with the verbs of the question in the form that they have there, and 없다 and 못하다 as
    negations, and so "no longer"."""
    text = _NO_LONGER.sub(lambda match: "not" if match[0].isascii() else "不", _KOREAN_NOT.sub("않아", text))
    for match in _ASKING_VERB.finditer(asked):
        stems = "|".join((match[1], *_open_stems(match[1])))
        text = re.sub(f"(?<![{HANGUL}])(?:{stems})(?:{_VERB_ENDINGS})(?![{HANGUL}])", match[0], text)
    return text


def _open_stems(stem: str) -> list[str]:
    """The stem of a Korean verb before ㅂ니까: 가 of 갑니까, 살 of 삽니까."""
    final = (ord(stem[-1]) - ord("가")) % FINALS
    bare = chr(ord(stem[-1]) - final)
    return [stem[:-1] + bare, stem[:-1] + chr(ord(bare) + RIEUL)] if final == _BIEUP else []
