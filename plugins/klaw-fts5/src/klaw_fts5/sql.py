"""Every statement, for each of the two collections."""

from __future__ import annotations

from attrs import frozen

# Contentless: the text is in the store's own table already. Marks count as parts of words, or Hindi falls
# apart at its vowels. `detail=none` and `columnsize=0` would be smaller and make bm25() many times slower.
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
_WITHIN = " AND +rowid IN (SELECT value FROM carray(?6))"


@frozen
class Statements:
    """The statements of one collection's table. Values are bound; only the table's name is written in."""

    create: str
    widen: str
    insert: str
    delete: str
    erase: str
    reset: str
    keys: str
    check: str
    count: str
    matches: str
    search: str
    search_within: str


def statements(table: str) -> Statements:
    """Return the statements for ``table``, one of this module's own names."""
    return Statements(
        create=_CREATE.format(table=table, columns="heading, text"),
        widen=f"DROP TABLE {table};" + _CREATE.format(table=table, columns="heading, text, context"),
        insert=f"INSERT INTO {table}(rowid, heading, text, context) VALUES (?, ?, ?, ?)",  # noqa: S608  # our own name
        delete=f"DELETE FROM {table} WHERE rowid = ?",  # noqa: S608  # our own name
        erase=f"INSERT INTO {table}({table}) VALUES ('optimize')",  # noqa: S608  # our own name
        reset=f"INSERT INTO {table}({table}) VALUES ('delete-all')",  # noqa: S608  # our own name
        keys=f"SELECT rowid FROM {table} ORDER BY rowid",  # noqa: S608  # our own name
        check=f"PRAGMA integrity_check({table})",
        count=f"SELECT COUNT(*) FROM {table}_docsize",  # noqa: S608  # our own name
        matches=f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)",  # noqa: S608  # our own name
        search=_SEARCH.format(table=table, within=""),
        search_within=_SEARCH.format(table=table, within=_WITHIN),
    )


#: By collection; ``messages_fts`` belongs to the store.
COLLECTIONS = {"memory": statements("memory_fts"), "docs": statements("docs_fts")}
