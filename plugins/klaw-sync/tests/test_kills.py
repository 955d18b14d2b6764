"""A machine is killed before each write of a run: nothing is lost then, and nothing that was forgotten is left."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from klaw_journals import FileJournals
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.desks import Desk, desks
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
            machine.step = before(machine.step)
            act()
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
