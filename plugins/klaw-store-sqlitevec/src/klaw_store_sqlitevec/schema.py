"""The tables that the store owns, and the migrations that create and change them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import apsw
from attrs import evolve, frozen

from klaw_core import Migration, StoreError
from klaw_store_sqlitevec.checksums import add_checksums
from klaw_store_sqlitevec.conversations import CONVERSATIONS, WORDS, refill_words
from klaw_store_sqlitevec.errors import damaged
from klaw_store_sqlitevec.metadata import TABLES as METADATA_TABLES
from klaw_store_sqlitevec.metadata import add_compared, replace_compared
from klaw_store_sqlitevec.names import table_name

if TYPE_CHECKING:
    from klaw_core import Chunk, Document

#: Marks the file as Klaw's (``PRAGMA application_id``): the letters "Klaw".
APPLICATION_ID = 0x4B6C6177

#: The oldest SQLite that may write the file: 3.7.0 to 3.51.2 can corrupt a write-ahead log when it is reset.
OLDEST_SQLITE = (3, 51, 3)

OWNER = "sqlite"

_CHUNKS_PER_READ = 1024  # a few megabytes of text

_MIGRATIONS_TABLE = """
CREATE TABLE IF NOT EXISTS klaw_migrations (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
    PRIMARY KEY (owner, name)
) WITHOUT ROWID
"""

# The columns that the chunk tables of all collections have.
_SHARED_COLUMNS = """
    created_at TEXT NOT NULL,
    updated_at TEXT,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    chunk_id TEXT NOT NULL,
    start_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    heading TEXT NOT NULL,      -- a JSON array of strings, outermost first
    continues TEXT
"""

_BEGINNING = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    path TEXT NOT NULL,
    origin TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (collection, path)
);
CREATE INDEX documents_origin ON documents (collection, origin);

CREATE TABLE memory_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    chat_id TEXT,
    content TEXT NOT NULL,
    {shared}
);
CREATE TABLE doc_chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL,
    section TEXT,
    content TEXT NOT NULL,
    version TEXT NOT NULL,
    {shared}
);
CREATE INDEX memory_chunks_document ON memory_chunks (document_id, start_offset);
CREATE INDEX memory_chunks_chunk_id ON memory_chunks (chunk_id);
CREATE INDEX memory_chunks_source ON memory_chunks (source);
CREATE INDEX memory_chunks_chat ON memory_chunks (chat_id) WHERE chat_id IS NOT NULL;
CREATE INDEX memory_chunks_created ON memory_chunks (created_at);
CREATE INDEX doc_chunks_document ON doc_chunks (document_id, start_offset);
CREATE INDEX doc_chunks_chunk_id ON doc_chunks (chunk_id);
CREATE INDEX doc_chunks_file ON doc_chunks (file);

CREATE TABLE vector_spaces (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    revision TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    metric TEXT NOT NULL,
    pooling TEXT NOT NULL,
    UNIQUE (model, revision, dimension, metric, pooling)
);
CREATE TABLE collection_spaces (
    collection TEXT PRIMARY KEY,
    space_id INTEGER NOT NULL REFERENCES vector_spaces (id),
    probe BLOB NOT NULL         -- the probe sentence's vector, float32, little-endian
) WITHOUT ROWID;
CREATE TABLE embedding_cache (
    id INTEGER PRIMARY KEY,
    space_id INTEGER NOT NULL REFERENCES vector_spaces (id) ON DELETE CASCADE,
    hash BLOB NOT NULL,         -- SHA-256 of the embedded text
    vector BLOB NOT NULL,       -- float16, little-endian (float32 until 0005)
    UNIQUE (space_id, hash)
);
"""


# A table of its own, so that recording a use writes a row of a few bytes and not one with a vector.
_CACHE_USES = """
CREATE TABLE cache_uses (
    id INTEGER PRIMARY KEY REFERENCES embedding_cache (id) ON DELETE CASCADE,
    used_at INTEGER NOT NULL    -- microseconds since 1970
);
CREATE INDEX cache_uses_order ON cache_uses (used_at, id);
CREATE TABLE cache_counts (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    found INTEGER NOT NULL,
    computed INTEGER NOT NULL
);
INSERT INTO cache_uses (id, used_at) SELECT id, CAST(strftime('%s') AS INTEGER) * 1000000 FROM embedding_cache;
"""


# The text just before the chunk in its document; chunks from before this column have none.
_CONTEXT = """
ALTER TABLE memory_chunks ADD COLUMN context TEXT NOT NULL DEFAULT '';
ALTER TABLE doc_chunks ADD COLUMN context TEXT NOT NULL DEFAULT '';
"""


