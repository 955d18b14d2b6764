"""Faults of disks, networks and hands: what was acknowledged stays, and nothing is deleted that was not replaced."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from types import SimpleNamespace

import pytest

from klaw_core import StoreCorruptError, StoreError, StoreFullError, StoreLockedError
from klaw_journals import FileJournals, JournalingStore
from klaw_sync import Folder, MemoryKey, Remote, Sync
from klaw_sync.desks import Desk
from klaw_sync.extension import SyncExtension
from klaw_sync.options import SyncOptions
from klaw_sync.remotes import MEMORY_FILE
from klaw_sync.segments import read
from klaw_sync.state import State
from klaw_sync.values import KINDS, Version

KEY = MemoryKey("00112233445566aa", bytes(range(32)))
CORE = KINDS["core_memory"]
BODY = {"section": "user", "key": "k", "value": "first"}


def machine(root, name, **options):
    (root / name / "sync").mkdir(parents=True)
    KEY.save(root / name / "sync" / "key")
    return Sync(root / name, host=name, **options)


@pytest.fixture
def world(tmp_path):
    """Two machines and their folder."""
    return machine(tmp_path, "one"), machine(tmp_path, "other"), Folder(tmp_path / "folder")


def documents(sync):
    return FileJournals(sync.root).records("documents")


def texts(sync):
    return sorted(record["text"] for record in documents(sync).replay().records.values())


def core(sync):
    held = []
    Desk(sync.root, CORE).settle(lambda bodies: (held.extend(bodies), bodies)[1])
    return [body["value"] for body in held]


class TestCoreMemoryEditedByHand:
    """A section that is not an object is not an empty one: its keys were not deleted."""

    @pytest.fixture
    def shared(self, world):
        """Two machines that have the same key of core memory, and the file of the first."""
        one, other, folder = world
        Desk(one.root, CORE).settle(lambda _held: [BODY])
        for each in (one, other, one):
            assert each.run([folder]).problems == ()
        return *world, one.root / "core_memory.json"

    @pytest.mark.promise("Y33")
    @pytest.mark.parametrize("broken", [{"user": []}, {"user": None}, {"trust": "x"}, {"trust": {"user": 3}}])
    def test_nothing_is_deleted_or_overwritten(self, shared, broken):
        one, other, folder, path = shared
        good = path.read_bytes()
        bad = json.dumps({**json.loads(good), **broken}).encode()
        path.write_bytes(bad)
        documents(one).append([{"id": "memory/d", "text": "the text"}])
        report = one.run([folder])
        assert (report.sent, report.missing) == (1, 0)
        assert "is not an object" in report.problems[0]
        other.run([folder])
        assert (core(other), texts(other)) == (["first"], ["the text"])
        assert path.read_bytes() == bad
        path.write_bytes(good)
        report = one.run([folder])
        assert (report.sent, report.problems, report.conflicts) == (0, (), ())
        assert core(one) == ["first"]

    def test_what_another_machine_writes_meanwhile_comes_after_the_repair(self, shared):
        one, other, folder, path = shared
        good = path.read_bytes()
        path.write_text('{"user": []}')
        Desk(other.root, CORE).settle(lambda _held: [{**BODY, "value": "second"}])
        other.run([folder])
        one.run([folder])
        assert path.read_text() == '{"user": []}'
        path.write_bytes(good)
        for each in (one, other):
            assert each.run([folder]).conflicts == ()
        assert (core(one), core(other)) == (["second"], ["second"])


class Cached(Remote):
    """A folder behind a cache, like that of a repository: what is put is seen here at once, elsewhere when pushed."""

    def __init__(self, folder):
        self.folder, self.location, self.is_down, self.cache = folder, folder.location, False, {}

    def fetch(self):
        self.cache = {}

    def names(self):
        return sorted({*self.folder.names(), *self.cache})

    def get(self, name):
        return self.cache[name] if name in self.cache else self.folder.get(name)

    def put(self, name, data):
        self.cache[name] = data

    def delete(self, name):
        self.cache.pop(name, None)
        self.folder.delete(name)

    def flush(self):
        if self.is_down and self.cache:
            raise StoreError("the network is down")
        for name, data in self.cache.items():
            self.folder.put(name, data)


def test_what_could_not_be_pushed_replaces_nothing(world, tmp_path):
    one, other, folder = world
    remote = Cached(folder)

    def step(name):
        remote.is_down = remote.is_down or name == "done"  # the next push is that of the compaction

    documents(one).append([{"id": f"memory/{name}", "text": f"text {name}"} for name in "ab"])
    for each in (one, other):
        each.run([folder])
    documents(other).forget(["memory/a"])
    before = folder.names()
    down = Sync(other.root, host="other", step=step)
    assert "the network is down" in down.run([remote]).problems[0]
    assert set(before) <= set(folder.names())
    third = machine(tmp_path, "third")
    third.run([folder])
    assert texts(third) == ["text b"]
    remote.is_down = False
    for _ in range(2):
        assert other.run([remote]).problems == ()
    bodies = [version.body for name in folder.names() for version in read(KEY, folder.get(name)).versions]
    assert {body["text"] for body in bodies if body} == {"text b"}


@pytest.mark.promise("Y31")
@pytest.mark.parametrize("is_left", [True, False], ids=["an empty mount point", "no mount point"])
def test_a_disk_that_is_not_mounted_is_not_written(world, tmp_path, is_left):
    one, other, folder = world
    documents(one).append([{"id": "memory/a", "text": "the text"}])
    one.run([folder])
    shutil.rmtree(folder.root)
    if is_left:
        folder.root.mkdir()
    documents(one).append([{"id": "memory/b", "text": "another text"}])
    for _ in range(2):
        (problem,) = one.run([folder]).problems
        assert "mount the disk" in problem
        assert "choose a new place" in problem
    assert folder.root.exists() == is_left
    assert not is_left or list(folder.root.iterdir()) == []
    new = Folder(tmp_path / "new")
    for each in (one, other):
        assert each.run([new]).problems == ()
    assert texts(other) == ["another text", "the text"]


def test_a_damaged_file_that_is_deleted_is_written_again(world):
    one, other, folder = world
    documents(one).append([{"id": "memory/a", "text": "the text"}])
    one.run([folder])
    (name,) = folder.names()
    path = folder.root / name
    path.write_bytes(path.read_bytes()[:-9])
    assert len(other.run([folder]).waiting) == 1
    path.unlink()
    assert one.run([folder]).waiting == other.run([folder]).waiting == ()
    assert texts(other) == ["the text"]


def test_a_dry_run_does_not_mark_a_new_place(world):
    one, _, folder = world
    documents(one).append([{"id": "memory/a", "text": "the text"}])
    report = one.run([folder], dry_run=True)
    assert (report.sent, report.problems) == (1, ())
    assert not folder.root.exists()
    assert one.run([folder]).sent == 1


class Full(Folder):
    """A folder on a full disk."""

    is_full = True

    def put(self, name, data):
        if self.is_full and name != MEMORY_FILE:
            raise StoreFullError("no space left")
        super().put(name, data)


def test_a_record_is_sent_when_a_place_has_it(world, tmp_path, monkeypatch):
    one, *_ = world
    full, other = Full(tmp_path / "full"), Folder(tmp_path / "other")
    documents(one).append([{"id": "memory/a", "text": "the text"}])
    for _ in range(2):
        report = one.run([full])
        assert (report.sent, len(report.problems)) == (0, 1)
    assert one.run([full, other]).sent == 1
    documents(one).append([{"id": "memory/b", "text": "another text"}])
    monkeypatch.setattr(Full, "is_full", False)
    assert one.run([full, other]).sent == 2  # one of them to both
    assert one.run([full, other]).sent == 0


class TestSegmentsThatVanish:
    @pytest.mark.promise("Y32")
    def test_what_was_sent_is_sent_again(self, world, tmp_path):
        one, _, folder = world
        documents(one).append([{"id": f"memory/{name}", "text": f"text {name}"} for name in "ab"])
        one.run([folder])
        for name in folder.names():
            folder.delete(name)
        assert one.run([folder]).sent == 2
        names = folder.names()
        assert one.run([folder]).sent == 0
        assert folder.names() == names
        third = machine(tmp_path, "third")
        third.run([folder])
        assert texts(third) == ["text a", "text b"]

    def test_what_another_machine_has_packed_is_not(self, world):
        one, other, folder = world
        documents(one).append([{"id": f"memory/{name}", "text": f"text {name}"} for name in "ab"])
        for each in (one, other):
            each.run([folder])
        documents(other).forget(["memory/a"])
        other.run([folder])
        names = folder.names()
        for _ in range(2):
            assert one.run([folder]).sent == 0
        assert folder.names() == names

    def test_what_was_forgotten_meanwhile_is_not(self, world):
        one, _, folder = world
        documents(one).append([{"id": f"memory/{name}", "text": f"text {name}"} for name in "ab"])
        one.run([folder])
        for name in folder.names():
            folder.delete(name)
        documents(one).forget(["memory/a"])
        one.run([folder])
        bodies = [version.body for name in folder.names() for version in read(KEY, folder.get(name)).versions]
        assert [body["text"] for body in bodies if body] == ["text b"]


class TestTheState:
    """Only a damaged file is one to delete."""

    def test_another_program_has_it(self, tmp_path):
        with State.open(tmp_path / "state.db"):
            pass
        other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)

        def write():
            with State.open(tmp_path / "state.db") as state:
                state.database.execute("PRAGMA busy_timeout = 0")
                other.execute("BEGIN EXCLUSIVE")
                with state.commit():
                    pass

        with pytest.raises(StoreLockedError) as found:
            write()
        other.close()
        assert "delete" not in found.value.hint

    def test_the_disk_is_full(self, tmp_path):
        def write():
            with State.open(tmp_path / "state.db") as state:
                state.database.execute("PRAGMA max_page_count = 1")
                state.meta["large"] = "x" * 100_000
                with state.commit():
                    pass

        with pytest.raises(StoreFullError) as found:
            write()
        assert "delete" not in found.value.hint

    def test_it_cannot_be_opened(self, tmp_path):
        for path in (tmp_path, tmp_path / "nowhere" / "state.db"):
            with pytest.raises(StoreError) as found, State.open(path):
                pass
            assert not isinstance(found.value, StoreCorruptError)

    def test_it_is_damaged_or_of_another_version(self, tmp_path):
        (tmp_path / "state.db").write_bytes(b"not a database" * 100)
        old = sqlite3.connect(tmp_path / "old.db")
        old.execute("CREATE TABLE versions (v TEXT)")
        old.close()
        for path in (tmp_path / "state.db", tmp_path / "old.db"):
            with pytest.raises(StoreCorruptError, match=path.name), State.open(path) as state:
                state.database.execute("SELECT bad FROM versions")

    def test_the_error_of_a_transaction_that_sqlite_has_ended_is_told(self, tmp_path):
        def write(state):
            with state.commit() as database:
                database.execute("ROLLBACK")
                raise ValueError("the cause")

        with State.open(tmp_path / "state.db") as state, pytest.raises(ValueError, match="the cause"):
            write(state)


def test_a_key_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "key").mkdir()
    with pytest.raises(StoreError, match="key cannot be read"):
        MemoryKey.load(tmp_path / "key")


def test_one_remote_that_cannot_be_listed_does_not_stop_the_others(world, tmp_path):
    one, _, folder = world
    documents(one).append([{"id": "memory/a", "text": "the text"}])

    class Broken(Folder):
        def names(self):
            raise StoreError("it cannot be listed")

    report = one.run([Broken(tmp_path / "broken"), folder])
    assert [problem.partition(": ")[2] for problem in report.problems] == ["it cannot be listed"]
    assert len(folder.names()) == 1


def test_a_remote_that_fails_while_it_is_read_does_not_stop_the_others(world, tmp_path):
    one, other, folder = world
    documents(one).append([{"id": "memory/a", "text": "the text"}])
    one.run([folder, Folder(tmp_path / "second")])

    class Failing(Folder):
        def get(self, name):
            if name.endswith(".kseg"):
                raise StoreError("the network is down")
            return super().get(name)

    report = other.run([Failing(folder.root), Folder(tmp_path / "second")])
    assert "the network is down" in report.problems[0]
    assert texts(other) == ["the text"]


@pytest.mark.parametrize("seed", [221, 251, 266, 286, 470, 1133])  # SQLite moves a row of each
def test_a_text_that_was_dropped_is_nowhere_in_the_file(tmp_path, seed):
    chance, number, gone = random.Random(seed), 0, []
    path = tmp_path / "state.db"
    with State.open(path) as state:
        for _ in range(12):
            for _ in range(chance.randint(1, 8)):
                number += 1
                body = {"text": f"text{number:04d}text" + "y" * chance.randint(0, 200)}
                scopes = tuple(f"{chance.getrandbits(128):032x}" for _ in range(chance.randint(0, 6)))
                name = f"{chance.getrandbits(64):016x}"
                state.put(Version(name, "saved", "", "ab" * 8, number, 0, scopes, frozenset(), (), body))
            live = [version for version in state.versions.values() if version.body]
            with state.commit():
                for version in chance.sample(live, min(len(live), chance.randint(0, 3))):
                    gone.append(str((version.body or {})["text"])[:12].encode())
                    state.drop_body(version)
        state.scrub()
    data = path.read_bytes()
    assert gone
    assert [text for text in gone if text in data] == []


@pytest.mark.parametrize("fault", ["fetch", "names", "get"])
def test_a_place_that_fails_is_what_an_examination_finds(world, fault):
    one, _, folder = world
    documents(one).append([{"id": "memory/a", "text": "a"}])
    one.run([folder])

    class Broken(Folder):
        """A folder that fails in one of its methods; the file that says which memory it has can be read."""

    def fail(_self, *arguments):
        if arguments == ("klaw-memory.json",):
            return folder.get(*arguments)
        raise StoreError("the disk is gone")

    setattr(Broken, fault, fail)
    found = list(one.examine(Broken(folder.root)))
    assert len(found) == 1
    assert found[0].endswith("the disk is gone")


@pytest.mark.promise("Y10")
def test_a_store_that_keeps_the_journals_itself_is_refused(tmp_path):
    class Shared(JournalingStore):
        journals = None

    extension = SyncExtension(tmp_path, SyncOptions())
    extension.attach(SimpleNamespace(store=Shared(), extension=lambda _name: None))
    with pytest.raises(StoreError, match="machines share them already") as caught:
        extension.run([str(tmp_path / "folder")])
    assert "[memory.store]" in caught.value.hint
    assert [*tmp_path.iterdir()] == []
