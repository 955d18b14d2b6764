"""The tables that the store owns, and the migrations that create them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from klaw_core import Migration, StoreError, update_command
from klaw_store_postgres.isolation import AGENT_SETTING, isolate
from klaw_store_postgres.metadata import add_numbers, add_parents, fold_case
from klaw_store_postgres.words.tables import create_tables, mark_outdated, note_outdated, replace_postings

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

OWNER = "postgres"

BOOTSTRAP = """
CREATE TABLE IF NOT EXISTS migrations (
    owner text NOT NULL,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, name)
)
"""

# The current generation of each agent's rows.
_TENANTS = f"""
CREATE TABLE tenants (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    generation integer NOT NULL DEFAULT 1
);
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants USING (name = current_setting('{AGENT_SETTING}', true));
CREATE SEQUENCE generations AS integer START 2;
"""

_ROWS = """
CREATE SEQUENCE chunk_keys AS bigint;
CREATE SEQUENCE document_ids AS bigint;

CREATE TABLE collections (
    tenant integer NOT NULL, generation integer NOT NULL, name text COLLATE "C" NOT NULL,
    space bigint, probe bytea,
    PRIMARY KEY (tenant, generation, name)
);
CREATE TABLE documents (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    head text COLLATE "C" NOT NULL, -- the first characters of the path, which an index can hold
    tail text COLLATE "C" NOT NULL,
    id bigint NOT NULL,
    origin text COLLATE "C" NOT NULL,
    content_hash text NOT NULL,
    created_at bigint NOT NULL,     -- milliseconds since 1970
    source text NOT NULL, source_digest bigint NOT NULL,
    chat_id text, chat_digest bigint,
    title text NOT NULL,
    metadata text,                  -- JSON
    PRIMARY KEY (tenant, generation, collection, id)
);
CREATE INDEX documents_path ON documents (tenant, generation, collection, head);
CREATE INDEX documents_source ON documents (tenant, generation, collection, source_digest);
CREATE INDEX documents_chat ON documents (tenant, generation, collection, chat_digest) WHERE chat_digest IS NOT NULL;
CREATE TABLE chunks (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    document bigint NOT NULL,
    chunk_id text COLLATE "C" NOT NULL,
    content text NOT NULL,
    start_offset integer NOT NULL, end_offset integer NOT NULL,
    start_line integer NOT NULL, end_line integer NOT NULL,
    heading text NOT NULL,          -- a JSON array, outermost first
    continues text,
    context text NOT NULL,
    created_at bigint NOT NULL,
    embedding_hash bytea NOT NULL,
    PRIMARY KEY (tenant, generation, collection, key)
);
CREATE INDEX chunks_document ON chunks (tenant, generation, collection, document, start_offset);
CREATE INDEX chunks_id ON chunks (tenant, generation, collection, chunk_id);
CREATE INDEX chunks_created ON chunks (tenant, generation, collection, created_at);
CREATE INDEX chunks_hash ON chunks (tenant, generation, embedding_hash);
CREATE TABLE document_metadata (
    tenant integer NOT NULL, generation integer NOT NULL, collection text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    digest bigint NOT NULL,
    number numeric,
    value text COLLATE "C",
    document bigint NOT NULL
);
CREATE INDEX document_metadata_key ON document_metadata (tenant, generation, collection, key, digest);
CREATE INDEX document_metadata_document ON document_metadata (tenant, generation, collection, document);
"""

# Vectors survive a rebuild, so they have no generation.
_CACHE = """
CREATE TABLE vector_spaces (
    tenant integer NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    model text NOT NULL, revision text NOT NULL, dimension integer NOT NULL,
    metric text NOT NULL, pooling text NOT NULL,
    digest bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, digest)
);
CREATE TABLE embedding_cache (
    tenant integer NOT NULL, space bigint NOT NULL, hash bytea NOT NULL,
    vector bytea NOT NULL,          -- half precision, little endian
    used bigint NOT NULL,
    PRIMARY KEY (tenant, space, hash),
    FOREIGN KEY (tenant, space) REFERENCES vector_spaces (tenant, id) ON DELETE CASCADE
);
CREATE TABLE cache_documents (
    tenant integer NOT NULL, collection text COLLATE "C" NOT NULL, path bigint NOT NULL,
    space bigint NOT NULL, hash bytea NOT NULL,
    PRIMARY KEY (tenant, collection, path, space, hash),
    FOREIGN KEY (tenant, space, hash) REFERENCES embedding_cache (tenant, space, hash) ON DELETE CASCADE
);
CREATE INDEX cache_documents_hash ON cache_documents (tenant, space, hash);
CREATE TABLE cache_counts (
    tenant integer PRIMARY KEY, found bigint NOT NULL, computed bigint NOT NULL
);
"""

_CONVERSATIONS = """
CREATE SEQUENCE message_keys AS bigint;
CREATE TABLE messages (
    tenant integer NOT NULL, generation integer NOT NULL, key bigint NOT NULL,
    id text NOT NULL, id_digest bigint NOT NULL,
    channel text NOT NULL,
    chat_id text COLLATE "C" NOT NULL,
    role text NOT NULL, type text,
    content text NOT NULL,
    metadata text,
    created_at bigint NOT NULL,
    day date NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (tenant, generation, key)
);
CREATE INDEX messages_place ON messages (tenant, generation, chat_id, day, position);
CREATE INDEX messages_id ON messages (tenant, generation, chat_id, id_digest);
CREATE TABLE summaries (
    tenant integer NOT NULL, generation integer NOT NULL,
    chat_id text COLLATE "C" NOT NULL, number integer NOT NULL,
    from_message_id text, to_message_id text,
    file_path text NOT NULL, created_at bigint NOT NULL, content text NOT NULL,
    PRIMARY KEY (tenant, generation, chat_id, number)
);
CREATE TABLE message_files (
    tenant integer NOT NULL, generation integer NOT NULL,
    chat_id text COLLATE "C" NOT NULL, day date NOT NULL,
    "end" bigint NOT NULL, recipe text NOT NULL, checksum bigint,
    PRIMARY KEY (tenant, generation, chat_id, day)
);
"""

# Primary data: it has no generation, and is not derived.
_JOURNALS = """
CREATE SEQUENCE journal_versions AS bigint;
CREATE TABLE journals (
    tenant integer NOT NULL, journal text COLLATE "C" NOT NULL, version bigint NOT NULL,
    PRIMARY KEY (tenant, journal)
);
CREATE TABLE journal_records (
    tenant integer NOT NULL, journal text COLLATE "C" NOT NULL,
    digest bigint NOT NULL, id text COLLATE "C" NOT NULL,
    position bigint NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, journal, position)
);
CREATE INDEX journal_records_id ON journal_records (tenant, journal, digest);
CREATE TABLE logs (
    tenant integer NOT NULL, folder text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    "end" bigint NOT NULL,
    PRIMARY KEY (tenant, folder, "group", name)
);
CREATE TABLE log_records (
    tenant integer NOT NULL, folder text COLLATE "C" NOT NULL,
    "group" text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    position bigint NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, folder, "group", name, position),
    FOREIGN KEY (tenant, folder, "group", name) REFERENCES logs ON DELETE CASCADE
);
CREATE TABLE owned_texts (
    tenant integer NOT NULL, name text COLLATE "C" NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE owned_copies (
    tenant integer NOT NULL, name text COLLATE "C" NOT NULL, number integer NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (tenant, name, number)
);
"""

_STORE_TABLES = (
    *("collections", "documents", "chunks", "document_metadata"),
    *("vector_spaces", "embedding_cache", "cache_documents", "cache_counts"),
    *("messages", "summaries", "message_files"),
    *("journals", "journal_records", "logs", "log_records", "owned_texts", "owned_copies"),
)


_WORD_TABLES = ("word_segments", "word_rows", "word_blocks")
#: Every table of the store after all migrations.
TABLES = ("migrations", "tenants", *_STORE_TABLES, *_WORD_TABLES)
_TABLES_OF = {OWNER: TABLES, "pgvector": ("vectors", "vector_tables")}


def missing(session: Session, schema: str) -> list[str]:
    """Return the tables of the store that do not exist."""
    sql = "SELECT relname::text FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace WHERE nspname = %s"
    held = {name for (name,) in session.rows(sql, (schema,))}
    return sorted(set(TABLES) - held)


def shadowed(session: Session, schema: str, owner: str) -> list[str]:
    """Return the tables of other schemas that statements would use instead of missing ones of this owner.

    The search path has the schema of pgvector, ``public``, in which another program may have a table of that name.
    """
    sql = """SELECT quote_ident(nspname) || '.' || quote_ident(relname) FROM pg_class
             JOIN pg_namespace AS space ON space.oid = relnamespace
             WHERE pg_class.oid = ANY (SELECT to_regclass(quote_ident(name)) FROM unnest(%s::text[]) AS name)
             AND nspname <> %s ORDER BY 1"""
    return [name for (name,) in session.rows(sql, (list(_TABLES_OF.get(owner, ())), schema))]


def _create(session: Session) -> None:
    session.run(_TENANTS + _ROWS + _CACHE + _CONVERSATIONS + _JOURNALS)
    isolate(session, *_STORE_TABLES)


# Two writers cannot create the same document: the second one waits, and gets an error.
_ONE_PATH = """
CREATE UNIQUE INDEX documents_one_path
    ON documents (tenant, generation, collection, head, hashtextextended(tail, 0));
DROP INDEX documents_path;
"""


def _make_paths_unique(session: Session) -> None:
    session.run(_ONE_PATH)


def _add_seen(session: Session) -> None:
    """Add the fingerprints of unchanged documents; the next index run reads every document once."""
    session.run("ALTER TABLE documents ADD COLUMN seen text NOT NULL DEFAULT ''")


def _index_dates(session: Session) -> None:
    session.run("CREATE INDEX documents_created ON documents (tenant, generation, collection, created_at)")


def _drop_record_of_extensions(session: Session) -> None:
    """Remove what the first migration once made for tables of extensions, which no extension had."""
    own = session.value("SELECT quote_ident(current_schema())")  # not that of another program in ``public``
    session.run(f"DROP TABLE IF EXISTS {own}.extension_migrations")
    session.run("ALTER TABLE tenants DROP COLUMN IF EXISTS extended")


#: Append-only: a released migration is never changed.
MIGRATIONS: tuple[Migration[Session], ...] = (
    Migration("0001-rows-cache-conversations-journals", _create),
    Migration("0002-words", create_tables),
    Migration("0003-one-document-a-path", _make_paths_unique),
    Migration("0004-seen", _add_seen),
    Migration("0005-word-blocks", replace_postings),
    Migration("0006-dates-of-documents", _index_dates),
    Migration("0007-numbers-in-metadata", add_numbers),
    Migration("0008-no-tables-of-extensions", _drop_record_of_extensions),
    Migration("0009-parents-of-tags", add_parents),
    Migration("0010-letters-and-properties", note_outdated),
    Migration("0011-names-like-function-words", mark_outdated),
    Migration("0012-metadata-without-case", fold_case),
)


def pending(
    session: Session, owner: str, migrations: Sequence[Migration[Session]], location: str
) -> list[Migration[Session]]:
    """Return the migrations that were not applied yet. Raise StoreError if the database knows newer ones."""
    applied = {name for (name,) in session.rows("SELECT name FROM migrations WHERE owner = %s", (owner,))}
    unknown = applied - {migration.name for migration in migrations}
    if unknown:
        raise StoreError(
            f"{location} was written by a newer version of {owner!r} ({', '.join(sorted(unknown))})",
            hint=f"`{update_command()}`, then the plugin that brings {owner!r}: `klaw plugins` names it",
        )
    return [migration for migration in migrations if migration.name not in applied]
