"""A disk that is really full: the caller is told so, nothing is half-written, and with space everything goes on.

Two kinds: a small tmpfs, where the system lets these tests mount one (as root), and a limit on the size of files
(``RLIMIT_FSIZE``), as a quota: it works everywhere, and meets SQLite with another error than a full disk does.
"""

import resource
import subprocess
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest
from attrs import frozen

from klaw_core import StoreError, StoreFullError
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_testing.index import stored

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
CHAT = Chat("telegram", "1")
LEFT = 64 * 1024  # bytes, when it is nearly full
MAX_MESSAGES = 2000  # more than fit


@frozen
class Limit:
    """No file may grow beyond the largest one there is, and a little."""

    root: Path

    @contextmanager
    def full(self):
        with closing(apsw.Connection(str(self.root / "data" / "klaw.db"))) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # or the log is the largest, and is written over
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in (self.root / "data").rglob("*"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + LEFT // 4, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@frozen
class Tmpfs:
    """A file system of 8 MB, of which a little is left."""

    root: Path

    @contextmanager
    def full(self):
        ballast = self.root / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):  # noqa: PT012  # the block fills it
            while file.write(bytes(65536)):
                pass
        with ballast.open("r+b") as file:
            file.truncate(ballast.stat().st_size - LEFT)
        try:
            yield
        finally:
            ballast.unlink()


@pytest.fixture(params=[Limit, Tmpfs])
def disk(request, tmp_path):
    if request.param is Limit:
        yield Limit(tmp_path)
        return
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "klaw-tests", str(tmp_path)]
    if (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield Tmpfs(tmp_path)
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.fixture
def home(disk, make_home):
    home = make_home("sqlite")
    home.root = disk.root.resolve()
    home.notes.mkdir()
    return home


@pytest.fixture
def memory(home):
    for number in range(3):
        note(home, number)
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("harbour at night", created_at=MOMENT)
        say(memory, 0)
        yield memory


def note(home, number, times=1):
    words = " ".join([f"note{number}word{part}" for part in range(60)] * times)
    home.write(f"{number}.md", f"# Note{number}\n\n{words}\n")


def say(memory, number, times=20):
    text = f"message{number} " + "was said " * times
    memory.conversations.append(Message("user", text, MOMENT + timedelta(seconds=number), meta=CHAT.meta))


def until_full(action):
    """Act until the disk is full; return how often that was acknowledged, and the error."""
    for number in range(1, MAX_MESSAGES):
        try:
            action(number)
        except StoreFullError as error:
            return number - 1, error
    raise AssertionError("it was never full")


def whole(memory, home, check, dump):
    """Look whether all is as in a memory that never met a full disk, and nothing is left over."""
    memory.index()
    check(memory)
    before = dump(memory)
    memory.reindex()
    check(memory)
    assert dump(memory) == before
    assert [finding for finding in memory.doctor().findings if finding.check != "disk-space"] == []
    assert not list((home.root / "data").rglob(".klaw-*"))


def test_a_full_disk_while_saving(disk, home, memory, check, dump):
    saved = []

    def save(number):
        saved.append(memory.save(f"saved{number} " + "and kept " * 200, created_at=MOMENT))

    with disk.full():
        _, error = until_full(save)
        assert "free some space" in error.hint
        assert memory.search("harbour")[0].content == "harbour at night"
        memory.status()
    assert saved
    for number, passage in enumerate(saved, 1):
        assert passage.notice == "" or "no space left" in passage.notice or "cannot be written" in passage.notice
        assert bool(memory.search(f"saved{number}", mode="fts")) or passage.notice
    whole(memory, home, check, dump)
    for number, passage in enumerate(saved, 1):
        assert memory.search(f"saved{number}", mode="fts")[0].path == passage.path
    save(len(saved) + 1)
    assert saved[-1].notice == ""


def test_a_full_disk_while_appending(disk, memory):
    with disk.full():
        count, _ = until_full(lambda number: say(memory, number, times=800))
    said = [line.message.content.split()[0] for line in memory.conversations.read(CHAT) if hasattr(line, "message")]
    assert said[: count + 1] == [f"message{number}" for number in range(count + 1)]
    say(memory, MAX_MESSAGES)
    memory.conversations.sync()
    found = [row.content.split()[0] for row in messages(memory)]
    assert found[: count + 1] == said[: count + 1]
    assert found[-1] == f"message{MAX_MESSAGES}"
    assert len(set(found)) == len(found)


def messages(memory):
    with memory._assembly.store.read() as snapshot:
        return snapshot.messages.all(CHAT.name)


def test_a_full_disk_while_indexing(disk, home, memory, check, dump):
    for number in range(100):
        note(home, number, times=3)
    with disk.full(), pytest.raises(StoreFullError, match="no space left"):
        memory.index(home.notes)
    check(memory, embedded=False)
    whole(memory, home, check, dump)
    assert memory.search("note99word7", mode="fts")[0].path == "notes/99.md"


def test_a_full_disk_in_a_statement_of_an_index(disk, memory, check):
    """Rows that the page cache cannot hold go to the log before the transaction ends."""
    index = dict(memory._assembly.indexes())["fts5"]
    chunks = [stored(key, " ".join(f"word{key}x{number}" for number in range(40))) for key in range(1000, 4000)]
    store = memory._assembly.store
    full = pytest.raises(StoreFullError, match="no space left")
    with disk.full(), full, store.write() as transaction:
        transaction.resource.pragma("cache_size", 1)
        index.add(transaction.resource, "memory", chunks, None)
        pytest.fail("the rows fitted")
    check(memory)


def test_a_full_disk_while_rebuilding(disk, home, memory, check, dump):
    for number in range(60):
        note(home, number)
    memory.index(home.notes)
    before = dump(memory)
    with disk.full(), pytest.raises(StoreFullError, match="no space left"):
        memory.reindex()
    check(memory)
    assert dump(memory) == before
    whole(memory, home, check, dump)


def test_a_full_disk_at_any_point_of_a_rebuild_is_reported_as_such(make_home, check, cases):
    """Wherever the limit meets it: in the rebuild, in its place being taken, in the log being emptied."""
    home = make_home("sqlite")
    for number in range(15):
        home.write(f"{number}.md", " ".join(f"n{number}w{word}" for word in range(150)))
    with home.open() as memory:
        memory.index(home.notes)
    largest = max(path.stat().st_size for path in (home.root / "data").rglob("*"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = []
    for limit in range(16 * 1024, 3 * largest, max(largest // (12 if cases.whole else 4), 4096)):
        cases.add(1)
        with home.open() as memory:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            try:
                memory.reindex()
                told.append("")
            except StoreError as error:
                told.append(type(error).__name__)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            check(memory)
    assert set(told) == {"", "StoreFullError"}, told


def test_a_full_disk_while_forgetting(disk, home, memory, check, dump):
    """It takes space too; what could not be forgotten is there, what was said to be forgotten is gone."""
    paths = [memory.save(f"saved{number}", created_at=MOMENT).path for number in range(60)]
    with disk.full():
        gone = 0
        try:
            for path in paths:
                memory.forget(path)
                gone += 1
        except StoreFullError:
            pass
    assert not any(memory.search(f"saved{number}", mode="fts") for number in range(gone))
    whole(memory, home, check, dump)
    found = [number for number in range(60) if memory.search(f"saved{number}", mode="fts")]
    assert [number for number in found if number != gone] == list(range(gone + 1, 60)), "one may be half forgotten"
