"""Checks of the file: permissions, files next to it, and SQLite's own checks."""

import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from klaw_core import Finding, require_own_link
from klaw_store_sqlitevec.copies import copies
from klaw_store_sqlitevec.errors import REINDEX
from klaw_store_sqlitevec.rebuild_lock import SIDE_FILES
from klaw_store_sqlitevec.schema import chunk_table
from klaw_store_sqlitevec.snapshot import SOUND_DOCUMENT, SqliteSnapshot
from klaw_store_sqlitevec.vector_codec import VECTOR_COLUMN, decode_vector

# A checkpoint truncates the log to 64 MiB (journal_size_limit); a log of this size was not checkpointed for long.
_LARGE_LOG_BYTES = 256 << 20
# Required in addition to the space for a rebuild, which is the size of the database.
_SPARE_BYTES = 64 << 20
_PRIVATE = 0o600
_MAX_PROBLEMS = 20
_FIX = "klaw doctor --fix"


def check_modes(database: Path, *, fix: bool) -> Iterator[Finding]:
    """Check that the owner may read the files, and nobody else.

    SQLite gives its side files the mode of the database, but not one that the owner cannot use.
    """
    for suffix in SIDE_FILES:
        path = Path(f"{database}{suffix}")
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            is_wrong = bool(mode & ~_PRIVATE) or not mode & stat.S_IRUSR
            if is_wrong and fix:
                require_own_link(path)
                path.chmod(_PRIVATE)
                continue
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Finding("permissions", "error", f"its permissions cannot be set: {error.strerror}", str(path))
            continue
        if is_wrong:
            who = "other users can access it" if mode & ~_PRIVATE else "its owner cannot read it"
            yield Finding("permissions", "error", f"{who} (mode {mode:03o})", str(path), _FIX)


def check_space(database: Path) -> Iterator[Finding]:
    """Check that the disk has room for the log and for a rebuild."""
    free = shutil.disk_usage(database.parent).free
    needed = database.stat().st_size + _SPARE_BYTES
    if free < needed:
        what = f"{free >> 20:,} MiB are free on its disk; `klaw reindex` needs {needed >> 20:,}"
        yield Finding(
            "disk-space", "error" if free < _SPARE_BYTES else "warning", what, str(database), "free some space"
        )


def check_log(database: Path) -> Iterator[Finding]:
    """Check the size of the write-ahead log."""
    log = Path(f"{database}-wal")
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return
    if size > _LARGE_LOG_BYTES:
        what = f"the log has {size >> 20:,} MiB that are not in the database yet: a program keeps it open"
        yield Finding("log-size", "warning", what, str(log), f"close other programs that use it, then {_FIX}")


def check_leftovers(database: Path, leftovers: Iterable[Path]) -> Iterator[Finding]:
    """Report files that an interrupted rebuild left."""
    paths = sorted(leftovers)
    if paths:
        size = sum(path.stat().st_size for path in paths)
        what = f"an interrupted `klaw reindex` left {size >> 10:,} KiB next to it"
        fix_command = f"`klaw reindex` continues from there, `{_FIX}` removes it"
        yield Finding("leftovers", "warning", what, str(database), fix_command, tuple(map(str, paths)))


def check_copies(database: Path) -> Iterator[Finding]:
    """Report the copies of damaged databases."""
    paths = copies(database)
    if paths:
        what = f"a damaged database was set aside as {', '.join(path.name for path in paths)}"
        fix = "delete what you do not need; `klaw forget` deletes those that are files"
        yield Finding("damaged-copy", "note", what, str(database), fix, tuple(map(str, paths)))


def check_rows(connection: apsw.Connection, location: str) -> Iterator[Finding]:
    """Let SQLite check every page, index and reference. Owners of virtual tables check those themselves."""
    try:
        sql = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL %'"
        virtual = [str(name) for (name,) in connection.execute(sql)]
        lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(100)")]
        problems = [line for line in lines if line != "ok" and not any(name in line for name in virtual)]
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    except apsw.Error as error:
        problems, broken = [str(error)], []
    if problems:
        what = f"SQLite reports damage: {problems[0]}"
        yield Finding("integrity", "error", what, location, REINDEX, tuple(problems[:_MAX_PROBLEMS]))
    yield from _check_documents(connection, location)
    if broken:
        rows = tuple(f"{table} {row} → {parent}" for table, row, parent, _ in broken[:_MAX_PROBLEMS])
        what = f"{len(broken):,} rows refer to missing rows"
        yield Finding("references", "error", what, location, REINDEX, rows)


