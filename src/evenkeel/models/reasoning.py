"""What a model thought aloud, told apart from what it answered."""

from __future__ import annotations

import re

TAGS = re.compile(
    r"(?P<fence>```)"
    r"|(?P<open><(?:seed:)?(?:think|thinking|thought|reasoning)>|\[THINK\]|◁think▷|<\|START_THINKING\|>)"
    r"|(?P<close></(?:seed:)?(?:think|thinking|thought|reasoning)>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>)",
    re.IGNORECASE,
)
THINK = "<think>"
NAMED = 3
"""Words between two tags that are only named; a thought has more."""
QUOTED = frozenset({"``", "''", '""', "“”", "‘’", "«»", "„“"})

# gpt-oss writes into channels. Some servers leave the marks in, some drop them and leave the names.
CHANNELS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
FINAL = re.compile(r"<\|channel\|>final(?:[^<]|<\|constrain\|>)*<\|message\|>")
MARK = re.compile(r"<\|(?:start|end|return|call|channel|message|constrain)\|>")
BARE = re.compile(r"\s*analysis(?=[^\W\da-z_])")
BARE_FINAL = "assistantfinal"


def without_thought(content: str, *, cut: bool = False) -> tuple[str, str, bool]:
    """The answer without what was thought aloud, the thoughts, and whether the thinking ended.

    A block of reasoning may stand anywhere, and several may. A tag that is quoted, or stands in a block of
    code, is only spoken of, and so is one that opens in the middle of an answer and never closes; unless
    that begins a line of a text that was `cut` off.
    """
    if CHANNELS.match(content) or BARE.match(content) or FINAL.search(content):
        return _from_channels(content)
    kept: list[str] = []
    thoughts: list[str] = []
    at, nested, fenced = 0, 0, False
    opened: re.Match[str] | None = None
    for tag in TAGS.finditer(content):
        if tag["fence"]:
            fenced ^= opened is None
        elif fenced or "".join(_around(content, tag)) in QUOTED:
            continue
        elif tag["open"]:
            nested += opened is not None
            opened = opened or tag
        elif opened and _are_named(content, opened, tag):
            opened = None
        elif opened:
            kept.append(content[at : opened.start()])
            thoughts.append(content[opened.end() : tag.start()])
            at, opened = tag.end(), None
        elif nested or (not thoughts and _ends_a_thought(content, tag)):
            # A chat template may open the block inside the prompt, so that only its end is in the reply.
            thoughts.append("".join(kept) + content[at : tag.start()])
            kept, at, nested = [], tag.end(), max(0, nested - 1)
    if opened:
        before = "".join(kept) + content[at : opened.start()]
        if not before.strip() or (cut and content[: opened.start()].rstrip(" \t").endswith("\n")):
            return "", _joined([*thoughts, before, content[opened.end() :]]), False
    text = "".join([*kept, content[at:]])
    return text.lstrip() if thoughts else text, _joined(thoughts), True


def _are_named(content: str, opening: re.Match[str], closing: re.Match[str]) -> bool:
    """Whether both tags are spoken of in a sentence: `put it between <think> and </think>`."""
    before = content[max(0, opening.start() - 2) : opening.start()]
    between = content[opening.end() : closing.start()]
    return (
        before[-1:] == " " and before.strip() != "" and between[:1] == " " and len(between.split()) <= NAMED
    )


def _ends_a_thought(content: str, tag: re.Match[str]) -> bool:
    """Whether a tag that closes what was never opened does so, rather than being spoken of in a sentence."""
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
        thought, _, text = content[bare.end() :].partition(BARE_FINAL)
        return text.strip(), thought.strip(), True
    return "", _joined(MARK.split(content[bare.end() if bare else 0 :])), False


def opens_thought(prompt: str) -> bool:
    """Whether a prompt ends in an open block of reasoning, so that the reply begins inside it."""
    tags = [tag for tag in TAGS.finditer(prompt) if not tag["fence"]]
    return bool(tags) and bool(tags[-1]["open"]) and not prompt[tags[-1].end() :].strip()


def _joined(thoughts: list[str]) -> str:
    return "\n".join(filter(None, (thought.strip() for thought in thoughts)))
