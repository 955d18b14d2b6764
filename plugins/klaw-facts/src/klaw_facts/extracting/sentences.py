"""Split a message into sentences with their positions. English, Russian and Chinese."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from klaw_words.lazy_patterns import lazy_pattern

_END = lazy_pattern(r"[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？]+[”’」』）]*|\n+")
_ABBREVIATION = lazy_pattern(
    r"(?:^|[\s(])(?:[A-Za-zА-Яа-я]|Mr|Mrs|Ms|Dr|St|No|vs|etc|e\.g|i\.e|approx|Inc|Ltd|т\.е|т\.д|т\.п|г|ул|стр|рис)\.$"
)
_MARKER = lazy_pattern(r"^\s*(?:[-*•]|\d{1,3}[.)]|#{1,6}|>)\s+")


@frozen
class Sentence:
    """A sentence: characters ``start`` to ``end`` of its message."""

    text: str
    start: int
    end: int


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a text without surrounding white space and list markers."""
    start = 0
    for match in _END.finditer(text):
        if match[0] == "." and _ABBREVIATION.search(text[max(start, match.end() - 8) : match.end()]):
            continue
        yield from _sentence(text, start, match.end())
        start = match.end()
    yield from _sentence(text, start, len(text))


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    marker = _MARKER.match(text[start:end])
    start += marker.end() if marker else 0
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if any(character.isalnum() for character in piece):
        yield Sentence(piece, start, start + len(piece))
