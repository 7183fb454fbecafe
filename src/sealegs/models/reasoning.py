"""A model's reasoning, separated from its answer."""

from __future__ import annotations

import re

TAGS = re.compile(
    r"(?P<fence>```)"
    r"|(?P<open><(?:seed:)?(?:think|thinking|thought|reasoning)>|\[THINK\]|◁think▷|<\|START_THINKING\|>)"
    r"|(?P<close></(?:seed:)?(?:think|thinking|thought|reasoning)>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>)",
    re.IGNORECASE,
)
THINKERS = re.compile(
    r"\b(?:o[134]|gpt-5|gpt-oss|deepseek-r\d|qwq|qwen3|gemini-(?:2\.5|3)|magistral|grok-4|glm-(?:4\.[5-9]|5)"
    r"|minimax-m\d)\b|reasoner|reasoning|thinking",
    re.IGNORECASE,
)
NOT_THINKING = re.compile(r"non-reasoning|no-?think|instruct|-chat\b|embed|rerank|flash-lite", re.IGNORECASE)
ALLOWANCE = 8192
"""Tokens that a model is counted to think with where nothing else is said."""
FIRST_CHARACTERS = "`<[◁"
"""What every tag, and every mark of a channel, begins with."""
THINK = "<think>"
MENTION_WORDS = 3
"""Words between two tags that are only mentioned; reasoning has more."""
QUOTES = frozenset({"``", "''", '""', "“”", "‘’", "«»", "„“"})

# gpt-oss writes into channels. Some servers leave the marks in, some drop them and leave the names.
CHANNELS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
FINAL = re.compile(r"<\|channel\|>final(?:[^<]|<\|constrain\|>)*<\|message\|>")
MARK = re.compile(r"<\|(?:start|end|return|call|channel|message|constrain)\|>")
BARE = re.compile(r"\s*analysis(?=[^\W\da-z_])")
BARE_FINAL = "assistantfinal"


def thinks(name: str) -> bool:
    """Whether a model is known to think before it answers, by its name."""
    return THINKERS.search(name) is not None and NOT_THINKING.search(name) is None


def split_reasoning(content: str, *, cut: bool = False) -> tuple[str, str, bool]:
    """The answer without its reasoning, the reasoning, and whether every block of it was closed.

    A block of reasoning may be anywhere, and there may be several. A tag that is quoted, or inside a block
    of code, is only mentioned, and so is one that opens in the middle of an answer and never closes; unless
    that begins a line of a text that was `cut` off.
    """
    if not any(map(content.__contains__, FIRST_CHARACTERS)) and not BARE.match(content):
        return content, "", True
    if CHANNELS.match(content) or BARE.match(content) or FINAL.search(content):
        return _from_channels(content)
    answer: list[str] = []
    blocks: list[str] = []
    at, nested, fenced = 0, 0, False
    opening: re.Match[str] | None = None
    for tag in TAGS.finditer(content):
        if tag["fence"]:
            fenced ^= opening is None
        elif fenced or "".join(_around(content, tag)) in QUOTES:
            continue
        elif tag["open"]:
            nested += opening is not None
            opening = opening or tag
        elif opening and _are_mentioned(content, opening, tag):
            opening = None
        elif opening:
            answer.append(content[at : opening.start()])
            blocks.append(content[opening.end() : tag.start()])
            at, opening = tag.end(), None
        elif nested or (not blocks and _closes_reasoning(content, tag)):
            # A chat template may open the block inside the prompt, so that only its end is in the reply.
            blocks.append("".join(answer) + content[at : tag.start()])
            answer, at, nested = [], tag.end(), max(0, nested - 1)
    if opening:
        before = "".join(answer) + content[at : opening.start()]
        if not before.strip() or (cut and content[: opening.start()].rstrip(" \t").endswith("\n")):
            return "", _joined([*blocks, before, content[opening.end() :]]), False
    text = "".join([*answer, content[at:]])
    return text.lstrip() if blocks else text, _joined(blocks), True


def _are_mentioned(content: str, opening: re.Match[str], closing: re.Match[str]) -> bool:
    """Whether both tags are part of a sentence: `put it between <think> and </think>`."""
    before = content[max(0, opening.start() - 2) : opening.start()]
    between = content[opening.end() : closing.start()]
    follows_word = before[-1:] == " " and before.strip() != ""
    return follows_word and between[:1] == " " and len(between.split()) <= MENTION_WORDS


def _closes_reasoning(content: str, tag: re.Match[str]) -> bool:
    """Whether a tag that closes what was never opened does so, rather than being part of a sentence."""
    before, after = _around(content, tag)
    return before not in (" ", "\t") or after in ("", "\n")


def _around(content: str, tag: re.Match[str]) -> tuple[str, str]:
    """The characters before and after a tag; none at the ends of the text."""
    return content[max(0, tag.start() - 1) : tag.start()], content[tag.end() : tag.end() + 1]


def _from_channels(content: str) -> tuple[str, str, bool]:
    if final := FINAL.search(content):
        text = MARK.split(content[final.end() :], maxsplit=1)[0]
        return text.strip(), _joined(MARK.split(content[: final.start()])), True
    bare = BARE.match(content)
    if bare and BARE_FINAL in content:
        reasoning, _, text = content[bare.end() :].partition(BARE_FINAL)
        return text.strip(), reasoning.strip(), True
    return "", _joined(MARK.split(content[bare.end() if bare else 0 :])), False


def opens_reasoning(prompt: str) -> bool:
    """Whether a prompt ends in an open block of reasoning, so that the reply begins inside it."""
    tags = [tag for tag in TAGS.finditer(prompt) if not tag["fence"]]
    return bool(tags) and bool(tags[-1]["open"]) and not prompt[tags[-1].end() :].strip()


def closes_reasoning(text: str) -> bool:
    """Whether a tag that ends a block of reasoning is in a text."""
    return any(tag["close"] for tag in TAGS.finditer(text))


def _joined(blocks: list[str]) -> str:
    return "\n".join(filter(None, (block.strip() for block in blocks)))
