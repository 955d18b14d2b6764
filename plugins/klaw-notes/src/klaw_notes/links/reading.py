"""Read the links of a text, and those in front matter.

They are ``[[Note#Heading|label]]``, ``[label](note.md#heading)``, and ``[label][1]`` with ``[1]: note.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from unicodedata import normalize
from urllib.parse import unquote

from attrs import frozen

_WIKI = re.compile(
    r"\[\[(?P<target>[^\[\]|#^\n]{0,300})(?:#(?P<heading>[^\[\]|\n]{0,300}))?(?:\^[^\[\]|\n]{0,100})?"
    r"(?:\|[^\[\]\n]{0,500})?\]\]"
)
_MARKDOWN = re.compile(
    r"\[(?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500}\]"
    r"\((?:<(?P<angle>[^<>\n]{1,500})>|(?P<plain>[^\s()<>]{1,500}))(?:\s[^()]{0,200})?\)"
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#")
_NOTE = re.compile(r"[^\s:]+\.(?:md|markdown|mdx|qmd|rmd)(?:#.*)?", re.IGNORECASE)
_MAX_LINKS = 2_000  # of a document
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")


@frozen
class Link:
    """A link as it is written: its target, a heading of it if any (``A#B``: B below A), its line, and its kind.

    ``kind`` is ``link``, or the key of the front matter that relates the document to the target; it has no line then.
    ``is_path``: the target is a path from the document's directory, and not only a name.
    """

    target: str
    heading: str = ""
    line: int | None = 1
    kind: str = "link"
    is_path: bool = False


def read_markdown(text: str) -> tuple[tuple[Link, ...], tuple[Sequence[str], ...]]:
    """Return at most 2,000 links of a Markdown text to documents, and what each heading is called, in order.

    What markdown-it-py takes for code or HTML has no links. Time is linear in the text.
    """
    # They import markdown-it-py, which a search does not need.
    from klaw_notes.chunking.headings import names
    from klaw_notes.links.verbatim import Definitions, shown_of

    links: list[Link] = []
    headings: list[Sequence[str]] = []
    definitions = Definitions.of(text)
    for shown in shown_of(text, definitions):
        prose = shown.prose
        called = names(" ".join(prose.text.split("\n"))) if prose.is_heading else ("",)
        if prose.is_heading or shown.ids:
            headings.append((*called, *shown.ids))
        if len(links) < _MAX_LINKS and (shown.referring or "[[" in shown.text or "](" in shown.text):
            links += (link for link, _ in matches_in(shown.text, prose.line, shown.referring))
    return tuple(links[:_MAX_LINKS]), tuple(headings)


def matches_in(
    text: str, first_line: int, referring: Sequence[tuple[int, int, str]] = ()
) -> Iterator[tuple[Link, re.Match[str] | None]]:
    """Yield the links of a text without code, in order, each with its match: ``[[…]]``, or else a Markdown link.

    A link whose address is defined elsewhere, of which ``referring`` has the place and the address, has no match.
    """
    wiki = list(_WIKI.finditer(text))
    found: list[tuple[int, re.Match[str] | str]] = [(match.start(), match) for match in wiki]
    found += ((match.start(), match) for match in _MARKDOWN.finditer(text))
    # In CommonMark, ``[[a]]`` has the link ``[a]`` if it is defined.
    inside = {at for match in wiki for at in range(match.start(), match.end())} if referring else set()
    found += ((start, address) for start, end, address in referring if not inside.issuperset((start, end - 1)))
    line, counted = first_line, 0
    for start, match in sorted(found, key=itemgetter(0)):
        line += text.count("\n", counted, start)
        counted = start
        if isinstance(match, str):
            link = link_to(match, line)
        else:
            link = _wiki_link(match, line) if match.re is _WIKI else link_to(match["angle"] or match["plain"], line)
        if link:
            yield link, None if isinstance(match, str) else match


def _wiki_link(match: re.Match[str], line: int) -> Link | None:
    target, heading = match["target"].strip(), (match["heading"] or "").strip()
    is_block = heading.rpartition("#")[2].strip().startswith("^")  # ``^1a2b`` is no heading
    return Link(target, "" if is_block else heading, line) if target else None


def link_to(address: str, line: int = 1) -> Link | None:
    """Return the link to an address; None if it is one of the web, or of the same document."""
    if _SCHEME.match(address):
        return None
    path, _, heading = address.partition("#")
    path = unquote(path.partition("?")[0])
    return Link(path, unquote(heading), line, is_path=True) if path else None


def links_of_metadata(metadata: Mapping[str, object]) -> Iterator[Link]:
    """Yield the relations in front matter: values with a link (``up: "[[Home]]"``), or that are the path of a note."""
    for key, value in metadata.items():
        for text in value if isinstance(value, tuple) else (value,):
            if not isinstance(text, str):
                continue
            whole = text.strip().removeprefix("!")
            found = [link for link, match in matches_in(text, 1) if match is not None and match.group() == whole]
            if not found and _NOTE.fullmatch(text):
                path, _, heading = text.partition("#")
                found = [Link(path, heading, None, is_path=True)]
            for link in found:
                yield Link(link.target, link.heading, None, key, link.is_path)


def anchors_of(headings: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the anchors of a document's headings, each given by its text and other names, in order.

    What is no heading, but has an id, has an empty text.

    They are GitHub's, with ``-1`` at the second of a text; each is there also with single hyphens, as other programs
    write it, and so are the other names.
    """
    found: set[str] = set()
    used: dict[str, int] = {}
    for text, *others in headings:
        first = name = anchor(text)
        while name in used:
            used[first] += 1
            name = f"{first}-{used[first]}"
        if text:
            used[name] = 0
        for each in filter(None, (name, *map(anchor, others))):
            found.update((each, "-".join(filter(None, each.split("-")))))
    return frozenset(found)


def anchor(heading: str) -> str:
    """Return a heading, or the fragment of an address, as GitHub makes an anchor of it: ``its-fine``, ``version-12``.

    It is in lower case, with hyphens for spaces, and without what is no letter, digit, underscore or hyphen.
    """
    words = " ".join(normalize("NFC", heading).lower().split())
    return _NOT_IN_ANCHOR.sub("", words).replace(" ", "-")
