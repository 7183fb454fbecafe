"""The marks of a document: mails, HTML, manual pages and outlines as Markdown, and text without its marks."""

from __future__ import annotations

import html
import re

from sealegs.benchmarks.rgb.data import Lang

TERM = 7
"""The level of headings that are the terms of definitions, below those that Markdown has."""
REMOVED = "\x00"
"""In the place of code and of tables with tags."""

_INDENTED = re.compile(r"^[ \t].*", re.MULTILINE)
"""Pages of a manual have tabs for blanks; only lines that begin at the margin may be rows of cells."""
_MAIL = re.compile(
    r"\A\s*(?!Date[:：].*\n\s*\n)(?:\**(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|MIME-Version|Content-\w+|"
    r"发件人|收件人|抄送|主题|日期|发送时间)[:：].*\n(?:[ \t]+\S.*\n)*)+",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"^\**(?:Subject|主题)[:：]\**\s*(?:Re: )?(.+)", re.IGNORECASE | re.MULTILINE)
_HTML = re.compile(
    r"</?(?:html|body|p|div|h[1-6]|li|td|br|section|article|details|summary)\b[^>]*>", re.IGNORECASE
)
_PAGE = re.compile(r"<(?:!doctype|html|body)\b", re.IGNORECASE)
"""Where lines break anywhere; in Markdown with some tags they do not."""
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
_UNREAD = re.compile(
    r"<(script|style|head|nav|header|footer|aside|form|button)\b.*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)
_EXAMPLE = re.compile(r"<pre\b.*?</pre\s*>", re.DOTALL | re.IGNORECASE)
_DATA_TABLE = re.compile(
    r"<table\b[^>]*>(?:(?!</?table\b|<(?:li|h[1-6])\b).)*</table\s*>", re.DOTALL | re.IGNORECASE
)
"""One with headings, lists or further tables in it lays out a page."""
_MENU_ITEM = re.compile(
    r"<(li|p|div)\b[^>]*>\s*(?:<a\b[^>]*>[^<]*</a>[\s|·•]*)+(?:</\1\s*>|(?=<[uo]l\b))|"
    r"<p\b[^>]*>\s*<code\b[^>]*>[^<]*</code>\s*</p\s*>",
    re.IGNORECASE,
)
"""A block that is nothing but links, or a paragraph that is nothing but code."""
_BANNER = re.compile(r"\A(?:(?!<h[1-6]\b|<p\b).)*(?=<h1\b)", re.DOTALL | re.IGNORECASE)
"""What a page without marked content has before its heading, if there is no paragraph in it."""
_CONTENT = re.compile(r"<(main|article)\b[^>]*>(.*)</\1\s*>", re.DOTALL | re.IGNORECASE)
"""What a page is about, without its menus and key bindings."""
_ITEM_TAG = re.compile(r"<li\b[^>]*>\s*(?:<p\b[^>]*>)?", re.IGNORECASE)
_TITLE_TAG = re.compile(r"<title\b[^>]*>(.*?)</title\s*>", re.DOTALL | re.IGNORECASE)
_HEADING_TAG = re.compile(r"<(h[1-6]|dt)\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"</?(?:p|div|li|ul|ol|br|section|article|body|html|table|tr|td|blockquote|details|summary)\b[^>]*>", re.I
)
_TAG = re.compile(r"<[/!]?[a-zA-Z][^<>]*>")
_INLINE_TAG = re.compile(
    r"(?<!`)</?(?:a|abbr|b|center|cite|code|del|em|font|i|img|ins|kbd|mark|s|small|span|strong|su[bp]|u)"
    r"(?: [^<>]*)?/?>",
    re.IGNORECASE,
)
"""In a text that has no other tags, where <name> may be no tag."""
_MANUAL_NAME = re.compile(r"\A\s*(?:\S+\(\d\w*\).*\n\s*)?NAME\n+ +(\S.*)\n")
"""How a page of a manual begins: with its number, which says nothing, and what it is about."""
_OUTLINE = re.compile(r"(?<=\n\n)(\*{1,4}) (?=[^\n]+(?:\n\n|\Z))")
"""Stars of headings in Emacs's outlines, which have two of them somewhere."""
_IMAGE = re.compile(r"!\[[^\]\[]*\]\([^)(]*\)")
LINK = re.compile(r"\[([^\]\[]+)\](?:\([^)(]*\)|\[[^\]\[]*\])")
_EMPTY_NOTE = re.compile(r" ?[(（](?:see(?: also)?|cf\.|[参另]?见)[\s,;，；]*[)）]", re.IGNORECASE)
_QUOTED = re.compile(r"(?<![^\s(\"“])`([^`']+)'(?!\w)")
_EMPHASIS = re.compile(
    r"(\*{2,3})(?=\S)(.{1,300}?)(?<=\S)\1|"
    r"(?<![\w*\"'/.])(\*|_{1,3})(?=[\w\"“‘(《])([^*]{1,300}?)(?<=[\w.!?…,:\"”’)》])\3(?![\w*\"'/.])"
)
"""In pairs: a star that stands alone means something, as in "*.txt"."""
_MARKS = re.compile(r"`+|~~|-\*-.*?-\*-")


def to_markdown(text: str, lang: Lang) -> tuple[str, str]:
    """The title that HTML names, if it has no headings, and the text with headings as Markdown has them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    text = _MAIL.sub(_subject, _INDENTED.sub(lambda line: line[0].expandtabs(), text))
    title, text = _without_tags(text, lang)
    text = _MANUAL_NAME.sub(r"# \1\n\n", text)
    if re.search(r"^\*\* ", text, re.MULTILINE):
        text = _OUTLINE.sub(lambda stars: f"{'#' * len(stars[1])} ", text)
    return title, text


def _subject(headers: re.Match[str]) -> str:
    """The subject of a mail as its title, in the place of its headers."""
    subject = _SUBJECT.search(headers[0])
    return f"# {subject[1]}\n\n" if subject else ""


def _without_tags(text: str, lang: Lang) -> tuple[str, str]:
    """The title that HTML names, and its text with headings as Markdown has them; other text as it is."""
    text = _COMMENT.sub("", text)
    if not _HTML.search(text):
        return "", _INLINE_TAG.sub("", text)
    titles, is_page = _TITLE_TAG.findall(text), bool(_PAGE.search(text))
    content = _CONTENT.search(text)
    if content:
        text = content[2]
    elif is_page:
        text = _BANNER.sub("", text)
    for pattern, left in ((_UNREAD, ""), (_EXAMPLE, REMOVED), (_DATA_TABLE, REMOVED), (_MENU_ITEM, "")):
        text = pattern.sub(f"\n\n{left}\n\n", text)
    text = _HEADING_TAG.sub(_hashed, text)
    text = _BLOCK_TAG.sub("\n\n", _ITEM_TAG.sub("\n\n- ", text))
    text = "\n".join(line.strip() for line in text.split("\n"))
    if is_page:
        text = re.sub(r"(?<!\n)\n(?!\n)", " " if lang == "en" else "", text)
    if not titles or re.search(r"\n#{1,6} ", text):
        return "", html.unescape(_TAG.sub("", text))
    return html.unescape(_TAG.sub("", titles[0])).strip(), html.unescape(_TAG.sub("", text))


def _hashed(heading: re.Match[str]) -> str:
    """A tagged heading, or a term that is defined, as Markdown has it."""
    level = int(heading[1][1]) if heading[1][1].isdigit() else TERM
    return f"\n\n{'#' * level} {' '.join(heading[2].split())}\n\n"


def without_marks(text: str) -> str:
    """Without the marks of Markdown: what they emphasise or link stays."""
    text = _QUOTED.sub(r"'\1'", LINK.sub(r"\1", _IMAGE.sub("", text)))
    text = _MARKS.sub("", _EMPHASIS.sub(lambda match: match[2] or match[4], _EMPTY_NOTE.sub("", text)))
    return " ".join(html.unescape(text).split())
