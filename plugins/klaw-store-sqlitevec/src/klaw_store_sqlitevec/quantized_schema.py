"""The tables of quantized vectors, in a module without numpy, which opening a file does not need."""

import apsw

from klaw_core import Migration

_SCHEMA = """
CREATE TABLE quantized_forms (
    collection TEXT PRIMARY KEY,
    dimension INTEGER NOT NULL,
    centre BLOB                 -- float32, little-endian; NULL while there are few vectors: zero
) WITHOUT ROWID;
CREATE TABLE quantized_segments (
    id INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    made BLOB NOT NULL,         -- random, as long as it is the same segment
    stamp BLOB NOT NULL,        -- random, another one after each change
    used INTEGER NOT NULL,      -- places
    dead BLOB                   -- a bit a place, the first the highest of its byte; NULL if none is
);
CREATE TABLE quantized_codes (
    segment INTEGER PRIMARY KEY,
    codes BLOB NOT NULL         -- a bit a dimension, by planes of 64
);
CREATE TABLE quantized_keys (
    segment INTEGER PRIMARY KEY,
    keys BLOB NOT NULL          -- int64, little-endian, one a place
);
CREATE TABLE quantized_memory (
    place INTEGER PRIMARY KEY,  -- segment * 16384 and the place in it
    key INTEGER NOT NULL UNIQUE,
    vector BLOB NOT NULL        -- a float32 scale, little-endian, then int8
);
CREATE TABLE quantized_docs (
    place INTEGER PRIMARY KEY,
    key INTEGER NOT NULL UNIQUE,
    vector BLOB NOT NULL
);
"""

#: The same table as ``quantized_memory`` after all migrations.
CREATE_ROWS = """
CREATE TABLE {table} (
    place INTEGER PRIMARY KEY,
    key INTEGER NOT NULL UNIQUE,
    vector BLOB NOT NULL
)
"""


def _create(connection: apsw.Connection) -> None:
    connection.execute(_SCHEMA)


#: Append-only: a released migration is never changed.
MIGRATIONS = (Migration("0001-quantized", _create),)
