"""All SQL statements, and the names of the tables, for each collection.

The tables of ``memory`` and ``docs`` start with these names. Other names consist of ``c``, the length of the
collection's name, and the name: ``c5_facts_fts``. Because of the length, the tables of two collections never have the
same name, and never that of an FTS5 shadow table (``c5_facts_fts_data``), even for a collection ``facts_fts``. No other
table starts with c and a digit.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from klaw_core import check_collection_name
from klaw_words.tokenizer import TOKENIZER

if TYPE_CHECKING:
    import apsw

# Contentless, because the store's own table has the text. An occurrence of a word in the first column takes two bytes
# less, so the text is first. `detail=none` and `columnsize=0` would be smaller, but make bm25() many times slower.
_TOKENIZE = f"{' '.join(TOKENIZER[:-1])} '{TOKENIZER[-1]}'"
_CREATE = f"""
CREATE VIRTUAL TABLE {{table}} USING fts5(
    {{columns}}, content='', contentless_delete=1,
    tokenize="{_TOKENIZE}"
)
"""
# `ORDER BY rank` was slower than the function by a third or more. The unary plus prevents SQLite from running the
# full-text query once for each key, which took 100 times as long with 1,000 keys.
_SEARCH = """
SELECT rowid, bm25({table}, ?1, ?2, ?3) AS score FROM {table}
WHERE {table} MATCH ?4{within} ORDER BY score, rowid LIMIT ?5
"""
_KEY_DIGEST = (
    "SELECT COUNT(*), COALESCE(SUM(id % ?1), 0), COALESCE(SUM((id % ?1) * (id % ?1) % ?1), 0) FROM {table}_docsize"
)
_WITHIN = " AND +rowid IN (SELECT value FROM carray(?6))"

# Merge every level of which one percent is deleted, and no other level: FTS5's automatic merge starts at eight
# segments, so no level has sixteen. Then restore FTS5's default
# (https://sqlite.org/fts5.html#the_deletemerge_configuration_option).
_MERGE_MARKED = """
INSERT INTO {table}({table}, rank) VALUES ('usermerge', 16);
INSERT INTO {table}({table}, rank) VALUES ('deletemerge', 1);
INSERT INTO {table}({table}, rank) VALUES ('merge', 1000000000);
INSERT INTO {table}({table}, rank) VALUES ('deletemerge', 10);
INSERT INTO {table}({table}, rank) VALUES ('usermerge', 4)
"""

# Postings in large blobs (see packed/postings.py). Rows of `blocks` and `postings` never change; `dead` lists removed
# rows. A block's number is random, so that cached data of a block is valid for every file and snapshot.
_CREATE_PACKED = """
CREATE TABLE {name}_blocks (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    postings INTEGER NOT NULL,
    own_at INTEGER NOT NULL,
    buckets_at INTEGER NOT NULL,
    buckets INTEGER NOT NULL,
    check_sum INTEGER NOT NULL,
    mixes BLOB NOT NULL,
    keys BLOB NOT NULL,
    lengths BLOB NOT NULL
);
CREATE TABLE {name}_postings (
    id INTEGER PRIMARY KEY,
    term INTEGER,
    count INTEGER NOT NULL,
    check_sum INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX {name}_postings_term ON {name}_postings (term, count) WHERE term IS NOT NULL;
CREATE TABLE {name}_dead (
    block INTEGER PRIMARY KEY,
    tokens INTEGER NOT NULL,
    positions BLOB NOT NULL
);
"""
#: The collections with a packed form: the numbers of its rows and lacking rows, and a stamp that every change renews.
CREATE_STATE = """
CREATE TABLE packed_words (
    collection TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    lacking INTEGER NOT NULL,
    stamp BLOB NOT NULL
) WITHOUT ROWID
"""
READ_STATE = "SELECT rows, lacking, stamp FROM packed_words WHERE collection = ?"
WRITE_STATE = "INSERT OR REPLACE INTO packed_words VALUES (?, ?, ?, randomblob(16))"
DELETE_STATE = "DELETE FROM packed_words WHERE collection = ?"
DELETE_STATES = "DELETE FROM packed_words"

#: Rows with words of an earlier form, which the next index run removes and adds again.
CREATE_OUTDATED = """
CREATE TABLE outdated_words (
    collection TEXT NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (collection, key)
) WITHOUT ROWID
"""
DELETE_OUTDATED = "DELETE FROM outdated_words WHERE collection = ? AND key = ?"

#: The collections whose tables are created with the file; ``messages_fts`` belongs to the store.
STANDARD = ("memory", "docs")
# The FTS5 table of another collection.
_NAMED = re.compile(r"c(\d+)_(.+)_fts")


class PackedStatements:
    """The statements of one collection's packed postings. ``name`` is the prefix of the names of its tables."""

    def __init__(self, name: str) -> None:
        empty = f"DELETE FROM {name}_blocks; DELETE FROM {name}_postings; DELETE FROM {name}_dead"
        self.name = name
        self.create = _CREATE_PACKED.format(name=name)
        self.make_room_for_pairs = f"DROP TABLE IF EXISTS {name}_sequences; {empty}"
        self.blocks = (
            "SELECT id, first, last, rows, blocks.tokens, postings, own_at, buckets_at, buckets, dead.tokens, "
            f"positions FROM {name}_blocks AS blocks LEFT JOIN {name}_dead AS dead ON block = id "
            "ORDER BY rows DESC, first, id"
        )
        self.block = f"SELECT check_sum, mixes, keys, lengths FROM {name}_blocks WHERE id = ?"
        self.insert_block = f"INSERT INTO {name}_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self.delete_block = (
            f"DELETE FROM {name}_blocks WHERE id = :block; DELETE FROM {name}_dead WHERE block = :block; "
            f"DELETE FROM {name}_postings WHERE id BETWEEN :first AND :last"
        )
        self.next_id = f"SELECT COALESCE(MAX(id), 0) + 1 FROM {name}_postings"
        self.own = f"SELECT term, id, some.count FROM carray(?) CROSS JOIN {name}_postings some ON term = value"
        self.postings = (
            f"SELECT id, term, some.count, check_sum, data FROM carray(?) CROSS JOIN {name}_postings some ON id = value"
        )
        self.own_span = (
            f"SELECT id, term, count, check_sum, data FROM {name}_postings "
            "WHERE id >= ? AND id < ? AND term BETWEEN ? AND ? ORDER BY id"
        )
        self.bucket_span = (
            f"SELECT id, count, check_sum, data FROM {name}_postings WHERE id BETWEEN ? AND ? ORDER BY id"
        )
        self.insert_postings = f"INSERT INTO {name}_postings(id, term, count, check_sum, data) VALUES (?, ?, ?, ?, ?)"
        self.write_dead = f"INSERT OR REPLACE INTO {name}_dead VALUES (?, ?, ?)"
        self.empty = empty


