"""Connections to the server: one pool for each process and database, whatever the number of agents."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
import psycopg_pool
from attrs import define, field, frozen
from psycopg import conninfo, sql
from psycopg.pq import TransactionStatus

from klaw_core import Closing, Hold, RetryableStoreError, StoreError, StoreLockedError, ThreadLock, shielded
from klaw_store_postgres.errors import UnknownCommitError, as_store_error, is_lost, store_errors
from klaw_store_postgres.options import PostgresOptions
from klaw_words.caching import Kept

# Python prints warnings on stderr if no handler is set up. The pool warns of each connection that it discards.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
# How often the start of a transaction is retried, on other connections, until the server is back.
_ATTEMPTS = 5
_IDLE_SECONDS = 120.0
# The messages of a server that is starting or recovering from a crash; a refused connection has no error code for it.
_NOT_YET = ("the database system is starting up", "the database system is in recovery mode", "not yet accepting")
_PAUSE_SECONDS = 0.1
# A pool doubles its pause after each failed attempt to connect. After this time it begins again, so that it does not
# miss for minutes that the server is back.
_RECONNECT_SECONDS = 2.0
# The meaning of Klaw's statements depends on these settings. A role, a database or PGCLIENTENCODING may set others.
_SETTINGS = (
    "SET SESSION client_encoding = UTF8",
    "SET SESSION standard_conforming_strings = on",
    "SET SESSION array_nulls = on",
    "SET SESSION row_security = on",
)
# With fewer rows than this every query plan is fast.
_MIN_ANALYZED_ROWS = 500


@frozen
class _Server:
    """The key of a pool: process, database, schema, and the other options."""

    process: int
    options: PostgresOptions


@define(eq=False)
class _Pool:
    pool: psycopg_pool.ConnectionPool[Any]
    users: set[Connections] = field(factory=set)
    #: Chunks added since the tables were last analyzed.
    added: int = 0
    kept: Kept = field(factory=Kept)


_pools: dict[_Server, _Pool] = {}
_opening = ThreadLock("the list of connection pools")


def _forget_pools() -> None:
    """Forget all pools in the child of a fork, because the sockets belong to the parent."""
    _inherited.extend(held.pool for held in _pools.values())
    _pools.clear()


# The child never closes them: closing a connection sends a message on the parent's socket.
_inherited: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


@define(eq=False)
class Connections:
    """The connections of one store, taken from the pool. Thread-safe, and safe after a fork."""

    options: PostgresOptions
    location: str
    #: Whether each statement is sent by itself, as Citus needs: it sends the whole text of a SET LOCAL to the workers.
    one_by_one: bool = field(default=False, init=False)
    _server: _Server | None = field(default=None, init=False)

    @contextmanager
    def transaction(self, *beginning: str) -> Iterator[tuple[psycopg.Connection[Any], Any]]:
        """Run the statements of ``beginning``; yield the connection and the last statement's row; commit at the end.

        A connection that is lost before the block starts is replaced. One that is lost when nothing is left to do but
        to end a transaction that only reads is no error. Raise StoreError.
        """
        lent = _Lent(self._pool())
        with store_errors(self.location), lent:
            connection, row = self._begin(lent, beginning)
            yield connection, row
            self._commit(connection, only_reads=any("READ ONLY" in text for text in beginning))

    def retrying(self, work: Callable[[], Any], *, may_be_twice: bool = False) -> Any:
        """Return what ``work`` returns. It is one transaction, repeated after a conflict or a lost connection.

        With ``may_be_twice``, it is repeated after a COMMIT whose answer was lost, too.
        """
        kinds = (RetryableStoreError, UnknownCommitError) if may_be_twice else (RetryableStoreError,)
        for _ in range(_ATTEMPTS - 1):
            with suppress(*kinds):
                return work()
        return work()

    @contextmanager
    def dedicated(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection outside the pool, which keeps its locks until the block ends. Raise StoreError."""
        with store_errors(self.location), Closing(self._connect) as connection:
            self._configure(connection)
            connection.execute("SET SESSION idle_session_timeout = 0")  # it is idle while it holds a lock
            yield connection

    def has_grown(self, added: int, *, than: float = 0) -> bool:
        """Count added chunks; return True, and reset the count, if the tables should be analyzed."""
        self._pool()
        assert self._server is not None
        held = _pools[self._server]
        held.added += added
        if held.added < max(_MIN_ANALYZED_ROWS, than):
            return False
        if than:
            held.added = 0
        return True

    @property
    def kept(self) -> Kept:
        """The cache of immutable data that was read from this database."""
        self._pool()
        assert self._server is not None
        return _pools[self._server].kept

    def close(self) -> None:
        """Release the pool; its last user closes it."""
        if self._server is None or self._server.process != os.getpid():
            return
        with _opening.hold():
            held = _pools.get(self._server)
            if held is None:
                return
            held.users.discard(self)
            if held.users:
                return
            del _pools[self._server]
            self._server = None
        shielded(held.pool.close)

    def _begin(self, lent: _Lent, beginning: Sequence[str]) -> tuple[psycopg.Connection[Any], Any]:
        texts = beginning if self.one_by_one else ("; ".join(beginning),)
        for attempt in range(_ATTEMPTS):
            try:
                connection = lent.connection()
            except psycopg_pool.PoolTimeout:  # which does not say why
                self._check_server()
                raise
            try:
                # Several statements in one call, which cannot be prepared.
                for text in texts:
                    cursor = connection.execute(text, prepare=False)
                while cursor.nextset():
                    pass
                return connection, cursor.fetchone() if cursor.description else None
            except psycopg.Error as error:
                if attempt == _ATTEMPTS - 1 or not is_lost(error):
                    raise
                lent.give_back()
                shielded(lent.pool.check)  # the other connections are usually lost too
        raise AssertionError  # the loop returns or raises

    def _commit(self, connection: psycopg.Connection[Any], *, only_reads: bool) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if is_lost(error) and only_reads:
                return
            if is_lost(error):
                raise UnknownCommitError(
                    f"{self.location}: the connection was lost during COMMIT; unknown whether the changes were stored",
                    hint="check that the server runs, then run `klaw index`",
                ) from error
            raise

    def _pool(self) -> psycopg_pool.ConnectionPool[Any]:
        server = _Server(os.getpid(), self.options)
        if self._server == server:
            return _pools[server].pool
        with _opening.hold():
            held = _pools.get(server)
            if held is None:
                held = _pools[server] = _Pool(self._open())
            held.users.add(self)
            self._server = server
        return held.pool

    def _open(self) -> psycopg_pool.ConnectionPool[Any]:
        """Open a pool. A single connection is tried first, because it fails at once with a reason. Raise StoreError."""
        with store_errors(self.location):
            self._check_server()
        arguments = self._arguments()
        return shielded(
            lambda: psycopg_pool.ConnectionPool(
                str(arguments.pop("conninfo")),
                kwargs=arguments,
                min_size=0,
                max_size=self.options.pool_size,
                timeout=self.options.timeout_seconds,
                max_idle=_IDLE_SECONDS,
                reconnect_timeout=_RECONNECT_SECONDS,
                reconnect_failed=_connect_again,
                configure=self._configure,
                name="klaw",
                open=True,
            )
        )

    def _check_server(self) -> None:
        """Open a connection outside the pool, and close it. Raise StoreError with the reason if that fails."""
        try:
            self._connect().close()
        except psycopg.OperationalError as error:
            # After several attempts psycopg lists all of them after the last one.
            why = " ".join(str(error).partition("\nMultiple connection attempts failed")[0].split())
            raise StoreLockedError(  # as a pool without a connection in time; not retried: that would wait again
                f"cannot connect to {self.location}: {why}",
                hint="check memory.store.dsn, and that the server runs: docs/how-to/postgres.md",
            ) from error

    def _connect(self) -> psycopg.Connection[Any]:
        """Open a connection outside the pool; wait while the server reports that it is starting."""
        deadline = time.monotonic() + self.options.timeout_seconds
        while True:
            try:
                return psycopg.connect(**self._arguments())
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or not any(words in str(error) for words in _NOT_YET):
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _arguments(self) -> dict[str, Any]:
        return {
            "conninfo": self.options.dsn,
            "autocommit": True,
            "application_name": "klaw",
            "connect_timeout": max(2, round(self.options.timeout_seconds)),
        }

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        for statement in (*_SETTINGS, search_path(self.options.schema)):
            connection.execute(statement)


