"""Servers that stop, connections that break, writers that are in each other's way, and what is killed in mid-write."""

import importlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from select import select

import psycopg
import pytest
from attrs import evolve

from klaw_core import Memory, Migration, RetrievalError, RetryableStoreError, StoreError, StoreLockedError, load_config
from klaw_store_postgres.errors import as_store_error
from klaw_store_postgres.options import PostgresOptions
from klaw_store_postgres.store import PostgresStore
from klaw_testing.store import dump, put
from klaw_testing.values import cut_lines, make_document

CAMPAIGN = Path(__file__).with_name("campaign.py")
#: How many clients, and how many servers, are killed: in a sample, and in a campaign.
CLIENTS, SERVERS = (20, 200), (4, 200)
#: How often a whole server ends: by ``pg_ctl stop -m immediate`` or by SIGKILL, in turns.
STOPS = (2, 40)


@pytest.fixture
def cut(server):
    """Cut every connection that Klaw has to the server."""
    import psycopg

    def cut_all():
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'klaw'"
            return len(connection.execute(sql).fetchall())

    return cut_all


@contextmanager
def losing_commits(number):
    """Lose the answer to a COMMIT, and its connection; yield its number once that has happened."""
    execute, sent, lost = psycopg.Connection.execute, count(1), []

    def lose(connection, query, *arguments, **named):
        result = execute(connection, query, *arguments, **named)
        if query == "COMMIT" and next(sent) == number:
            lost.append(number)
            connection.pgconn.finish()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return result

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", lose)
        yield lost


def wait_until_ended(server, process):
    """Wait until the server has ended one of its processes."""
    until = time.monotonic() + 300
    with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
        while connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (process,)).fetchone():
            assert time.monotonic() < until
            time.sleep(0.01)


def fail_once(session, attempts, state):
    """Let PostgreSQL raise an error of this kind at the first attempt."""
    attempts.append(state)
    if len(attempts) == 1:
        session.run(f"DO $$ BEGIN RAISE EXCEPTION 'in the way' USING ERRCODE = '{state}'; END $$")


