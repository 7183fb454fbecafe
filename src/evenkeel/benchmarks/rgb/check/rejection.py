"""What a reply says of the question and of the documents: that it is not answered, that they are in error.

Both are sought in the word classes of `wording`, clause by clause. A refusal counts by what it is about: the
question, or a detail beside an answer ("Egan Holm, though the date is not given"). An error counts where a
document or its false answer is called wrong, unless the clause denies or supposes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

from evenkeel.benchmarks.rgb.check.wording import Clause, Reading

# Refusals

WINDOW = 120
"""As many letters before and behind are read for what a refusal or an error means."""
_REFUSAL = re.compile(
    r"n(?:[wQ]++|[^.,bzneyCTwQ]){0,7}"  # does not mention, no information, cannot tell, none of the documents
    r"(?:[isaqJH]|d(?![xm]{0,2}c[xm]{0,2}[GK])|[kc](?![xmTiFWdB]{0,4}[eyCt]))"
    r"|n[xmB]{0,2}W"  # (but) not who
    r"|A|(?<!n)l(?![GKT])"  # unanswerable, unknown, irrelevant
    r"|(?<!n)v(?![GK])"  # lacks, would need
    r"|[diQWmH][xmjrB]{0,3}n(?=[.,]|$)"  # 文档里没有
    r"|[cki][xm]{0,2}n(?=[.,]|$)"  # the texts offer nothing
    r"|(?P<none>n)[xmFBO]{0,3}Q(?=[^,.]{0,4}[.,c]|$)"  # no mayor is given
    r"|(?<![^.,])[aixmB]*n[xm]{0,2}(?=\.|$)"  # none
)
_CONTENT = {False: "w", True: "ww"}
"""Words that are neither the question's nor of any class, in a text without and with Han characters."""
_SUPPOSED = re.compile(r"f[^.,b]*$")
_LIMITED = re.compile(r"(?:o[^.,bn]{0,3}d|P[#Q]d|^o[#xmB,]*|d[xm]?#[#,xmdB]*)[^.bn]{0,4}$")
_ALONE = [["no"], ["not"], ["不", "是"], ["不"], ["没", "有"], ["没"], ["never"], ["nobody"]]
"""What is an answer where nothing else is said."""
REPORTED = re.compile("[dj][^GK]{0,4}[cH][^GK]?[GK]|dm[GK]|F[^GK]{0,3}[GK]")
"""An answer that the documents only mention."""


class About(Enum):
    """What is said to be unknown."""

    QUESTION = "the question or its answer, by these names"
    ASKED = "what the question asks for"
    KIND = "who, when, where …, as the question does"
    NOTHING = "nothing in particular"
    NEAR = "the kind of thing that the question asks for, of something else"
    OTHER = "something else"


class Refusal(NamedTuple):
    """A clause that says that something is not known or not in the documents."""

    start: int
    end: int
    sentence: int
    about: About
    limited: bool
    """Of some of the documents only."""
    clause: str
    """What its sentence says from its beginning on."""
    concludes: bool
    """In a clause that draws a conclusion: "so I cannot tell"."""


def refusals(reading: Reading) -> list[Refusal]:
    """The refusals that are neither supposed nor conceded ("although …"), in their order."""
    listed = []
    for match in _REFUSAL.finditer(reading.letters):
        sentence = reading.sentence(match.start())
        start, end = reading.around(match, WINDOW)
        before = reading.letters[start : match.start()]
        clause = before[before.rfind(",") + 1 :]
        texts = reading.texts(match.start(), match.end())
        contrast = texts[0] == "not" and (match["none"] or re.fullmatch("n[xm]{0,2}H", match[0]))
        if texts in _ALONE or contrast:
            continue  # not the winner, not the date
        if match[0] == "l" and reading.is_name(match.end()):
            continue  # the then unknown Egan Holm
        if _SUPPOSED.search(before) or "g" in clause[clause.rfind("b") + 1 :]:
            continue
        turn = reading.letters.find("b", match.end(), end)
        begin = _begin(reading, start, match.start())
        about = _about(reading, begin, end if turn < 0 else turn, match)
        if about is About.OTHER and match[0][0] == "v":
            continue
        listed.append(
            Refusal(
                match.start(),
                match.end(),
                sentence,
                about,
                limited=_is_limited(reading, before, match),
                clause=reading.letters[begin:end],
                concludes="r" in clause or bool(re.search("r,[^,]*$", before)),
            )
        )
    return listed


def _is_limited(reading: Reading, before: str, match: re.Match[str]) -> bool:
    """Of some documents: "the other texts do not say", "not found in passages 1 to 3"."""
    return bool(_LIMITED.search(before)) or (
        match[0][-1] == "d" and reading.letters[match.end() :][:1] == "#"
    )


