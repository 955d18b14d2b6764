"""Every statement, for each collection, and the names of its tables.

The tables of ``memory`` and ``docs`` are called so. Those of any other collection begin with ``c``, how many characters
its name has, and the name: ``c5_facts_fts``. The number says where the name ends. So no table of a collection has the
name of another collection's, nor of one that FTS5 makes (``c5_facts_fts_data``), whatever the other is called
(``facts_fts``). No other table begins with a c and a digit.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from klaw_core import check_collection_name

#: SQLite's tokenizer and its arguments. Marks count as parts of words, or Hindi falls apart at its vowels.
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Mn Mc")

# Contentless: the text is in the store's own table already. Words of the first column take two bytes less each time
# they occur, so the text is first. `detail=none` and `columnsize=0` would be smaller and
# make bm25() many times slower.
_CREATE = """
CREATE VIRTUAL TABLE {table} USING fts5(
    {columns}, content='', contentless_delete=1,
    tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* Mn Mc'"
)
"""
# `ORDER BY rank` measured slower than the function by a third or more. The unary plus keeps SQLite from running
# the full-text query once for each key, which took 100 times as long with 1,000 keys.
_SEARCH = """
SELECT rowid, bm25({table}, ?1, ?2, ?3) AS score FROM {table}
WHERE {table} MATCH ?4{within} ORDER BY score, rowid LIMIT ?5
"""
_KEY_DIGEST = (
    "SELECT COUNT(*), COALESCE(SUM(id % ?1), 0), COALESCE(SUM((id % ?1) * (id % ?1) % ?1), 0) FROM {table}_docsize"
)
_WITHIN = " AND +rowid IN (SELECT value FROM carray(?6))"

# Merge every level of which one per cent is deleted, and none for another reason: the automatic merge of eight segments
# leaves none with sixteen. Then what FTS5 has by default (https://sqlite.org/fts5.html#the_deletemerge_configuration_option).
_MERGE_MARKED = """
INSERT INTO {table}({table}, rank) VALUES ('usermerge', 16);
INSERT INTO {table}({table}, rank) VALUES ('deletemerge', 1);
INSERT INTO {table}({table}, rank) VALUES ('merge', 1000000000);
INSERT INTO {table}({table}, rank) VALUES ('deletemerge', 10);
INSERT INTO {table}({table}, rank) VALUES ('usermerge', 4)
"""

# Postings in large blobs (see packed/postings.py). Rows of `blocks` and `postings` are written once; what is removed is
# listed in `dead`. A block's number is random, so that what was read of it holds for any file and any snapshot.
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
#: Which collections have a packed form: how many rows it holds and lacks, and a stamp that every change renews.
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

#: The collections whose tables are made with the file; ``messages_fts`` belongs to the store.
STANDARD = ("memory", "docs")


@frozen(eq=False, repr=False)
class PackedStatements:
    """The statements of one collection's packed postings. ``name`` is what the names of its tables begin with."""

    name: str
    create: str
    make_room_for_pairs: str
    blocks: str
    block: str
    insert_block: str
    delete_block: str
    next_id: str
    own: str
    postings: str
    own_span: str
    bucket_span: str
    insert_postings: str
    write_dead: str
    empty: str


@frozen(eq=False, repr=False)
class Statements:
    """The statements of one collection's table. Values are bound; only the table's name is written in.

    ``make`` makes every table of the collection, packed ones too, as the migrations leave those of ``memory``.
    """

    table: str
    make: str
    create: str
    widen: str
    rearrange: str
    merge_later: str
    insert: str
    delete: str
    known: str
    flush: str
    structure: str
    merge_marked: str
    optimize: str
    reset: str
    keys: str
    check: str
    count: str
    key_digest: str
    present: str
    matches: str
    held_by: str
    hits: str
    search: str
    search_within: str
    vocabulary: str
    drop_vocabulary: str
    sample_terms: str
    terms: str
    next_term: str
    holders: str
    packed: PackedStatements


@lru_cache(maxsize=256)
def statements(collection: str) -> Statements:
    """Return the statements of a collection. Raise QueryError for a name that no collection can have."""
    if is_standard(collection):
        return _statements(f"{collection}_fts", f"{collection}_words")
    prefix = f"c{len(collection)}_{check_collection_name(collection)}"
    return _statements(f"{prefix}_fts", f"{prefix}_words")


def is_standard(collection: str) -> bool:
    """Return whether the tables of a collection are made by migrations; others come with what is first added."""
    return collection in STANDARD


