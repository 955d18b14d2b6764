"""The chunker ``org``: splits Org files at headlines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

from klaw_core import Heading, HeadingChunker, PlainOptions, Span, TokenCounter
from klaw_documents.chunkers.sections import Section, cut_sections, headings_of, whole

_HEADLINE = re.compile(r"^(\*{1,32})[ \t]+(\S[^\r\n]*)", re.MULTILINE)
# The parts of a headline around the title: the state in capitals, the priority, tags, and statistics cookies.
_STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|HOLD|CANCELLED|CANCELED|STARTED)[ \t]+")
_PRIORITY = re.compile(r"\[#[A-Za-z0-9]\][ \t]*")
_TAGS = re.compile(r"[ \t]+:[\w@#%:]+:[ \t]*\Z")
_COOKIE = re.compile(r"[ \t]*\[(?:\d*/\d*|\d*%)\]")
_LINK = re.compile(r"\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]")
# A property of a headline: https://orgmode.org/manual/Property-Syntax.html
_CUSTOM_ID = re.compile(r"^[ \t]*:CUSTOM_ID:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_DRAWER_END = re.compile(r"^[ \t]*:END:", re.MULTILINE | re.IGNORECASE)
_MAX_HEADING_CHARACTERS = 200


@frozen(eq=False)
class OrgChunker(HeadingChunker):
    """Splits at headlines; the heading of a chunk is the path of titles."""

    options: PlainOptions = field(factory=PlainOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order. Time is linear in the text."""
        yield from cut_sections(text, whole(headlines(text), text), self.options, count_tokens)

    def headings(self, text: str, /) -> tuple[Heading, ...]:
        """Return the headlines, also under their ``CUSTOM_ID``."""
        return headings_of(headlines(text), text, _names)


def _names(title: str, section: str) -> Iterator[str]:
    yield _LINK.sub(lambda link: link[2] or link[1], _COOKIE.sub("", title)).strip()
    yield title
    end = _DRAWER_END.search(section)
    if end is not None and (found := _CUSTOM_ID.search(section, 0, end.start())):
        yield found[1]


def headlines(text: str) -> list[Section]:
    """Return the sections of an Org file; text before the first headline has no heading."""
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    start = own = 0
    for match in _HEADLINE.finditer(text):
        if match.start() and text[match.start() - 1] not in "\r\n":
            continue
        if match.start() > start:
            found.append(Section(start, match.start(), tuple(title for _, title in path), own))
        level, title = len(match[1]), match[2]
        for around in (_STATE, _PRIORITY):
            if mark := around.match(title):
                title = title[mark.end() :]
        title = _TAGS.sub("", title).strip()[:_MAX_HEADING_CHARACTERS]
        path = [*(item for item in path if item[0] < level), *([(level, title)] if title else [])]
        start, own = match.start(), level if title else 0
    if start < len(text):
        found.append(Section(start, len(text), tuple(title for _, title in path), own))
    return found
