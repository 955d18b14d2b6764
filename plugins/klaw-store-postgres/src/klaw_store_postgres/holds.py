"""What a store holds during a block: its open transactions, a lock of the server, an unfinished rebuild."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg

from klaw_core import Hold

if TYPE_CHECKING:
    from klaw_store_postgres.replica import Replica
    from klaw_store_postgres.session import Session

# Seconds that a lock is waited for: a run may embed that long.
_LOCK_SECONDS = 3600


class Writing(threading.local):
    """The open write transactions of the current thread, of a store and of the stores that rebuild it."""

    def __init__(self) -> None:
        self._sessions: list[Session] = []

    def innermost(self) -> Session | None:
        """Return the session of the last transaction that was begun, None if none is open."""
        return self._sessions[-1] if self._sessions else None

    def entered(self, session: Session) -> Hold[None]:
        """Count a transaction as open within the block, which may end in another thread."""
        return _Entered(self._sessions, session)


class _Entered(Hold[None]):
    __slots__ = ("_session", "_sessions")

    def __init__(self, sessions: list[Session], session: Session) -> None:
        self._sessions = sessions
        self._session = session

    def take(self) -> None:
        self._sessions.append(self._session)

    def give_back(self) -> None:
        with suppress(ValueError):
            self._sessions.remove(self._session)


class AdvisoryLock(Hold[None]):
    """A lock of the server, which its connection holds. If it is taken, ``on_wait`` is called before waiting."""

    __slots__ = ("_connection", "_number", "_on_wait")

    def __init__(self, connection: psycopg.Connection[Any], number: int, on_wait: Callable[[], None]) -> None:
        self._connection = connection
        self._number = number
        self._on_wait = on_wait

    def take(self) -> None:
        """Take the lock."""
        own = (self._number,)
        if self._connection.execute("SELECT pg_try_advisory_lock(%s)", own).fetchone() != (True,):
            self._on_wait()
            self._connection.execute(f"SET lock_timeout = {_LOCK_SECONDS * 1000}")
            self._connection.execute("SELECT pg_advisory_lock(%s)", own)

    def give_back(self) -> None:
        """Release all locks of the connection."""
        with suppress(psycopg.Error):  # the server notices a closed connection only a moment later
            self._connection.execute("SELECT pg_advisory_unlock_all()")


class Unfinished(Hold[None]):
    """A rebuild, whose rows ``drop`` removes at the end of the block, unless it is finished."""

    __slots__ = ("_drop", "is_finished")

    def __init__(self, drop: Callable[[], None]) -> None:
        self._drop = drop
        self.is_finished = False

    def take(self) -> None:
        """Nothing is left over yet."""

    def give_back(self) -> None:
        """Remove the rows unless it is finished."""
        if not self.is_finished:
            self._drop()
            self.is_finished = True


class NotingWrite(Hold["NotingWrite"]):
    """A transaction, after which searches need what it has written, even if it is unknown whether it was committed."""

    __slots__ = ("_replica", "has_written")

    def __init__(self, replica: Replica | None) -> None:
        self._replica = replica
        self.has_written = False

    def take(self) -> NotingWrite:
        """Return itself, so that the block says whether it has written."""
        return self

    def give_back(self) -> None:
        """Tell the replica."""
        if self._replica is not None and self.has_written:
            self._replica.note_write()
