"""What the tests of quantized vectors share: a crowd of vectors, and a database with an index of one's own."""

import apsw
import numpy as np
import pytest

from klaw_core import VectorSpace

SPACE = VectorSpace("test", "1", 48)
MANY = 6_000


@pytest.fixture(scope="module")
def crowd():
    """Return vectors that stand in groups, all of them roughly in one direction, as those of the e5 models do."""
    random = np.random.default_rng(3)
    groups = random.standard_normal((300, SPACE.dimension))
    rows = groups[random.integers(0, 300, MANY)] + 0.6 * random.standard_normal((MANY, SPACE.dimension)) + 1.5
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens the database with an index of its own."""
    connections = []

    def connect(index):
        connection = apsw.Connection(str(tmp_path / "klaw.db"))
        connections.append(connection)
        connection.pragma("synchronous", 0)
        index.prepare(connection)
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'quantized_forms'").fetchone():
            for migration in index.migrations():
                migration.apply(connection)
            index.reset(connection, "memory", SPACE)
        return connection

    yield connect
    for connection in connections:
        connection.close()
