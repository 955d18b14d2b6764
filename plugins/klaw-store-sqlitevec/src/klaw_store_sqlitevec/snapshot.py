"""Snapshots: consistent reads of the rows.

numpy and the code for filters are imported where they are used, because a search by words alone needs neither.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import apsw
from attrs import field, frozen

from klaw_core import Chunk, SpaceRecord, StoredChunk, VectorSpace
from klaw_store_sqlitevec.checksums import checksum
from klaw_store_sqlitevec.limits import clamp
from klaw_store_sqlitevec.metadata import from_json
from klaw_store_sqlitevec.names import has_table, is_collection_name
from klaw_store_sqlitevec.schema import STANDARD_CHUNKS, ChunkTable, chunk_table
from klaw_store_sqlitevec.text_codec import decompress_text
from klaw_store_sqlitevec.timestamps import UNKNOWN, from_text, to_text
from klaw_store_sqlitevec.vector_codec import VECTOR_COLUMN, decode_vector

if TYPE_CHECKING:
    from datetime import datetime

    from klaw_core import ChunkSelection, DocumentRecord, Filters, KeyDigest, Keys, Vector
    from klaw_store_sqlitevec.conversations import SqliteMessages

# Chunks per check: some megabytes.
_CHECKED_AT_ONCE = 1024
# Documents of one origin, of which the newest are found by sorting all.
_MAX_SORTED = 1024
_PROBE_BYTES = 4
# A document whose path or origin is not text is damaged, and is left out; `klaw doctor` counts these documents.
SOUND_DOCUMENT = "typeof(path) = 'text' AND typeof(origin) = 'text'"
# The stored `seen` of a document, empty if it or a chunk is damaged, so that the next index run reads the file.
_SEEN = "iif(content_hash <> '' AND julianday(created_at) IS NOT NULL, seen, '')"

_CHUNK_COLUMNS = """
    chunk.id, chunk.chunk_id, chunk.content, chunk.start_offset, chunk.end_offset, chunk.start_line, chunk.end_line,
    chunk.heading, chunk.continues, chunk.context, chunk.checksum,
    document.path, {source}, chunk.created_at, {chat}, document.origin, document.metadata, document.title
