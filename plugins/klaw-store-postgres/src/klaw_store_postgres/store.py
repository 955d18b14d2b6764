"""The store: the database on the server, its migrations, and the locks of readers and writers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from attrs import evolve

from klaw_core import (
    Closing,
    DatabaseCorruptError,
    Finding,
    Index,
    Migration,
    RepairableStore,
    Store,
    StoreError,
    StoreLockedError,
    quoted,
)
from klaw_journals import JournalingStore
from klaw_store_postgres import cache
from klaw_store_postgres.connections import Connections, literal, shown_location
from klaw_store_postgres.errors import store_errors
from klaw_store_postgres.holds import AdvisoryLock, NotingWrite, Unfinished, Writing
from klaw_store_postgres.isolation import AGENT_SETTING, distribute, settings_of, whole
from klaw_store_postgres.journals import PostgresJournals
from klaw_store_postgres.options import PostgresOptions
from klaw_store_postgres.replica import SYSTEM, Replica
from klaw_store_postgres.schema import BOOTSTRAP, MIGRATIONS, OWNER, missing, pending, shadowed
from klaw_store_postgres.session import Session
from klaw_store_postgres.snapshot import PostgresSnapshot
from klaw_store_postgres.texts import digest
from klaw_store_postgres.transaction import PostgresTransaction

if TYPE_CHECKING:
    from klaw_core import Snapshot, Transaction
    from klaw_journals import Journals

_LOCK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
# A table with more dead rows than this is reported: autovacuum normally leaves fewer.
_NOT_VACUUMED = """SELECT COALESCE(SUM(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
    WHERE schemaname = %s AND n_dead_tup > 0.5 * n_live_tup"""
_MIN_REMOVED_ROWS = 10_000
_MAY_WRITE = """SELECT current_setting('transaction_read_only') = 'off'
    AND has_table_privilege('collections', 'INSERT')"""
_SIZE = "SELECT pg_database_size(current_database())"
_CLUSTER_SIZE = "SELECT COALESCE(SUM(citus_total_relation_size(logicalrelid)), 0)::bigint FROM pg_dist_partition"
_HERE = "SELECT generation FROM tenants WHERE id = {tenant}"
_PROPAGATION = ("SET LOCAL citus.propagate_set_commands = 'local'",)
_HAS_WRITTEN = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
_OPENING = "SELECT 1 FROM collections WHERE tenant = {tenant} LIMIT 1"


class PostgresStore(JournalingStore, RepairableStore):
    """One agent's rows in a PostgreSQL database that others share.

    Each reader sees one snapshot and never waits. With ``replace_damaged``, missing or damaged tables are replaced.
    Raise StoreError if the database cannot be used.
    """

    offers = Session
    #: Every row has a tenant, every statement names it, and row-level security hides all other rows.
    isolates = True
    #: PostgreSQL keeps removed rows in its files until VACUUM.
    erases_later = "when PostgreSQL vacuums its tables, and stay in its logs, replicas and backups"

    def __init__(self, options: PostgresOptions, *, agent: str = "", replace_damaged: bool = False) -> None:
        self._options = options
        self._agent = agent
        self._location = shown_location(options.dsn, options.schema)
        self._connections = Connections(options, self._location)
        self._replica: Replica | None = None
        self._indexes: dict[str, Index[Session]] = {}
        self._prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
        self._writing = Writing()
        #: The generation of a rebuild is not current yet.
        self._own_generation: int | None = None
        self._replaces_damaged = replace_damaged
        self._replaced: tuple[str, ...] = ()
        try:
            try:
                self._open()
            except DatabaseCorruptError:
                if not replace_damaged:
                    raise
                replaced = self._repair()
                self._open()
                self._replaced = self._after_repair(replaced)
        except BaseException:
            self._connections.close()
            raise

    def _open(self) -> None:
        self._make_tables()
        self._migrate(OWNER, MIGRATIONS)
        self._tenant = self._find_tenant()
        if self._options.read_dsn:
            self._replica = self._find_replica()

    def _find_replica(self) -> Replica:
        """Return the replica, which need not run yet. Raise StoreError if the primary server is a cluster."""
        if self._connections.one_by_one:
            what = "memory.store.read_dsn and a cluster of Citus cannot be combined"
            raise StoreError(what, hint="a coordinator's replica does not say what the workers' replicas have")
        with self._without_agent("BEGIN READ ONLY") as session:
            system = session.value(SYSTEM)
        options = evolve(self._options, dsn=self._options.read_dsn)
        connections = Connections(options, shown_location(options.dsn, options.schema, "read_dsn"))
        connections.one_by_one = True
        return Replica(connections, self._location, system, self._agent)

    @property
    def location(self) -> str:
        """The server, the database and the schema."""
        return self._location

    @property
    def journals(self) -> Journals:
        """The journals, as tables."""
        connections, writing = self._connections, self._writing
        return PostgresJournals(self._own_rows, connections.retrying, self.lock, self._location, writing.innermost)

    def enlist(self, owner: str, index: Index[Session], /) -> None:
        """Let an index join: prepare every connection for it and apply its migrations under ``owner``."""
        with self._own_rows() as session:
            index.prepare(session)
        migrations = tuple(index.migrations())
        try:
            self._migrate(owner, migrations)
        except DatabaseCorruptError:  # the list of migrations is incomplete
            if not self._replaces_damaged:
                raise
            self._replaced += self._after_repair(self._repair({owner: migrations}))
        self._indexes[owner] = index
        self._prepared.clear()

    @contextmanager
    def lock(self, name: str, /, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock of this name on the server. It has its own connection, and ends with it."""
        if not _LOCK_NAME.fullmatch(name):
            raise StoreError(f"invalid lock name: {quoted(name)}", hint="use a-z, 0-9 and hyphens")
        with (
            self._connections.dedicated() as connection,
            AdvisoryLock(connection, self._lock_number(f"lock {name}"), on_wait),
        ):
            yield

    @contextmanager
    def read(self) -> Iterator[Snapshot[Session]]:
        """Open a snapshot."""
        with self._session("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as session:
            session.replica = self._replica
            yield PostgresSnapshot(session)

    @contextmanager
    def write(self) -> Iterator[Transaction[Session]]:
        """Begin a transaction; commit at the end of the block, roll back if it raises.

        Writers of this agent wait for each other only if they write the same document, or rows that all of them share.
        Raise StoreLockedError after ``timeout_seconds`` or during a rebuild, RetryableStoreError after a deadlock or a
        lost connection.
        """
        fresh = self._own_generation is not None
        shared = self._lock_number("rebuild")
        lock = f"pg_advisory_xact_lock({self._lock_number(f'writer {self._own_generation}')})"
        begin = lock if fresh else f"pg_advisory_xact_lock_shared({shared})"
        with self._session("BEGIN", self._lock_timeout(), f"SELECT {begin}") as session:
            session.shared_lock = None if fresh else shared
            with self._writing.entered(session):
                yield PostgresTransaction(session)
        if session.added and self._connections.has_grown(session.added):
            self._analyze()

    def erasing_once(self) -> AbstractContextManager[None]:
        """Do nothing: PostgreSQL erases later."""
        return nullcontext()

    @contextmanager
    def rebuild(self) -> Iterator[Store[Session]]:
        """Yield a store with a new generation of this agent's rows, which replaces the current one at the end.

        Both share the embedding cache, so vectors are kept even if the block raises. During the block writers get
        StoreLockedError; readers continue, and see the new content in their next snapshot.
        """
        with self._connections.dedicated() as connection:
            connection.execute(self._lock_timeout(local=False))
            connection.execute(f"SELECT pg_advisory_lock({self._lock_number('rebuild')})")
            with self._own_rows() as session:
                if names := missing(session, self._options.schema):  # some are only read later, or never
                    what = f"{self._location} is not what Klaw made: there is no table {', '.join(names)}"
                    raise DatabaseCorruptError(what, hint="klaw reindex")
                self._remove_leftovers(session)
                generation = session.value("SELECT nextval('generations')")
            unfinished = Unfinished(self._drop_leftovers)
            with unfinished:
                with Closing(partial(self._beside, generation)) as fresh:
                    yield fresh
                unfinished.is_finished = True
            with store_errors(self._location):
                connection.execute("SELECT 1")  # raises if the connection, and with it the lock, is lost
            with self._own_rows() as session:
                left = cache.used_spaces(session)
                session.run("UPDATE tenants SET generation = %s WHERE id = %s", (generation, self._tenant))
                session.generation = generation
                cache.prune(session, left)
            self._drop_leftovers()

    def tidy(self) -> None:
        """Remove the rows that an interrupted rebuild has left. Both share the cache of vectors. Raise StoreError."""
        others = " OR ".join(
            f"EXISTS (SELECT FROM documents WHERE tenant = %s AND generation {than} %s)" for than in "<>"
        )
        with self.read() as snapshot:
            session = snapshot.resource
            if not session.value(f"SELECT {others}", (*session.scope, *session.scope)):
                return
        with self._connections.dedicated() as connection:
            own = (self._lock_number("rebuild"),)
            if connection.execute("SELECT pg_try_advisory_lock(%s)", own).fetchone() == (True,):
                self._drop_leftovers()

    @property
    def replaced(self) -> Sequence[str]:
        """What was said when the store was built."""
        return self._replaced

    def is_damaged(self) -> bool:
        """Return False: PostgreSQL reports damage by errors of its own."""
        return False

    def replace_damaged(self) -> Sequence[str]:
        """Replace missing and damaged tables, unless they have primary data, by empty ones."""
        return self._after_repair(self._repair())

    def _check_tables(self) -> Iterator[Finding]:
        from klaw_store_postgres.repairing import differing

        with self._without_agent() as session:
            names = differing(session, self._options.schema, self._owners())
        if names:
            what = f"tables are missing, or are not what Klaw made: {', '.join(names)}"
            yield Finding("integrity", "error", what, self._location, "klaw reindex", tuple(names))

    def _check_visibility(self) -> Iterator[Finding]:
        """Find a server, or a proxy before it, that hides from a session the row that it has just written."""
        with self._own_rows() as session:
            if not session.value(_MAY_WRITE):
                return
            try:
                with session.connection.transaction(force_rollback=True):
                    session.run(
                        "INSERT INTO collections (tenant, generation, name) VALUES (%s, 0, '')", (self._tenant,)
                    )
                    sql = "SELECT 1 FROM collections WHERE tenant = %s AND generation = 0 AND name = ''"
                    is_seen = session.row(sql, (self._tenant,)) is not None
            except psycopg.errors.InsufficientPrivilege:  # row-level security, without the settings of this session
                is_seen = False
        if not is_seen:
            what = "a session does not see a row that it has just written, so searches find nothing, without an error"
            fix = "settings of a session do not reach the server that has the rows: docs/how-to/postgres.md, A cluster"
            yield Finding("visibility", "error", what, self._location, fix)

    def _owners(self) -> dict[str, Sequence[Migration[Session]]]:
        return {OWNER: MIGRATIONS, **{name: tuple(index.migrations()) for name, index in self._indexes.items()}}

    def _repair(self, more: Mapping[str, Sequence[Migration[Session]]] = MappingProxyType({})) -> set[str]:
        """Replace tables; ``more`` are the migrations of an index that is not enlisted yet."""
        from klaw_store_postgres.repairing import repair

        owners = {**self._owners(), **more}
        with self._without_agent() as session:
            return repair(session, self._options.schema, owners, self._location)

    def _after_repair(self, replaced: set[str]) -> tuple[str, ...]:
        """Return what to tell. If the rows of documents are no longer complete, begin without any."""
        names = ", ".join(sorted(replaced)) or "none"
        notices = [f"{self._location} was damaged; tables that were replaced by empty ones: {names}"]
        if replaced & {"collections", "documents", "chunks"}:
            self._begin_again()
            notices.append("other machines, and agents that share these tables, index their notes again: klaw index")
        return tuple(notices)

    def _begin_again(self) -> None:
        """Take a new generation, without rows of documents."""
        with self._connections.dedicated() as connection:
            connection.execute(self._lock_timeout(local=False))
            connection.execute(f"SELECT pg_advisory_lock({self._lock_number('rebuild')})")
            with self._own_rows() as session:
                generation = session.value("SELECT nextval('generations')")
                session.run("UPDATE tenants SET generation = %s WHERE id = %s", (generation, self._tenant))
            self._drop_leftovers()

    def statistics(self) -> Mapping[str, int | str]:
        """Return the entries and bytes of the agent's cache, its hit rate, and the version of PostgreSQL."""
        with self.read() as snapshot:
            session = snapshot.resource
            size = session.value(_CLUSTER_SIZE if session.distributed else _SIZE)
            version = session.value("SHOW server_version")
            replica = {} if self._replica is None else {"replica": self._replica.state(session)[1]}
            return {"database_bytes": size, **cache.statistics(session), "postgresql_version": version, **replica}

    def check(self, *, fix: bool = False) -> Sequence[Finding]:
        """Return findings: a role that sees the rows of all agents, and the rows of an interrupted rebuild."""
        if fix:
            try:
                with self._connections.dedicated() as connection:
                    connection.execute(self._lock_timeout(local=False))
                    connection.execute(f"SELECT pg_advisory_lock({self._lock_number('rebuild')})")
                    self._drop_leftovers()
            except StoreLockedError:  # a rebuild is running, so its rows are not left over
                pass
            self._vacuum()
        findings = list(self._check_tables())
        if findings:
            return findings
        findings.extend(self._check_visibility())
        with self.read() as snapshot:
            session = snapshot.resource
            sql = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            if session.value(sql) and self._agent:
                findings.append(
                    Finding(
                        "row-level-security",
                        "warning",
                        "the role may bypass row-level security: only Klaw's own statements keep agents apart",
                        self._location,
                        "use an ordinary role: docs/how-to/postgres.md, Roles",
                    )
                )
            if self._replica is not None:
                findings.extend(self._replica.check(session))
            if leftovers := self._leftovers(session):
                what = f"an interrupted `klaw reindex` left rows (generations: {len(leftovers)})"
                findings.append(Finding("leftovers", "warning", what, self._location, "klaw doctor --fix"))
            removed = session.value(_NOT_VACUUMED, (self._options.schema,))
            if removed >= _MIN_REMOVED_ROWS:
                what = f"{removed:,} removed rows, some of them forgotten, are still in the files of the server"
                findings.append(Finding("vacuum", "warning", what, self._location, "klaw doctor --fix"))
        return findings

    def close(self) -> None:
        """Release the connections; closing twice is allowed."""
        self._connections.close()
        if self._replica is not None:
            self._replica.connections.close()

    def _vacuum(self) -> None:
        """Remove the bytes of removed rows from the server's files, except those that a transaction still reads."""
        with self._own_rows() as session:
            tables = ", ".join(self._generational(session))
        with suppress(StoreError), self._connections.dedicated() as connection:
            connection.execute(
                f"VACUUM (SKIP_LOCKED) {tables}, embedding_cache, cache_documents, journal_records, log_records"
            )

    def _beside(self, generation: int) -> PostgresStore:
        """Return a store of another generation of the same rows, with the same indexes."""
        fresh = PostgresStore(self._options, agent=self._agent)
        fresh._own_generation = generation
        fresh._writing = self._writing
        fresh._indexes = dict(self._indexes)
        return fresh

    @contextmanager
    def _session(self, *begin: str) -> Iterator[Session]:
        """Begin a transaction on this agent's rows with these statements."""
        tenant, is_distributed = self._tenant, self._connections.one_by_one
        settings = settings_of(tenant, self._agent)
        # On a cluster, the worker gets the settings too, and its snapshot begins with the first statement on a table.
        propagation, opening = (_PROPAGATION, (_OPENING.format(tenant=tenant),)) if is_distributed else ((), ())
        statements = (begin[0], *propagation, *begin[1:], *settings, *opening, _HERE.format(tenant=tenant))
        with NotingWrite(self._replica) as noting, self._connections.transaction(*statements) as (connection, row):
            if row is None:
                raise StoreError(f"{self._location}: the agent {self._agent!r} was removed", hint="open it again")
            generation = self._own_generation or row[0]
            session = Session(
                connection,
                tenant,
                generation,
                self._location,
                distributed=is_distributed,
                kept=self._connections.kept,
            )
            done = self._prepared.setdefault(connection, set())
            for owner in self._indexes.keys() - done:
                self._indexes[owner].prepare(session)
                done.add(owner)
            yield session
            if self._replica is not None and "READ ONLY" not in begin[0]:
                noting.has_written = session.value(_HAS_WRITTEN)

    @contextmanager
    def _own_rows(self, begin: str = "BEGIN") -> Iterator[Session]:
        """Begin a transaction without the writers' lock: for journals, and for the rebuild's own steps."""
        with self._session(begin, self._lock_timeout()) as session:
            yield session

    def _analyze(self) -> None:
        """Run ANALYZE if the number of rows has doubled since the last time.

        Autovacuum analyzes once a minute. Until then the planner assumes an almost empty table, and chooses any index
        whose first column is the agent, so that each look-up reads all rows of the agent.
        """
        with suppress(StoreError), self._own_rows() as session:
            counted = session.value("SELECT GREATEST(reltuples, 1) FROM pg_class WHERE oid = 'chunks'::regclass")
            if self._connections.has_grown(0, than=counted):
                session.run(
                    f"ANALYZE (SKIP_LOCKED) {', '.join(self._generational(session))}, embedding_cache, journal_records"
                )

    def _leftovers(self, session: Session) -> list[int]:
        """Return the generations of this agent's rows that are not the current one."""
        sql = "SELECT generation FROM tenants WHERE id = %s"
        current = session.value(sql, (self._tenant,))
        found: set[int] = set()
        for table in self._generational(session):
            sql = f"SELECT DISTINCT generation FROM {table} WHERE tenant = %s AND generation <> %s"
            found.update(number for (number,) in session.rows(sql, (self._tenant, current)))
        return sorted(found)

    def _remove_leftovers(self, session: Session) -> None:
        for generation in self._leftovers(session):
            for table in self._generational(session):
                sql = f"DELETE FROM {table} WHERE tenant = %s AND generation = %s"
                session.run(sql, (self._tenant, generation))

    def _drop_leftovers(self) -> None:
        with self._own_rows() as session:
            self._remove_leftovers(session)

    def _generational(self, session: Session) -> list[str]:
        """Return the tables whose rows a rebuild writes again, including those of indexes."""
        sql = """SELECT quote_ident(columns.table_name) FROM information_schema.columns AS columns
                 WHERE table_schema = %s AND column_name = 'generation' AND table_name <> 'tenants' ORDER BY 1"""
        return [name for (name,) in session.rows(sql, (self._options.schema,))]

    def _lock_timeout(self, *, local: bool = True) -> str:
        scope = "LOCAL" if local else "SESSION"
        return f"SET {scope} lock_timeout = {round(self._options.timeout_seconds * 1000)}"

    def _lock_number(self, name: str) -> int:
        return digest(f"klaw\0{self._options.schema}\0{self._agent}\0{name}")

    def _make_tables(self) -> None:
        """Make the schema and the list of migrations, unless they are there."""
        schema = self._options.schema

        def make() -> None:
            with self._without_agent() as session:
                if session.row("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)) is None:
                    session.run(f'CREATE SCHEMA "{schema}"')
                if session.value("SELECT to_regclass(%s)", (f'"{schema}".migrations',)) is None:
                    session.run(BOOTSTRAP)
                self._find_cluster(session)

        self._connections.retrying(make, may_be_twice=True)

    def _find_cluster(self, session: Session) -> None:
        """Note whether the tables are on a cluster: without that, searches would find nothing. Raise StoreError."""
        has_citus = session.value("SELECT to_regclass('pg_dist_partition')::text") is not None
        if self._options.distributed and not has_citus:
            what = f'{self._location} has no Citus, and memory.store.distributed = "citus" needs it'
            raise StoreError(what, hint="as a superuser, in this database: CREATE EXTENSION citus")
        sql = "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass('chunks')"
        self._connections.one_by_one = has_citus and (bool(self._options.distributed) or session.row(sql) is not None)

    def _migrate(self, owner: str, migrations: Sequence[Migration[Session]]) -> None:
        """Bring the tables up to date; those that are need no lock."""
        if not migrations:
            return
        with self._without_agent("BEGIN READ ONLY") as session:
            if not pending(session, owner, migrations, self._location) and not whole(session):
                self._refuse_others(session, owner)
                return

        def apply() -> None:
            with self._without_agent() as session:
                for migration in pending(session, owner, migrations, self._location):
                    migration.apply(session)
                    session.run("INSERT INTO migrations (owner, name) VALUES (%s, %s)", (owner, migration.name))
                distribute(session)

        self._connections.retrying(apply, may_be_twice=True)

    def _refuse_others(self, session: Session, owner: str) -> None:
        """Raise DatabaseCorruptError if statements would use tables of another schema instead of missing ones."""
        if names := shadowed(session, self._options.schema, owner):
            what = f"{self._location} is not what Klaw made: tables are missing, and there is {', '.join(names)}"
            raise DatabaseCorruptError(what, hint="klaw reindex")

    @contextmanager
    def _without_agent(self, *begin: str) -> Iterator[Session]:
        """Begin a transaction on no agent's rows: to change tables, unless other statements begin it."""
        lock = f"SELECT pg_advisory_xact_lock({digest(f'klaw schema {self._options.schema}')})"
        with self._connections.transaction(*(begin or ("BEGIN", lock))) as (connection, _):
            yield Session(connection, 0, 0, distributed=self._connections.one_by_one)

    def _find_tenant(self) -> int:
        """Return the number of the agent, given at its first use."""
        setting = f"SET LOCAL {AGENT_SETTING} = {literal(self._agent)}"

        def find() -> int:
            with self._without_agent("BEGIN", setting) as session:
                sql = "SELECT id FROM tenants WHERE name = %s"
                found = session.value(sql, (self._agent,))
                if found is None:
                    session.run("INSERT INTO tenants (name) VALUES (%s) ON CONFLICT DO NOTHING", (self._agent,))
                    found = session.value(sql, (self._agent,))
                return int(found)

        tenant: int = self._connections.retrying(find, may_be_twice=True)
        return tenant
