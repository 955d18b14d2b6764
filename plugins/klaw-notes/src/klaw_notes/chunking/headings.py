"""The headings of a Markdown text, with what people call them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt

from klaw_core import Heading, line_starts
from klaw_notes.chunking.blocks import parse

# The explicit id of a heading, which Docusaurus and R Markdown know too:
# https://pandoc.org/MANUAL.html#extension-header_attributes
_ID = re.compile(r"[ \t]*\{[^{}]*?#(?P<id>[^\s{}]+)[^{}]*\}[ \t]*\Z")


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings that open sections."""
    starts = line_starts(text)
    for block in parse(text):
        if block.kind == "heading":
            yield Heading(bisect_right(starts, block.start), block.level, names(block.title))


def names(title: str) -> tuple[str, ...]:
    """Return what a heading is called: its text as a reader sees it, its source, its explicit id."""
    explicit = _ID.search(title)
    rest = title if explicit is None else title[: explicit.start()]
    found = (_visible(rest), rest, "" if explicit is None else explicit["id"])
    return tuple(dict.fromkeys(filter(None, found)))


def _visible(title: str) -> str:
    tokens = _parser().parseInline(title)[0].children or ()
    return "".join(token.content for token in tokens if token.type in {"text", "code_inline"}).strip()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