"""


@frozen(eq=False, repr=False)
class SqliteSnapshot:
    """A read transaction. ``resource`` is the connection that indexes use for reading."""

    resource: apsw.Connection
    # Whether the tables of a collection other than the standard ones exist.
    _made: dict[str, bool] = field(factory=dict, init=False)

    @property
    def messages(self) -> SqliteMessages:
        """Return the rows of conversations."""
        from klaw_store_sqlitevec.conversations import SqliteMessages

        return SqliteMessages(self.resource)

    def collections(self) -> Sequence[str]:
        """Return the names of the collections that were ever written to, sorted."""
        rows: Any = self.resource.execute("SELECT name FROM collections ORDER BY name")
        return [name for (name,) in rows if is_collection_name(name)]  # the others are damaged

    def is_empty(self, collection: str, /) -> bool:
        """Return whether a collection has no chunks."""
        table = self._table(collection)
        return table is None or not self.resource.execute(f"SELECT EXISTS (SELECT 1 FROM {table.name})").get

    def documents(self, collection: str, prefix: str, after: str, limit: int, /) -> Sequence[DocumentRecord]:
        """Return documents sorted by path: those that begin with ``prefix`` and come after ``after``."""
        from klaw_store_sqlitevec.filtering import path_range

        first, end = path_range(prefix)
        rows = self.resource.execute(
            f"SELECT path, origin, content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE collection = ? AND path > ? AND path >= ? AND path < ? AND {SOUND_DOCUMENT} ORDER BY path LIMIT ?",
            (collection, after, first, end, clamp(limit)),
        )
        return tuple(_record(*row) for row in rows)

    def newest(
        self, collection: str, limit: int, /, *, origin: str | None = None, since: datetime | None = None
    ) -> Sequence[DocumentRecord]:
        """Return the newest documents, newest first; those with a damaged date are left out."""
        # "+" keeps SQLite from reading by the index of dates, in which the documents of a rare origin are far apart.
        date = "+created_at" if origin is not None and self._is_rare(collection, origin) else "created_at"
        conditions = [("collection = ?", collection), ("origin = ?", origin)]
        conditions.append((f"{date} >= ?", None if since is None else to_text(since)))
        given = [(condition, value) for condition, value in conditions if value is not None]
        rows = self.resource.execute(
            f"SELECT path, origin, content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE {' AND '.join(condition for condition, _ in given)} AND julianday(created_at) IS NOT NULL "
            f"AND {SOUND_DOCUMENT} "
            f"ORDER BY {date} DESC, path LIMIT ?",
            (*(value for _, value in given), clamp(limit)),
        )
        return tuple(_record(*row) for row in rows)

    def _is_rare(self, collection: str, origin: str) -> bool:
        """Return whether so few documents have an origin that sorting them is faster than searching by date."""
        sql = "SELECT 1 FROM documents WHERE collection = ? AND origin = ? LIMIT 1 OFFSET ?"
        return self.resource.execute(sql, (collection, origin, _MAX_SORTED)).fetchone() is None

    def manifest(self, collection: str, origin: str, /) -> Mapping[str, DocumentRecord]:
        """Return the indexed documents of one origin, by path."""
        from klaw_core.values.documents import RecordedDocuments

        rows: Iterator[Any] = self.resource.execute(
            f"SELECT path, content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE collection = ? AND origin = ? AND {SOUND_DOCUMENT}",
            (collection, origin),
        )
        return RecordedDocuments({row[0]: row for row in rows}, lambda path, row: _record(path, origin, *row[1:]))

    def manifest_digest(self, collection: str, origin: str, /) -> tuple[int, int]:
        """Return the number of documents of an origin, and a number that depends on their rows and content hashes."""
        digits = (f"(instr('0123456789abcdef', substr(content_hash, {at}, 1)) << {4 * at})" for at in range(1, 9))
        row: Any = self.resource.execute(
            f"SELECT COUNT(*), COALESCE(SUM((id * 2654435761 + {' + '.join(digits)}) & 0xffffffffff), 0) "
            "FROM documents WHERE collection = ? AND origin = ?",
            (collection, origin),
        ).fetchone()
        return row[0], row[1]

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return the manifest's record of one path."""
        row = self.resource.execute(
            f"SELECT content_hash, created_at, {_SEEN} FROM documents WHERE collection = ? AND path = ? AND origin = ?",
            (collection, path, origin),
        ).fetchone()
        return None if row is None else _record(path, origin, *row)

    def select(self, collection: str, filters: Filters, /) -> ChunkSelection:
        """Return the chunks that pass the filters, as a selection of keys."""
        from klaw_store_sqlitevec.filtering import FilteredSelection, no_keys, select

        table = self._table(collection)
        keys = no_keys() if table is None else select(self.resource, table, collection, filters)
        return FilteredSelection(keys, filters)

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the order given; unknown keys are left out."""
        if not keys:
            return ()
        wanted = apsw.carray(array("q", keys))
        rows = self._rows(collection, "chunk.id IN (SELECT value FROM carray(?))", (wanted,))
        found = {stored.key: stored for stored in rows}
        return tuple(found[key] for key in keys if key in found)

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key; unknown keys are left out."""
        table = self._table(collection)
        if not keys or table is None:
            return {}
        sql = f"SELECT id, chunk_id FROM {table.name} WHERE id IN (SELECT value FROM carray(?))"
        rows: Iterator[Any] = self.resource.execute(sql, (apsw.carray(array("q", keys)),))
        return dict(rows)

    def texts(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the text of the chunk of each key; unknown keys are left out. Checksums are not compared."""
        table = self._table(collection)
        if not keys or table is None:
            return {}
        sql = f"SELECT id, content FROM {table.name} WHERE id IN (SELECT value FROM carray(?))"
        try:
            found = dict(self.resource.execute(sql, (apsw.carray(array("q", keys)),)))
            return {key: text if type(text) is str else decompress_text(text) for key, text in found.items()}
        except (UnicodeDecodeError, TypeError, ValueError):  # a row is damaged
            return {stored.key: stored.chunk.text for stored in self.chunks(collection, keys)}

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position; empty if it is not indexed."""
        where = "document.collection = ? AND document.path = ? ORDER BY chunk.start_offset, chunk.id"
        return self._rows(collection, where, (collection, path))

    def damaged(self, collection: str, path: str | None = None, /) -> Sequence[int]:
        """Return the keys of chunks with damaged rows, of one document or of all."""
        table = self._table(collection)
        if table is None:
            return ()
        joined = f"{table.name} AS chunk JOIN documents AS document ON document.id = chunk.document_id"
        where, values = (
            ("TRUE", ()) if path is None else ("document.collection = ? AND document.path = ?", (collection, path))
        )
        sql = f"SELECT chunk.id FROM {joined} WHERE {where} ORDER BY chunk.id"
        rows: list[Any] = self.resource.execute(sql, values).fetchall()
        keys = [key for (key,) in rows]
        sound: set[int] = set()
        for first in range(0, len(keys), _CHECKED_AT_ONCE):
            sound.update(stored.key for stored in self.chunks(collection, keys[first : first + _CHECKED_AT_ONCE]))
        return [key for key in keys if key not in sound]

    def find(self, collection: str, chunk_id: str, /) -> Sequence[StoredChunk]:
        """Return the chunks whose id begins with ``chunk_id``."""
        from klaw_store_sqlitevec.filtering import LAST_CHARACTER

        return self._rows(
            collection, "chunk.chunk_id >= ? AND chunk.chunk_id < ?", (chunk_id, chunk_id + LAST_CHARACTER)
        )

    def keys(self, collection: str, /) -> Keys:
        """Return every chunk's key, ascending."""
        from klaw_store_sqlitevec.filtering import no_keys, read_keys

        table = self._table(collection)
        return no_keys() if table is None else read_keys(self.resource, f"{table.name} AS chunk")

    def key_digest(self, collection: str, /) -> KeyDigest:
        """Return the digest of the keys."""
        from klaw_core import KeyDigest
        from klaw_store_sqlitevec.key_digests import read_key_digest

        table = self._table(collection)
        return KeyDigest() if table is None else read_key_digest(self.resource, table.name, "id")

    def count(self, collection: str, /) -> int:
        """Return the number of chunks. SQLite counts them without reading the rows."""
        table = self._table(collection)
        return 0 if table is None else int(self.resource.execute(f"SELECT COUNT(*) FROM {table.name}").get)

    def space(self, collection: str, /) -> SpaceRecord | None:
        """Return the vector space the collection was indexed in, or None if there is none yet."""
        row = self.resource.execute(
            """SELECT model, revision, dimension, metric, pooling, probe
               FROM collection_spaces JOIN vector_spaces ON vector_spaces.id = space_id WHERE collection = ?""",
            (collection,),
        ).fetchone()
        return None if row is None else _space_record(*row)

    def cached_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the cached vectors among these chunk hashes."""
        space_id = self.space_id(space)
        if space_id is None or not hashes:
            return {}
        sql = f"""
            SELECT hash, {VECTOR_COLUMN} FROM embedding_cache
            WHERE space_id = ? AND hash IN (SELECT value FROM carray(?))
        """
        wanted = apsw.carray(tuple(bytes.fromhex(digest) for digest in hashes))
        rows = self.resource.execute(sql, (space_id, wanted))
        found = {digest.hex(): decode_vector(blob, space.dimension) for digest, blob in rows}
        return {digest: vector for digest, vector in found.items() if vector is not None}

    def counts(self, collection: str, /) -> Mapping[str, tuple[int, int]]:
        """Return (documents, chunks) by origin."""
        table = self._table(collection)
        if table is None:
            return {}
        sql = f"""
            SELECT document.origin, COUNT(DISTINCT document.id), COUNT(chunk.id)
            FROM documents AS document
            LEFT JOIN {table.name} AS chunk ON chunk.document_id = document.id
            WHERE document.collection = ? AND {SOUND_DOCUMENT} GROUP BY document.origin ORDER BY document.origin
        """
        rows = self.resource.execute(sql, (collection,))
        return {origin: (documents, chunks) for origin, documents, chunks in rows}

    def space_id(self, space: VectorSpace) -> int | None:
        """Return the row id of a vector space; None if it was never used."""
        row = self.resource.execute(
            """SELECT id FROM vector_spaces
               WHERE model = ? AND revision = ? AND dimension = ? AND metric = ? AND pooling = ?""",
            (space.model, space.revision, space.dimension, space.metric, space.pooling),
        ).fetchone()
        return None if row is None else int(row[0])

    def _rows(self, collection: str, where: str, values: tuple[object, ...]) -> tuple[StoredChunk, ...]:
        table = self._table(collection)
        if table is None:
            return ()
        columns = _CHUNK_COLUMNS.format(source=table.source, chat=table.chat)
        joined = f"{table.name} AS chunk JOIN documents AS document ON document.id = chunk.document_id"
        sql = f"SELECT {columns} FROM {joined} WHERE {where}"
        try:
            found = [_stored(row) for row in self.resource.execute(sql, values)]
        except UnicodeDecodeError:  # one row is damaged; read them one by one
            keys: list[Any] = self.resource.execute(f"SELECT chunk.id FROM {joined} WHERE {where}", values).fetchall()
            sql = f"SELECT {columns} FROM {joined} WHERE chunk.id = ?"
            found = [self._read_one(sql, key) for (key,) in keys]
        return tuple(stored for stored in found if stored is not None)

    def _read_one(self, sql: str, key: int) -> StoredChunk | None:
        try:
            return _stored(self.resource.execute(sql, (key,)).fetchone())
        except UnicodeDecodeError:
            return None

    def _table(self, collection: str) -> ChunkTable | None:
        """Return the table of a collection's chunks; None if nothing was ever written to the collection."""
        standard = STANDARD_CHUNKS.get(collection)
        if standard is not None:
            return standard
        table = chunk_table(collection)
        if collection not in self._made:
            self._made[collection] = has_table(self.resource, table.name)
        return table if self._made[collection] else None


def _record(path: str, origin: str, digest: Any, created: Any, seen: Any) -> DocumentRecord:
    """Return a record of the manifest. A document with a damaged row counts as changed and is written again."""
    from klaw_core import DocumentRecord

    try:
        return DocumentRecord(path, origin, digest, from_text(created), seen if isinstance(seen, str) else "")
    except (TypeError, ValueError):
        return DocumentRecord(path, origin, "", UNKNOWN)


def to_vector(blob: bytes) -> Vector:
    """Return the float32 vector of a blob."""
    import numpy as np

    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


@lru_cache(maxsize=16)
def _space_record(*row: Any) -> SpaceRecord | None:
    """Return the record of a space, the same object for the same one: a search compares it with the last search's.

    A damaged record counts as missing: the next index run records the space again, and fills its indexes.
    """
    model, revision, dimension, metric, pooling, probe = row
    texts = (model, revision, metric, pooling)
    if not all(isinstance(text, str) for text in texts) or not isinstance(dimension, int):
        return None
    if not isinstance(probe, bytes) or len(probe) != dimension * _PROBE_BYTES:
        return None
    return SpaceRecord(VectorSpace(*row[:5]), to_vector(probe))


@lru_cache(maxsize=4096)
def _parsed(headings: str) -> tuple[str, ...]:
    """Parse the headings of a chunk. The result is cached, because adjacent chunks and repeated hits share them."""
    return tuple(json.loads(headings))


def _stored(row: Any) -> StoredChunk | None:
    """Return the chunk of a row; None if the row is damaged."""
    key, chunk_id, content, start, end, first, last, headings, continues, context, written, *place = row
    try:
        if type(content) is bytes:
            content = decompress_text(content)
        own = (content, chunk_id, start, end, first, last, headings, continues, context)
        if checksum(own) != written:
            return None
        heading = () if headings == "[]" else _parsed(headings)  # most chunks have none, and parsing is slow
        path, source, created, chat, origin, metadata, title = place
        if not (type(source) is type(path) is type(origin) is type(title) is str and isinstance(chat, str | None)):
            return None
        chunk = Chunk(chunk_id, content, start, end, first, last, heading, continues, context, title)
        return StoredChunk(key, chunk, path, source, from_text(created), chat, origin, from_json(metadata))
    except (TypeError, ValueError):  # a value of another type, or an invalid date
        return None
