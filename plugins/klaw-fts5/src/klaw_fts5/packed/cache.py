"""What is kept in memory between questions: rows of blocks, views of states, and words as they score in one view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Generic, Protocol, TypeAlias, TypeVar

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.blocks import Block, Own, Rows, read_blocks, read_rows, require_agreement
from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.state import PackedState
from klaw_fts5.packed.view import View, make_view
from klaw_fts5.sql import PackedStatements

# 10 bytes a row, 12 a posting: with a million chunks 10 MB, and all of this for words. A view has 16 bytes a row.
_ROWS_BYTES = 24 << 20
_WORDS_BYTES = 32 << 20
# Words of questions, about 200 bytes each; more are forgotten all at once.
_MOST_SPELLED = 20_000

#: A word's number, whether it makes pairs with its neighbours, and its term; none where it is not one term.
Spelled: TypeAlias = tuple[int | None, bool, str]


@frozen(eq=False)
class TermScores:
    """A term's living rows, of a view, and what it adds to the score of each; both of shape (living,)."""

    rows: NDArray[np.int32]
    values: NDArray[np.float64]

    def find(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return for each of these rows its place among the term's, and whether it is there."""
        if not len(self.rows):
            return np.zeros(len(rows), np.intp), np.zeros(len(rows), np.bool_)
        places = self.rows.searchsorted(rows)
        return places, self.rows.take(places, mode="clip") == rows


@frozen(eq=False)
class TermBounds:
    """How many living rows of a view hold a term, at least and at most; ``scored`` once its postings were read."""

    least: int
    most: int
    own: Own
    scored: TermScores | None = None

    @property
    def cost(self) -> int:
        """Return about how many bytes this takes."""
        return 1024 if self.scored is None else 1024 + self.scored.rows.nbytes + self.scored.values.nbytes


class _HasCost(Protocol):
    @property
    def cost(self) -> int: ...


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value", bound=_HasCost)


class _CostLru(Generic[_Key, _Value]):
    """Lets go of what was used least recently when the rest costs more than ``most``; never of the last one."""

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._kept: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key) -> _Value | None:
        return self.get_all([key])[0]

    def get_all(self, keys: Sequence[_Key]) -> list[_Value | None]:
        with self._lock:
            values = [self._kept.get(key) for key in keys]
            for key, value in zip(keys, values, strict=True):
                if value is not None:
                    self._kept.move_to_end(key)
            return values

    def put(self, key: _Key, value: _Value) -> None:
        with self._lock:
            old = self._kept.pop(key, None)
            self._kept[key] = value
            self._total += value.cost - (0 if old is None else old.cost)
            while self._total > self._most and len(self._kept) > 1:
                self._total -= self._kept.popitem(last=False)[1].cost

    def drop(self, keys: Iterable[_Key]) -> None:
        with self._lock:
            for key in keys:
                value = self._kept.pop(key, None)
                self._total -= 0 if value is None else value.cost


class Cache:
    """Keeps what was read, for every thread and every connection.

    A block's number is random and its rows never change, and a stamp is random and renewed by every change: what is
    kept under either holds in any snapshot, whatever another process writes, and in any file.
    """

    def __init__(self) -> None:
        self._rows: _CostLru[int, Rows] = _CostLru(_ROWS_BYTES)
        self._views: dict[str, tuple[bytes, View]] = {}
        self._words: _CostLru[Hashable, TermBounds] = _CostLru(_WORDS_BYTES)
        self._spelled: dict[str, Spelled] = {}
        #: Look up what the tokenizer makes of a word; None if it was not asked.
        self.spelled = self._spelled.get

    def view(self, connection: apsw.Connection, sql: PackedStatements, state: PackedState) -> View:
        """Return the blocks as they are in this state. Raise DamagedError if they are not as it says."""
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
        rows = self._rows.get(block.id)
        if rows is None:
            rows = read_rows(connection, sql, block)
            self._rows.put(block.id, rows)
        else:
            require_agreement(block, rows)
        return rows

    def drop(self, blocks: Iterable[int]) -> None:
        """Let go of blocks that were made one with others. Who asks an older snapshot reads them again."""
        self._rows.drop(blocks)

    def keep_spelled(self, word: str, spelled: Spelled) -> None:
        """Keep what the tokenizer says of a word. It says the same in any state and file."""
        if len(self._spelled) >= _MOST_SPELLED:
            self._spelled.clear()
        self._spelled[word] = spelled

    def words(self, scope: Hashable, terms: Iterable[int]) -> dict[int, TermBounds]:
        """Return what is known of these terms in ``scope``: a state's stamp, and all else that scores depend on."""
        asked = list(terms)
        found = self._words.get_all([(scope, term) for term in asked])
        return {term: held for term, held in zip(asked, found, strict=True) if held is not None}

    def keep_words(self, scope: Hashable, words: Mapping[int, TermBounds]) -> None:
        """Keep what was read of terms."""
        for term, held in words.items():
            self._words.put((scope, term), held)