def _connect_again(pool: Any) -> None:
    """Let a pool try to connect at once if somebody waits for a connection."""
    if pool.get_stats().get("requests_waiting"):
        pool.check()


class _Lent(Hold[None]):
    """A connection of the pool, given back at the end of the block; its transaction ends with it."""

    __slots__ = ("_has_ended", "_taken", "pool")

    def __init__(self, pool: psycopg_pool.ConnectionPool[Any]) -> None:
        self.pool = pool
        self._taken: list[psycopg.Connection[Any]] = []
        self._has_ended = False

    def take(self) -> None:
        """Take none yet."""

    def connection(self) -> psycopg.Connection[Any]:
        """Take a connection. Raise PoolTimeout."""
        shielded(self._get)
        return self._taken[0]

    def _get(self) -> None:
        self._taken.append(self.pool.getconn())
        if self._has_ended:  # while this thread waited for it
            self._put()

    def give_back(self) -> None:
        """Give the connection back. It can be taken again within the block."""
        if self._taken:
            shielded(self._put)

    def end(self) -> None:
        """End the block."""
        self._has_ended = True
        super().end()

    def _put(self) -> None:
        with suppress(IndexError):  # another thread has just done it
            while True:
                connection = self._taken.pop()
                with suppress(psycopg.Error):
                    if connection.info.transaction_status != TransactionStatus.IDLE:
                        connection.execute("ROLLBACK")
                self.pool.putconn(connection)  # which discards one that is lost or still in a transaction


