"""``read_dsn``: indexes are searched on a streaming replica, which may be late, away, or another server."""

import subprocess
import tempfile
import time
from collections import deque
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from attrs import evolve

from klaw_core import Condition, Filters, Query
from klaw_store_postgres import replica as module
from klaw_store_postgres.options import PostgresOptions
from klaw_store_postgres.session import Session
from klaw_store_postgres.store import PostgresStore
from klaw_store_postgres.vectors import VectorIndex
from klaw_store_postgres.words.index import WordIndex
from klaw_testing.index import SPACE, unit_vector, unit_vectors
from klaw_testing.values import cut_lines, make_document

SECONDS = 300  # no replica needs so long on any machine
NOWHERE = "postgresql://klaw:hidden@127.0.0.1:1/klaw"


class Standby:
    """A streaming replica of a server, whose replay can be paused."""

    def __init__(self, server):
        self._server, self._root = server, tempfile.mkdtemp(prefix="klaw-standby-")
        user = server._server.system_user
        Path(self._root).chmod(0o777)
        sources = server._server.get_postmaster_info().socket_dir
        self._run = lambda program, *arguments: subprocess.run(
            [server._server.bin_path / program, *arguments],
            user=user, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._run(
            "pg_basebackup", "-h", sources, "-U", "postgres", "-D", f"{self._root}/data", "-R", "-c", "fast", "-N"
        )
        options = f"-k {self._root} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-D", f"{self._root}/data", "-l", f"{self._root}/data/log", "-o", options, "-w", "start")

    def dsn(self, role="klaw"):
        return f"postgresql://{role}@/klaw?host={self._root}"

    def ask(self, sql):
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            return connection.execute(sql).fetchone()[0]

    def catch_up(self):
        """Wait until everything that the primary server has written is there."""
        with psycopg.connect(self._server.superuser_dsn, autocommit=True) as connection:
            written = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()[0]
        until = time.monotonic() + SECONDS
        while not self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"):
            assert time.monotonic() < until
            time.sleep(0.01)

    def stop(self):
        self._run("pg_ctl", "-D", f"{self._root}/data", "-m", "immediate", "-w", "stop")


@pytest.fixture(scope="module")
def standby():
    from klaw_testing.doubles.postgres import PostgresServer

    primary = PostgresServer()
    primary.start()
    standby = Standby(primary)
    standby.primary = primary
    yield standby
    standby.stop()
    primary.stop()


@pytest.fixture
def paused(standby):
    """Call it to let the replica fall behind until the end of the test."""
    yield lambda: standby.ask("SELECT pg_wal_replay_pause()::text")
    standby.ask("SELECT pg_wal_replay_resume()::text")


@pytest.fixture
def asked(monkeypatch):
    """The sockets of the servers that were searched."""
    hosts = []
    for index in (WordIndex, VectorIndex):
        search = index._search
        monkeypatch.setattr(index, "_search", lambda self, session, *rest, search=search: (
            hosts.append(session.connection.info.host), search(self, session, *rest))[1])  # fmt: skip
    return hosts


class Opened:
    """A store with both indexes."""

    def __init__(self, options, agent):
        self.store, self.indexes = PostgresStore(options, agent=agent), (VectorIndex(), WordIndex())
        for name, index in zip(("pgvector", "pgwords"), self.indexes, strict=True):
            self.store.enlist(name, index)

    def close(self):
        self.store.close()

    def put(self, path, text, **metadata):
        document = make_document(path, text, metadata=metadata)
        with self.store.write() as transaction:
            change = transaction.replace("memory", document, cut_lines(document))
            for index in self.indexes:
                if not index.keys(transaction.resource, "memory").size:
                    index.reset(transaction.resource, "memory", SPACE)
                index.add(transaction.resource, "memory", change.added, unit_vectors(change.added))

    def delete(self, path):
        with self.store.write() as transaction:
            keys = transaction.delete("memory", path)
            for index in self.indexes:
                index.remove(transaction.resource, "memory", keys)

    def look_back(self):
        """Let the store have asked the primary server ten seconds ago, at the beginning of its log."""
        self.store._replica._seen = deque([(time.monotonic() - module._LATEST_SECONDS, 1)])

    def search(self, text, filters=None):
        """Return the texts that each index finds, and the notices."""
        found, notices = [], []
        with self.store.read() as snapshot:
            within = None if filters is None else snapshot.select("memory", filters)
            query = Query(text, "memory", unit_vector(text), within)
            for index in self.indexes:
                keys = [hit.key for hit in index.search(snapshot.resource, query, 9)]
                found.append({stored.chunk.text for stored in snapshot.chunks("memory", keys)})
                notices += index.notices(snapshot.resource, query)
        return found, notices


