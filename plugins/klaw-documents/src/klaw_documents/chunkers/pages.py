"""The chunker ``pages``: a text with page breaks, each a form feed on a line of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

from klaw_core import Heading, HeadingChunker, PlainOptions, Span, TokenCounter
from klaw_documents.chunkers.sections import Section, cut_sections, headings_of

#: The line between two pages.
PAGE_BREAK = "\n\f\n"
_BREAK = re.compile(r"^\f(?:\r\n|\r|\n|\Z)", re.MULTILINE)


@frozen(eq=False)
class PageChunker(HeadingChunker):
    """Splits at page breaks; the heading of a chunk is ``Page 3``."""

    options: PlainOptions = field(factory=PlainOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order. Time is linear in the text."""
        yield from cut_sections(text, pages(text), self.options, count_tokens)

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the pages."""
        return headings_of(pages(text), text, lambda title, _section: (title,))


def pages(text: str) -> list[Section]:
    """Return the pages of a text; without page breaks, all of it is page 1."""
    breaks = [match.span() for match in _BREAK.finditer(text)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(text)]
    return [
        Section(start, end, (f"Page {number}",), 1)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]