def _check_documents(connection: apsw.Connection, location: str) -> Iterator[Finding]:
    """Check that documents have a path and an origin, and are in a collection of the list of collections."""
    with suppress(apsw.Error, UnicodeDecodeError):  # damage that is reported as such
        if unsound := int(connection.execute(f"SELECT COUNT(*) FROM documents WHERE NOT ({SOUND_DOCUMENT})").get):
            what = f"{unsound:,} documents have a path or an origin that is not text"
            yield Finding("references", "error", what, location, REINDEX)
        sql = "SELECT quote(collection) FROM documents EXCEPT SELECT quote(name) FROM collections"
        names = [str(name) for (name,) in connection.execute(sql)]
        if names:
            what = f"documents are in collections that are not listed: {', '.join(names)}"
            yield Finding("references", "error", what, location, REINDEX, tuple(names))


# FTS5 stores the number of words of each row in the table docsize.
_DIFFERING_MESSAGES = """
SELECT (SELECT COUNT(*) FROM (SELECT key FROM messages EXCEPT SELECT id FROM messages_fts_docsize))
    + (SELECT COUNT(*) FROM (SELECT id FROM messages_fts_docsize EXCEPT SELECT key FROM messages))
"""


# Reads the words in the order of the pages, and then looks up each of them, which FTS5's own check does not.
_VOCABULARY = """
CREATE VIRTUAL TABLE temp.messages_vocabulary USING fts5vocab(main, messages_fts, row);
CREATE VIRTUAL TABLE temp.messages_instances USING fts5vocab(main, messages_fts, instance);
"""
_DROP_VOCABULARY = "DROP TABLE temp.messages_vocabulary; DROP TABLE temp.messages_instances"
_UNREACHABLE_WORDS = """
SELECT COUNT(*) FROM messages_vocabulary AS word
WHERE NOT EXISTS (SELECT 1 FROM messages_instances AS found WHERE found.term = word.term)
"""


def check_messages(connection: apsw.Connection, location: str) -> Iterator[Finding]:
    """Compare the index of messages with the messages. One statement needs a write transaction."""
    problem = ""
    try:
        connection.execute("INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)")
        differing = int(connection.execute(_DIFFERING_MESSAGES).get)
        problem = f"{differing:,} messages" if differing else _unreachable_words(connection)
    except apsw.CorruptError as error:
        problem = str(error)
    if problem:
        what = f"the word index of messages does not match the messages: {problem}"
        yield Finding("messages-index", "error", what, location, _FIX)


def _unreachable_words(connection: apsw.Connection) -> str:
    connection.execute(_VOCABULARY)
    try:
        count = int(connection.execute(_UNREACHABLE_WORDS).get)
    finally:
        connection.execute(_DROP_VOCABULARY)
    return f"{count:,} words cannot be found" if count else ""


def check_chunks(snapshot: SqliteSnapshot, location: str) -> Iterator[Finding]:
    """Check the checksums of all chunks."""
    for collection in snapshot.collections():
        keys = snapshot.damaged(collection)
        if keys:
            what = f"{len(keys):,} chunks of {collection!r} are damaged; searches leave them out"
            yield Finding("damaged-chunks", "error", what, location, _FIX, tuple(map(str, keys[:_MAX_PROBLEMS])))


def renew_damaged(snapshot: SqliteSnapshot) -> None:
    """Mark documents with damaged rows as changed, so that the next index run writes them again."""
    for collection in snapshot.collections():
        table = chunk_table(collection).name
        snapshot.resource.executemany(
            f"UPDATE documents SET content_hash = '' WHERE id = (SELECT document_id FROM {table} WHERE id = ?)",
            ((key,) for key in snapshot.damaged(collection)),
        )


def check_cache(connection: apsw.Connection, location: str) -> Iterator[Finding]:
    """Check that every cached vector is a unit vector of its space, because indexes are rebuilt from them."""
    bad = bad_cache_rows(connection)
    if bad:
        yield Finding("cache", "error", f"{len(bad):,} cached vectors are damaged", location, _FIX)


def bad_cache_rows(connection: apsw.Connection) -> list[int]:
    """Return the ids of the cached vectors that are not unit vectors of their space."""
    rows = connection.execute(
        f"SELECT cache.id, {VECTOR_COLUMN}, space.dimension "
        "FROM embedding_cache AS cache JOIN vector_spaces AS space ON space.id = cache.space_id"
    )
    return [int(key) for key, blob, dimension in rows if decode_vector(blob, dimension) is None]