class Statements:
    """The statements of one collection's tables. Values are bound; only the tables' names are formatted.

    ``table`` is the FTS5 table, and ``name`` the prefix of the names of the packed tables. ``make`` creates all tables
    of the collection, equal to those of ``memory`` after all migrations.
    """

    def __init__(self, table: str, name: str) -> None:
        # Merging segments later saves a seventh of the time of adding, and does not slow down searches.
        merge_later = f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 8)"
        packed = PackedStatements(name)
        columns = "text, heading, context"
        self.table = table
        self.make = ";".join((_CREATE.format(table=table, columns=columns), merge_later, packed.create))
        self.create = _CREATE.format(table=table, columns="heading, text")
        self.widen = f"DROP TABLE {table};" + _CREATE.format(table=table, columns="heading, text, context")
        self.rearrange = f"DROP TABLE {table};" + _CREATE.format(table=table, columns=columns)
        self.merge_later = merge_later
        self.insert = f"INSERT INTO {table}(rowid, text, heading, context) VALUES (?, ?, ?, ?)"
        self.delete = f"DELETE FROM {table} WHERE rowid = ?"
        self.known = f"SELECT id FROM {table}_docsize WHERE id IN (SELECT value FROM carray(?))"
        self.flush = f"INSERT INTO {table}({table}, rank) VALUES ('merge', 0)"
        self.structure = f"SELECT block FROM {table}_data WHERE id = 10"
        self.merge_marked = _MERGE_MARKED.format(table=table)
        self.optimize = f"INSERT INTO {table}({table}) VALUES ('optimize')"
        self.reset = f"INSERT INTO {table}({table}) VALUES ('delete-all')"
        self.mark_outdated = f"INSERT OR IGNORE INTO outdated_words SELECT ?, id FROM {table}_docsize"
        self.keys = f"SELECT rowid FROM {table} ORDER BY rowid"
        self.check = f"PRAGMA integrity_check({table})"
        self.count = f"SELECT COUNT(*) FROM {table}_docsize"
        self.key_digest = _KEY_DIGEST.format(table=table)
        self.present = f"SELECT COUNT(*) FROM {table}_docsize WHERE id IN (SELECT value FROM carray(?))"
        self.matches = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
        # The unary plus makes SQLite read the term's rows once, instead of querying FTS5 for each key.
        self.held_by = f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND +rowid IN (SELECT value FROM carray(?2))"
        self.hits = f"SELECT rowid, -bm25({table}, ?1, ?2, ?3) FROM {table} WHERE {table} MATCH ?4 ORDER BY rowid"
        self.search = _SEARCH.format(table=table, within="")
        self.search_within = _SEARCH.format(table=table, within=_WITHIN)
        self.vocabulary = (
            f"CREATE VIRTUAL TABLE temp.{name}_vocabulary USING fts5vocab(main, {table}, row); "
            f"CREATE VIRTUAL TABLE temp.{name}_instances USING fts5vocab(main, {table}, instance)"
        )
        self.drop_vocabulary = f"DROP TABLE temp.{name}_vocabulary; DROP TABLE temp.{name}_instances"
        # Every nth term is read in the order of the pages, and then looked up through the table ``…_idx``.
        self.unreachable = (
            f"WITH numbered AS (SELECT term, row_number() OVER () AS number FROM {name}_vocabulary), "
            "size AS (SELECT COUNT(*) / ?1 + 1 AS step FROM numbered) "
            "SELECT COUNT(*) FROM numbered, size WHERE number % step = 0 AND NOT EXISTS "
            f"(SELECT 1 FROM {name}_instances AS found WHERE found.term = numbered.term)"
        )
        # Every nth term, and the most frequent terms; as bytes, because a long term may end within a character.
        self.sample_terms = (
            f"WITH numbered AS (SELECT term, doc, row_number() OVER () AS number FROM {name}_vocabulary), "
            "size AS (SELECT COUNT(*) / ?1 + 1 AS step FROM numbered) "
            "SELECT CAST(term AS BLOB) FROM numbered, size WHERE number % step = 0 OR number IN "
            "(SELECT number FROM numbered ORDER BY doc DESC LIMIT 5)"
        )
        self.terms = f"SELECT CAST(term AS BLOB) FROM {name}_vocabulary LIMIT ?"
        # From the instances, because the other table would read all rows of a term to count them.
        self.next_term = f"SELECT CAST(term AS BLOB) FROM {name}_instances WHERE term >= ? LIMIT 1"
        self.holders = f"SELECT DISTINCT doc FROM {name}_instances WHERE term = CAST(? AS TEXT)"
        self.packed = packed


@lru_cache(maxsize=256)
def statements(collection: str) -> Statements:
    """Return the statements of a collection. Raise QueryError for an invalid collection name."""
    if is_standard(collection):
        return Statements(f"{collection}_fts", f"{collection}_words")
    prefix = f"c{len(collection)}_{check_collection_name(collection)}"
    return Statements(f"{prefix}_fts", f"{prefix}_words")


def made(connection: apsw.Connection) -> list[str]:
    """Return the collections that have tables."""
    rows: list[Any] = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    found = (_NAMED.fullmatch(name) for (name,) in rows)
    return [*STANDARD, *sorted(match[2] for match in found if match is not None and len(match[2]) == int(match[1]))]


def is_standard(collection: str) -> bool:
    """Return whether migrations create the collection's tables; others are created on the first write."""
    return collection in STANDARD