@pytest.fixture
def opened(standby, agent):
    """Open the agent's rows, with the replica."""
    stores = []

    def open_one(**changes):
        options = PostgresOptions(standby.primary.dsn, read_dsn=standby.dsn())
        stores.append(Opened(evolve(options, **changes), agent))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def test_indexes_are_searched_on_the_replica_with_the_filters_of_a_question(standby, opened, asked):
    store = opened()
    store.put("notes/a.md", "the lantern", year=2026)
    store.put("notes/b.md", "the lantern of the pier", year=2025)
    store.search("lantern")
    standby.catch_up()
    store.look_back()
    asked.clear()
    both = {"the lantern", "the lantern of the pier"}
    assert store.search("lantern") == ([both, both], [])
    filters = Filters(metadata=(Condition("year", "=", 2026),))
    assert store.search("lantern", filters) == ([{"the lantern"}, {"the lantern"}], [])
    assert asked == [standby._root] * 4
    with store.store.read() as snapshot:
        assert snapshot.resource.connection.info.host != standby._root


def test_a_search_finds_what_its_own_process_has_just_written(standby, opened, asked, paused):
    store = opened()
    paused()
    store.put("notes/a.md", "the lantern")
    assert store.search("lantern") == ([{"the lantern"}, {"the lantern"}], [])
    assert standby._root not in asked
    standby.ask("SELECT pg_wal_replay_resume()::text")
    standby.catch_up()
    store.look_back()
    assert store.search("lantern") == ([{"the lantern"}, {"the lantern"}], [])
    assert asked[-2:] == [standby._root] * 2


def test_what_is_removed_is_not_shown_although_the_replica_has_it(standby, opened, asked, paused):
    store, other = opened(), opened()
    other.put("notes/a.md", "the lantern")
    other.put("notes/b.md", "the lantern of the pier")
    standby.catch_up()
    store.look_back()
    paused()
    other.delete("notes/a.md")
    assert store.search("lantern") == ([{"the lantern of the pier"}, {"the lantern of the pier"}], [])
    assert asked == [standby._root] * 2


def test_what_no_longer_passes_a_filter_is_not_shown_although_it_does_on_the_replica(standby, opened, asked, paused):
    store, other = opened(), opened()
    other.put("notes/a.md", "the lantern", status="open")
    other.put("notes/b.md", "the lantern of the pier", status="open")
    standby.catch_up()
    store.look_back()
    paused()
    other.put("notes/a.md", "the lantern", status="closed")
    filters = Filters(metadata=(Condition("status", "=", "open"),))
    assert store.search("lantern", filters) == ([{"the lantern of the pier"}, {"the lantern of the pier"}], [])
    assert asked == [standby._root] * 2