class TestLostConnections:
    def test_nothing_is_printed_for_one_unless_a_program_asks_for_it(self, open_store, cut, monkeypatch):
        printed = []
        last = logging.Handler()
        last.emit = printed.append
        monkeypatch.setattr(logging, "lastResort", last)
        monkeypatch.setattr(logging.root, "handlers", [])
        store = open_store()
        with store.read(), store.read():
            pass

        cut()
        with store.read(), store.read():
            pass
        logging.getLogger("psycopg.pool").warning("discarding a connection")

        assert printed == []

    def test_one_that_the_server_ends_because_it_was_idle_is_replaced(self, options, agent, server):
        """``idle_session_timeout`` of a server ends the connections that wait in the pool."""
        limited = evolve(options, dsn=f"{options.dsn}&options=-c%20idle_session_timeout%3D20", timeout_seconds=300.0)
        with closing(PostgresStore(limited, agent=agent)) as store:
            put(store, make_document("notes/a.md", "one"))
            for _ in range(3):
                with store.read() as snapshot:
                    assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
                    own = snapshot.resource.value("SELECT pg_backend_pid()")
                wait_until_ended(server, own)

    def test_a_transaction_that_the_server_ends_can_be_tried_again(self, open_store, server):
        store = open_store()
        with pytest.raises(RetryableStoreError, match="nothing was changed"), store.write() as transaction:  # noqa: PT012  # the block is the subject
            session = transaction.resource
            session.run("SET LOCAL idle_in_transaction_session_timeout = 1")
            wait_until_ended(server, session.value("SELECT pg_backend_pid()"))
            session.value("SELECT 1")

    @pytest.mark.parametrize("limit", ["IdleSessionTimeout", "IdleInTransactionSessionTimeout", "TransactionTimeout"])
    def test_a_time_limit_that_ends_a_connection_says_what_to_set(self, limit):
        hint = as_store_error("here", getattr(psycopg.errors, limit)("ended")).hint
        setting = hint.partition(" SET ")[2].partition(" = 0")[0]
        assert setting.replace("_", "") == limit.lower()

    def test_a_statement_that_takes_too_long_for_the_server_says_what_to_set(self, open_store):
        with pytest.raises(StoreError, match="stopped a statement") as raised, open_store().write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.resource.run("SET LOCAL statement_timeout = 1")
            transaction.resource.value("SELECT pg_sleep(600)")
        assert "statement_timeout" in raised.value.hint

    def test_a_server_that_gives_no_more_connections_says_why(self, options, server):
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            connection.execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 2")
            connection.execute("GRANT ALL ON DATABASE klaw TO limited")
        dsn = options.dsn.replace("//klaw@", "//limited@")
        limited = evolve(options, dsn=dsn, schema="limited", timeout_seconds=2.0)
        with (
            closing(PostgresStore(limited)) as store,
            store.lock("a"),
            store.read(),
            pytest.raises(StoreError, match="too many connections for role"),
            store.read(),
        ):
            pass

    def test_a_transaction_that_has_not_started_uses_another_connection(self, open_store, cut):
        store = open_store()
        put(store, make_document("notes/a.md", "one"))
        with store.read(), store.read():
            pass
        assert cut() >= 2
        with store.read() as snapshot:
            assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
        cut()
        put(store, make_document("notes/b.md", "two"))
        cut()
        assert not store.journals.records("saved").exists
        with store.lock("facts"):
            pass

    def test_a_broken_transaction_leaves_nothing_and_the_next_one_succeeds(self, open_store, cut):
        store = open_store()
        put(store, make_document("notes/a.md", "one"))
        with store.read() as snapshot:
            before = dump(snapshot)
        with pytest.raises(StoreError, match="nothing was changed"), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.replace("memory", make_document("notes/b.md", "two"), [])
            cut()
            transaction.replace("memory", make_document("notes/c.md", "three"), [])
        with store.read() as snapshot:
            assert dump(snapshot) == before
        put(store, make_document("notes/b.md", "two"))

    def test_a_transaction_broken_at_commit_is_not_reported_as_committed(self, open_store, cut):
        store = open_store()
        with pytest.raises(StoreError, match="unknown whether the changes were stored"), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.replace("memory", make_document("notes/b.md", "two"), [])
            cut()
        with store.read() as snapshot:
            assert list(snapshot.manifest("memory", "notes")) == []

    def test_a_connection_lost_when_all_has_been_read_is_no_error(self, open_store, cut):
        store = open_store()
        put(store, make_document("notes/a.md", "one"))
        store.journals.records("saved").append([{"id": "a"}])
        with store.read() as snapshot:
            assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
            assert cut()
        reads = [store.journals.records("saved").ids, store.journals.records("saved").replay, store.journals.names]
        for number, read in enumerate(reads):
            with losing_commits(number=1) as lost:
                assert read(), number
            assert lost == [1]

    @pytest.mark.parametrize("is_new", [True, False])
    def test_a_memory_opens_whichever_commit_is_not_answered(self, options, is_new):
        """Migrations are looked at again, and not made twice."""
        commits = range(1, 30)
        for number in commits:
            schema = f"unanswered{number}" if is_new else "unanswered"
            with losing_commits(number) as lost, closing(PostgresStore(evolve(options, schema=schema))) as store:
                assert not store.journals.records("saved").exists
            if not lost:
                break
        assert 2 < number < commits[-1]

    def test_a_lock_ends_with_its_connection(self, open_store, cut):
        first, second = open_store(), open_store()
        with first.lock("facts"):
            cut()
            with second.lock("facts", on_wait=lambda: pytest.fail("it is held by nobody")):
                pass

    def test_a_rebuild_that_lost_its_lock_changes_nothing(self, open_store, cut):
        store = open_store()
        put(store, make_document("notes/a.md", "one"))
        with pytest.raises(StoreError), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
            put(fresh, make_document("notes/b.md", "two"))
            cut()
        with store.read() as snapshot:
            assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
        assert [finding.check for finding in store.check()] == ["leftovers"]
        assert list(store.check(fix=True)) == []

    def test_an_unreachable_server_is_named_without_the_password(self, options):
        from klaw_store_postgres.store import PostgresStore

        away = evolve(options, dsn="postgresql://klaw:hidden@127.0.0.1:1/klaw", timeout_seconds=2)
        with pytest.raises(StoreError, match=r"127\.0\.0\.1:1/klaw") as caught:
            PostgresStore(away)
        assert "hidden" not in str(caught.value)
        assert "memory.store.dsn" in caught.value.hint
        with pytest.raises(StoreError, match="not a connection string") as caught:
            PostgresStore(evolve(options, dsn="klaw:hidden"))
        assert "hidden" not in str(caught.value)
        assert "hidden" not in repr(away)


