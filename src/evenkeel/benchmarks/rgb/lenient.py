"""The lenient check: what a careful reader would say of an answer.

The right answer and the false one are sought word by word, rejections and reports of errors by the classes
of words in each clause (`check/`); what is decided here is how they go together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from evenkeel.benchmarks.rgb.check import rejection
from evenkeel.benchmarks.rgb.check.mention import given, mentions, target
from evenkeel.benchmarks.rgb.check.rejection import About, Refusal
from evenkeel.benchmarks.rgb.check.wording import PHRASES, Clause, Reading, read, simplified
from evenkeel.benchmarks.rgb.files import Answer
from evenkeel.text.normalization import Word, plain, words

LONGEST = 20_000
"""Characters of an answer that are read: more is a model that does not stop."""
_THOUGHT = re.compile(r"<think>[^<]*+(?:<(?!/think>)[^<]*+)*+</think>")


class Verdict(Struct, frozen=True):
    """What the lenient check says of one answer."""

    parts: tuple[int, ...]
    """1 for every part of the right answer that is given, 0 for the others."""
    right: bool
    """All parts are given; at noise 1, where no document has the answer: it was rejected."""
    rejected: bool
    """It says that the documents do not answer the question."""
    detected: bool
    """It says that the documents are in error."""
    states_fake: bool
    """It names the false answer too, if only to report it."""
    how: str
    """What decided: words, overlap, strong rejection, weak rejection, false answer, not found."""

    @property
    def corrected(self) -> bool:
        """An error was reported and the right answer given."""
        return self.detected and self.right and all(self.parts)


def lenient(
    prediction: str, answer: Answer, *, fake: Answer = (), noise: float = 0.0, query: str = ""
) -> Verdict:
    """The verdict on one answer.

    The reply is read clause by clause. It is rejected where a clause refuses the question, or where one
    refuses something and no answer is given; a refusal of a detail beside an answer ("…, though the date is
    not given") is none. The answer counts where a clause gives it as the answer: not where it is denied,
    nor where another clause answers the question with something else; after a rejection only what follows a
    "but" or a guess counts. The question is needed for most of this; without it, the answer counts wherever
    it is not denied. Reasoning between think tags is left out, and of a text without end the two ends are
    read.
    """
    text = _THOUGHT.sub("", _ends(prediction)).replace("_", " ")
    text = _ends(simplified(plain(text)))  # a character may unfold to many
    listed = words(text)
    query = _plain_query(query)
    answer, fake = _simplified(answer), _simplified(fake)
    spans = _spans(_shortened(fake), listed, "K", query) | _spans(answer, listed, "G", query)
    numeric = any(word.number for part in answer for word in target(part[0]).words) if all(answer) else False
    reading = read(listed, query, spans, numeric=numeric)
    refused = rejection.refusals(reading)
    answers = [clause for clause in reading.clauses if _answers(clause) and not reading.is_listed(clause)]
    detected = rejection.reports_error(reading, false=bool(fake))
    candidate = _candidate(reading, refused)
    opening = reading.letters[: reading.bounds(0)[1]]
    weak = bool(re.search("^[^dkcnF]*[GK]", opening))
    about = rejection.rejects(reading, refused, answers, weak=weak, candidate=candidate, detected=detected)
    counted = listed
    if about:
        turn = re.compile("[bu]").search(reading.letters, refused[-1].end if refused else 0)
        counted = listed[reading.tokens[turn.start()].start :] if turn else ()
    ways = [given(part, counted, fake, query) for part in answer]
    states_fake = bool(fake) and all(given(part, listed, answer, query, equal=True) for part in fake)
    misled = states_fake and _settles_for_fake(reading, answers)
    right = all(ways) and not misled and not (query and (_is_denied(reading) or _is_outweighed(reading)))
    if right:
        how = "overlap" if "overlap" in ways else "words"
    elif misled:
        how = "false answer"
    elif about:
        how = "strong rejection" if about is About.QUESTION else "weak rejection"
    else:
        how = "not found"
    rejected = about is not None
    return Verdict(
        parts=tuple(int(bool(way)) for way in ways),
        right=rejected if noise == 1 else right,
        rejected=rejected,
        detected=detected,
        states_fake=states_fake,
        how=how,
    )


def _answers(clause: Clause) -> bool:
    """Whether a clause gives the right or the false answer as an answer, and not in passing: alone, with a
    word for answers or conclusions, or with words of the question."""
    if not re.search("[GK]", clause.letters) or re.search("[nF][^GK]*[GK]", clause.letters):
        return False
    if rejection.REPORTED.search(clause.letters) or "N" in clause.letters:
        return False
    return (
        not re.search("[w#ck]|[GK].*o", clause.letters)
        or bool(re.search("[aru]|B[xm]?[GK]$", clause.letters))
        or (clause.letters.count("Q") > bool(clause.sentence) and not re.search("k.*[GK]", clause.letters))
    )


def _settles_for_fake(reading: Reading, answers: Sequence[Clause]) -> bool:
    """Whether the last answer, neither ascribed to the documents nor denied, is the false one."""
    for clause in reversed(answers):
        start, end = reading.bounds(clause.sentence)
        near = reading.letters[
            max(start, clause.start - rejection.WINDOW) : min(end, clause.end + rejection.WINDOW)
        ]
        against = "eyn" if clause.end == len(reading.letters) else "deyn"
        if not set(against) & set(clause.letters if re.search("[ar]", clause.letters) else near):
            return bool(re.search("K[^wG]*$", clause.letters)) and "G" not in clause.letters
    return False


def _is_denied(reading: Reading) -> bool:
    """Whether the answer is named last to be ruled out: "…, and not Milo Castellane as was expected"."""
    last = re.search("n[^GKbzBQ,.]{0,9}G[^G]*$", reading.letters)
    return last is not None and "".join(reading.texts(last.start(), last.start() + 1)) in PHRASES.denials


def _candidate(reading: Reading, refused: Sequence[Refusal]) -> Clause | None:
    """The clause with which the reply gives an answer of its own, before anything is refused."""
    first = refused[0].start if refused else len(reading.letters)
    for clause in reading.clauses:
        if clause.end > first:
            break
        start, end = reading.bounds(clause.sentence)
        near = slice(max(start, clause.start - rejection.WINDOW), min(end, clause.end + rejection.WINDOW))
        if "d" in reading.letters[near] or re.search("[pk]|c,", reading.letters[near.start : clause.end]):
            continue
        if clause.sentence and not re.search("^[^c]*Q[^c]*B" if reading.han else "Q", clause.letters):
            continue
        if reading.names(clause) and "N" not in clause.letters and not reading.is_of_another_year(clause):
            return clause
    return None


def _is_outweighed(reading: Reading) -> bool:
    """Whether the right answer is only named beside a clause that answers the question with something else:
    "The film was directed by Jorge Lima, with Ines Caldeira in the leading role"."""
    clauses = reading.clauses
    giving = [number for number, clause in enumerate(clauses) if "G" in clause.letters]
    for clause in clauses[giving[-1] + 1 :] if giving else ():
        if (
            re.search("a|r.*Q|Q.*r", clause.letters)
            and not re.search("[dneF]", clause.letters)
            and reading.names(clause)
        ):
            return True  # so the answer is another
    passing = [
        "N" in clauses[n].letters or (reading.is_of_another_year(clauses[n]) and not reading.numeric)
        for n in giving
    ]
    if giving and all(passing):  # it was only nominated, or won in another year
        others = [c for n, c in enumerate(clauses) if n not in giving and not re.search("[dnF]", c.letters)]
        return any(map(reading.names, others))
    if any(
        re.search("[aru]", clauses[n].letters) or not re.search("[w#cg]|G.*o", clauses[n].letters)
        for n in giving
    ):
        return False
    if len(giving) == 1 and re.search("g[^Q]*G", clauses[giving[0]].letters):
        beside = clauses[max(0, giving[0] - 1) : giving[0]] + clauses[giving[0] + 1 : giving[0] + 2]
        return any(map(reading.names, beside))  # although many expected it
    if reading.numeric:
        return any(_is_another_number(clauses[max(0, n - 1) : n + 2]) for n in giving)
    return any(
        _answers_with_another(reading, clauses[number], clauses[near])
        for number in giving
        for near in (number - 1, number + 1)
        if 0 <= near < len(clauses)
    )


def _is_another_number(near: Sequence[Clause]) -> bool:
    """Whether the right number is of something else, and another is of what is asked: "9,000 seats and a car
    park for 14,200 vehicles", "restored in 1873, built in 1837"."""
    letters = ",".join(clause.letters for clause in near)
    if re.search("[dneF]", letters):
        return False
    counts = re.search("#m?Q", letters) and re.search("Gw", letters) and not re.search("Gm?Q", letters)
    dates = re.search("Qx{1,2}#|QB#", letters) and re.search("wx{0,2}G|Gw", letters)
    return bool(counts or (dates and not re.search("Qx{1,2}G|QBG|GQ", letters)))


def _answers_with_another(reading: Reading, giving: Clause, beside: Clause) -> bool:
    """Whether the clause beside the right answer's has more words of the question, and names something."""
    if re.search("[dneGF]", beside.letters) or not reading.names(beside):
        return False
    if len(re.findall("[QH]", beside.letters)) <= giving.letters.count("Q"):
        return False
    first = reading.texts(beside.start, beside.start + 1)[0]
    if re.match("[xmr]{0,2}j", beside.letters) or first in PHRASES.pronouns:
        return False  # of the same person
    if reading.han:
        return bool(re.search("Qm?Bw", beside.letters))
    return giving.sentence == beside.sentence or "B" in beside.letters


@lru_cache(maxsize=1024)
def _plain_query(query: str) -> str:
    return simplified(plain(query))


@lru_cache(maxsize=4096)
def _simplified(answer: Answer) -> Answer:
    return tuple(tuple(simplified(alternative) for alternative in part) for part in answer)


@lru_cache(maxsize=4096)
def _shortened(fake: Answer) -> Answer:
    """The false answer, with its surname or its number alone: "Whitlock never held it"."""
    short = []
    for alternative in (alternative for part in fake for alternative in part):
        spelt = target(alternative).words
        if len(spelt) > 1 and spelt[-1].cased[:1].isupper() and len(spelt[-1].text) > 3:
            short.append(spelt[-1].cased)
        elif len(spelt) > 1 and spelt[0].number and len(spelt[0].text) > 1 and not spelt[1].number:
            short.append(spelt[0].cased)
    return (*fake, tuple(short))


def _spans(answer: Answer, listed: Sequence[Word], letter: str, query: str) -> dict[int, tuple[int, str]]:
    """The mentions of an answer: the end and the letter of the longest by its start."""
    spans: dict[int, tuple[int, str]] = {}
    for alternative in (alternative for part in answer for alternative in part):
        for start, end in mentions(target(alternative, query), listed):
            spans[start] = max(spans.get(start, (0, letter)), (end, letter))
    return spans


def _ends(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