def test_a_replica_that_is_too_late_is_passed_over_and_reported(standby, opened, asked, paused, monkeypatch):
    store, other = opened(), opened()
    other.put("notes/a.md", "the lantern")
    standby.catch_up()
    store.look_back()
    paused()
    other.put("notes/b.md", "the lantern of the pier")
    assert store.search("lantern")[0] == [{"the lantern"}, {"the lantern"}]
    assert store.store.statistics()["replica"].endswith("bytes of the log behind")
    assert [finding.check for finding in store.store.check()] == []
    monkeypatch.setattr(module, "_LATEST_SECONDS", 0.0)
    both = {"the lantern", "the lantern of the pier"}
    found, notices = store.search("lantern")
    assert found == [both, both]
    assert len({notice.partition(" is ")[0] for notice in notices}) == 1, (
        "both indexes say it; the log may grow meanwhile"
    )
    assert "bytes of the log behind" in notices[0]
    assert asked[-1] != standby._root
    (finding,) = store.store.check()
    assert (finding.check, finding.severity) == ("replica", "warning")
    assert "bytes of the log" in finding.what


def test_a_process_that_does_not_know_how_late_a_replica_is_needs_all_that_was_written(standby, opened, asked, paused):
    """A command that has just begun, and a server that was not asked for an hour."""
    writer, new, idle = opened(), opened(), opened()
    writer.put("notes/a.md", "the lantern")
    standby.catch_up()
    idle.store._replica._seen = deque([(time.monotonic() - 3600, 1)])
    paused()
    writer.put("notes/b.md", "the lantern of the pier")
    both = {"the lantern", "the lantern of the pier"}
    asked.clear()
    assert [store.search("lantern") for store in (new, idle)] == [([both, both], [])] * 2
    assert standby._root not in asked


def test_a_replica_that_is_away_is_passed_over_for_a_while(opened, asked):
    with closing(opened(read_dsn=NOWHERE, timeout_seconds=2.0)) as store:
        store.put("notes/a.md", "the lantern")
        found, notices = store.search("lantern")
        assert found == [{"the lantern"}, {"the lantern"}]
        assert len(notices) == 1
        assert "Connection refused" in notices[0]
        assert "hidden" not in notices[0]
        assert store.search("lantern") == (found, []), "it is not asked again at once"
        assert len(asked) == 4
        (finding,) = store.store.check()
        assert (finding.check, finding.severity) == ("replica", "warning")
        assert "127.0.0.1:1" in finding.where
        assert "cannot connect" in store.store.statistics()["replica"]


def test_a_server_that_is_no_replica_is_not_searched(standby, server, opened):
    for other in (server.dsn, standby.primary.dsn):
        store = opened(read_dsn=other)
        store.store.journals.records("saved").append([{"id": "a"}])
        with closing(PostgresStore(PostgresOptions(other), agent="another")):
            assert "is not a streaming replica of" in store.store.statistics()["replica"]
        assert any("is not a streaming replica" in notice for notice in store.search("lantern")[1])


def test_reading_a_journal_is_no_write(opened):
    store = opened()
    records = store.store.journals.records("saved")
    before = store.store._replica._written
    records.append([{"id": "a"}])
    written = store.store._replica._written
    assert written is not before
    assert dict(records.replay().records) == {"a": {"id": "a"}}
    assert store.store._replica._written is written


def test_a_snapshot_does_not_ask_whether_it_has_written(opened, monkeypatch):
    store, asked = opened(), []
    monkeypatch.setattr(Session, "value", lambda _session, sql, _values=(): asked.append(sql))
    with store.store.read():
        pass
    assert asked == []


def test_a_write_while_a_search_looks_at_the_log_counts_for_the_next_search(
    standby, opened, asked, paused, monkeypatch
):
    """The place in the log that the first search has read is before that write."""
    store = opened()
    store.put("notes/a.md", "the lantern")
    standby.catch_up()
    store.look_back()
    paused()
    original, waiting = Session.value, ["the lantern of the pier"]

    def look_and_write(self, sql, values=()):
        found = original(self, sql, values)
        if sql == module._WRITTEN and waiting:
            store.put("notes/b.md", waiting.pop())
        return found

    monkeypatch.setattr(Session, "value", look_and_write)
    store.search("lantern")
    assert waiting == []
    asked.clear()
    both = {"the lantern", "the lantern of the pier"}
    assert store.search("lantern") == ([both, both], [])
    assert standby._root not in asked
