"""One transaction of one agent, which indexes join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_store_postgres.texts import digest
from klaw_words.caching import Kept

if TYPE_CHECKING:
    import psycopg

    from klaw_core import Hit, Query
    from klaw_store_postgres.replica import Replica


@define(eq=False)
class Session:
    """A connection inside a transaction, and the agent whose rows it uses.

    Every row of a shared table has a ``tenant``, the number of an agent, and a ``generation``, which a rebuild
    increments; ``scope`` is both. For an ordinary role, PostgreSQL itself hides the rows of other tenants (row-level
    security). An index still names both in every statement.

    Several transactions of one agent write at the same time. The store locks the chunks that a transaction writes, or
    reads in order to write. An index locks everything else that it reads and changes.
    """

    connection: psycopg.Connection[Any]
    tenant: int
    generation: int
    #: The store whose session it is, for errors.
    location: str = "PostgreSQL"
    #: The lock that all writers of the agent share; None if the transaction is the only writer.
    shared_lock: int | None = None
    #: Whether the tables are spread over the workers of a cluster.
    distributed: bool = False
    #: Where indexes are searched, None if they are searched on this server.
    replica: Replica | None = None
    #: What the caller of a search is to be told.
    notices: list[str] = field(factory=list)
    #: The number of chunks added.
    added: int = 0
    #: The cache of word segments that sessions of this process have read.
    kept: Kept = field(factory=Kept)
    _locks: set[str] = field(factory=set, init=False)
    _said: set[str] = field(factory=set, init=False)

    @property
    def scope(self) -> tuple[int, int]:
        """The tenant and the generation: the first two columns of every key."""
        return self.tenant, self.generation

    def search(self, query: Query, work: Callable[[Session, Query], Sequence[Hit]]) -> Sequence[Hit]:
        """Return what ``work`` finds on the replica, or on this server."""
        return work(self, query) if self.replica is None else self.replica.search(self, query, work)

    def say(self, notice: str) -> None:
        """Note what the caller of a search is to be told, once."""
        if notice and notice not in self._said:
            self._said.add(notice)
            self.notices.append(notice)

    def take_notices(self) -> Sequence[str]:
        """Return what was noted since the last call."""
        taken, self.notices = self.notices, []
        return taken

    def lock(self, name: str) -> None:
        """Wait for the lock of this name among the agent's rows, and hold it until the end of the transaction."""
        if name not in self._locks:
            self.run("SELECT pg_advisory_xact_lock(%s)", (self._number(name),))
            self._locks.add(name)

    def try_lock(self, name: str) -> bool:
        """Take the lock of this name, as :meth:`lock` does, if nobody holds it; return whether it is held."""
        if name not in self._locks and self.value("SELECT pg_try_advisory_xact_lock(%s)", (self._number(name),)):
            self._locks.add(name)
        return name in self._locks

    def be_alone(self) -> None:
        """Wait until all other writers of the agent have finished, and keep new ones out until the end."""
        if self.shared_lock is not None:
            self.run("SELECT pg_advisory_xact_lock(%s)", (self.shared_lock,))
            self.shared_lock = None

    def _number(self, name: str) -> int:
        return digest(f"{self.tenant} {self.generation} {name}")

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        """Return all rows of a statement."""
        found: list[Any] = self.connection.execute(sql, values or None, binary=True).fetchall()
        return found

    def row(self, sql: str, values: Sequence[object] = ()) -> Any:
        """Return the first row; None if there is none."""
        return self.connection.execute(sql, values or None, binary=True).fetchone()

    def value(self, sql: str, values: Sequence[object] = ()) -> Any:
        """Return the first column of the first row; None if there is none."""
        row = self.row(sql, values)
        return None if row is None else row[0]

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement; return the number of changed rows."""
        return int(self.connection.execute(sql, values or None).rowcount)

    def run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row of values, in one round trip."""
        with self.connection.cursor() as cursor:
            cursor.executemany(sql, list(rows))
