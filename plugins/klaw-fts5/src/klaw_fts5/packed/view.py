"""A view of all blocks of one state of a collection as one block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.blocks import Block, PostingLists, Rows
from klaw_fts5.packed.postings import COLUMNS, MAX_CODES, OWN, Integers, Mixes, unmix
from klaw_words.scoring import View


@frozen(eq=False)
class BlockView(View):
    """The rows of all blocks, the largest first.

    ``counts`` of shape (3, 256 per block) has the term frequencies in each column for each code of each block.
    """

    blocks: tuple[Block, ...]
    counts: Mixes

    @cached_property
    def rare_rows(self) -> int:
        """The largest possible number of rows of a term that has no blob of its own in any block."""
        return sum(min(OWN, block.rows) for block in self.blocks)

    @property
    def dead(self) -> int:
        """Return the number of dead rows."""
        return len(self.keys) - self.rows

    def join(self, lists: PostingLists) -> tuple[NDArray[np.int32], Integers, list[int]]:
        """Return the live rows of terms, their codes, and the number of rows of each term.

        ``lists`` are the postings of each term, by block. The rows of all terms are concatenated.
        """
        rows = lists.positions.astype(np.int32)
        codes = lists.codes.astype(np.int64)
        many = len(self.blocks)
        if many > 1:
            places = np.arange(len(lists.sizes)) % many
            rows += np.repeat(np.array(self.starts, np.int32)[places], lists.sizes)
            codes += np.repeat(MAX_CODES * places, lists.sizes)
        counts = [sum(lists.sizes[first : first + many]) for first in range(0, len(lists.sizes), many)]
        if self.alive is not None:
            living = self.alive[rows]
            before = np.append(0, np.cumsum(living))
            rows, codes = rows[living], codes[living]
            counts = np.diff(before[np.cumsum(counts)], prepend=0).tolist()
        return rows, codes, counts


def make_view(blocks: tuple[Block, ...], rows: Sequence[Rows]) -> BlockView:
    """Return the view of these blocks, given their rows."""
    counts = np.zeros((COLUMNS, MAX_CODES * len(blocks)), dtype=np.uint32)
    for place, some in enumerate(rows):
        counts[:, MAX_CODES * place : MAX_CODES * place + len(some.mixes)] = unmix(some.mixes)
    parts = [(some.keys, some.lengths, block.dead) for block, some in zip(blocks, rows, strict=True)]
    return BlockView.of(parts, sum(block.tokens - block.dead_tokens for block in blocks), blocks, counts)
