"""The error about a locked database names the process that writes, where the system says it."""

import subprocess
import sys

import apsw
import pytest

from klaw_core import Memory, StoreLockedError, load_config
from klaw_store_sqlitevec.errors import store_errors
from klaw_store_sqlitevec.lock_holders import writer_of

_WRITER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def database(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as memory:
        memory.save("the drink is tea")
    return tmp_path / "data" / "klaw.db"


@pytest.fixture
def writer(database):
    """A process that writes to the database."""
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.stdin.close()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")
class TestLinux:
    def test_another_process_is_named(self, database, writer):
        assert writer_of(database).startswith(f"process {writer.pid} (")
        config = load_config(
            data_dir=database.parent,
            overrides={"memory": {"store": {"type": "sqlite", "busy_timeout_seconds": 0.1}}},
            environment={"KLAW_EMBEDDER": "none"},
        )
        with Memory.open(config) as memory:
            assert f"process {writer.pid}" in memory.save("the drink is milk").notice

    def test_this_process_is_named(self, database):
        connection = apsw.Connection(str(database))
        connection.execute("BEGIN IMMEDIATE")
        assert writer_of(database) == "this process"
        connection.execute("ROLLBACK")
        connection.close()

    def test_a_free_database_has_no_writer(self, database):
        connection = apsw.Connection(str(database))  # a reader is no writer
        connection.execute("BEGIN")
        list(connection.execute("SELECT count(*) FROM sqlite_schema"))
        assert writer_of(database) == "another process"
        connection.close()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_name_nobody(database, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert writer_of(database) == "another process"


def test_the_error_has_a_holder_and_a_hint(tmp_path):
    with pytest.raises(StoreLockedError) as error, store_errors(str(tmp_path / "klaw.db")):
        raise apsw.BusyError("database is locked")
    assert error.value.message.endswith("is locked by another process")
    assert error.value.hint


@pytest.mark.parametrize("error", [apsw.BusyError, apsw.LockedError, apsw.ProtocolError])
def test_each_error_of_a_lock_is_one_of_a_locked_store(tmp_path, error):
    """SQLite has several: ProtocolError is that of a process which stands still while it opens the log."""
    with pytest.raises(StoreLockedError) as raised, store_errors(str(tmp_path / "klaw.db")):
        raise error("locking protocol")
    assert "try again" in raised.value.hint
