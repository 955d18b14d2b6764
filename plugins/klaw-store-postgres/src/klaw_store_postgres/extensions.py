"""Tables of extensions: in a separate schema for each agent, which a rebuild copies.

All tables of the extension ``facts`` are named ``x_facts_…``. The first migration creates the schema, so an agent
without such an extension has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg import sql

from klaw_core import Migration, StoreError, quoted
from klaw_store_postgres.connections import search_path

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

_OWNER = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_OBJECTS = """
SELECT space.nspname, class.relname FROM pg_class AS class JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE space.nspname = ANY(%s) AND class.relkind IN ('r', 'v', 'S', 'm', 'p')
"""


def schema_of(schema: str, tenant: int, generation: int) -> str:
    """Return the schema of an agent's extensions."""
    return f"{schema}_x_{tenant}_{generation}"


def table_prefix(owner: str) -> str:
    """Return the prefix of an extension's table names. Raise StoreError for an invalid extension name."""
    if not _OWNER.fullmatch(owner):
        raise StoreError(f"invalid extension name: {quoted(owner)}", hint="use a-z, 0-9, hyphens and underscores")
    return f"x_{owner.replace('-', '_')}_"


def apply(session: Session, schema: str, owner: str, migrations: Sequence[Migration[Session]]) -> None:
    """Apply the migrations that are not recorded yet. Raise StoreError if one changes tables of another owner."""
    prefix = table_prefix(owner)
    known = "SELECT name FROM extension_migrations WHERE tenant = %s AND generation = %s AND owner = %s"
    applied = {name for (name,) in session.rows(known, (*session.scope, owner))}
    steps = [migration for migration in migrations if migration.name not in applied]
    if not steps:
        return
    own = schema_of(schema, *session.scope)
    session.run(f'CREATE SCHEMA IF NOT EXISTS "{own}"')
    session.run("UPDATE tenants SET extended = true WHERE id = %s", (session.tenant,))
    session.run(search_path(own, schema, local=True))
    for step in steps:
        before = set(map(tuple, session.rows(_OBJECTS, ([schema, own],))))
        step.apply(session)
        after = set(map(tuple, session.rows(_OBJECTS, ([schema, own],))))
        foreign = sorted(name for place, name in before ^ after if place != own or not name.startswith(prefix))
        if foreign:
            raise StoreError(
                f"a migration of the extension {owner!r} changes tables of others: {', '.join(foreign)}",
                hint=f"the names of its tables and sequences must begin with {prefix}",
            )
        sql_text = "INSERT INTO extension_migrations (tenant, generation, owner, name) VALUES (%s, %s, %s, %s)"
        session.run(sql_text, (*session.scope, owner, step.name))


def copy(session: Session, schema: str, generation: int) -> None:
    """Copy the tables of extensions to another generation."""
    old, new = (schema_of(schema, session.tenant, number) for number in (session.generation, generation))
    if not has_schema(session, old):
        return
    session.run(f'CREATE SCHEMA "{new}"')
    tables = [name for _, name in session.rows(_OBJECTS + " AND class.relkind = 'r' ORDER BY class.oid", ([old],))]
    for name in tables:
        source, target = (sql.Identifier(place, name).as_string(None) for place in (old, new))
        session.run(f"CREATE TABLE {target} (LIKE {source} INCLUDING ALL)")
        columns = _columns(session, old, name)
        names = ", ".join(sql.Identifier(column).as_string(None) for column, _ in columns)
        session.run(f"INSERT INTO {target} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM {source}")
        for column, _ in (pair for pair in columns if pair[1]):
            _continue_numbers(session, (old, new), name, column)
    session.run(
        """INSERT INTO extension_migrations (tenant, generation, owner, name)
           SELECT tenant, %s, owner, name FROM extension_migrations WHERE tenant = %s AND generation = %s""",
        (generation, *session.scope),
    )


def drop(session: Session, schema: str, generation: int) -> None:
    """Remove the tables of extensions of a generation that is no longer used."""
    session.run(f'DROP SCHEMA IF EXISTS "{schema_of(schema, session.tenant, generation)}" CASCADE')


def has_schema(session: Session, name: str) -> bool:
    """Return whether a schema exists."""
    return session.row("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)) is not None


def _columns(session: Session, schema: str, table: str) -> list[Any]:
    """Return the columns that are not generated, each with whether it is an identity column."""
    return session.rows(
        """SELECT column_name::text, is_identity = 'YES' FROM information_schema.columns
           WHERE table_schema = %s AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position""",
        (schema, table),
    )


def _continue_numbers(session: Session, places: tuple[str, str], table: str, column: str) -> None:
    """Continue the sequence of an identity column."""
    old, new = (
        session.value("SELECT pg_get_serial_sequence(%s, %s)", (sql.Identifier(place, table).as_string(None), column))
        for place in places
    )
    session.run(f"SELECT setval('{new}', last_value, is_called) FROM {old}")
