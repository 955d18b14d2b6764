"""What indexes join: one transaction of one agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define

if TYPE_CHECKING:
    import psycopg


@define(eq=False)
class Session:
    """A connection inside a transaction, and whose rows it is about.

    Every row of a shared table has a ``tenant``, the number of an agent, and a ``generation``, which a rebuild renews;
    ``scope`` are both. PostgreSQL itself hides the rows of other tenants where the role is an ordinary one
    (row-level security). An index names both in every statement all the same.
    """

    connection: psycopg.Connection[Any]
    tenant: int
    generation: int
    #: How many chunks were added.
    added: int = 0

    @property
    def scope(self) -> tuple[int, int]:
        """The tenant and the generation: the first two columns of every key."""
        return self.tenant, self.generation

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """Return what a statement finds."""
        found: list[Any] = self.connection.execute(sql, values or None, binary=True).fetchall()
        return found

    def row(self, sql: str, values: Sequence[object] = ()) -> Any:
        """Return the first row, None if there is none."""
        return self.connection.execute(sql, values or None, binary=True).fetchone()

    def value(self, sql: str, values: Sequence[object] = ()) -> Any:
        """Return the first column of the first row, None if there is none."""
        row = self.row(sql, values)
        return None if row is None else row[0]

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement; return how many rows it has changed."""
        return int(self.connection.execute(sql, values or None).rowcount)

    def run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row of values, in one round trip."""
        with self.connection.cursor() as cursor:
            cursor.executemany(sql, list(rows))