# The same table as ``memory_chunks`` after all migrations. A migration of that table must also change all of these.
_OPEN_CHUNKS = """
CREATE TABLE {table} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    chat_id TEXT,
    content TEXT NOT NULL,
    {shared}, context TEXT NOT NULL DEFAULT '', checksum INTEGER, embedding_hash BLOB
);
CREATE INDEX {table}_document ON {table} (document_id, start_offset);
CREATE INDEX {table}_chunk_id ON {table} (chunk_id);
CREATE INDEX {table}_source ON {table} (source);
CREATE INDEX {table}_chat ON {table} (chat_id) WHERE chat_id IS NOT NULL;
CREATE INDEX {table}_created ON {table} (created_at);
"""

_COLLECTIONS = """
CREATE TABLE collections (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
INSERT INTO collections (name)
    SELECT collection FROM documents UNION SELECT collection FROM collection_spaces
    UNION SELECT 'memory' FROM sqlite_sequence WHERE name = 'memory_chunks'
    UNION SELECT 'docs' FROM sqlite_sequence WHERE name = 'doc_chunks';
"""


# The documents of the cached vectors of a space that is being built. Its texts may be chunked differently than in the
# current index, so forgetting a document cannot find these vectors by the current chunks.
_CACHE_DOCUMENTS = """
CREATE TABLE cache_documents (
    collection TEXT NOT NULL,
    path TEXT NOT NULL,
    id INTEGER NOT NULL REFERENCES embedding_cache (id) ON DELETE CASCADE,
    PRIMARY KEY (collection, path, id)
) WITHOUT ROWID;
CREATE INDEX cache_documents_id ON cache_documents (id);
"""


def _create_initial_tables(connection: apsw.Connection) -> None:
    connection.execute(_BEGINNING.format(shared=_SHARED_COLUMNS.strip()))


def _note_uses(connection: apsw.Connection) -> None:
    connection.execute(_CACHE_USES)


def _add_context(connection: apsw.Connection) -> None:
    connection.execute(_CONTEXT)


def _halve_cache(connection: apsw.Connection) -> None:
    """Convert every cached vector to half precision. Damaged vectors stay, so that the doctor finds them."""
    import numpy as np

    def halve(*values: Any) -> Any:
        (blob,) = values
        return blob if len(blob) % 4 else np.frombuffer(blob, "<f4").astype("<f2").tobytes()

    connection.create_scalar_function("klaw_halve", halve, 1)
    try:
        connection.execute("UPDATE embedding_cache SET vector = klaw_halve(vector)")
    finally:
        connection.create_scalar_function("klaw_halve", None, 1)


def _index_dates_of_docs(connection: apsw.Connection) -> None:
    connection.execute("CREATE INDEX doc_chunks_created ON doc_chunks (created_at)")


def _list_collections(connection: apsw.Connection) -> None:
    connection.execute(_COLLECTIONS)


