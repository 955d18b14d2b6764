"""The cache between questions: rows of blocks, views of states, and the scores of words in a view."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import apsw
from attrs import frozen

from klaw_fts5.errors import DamagedError
from klaw_fts5.packed.blocks import Block, Own, Rows, read_blocks, read_rows, require_agreement
from klaw_fts5.packed.state import PackedState
from klaw_fts5.packed.view import BlockView, make_view
from klaw_fts5.sql import PackedStatements
from klaw_words.caching import Kept
from klaw_words.scoring import TermScores

# Cached rows take 10 bytes each (10 MB for a million chunks), postings 12 bytes each. A view has 16 bytes per row.
_ROWS_BYTES = 24 << 20
_WORDS_BYTES = 32 << 20


@frozen(eq=False)
class TermBounds:
    """The least and the largest possible number of a term's live rows; ``scored`` is set when its postings are read."""

    least: int
    most: int
    own: Own
    scored: TermScores | None = None

    @property
    def nbytes(self) -> int:
        """Return the approximate size in bytes."""
        return 1024 if self.scored is None else self.scored.nbytes


class Cache:
    """The cache for all threads and connections.

    A block has a random number and its rows never change; every change gives a state a new random stamp. Therefore data
    that is cached by number or stamp is valid in every snapshot and file, even after writes of other processes.
    """

    def __init__(self) -> None:
        self._rows = Kept(_ROWS_BYTES)
        self._views: dict[str, tuple[bytes, BlockView]] = {}
        self._words = Kept(_WORDS_BYTES)

    def view(self, connection: apsw.Connection, sql: PackedStatements, state: PackedState) -> BlockView:
        """Return the view of a state's blocks. Raise DamagedError if they do not match the state."""
        stamp, view = self._views.get(sql.name, (None, None))
        if view is None or stamp != state.stamp:
            blocks = read_blocks(connection, sql)
            before = () if view is None else view.blocks
            view = make_view(blocks, [self.rows(connection, sql, block) for block in blocks])
            self._views[sql.name] = (state.stamp, view)
            self.drop({block.id for block in before} - {block.id for block in blocks})
        if view.rows != state.rows:
            raise DamagedError(f"the packed form has {view.rows} rows and should have {state.rows}")
        return view

    def rows(self, connection: apsw.Connection, sql: PackedStatements, block: Block) -> Rows:
        """Return the rows of a block. Raise DamagedError."""
        rows: Rows | None = self._rows.get(block.id)
        if rows is None:
            rows = read_rows(connection, sql, block)
            self._rows.put(block.id, rows)
        else:
            require_agreement(block, rows)
        return rows

    def drop(self, blocks: Iterable[int]) -> None:
        """Drop blocks that were merged. A reader of an older snapshot reads them again."""
        self._rows.drop(blocks)

    def words(self, scope: Hashable, terms: Iterable[int]) -> dict[int, TermBounds]:
        """Return the cached terms in ``scope``, which consists of a state's stamp and everything scores depend on."""
        asked = list(terms)
        found = self._words.get_all([(scope, term) for term in asked])
        return {term: held for term, held in zip(asked, found, strict=True) if held is not None}

    def keep_words(self, scope: Hashable, words: Mapping[int, TermBounds]) -> None:
        """Cache terms in ``scope``."""
        for term, held in words.items():
            self._words.put((scope, term), held)
