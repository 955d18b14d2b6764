"""The chunker ``rst``: splits reStructuredText at section titles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

from klaw_core import Heading, HeadingChunker, PlainOptions, Span, TokenCounter, line_starts
from klaw_documents.chunkers.sections import Section, cut_sections, headings_of, whole

_ADORNMENT = re.compile(r"""([!-/:-@\[-`{-~])\1{2,}[ \t]*""")
_MAX_TITLE_CHARACTERS = 200


@frozen(eq=False)
class RstChunker(HeadingChunker):
    """Splits at section titles; the heading of a chunk is the path of titles."""

    options: PlainOptions = field(factory=PlainOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order. Time is linear in the text."""
        yield from cut_sections(text, whole(titled(text), text), self.options, count_tokens)

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the titles of sections."""
        return headings_of(titled(text), text, lambda title, _section: (title,))


def titled(text: str) -> list[Section]:
    """Return the sections of a document; text before the first title has no heading.

    The order in which adornments first occur determines their levels:
    https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#sections
    """
    starts = line_starts(text)
    lines = [text[start:end].rstrip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    adorned = [match[1] if (match := _ADORNMENT.fullmatch(line)) else "" for line in lines]
    found: list[Section] = []
    levels: dict[tuple[str, bool], int] = {}
    path: list[tuple[int, str]] = []
    begin, number, own = 0, 0, 0
    while number < len(lines):
        size = _title(lines, adorned, number)
        if not size:
            number += 1
            continue
        over = size == 3  # noqa: PLR2004  # overline, title, underline
        mark, title = adorned[number + size - 1], lines[number + size - 2].strip()
        if starts[number] > begin:
            found.append(Section(begin, starts[number], tuple(name for _, name in path), own))
        own = level = levels.setdefault((mark, over), len(levels) + 1)
        path = [*(item for item in path if item[0] < level), (level, title[:_MAX_TITLE_CHARACTERS])]
        begin = starts[number]
        number += size
    if begin < len(text):
        found.append(Section(begin, len(text), tuple(name for _, name in path), own))
    return found


def _title(lines: list[str], adorned: list[str], number: int) -> int:
    """Return the number of lines of the title that starts at this line, or 0."""
    if number and lines[number - 1]:
        return 0
    if adorned[number]:
        if number + 2 >= len(lines) or adorned[number + 2] != adorned[number]:
            return 0
        title = lines[number + 1].strip()
        fits = title and not adorned[number + 1] and len(lines[number]) >= len(title)
        return 3 if fits and len(lines[number]) == len(lines[number + 2]) else 0
    title = lines[number]
    if not title or title[0].isspace() or number + 1 >= len(lines) or not adorned[number + 1]:
        return 0
    return 2 if len(lines[number + 1]) >= len(title) else 0
