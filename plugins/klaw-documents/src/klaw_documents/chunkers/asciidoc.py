"""The chunker ``asciidoc``: splits AsciiDoc at section titles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

from klaw_core import Heading, HeadingChunker, PlainOptions, Span, TokenCounter, line_starts
from klaw_documents.chunkers.sections import Section, cut_sections, headings_of, whole

# https://docs.asciidoctor.org/asciidoc/latest/sections/titles-and-levels/
_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?")
# Delimited blocks, in which nothing is a title.
_DELIMITER = re.compile(r"-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|`{3,}|[|,:!]={3,}|--")
# The older form, a title above a line of the same length: https://docs.asciidoctor.org/asciidoctor/latest/migrate/
_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_TOLERANCE = 2  # characters by which title and line may differ
_ANCHOR = re.compile(r"\[\[([^\[\],]+)[^\[\]]*\]\]|\[#([^\[\],.%]+)[^\[\]]*\]")
_MAX_TITLE_CHARACTERS = 200


@frozen(eq=False)
class AsciiDocChunker(HeadingChunker):
    """Splits at section titles; the heading of a chunk is the path of titles."""

    options: PlainOptions = field(factory=PlainOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order. Time is linear in the text."""
        yield from cut_sections(text, whole(titled(text), text), self.options, count_tokens)

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the titles of sections, also under the anchors above them."""
        anchors = dict(_anchored(text))
        found = headings_of(titled(text), text, lambda title, _section: (title,))
        return tuple(
            Heading(each.line, each.level, (*each.names, *filter(None, (anchors.get(each.line, ""),))))
            for each in found
        )


def titled(text: str) -> list[Section]:
    """Return the sections of a document; text before the first title has no heading."""
    starts = line_starts(text)
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    begin = own = 0
    for number, level, title in _titles(_lines(text)):
        if starts[number] > begin:
            found.append(Section(begin, starts[number], tuple(name for _, name in path), own))
        own = level
        path = [*(item for item in path if item[0] < level), (level, title[:_MAX_TITLE_CHARACTERS])]
        begin = starts[number]
    if begin < len(text):
        found.append(Section(begin, len(text), tuple(name for _, name in path), own))
    return found


def _titles(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the number, from 0, the level and the text of each title."""
    block = ""
    number = 0
    while number < len(lines):
        line = lines[number]
        if block:
            block = "" if line == block else block
        elif match := _TITLE.fullmatch(line):
            yield number, len(match[1]), match[2]
        elif level := _underlined(lines, number):
            yield number, level, line.strip()
            number += 1
        elif _DELIMITER.fullmatch(line):
            block = line
        number += 1


def _underlined(lines: list[str], number: int) -> int:
    """Return the level of the title that starts at a line and has a line below it; 0 if there is none."""
    line, below = lines[number], lines[number + 1] if number + 1 < len(lines) else ""
    before = lines[number - 1] if number else ""
    if not line or line[0].isspace() or not any(map(str.isalnum, line)) or (before and not before.startswith("[")):
        return 0
    fits = len(below) > _TOLERANCE and len(set(below)) == 1 and abs(len(below) - len(line)) <= _TOLERANCE
    return _UNDERLINES.get(below[0], 0) if fits else 0


def _anchored(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines, from 1, below anchors, with the anchors."""
    for number, line in enumerate(_lines(text), start=1):
        if match := _ANCHOR.fullmatch(line):
            yield number + 1, (match[1] or match[2]).strip()


def _lines(text: str) -> list[str]:
    starts = line_starts(text)
    return [text[start:end].rstrip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
