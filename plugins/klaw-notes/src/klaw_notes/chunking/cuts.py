"""Positions where a text may be split: ends of lines, sentences and words, and borders of grapheme clusters.

A cutter takes ``(text, start, end, grain)`` and returns ascending positions strictly between ``start`` and ``end``,
each the first character of a new part. ``grain`` is the minimum size of a part in characters; only ``words`` and
``clusters`` use it, because their parts would otherwise be tiny. Every cutter takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import regex  # type: ignore[import-untyped]  # it ships no types

Cutter: TypeAlias = Callable[[str, int, int, int], list[int]]

# `re` and `str.isspace` agree on what white space is; `regex` does not count U+001C to U+001F.
_SOLID = re.compile(r"\S")
# The empty lines of a quote (`>` alone) go with the line before them.
_NEW_LINE = re.compile(r"(?:\r\n?|\n)(?![ \t]*>[ \t>]*+(?:[\r\n]|\Z))")
# Flags are paired here, because \X counts back through a run of them at each one.
_CLUSTER = regex.compile(r"\p{RI}\p{RI}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")
# Below it no character joins its neighbour into one cluster, save CR LF (UAX 29, GraphemeBreakProperty.txt).
_FIRST_JOINING = "\u0300"

# Terminators are consumed with the closing marks after them, so that a run of dots is read once. Full-width
# terminators always end a sentence, the others only before white space. A hard line break ends one too, and so does
# the line end before a link definition or a footnote. The pattern begins with one set of characters, because otherwise
# `re` would try every position.
_SENTENCE_END = re.compile(
    r"""[。！？｡.!?…\r\n]
      (?: (?<=[。！？｡])[。！？｡]*["'”’»」』）》〉】*`)\]]*
        | (?<=[.!?…])[.!?…]*["'”’»」』）)\]*_`]*(?P<narrow>)
        | (?:(?<=[ ]{2}\r)\n? | (?<=[ ]{2}\n) | (?<=\\\r)\n? | (?<=\\\n)
            | (?<=[\r\n])(?=[ ]{0,3}\[[^\]\r\n]{1,99}\]:))(?P<line>) )""",
    re.VERBOSE,
)
_WORD_END = re.compile(r"[,;|、，；：]*\s+|[,;|、，；：]+")
# A full stop after one of these, or after a number that opens a line, does not end a sentence; most other
# abbreviations are told by the small letter or the number that follows.
_ABBREVIATION = re.compile(
    r"[\W\d_](?:[A-ZА-ЯЁ]|Mr|Mrs|Ms|Dr|Prof|St|vs|cf|approx|e\.g|i\.e|et al|т\.е|т\.к|т\.н|им|ул)\Z"
    r"|[\r\n][ \t>]*\d{1,9}\Z"
)
_BEFORE_A_NUMBER = re.compile(r"[\W\d_](?:[Nn]o|[Ff]ig|[Ee]q|[Ss]ec|[Vv]ol|[Pp]p?|[Рр]ис|[Сс]тр|[Гг]л)\Z")
_MAX_ABBREVIATION_CHARACTERS = 16


def content(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return ``(start, end)`` without outer white space, or None if nothing is left.

    The indentation of a line stays with it: code needs it.
    """
    if not (start < end and "!" <= text[start] <= "~"):  # most blocks begin with such a character
        found = _SOLID.search(text, start, end)
        if found is None:
            return None
        solid = found.start()
        line = max(text.rfind("\n", start, solid), text.rfind("\r", start, solid)) + 1
        start = max(start, line)
    return start, solid_end(text, start, end)


def solid_end(text: str, start: int, end: int) -> int:
    """Return where the text before ``end`` stops being white space, without cutting a grapheme cluster."""
    stop = start + len(text[start:end].rstrip())
    # A prepended mark (U+0600 and its like) and the space after it are one cluster.
    return stop if stop in {start, end} or cluster_boundary(text, stop) else stop + 1


def cluster_boundary(text: str, position: int) -> bool:
    """Return whether no grapheme cluster spans ``position``.

    Exact if the character before is white space or punctuation or if either side is below U+0300;
    elsewhere (inside a run of flags, say) the cluster would have to be read from its beginning.
    """
    before, after = text[position - 1], text[position]
    if after < _FIRST_JOINING and before < _FIRST_JOINING:
        return not (before == "\r" and after == "\n")
    return bool(_CLUSTER.match(text, position - 1, position + 1).end() == position)


def lines(text: str, start: int, end: int, _grain: int) -> list[int]:
    """Cut after every line end."""
    return [match.end() for match in _NEW_LINE.finditer(text, start, end) if match.end() < end]


def sentences(text: str, start: int, end: int, _grain: int) -> list[int]:
    """Cut after every sentence, hard line break, and before every link definition."""
    cuts: list[int] = []
    following = start  # the first character after the match that is not white space
    for match in _SENTENCE_END.finditer(text, start, end):
        after = match.end()
        if following < after:
            solid = _SOLID.search(text, after, end)
            if solid is None:
                break
            following = solid.start()
        if match.lastgroup == "narrow" and (
            following == after or not _ends_sentence(text, start, match.start(), following)
        ):
            continue
        cut = after if match.lastgroup == "line" else following
        if cluster_boundary(text, cut) and not (cuts and cut <= cuts[-1]):
            cuts.append(cut)
    return cuts


def _ends_sentence(text: str, start: int, stop: int, following: int) -> bool:
    """Return whether the terminator at ``stop`` ends a sentence, the next word being at ``following``."""
    if text[following].islower():
        return False
    if text[stop] != ".":
        return True
    window = max(start, stop - _MAX_ABBREVIATION_CHARACTERS)
    before = ("\n" if window == start else "") + text[window:stop]
    if text[following].isdigit() and _BEFORE_A_NUMBER.search(before):
        return False
    return not _ABBREVIATION.search(before)


def words(text: str, start: int, end: int, grain: int) -> list[int]:
    """Cut after white space, commas and the like, into parts of at least ``grain`` characters."""
    cuts = []
    last = start
    for match in _WORD_END.finditer(text, start, end):
        cut = match.end()
        if cut - last >= grain and cut < end and cluster_boundary(text, cut):
            cuts.append(cut)
            last = cut
    return cuts


def clusters(text: str, start: int, end: int, grain: int) -> list[int]:
    """Cut between grapheme clusters, into parts of about ``grain`` characters."""
    part = text[start:end]
    if part.isascii() and "\r" not in part:
        return characters(text, start, end, grain)
    cuts = []
    last = boundary = start
    for match in _CLUSTER.finditer(text, start, end):
        boundary = match.start()
        if boundary - last >= grain:
            last = boundary
            cuts.append(last)
    return cuts or [boundary] * (boundary > start)


def characters(_text: str, start: int, end: int, grain: int) -> list[int]:
    """Cut between characters: for one grapheme cluster that is larger than a chunk may be."""
    return list(range(start + grain, end, grain))
