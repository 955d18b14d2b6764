"""A chunker for plain text in which a line that begins with ``==`` is a heading."""

import re
from collections.abc import Iterable
from itertools import pairwise

from attrs import evolve, frozen

from klaw_core import Chunker, Component, PlainChunker, PlainOptions, Span, TokenCounter, hookimpl

HEADING = re.compile(r"^==+ *(\S.*)$", re.MULTILINE)


@frozen
class SkeletonChunker:
    """Splits a text at its headings, and each section with the chunker ``plain``."""

    options: PlainOptions

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterable[Span]:
        """Yield the spans of the sections, in order."""
        starts = [0, *(found.start() for found in HEADING.finditer(text)), len(text)]
        for start, end in pairwise(starts):
            found = HEADING.match(text, start)
            heading = (found[1].strip(),) if found else ()
            for span in PlainChunker(self.options).split(text[start:end], count_tokens):
                yield evolve(span, start=start + span.start, end=start + span.end, heading=heading)


@hookimpl
def klaw_chunkers() -> Iterable[Component[PlainOptions, Chunker]]:
    """Yield the chunker."""
    yield Component("skeleton", PlainOptions, lambda options, _context: SkeletonChunker(options), api=2)
