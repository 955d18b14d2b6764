"""Read the links of a text: ``[[Note#Heading|label]]``, ``[label](note.md#heading)``, and those in front matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """A link as it is written: its target, a heading of it if any, its line, and its kind.

    ``kind`` is ``link``, or the key of the front matter that relates the document to the target; its line is then 1.
    ``is_path``: the target is a path from the document's directory, and not only a name.
    """

    target: str
    heading: str = ""
    line: int = 1
    kind: str = "link"
    is_path: bool = False


def read_markdown(text: str) -> tuple[tuple[Link, ...], tuple[Sequence[str], ...]]:
    """Return at most 2,000 links of a Markdown text to documents, and what each heading is called, in order.

    What markdown-it-py takes for code or HTML has no links. Time is linear in the text.
    """
    # They import markdown-it-py, which a search does not need.
    from klaw_notes.chunking.headings import names
    from klaw_notes.links.verbatim import prose_of, without_verbatim

    links: list[Link] = []
    headings: list[Sequence[str]] = []
    for prose in prose_of(text):
        if prose.is_heading:
            headings.append(names(" ".join(prose.text.split("\n"))))
        if len(links) < _MAX_LINKS and ("[[" in prose.text or "](" in prose.text):
            links += _links_in(without_verbatim(prose.text), prose.line)
    return tuple(links[:_MAX_LINKS]), tuple(headings)


def _links_in(text: str, first_line: int) -> Iterator[Link]:
    """Yield the links of a text without code, in order."""
    for link, _ in matches_in(text, first_line):
        yield link


def matches_in(text: str, first_line: int) -> Iterator[tuple[Link, re.Match[str]]]:
    """Yield the links of a text without code, in order, each with its match: ``[[…]]``, or else a Markdown link."""
    found = [*_WIKI.finditer(text), *_MARKDOWN.finditer(text)]
    line, counted = first_line, 0
    for match in sorted(found, key=lambda match: match.start()):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if link := _wiki_link(match, line) if match.re is _WIKI else _markdown_link(match, line):
            yield link, match


def _wiki_link(match: re.Match[str], line: int) -> Link | None:
    target, heading = match["target"].strip(), (match["heading"] or "").strip()
    return Link(target, _block_free(heading), line) if target else None


def _markdown_link(match: re.Match[str], line: int) -> Link | None:
    given = match["angle"] or match["plain"]
    if _SCHEME.match(given):
        return None
    path, _, heading = unquote(given).partition("#")
    path = path.partition("?")[0]
    return Link(path, heading, line, is_path=True) if path else None


def _block_free(heading: str) -> str:
    """Return the last heading of ``A#B``; empty for a block (``^1a2b``), which is no heading."""
    last = heading.rpartition("#")[2].strip()
    return "" if last.startswith("^") else last


def links_of_metadata(metadata: Mapping[str, object]) -> Iterator[Link]:
    """Yield the relations in front matter: values with a link (``up: "[[Home]]"``), or that are the path of a note."""
    for key, value in metadata.items():
        for text in value if isinstance(value, tuple) else (value,):
            if not isinstance(text, str):
                continue
            found = list(_links_in(text, 1))
            if not found and _NOTE.fullmatch(text):
                path, _, heading = text.partition("#")
                found = [Link(path, heading, is_path=True)]
            for link in found:
                yield Link(link.target, link.heading, 1, key, link.is_path)


def anchors_of(headings: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the anchors of a document's headings, each given by its text and other names, in order.

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
        used[name] = 0
        for each in (name, *map(anchor, others)):
            found.update((each, "-".join(filter(None, each.split("-")))))
    return frozenset(found)


def anchor(heading: str) -> str:
    """Return a heading, or the fragment of an address, as GitHub makes an anchor of it: ``its-fine``, ``version-12``.

    It is in lower case, with hyphens for spaces, and without what is no letter, digit, underscore or hyphen.
    """
    words = " ".join(normalize("NFC", heading).lower().split())
    return _NOT_IN_ANCHOR.sub("", words).replace(" ", "-")