def _begin(reading: Reading, start: int, position: int) -> int:
    """Where what belongs to a refusal begins: after the last contrast, or clause that names something."""
    before = reading.letters[start:position]
    begin = start + max(before.rfind("b"), before.rfind("g"), before.rfind("r")) + 1
    for part in re.finditer("[^,]+(?=,)", reading.letters[begin:position]):
        clause = Clause(part[0], begin + part.start(), 0)
        if re.search("[GK]", part[0]) or (not re.search("[dJkcaqf]", part[0]) and reading.names(clause)):
            start = begin + part.end() + 1
    return max(start, begin)


def _about(reading: Reading, start: int, end: int, match: re.Match[str]) -> About:
    letters = reading.letters[start:end]
    if re.search("[aA]|q.*[pdkclv]|[pdkclv].*q", letters) or (
        re.search("s|l[xm]?i", letters) and not re.search("[wWQHO#]", letters)
    ):
        return About.QUESTION
    if "J" not in letters and re.search("o[xm]?[QH]", letters):
        return About.OTHER  # no other coach
    if (
        "J" not in letters
        and "F" in letters[: match.start() - start]
        and re.search(_CONTENT[reading.han], letters)
    ):
        return About.OTHER  # whether the price includes debts
    latin = reading.texts(start, end)[0].isascii()
    asked = letters.count("Q") > (not latin)  # one character is too little
    if asked and not ("O" in letters and not re.search("[HJ]", letters)):
        return About.ASKED
    if "J" in letters:
        return About.KIND
    if "H" in letters:
        return About.NEAR if re.search("w" if latin else "ww", letters) else About.ASKED
    return About.OTHER if re.search("[wQWO#]", letters) else About.NOTHING


def rejects(
    reading: Reading,
    listed: list[Refusal],
    answers: Collection[Clause],
    *,
    weak: bool,
    candidate: Clause | None,
    detected: bool,
) -> About | None:
    """What is refused, where the reply as a whole declines.

    `answers` are the clauses that give the right or the false answer as an answer; `weak` says that the reply
    begins with one of them in any way, `candidate` is the clause with which it gives another answer. A reply
    without a known refusal declines too if it speaks of the documents or denies something, and gives no
    answer at all.
    """
    mentioned = max(
        (
            clause.start + max(clause.letters.rfind("G"), clause.letters.rfind("K"))
            for clause in reading.clauses
            if re.search("[GK]", clause.letters)
            and not (REPORTED.search(clause.letters) or "N" in clause.letters or reading.is_listed(clause))
        ),
        default=-1,
    )
    plain = [
        c for c in answers if not re.search("[w#]", c.letters) or re.search("[aru]|B[xm]?[GK]$", c.letters)
    ]
    answered = candidate is not None and (reading.person or "w" not in candidate.letters)
    naming = any(reading.names(clause.without("d")) for clause in reading.clauses)
    guess = max((match.start() for match in re.finditer("[uh][^.uh]*[w#]", reading.letters)), default=-1)
    first_answer = min((clause.start for clause in answers), default=len(reading.letters))
    last_answer = max((clause.start for clause in answers), default=-1)
    for refusal in listed:
        end = reading.bounds(refusal.sentence)[1]
        after = reading.letters[refusal.end : min(end, refusal.end + WINDOW)]
        if refusal.end <= last_answer < end or re.search("[uh].*[w#]|#.*u|b.*[GK]", after):
            continue
        if (
            detected
            and refusal.about is not About.QUESTION
            and "K" in reading.letters[slice(*reading.bounds(refusal.sentence))]
        ):
            continue  # Ben Moor never won it
        guessed = guess >= end
        told = mentioned > refusal.end and not re.search("[pd]", refusal.clause)  # of someone in a story
        match refusal.about:
            case _ if refusal.limited:
                refuses = not naming and not re.search("[GK]", reading.letters)
            case About.QUESTION:  # not someone else's: "…, who declined to answer questions"
                refuses = not first_answer < refusal.start or bool(re.search("[pdk]", refusal.clause))
            case About.ASKED if not re.search(_CONTENT[reading.han], refusal.clause):
                refuses = not plain and not guessed
            case About.ASKED:
                detail = answered and refusal.clause.count("Q") < 2 + reading.han
                refuses = not (answers or detail or guessed or told)
            case About.NOTHING if refusal.concludes:
                refuses = not answers and not guessed
            case About.NOTHING | About.KIND:
                earlier = answered if refusal.about is About.KIND else (candidate and refusal.sentence > 0)
                story = told and refusal.about is About.KIND
                refuses = not (answers or weak or earlier or guessed or story)
            case About.NEAR:
                refuses = mentioned < 0 and not answered
            case About.OTHER:
                refuses = mentioned < 0 and not candidate
        if refuses:
            return refusal.about
    if detected or re.search("[GK]", reading.letters) or not re.search("[dqnlvAJ]", reading.letters):
        return None
    if any(refusal.limited for refusal in listed) or reading.texts(0, len(reading.letters)) in _ALONE:
        return None
    return None if any(map(reading.names, reading.clauses)) else About.NOTHING


