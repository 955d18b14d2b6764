"""Packing: fill chunks with pieces, from first to last, looking ahead at most one chunk.

So a chunk depends only on the pieces that could be in it. Packing takes linear time, and text that is appended to a
document changes only its last chunks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter

from klaw_notes.chunking.blocks import Block
from klaw_notes.chunking.pieces import Bounds, Layout, Strength

# How full a chunk must be before a boundary of this strength may end it. Weaker boundaries need fuller chunks.
_FULL_ENOUGH = {
    Strength.END: 0.0,
    **dict.fromkeys(range(Strength.SECTION_6, Strength.END), 0.25),
    Strength.THEMATIC_BREAK: 0.5,
    Strength.BLOCK: 0.5,
    Strength.ITEM: 0.6,
    Strength.INTRODUCED: 0.7,
    Strength.INNER_BLOCK: 0.6,
    Strength.BLANK_LINE: 0.5,
    Strength.SENTENCE: 0.0,
    Strength.LINE: 0.0,
    Strength.WORD: 0.0,
}


def pack(layout: Layout, bounds: Bounds) -> Iterator[tuple[int, int, str | None]]:
    """Yield each chunk's start and end in the text, and the element that it continues, if any."""
    pieces = layout.pieces
    packer = _Packer(layout, bounds)
    first = fresh = 0
    while fresh < len(pieces):
        cut = packer.cut_after(first, fresh)
        yield pieces[first].start, pieces[cut - 1].end, _continues(layout, first, bounds)
        if cut < len(pieces):
            first = packer.reach_back(cut, first)
        fresh = cut


class _Packer:
    """A layout with the sums that packing looks up. A *cut* is the index of the piece after it."""

    def __init__(self, layout: Layout, bounds: Bounds) -> None:
        self.layout = layout
        self.bounds = bounds
        self.ends = [piece.end for piece in layout.pieces]
        # Tokens and characters from the beginning of the text up to and including piece i; ascending.
        self.filled = [before + own for before, own in zip(layout.before, layout.tokens, strict=False)]
        self.torn = [index for index, piece in enumerate(layout.pieces) if piece.torn]
        self.sections = [
            index for index, piece in enumerate(layout.pieces) if Strength.SECTION_6 <= piece.strength < Strength.END
        ]

    def cut_after(self, first: int, fresh: int) -> int:
        """Return where the chunk that begins at ``first`` ends; its pieces from ``fresh`` on are new.

        Choose the strongest boundary at which the chunk is full enough; of equally strong ones, the last.
        """
        layout = self.layout
        # A single character may be larger than a chunk; then it is a chunk of its own.
        last_cut = max(self._farthest(first, fresh), self._next_open(fresh))
        room = max(1, self.bounds.max_tokens - (layout.before[fresh] - layout.before[first]))
        best, best_strength = 0, -1
        for cut in range(last_cut, fresh, -1):
            at_end = cut == len(layout.pieces)
            if not at_end and layout.heads[cut] != cut:
                continue
            strength = Strength.END if at_end else layout.pieces[cut].strength
            full = layout.size(fresh, cut - 1) / room
            if strength > best_strength and (best == 0 or full >= _FULL_ENOUGH[strength]):
                best, best_strength = cut, strength
        return best

    def reach_back(self, fresh: int, previous: int) -> int:
        """Return where the chunk whose new pieces begin at ``fresh`` starts, so that it overlaps the previous one.

        It never starts before the heading of its section, at the start of the previous chunk, or inside a torn word,
        and never so early that its first new pieces do not fit.
        """
        layout, bounds = self.layout, self.bounds
        floor = max(previous + 1, _last_at_most(self.sections, fresh), _last_at_most(self.torn, fresh))
        least = self._next_open(fresh)
        best, best_strength = fresh, -1
        for start in range(fresh - 1, floor - 1, -1):
            repeated = layout.size(start, fresh - 1)
            length = self.ends[fresh - 1] - layout.pieces[start].start
            if repeated > bounds.overlap_tokens or length > bounds.overlap_characters:
                break
            if self._farthest(start, fresh) < least:
                break
            if layout.heads[start] != start:
                continue
            strength = layout.pieces[start].strength if 2 * repeated > bounds.overlap_tokens else -1
            if strength >= best_strength:
                best, best_strength = start, strength
        return best

    def _farthest(self, first: int, fresh: int) -> int:
        """Return the last cut at which a chunk from ``first`` is within its bounds and splits no word."""
        by_tokens = bisect_right(self.filled, self.layout.before[first] + self.bounds.max_tokens)
        by_length = bisect_right(self.ends, self.layout.pieces[first].start + self.bounds.max_characters)
        tear = bisect_right(self.torn, fresh)
        by_tear = self.torn[tear] if tear < len(self.torn) else len(self.ends)
        return min(by_tokens, by_length, by_tear)

    def _next_open(self, cut: int) -> int:
        """Return the next place after ``cut`` where a chunk may end."""
        heads = self.layout.heads
        return next((index for index in range(cut + 1, len(heads)) if heads[index] == index), len(heads))


def _last_at_most(indices: list[int], index: int) -> int:
    """Return the largest of ascending ``indices`` that is at most ``index``, or 0."""
    position = bisect_right(indices, index)
    return indices[position - 1] if position else 0


def _continues(layout: Layout, first: int, bounds: Bounds) -> str | None:
    """Return the innermost element larger than a chunk that began before piece ``first``."""
    piece = layout.pieces[first]
    if piece.start > piece.block.start and _larger(layout, piece.block, bounds):
        return piece.block.kind
    return next((block.kind for block in reversed(piece.within) if piece.start > block.start), None)


def _larger(layout: Layout, block: Block, bounds: Bounds) -> bool:
    """Return whether a block is larger than a chunk: every block that was split, except a paragraph that would fit."""
    if block.kind != "paragraph":
        return True
    first, last = (bisect_left(layout.pieces, offset, key=attrgetter("start")) for offset in (block.start, block.end))
    return layout.size(first, last - 1) > bounds.max_tokens
