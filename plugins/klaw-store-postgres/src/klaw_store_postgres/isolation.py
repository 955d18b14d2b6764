"""Row-level security: a session sees only the rows of the agent whose settings it has set. Citus: where rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klaw_store_postgres.connections import literal

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

#: The settings that a session must set before it sees any row of an agent: the id of its tenant, and its name.
TENANT_SETTING = "klaw.tenant"
AGENT_SETTING = "klaw.agent"
# Parents first: a table with a foreign key is newer than the table that the key refers to.
_WHOLE = """
SELECT quote_ident(relname), EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attname = 'tenant'
AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = pg_class.oid) ORDER BY pg_class.oid
"""


def isolate(session: Session, *tables: str) -> None:
    """Restrict these tables, by row-level security, to the rows of the tenant that the session has set."""
    for table in tables:
        session.run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        session.run(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        session.run(
            f"CREATE POLICY own ON {table} "
            f"USING (tenant = NULLIF(current_setting('{TENANT_SETTING}', true), '')::integer)"
        )


def settings_of(tenant: int, agent: str) -> tuple[str, str]:
    """Return the statements that show a transaction the rows of an agent."""
    return f"SET LOCAL {TENANT_SETTING} = '{int(tenant)}'", f"SET LOCAL {AGENT_SETTING} = {literal(agent)}"


def whole(session: Session) -> list[tuple[str, bool]]:
    """Return the tables with a tenant that are not spread over the workers of a cluster yet; none without a cluster.

    The second value says whether the table has a primary key.
    """
    return session.rows(_WHOLE) if session.distributed else []


def distribute(session: Session) -> None:
    """Spread the tables over the workers, by tenant, with their rows. ``tenants`` stays on the coordinator."""
    for number, (table, has_key) in enumerate(whole(session)):
        if not number:  # the same transaction creates indexes on each shard, or copies rows
            session.run("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        # Citus copies the rows with COPY, which is refused where row-level security applies to the owner.
        session.run(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        if table.startswith("vectors_"):  # of one collection; earlier versions had no tenant in its key
            session.run(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (tenant, key)")
        if not has_key:  # a shard moves to another worker while agents write only if its rows can be told apart
            session.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        session.run("SELECT create_distributed_table(%s::regclass, 'tenant')", (table,))
        session.run(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
