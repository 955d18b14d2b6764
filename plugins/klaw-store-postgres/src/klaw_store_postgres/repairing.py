"""Replace missing, changed and damaged tables by empty ones, unless they have primary data.

All migrations are run in a schema of their own. Its tables show what should exist, and the ones that are needed move
from there into Klaw's schema. Row-level security and indexes move with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import psycopg
from psycopg import errors

from klaw_core import Migration, StoreCorruptError
from klaw_store_postgres.connections import search_path
from klaw_store_postgres.isolation import distribute
from klaw_store_postgres.schema import BOOTSTRAP, OWNER

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

# What a reindex cannot build again: agents, their journals, and the list of migrations, which is completed instead.
_PRIMARY = frozenset(
    {"tenants", "journals", "journal_records", "logs", "log_records", "owned_texts", "owned_copies", "migrations"}
)
# Tables whose rows are only right together; so are all tables of an index.
_WORDS = frozenset({"messages", "summaries", "message_files", "word_segments", "word_rows", "word_blocks"})
_SEQUENCES = "SELECT sequence_name::text FROM information_schema.sequences WHERE sequence_schema = %s"
_COLUMNS = """
SELECT table_name::text, string_agg(column_name || ' ' || udt_name, ', ' ORDER BY column_name)
FROM information_schema.columns WHERE table_schema = %s GROUP BY table_name
"""
_REFERENCES = """
SELECT child.relname::text, parent.relname::text FROM pg_constraint AS held
JOIN pg_class AS child ON child.oid = held.conrelid JOIN pg_class AS parent ON parent.oid = held.confrelid
WHERE held.contype = 'f' AND held.connamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)
"""


def repair(
    session: Session, schema: str, owners: Mapping[str, Sequence[Migration[Session]]], location: str
) -> set[str]:
    """Replace the tables of ``schema`` that are not as the migrations of these owners make them; return their names.

    Raise StoreCorruptError, and change nothing, if that would lose primary data.
    """
    model = f"{schema}_repair"
    groups = _make(session, model, owners)
    session.run(search_path(schema, local=True))
    wanted, held = _columns(session, model), _columns(session, schema)
    replaced = {name for name in wanted if held.get(name) != wanted[name] or _is_damaged(session, name)}
    replaced |= {name for group in groups if group & replaced for name in group}
    replaced = _with_children(replaced, session.rows(_REFERENCES, (model,)))
    if lost := sorted(replaced & _PRIMARY):
        raise StoreCorruptError(
            f"{location}: tables with primary data are missing or damaged: {', '.join(lost)}",
            hint="restore a backup of the server",
        )
    for name in sorted(replaced):
        # With its schema: the table of this name in another one of the search path belongs to another program.
        session.run(f'DROP TABLE IF EXISTS "{schema}"."{name}" CASCADE')
    for name in sorted(replaced):
        session.run(f'ALTER TABLE "{model}"."{name}" SET SCHEMA "{schema}"')
    known = {name for (name,) in session.rows(_SEQUENCES, (schema,))}
    for (name,) in session.rows(_SEQUENCES, (model,)):
        if name not in known:
            session.run(f'ALTER SEQUENCE "{model}"."{name}" SET SCHEMA "{schema}"')
            session.run("SELECT setval(%s::regclass, %s)", (f'"{name}"', int(time.time())))  # no number is given twice
    distribute(session)
    names = [(owner, migration.name) for owner, migrations in owners.items() for migration in migrations]
    session.run_many("INSERT INTO migrations (owner, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", names)
    session.run(f'DROP SCHEMA "{model}" CASCADE')
    return replaced


def differing(session: Session, schema: str, owners: Mapping[str, Sequence[Migration[Session]]]) -> list[str]:
    """Return the tables that are missing or have other columns than the migrations make; none if that is not known."""
    model = f"{schema}_repair"
    try:
        with session.connection.transaction(force_rollback=True):
            _make(session, model, owners)
            wanted, held = _columns(session, model), _columns(session, schema)
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):  # the role may create no schema
        return []
    return sorted(name for name in wanted if held.get(name) != wanted[name])


def _make(session: Session, model: str, owners: Mapping[str, Sequence[Migration[Session]]]) -> list[AbstractSet[str]]:
    """Run the migrations in a schema of their own; return the groups of tables that must be replaced together."""
    session.run(f'DROP SCHEMA IF EXISTS "{model}" CASCADE')
    session.run(f'CREATE SCHEMA "{model}"')
    session.run(search_path(model, local=True))
    session.run(BOOTSTRAP)
    groups: list[AbstractSet[str]] = [_WORDS]
    for owner, migrations in owners.items():
        before = _columns(session, model).keys()
        for migration in migrations:
            migration.apply(session)
        if owner != OWNER:
            groups.append(_columns(session, model).keys() - before)
    return groups


def _columns(session: Session, schema: str) -> dict[str, str]:
    """Return the tables of a schema with their columns and types."""
    return dict(session.rows(_COLUMNS, (schema,)))


def _is_damaged(session: Session, table: str) -> bool:
    """Return whether a row cannot be read, or an index cannot be built again from the rows, as this tries."""
    try:
        with session.connection.transaction():
            session.run("SET LOCAL enable_indexscan = off")
            session.run(f'SELECT COUNT(*) FROM (SELECT * FROM "{table}" OFFSET 0) AS whole')
            session.run(f'REINDEX TABLE "{table}"')
    except errors.UndefinedTable:
        return True
    except psycopg.Error as error:
        if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
            return True
        raise
    return False


def _with_children(tables: Iterable[str], references: Sequence[tuple[str, str]]) -> set[str]:
    """Return these tables and those that refer to them, whose rows would refer to nothing."""
    found = set(tables)
    while more := {child for child, parent in references if parent in found} - found:
        found |= more
    return found
