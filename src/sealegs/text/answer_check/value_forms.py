"""Where a clause of a reply has a value of a kind, by patterns of its letters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

ValueKind: TypeAlias = Literal["number", "name", "word", "han"]

MARKER = "(?:a[xm]*[Bh]|[Tt][xmaHQw#d]{0,8}?[Bc]{1,2})[xmj]*"


VALUES: Mapping[ValueKind, re.Pattern[str]] = {
    "number": re.compile("K|(?<!d)#+w?"),
    "name": re.compile("[KM]"),
    "word": re.compile("K"),
    "han": re.compile("[KM]|(?<=B)w{2,4}(?:mw{2,4})?$"),
}
"""A value of each kind."""


class ValueForms(NamedTuple):
    """Where a clause has another value of a kind, each pattern with the group `value`."""

    giving: Sequence[re.Pattern[str]]
    concluding: Sequence[re.Pattern[str]]
    """At the end of a sentence."""
    labelled: Sequence[re.Pattern[str]]
    """Behind "Answer:"."""
    alone: re.Pattern[str]
    it_is: re.Pattern[str]
    of_subject: re.Pattern[str]
    """ "The festival is in Oslo"."""
    paired: Sequence[re.Pattern[str]]
    """Beside the right answer."""
    asked_about: re.Pattern[str]
    """ "The one you ask about is Oslo"."""
    instead: re.Pattern[str]
    """Of what was supposed before: "but rereading the text it is Oslo"."""
    exclusive: re.Pattern[str]
    """The answer alone: 巴黎才是答案."""
    preferred: re.Pattern[str]
    """By documents, of values that are named together."""
    stated: Sequence[re.Pattern[str]]
    """At the end of a clause, or before a word of the question."""


@cache
def value_forms(kind: ValueKind, *, han: bool) -> ValueForms:
    value, other = {
        "number": ("#+[wQ]?", "[^G#]*"),
        "name": ("[KM](?:x?[KM]|#w?)*", "[^GM#]*"),
        "word": ("M|w{1,3}", "[^GM#]*"),
        "han": ("(?:M|[wQHmxP]*w[wQHmxP]*)", "[^G]*?"),
    }[kind]
    value = f"(?P<value>K|{value})"
    first = value.replace("K|", "K|w|") if kind == "name" else value  # a sentence's capital tells nothing
    linking, verb = "[Bw]" if kind == "number" else "B", "c?" if kind == "name" else ""
    brief = value if kind == "number" or not han else "(?P<value>K|M|w[wmQ]{1,5})"
    of_subject = "[bxmc]*[QH][QHxm]*{}[xm]*{}[xmHQ]*"
    is_value = "m*B[xm]*(?P<value>K|#+w?|M|w{2,6})[xmd]*"
    it_is = f"[bgxmrTtu]*j?{is_value}" if han else f"[bgxmrTtu]*jt*[BQ]?{verb}[xm]*{value}[xmd]*"
    giving = [
        f"{other}{MARKER}{value}{other}",
        f"[bxmjB]*{first}B[xm]*[aT][xmaHQ#w]{{0,3}}",
        f"[bxm]*{first}(?:B[xmwW]*q|UB)[xmq]*",
        of_subject.format("B" if han else linking, brief),
        *([f"[bgxm]*[rTtu][bgxmrTtu]*j?{is_value}"] if han else [f"[bxm]*{value}B[xmQH]*[QH][xm]*", it_is]),
    ]
    concluding = [
        f"[bgxmw]*(?:p?r|h|bp)[xmjBJTw]*{value}(?:J.*|[xmdHQ]*(?:B[xmQHw]*)?)",
        f"[bgxm]*r.*B[xm]*{value}[xmdHQ]*",
        f"a{value}",
    ]
    stated = [
        f"{other}[BQxw{'c' if han else ''}][xm]*{value}[xmHQ]*",
        f"[bxmj]*B?{value}[mxJ]*w?[QB]{other}",
    ]
    said = "B" if han else f"(?:jt*B?|B){verb}"
    return ValueForms(
        giving=[re.compile(each) for each in giving],
        concluding=[re.compile(each) for each in concluding],
        labelled=[re.compile(f"[bxmB]*{value}[xmdHQ]*")],
        alone=re.compile(f"[xm]*{value}[xmdHQ]*"),
        it_is=re.compile(it_is),
        of_subject=re.compile(of_subject.format(linking, value)),
        paired=[re.compile(f"[xm]*G[xm]+{value}"), re.compile(f"[xm]*{value}[xm]+G")],
        asked_about=re.compile(f"[^GnedcK]*q[^GnedcK]*{said}x*{value}[xmHQ]*"),
        instead=re.compile(f"b[^GnceK#]*jt*B?{verb}[xm]*{value}[xmdHQ]*"),
        exclusive=re.compile(f"[bxm]*{value}UB[xmqaT]*"),
        preferred=re.compile(f"[xm]*d[^GneK]*{value}"),
        stated=[re.compile(each) for each in stated],
    )
