"""Samples of the vectors in vec0 tables, cached until the file changes."""

from functools import partial
from weakref import WeakKeyDictionary

import apsw
from attrs import define, field

from klaw_core import Matrix, ThreadLock
from klaw_store_sqlitevec.exact import read_sample

_READING = apsw.SQLITE_TXN_READ


@define(eq=False)
class _Kept:
    """The samples that one connection has read at one version of the file, by collection and dimension."""

    version: tuple[int, int]
    samples: dict[tuple[str, int], Matrix] = field(factory=dict)


@define(eq=False)
class SampleCache:
    """Reads at most ``most`` vectors of a table, once per connection and version of the file.

    The version changes when another connection has changed the file, and is constant during a snapshot
    (https://sqlite.org/pragma.html#pragma_data_version). The connection's own changes are counted separately. Inside a
    write transaction, which may be rolled back, nothing is cached.
    """

    _most: int
    _kept: WeakKeyDictionary[apsw.Connection, _Kept] = field(factory=WeakKeyDictionary, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the samples of vectors"), init=False)

    def get(self, connection: apsw.Connection, collection: str, dimension: int) -> Matrix:
        """Return vectors spread over a collection's table, float32 of shape (n, d)."""
        if connection.txn_state("main") != _READING:
            return read_sample(connection, collection, dimension, self._most)
        version = int(connection.execute("PRAGMA data_version").get), connection.total_changes()
        with self._lock.hold():
            kept = self._kept.get(connection)
            if kept is None or kept.version != version:
                kept = self._kept[connection] = _Kept(version)
        sample = kept.samples.get((collection, dimension))
        if sample is None:
            sample = read_sample(connection, collection, dimension, self._most)
            kept.samples[collection, dimension] = sample
        return sample