# Errors

_ERROR = re.compile(
    r"[eyC]"  # wrong, incorrectly
    r"|n[xmcupB]{0,4}T(?!w?[aiceyC])"  # is not true, cannot be right
    r"|h"  # should be
    r"|R[Wxm]{0,3}d[^.,]{0,3}[cmj]"  # no matter what the text says
    r"|n[xmB]{0,2}K[xm,]{0,3}d[xmB]{0,2}[cj]"  # not K as the text says
    r"|n[xm]{0,2}d[xm]{0,2}c[xm]{0,2}K"  # 不是文档所说的K
    r"|d[^.G]{0,15}K[^.Gd]{0,20}(?:\.[^.Kd]{0,12})?[bt][^.Kd]{0,15}G"  # the text says K, but it is G
    r"|d[^.G]{0,15}K[^.Gd]{0,6}\.[^.Kd]{0,6}G[^.Kd]{0,6}t"  # the text says K. It is G, actually
    r"|d[^.G]{0,15}K[^.Gn]{0,4}\.[^.]{0,3}n[xm]{0,2}(?=[.,]|$)"  # the text says K. It is not so
    r"|g[^.]{0,8}d[^.]{0,12}K[^.d]{0,12},[^.Kd]{0,15}G"  # although the text says K, it is G
)


def reports_error(reading: Reading, *, false: bool) -> bool:
    """Whether a document, or the false answer that it gives, is called wrong. `false` says that there is a
    false answer: then what is called wrong without more is the documents' statement."""
    return any(_is_reported(reading, match, false) for match in _ERROR.finditer(reading.letters))


def _is_reported(reading: Reading, match: re.Match[str], false: bool) -> bool:
    kind = match[0][0]
    if len(match[0]) > 1 and "T" not in match[0]:
        return True
    number = reading.sentence(match.start())
    start, end = reading.around(match, WINDOW)
    sentence = reading.letters[start:end]
    before, after = reading.letters[start : match.start()], reading.letters[match.end() : end]
    first, last = reading.bounds(number - 1) if number else (0, 0)
    previous = reading.letters[max(first, last - WINDOW) : last]
    clause = re.split("[,b]", before)[-1]
    rest = re.split("[,b]", after, maxsplit=1)[0]
    if (
        re.search("[nvlAfF]", clause.rpartition("K")[2])
        or "f" in rest
        or re.search("f[^.b,]*,[^,]*$", before)
    ):
        return False  # denied or supposed
    if "d" not in clause + rest and (
        "q" in clause + rest or (kind == "e" and (re.search("p[mxB]{0,3}$", clause) or "p" in rest[:4]))
    ):
        return False  # of the question, or of the writer
    if false and kind == "e" and re.fullmatch("[mrT]{0,2}", clause) and len(rest) < 5:
        return True  # a fragment: "Wrong."
    latin = reading.texts(match.start(), match.end())[0].isascii()
    if kind == "e" and latin and re.search("(?<!B)(?<!Bw)w$", clause) and "d" not in clause + rest:
        return False  # the forecast error
    if kind == "e" and rest.startswith("w") and not re.search("[dK]", clause):
        return False  # a false passport
    if kind == "C" and not re.search("[tT]", sentence) and not {"G", "K"} <= set(reading.letters):
        return False  # the documents only disagree
    if kind == "h":
        return ("K" in before and "p" not in before) or ("K" in previous and "G" in sentence)
    if re.search("[dK]", sentence) or re.match("[xmB]{0,2}T", after) or clause.endswith("T"):
        return True
    subject = re.search("^[mbr]*[jWTB#]|[iHQ#][^.,]{0,3}B[xmtuw]{0,2}$|[iHQ#][xmcw]{0,2}$|c[xm]?$", clause)
    if kind == "e" and re.match("x{1,2}[QHijK]", rest):
        subject = match  # an error in the date
    if kind == "y" and not re.match("[xm]?c|[xm]?[jHQi]", rest) and not re.search("[iHQj]", clause):
        subject = None  # falsely accused
    if re.search("^[xmbr]*j[xmtuB]*$", clause):  # this is …: what is said may be further above
        previous = reading.letters[max(0, start - WINDOW // 2) : start]
    return bool((false and subject) or (re.search("[dK]", previous) and re.search("[jitTQ#cH]", sentence)))
