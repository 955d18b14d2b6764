"""The tables of words, and what is read from them.

Words lie in *segments*: what was added at once. A segment and its blocks are written once and never changed, but
for the list of rows that are removed (``dead``); small segments are merged into larger ones. ``word_rows`` says which
chunk is in which segment. The collection with the empty name, which no collection can have, is that of messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

#: The words of messages.
MESSAGES = ""

_TABLES = """
CREATE SEQUENCE word_segment_ids AS bigint;
CREATE TABLE word_segments (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    rows integer NOT NULL,
    tokens bigint NOT NULL,
    dead_tokens bigint NOT NULL DEFAULT 0,
    dead bytea NOT NULL DEFAULT '',     -- rows that were removed, 32 bits each
    keys bytea NOT NULL,                -- of the rows, 64 bits each, ascending
    lengths bytea NOT NULL,             -- of the rows in terms, 32 bits each
    PRIMARY KEY (tenant, generation, collection, id)
);
CREATE TABLE word_rows (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    segment bigint NOT NULL,
    PRIMARY KEY (tenant, generation, collection, key)
);
CREATE TABLE word_postings (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    term bytea NOT NULL,
    segment bigint NOT NULL,
    holders integer NOT NULL,           -- rows that hold the term
    places bytea NOT NULL,              -- 64 bits each, ascending: row, column, position
    PRIMARY KEY (tenant, generation, collection, term, segment)
);
CREATE INDEX word_postings_segment ON word_postings (tenant, generation, collection, segment);
"""

# Blobs are compact, and a server that tries to compress them takes longer than to read them.
_BLOCKS = """
CREATE TABLE word_blocks (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    segment bigint NOT NULL,
    first bytea NOT NULL,               -- the first term
    holders integer,                    -- rows that hold it, if the block has no other
    body bytea NOT NULL,
    PRIMARY KEY (tenant, generation, collection, segment, first)
);
ALTER TABLE word_blocks ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE word_segments ALTER COLUMN keys SET STORAGE EXTERNAL;
ALTER TABLE word_segments ALTER COLUMN lengths SET STORAGE EXTERNAL;
"""


def create_tables(session: Session) -> None:
    """Make the tables."""
    from klaw_store_postgres.schema import isolate

    session.run(_TABLES)
    isolate(session, "word_segments", "word_rows", "word_postings")


def replace_postings(session: Session) -> None:
    """Make blocks of postings, which had a row for each term of a segment."""
    from klaw_store_postgres.schema import isolate
    from klaw_store_postgres.words.converting import convert

    session.run(_BLOCKS)
    session.run("ALTER TABLE word_postings NO FORCE ROW LEVEL SECURITY")  # of every agent
    convert(session)
    session.run("DROP TABLE word_postings")
    isolate(session, "word_blocks")
