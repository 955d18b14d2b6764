"""A machine is killed before each write of a run: nothing is lost then, and nothing that was forgotten is left."""

from __future__ import annotations

import os
import shutil
import sys
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


def killed_at(number: int, act) -> int:
    """Run ``act`` in a process that ends before its write of this number; return its status."""
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


def check(root: Path, one: Sync, other: Sync) -> None:
    assert shown(one) == shown(other)
    text = str(shown(one))
    assert [word for word in EXPECTED if word not in text] == []
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    left = [(path.name, word) for path in files for word in GONE if word in path.read_bytes()]
    assert left == []


def test_a_run_that_is_killed_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    monkeypatch.setattr("os.fdatasync", lambda _descriptor: None, raising=False)
    scene(tmp_path / "scene")
    number, status = 0, KILLED
    while status == KILLED:
        number += 1
        root = tmp_path / "copy"
        shutil.copytree(tmp_path / "scene", root)
        one, other, folder = Sync(root / "one", host="one"), Sync(root / "other", host="other"), Folder(root / "folder")
        status = killed_at(number, lambda one=one, folder=folder: one.run([folder]))
        assert status in {KILLED, FINISHED}
        for _ in range(2):
            for each in (one, other):
                assert each.run([folder]).problems == ()
        check(root, one, other)
        shutil.rmtree(root)
    assert number > 20
