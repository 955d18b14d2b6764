"""Which blocks are merged, and when."""

from __future__ import annotations

import numpy as np

from klaw_fts5.packed.blocks import Block
from klaw_fts5.packed.index import _blocks_to_merge, _groups_to_compact


def test_blocks_that_fill_the_next_sizes_are_merged_in_one_step() -> None:
    def blocks(*sizes: int) -> list[Block]:
        return [Block(number, 0, 0, size, 0, 0, 0, 0, 1) for number, size in enumerate(sizes)]

    def merged(*sizes: int) -> list[int]:
        return sorted(block.rows for block in _blocks_to_merge(blocks(*sizes)))

    assert merged(16, 16, 16, 4, 4, 4, 1, 1, 1) == []
    assert merged(16, 16, 16, 4, 4, 4, 1, 1, 1, 1) == sorted([16] * 3 + [4] * 3 + [1] * 4)
    assert merged(16, 16, 16, 4, 4, 1, 1, 1, 1) == [1] * 4
    assert merged(*[20_000] * 4) == [20_000] * 3, "as many as one block can hold"


def test_blocks_are_merged_if_an_eighth_is_new() -> None:
    def together(*sizes: int, dead: int = 0) -> list[list[int]]:
        gone = np.arange(dead, dtype=np.uint16)
        blocks = [
            Block(number, 0, 0, size, 0, 0, 0, 0, 1, gone if not number else gone[:0])
            for number, size in enumerate(sizes)
        ]
        return [[block.rows for block in chosen] for chosen in _groups_to_compact(blocks)]

    assert together() == together(100) == together(7_000, 999) == []
    assert together(7_000, 1_000) == [[7_000, 1_000]]
    assert together(7_000, 500, 500) == [[7_000, 500, 500]]
    assert together(1_000, dead=111) == []
    assert together(1_000, dead=112) == [[1_000]], "what is dead is read as well"
    assert together(60_000, 50_000, 5_000) == [], "no block holds them together"
    assert together(60_000, 50_000, 15_000) == [[50_000, 15_000]]
