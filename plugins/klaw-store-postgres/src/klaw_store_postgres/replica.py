"""A read replica: indexes are searched there, so that searches do not load the primary server.

Everything else is read from the primary server, and written there. Chunks are among that, so what was forgotten, or no
longer passes the filters, is never shown, however late the replica is. The replica is passed over if it lacks a write
of this process, or what the primary server had ten seconds before. A process that does not know that place needs all
that was written.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from attrs import define, evolve, field

from klaw_core import Finding, Hit, KlawError, Query, StoreError
from klaw_store_postgres.filtering import SqlSelection
from klaw_store_postgres.isolation import settings_of

if TYPE_CHECKING:
    from klaw_store_postgres.connections import Connections
    from klaw_store_postgres.session import Session

#: The number of the database system, which a streaming replica has too.
SYSTEM = "SELECT system_identifier FROM pg_control_system()"
# Places in the write-ahead log, as numbers.
_WRITTEN = """SELECT pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')::bigint"""
# Before the transaction begins, because the place must not be later than its snapshot.
_NOTE_REPLAYED = """SELECT set_config('klaw.replayed',
    COALESCE(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, -1)::text, false)"""
_STATE = f"""SELECT (SELECT generation FROM tenants WHERE id = {{tenant}}), current_setting('klaw.replayed')::bigint,
    CASE WHEN pg_is_in_recovery() THEN ({SYSTEM}) END"""
# Of the last change that was replayed; on an idle server it is no lag.
_AGE = "SELECT COALESCE(EXTRACT(epoch FROM now() - pg_last_xact_replay_timestamp()), 0)::float8"
_LATEST_SECONDS = 10.0
# After a failure, the replica is left alone for so long.
_REST_SECONDS = 30.0


@define(eq=False)
class Replica:
    """The connections to a replica of the primary server ``location``, and what a search on it must be able to see."""

    connections: Connections
    location: str
    system: int
    agent: str
    #: The last write of this process, and the last one before the place ``_own`` was read.
    _written: object = field(default=None, init=False)
    _noted: object = field(default=None, init=False)
    _own: int = field(default=0, init=False)
    _seen: deque[tuple[float, int]] = field(factory=deque, init=False)
    _rests_until: float = field(default=0.0, init=False)

    def note_write(self) -> None:
        """Note that this process has written: its next search needs what the primary server has by then."""
        self._written = object()  # another one for each write, whatever other threads do at the same time

    def search(self, primary: Session, query: Query, work: Callable[[Session, Query], Sequence[Hit]]) -> Sequence[Hit]:
        """Return what ``work`` finds on the replica, without chunks that are gone; or what it finds on the primary."""
        if time.monotonic() < self._rests_until:
            return work(primary, query)
        try:
            with self._session(primary) as (session, problem):
                if problem is None:
                    return self._held(primary, query, work(session, _moved(query, primary, session)))
                primary.say(problem)
        except (KlawError, psycopg.Error) as error:
            self._rests_until = time.monotonic() + _REST_SECONDS
            primary.say(_failure(error))
        return work(primary, query)

    def state(self, primary: Session) -> tuple[bool, str]:
        """Return whether searches use the replica, and how far it is behind, or why they pass it over."""
        try:
            with self._session(primary) as (session, problem):
                replayed = int(session.value("SELECT current_setting('klaw.replayed')"))
                behind, age = max(0, primary.value(_WRITTEN) - replayed), session.value(_AGE)
                what = f"{behind:,} bytes of the log behind"
                is_late = bool(behind) and age > _LATEST_SECONDS
                what = f"the read replica is {what}, and its last change is {age:,.0f} s old" if is_late else what
                return not problem and not is_late, problem or what
        except (KlawError, psycopg.Error) as error:
            return False, _failure(error)

    def check(self, primary: Session) -> Iterator[Finding]:
        """Find that searches pass over the replica."""
        is_used, what = self.state(primary)
        if not is_used:
            fix = "memory.store.read_dsn must name a streaming replica of memory.store.dsn that runs and keeps up"
            yield Finding("replica", "warning", what, self.connections.location, fix)

    @contextmanager
    def _session(self, primary: Session) -> Iterator[tuple[Session, str | None]]:
        """Begin a snapshot on the replica; yield it, and why it cannot be used, None if it can. Raise StoreError.

        The reason is empty if the replica lacks a change of a moment ago.
        """
        last = self._written  # first: the place that is read next is after this write, and may be before a later one
        written = primary.value(_WRITTEN)
        if last is not self._noted:
            self._noted, self._own = last, max(self._own, written)
        earlier, is_known = self._earlier(written)
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        settings = settings_of(primary.tenant, self.agent)
        statements = (_NOTE_REPLAYED, begin, *settings, _STATE.format(tenant=primary.tenant))
        with self.connections.transaction(*statements) as (connection, (generation, replayed, system)):
            if system != self.system or replayed < 0:
                raise StoreError(f"{self.connections.location} is not a streaming replica of {self.location}")
            problem = None
            if replayed < max(self._own, earlier) or generation != primary.generation:
                problem = ""
            if is_known and replayed < earlier:
                problem = f"the read replica was passed over: it is {earlier - replayed:,} bytes of the log behind"
            yield evolve(primary, connection=connection, replica=None), problem

    def _earlier(self, written: int) -> tuple[int, bool]:
        """Return the place where the log was ten to twenty seconds ago; the present one if that is not known."""
        now = time.monotonic()
        if not self._seen or now - self._seen[-1][0] >= _LATEST_SECONDS / 4:
            self._seen.append((now, written))
        while len(self._seen) > 1 and now - self._seen[1][0] >= _LATEST_SECONDS:
            self._seen.popleft()
        since, place = self._seen[0]
        is_known = _LATEST_SECONDS <= now - since <= 2 * _LATEST_SECONDS
        return (place, True) if is_known else (written, False)

    @staticmethod
    def _held(primary: Session, query: Query, found: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits whose chunks the primary server has still, and that pass the filters there."""
        if found and query.within is not None:
            passing = set(query.within.among([hit.key for hit in found]))
            return [hit for hit in found if hit.key in passing]
        sql = "SELECT key FROM chunks WHERE tenant = %s AND generation = %s AND collection = %s AND key = ANY(%s)"
        rows = primary.rows(sql, (*primary.scope, query.collection, [hit.key for hit in found])) if found else ()
        held = {key for (key,) in rows}
        return [hit for hit in found if hit.key in held]


def _failure(error: Exception) -> str:
    return f"the read replica was passed over: {error.message if isinstance(error, KlawError) else error}"


def _moved(query: Query, primary: Session, session: Session) -> Query:
    """Return a query whose filters are conditions on the replica."""
    within = query.within
    if isinstance(within, SqlSelection) and within.session is primary:
        return evolve(query, within=SqlSelection(session, within.collection, within.conditions, within.values))
    return query
