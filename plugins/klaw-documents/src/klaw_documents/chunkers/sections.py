"""Split a text by sections, so that no chunk contains parts of two sections."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen

from klaw_core import Heading, PlainChunker, PlainOptions, Span, TokenCounter, line_starts


@frozen
class Section:
    """A part of a text, of complete lines, with the headings above it, outermost first."""

    start: int
    end: int
    heading: tuple[str, ...] = ()
    #: The level of its own headline, from 1; 0 if it has none.
    level: int = 0


def cut_sections(
    text: str,
    sections: Sequence[Section],
    options: PlainOptions,
    count_tokens: TokenCounter,
    element: str | None = None,
) -> Iterator[Span]:
    """Yield the spans of each section, in order. Sections are in order and cover all text except white space.

    ``element`` names what a section is, if a span that does not begin with its headline continues it.
    """
    chunker = PlainChunker(options)
    for section in sections:
        begins = section.level > 0 or not section.heading
        for span in chunker.split(text[section.start : section.end], count_tokens):
            start, end = section.start + span.start, section.start + span.end
            yield Span(start, end, section.heading, None if begins else element)
            begins = not section.heading


def headings_of(
    sections: Sequence[Section], text: str, names: Callable[[str, str], Iterable[str]]
) -> tuple[Heading, ...]:
    """Return the headlines of sections; ``names`` returns what one is called, given its title and its section."""
    starts = line_starts(text)
    found = []
    for section in sections:
        content = text[section.start : section.end]
        if section.level and content.strip():
            line = bisect_right(starts, section.start + len(content) - len(content.lstrip()))
            called = dict.fromkeys(filter(None, names(section.heading[-1], content)))
            found.append(Heading(line, section.level, tuple(called)))
    return tuple(found)


def whole(sections: Sequence[Section], text: str) -> list[Section]:
    """Return the sections, after joining each headline without text to its first subsection.

    For example, a part of a book that starts with its first chapter is a headline without text.
    """
    found: list[Section] = []
    for section in sections:
        before = found[-1] if found else None
        if before is not None and _is_above(before, section) and _is_one_line(text[before.start : before.end]):
            found[-1] = Section(before.start, section.end, section.heading)
        else:
            found.append(section)
    return found


def _is_above(before: Section, section: Section) -> bool:
    depth = len(before.heading)
    return 0 < depth < len(section.heading) and section.heading[:depth] == before.heading


def _is_one_line(text: str) -> bool:
    return len(text) < 1000 and sum(any(map(str.isalnum, line)) for line in text.splitlines()) <= 1  # noqa: PLR2004
