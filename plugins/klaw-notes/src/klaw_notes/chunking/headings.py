"""The headings of a Markdown text, with what people call them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import Any

from markdown_it import MarkdownIt

from klaw_core import Heading, line_starts
from klaw_notes.chunking.blocks import parse

# The explicit id of a heading, which Docusaurus and R Markdown know too:
# https://pandoc.org/MANUAL.html#extension-header_attributes
_ID = re.compile(r"[ \t]*\{[^{}]*?#(?P<id>[^\s{}]+)[^{}]*\}[ \t]*\Z")


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings that open sections."""
    starts = line_starts(text)
    blocks = [block for block in parse(text) if block.kind == "heading"]
    links: dict[str, Any] = {}
    if any("]" in block.title for block in blocks):  # a link may be defined anywhere
        _parser().parse(text, links)
    for block in blocks:
        yield Heading(bisect_right(starts, block.start), block.level, names(block.title, links))


def names(title: str, links: dict[str, Any] | None = None) -> tuple[str, ...]:
    """Return what a heading is called: its text as a reader sees it, its source, its explicit id, and both as written.

    ``links`` has the links that are defined in the text.
    """
    explicit = _ID.search(title)
    rest = title if explicit is None else title[: explicit.start()]
    found = (_visible(rest, links), rest, "" if explicit is None else explicit["id"], title)
    return tuple(dict.fromkeys(filter(None, found)))


def _visible(title: str, links: dict[str, Any] | None) -> str:
    tokens = _parser().parseInline(title, links)[0].children or ()
    return "".join(token.content for token in tokens if token.type in {"text", "code_inline"}).strip()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