def _add_titles(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE documents ADD COLUMN title TEXT NOT NULL DEFAULT ''")


def _add_metadata(connection: apsw.Connection) -> None:
    connection.execute(METADATA_TABLES)


def _add_checksums(connection: apsw.Connection) -> None:
    names: list[Any] = connection.execute("SELECT name FROM collections").fetchall()
    others = {chunk_table(name).name for (name,) in names}
    for table in dict.fromkeys(("memory_chunks", "doc_chunks", *sorted(others))):
        add_checksums(connection, table)
    connection.execute("ALTER TABLE message_files ADD COLUMN checksum INTEGER")
    connection.execute(_CACHE_DOCUMENTS)


def _add_seen(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE documents ADD COLUMN seen TEXT NOT NULL DEFAULT ''")


def _index_dates(connection: apsw.Connection) -> None:
    connection.execute("CREATE INDEX documents_created ON documents (collection, created_at)")


def _add_embedding_hashes(connection: apsw.Connection) -> None:
    """Add the column, and fill it. A damaged row, of which the doctor tells, gets none."""
    from klaw_store_sqlitevec.snapshot import SqliteSnapshot

    names: list[Any] = connection.execute("SELECT name FROM collections").fetchall()
    collections = dict.fromkeys(("memory", "docs", *(name for (name,) in names)))
    snapshot = SqliteSnapshot(connection)
    for collection in collections:
        table = chunk_table(collection).name
        connection.execute(f"ALTER TABLE {table} ADD COLUMN embedding_hash BLOB")
        keys = snapshot.keys(collection).tolist()
        for first in range(0, len(keys), _CHUNKS_PER_READ):
            stored = snapshot.chunks(collection, keys[first : first + _CHUNKS_PER_READ])
            rows = ((bytes.fromhex(each.chunk.embedding_hash), each.key) for each in stored)
            connection.executemany(f"UPDATE {table} SET embedding_hash = ? WHERE id = ?", rows)


#: Append-only: a released migration is never changed.
MIGRATIONS = (
    Migration("0001-documents-chunks-spaces-cache", _create_initial_tables),
    CONVERSATIONS,
    Migration("0003-cache-uses", _note_uses),
    Migration("0004-context", _add_context),
    Migration("0005-half-precision-cache", _halve_cache),
    Migration("0006-dates-of-docs", _index_dates_of_docs),
    Migration("0007-collections", _list_collections),
    Migration("0008-metadata", _add_metadata),
    Migration("0009-titles", _add_titles),
    WORDS,
    Migration("0011-checksums", _add_checksums),
    Migration("0012-seen", _add_seen),
    Migration("0013-dates-of-documents", _index_dates),
    Migration("0014-numbers-in-metadata", add_compared),
    Migration("0015-embedding-hashes", _add_embedding_hashes),
    Migration("0016-parents-of-tags", add_compared),
    Migration("0017-names-like-function-words", refill_words),
    Migration("0018-metadata-without-case", replace_compared),
)


@frozen(eq=False, repr=False)
class ChunkTable:
    """The table of a collection's chunks.

    ``source`` and ``chat`` are the expressions for these fields of a result. ``labels`` and ``own`` return the values
    of columns that only this table has: those from the document, and those of each chunk.
    """

    name: str
    source: str
    chat: str
    labels: Callable[[Document], Mapping[str, str | None]]
    own: Callable[[Chunk], Mapping[str, str | None]] = lambda _: {}


#: The tables that are created with the file.
STANDARD_CHUNKS = {
    "memory": ChunkTable(
        table_name("memory", "chunks"),
        source="chunk.source",
        chat="chunk.chat_id",
        labels=lambda document: {"source": document.source, "chat_id": document.chat_id},
    ),
    "docs": ChunkTable(
        table_name("docs", "chunks"),
        source="chunk.file",
        chat="NULL",
        labels=lambda document: {"file": document.source, "version": document.version},
        own=lambda chunk: {"section": " > ".join(chunk.heading) or None},
    ),
}


@lru_cache(maxsize=256)
def chunk_table(collection: str) -> ChunkTable:
    """Return the table of a collection's chunks, whether it exists or not. Raise QueryError for an invalid name."""
    standard = STANDARD_CHUNKS.get(collection)
    return standard or evolve(STANDARD_CHUNKS["memory"], name=table_name(collection, "chunks"))


def create_chunks(connection: apsw.Connection, table: ChunkTable) -> None:
    """Create the table of a collection's chunks."""
    connection.execute(_OPEN_CHUNKS.format(table=table.name, shared=_SHARED_COLUMNS.strip()))


@frozen(eq=False, repr=False)
class OwnedMigrations:
    """Migrations and their owner: the store, or an index."""

    owner: str
    migrations: tuple[Migration[apsw.Connection], ...]


class ForeignFileError(StoreError):
    """The file belongs to another program, or to a newer version, and cannot be used."""


def check_file(connection: apsw.Connection, location: str) -> None:
    """Raise ForeignFileError if the file belongs to another program; mark a new file as Klaw's."""
    found = connection.pragma("application_id")
    if found == APPLICATION_ID:
        return
    if found != 0 or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        if _has_migrations(connection):
            raise damaged(location, "has a damaged header")
        raise ForeignFileError(
            f"{location} is a database of another program", hint="choose another file: memory.store.path"
        )
    connection.pragma("application_id", APPLICATION_ID)


def _has_migrations(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'klaw_migrations'").fetchone() is not None


def pending(connection: apsw.Connection, owned: OwnedMigrations, location: str) -> list[Migration[apsw.Connection]]:
    """Return the migrations that are not applied yet.

    Raise ForeignFileError if the file has newer ones, DatabaseCorruptError if it has unknown ones and lacks known ones.
    """
    sql = "SELECT name FROM klaw_migrations WHERE owner = ?"
    rows = connection.execute(sql, (owned.owner,)) if _has_migrations(connection) else ()
    applied = {name for (name,) in rows}
    names = [migration.name for migration in owned.migrations]
    unknown = applied.difference(names)
    if unknown and not applied.issuperset(names):  # a newer version has applied all of them
        raise damaged(location, f"has a damaged list of the migrations of {owned.owner!r}")
    if unknown:
        from klaw_core import update_command

        raise ForeignFileError(
            f"{location} was written by a newer version of {owned.owner!r} ({', '.join(sorted(unknown))})",
            hint=f"`{update_command()}`, then the plugin that brings {owned.owner!r}: `klaw plugins` names it",
        )
    return [migration for migration in owned.migrations if migration.name not in applied]


def migrate(connection: apsw.Connection, owned: OwnedMigrations, location: str) -> None:
    """Apply and record the pending migrations, inside the caller's write transaction.

    Raise DatabaseCorruptError if one of the store's own does not fit the tables, because it was applied before.
    """
    connection.execute(_MIGRATIONS_TABLE)
    for migration in pending(connection, owned, location):
        try:
            migration.apply(connection)
        except (apsw.SQLError, apsw.ConstraintError) as error:
            if owned.owner != OWNER:
                raise
            raise damaged(location, f"has a damaged list of migrations: {migration.name}: {error}") from error
        sql = "INSERT INTO klaw_migrations (owner, name) VALUES (?, ?)"
        connection.execute(sql, (owned.owner, migration.name))
