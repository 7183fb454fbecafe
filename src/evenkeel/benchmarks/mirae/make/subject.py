"""What a question is about, from its own words, so that its padding can name it."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from evenkeel.files.package_data import read_json

MAX_CHARACTERS = 48
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


class _Rules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the topic of a question is found in one language."""

    quotes: str
    fallback: str
    """The topic of a question in which none is found."""
    longest: int
    """The longest topic, in words (in Chinese, in characters)."""
    breaks: frozenset[str]
    """Words that are no part of a topic: of asking, of telling, pronouns, auxiliary verbs."""
    edges: frozenset[str]
    """Words that may be inside a topic, but not at its ends."""
    particles: tuple[str, ...]
    """What ends a noun phrase in Korean, the longer ones first."""
    arguments: tuple[str, ...]
    """Those of them that mark what a sentence is about."""
    stems: tuple[str, ...]
    """Endings that look like a particle and are none."""
    endings: tuple[str, ...]
    """Endings of a Korean verb that closes a sentence."""


class _Phrase(NamedTuple):
    text: str
    is_argument: bool = False
    """Whether a particle marks it as what the sentence is about."""


def topic_of(question: str, lang: str) -> str:
    """The longest phrase of a question that could be a topic, in quotation marks.

    >>> topic_of("What is the boiling point of water at sea level?", "en")
    '“boiling point of water at sea level”'
    """
    rules = read_json(__package__, "bank", lang, "subject.json", type=_Rules)
    phrases = _chinese(question, rules) if lang == "zh" else _spaced(question, rules)
    # A phrase that is the whole question would ask it again wherever the topic is named.
    usable = [
        each for each in phrases if 1 < len(each.text) <= MAX_CHARACTERS and question.strip() not in each.text
    ]
    topic = max(usable, key=lambda phrase: (phrase.is_argument, len(phrase.text)), default=_Phrase("")).text
    return f"{rules.quotes[0]}{topic}{rules.quotes[1]}" if topic else rules.fallback


def _spaced(question: str, rules: _Rules) -> list[_Phrase]:
    """The phrases of a language with spaces: between breaks and punctuation, as written there."""
    phrases: list[list[str]] = [[]]
    arguments: set[int] = set()
    end = 0
    for match in _WORD.finditer(question):
        word = match[0]
        if re.search(r"[^\s]", question[end : match.start()]):
            phrases.append([])
        end = match.end()
        bare = _without_particle(word, rules)
        if word.lower() in rules.breaks or bare in rules.breaks or word.endswith(rules.endings):
            phrases.append([])
        elif bare != word:
            phrases[-1].append(bare)
            if word.removeprefix(bare) in rules.arguments:
                arguments.add(len(phrases) - 1)
            phrases.append([])
        else:
            phrases[-1].append(word)
    return [_Phrase(" ".join(_trimmed(words, rules)), at in arguments) for at, words in enumerate(phrases)]


def _trimmed(words: list[str], rules: _Rules) -> list[str]:
    inner = [at for at, word in enumerate(words) if word.lower() not in rules.edges]
    if not inner:
        return []
    words = words[inner[0] : inner[0] + rules.longest]
    while words[-1].lower() in rules.edges:
        words.pop()
    return words


def _without_particle(word: str, rules: _Rules) -> str:
    """A Korean word without the particle that ends a noun phrase, if it has one."""
    if word.endswith(rules.stems):
        return word
    for particle in rules.particles:
        noun = word.removesuffix(particle)
        if noun and noun != word and _fits(noun[-1], particle):
            return noun
    return word


def _fits(last: str, particle: str) -> bool:
    """Whether a particle has the form that follows this syllable: 은 after a consonant, 는 after a vowel."""
    closed = "가" <= last <= "힣" and (ord(last) - ord("가")) % 28 != 0
    if particle in ("은", "이", "을", "으로"):
        return closed
    return not closed or particle not in ("는", "가", "를")


def _chinese(question: str, rules: _Rules) -> list[_Phrase]:
    breaks = "|".join(map(re.escape, sorted(rules.breaks, key=len, reverse=True)))
    phrases = re.split(rf"{breaks}|[^\w]+", question)
    return [_Phrase(_trimmed_characters(phrase, rules)) for phrase in phrases if phrase]


def _trimmed_characters(phrase: str, rules: _Rules) -> str:
    edges = "|".join(map(re.escape, sorted(rules.edges, key=len, reverse=True)))
    phrase = re.sub(rf"^(?:{edges})+", "", phrase)[: rules.longest]
    return re.sub(rf"(?:{edges})+$", "", phrase)