#: What a role or a database may set otherwise, besides the switches of compatibility.
OTHER_SETTINGS = {
    "client_encoding": ("LATIN1", "SQL_ASCII"),
    "row_security": ("off",),
    "bytea_output": ("escape",),
    "DateStyle": ("German",),
    "TimeZone": ("Asia/Kathmandu",),
    "extra_float_digits": ("-15",),
}


class TestSettings:
    def test_other_settings_of_a_role_change_no_statement(self, server, tmp_path):
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            switches = connection.execute(
                "SELECT name, CASE setting WHEN 'on' THEN 'off' ELSE 'on' END FROM pg_settings WHERE context = 'user' "
                "AND vartype = 'bool' AND category LIKE 'Version and Platform%'"
            ).fetchall()
            assert len(switches) > 4
            others = [(name, value) for name, values in OTHER_SETTINGS.items() for value in values]
            for number, (name, value) in enumerate([*switches, *others]):
                connection.execute(f"ALTER ROLE klaw SET {name} = '{value}'")
                try:
                    assert round_trip(server.dsn, f"settings-{number}", tmp_path) == [SAID], (name, value)
                finally:
                    connection.execute(f"ALTER ROLE klaw RESET {name}")

    def test_a_lock_outlives_the_limit_of_idle_sessions(self, options, agent):
        limited = evolve(options, dsn=f"{options.dsn}&options=-c%20idle_session_timeout%3D1000")

        def refuse():
            raise StoreLockedError("the lock is held")

        with closing(PostgresStore(limited, agent=agent)) as store, store.lock("a"):
            time.sleep(1.5)  # brief: longer than the server allows
            with pytest.raises(StoreLockedError), store.lock("a", refuse):
                pass

    def test_a_database_of_another_encoding_is_named(self, server, tmp_path):
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            connection.execute("CREATE DATABASE western OWNER klaw ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        with psycopg.connect(server.superuser_dsn.replace("/klaw?", "/western?"), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        with pytest.raises(StoreError, match="its encoding is not UTF8") as raised:
            round_trip(server.dsn.replace("/klaw?", "/western?"), "", tmp_path)
        assert "ENCODING 'UTF8'" in raised.value.hint


SAID = r"The \x41 of κόσμος is 船."


def round_trip(dsn, agent, directory):
    """Save a text as an agent; return the texts that its words find."""
    overrides = {"memory": {"store": {"type": "postgres", "dsn": dsn}, "embedding": {"type": "none"}}}
    config = load_config(data_dir=directory, environment={"KLAW_CONFIG": "/dev/null"}, overrides=overrides)
    with Memory.open(evolve(config, agent=agent)) as memory:
        memory.save(SAID)
        return [found.content for found in memory.search("κόσμος", mode="fts")]


class TestConcurrentTransactions:
    @pytest.mark.parametrize("state", ["40P01", "40001"])
    def test_a_transaction_is_repeated_after_a_conflict(self, open_store, state):
        store = open_store()
        attempts = []
        store.journals.do(lambda session: fail_once(session, attempts, state))
        assert attempts == [state, state]
        with pytest.raises(RetryableStoreError), store.write() as transaction:
            fail_once(transaction.resource, [], state)

    def test_all_migrations_are_repeated_after_a_conflict(self, open_store):
        store = open_store()
        attempts = []

        class Joining:
            needs_vectors = False

            def prepare(self, _resource):
                pass

            def migrations(self):
                return [
                    Migration("1", lambda session: session.run("CREATE TABLE made_twice (tenant integer)")),
                    Migration("2", lambda session: fail_once(session, attempts, "40P01")),
                    Migration("3", lambda session: session.run("DROP TABLE made_twice")),
                ]

        store.enlist(f"joining-{store._agent}", Joining())
        assert len(attempts) == 2

    def test_a_newer_version_of_a_table_is_not_touched(self, open_store):
        store = open_store()
        name = f"newer-{store._agent}"
        store._migrate(name, [Migration("1", lambda _session: None), Migration("2", lambda _session: None)])
        with pytest.raises(StoreError, match="newer version"):
            store._migrate(name, [Migration("1", lambda _session: None)])

    def test_a_writer_waits_for_another_no_longer_than_configured(self, options, agent):
        from klaw_store_postgres.store import PostgresStore

        hasty = evolve(options, timeout_seconds=0.2)
        first, second = PostgresStore(options, agent=agent), PostgresStore(hasty, agent=agent)
        document, other = make_document("notes/a.md", "one"), make_document("notes/b.md", "two")
        put(first, other)
        with first.write() as transaction:
            transaction.replace("memory", document, cut_lines(document))
            put(second, other)
            with pytest.raises(StoreLockedError):
                put(second, document)
        with first.write() as transaction:
            transaction.resource.be_alone()
            with pytest.raises(StoreLockedError), second.write():
                pass
        with first.rebuild(), pytest.raises(StoreLockedError), second.write():
            pass
        with second.write():
            pass
        first.close()
        second.close()


def campaign():
    """Return the module of the program that is killed."""
    sys.path.insert(0, str(CAMPAIGN.parent))
    try:
        return importlib.import_module("campaign")
    finally:
        sys.path.remove(str(CAMPAIGN.parent))


def survivors(dsn, lines):
    """Check what each agent has: all that was acknowledged, of the last one all or nothing, and nothing half."""
    program = campaign()
    INDEXES, open_store, path_of = program.INDEXES, program.open_store, program.path_of  # noqa: N806  # its names
    for line in lines:
        agent, acknowledged, _ = line.split()
        store = open_store(dsn, agent)
        kept = set(store.journals.records("saved").ids())
        with store.read() as snapshot:
            paths = set(snapshot.manifest("memory", "notes"))
            assert {path_of(number) for number in range(int(acknowledged))} <= paths
            assert {str(number) for number in range(int(acknowledged))} <= kept
            assert len(paths) <= len(kept) <= int(acknowledged) + 1
            assert snapshot.counts("memory") == {"notes": (len(paths), 2 * len(paths))}
            keys = snapshot.keys("memory").tolist()
            for index in INDEXES.values():
                assert index.keys(snapshot.resource, "memory").tolist() == keys
                assert list(index.check(snapshot.resource, "memory", None)) == []
        store.close()


@pytest.fixture(scope="module")
def mortal(server):
    """A server of one's own, to be killed. What its processes had written the system has, though no disk has it yet."""
    from klaw_testing.doubles.postgres import PostgresServer

    del server  # which skips, where there is none
    mortal = PostgresServer()
    mortal.start()
    yield mortal
    mortal.stop()


def run_campaign(dsn, who, points):
    seed = time.time_ns() % 1_000_000
    command = [sys.executable, str(CAMPAIGN), dsn, who, str(points), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 10 * points, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    return done.stdout.splitlines()


def test_clients_that_are_killed_lose_nothing_that_was_acknowledged(server, cases):
    clients = cases.number(*CLIENTS)
    lines = run_campaign(server.dsn, "client", clients)
    assert len(lines) == clients
    survivors(server.dsn, lines)


def test_a_server_that_is_killed_loses_nothing_that_was_acknowledged(mortal, cases):
    survivors(mortal.dsn, run_campaign(mortal.dsn, "server", cases.number(*SERVERS)))


def test_a_whole_server_that_is_killed_starts_again_with_what_was_acknowledged(mortal):
    from klaw_store_postgres.options import PostgresOptions
    from klaw_store_postgres.store import PostgresStore

    store = PostgresStore(PostgresOptions(mortal.dsn))
    put(store, make_document("notes/a.md", "one"))
    with pytest.raises(StoreError), store.write() as transaction:  # noqa: PT012  # the block is the subject
        transaction.replace("memory", make_document("notes/b.md", "two"), [])
        os.kill(mortal.pid, signal.SIGKILL)
        select([transaction.resource.connection], [], [])  # its child has noticed, and closes the connection
        transaction.replace("memory", make_document("notes/c.md", "three"), [])
    mortal.restart()
    with store.read() as snapshot:
        assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]
    put(store, make_document("notes/b.md", "two"))
    store.close()


def test_a_search_whose_connection_is_lost_names_the_server(server, agent, tmp_path, monkeypatch):
    """As every other error does: there may be several servers."""

    def lost(*_):
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("klaw_store_postgres.words.index.WordIndex._search", lost)
    with campaign().open_memory(server.dsn, tmp_path) as memory:
        memory.save(f"{agent} was saved")
        with pytest.raises(RetrievalError, match=r": postgresql:\S* \(\w+\): the connection was lost") as raised:
            memory.search("saved", mode="fts")
    assert raised.value.hint == "check that the server runs, then try again"


def test_whoever_waits_notices_soon_that_a_stopped_server_is_back(mortal, agent, monkeypatch):
    """However long the pause before the pool's next attempt has become."""
    monkeypatch.setattr("psycopg_pool.base.AttemptWithBackoff.INITIAL_DELAY", 3600.0)
    with closing(PostgresStore(PostgresOptions(mortal.dsn, timeout_seconds=60.0), agent=agent)) as store:
        put(store, make_document("notes/a.md", "one"))
        mortal.halt("fast")
        found = []
        waiting = threading.Thread(target=lambda: found.extend(manifest_of(store)))
        waiting.start()
        pool = store._connections._pool()
        while waiting.is_alive() and pool.get_stats().get("connections_errors", 0) < 3:
            time.sleep(0.01)
        mortal.go_on()
        waiting.join()
        assert found == ["notes/a.md"]


def manifest_of(store):
    with store.read() as snapshot:
        return list(snapshot.manifest("memory", "notes"))


def end_server(mortal, sent):
    """End a whole server as ``pg_ctl stop -m immediate`` (SIGQUIT) or the system does, and start it again."""
    os.kill(mortal.pid, sent)
    for _ in range(300):  # other processes of a killed server need a moment to notice
        time.sleep(0.1)
        try:
            mortal.restart()
        except Exception:  # noqa: BLE001  # the wheel raises what it likes
            continue
        return
    pytest.fail("the server does not start again")


def test_a_memory_whose_server_stops_loses_nothing_and_goes_on(mortal, cases, tmp_path):
    chance = random.Random("stops")
    command = [sys.executable, str(CAMPAIGN), mortal.dsn, "memory", "0", str(tmp_path)]
    kept, refused = set(), {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")

        def read_until_kept(more):
            for line in lines:
                sign, number, *told = line.split(maxsplit=2)
                if sign == "+":
                    kept.add(int(number))
                    more -= 1
                    if not more:
                        return
                else:
                    refused[int(number)] = told[0]
            pytest.fail(f"the writer ended after {line!r}")

        try:
            for point in range(cases.number(*STOPS)):
                read_until_kept(chance.randrange(1, 6))
                time.sleep(chance.uniform(0, 0.1))
                end_server(mortal, (signal.SIGQUIT, signal.SIGKILL)[point % 2])
            read_until_kept(2)  # the next call works
        finally:
            process.kill()
        for line in lines:
            if line.startswith("+") and line.endswith("\n"):
                kept.add(int(line.split()[1]))
    known = ("Store", "UnknownCommit")  # the second one may be stored
    assert {told for told in refused.values() if not told.startswith(known) or told.endswith("->")} == set()
    last = max({*kept, *refused})
    with campaign().open_memory(mortal.dsn, tmp_path) as memory:
        memory.index()
        texts = [record.path for record in memory.documents(prefix="saved/", limit=100_000)]
        found = {number for number in range(last + 2) if memory.search(f"number{number}x", mode="fts")}
        assert [finding for finding in memory.doctor().findings if finding.severity == "error"] == []
    assert kept <= found <= {*kept, *refused, last + 1}
    assert len(texts) == len(found)


@pytest.mark.parametrize("dsn", ["postgresql://elsewhere\0.example/klaw", "postgresql://a\ud800/klaw", "no dsn"])
@pytest.mark.parametrize("place", ["dsn", "read_dsn"])
def test_a_text_that_is_no_connection_string_is_refused(options, dsn, place):
    """psycopg would leave out what follows a NUL, and connect to another host."""
    with pytest.raises(StoreError, match="not a connection string") as raised:
        PostgresStore(evolve(options, **{place: dsn}))
    assert f"memory.store.{place} " in raised.value.message


def test_a_schema_of_postgresql_is_refused():
    with pytest.raises(ValueError, match="pg_x"):
        PostgresOptions(schema="pg_x")
