"""Which blocks are merged, and when."""

from __future__ import annotations

from klaw_fts5.packed.blocks import Block
from klaw_fts5.packed.index import _mergeable


def test_what_fills_up_the_next_sizes_is_merged_with_them_at_once() -> None:
    def blocks(*sizes: int) -> list[Block]:
        return [Block(number, 0, 0, size, 0, 0, 0, 0, 1) for number, size in enumerate(sizes)]

    def merged(*sizes: int) -> list[int]:
        return sorted(block.rows for block in _mergeable(blocks(*sizes)))

    assert merged(16, 16, 16, 4, 4, 4, 1, 1, 1) == []
    assert merged(16, 16, 16, 4, 4, 4, 1, 1, 1, 1) == sorted([16] * 3 + [4] * 3 + [1] * 4)
    assert merged(16, 16, 16, 4, 4, 1, 1, 1, 1) == [1] * 4
    assert merged(*[20_000] * 4) == [20_000] * 3, "as many as one block can hold"
