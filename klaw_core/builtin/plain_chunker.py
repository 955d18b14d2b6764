"""The chunker ``plain``: splits any text at paragraphs, lines and words, without knowing its format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from attrs import Attribute, field, frozen

from klaw_core.values.text import Span, TokenCounter

_MIN_CHUNK_TOKENS = 8
# A chunk has at most this many characters per token, because some tokenizers count a megabyte of base64 as one token.
_CHARACTERS_PER_TOKEN = 16
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_WORD = re.compile(r"\s*\S+\s*")


def _check_max(_options: PlainOptions, _attribute: Attribute[int], value: int) -> None:
    if value < _MIN_CHUNK_TOKENS:
        raise ValueError(f"max_tokens must be at least {_MIN_CHUNK_TOKENS}, not {value}")


def _check_overlap(options: PlainOptions, _attribute: Attribute[int], value: int) -> None:
    if not 0 <= value <= options.max_tokens // 2:
        raise ValueError(f"overlap_tokens must be 0 to {options.max_tokens // 2} (half of max_tokens), not {value}")


@frozen
class PlainOptions:
    """Sizes in tokens of the embedder. Raise ValueError if one is out of range.

    ``max_tokens`` limits a chunk (at least 8), ``overlap_tokens`` the text it repeats from the previous chunk (at
    most half of ``max_tokens``).
    """

    max_tokens: int = field(default=400, validator=_check_max)
    overlap_tokens: int = field(default=80, validator=_check_overlap)


@frozen
class _Atom:
    """A part of the text that is not split further, and its size. Atoms cover the text without gaps.

    ``closed``: part of a single long word. The token counts of such parts do not add up to that of the word, so each
    closed atom is a separate chunk. ``blank``: white space only; a chunk neither begins nor ends with it.
    """

    start: int
    end: int
    tokens: int
    closed: bool = False
    blank: bool = False


@frozen(eq=False)
class PlainChunker:
    """Fills chunks with whole lines and prefers to end them at an empty line."""

    options: PlainOptions = field(factory=PlainOptions)

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield the spans of ``text`` in order; none if it is empty or white space. Time is linear in the text."""
        if not text or text.isspace():
            return
        atoms = list(_atoms(text, count_tokens, self.options.max_tokens))
        first = _next_solid(atoms, 0)
        while first < len(atoms):
            last = self._last(atoms, first)
            yield Span(*_trim(text, atoms[first].start, atoms[last].end))
            following = _next_solid(atoms, last + 1)
            if following == len(atoms):
                return
            first = self._overlap(atoms, first, following)

    def _last(self, atoms: Sequence[_Atom], first: int) -> int:
        """Return the last atom of the chunk that begins with ``first``."""
        tokens, last, paragraph = 0, first, -1
        for index in range(first, len(atoms)):
            atom = atoms[index]
            tokens += atom.tokens
            if index > first and (tokens > self.options.max_tokens or atom.closed or atoms[first].closed):
                return paragraph if paragraph >= 0 else last
            if atom.blank and 2 * tokens > self.options.max_tokens:
                paragraph = last
            last = last if atom.blank else index
        return last

    def _overlap(self, atoms: Sequence[_Atom], first: int, following: int) -> int:
        """Return the atom with which the next chunk begins: as far back as the overlap and its own new text allow."""
        new = atoms[following]
        room = min(self.options.overlap_tokens, self.options.max_tokens - new.tokens)
        begin, tokens = following, 0
        if new.closed:
            return following
        for index in range(following - 1, first, -1):
            tokens += atoms[index].tokens
            if atoms[index].closed or tokens > room:
                break
            begin = begin if atoms[index].blank else index
        return begin


def _next_solid(atoms: Sequence[_Atom], index: int) -> int:
    """Return the index of the first atom from ``index`` on that is not blank, or the number of atoms."""
    while index < len(atoms) and atoms[index].blank:
        index += 1
    return index


def _atoms(text: str, count_tokens: TokenCounter, max_tokens: int) -> Iterator[_Atom]:
    """Yield lines; if they are too long, their words; if those are too long, parts of words."""
    lines = [match.span() for match in _LINE.finditer(text)]
    for start, end, tokens in _measure(text, lines, count_tokens):
        if tokens <= max_tokens or text[start:end].isspace():
            yield _Atom(start, end, tokens, blank=text[start:end].isspace())
            continue
        words = _at_cluster_boundaries(text, [match.span() for match in _WORD.finditer(text, start, end)])
        for first, last, size in _measure(text, words, count_tokens):
            if size <= max_tokens:
                yield _Atom(first, last, size)
                continue
            for begin, stop in _parts(text, first, last, count_tokens, max_tokens):
                yield _Atom(begin, stop, max_tokens, closed=True, blank=text[begin:stop].isspace())


def _measure(
    text: str, bounds: Sequence[tuple[int, int]], count_tokens: TokenCounter
) -> Iterator[tuple[int, int, int]]:
    """Yield the bounds, each with its size in tokens, computed from characters if that is larger."""
    counts = count_tokens([text[start:end] for start, end in bounds]) if bounds else ()
    for (start, end), tokens in zip(bounds, counts, strict=True):
        yield start, end, max(tokens, -(-(end - start) // _CHARACTERS_PER_TOKEN))


def _clusters() -> Any:
    """Return the pattern of one grapheme cluster (UAX 29), with flags paired so that matching stays linear."""
    import regex  # type: ignore[import-untyped]  # it ships no types; imported at the first long line

    return regex.compile(r"\p{RI}\p{RI}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")


def _at_cluster_boundaries(text: str, bounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join adjacent parts whose border lies inside a grapheme cluster; a combining mark may follow a space."""
    if not bounds:
        return []
    inside = {
        position
        for match in _clusters().finditer(text, bounds[0][0], bounds[-1][1])
        if match.end() - match.start() > 1
        for position in range(match.start() + 1, match.end())
    }
    cuts = [bounds[0][0], *(start for start, _ in bounds[1:] if start not in inside), bounds[-1][1]]
    return list(pairwise(cuts))


def _parts(text: str, start: int, end: int, count_tokens: TokenCounter, max_tokens: int) -> Iterator[tuple[int, int]]:
    """Split one long word into parts that fit, between grapheme clusters if these fit."""
    pending = [(start, end)]
    while pending:
        first, last = pending.pop()
        ((_, _, size),) = _measure(text, [(first, last)], count_tokens)
        if size <= max_tokens or last - first == 1:
            yield first, last
            continue
        middle = first + min((last - first) // 2, max_tokens * _CHARACTERS_PER_TOKEN)
        border = next(
            (m.start() for m in _clusters().finditer(text, first, last) if m.start() >= middle and m.start() > first),
            None,
        )
        before = [m.start() for m in _clusters().finditer(text, first, middle + 1)][-1]
        cut = before if before > first else border or middle
        pending += [(cut, last), (first, cut)]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds without outer white space, but with the indentation of the first line."""
    part = text[start:end]
    solid = len(part) - len(part.lstrip())
    line = max(part.rfind("\n", 0, solid), part.rfind("\r", 0, solid)) + 1
    stop = len(part.rstrip())
    if stop < len(part):  # a prepended mark (U+0600 and the like) and the space after it are one cluster
        cluster = next(match.span() for match in _clusters().finditer(part, max(0, stop - 1)))
        stop = max(stop, cluster[1]) if cluster[0] < stop < cluster[1] and part[stop - 1] != "\r" else stop
    at_line_start = start == 0 or text[start - 1] in "\r\n"
    return start + (line if line or at_line_start else solid), start + stop
