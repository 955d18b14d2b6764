"""What the tests of indexes that keep their vectors outside of klaw.db share: memories as processes have them, laws."""

import apsw
import numpy as np
from attrs import evolve

from klaw_core import Query, VectorSpace
from klaw_testing.index import stored

SPACE = VectorSpace("made-up", "1", 16)


def vector(key):
    """Return the vector of a key, of unit length."""
    row = np.random.default_rng(key).standard_normal(SPACE.dimension)
    return (row / np.linalg.norm(row)).astype(np.float32)


class OutsideMemory:
    """An index and a connection to klaw.db, as one process has them. Odd keys are in ``b/``, others in ``a/``."""

    def __init__(self, index, root):
        self.index = index
        self.connection = apsw.Connection(str(root / "klaw.db"))
        self.index.prepare(self.connection)

    def make(self):
        for migration in self.index.migrations():
            migration.apply(self.connection)
        self.index.reset(self.connection, "memory", SPACE)
        return self

    def add(self, keys):
        chunks = [evolve(stored(key, f"text {key}"), path=f"{'ab'[key % 2]}/{key}.md") for key in keys]
        with self.connection:
            self.index.add(self.connection, "memory", chunks, np.stack([vector(chunk.key) for chunk in chunks]))

    def remove(self, keys):
        with self.connection:
            self.index.remove(self.connection, "memory", list(keys))

    def erase(self):
        self.index.erase(self.connection, "memory")

    def nearest(self, key, limit=5, within=None):
        hits = self.index.search(self.connection, Query("", "memory", vector(key), within), limit)
        return [hit.key for hit in hits]

    def check(self):
        return list(self.index.check(self.connection, "memory", SPACE))

    def close(self):
        self.connection.close()


def processes(open_process):
    """Yield a function that opens the memory of a test as another process would; the first one makes it."""
    opened = []

    def open_memory(**options):
        memory = open_process(**options)
        if not opened:
            memory.make()
        opened.append(memory)
        return memory

    yield open_memory
    for memory in opened:
        memory.close()


class TransactionLaws:
    """The laws of transactions; the test module defines the fixture ``process``."""

    def test_a_batch_that_was_rolled_back_is_never_found(self, process):
        memory = process()
        memory.add(range(1, 7))
        memory.connection.execute("BEGIN IMMEDIATE")
        memory.add(range(10, 20))
        assert memory.nearest(12)[0] == 12
        memory.connection.execute("ROLLBACK")
        assert set(memory.nearest(12, 50)) == set(range(1, 7))
        memory.add([12])
        assert memory.nearest(12)[0] == 12
        assert len(memory.nearest(12, 50)) == 7

    def test_a_rolled_back_first_batch_does_not_block_the_next(self, process):
        memory = process()
        memory.connection.execute("BEGIN IMMEDIATE")
        memory.add(range(1, 10))
        memory.connection.execute("ROLLBACK")
        memory.add(range(1, 30))
        assert memory.index.limitation == ""
        for reader in (memory, process()):
            assert sorted(reader.nearest(1, 50)) == list(range(1, 30))
        assert memory.check() == []

    def test_another_process_finds_later_batches(self, process):
        writer, reader = process(), process()
        for first in range(1, 60, 10):
            writer.add(range(first, first + 10))
            assert reader.nearest(first)[0] == first
        assert reader.check() == []