def search_path(*schemas: str, local: bool = False) -> str:
    """Return the statement that sets the search path to these schemas; pgvector is in one of the last two."""
    names = sql.SQL(", ").join(map(sql.Identifier, (*schemas, "public", "extensions")))
    scope = sql.SQL("LOCAL" if local else "SESSION")
    text: str = sql.SQL("SET {} search_path = {}").format(scope, names).as_string(None)
    return text


def literal(value: object) -> str:
    """Return a value as SQL."""
    text: str = sql.Literal(value).as_string(None)
    return text


def _whole(dsn: str) -> str:
    """Return a connection string. Raise ValueError for one of which psycopg would leave out the rest."""
    if "\0" in dsn:
        raise ValueError(dsn)
    return dsn


def shown_location(dsn: str, schema: str, option: str = "dsn") -> str:
    """Return the location of the data without a password. Raise StoreError for an invalid connection string."""
    try:
        parts = conninfo.conninfo_to_dict(_whole(dsn))
    except (psycopg.Error, ValueError) as error:  # also of a text that is not valid Unicode
        raise StoreError(
            f"memory.store.{option} is not a connection string", hint="postgresql://USER@HOST/DATABASE"
        ) from error
    defaults = partial(os.environ.get)
    host = parts.get("host") or defaults("PGHOST") or "localhost"
    port = parts.get("port") or defaults("PGPORT")
    name = parts.get("dbname") or defaults("PGDATABASE") or "postgres"
    return f"postgresql://{host}{f':{port}' if port else ''}/{name} ({schema})"


__all__ = ["Connections", "as_store_error", "literal", "search_path", "shown_location"]
