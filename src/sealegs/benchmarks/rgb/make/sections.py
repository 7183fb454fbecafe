"""The running text of a user's document: its title and its sections, without what only lays it out.

Markdown, HTML, plain text and text taken from pages are read alike. Headings, `#` or underlined, tagged, or
short lines of their own, end a section; marks, tables, code, page numbers, running heads and the hyphens of
broken lines go.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.markup import LINK, REMOVED, TERM, to_markdown, without_marks

HEADING_LENGTH: dict[Lang, int] = {"en": 70, "zh": 24}
"""In characters: a longer line is a sentence."""
RUNNING = 3
"""A short line that begins or ends so many pages is the head or foot of a page."""
NUMBERED_HEADINGS = 3
"""So many numbered lines with text below them are headings; the last item of a list has text below it too."""
LONGEST_QUESTION = 4
"""Lines of a question that a FAQ marks by a Q; one that has a number only has fewer."""
NARROW = 60
"""Characters in a line: narrower text breaks its lines anywhere, so a short one does not stand out."""
UNMARKED = TERM + 1
"""The level of headings that no mark makes one."""
CODE_INDENT = 2
"""Blanks by which code is indented more than the text before it."""
FEW_SYMBOLS, MANY_SYMBOLS = 0.06, 0.2
"""Of the characters of an indented paragraph, and of any: with more symbols it is code or a drawing."""

_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_CODE = re.compile(r"^ {0,3}(```|~~~).*?^ {0,3}\1[^\n]*$", re.DOTALL | re.MULTILINE)
_PAGE_NUMBER = re.compile(
    r"[-–—\s]*(?:(?:page|p\.|第)\s*\d{1,4}|\d{1,3}|[ivxl]{1,6})\s*(?:页|(?:of|/)\s*\d{1,4})?[-–—\s]*", re.I
)
"""A year that stands alone is none."""
_HEAD_NUMBER = re.compile(r"\A\d{1,4} {3,}| {3,}\d{1,4}\Z")
"""Of a page, beside its running head."""
_HASHES = re.compile(r" {0,3}(#{1,7}|={1,6})\s+(.*?)\s*[#=]*")
_BOLD_LINE = re.compile(
    r"(?:\A|(?<=\n\n)|(?<=[.!?:。！？：|]\n)) {0,3}(\*{1,3}|_{1,3})(?=\w)([^*_\n]+)\1([:：]?)[ \t]*$",
    re.MULTILINE,
)
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{3,})\s*")
_RULE = re.compile(r"\s*(?:[-*_=]\s*){3,}")
_TABLE_ROW = re.compile(
    r"\s*\|.*|.*\|.*\|.*|.*\t.*\t.*|.*(?:\. ?){4}\s*\d+\s*|"
    r".*\S(?: {2,}[-+\d.,%]+){2,}\s*|.*\S {3,}\S.* {3,}\S.*"
)
_DIRECTIVE = re.compile(r"\s*(?:\.\. .*::.*|:[\w-]+:\s.*)")
_COMMENT_LINES = re.compile(r"^(#{1,6}) .*(?:\n\1 .*)+$", re.MULTILINE)
"""Headings of one level do not follow each other line by line: these are comments of code."""
_BULLET = re.compile(r"\A\s*(?:[-*+•·]|\d{1,2}[.)])\s+")
_QUOTE = re.compile(r"\A\s*>\s?")
_NUMBERED = re.compile(
    r"\A\s*(?:\d{1,2}(?:\.\d{1,2})*[.)]\s+|\d{1,2}(?:\.\d{1,2})+\s+|\d\s+|[IVX]+\.\s+|Q\d*[.:)]\s+|"
    r"第[一二三四五六七八九十\d]+[章节]\s*|[（(]?(?:[一二三四五六七八九十]+|\d{1,2})(?:[、．]|[）)]))"
)
_DECIMAL = re.compile(r"\s*\d{1,2}\.\d")
_ASKED, _ANSWERED = (re.compile(rf"^ *{letter}\d*[.:)] +", re.MULTILINE) for letter in "QA")
ANNOUNCEMENT = re.compile(
    r"(?:\A|(?<=[.!?])\s+(?![a-z])|(?<=[。！？]))(?:[^.!?。！？]|[.!?](?!\s)|[.!?](?=\s+[a-z]))*[:：]\Z"
)
"""A last sentence that only announces what was left out, as code is."""
_DEFINITION = re.compile(
    r"^ {0,3}(?:\[\^[^\]\[\s]+\]:.*(?:\n(?![ \t]*(?:\[|$)).+)*|"
    r"\[[^\]\[\n]+\]:[ \t]*(?=\S*(?:[/#]|\.\w))\S+(?:[ \t]+[\"'(].*)?[ \t]*$)",
    re.MULTILINE,
)
"""Of a footnote, with the lines below it, or of the address of a link."""
_CITATION = r" ?\[(?:\^[^\]\[\s]+|\d{1,3}(?:[,–-] ?\d{1,3})*)\](?!\()"
_CITED = re.compile(rf"^(?! {{0,3}}#)(.*[\w)”’])(?:{_CITATION})+(?=[ \t]*(?:\n[ \t]*\n|\n?\Z))", re.MULTILINE)
"""The end of a paragraph that has a citation in the place of its stop."""
_NOTES = re.compile(
    rf"{_CITATION}|^ {{0,3}}(?::::|!!! ).*$|\[!\w+\]| ?\{{[#.:][^{{}}\n]*\}}$|(?<=[-*+.)] )\[[ xX]\] ",
    re.MULTILINE,
)
"""Citations, the marks of admonitions, attributes, and the boxes of tasks."""
_ENDS_SENTENCE = re.compile(r"[.!?…。！？；;:：,，、][\"”’)」』）]*\Z")
_ENDS_TEXT = re.compile(r"[.!?…。！？:：][\"”’)」』）]*\Z")
_SENTENCE_INSIDE = re.compile(r"[.!?] +[\"“‘(]*[A-Z]|[。！？]\S")
_ADDRESS = re.compile(r"<?\b[a-z]{2,12}://\S+|[\w.+-]{1,64}@\S+")
_SYMBOL = re.compile(r"[^\w\s.,;:!?'\"’“”‘()\-–—`…。，、；：！？（）《》「」·]|_|\(\)")


class Section(NamedTuple):
    heading: str
    """Empty where there is none."""
    around: str
    """The heading of the section that it is a part of, where others of the document have the same heading."""
    paragraphs: list[str]


class Sections(NamedTuple):
    title: str
    """Empty where the document has none."""
    sections: list[Section]


def read_sections(text: str, lang: Lang) -> Sections:
    """The title of a document and its sections, in order; sections without any text are left out."""
    title, text = to_markdown(text, lang)
    text = _BOLD_LINE.sub(lambda line: _bold_heading(line, lang), text)
    if len(_ASKED.findall(text)) > 1:
        text = _ANSWERED.sub("\n", text)
    text = _COMMENT_LINES.sub("", _CODE.sub(f"\n\n{REMOVED}\n\n", _FRONT_MATTER.sub("", text)))
    text = _NOTES.sub("", _CITED.sub(r"\1." if lang == "en" else r"\1。", _DEFINITION.sub("", text)))
    sections = [Section("", "", [])]
    open_headings: list[tuple[int, str]] = []
    unfinished = False
    blocks = list(_blocks(_without_page_marks(text).strip("\n").split("\n"), lang))
    questions = sum(bool(level) and _asks(lines[0]) for level, lines in blocks)
    for level, lines in blocks:
        if not lines:  # code or a table, which the sentence before it may announce
            last = sections[-1].paragraphs[-1:]
            announcing = [f"{text[:-1]}:" for text in last] if unfinished else last
            sections[-1].paragraphs[-1:] = (ANNOUNCEMENT.sub("", text) for text in announcing)
            unfinished = False
            continue
        begins = not title and not any(section.paragraphs for section in sections)
        # The first question of a FAQ is not its title, nor is the first of numbered sections.
        if (questions > 1 and _asks(lines[0])) or _NUMBERED.match(lines[0]):
            begins = False
        if begins and (level or all(_is_short_heading(line, lang) for line in lines)):
            title = ", ".join(map(without_marks, lines)).rstrip(":：")
        elif not level:
            sections[-1].paragraphs.append(_paragraph(lines, lang))
            unfinished = not _ENDS_SENTENCE.search(without_marks(lines[-1]))
        else:
            heading = _NUMBERED.sub("", without_marks(" ".join(lines))).rstrip(".:：")
            open_headings = [(outer, name) for outer, name in open_headings if outer < level]
            sections.append(Section(heading, open_headings[-1][1] if open_headings else "", []))
            open_headings.append((level, heading))
            unfinished = False
    names = Counter(section.heading for section in sections)
    return Sections(
        title,
        [
            section if names[section.heading] > 1 else section._replace(around="")
            for section in sections
            if any(section.paragraphs)
        ],
    )


def _bold_heading(line: re.Match[str], lang: Lang) -> str:
    """A line that is only bold as a heading, unless it is a sentence."""
    heading = _NUMBERED.sub("", line[2]).rstrip(":：")
    return f"{'#' * TERM} {line[2]}\n" if _is_short_heading(heading, lang) else line[0]


def _without_page_marks(text: str) -> str:
    """Without page numbers, nor the short lines that recur beside them or beside a page break."""
    lines = text.replace("\f", "\n\f\n").split("\n")
    marks = {
        index
        for index, line in enumerate(lines)
        if line == "\f" or (line.strip() and _PAGE_NUMBER.fullmatch(line.strip()))
    }
    beside = Counter(
        _running_head(lines[index])
        for index in {index + step for index in marks for step in _steps(lines, index)}
    )
    beside.update(_running_head(line) for line in lines if _HEAD_NUMBER.search(line.strip()))
    running = {line for line, number in beside.items() if line and number >= RUNNING}
    kept = [
        line for index, line in enumerate(lines) if index not in marks and _running_head(line) not in running
    ]
    return "\n".join(kept)


def _running_head(line: str) -> str:
    """A line without the number of its page."""
    return _HEAD_NUMBER.sub("", line.strip())


def _steps(lines: Sequence[str], index: int) -> Iterator[int]:
    """How far the nearest lines with text are from a line, before and after it."""
    for direction in (-1, 1):
        step = direction
        while 0 <= index + step < len(lines):
            if lines[index + step].strip():
                yield step
                break
            step += direction


def _blocks(lines: Sequence[str], lang: Lang) -> Iterator[tuple[int, list[str]]]:
    """The headings of a text with their levels, and its paragraphs with none; code and tables are paragraphs
    of no line."""
    groups = [list(group) for blank, group in groupby(lines, key=lambda line: not line.strip()) if not blank]
    numbered = {
        index
        for index, below in enumerate(groups[1:])
        if _is_numbered_heading(groups[index], lang) and not _BULLET.match(below[0])
    }
    margin = 0
    for index, group in enumerate(groups):
        if index in numbered and len(numbered) >= NUMBERED_HEADINGS:
            yield UNMARKED, [line.strip() for line in group]
            continue
        for level, block in _block(group, lang):
            if level:
                yield level, block
            elif not block or _is_code(block, margin):
                yield 0, []
            else:
                yield 0, block
                margin = _indent(block)


def _is_numbered_heading(lines: Sequence[str], lang: Lang) -> bool:
    """Whether lines of their own are one numbered sentence or question, though it may end with a stop."""
    text = " ".join(line.strip() for line in lines)
    number = _NUMBERED.match(text)
    if number is None or (len(lines) > 1 and not _asks(text)):
        return False
    if number[0].startswith("Q"):
        return _asks(text) and len(lines) <= LONGEST_QUESTION
    short = len(text) <= HEADING_LENGTH[lang] * len(lines) and len(lines) < LONGEST_QUESTION
    return short and not _SENTENCE_INSIDE.search(text[number.end() :])


def _is_code(lines: Sequence[str], margin: int) -> bool:
    """Whether a paragraph is code or a drawing: indented and not ending as text does, or full of symbols."""
    if lines == [REMOVED]:
        return True
    text = _ADDRESS.sub("", LINK.sub(r"\1", "".join(lines)))
    symbols = len(_SYMBOL.findall(text)) / max(1, len("".join(text.split())))
    if _indent(lines) < margin + CODE_INDENT:
        return symbols > MANY_SYMBOLS
    return symbols > FEW_SYMBOLS or not _ENDS_TEXT.search(lines[-1].rstrip())


def _indent(lines: Sequence[str]) -> int:
    """In blanks; the wide ones with which a Chinese paragraph begins are none."""
    return min(len(line) - len(line.lstrip(" ")) for line in lines)


def _block(lines: list[str], lang: Lang) -> Iterator[tuple[int, list[str]]]:
    """What stands between two blank lines: marked headings, a short line of its own, items, paragraphs."""
    if len(lines) == 1 and _is_short_heading(lines[0], lang):
        yield UNMARKED, [lines[0].strip()]
        return
    paragraph: list[str] = []
    width = max(map(len, lines))
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        hashes, first = _HASHES.fullmatch(line), not paragraph
        underlined = first and bool(_UNDERLINE.fullmatch(below))
        # As pages of a manual have them: SYNOPSIS, and below it indented text.
        outdented = first and line.strip().isupper() and not line[0].isspace() and below.startswith("  ")
        apart = _stands_apart(line, below, width, lang) and (first or bool(_ENDS_TEXT.search(paragraph[-1])))
        starts = bool(hashes or underlined or _BULLET.match(line) or _RULE.fullmatch(line))
        if paragraph and (starts or apart or _TABLE_ROW.fullmatch(line)):
            yield 0, paragraph
            paragraph = []
        short = outdented or (first and bool(_BULLET.match(below)) and not starts)
        if hashes or underlined or apart or (short and _is_short_heading(line, lang)):
            yield len(hashes[1]) if hashes else UNMARKED, [hashes[2] if hashes else line.strip()]
        elif _TABLE_ROW.fullmatch(line):
            yield 0, []
        elif not any(pattern.fullmatch(line) for pattern in (_RULE, _UNDERLINE, _DIRECTIVE)):
            paragraph.append(_QUOTE.sub("", _BULLET.sub("", line, count=1), count=1))
    if paragraph:
        yield 0, paragraph


def _stands_apart(line: str, below: str, width: int, lang: Lang) -> bool:
    """Whether a line of running text is a heading, as in the text of a PDF: it ends though the first word of
    the line below would have had room in it. In narrow text, and in Chinese, only a numbered line is."""
    line, below = line.rstrip(), below.strip()
    prefix = _NUMBERED.match(line)
    if not below or not (prefix or (lang == "en" and width >= NARROW)):
        return False
    room = width - len(line) > (len(below.split()[0]) + 1 if lang == "en" else 1)
    first_part = prefix and below.startswith(prefix[0].strip())  # 1.1 below 1
    begins = re.match(r"[\"“‘(]*[^\W\d_a-z]", below) and not _is_short_heading(below, lang)
    text = line[prefix.end() if prefix else 0 :].lstrip()
    heading = not text[:1].islower() and '"' not in text and _is_short_heading(text, lang)
    return bool(room and heading and (begins or first_part or _DECIMAL.match(line)))


def _is_short_heading(line: str, lang: Lang) -> bool:
    """A line of its own that is short and does not end as a sentence does, unless it asks, as in a FAQ."""
    text = line.strip()
    if _SENTENCE_INSIDE.search(text):
        return False
    if len(text) > HEADING_LENGTH[lang] or (_ENDS_SENTENCE.search(text) and not _asks(text)):
        return False
    if any(pattern.fullmatch(line) for pattern in (_HASHES, _TABLE_ROW, _RULE)):
        return False
    return bool(re.match(r"[^\W_]", text)) and not text[0].islower() and "=" not in text


def _asks(line: str) -> bool:
    return line.rstrip().endswith(("?", "？"))


def _paragraph(lines: Sequence[str], lang: Lang) -> str:
    """Its lines as one, words that were broken at a line's end whole again; an item of a list gets a stop."""
    text = "\n".join(line.strip() for line in lines)
    if lang == "en":
        text = re.sub(r"(?<=[a-z])[-\u2010\u00ad]\n(?=[a-z])", "", text)
    text = without_marks(text.replace("\n", " " if lang == "en" else ""))
    stop = "." if lang == "en" else "。"
    return text if not text or _ENDS_SENTENCE.search(text) else f"{text}{stop}"
