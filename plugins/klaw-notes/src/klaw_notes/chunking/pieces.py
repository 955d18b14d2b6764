"""Pieces: the text as a sequence of parts that are not split between chunks, each measured and small enough.

A sentence of a paragraph is a piece, and so is a whole code block, table or list item. An element that is larger than
a chunk is split into the blocks inside it, then at line ends, sentence ends, word ends, and finally between grapheme
clusters, each time no further than necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, pairwise
from math import ceil

from attrs import define, evolve, field, frozen

from klaw_core import TokenCounter
from klaw_notes.chunking import cuts
from klaw_notes.chunking.blocks import Block

# A limit in characters per token, because a megabyte of base64 may be a single unknown token.
CHARACTERS_PER_TOKEN = 16
# A paragraph that ends with one of these introduces the list, code or table after it.
_INTRODUCES = ":："
_PROSE = (cuts.sentences, cuts.lines, cuts.words, cuts.clusters, cuts.characters)
_VERBATIM = (cuts.lines, cuts.sentences, cuts.words, cuts.clusters, cuts.characters)
_TEARING = (cuts.clusters, cuts.characters)
_LINED = ("code", "table", "html", "front matter")


class Strength(IntEnum):
    """The quality of the boundary before a piece as a place to split; stronger is better."""

    WORD = 0
    LINE = 1
    SENTENCE = 2
    BLANK_LINE = 3  # in code
    INNER_BLOCK = 4  # in a list item or a quote
    INTRODUCED = 5  # between "for example:" and the example
    ITEM = 6
    BLOCK = 7
    THEMATIC_BREAK = 8
    SECTION_6 = 9  # before a heading of level 6
    SECTION_5 = 10
    SECTION_4 = 11
    SECTION_3 = 12
    SECTION_2 = 13
    SECTION_1 = 14
    END = 15


# By the level of the heading, from 1.
_SECTIONS = (
    Strength.SECTION_1,
    Strength.SECTION_2,
    Strength.SECTION_3,
    Strength.SECTION_4,
    Strength.SECTION_5,
    Strength.SECTION_6,
)
_STRENGTHS: dict[cuts.Cutter, Strength] = {
    cuts.sentences: Strength.SENTENCE,
    cuts.lines: Strength.LINE,
    cuts.words: Strength.WORD,
    cuts.clusters: Strength.WORD,
    cuts.characters: Strength.WORD,
}


@frozen
class Bounds:
    """Limits of a chunk and of its overlap in tokens; the limits in characters are 16 times as large."""

    max_tokens: int
    overlap_tokens: int

    @property
    def max_characters(self) -> int:
        """Return how many characters a chunk may have."""
        return self.max_tokens * CHARACTERS_PER_TOKEN

    @property
    def overlap_characters(self) -> int:
        """Return how many characters a chunk may repeat."""
        return self.overlap_tokens * CHARACTERS_PER_TOKEN

    def over_half(self, tokens: int, characters: int) -> bool:
        """Return whether this size is more than half a chunk."""
        return 2 * tokens > self.max_tokens or 2 * characters > self.max_characters


@define(eq=False)  # a frozen object takes three times as long to make
class Piece:
    """``text[start:end]`` without outer blank lines, and the properties of the cut before it.

    ``block`` is the block that contains it, ``within`` the list items and quotes that had to be split to reach it,
    outermost first. A piece that ``binds`` is not separated from the next one; a piece that is ``torn`` begins inside a
    word and is not joined to the previous one again. ``cutters`` are the ways to split that were not tried yet.
    """

    start: int
    end: int
    strength: Strength
    block: Block
    cutters: tuple[cuts.Cutter, ...]
    within: tuple[Block, ...] = ()
    binds: bool = False
    torn: bool = False


@frozen(eq=False)
class Layout:
    """Pieces in order, the tokens of each and of the white space after it.

    ``heads[i]`` is the first of the pieces that bind to piece i, or i itself: no cut falls between them, and
    together they fit in a chunk.
    """

    pieces: Sequence[Piece]
    tokens: Sequence[int]
    gaps: Sequence[int]
    heads: Sequence[int]
    before: Sequence[int] = field(init=False)  # tokens of everything before piece i

    @before.default
    def _sum(self) -> Sequence[int]:
        tokens = (own + gap for own, gap in zip(self.tokens, self.gaps, strict=True))
        return list(accumulate(tokens, initial=0))

    def size(self, first: int, last: int) -> int:
        """Return the tokens from piece ``first`` to piece ``last``, both included."""
        return self.before[last] - self.before[first] + self.tokens[last]

    def fitting(self, bounds: Bounds) -> list[bool]:
        """Return of each piece whether it fits in a chunk together with what binds to it."""
        pieces, before, most, longest = self.pieces, self.before, bounds.max_tokens, bounds.max_characters
        return [
            before[index] - before[head] + tokens <= most and pieces[index].end - pieces[head].start <= longest
            for index, (head, tokens) in enumerate(zip(self.heads, self.tokens, strict=True))
        ]


@frozen(eq=False)
class Gauge:
    """A text, its token counter, and the limits of chunks."""

    text: str
    count_tokens: TokenCounter
    bounds: Bounds
    _gaps: dict[str, int] = field(factory=dict, init=False)

    def gap(self, left: Piece, right: Piece) -> int:
        """Return the tokens of the white space between two pieces that were measured side by side."""
        return self._gaps.get(self.text[left.end : right.start], 0)

    def gaps(self, pieces: Sequence[Piece]) -> list[int]:
        """Return the tokens of the white space after each piece; none after the last one."""
        text, known = self.text, self._gaps
        return [*(known.get(text[left.end : right.start], 0) for left, right in pairwise(pieces)), 0]

    def measure(self, pieces: Sequence[Piece], known: Sequence[int | None]) -> list[int | None]:
        """Return each piece's tokens; count the unknown ones in one call. None means too long to count."""
        longest = self.bounds.max_characters
        wanted = [
            index
            for index, (piece, tokens) in enumerate(zip(pieces, known, strict=True))
            if tokens is None and piece.end - piece.start <= longest
        ]
        gaps = self._new_gaps(pieces)
        tokens = list(known)
        if wanted or gaps:
            texts = [self.text[pieces[index].start : pieces[index].end] for index in wanted]
            counts = self.count_tokens([*texts, *gaps])
            for index, count in zip(wanted, counts, strict=False):
                tokens[index] = count
            self._gaps.update(zip(gaps, counts[len(wanted) :], strict=True))
        return tokens

    def too_long(self, piece: Piece) -> bool:
        """Return whether a piece has more characters than a chunk may."""
        return piece.end - piece.start > self.bounds.max_characters

    def _new_gaps(self, pieces: Sequence[Piece]) -> list[str]:
        """Return the distinct white space between pieces that was not counted yet.

        A gap longer than a chunk is never inside one, and not counted.
        """
        text = self.text
        longest = self.bounds.max_characters
        found = {
            text[left.end : right.start]
            for left, right in pairwise(pieces)
            if left.end < right.start <= left.end + longest
        }
        return sorted(found - self._gaps.keys())


