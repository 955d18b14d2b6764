"""What an engine outside of the store's transactions is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import Keys, Matrix, Vector


@frozen
class TableRecord:
    """The record in klaw.db of a collection's table in the engine.

    ``version`` is the one that a reader needs at least; 0 while the engine has no such table.
    """

    name: str
    dimension: int
    version: int


@frozen(eq=False, repr=False)
class Changes:
    """What a table lacks since its recorded version: row i of ``vectors``, (n, d), has key i and the labels i.

    ``batch`` is a random number above 0 for all of them. A key may be in the table already, with another batch. That
    row must stay, because it is valid again if the transaction is rolled back. Labels are numbers of 64 bits.
    """

    batch: int
    keys: Keys
    vectors: Matrix
    labels: Sequence[Sequence[int]]


@frozen(eq=False, repr=False)
class Wanted:
    """Which rows to search: those with one of ``keys`` (None: all) and, of each set of ``labels``, at least one.

    An engine may ignore the labels: what it returns is compared with the filters again.
    """

    keys: Keys | None = None
    labels: Sequence[frozenset[int]] = ()


@frozen(eq=False, repr=False)
class Found:
    """The rows that a search returned, nearest first: keys and batch numbers, int64 (n,), and cosines, float32 (n,)."""

    keys: Keys
    batches: NDArray[np.int64]
    scores: Vector


class OutsideIndex(ABC):
    """Tables of vectors in an engine that takes no part in the store's transactions. Safe to use from several threads.

    Nothing that an engine has is removed or replaced here, except by :meth:`drop`. Every method raises RetrievalError
    if the engine cannot be reached, or has lost the table.
    """

    @abstractmethod
    def apply(self, table: TableRecord, changes: Changes) -> int:
        """Add the changes, and return the new version of the table, at least 1.

        A table of version 0 is created; one of that name is left from a transaction that was rolled back.
        """

    @abstractmethod
    def nearest(self, table: TableRecord, vector: Vector, limit: int, wanted: Wanted, *, exact: bool) -> Found:
        """Return the rows nearest to a vector, including invalid ones. ``exact``: no approximate index is used."""

    @abstractmethod
    def read_batches(self, table: TableRecord) -> Iterator[tuple[int, int]]:
        """Yield the key and the batch number of every row, including invalid ones."""

    @abstractmethod
    def copy(self, table: TableRecord, name: str, alive: Mapping[int, int]) -> int:
        """Create a table ``name`` of the rows whose key has this batch in ``alive``; return its version."""

    @abstractmethod
    def count(self, table: TableRecord) -> int:
        """Return the number of rows, including invalid ones."""

    @abstractmethod
    def names(self) -> set[str]:
        """Return the names of all tables, also those of other data directories."""

    @abstractmethod
    def last_written(self, name: str) -> datetime:
        """Return the time, with a time zone, after which a table was not written; later if it is unknown."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a table and its data, if it exists."""

    def settle(self, table: TableRecord) -> int:
        """Build or update an approximate index if it is worthwhile; return the new version of the table."""
        return table.version
