"""The tables of the full-text index.

Chunks that are added together form a *segment*. A segment and its blocks do not change, except for the list of removed
rows (``dead``). Small segments are merged into larger ones. ``word_rows`` has the segment of each chunk. Messages use
the empty collection name, which is not a valid name of a collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klaw_store_postgres.isolation import isolate

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

#: The collection of the words of messages.
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

# The blobs are compact already: trying to compress them takes longer than reading them.
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
    """Create the tables."""
    session.run(_TABLES)
    isolate(session, "word_segments", "word_rows", "word_postings")


def replace_postings(session: Session) -> None:
    """Convert the postings of earlier versions, which had a row for each term of a segment, to blocks."""
    from klaw_store_postgres.words.converting import convert

    session.run(_BLOCKS)
    session.run("ALTER TABLE word_postings NO FORCE ROW LEVEL SECURITY")  # the rows of all agents are converted
    convert(session)
    session.run("DROP TABLE word_postings")
    isolate(session, "word_blocks")


def note_outdated(session: Session) -> None:
    """Mark the rows of all chunks, because letters are folded and properties are words now.

    The next index run of each agent adds them again, and makes the rows of messages again.
    """
    session.run("ALTER TABLE word_rows ADD COLUMN is_outdated boolean NOT NULL DEFAULT true")
    session.run("ALTER TABLE word_rows ALTER COLUMN is_outdated SET DEFAULT false")


def mark_outdated(session: Session) -> None:
    """Mark the rows of all chunks, because words that are no function words are kept apart from these now."""
    session.run("ALTER TABLE word_rows NO FORCE ROW LEVEL SECURITY")
    session.run("UPDATE word_rows SET is_outdated = true")
    session.run("ALTER TABLE word_rows FORCE ROW LEVEL SECURITY")