def whole(blocks: Sequence[Block], gauge: Gauge) -> Layout | None:
    """Return the text as one piece if it fits in one chunk, else None."""
    first, last = blocks[0], blocks[-1]
    piece = Piece(first.start, last.end, Strength.END, first, _PROSE)
    (tokens,) = gauge.measure([piece], [None])
    if tokens is None or tokens > gauge.bounds.max_tokens:
        return None
    return Layout([piece], [tokens], [0], [0])


def lay_out(blocks: Sequence[Block], gauge: Gauge) -> Layout:
    """Return the text as pieces that each fit in a chunk, together with what binds to them.

    Each round counts new pieces and splits pieces that are too large; the number of rounds is the depth of nesting.
    """
    pieces = list(_pieces_of(blocks, gauge.text, ()))
    sizes = gauge.measure(pieces, [None] * len(pieces))
    while True:
        layout = _bound(pieces, [size or 0 for size in sizes], gauge.gaps(pieces), gauge.bounds)
        changed = False
        pieces = []
        known: list[int | None] = []
        fitting = layout.fitting(gauge.bounds)
        for index, (piece, size, fits) in enumerate(zip(layout.pieces, sizes, fitting, strict=True)):
            parts = [] if fits else _cut(piece, size or 0, gauge)
            if (
                not (fits or parts) and layout.heads[index] != index
            ):  # better to separate the heading than to split a cluster
                pieces[-1] = evolve(pieces[-1], binds=False)
                changed = True
            changed |= bool(parts)
            pieces.extend(parts or [piece])
            known.extend([None] * len(parts) if parts else [size])
        if not changed:
            return layout
        sizes = gauge.measure(pieces, known)


def _bound(pieces: Sequence[Piece], tokens: Sequence[int], gaps: Sequence[int], bounds: Bounds) -> Layout:
    """Return the layout with its heads found.

    Consecutive headings may fill half a chunk, so that some of the text after them always fits; a longer sequence is
    split before the heading that exceeds this.
    """
    heads: list[int] = []
    head, filled = None, 0  # of the row of binding pieces that ends before the current one
    for index, piece in enumerate(pieces):
        if not piece.binds:
            heads.append(index if head is None else head)
            head = None
            continue
        own = tokens[index] + gaps[index]
        too_long = head is not None and bounds.over_half(filled + own, piece.end - pieces[head].start)
        if too_long and piece.block.kind == "heading" and not piece.within:
            head = None
        if head is None:
            heads.append(index)
            head, filled = index, own
            too_long = bounds.over_half(own, piece.end - piece.start)
        else:
            heads.append(head)
            filled += own
        if too_long:
            head = None
    return Layout(pieces, tokens, gaps, heads)