def _statements(table: str, name: str) -> Statements:
    """Return the statements for ``table`` and the packed tables of ``name``, both this module's own names."""
    # Merging segments later: a seventh less time for adding, and none more for a question.
    merge_later = f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 8)"
    packed = _packed(name)
    columns = "text, heading, context"
    return Statements(
        table=table,
        make=";".join((_CREATE.format(table=table, columns=columns), merge_later, packed.create)),
        create=_CREATE.format(table=table, columns="heading, text"),
        widen=f"DROP TABLE {table};" + _CREATE.format(table=table, columns="heading, text, context"),
        rearrange=f"DROP TABLE {table};" + _CREATE.format(table=table, columns=columns),
        merge_later=merge_later,
        insert=f"INSERT INTO {table}(rowid, text, heading, context) VALUES (?, ?, ?, ?)",
        delete=f"DELETE FROM {table} WHERE rowid = ?",
        known=f"SELECT id FROM {table}_docsize WHERE id IN (SELECT value FROM carray(?))",
        flush=f"INSERT INTO {table}({table}, rank) VALUES ('merge', 0)",
        structure=f"SELECT block FROM {table}_data WHERE id = 10",
        merge_marked=_MERGE_MARKED.format(table=table),
        optimize=f"INSERT INTO {table}({table}) VALUES ('optimize')",
        reset=f"INSERT INTO {table}({table}) VALUES ('delete-all')",
        keys=f"SELECT rowid FROM {table} ORDER BY rowid",
        check=f"PRAGMA integrity_check({table})",
        count=f"SELECT COUNT(*) FROM {table}_docsize",
        key_digest=_KEY_DIGEST.format(table=table),
        present=f"SELECT COUNT(*) FROM {table}_docsize WHERE id IN (SELECT value FROM carray(?))",
        matches=f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",
        # With the plus SQLite reads the term's rows once, instead of asking FTS5 for each key.
        held_by=f"SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND +rowid IN (SELECT value FROM carray(?2))",
        hits=f"SELECT rowid, -bm25({table}, ?1, ?2, ?3) FROM {table} WHERE {table} MATCH ?4 ORDER BY rowid",
        search=_SEARCH.format(table=table, within=""),
        search_within=_SEARCH.format(table=table, within=_WITHIN),
        vocabulary=(
            f"CREATE VIRTUAL TABLE temp.{name}_vocabulary USING fts5vocab(main, {table}, row); "
            f"CREATE VIRTUAL TABLE temp.{name}_instances USING fts5vocab(main, {table}, instance)"
        ),
        drop_vocabulary=f"DROP TABLE temp.{name}_vocabulary; DROP TABLE temp.{name}_instances",
        # Every nth of the terms, and the most frequent ones; as bytes, because a long one may end within a character.
        sample_terms=(
            f"WITH numbered AS (SELECT term, doc, row_number() OVER () AS number FROM {name}_vocabulary), "
            "size AS (SELECT COUNT(*) / ?1 + 1 AS step FROM numbered) "
            "SELECT CAST(term AS BLOB) FROM numbered, size WHERE number % step = 0 OR number IN "
            "(SELECT number FROM numbered ORDER BY doc DESC LIMIT 5)"
        ),
        terms=f"SELECT CAST(term AS BLOB) FROM {name}_vocabulary LIMIT ?",
        # Of instances, because FTS5 would read all rows of a term to say how many they are.
        next_term=f"SELECT CAST(term AS BLOB) FROM {name}_instances WHERE term >= ? LIMIT 1",
        holders=f"SELECT DISTINCT doc FROM {name}_instances WHERE term = CAST(? AS TEXT)",
        packed=packed,
    )


def _packed(name: str) -> PackedStatements:
    empty = f"DELETE FROM {name}_blocks; DELETE FROM {name}_postings; DELETE FROM {name}_dead"
    return PackedStatements(
        name=name,
        create=_CREATE_PACKED.format(name=name),
        make_room_for_pairs=f"DROP TABLE IF EXISTS {name}_sequences; {empty}",
        blocks=(
            "SELECT id, first, last, rows, blocks.tokens, postings, own_at, buckets_at, buckets, dead.tokens, "
            f"positions FROM {name}_blocks AS blocks LEFT JOIN {name}_dead AS dead ON block = id "
            "ORDER BY rows DESC, first, id"
        ),
        block=f"SELECT check_sum, mixes, keys, lengths FROM {name}_blocks WHERE id = ?",
        insert_block=f"INSERT INTO {name}_blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        delete_block=(
            f"DELETE FROM {name}_blocks WHERE id = :block; DELETE FROM {name}_dead WHERE block = :block; "
            f"DELETE FROM {name}_postings WHERE id BETWEEN :first AND :last"
        ),
        next_id=f"SELECT COALESCE(MAX(id), 0) + 1 FROM {name}_postings",
        own=f"SELECT term, id, some.count FROM carray(?) CROSS JOIN {name}_postings some ON term = value",
        postings=(
            f"SELECT id, term, some.count, check_sum, data FROM carray(?) CROSS JOIN {name}_postings some ON id = value"
        ),
        own_span=(
            f"SELECT id, term, count, check_sum, data FROM {name}_postings "
            "WHERE id >= ? AND id < ? AND term BETWEEN ? AND ? ORDER BY id"
        ),
        bucket_span=(f"SELECT id, count, check_sum, data FROM {name}_postings WHERE id BETWEEN ? AND ? ORDER BY id"),
        insert_postings=f"INSERT INTO {name}_postings(id, term, count, check_sum, data) VALUES (?, ?, ?, ?, ?)",
        write_dead=f"INSERT OR REPLACE INTO {name}_dead VALUES (?, ?, ?)",
        empty=empty,
    )
