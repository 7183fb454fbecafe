"""What a browser would see of a page, without one; texts that would do harm if they were more than text."""

from __future__ import annotations

from html.parser import HTMLParser

NASTY = [
    "<script>document.title = 'run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    "<svg onload=\"document.title='run'\"><circle r=9 /></svg>",
    "</pre></details></main><h1>outside</h1>",
    "<iframe src='http://127.0.0.1:9/frame'></iframe><link rel=stylesheet href=http://127.0.0.1:9/css>",
    "[click](javascript:document.title='run') javascript:document.title='run'",
    "{{ 7 * 7 }} {% for x in y %} ${7*7} <%= 7*7 %>",
    r"$$\href{javascript:alert(1)}{x}$$ \(\def\x{\x\x}\x\)",
    "NUL \x00 bell \x07 escape \x1b[31m delete \x7f next line \x85",
    "left \u202egnirts a\u202c isolate \u2066x\u2069 mark \u200f and \ufeff",
    "<style>* { display: none }</style><base href='http://127.0.0.1:9/'>",
    "&lt;b&gt; &amp;amp; &#60;script&#62; <!-- --> ]]> <![CDATA[",
    "<form action=http://127.0.0.1:9><input autofocus onfocus=\"document.title='run'\"></form>",
    "한국어 中文 Русский العربية 🙂 e\u0301",
    "long " + "x" * 250_000,
]


class Elements(HTMLParser):
    """The tags, attributes and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name == "href"]


def valid_text(html: str) -> str:
    """The text of a block of HTML that is valid."""
    import html5lib

    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return "".join(parser.parseFragment(html).itertext())


def harms(page: str) -> set[str]:
    """What would run, load, lead elsewhere or hide something on a page, beside its own scripts."""
    found = Elements(page)
    tags = {*found.tags} & {
        "img",
        "image",
        "iframe",
        "object",
        "embed",
        "form",
        "link",
        "base",
        "foreignobject",
    }
    attributes = {name for name in found.attributes if name.startswith("on")}
    attributes |= found.attributes & {"src", "xlink:href", "action", "data"}
    links = {link for link in found.links if link.startswith("javascript")}
    return tags | attributes | links | controls(page)


def controls(text: str) -> set[str]:
    return {*text} & {"\x00", "\x07", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\ufeff"}