def _cut(piece: Piece, tokens: int, gauge: Gauge) -> list[Piece]:
    """Split a piece that is too large at its best boundaries; return nothing if there are none.

    A grapheme cluster is split only if it is too large by itself, not because of the pieces that bind to it.
    """
    if piece.block.children and not piece.cutters:
        first, *others = _pieces_of(piece.block.children, gauge.text, (*piece.within, piece.block))
        return [evolve(first, strength=piece.strength, torn=piece.torn), *others]
    text = gauge.text
    small = tokens <= gauge.bounds.max_tokens and not gauge.too_long(piece)
    for index, cutter in enumerate(piece.cutters):
        if small and cutter is cuts.characters:
            break
        grain = _grain(piece, tokens, cutter, gauge.bounds)
        if positions := cutter(text, piece.start, piece.end, grain):
            left = piece.cutters[index:] if cutter in _TEARING else piece.cutters[index + 1 :]
            return _parts(piece, positions, left, cutter, text)
    return []


def _grain(piece: Piece, tokens: int, cutter: cuts.Cutter, bounds: Bounds) -> int:
    """Return the target size of a part in characters: small for words, as large as possible inside a word."""
    if cutter not in _TEARING:
        return max(1, bounds.max_tokens // 4)
    length = piece.end - piece.start
    parts = max(2, ceil(tokens / bounds.max_tokens), ceil(length / bounds.max_characters))
    return max(1, ceil(length / parts))


def _parts(
    piece: Piece, positions: Sequence[int], cutters: tuple[cuts.Cutter, ...], cutter: cuts.Cutter, text: str
) -> list[Piece]:
    """Return the parts of a piece between positions, without parts that are only white space."""
    parts: list[Piece] = []
    strength, torn = piece.strength, piece.torn
    for start, end in pairwise((piece.start, *positions, piece.end)):
        bounds = cuts.content(text, start, end)
        if bounds is None:
            continue
        if parts:
            strength, torn = _STRENGTHS[cutter], cutter in _TEARING
            if strength is Strength.LINE and text.count("\n", parts[-1].end, bounds[0]) > 1:
                strength = Strength.BLANK_LINE
        parts.append(Piece(*bounds, strength, piece.block, cutters, piece.within, torn=torn))
    return _bind_parts(parts, text) if cutter is cuts.lines else parts


def _bind_parts(parts: list[Piece], text: str) -> list[Piece]:
    """Bind a fence to its first and last line, and a table's head to its first row."""
    kind = parts[0].block.kind
    first, last = (text[part.start : part.end] for part in (parts[0], parts[-1]))
    binding: set[int] = set()
    if kind == "table":
        binding = {0, 1}
    elif kind == "code" and ("```" in first or "~~~" in first):
        binding = {0, len(parts) - 2} if last.strip("> \t`~") == "" else {0}
    binding.discard(len(parts) - 1)
    return [evolve(part, binds=True) if index in binding else part for index, part in enumerate(parts)]


def _pieces_of(blocks: Sequence[Block], text: str, within: tuple[Block, ...]) -> Iterator[Piece]:
    """Yield blocks as pieces: a paragraph sentence by sentence, anything else whole."""
    before: Block | None = None
    for block in blocks:
        strength = Strength.INNER_BLOCK if within else _strength(before, block, text)
        cutters: tuple[cuts.Cutter, ...] = ()
        if not block.children:
            cutters = _VERBATIM if block.kind in _LINED else _PROSE
        binds = block.kind == "heading" and block is not blocks[-1]
        sentences = cuts.sentences(text, block.start, block.end, 0) if block.kind == "paragraph" else []
        if block.kind == "paragraph":
            cutters = _PROSE[1:]
        piece = Piece(block.start, block.end, strength, block, cutters, within, binds)
        if sentences:
            yield from _parts(piece, sentences, cutters, cuts.sentences, text)
        else:
            yield piece
        before = block


def _strength(before: Block | None, block: Block, text: str) -> Strength:
    """Return the strength of the boundary between two top-level blocks."""
    if block.kind == "heading":
        return _SECTIONS[block.level - 1]
    if block.kind == "thematic break":
        return Strength.THEMATIC_BREAK
    if before is None or block.kind == "paragraph":
        return Strength.BLOCK
    if block.kind == before.kind == "list item":
        return Strength.ITEM
    end = before.end
    while end > before.start and text[end - 1] in "*_":
        end -= 1
    announced = end > before.start and text[end - 1] in _INTRODUCES
    return Strength.INTRODUCED if announced else Strength.BLOCK
