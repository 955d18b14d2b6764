"""Row-level security: a session sees only the rows of the agent whose settings it has set."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

#: The settings that a session must set before it sees any row of an agent: the id of its tenant, and its name.
TENANT_SETTING = "klaw.tenant"
AGENT_SETTING = "klaw.agent"


def isolate(session: Session, *tables: str) -> None:
    """Restrict these tables, by row-level security, to the rows of the tenant that the session has set."""
    for table in tables:
        session.run(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        session.run(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        session.run(
            f"CREATE POLICY own ON {table} "
            f"USING (tenant = NULLIF(current_setting('{TENANT_SETTING}', true), '')::integer)"
        )
