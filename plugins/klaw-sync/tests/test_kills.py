"""A machine is killed before each write of a run: nothing is lost then, and nothing that was forgotten is left."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import apsw
import pytest

from klaw_core import Memory, load_config
from klaw_facts import Facts
from klaw_journals import Chat, FileJournals, Message, NewDocument
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.desks import Desk, desks
from klaw_sync.extension import SyncExtension
from klaw_sync.state import State
from klaw_sync.values import KINDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KEY = MemoryKey("00112233445566aa", bytes(range(32)))
#: What makes a write durable or visible.
WRITES = ("fsync", "fdatasync", "replace", "rename", "unlink", "write", "link")
KILLED, FINISHED = 9, 0


def machine(root: Path, name: str) -> Sync:
    (root / name / "sync").mkdir(parents=True)
    KEY.save(root / name / "sync" / "key")
    return Sync(root / name, host=name)


def scene(root: Path) -> tuple[Sync, Sync, Folder]:
    """Two machines that were equal; each has changed and forgotten something since."""
    one, other, folder = machine(root, "one"), machine(root, "other"), Folder(root / "folder")
    mine, its = FileJournals(one.root), FileJournals(other.root)
    mine.records("documents").append([{"id": f"memory/{name}", "text": f"old {name}"} for name in "abc"])
    log = mine.logs("conversations").log("telegram_1", "2026-01-01")
    log.append(*({"id": f"m{n}", "ts": f"2026-01-01T10:0{n}:00.000Z", "content": f"said {n}"} for n in range(3)))
    for each in (one, other, one):
        each.run([folder])
    mine.records("documents").append([{"id": "memory/a", "text": "new a"}])
    mine.records("documents").forget(["memory/b"])
    its.records("documents").append([{"id": "memory/d", "text": "new d"}])
    its.records("documents").forget(["memory/c"])
    its.logs("conversations").log("telegram_1", "2026-01-01").remove(lambda line: line.value["id"] == "m1")
    its.logs("conversations").log("telegram_1", "2026-01-01").append(
        {"id": "m9", "ts": "2026-01-01T10:00:30.000Z", "content": "said 9"}
    )
    Desk(one.root, KINDS["core_memory"]).settle(lambda _held: [{"section": "user", "key": "k", "value": "new k"}])
    other.run([folder])
    return one, other, folder


def killed_at(number: int, machine: Sync, act) -> int:
    """Run ``act`` in a process that ends before its write or step of this number; return its status.

    A step of the machine follows each transaction of its state, which SQLite writes.
    """

    def stepping(before) -> None:
        machine.step = before(machine.step)
        act()

    return killed_in(number, stepping)


def killed_in(number: int, act) -> int:
    """Run ``act`` as :func:`killed_at` does, with what makes a function count as a write."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        left = [number]

        def before(real):
            def call(*arguments, **options):
                left[0] -= 1
                if left[0] == 0:
                    os._exit(KILLED)
                return real(*arguments, **options)

            return call

        try:
            for name in WRITES:
                if hasattr(os, name):
                    setattr(os, name, before(getattr(os, name)))
            act(before)
        except BaseException:  # noqa: BLE001  # the parent tells it from a kill
            os._exit(1)
        os._exit(FINISHED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def shown(sync: Sync) -> list[object]:
    found: list[object] = []
    for desk in desks(sync.root, list(KINDS)):
        if desk.stamp:
            desk.settle(lambda held: (found.extend(sorted(map(str, held))), held)[1])
    return found


EXPECTED = ["new a", "new d", "new k", "said 0", "said 2", "said 9"]
GONE = [b"old a", b"old b", b"old c", b"said 1"]


def check(root: Path, one: Sync, other: Sync, gone: Sequence[bytes] = GONE) -> None:
    assert shown(one) == shown(other)
    text = str(shown(one))
    assert [word for word in EXPECTED if word not in text] == []
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    left = [(path.name, word) for path in files for word in gone if word in path.read_bytes()]
    assert left == []


def send(one: Sync, _other: Sync, folder: Folder) -> tuple[Sync, object]:
    """The first machine sends, receives, forgets and packs."""
    return one, lambda: one.run([folder])


def receive(one: Sync, other: Sync, folder: Folder) -> tuple[Sync, object]:
    """The other machine receives and forgets what the first one has told."""
    one.run([folder])
    return other, lambda: other.run([folder])


def restore(one: Sync, other: Sync, folder: Folder) -> tuple[Sync, object]:
    """A machine that has lost its state takes a new id, and finds what it is."""
    one.run([folder])
    (other.root / "sync" / "state.db").unlink()
    return other, lambda: other.run([folder])


def remove(one: Sync, _other: Sync, folder: Folder) -> tuple[Sync, object]:
    """A machine is removed, and the others get a new key."""
    lost = machine(folder.root.parent, "lost")
    lost.run([folder])
    FileJournals(lost.root).records("documents").append([{"id": "memory/e", "text": "new e"}])
    lost.run([folder])
    return one, lambda: one.remove("lost", [folder], new_key=True)


@pytest.fixture
def fast(monkeypatch):
    """Do not wait for the disk: only the process ends."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    monkeypatch.setattr("os.fdatasync", lambda _descriptor: None, raising=False)


def _killed(tmp_path: Path, prepare, every: int) -> int:
    """Kill an act before each of its writes, or one in ``every``; return how many it has."""
    scene(tmp_path / "scene")
    number, status = 1 - every, KILLED
    while status == KILLED:
        number += every
        root = tmp_path / "copy"
        shutil.copytree(tmp_path / "scene", root)
        one, other, folder = Sync(root / "one", host="one"), Sync(root / "other", host="other"), Folder(root / "folder")
        doer, act = prepare(one, other, folder)
        status = killed_at(number, doer, act)
        assert status in {KILLED, FINISHED}
        doer.step = lambda _name: None
        if prepare is remove:
            act()
            other.join(folder, one.key.code)
            shutil.rmtree(root / "lost")
            assert [each.host for each in one.machines() if each.is_removed] == ["lost"]
        for _ in range(3):
            for each in (one, other):
                report = each.run([folder])
                assert (report.problems, report.waiting) == ((), ())
        assert (one.run([folder]).sent, other.run([folder]).sent) == (0, 0)
        check(root, one, other, GONE[1:] if prepare is restore else GONE)  # without a state, an old value is a conflict
        assert ("new e" in str(shown(one))) == (prepare is remove)
        shutil.rmtree(root)
    return number


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("prepare", "every"), [(send, 1), (receive, 4), (restore, 4), (remove, 4)])
def test_a_run_that_is_killed_loses_nothing(tmp_path, prepare, every):
    assert _killed(tmp_path, prepare, every) > 20


@pytest.mark.campaign
@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("prepare", [receive, restore, remove])
def test_a_run_that_is_killed_before_any_write_loses_nothing(tmp_path, prepare):
    assert _killed(tmp_path, prepare, 1) > 20


CHAT = Chat("telegram", "1")
KINDS_OF_RECORDS = ("saved", "document", "message", "fact", "key")


def opened(root: Path) -> AbstractContextManager[Memory]:
    """A memory of words only."""
    overrides = {"memory": {"embedding": {"type": "none"}}}
    return Memory.open(load_config(data_dir=root, environment={"KLAW_CONFIG": os.devnull}, overrides=overrides))


def written(memory: Memory, what: str) -> list[Callable[[], object]]:
    """Write a record of each kind; return what forgets each."""
    path = memory.save(f"{what}saved is a saved memory").path
    memory.add([NewDocument(what, f"{what}document is a document")])
    message = Message("user", f"{what}message was said", datetime(2026, 1, 1, tzinfo=UTC), meta=CHAT.meta)
    name = memory.conversations.append(message).id
    fact = memory.extension(Facts).remember(f"{what}fact is a fact")
    memory.core.update("user", what, f"{what}key is a value")
    found = [partial(memory.forget, each) for each in (path, f"{CHAT.name}/{name}", f"facts/{fact.id}")]
    return [*found, lambda: memory.delete([what]), lambda: memory.core.delete("user", what)]


def indexed_scene(root: Path) -> None:
    """Two memories that were equal, and of which one has told of new and of forgotten records since."""
    folder = [str(root / "folder")]
    machine(root, "one"), machine(root, "other")
    with opened(root / "one") as one:
        forget = written(one, "gone")
        one.extension(SyncExtension).run(folder)
        with opened(root / "other") as other:
            other.extension(SyncExtension).run(folder)
            assert words(other, "gone") == {*KINDS_OF_RECORDS} - {"key"}
        for each in forget:
            each()
        written(one, "new")
        one.extension(SyncExtension).run(folder)


def words(memory: Memory, what: str) -> set[str]:
    """Return the kinds of records that a search by words finds, in all collections."""
    search = partial(memory.search, mode="fts", collection=list(memory.collections()))
    return {
        kind for kind in KINDS_OF_RECORDS if any(f"{what}{kind}" in found.content for found in search(f"{what}{kind}"))
    }


class _Counted(apsw.VFS):
    """The system's VFS of SQLite, of which each call that changes a file is counted."""

    def __init__(self, count: Callable[[], object]) -> None:
        self.count, self.base = count, apsw.vfs_names()[0]
        super().__init__("klaw-counted", self.base, makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802
        return _CountedFile(self.count, self.base, name, flags)


class _CountedFile(apsw.VFSFile):
    def __init__(self, count, base, name, flags) -> None:
        self.count = count
        super().__init__(base, name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        self.count()
        super().xWrite(data, offset)

    def xTruncate(self, size):  # noqa: N802
        self.count()
        super().xTruncate(size)


def synchronise(root: Path):
    """Return what the other machine does in a process, given what makes a function count as a write."""

    def act(before):
        vfs = _Counted(before(lambda: None))
        State.commit = before(State.commit)
        with opened(root / "other") as other:
            other.extension(SyncExtension).run([str(root / "folder")])
        vfs.unregister()

    return act


def _killed_with_an_index(tmp_path: Path, every: int) -> int:
    """Kill a machine that receives before each write, or one in ``every``; return how many there are."""
    indexed_scene(tmp_path / "scene")
    number, status = 1 - every, KILLED
    while status == KILLED:
        number += every
        root = tmp_path / "copy"
        shutil.copytree(tmp_path / "scene", root)
        status = killed_in(number, synchronise(root))
        assert status in {KILLED, FINISHED}
        with opened(root / "other") as other:
            report = other.extension(SyncExtension).run([str(root / "folder")])
            assert report.problems == ()
            assert (words(other, "new"), words(other, "gone")) == ({*KINDS_OF_RECORDS} - {"key"}, set()), number
            assert other.core.get().user == {"new": "newkey is a value"}
        files = [path for path in sorted((root / "other").rglob("*")) if path.is_file()]
        told = [f"gone{kind}".encode() for kind in KINDS_OF_RECORDS]
        left = [(path.name, word) for path in files for word in told if word in path.read_bytes()]
        assert left == [], number
        shutil.rmtree(root)
    return number


@pytest.mark.promise("Y19")
@pytest.mark.usefixtures("fast")
def test_a_run_that_is_killed_leaves_an_index_that_the_next_one_completes(tmp_path):
    assert _killed_with_an_index(tmp_path, 20) > 60


@pytest.mark.campaign
@pytest.mark.usefixtures("fast")
def test_a_run_that_is_killed_before_any_write_leaves_an_index_that_the_next_one_completes(tmp_path):
    assert _killed_with_an_index(tmp_path, 1) > 60
