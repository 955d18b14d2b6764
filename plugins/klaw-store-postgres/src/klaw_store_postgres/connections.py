"""Connections to the server: one pool for each process and database, whatever the number of agents."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
import psycopg_pool
from attrs import define, field, frozen
from psycopg import conninfo, sql

from klaw_core import RetryableStoreError, StoreError
from klaw_store_postgres.errors import as_store_error, is_lost, store_errors
from klaw_store_postgres.kept import Kept
from klaw_store_postgres.options import PostgresOptions

# A transaction that has not begun is begun anew so often: on other connections, once the server is back.
_ATTEMPTS = 5
_IDLE_SECONDS = 120.0
# What a server says that is starting, or recovering from a crash: a connection that is refused has no code for it.
_NOT_YET = ("the database system is starting up", "the database system is in recovery mode", "not yet accepting")
_PAUSE_SECONDS = 0.1
# Fewer rows than that any plan finds quickly.
_ANALYZED_AT = 500


@frozen
class _Server:
    """Which pool: that of a process, a database, a schema, and the other options."""

    process: int
    options: PostgresOptions


@define(eq=False)
class _Pool:
    pool: psycopg_pool.ConnectionPool[Any]
    users: int = 0
    #: Chunks that were added since the tables were analyzed.
    added: int = 0
    kept: Kept = field(factory=Kept)


_pools: dict[_Server, _Pool] = {}
_opening = threading.Lock()


def _forget_pools() -> None:
    """In a child of a fork: the sockets are the parent's."""
    global _opening  # noqa: PLW0603  # of this process
    _opening = threading.Lock()
    _inherited.extend(held.pool for held in _pools.values())
    _pools.clear()


# Never closed here: to close a connection says good-bye on the parent's socket.
_inherited: list[Any] = []
os.register_at_fork(after_in_child=_forget_pools)


@define(eq=False)
class Connections:
    """What one store takes from the pool; safe for several threads, and after a fork."""

    options: PostgresOptions
    location: str
    _server: _Server | None = field(default=None, init=False)

    @contextmanager
    def transaction(self, beginning: Callable[[], str]) -> Iterator[tuple[psycopg.Connection[Any], Any]]:
        """Begin with these statements, give the connection and the last one's row; commit at the end of the block.

        A connection that turns out to be lost before the block is replaced. Raise StoreError.
        """
        pool = self._pool()
        with store_errors(self.location):
            connection, row = self._begin(pool, beginning)
        try:
            with store_errors(self.location):
                try:
                    yield connection, row
                except BaseException:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                    raise
                self._commit(connection)
        finally:
            pool.putconn(connection)  # one that is not idle, or lost, is thrown away

    def retrying(self, work: Callable[[], Any]) -> Any:
        """Return what ``work`` returns: one transaction, done again if another or a lost connection ended it."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return work()
            except RetryableStoreError:
                pass
        return work()

    @contextmanager
    def dedicated(self) -> Iterator[psycopg.Connection[Any]]:
        """Give a connection that is nobody else's: what is locked on it stays so. Raise StoreError."""
        with store_errors(self.location):
            connection = self._connect()
            try:
                self._configure(connection)
                yield connection
            finally:
                connection.close()

    def has_grown(self, added: int, *, than: float = 0) -> bool:
        """Return whether, with these, enough chunks were added to analyze tables of so many; then count anew."""
        self._pool()
        assert self._server is not None
        held = _pools[self._server]
        held.added += added
        if held.added < max(_ANALYZED_AT, than):
            return False
        if than:
            held.added = 0
        return True

    @property
    def kept(self) -> Kept:
        """What was read from this database, and never changes."""
        self._pool()
        assert self._server is not None
        return _pools[self._server].kept

    def close(self) -> None:
        """Give up the pool; the last user closes it."""
        server, self._server = self._server, None
        if server is None or server.process != os.getpid():
            return
        with _opening:
            held = _pools[server]
            held.users -= 1
            if held.users:
                return
            del _pools[server]
        held.pool.close()

    def _begin(
        self, pool: psycopg_pool.ConnectionPool[Any], beginning: Callable[[], str]
    ) -> tuple[psycopg.Connection[Any], Any]:
        for attempt in range(_ATTEMPTS):
            connection = pool.getconn()
            try:
                # Several statements at once, which no prepared one can be.
                cursor = connection.execute(beginning(), prepare=False)
                while cursor.nextset():
                    pass
                return connection, cursor.fetchone() if cursor.description else None
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                pool.putconn(connection)
                if attempt == _ATTEMPTS - 1 or not is_lost(error):
                    raise
                pool.check()  # the others are lost as well, as a rule
        raise AssertionError  # the loop returns or raises

    def _commit(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if is_lost(error):
                raise StoreError(
                    f"{self.location}: the connection was lost at the very end of a transaction: it may have been kept",
                    hint="check that the server runs, then `klaw index`: it finds out",
                ) from error
            raise

    def _pool(self) -> psycopg_pool.ConnectionPool[Any]:
        server = _Server(os.getpid(), self.options)
        if self._server == server:
            return _pools[server].pool
        with _opening:
            held = _pools.get(server)
            if held is None:
                held = _pools[server] = _Pool(self._open())
            held.users += 1
            self._server = server
        return held.pool

    def _open(self) -> psycopg_pool.ConnectionPool[Any]:
        """Open a pool. A connection is tried first: it fails at once, and says why. Raise StoreError."""
        with store_errors(self.location):
            try:
                self._connect().close()
            except psycopg.OperationalError as error:
                raise StoreError(
                    f"cannot connect to {self.location}: {str(error).strip().splitlines()[-1]}",
                    hint="check memory.store.dsn, and that the server runs: docs/how-to/postgres.md",
                ) from error
        arguments = self._arguments()
        return psycopg_pool.ConnectionPool(
            str(arguments.pop("conninfo")),
            kwargs=arguments,
            min_size=0,
            max_size=self.options.pool_size,
            timeout=self.options.timeout_seconds,
            max_idle=_IDLE_SECONDS,
            configure=self._configure,
            name="klaw",
            open=True,
        )

    def _connect(self) -> psycopg.Connection[Any]:
        """Make a connection of one's own; while the server says that it is about to be there, wait for it."""
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
        connection.execute(search_path(self.options.schema))


def search_path(*schemas: str, local: bool = False) -> str:
    """Return the statement after which names mean what is in these schemas; pgvector is in one of the last two."""
    names = sql.SQL(", ").join(map(sql.Identifier, (*schemas, "public", "extensions")))
    scope = sql.SQL("LOCAL" if local else "SESSION")
    text: str = sql.SQL("SET {} search_path = {}").format(scope, names).as_string(None)
    return text


def literal(value: object) -> str:
    """Return a value as SQL."""
    text: str = sql.Literal(value).as_string(None)
    return text


def shown_location(dsn: str, schema: str) -> str:
    """Return where the data is, without a password. Raise StoreError for what is no connection string."""
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:
        raise StoreError(
            "memory.store.dsn is not a connection string", hint="postgresql://USER@HOST/DATABASE"
        ) from error
    defaults = partial(os.environ.get)
    host = parts.get("host") or defaults("PGHOST") or "localhost"
    port = parts.get("port") or defaults("PGPORT")
    name = parts.get("dbname") or defaults("PGDATABASE") or "postgres"
    return f"postgresql://{host}{f':{port}' if port else ''}/{name} ({schema})"


__all__ = ["Connections", "as_store_error", "literal", "search_path", "shown_location"]
