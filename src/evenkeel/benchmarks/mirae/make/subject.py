"""What a question is about, where its own words say so plainly, so that its padding can name it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from evenkeel.files.package_data import read_json

_SENTENCE = re.compile(r"[^?？!！。\n]+?(?:[?？!！。\n]|\.(?=\s|$)|$)")
_MARKS = "?？!！。.… \n"


class _Rules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the topic of a question is found in one language, as regular expressions."""

    quotes: str
    fallback: str
    """What a question is about whose topic is not plain."""
    longest: int
    """The longest topic, in characters."""
    patterns: tuple[str, ...]
    """Sentences whose topic is plain, with the group `topic`; the first that fits counts."""
    cut: str
    """What a topic leaves off at its end or start: an adjunct, an article."""
    never: str
    """What no topic contains: verbs, pronouns, words of asking, nouns that say nothing alone."""


def topics_of(questions: Mapping[str, str]) -> dict[str, str]:
    """What one question is about in each of its languages, in quotation marks.

    A wrong phrase would be worse than none. So a topic is taken only from a few plain forms of sentence, and
    where it is not plain in one of the languages, the question is about "this subject" in all of them.

    >>> topics_of({"en": "What is the capital of Australia?", "zh": "澳大利亚的首都是哪里？"})
    {'en': '“capital of Australia”', 'zh': '“澳大利亚的首都”'}
    >>> topics_of({"en": "Who wrote Hamlet?", "zh": "《哈姆雷特》是谁写的？"})
    {'en': 'this subject', 'zh': '这个话题'}
    """
    rules = {lang: read_json(__package__, "bank", lang, "subject.json", type=_Rules) for lang in questions}
    topics = {lang: _topic(question, rules[lang]) for lang, question in questions.items()}
    if not all(topics.values()):
        return {lang: of_lang.fallback for lang, of_lang in rules.items()}
    return {lang: f"{rules[lang].quotes[0]}{topic}{rules[lang].quotes[1]}" for lang, topic in topics.items()}


def _topic(question: str, rules: _Rules) -> str:
    """The topic of the first sentence that asks, or of the first one where none does; empty if not plain."""
    sentences = [match[0].strip() for match in _SENTENCE.finditer(question)]
    first = sentences[0] if sentences else ""
    sentence = next((each for each in sentences if each.endswith(("?", "？"))), first).rstrip(_MARKS)
    match = next(filter(None, (re.search(pattern, sentence) for pattern in rules.patterns)), None)
    topic = re.sub(rules.cut, "", match["topic"]) if match else ""
    return topic if len(topic) <= rules.longest and not re.search(rules.never, topic) else ""
