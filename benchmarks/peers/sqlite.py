"""sqlite-vec as its documentation shows it: alone, and beside FTS5 as in most hybrid searches in SQLite.

Klaw's own SQLite runs them, so that the designs are compared and not two versions of the library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw
import sqlite_vec
from corpus import Embedded, Matrix, Vector

from peers import DEPTH, Peer, fuse

_BATCH = 1000
_NEAREST = "SELECT rowid FROM vectors WHERE embedding MATCH ? AND k = ? ORDER BY distance"


class SqliteVec(Peer):
    """A table of texts and vec0's float32 vectors: no words."""

    summary = "vec0 float32, no words"
    ranks_words = False
    schema = """
        CREATE TABLE texts (id INTEGER PRIMARY KEY, content TEXT NOT NULL);
        CREATE VIRTUAL TABLE vectors USING vec0(embedding float[{dimension}]);
    """

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Insert rows, a transaction for each thousand."""
        connection = self._connect()
        connection.execute(self.schema.format(dimension=vectors.shape[1]))
        for first in range(0, len(texts), _BATCH):
            numbers = range(first, min(first + _BATCH, len(texts)))
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO texts VALUES (?, ?)", ((n, texts[n]) for n in numbers))
            connection.executemany(
                "INSERT INTO vectors(rowid, embedding) VALUES (?, ?)", ((n, vectors[n].tobytes()) for n in numbers)
            )
            connection.execute("COMMIT")
        connection.close()

    def open(self, questions: Embedded) -> None:
        """Open the file."""
        del questions
        self._connection = self._connect()

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Return the texts of the nearest vectors."""
        return self._texts(self.nearest(question, vector, limit))

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Scan all vectors."""
        del question
        return [number for (number,) in self._connection.execute(_NEAREST, (vector.tobytes(), limit))]

    def _texts(self, numbers: Sequence[int]) -> list[str]:
        one = "SELECT content FROM texts WHERE id = ?"
        return [content for number in numbers for (content,) in self._connection.execute(one, (number,))]

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.place / "naive.db"))
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        return connection


class Naive(SqliteVec):
    """Also an external-content FTS5 table that triggers keep in step, and reciprocal rank fusion."""

    summary = "vec0 float32 + FTS5 with triggers, OR of all words, ORDER BY rank, RRF"
    ranks_words = True
    schema = (
        SqliteVec.schema
        + """
        CREATE VIRTUAL TABLE words USING fts5(
            content, content='texts', content_rowid='id', tokenize='porter unicode61'
        );
        CREATE TRIGGER texts_insert AFTER INSERT ON texts BEGIN
            INSERT INTO words(rowid, content) VALUES (new.id, new.content);
        END;
        CREATE TRIGGER texts_delete AFTER DELETE ON texts BEGIN
            INSERT INTO words(words, rowid, content) VALUES ('delete', old.id, old.content);
        END;
        CREATE TRIGGER texts_update AFTER UPDATE ON texts BEGIN
            INSERT INTO words(words, rowid, content) VALUES ('delete', old.id, old.content);
            INSERT INTO words(rowid, content) VALUES (new.id, new.content);
        END;
    """
    )

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Ask both tables, fuse, and fetch the texts."""
        terms = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        ranked = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
        words = [number for (number,) in self._connection.execute(ranked, (terms, DEPTH))]
        return self._texts(fuse([self.nearest(question, vector, DEPTH), words], limit))
