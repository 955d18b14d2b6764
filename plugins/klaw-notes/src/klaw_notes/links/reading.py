"""Read the links of a text: ``[[Note#Heading|label]]``, ``[label](note.md#heading)``, and those in front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from attrs import frozen

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
# Code and comments are no places of links.
_VERBATIM = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|<!--.*?-->")
_WIKI = re.compile(
    r"\[\[(?P<target>[^\[\]|#^]{0,300})(?:#(?P<heading>[^\[\]|]{0,300}))?(?:\^[^\[\]|]{0,100})?"
    r"(?:\|[^\[\]]{0,500})?\]\]"
)
_MARKDOWN = re.compile(
    r"\[(?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500}\]"
    r"\((?:<(?P<angle>[^<>]{1,500})>|(?P<plain>[^\s()<>]{1,500}))(?:\s[^()]{0,200})?\)"
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_NOTE = re.compile(r"[^\s:]+\.(?:md|markdown|mdx|qmd|rmd)(?:#.*)?", re.IGNORECASE)
_MAX_LINKS = 2_000  # of a document


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


def links_of_text(text: str, first_line: int = 1) -> Iterator[Link]:
    """Yield at most 2,000 links of a Markdown text, in order, without those to other places than documents."""
    if "](" not in text and "[[" not in text:
        return
    fence = ""
    left = _MAX_LINKS
    for number, line in enumerate(text.split("\n"), start=first_line):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
            continue
        if fence or "[" not in line:
            continue
        for link in _links_of_line(_VERBATIM.sub(" ", line), number):
            yield link
            left -= 1
            if not left:
                return


def _links_of_line(line: str, number: int) -> Iterator[Link]:
    for match in _WIKI.finditer(line):
        target, heading = match["target"].strip(), (match["heading"] or "").strip()
        if target:
            yield Link(target, _block_free(heading), number)
    for match in _MARKDOWN.finditer(line):
        given = match["angle"] or match["plain"]
        if _SCHEME.match(given):
            continue
        path, _, heading = unquote(given).partition("#")
        if path := path.partition("?")[0]:
            yield Link(path, heading, number, is_path=True)


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
            found = list(_links_of_line(text, 1))
            if not found and _NOTE.fullmatch(text):
                path, _, heading = text.partition("#")
                found = [Link(path, heading, is_path=True)]
            for link in found:
                yield Link(link.target, link.heading, 1, key, link.is_path)


def headings_of(text: str) -> Iterator[str]:
    """Yield the headings of a Markdown text, as :func:`slug` makes them comparable."""
    for match in _HEADING.finditer(text):
        yield slug(match[1])


def slug(heading: str) -> str:
    """Return the words of a heading, as it is written or as the fragment of an address: ``next-steps``."""
    return " ".join(re.findall(r"\w+", heading.casefold()))
