"""Remotes: a folder, a bare git repository and an object store behave alike."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import boto3
import pytest
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
from obstore.store import MemoryStore

from klaw_core import ConfigError, StoreError, StoreLockedError, locked
from klaw_journals import FileJournals
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.errors import SegmentError
from klaw_sync.git import GitRepository
from klaw_sync.objects import Bucket, open_bucket
from klaw_sync.remotes import MEMORY_FILE, open_remote

A, B = "aa" * 8, "bb" * 8
KEY = MemoryKey("00112233445566aa", bytes(range(32)))


def folders(tmp_path):
    return [Folder(tmp_path / "folder") for _ in range(2)]


def repositories(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    address = tmp_path / "shared.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(address)], check=True)
    return [GitRepository(str(address), tmp_path / f"cache-{number}") for number in range(2)]


def buckets(_tmp_path):
    shared = MemoryStore()
    return [Bucket("s3://shared", shared) for _ in range(2)]


@pytest.fixture(scope="module")
def s3():
    """A server of S3; yields its address."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    yield "http://{}:{}".format(*running.get_host_and_port())
    running.stop()


@pytest.fixture
def bucket(s3, monkeypatch):
    """The address of an empty bucket of a server of S3, which the environment names."""
    s3_backends.reset()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT": s3, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="memory")
    return "s3://memory/of/ann"


@pytest.fixture(params=[folders, repositories, buckets, "s3"], ids=["folder", "git", "objects", "s3"])
def pair(request, tmp_path):
    """The same place as two machines see it."""
    if request.param == "s3":
        address = request.getfixturevalue("bucket")
        return [open_remote(address, tmp_path) for _ in range(2)]
    return request.param(tmp_path)


class TestRemotes:
    def test_what_one_writes_the_other_reads(self, pair):
        one, other = pair
        one.fetch()
        one.put(f"{A}/{A}-00000001-{A}.kseg", b"content")
        one.put(MEMORY_FILE, b"{}")
        one.flush()
        other.fetch()
        assert other.names() == [f"{A}/{A}-00000001-{A}.kseg"]
        assert other.get(f"{A}/{A}-00000001-{A}.kseg") == b"content"
        assert other.get(MEMORY_FILE) == b"{}"

    def test_a_file_is_written_once(self, pair):
        one, other = pair
        for remote, data in ((one, b"first"), (other, b"second")):
            remote.fetch()
            remote.put(f"{A}/x.kseg", data)
            remote.flush()
        one.fetch()
        assert one.get(f"{A}/x.kseg") == b"first"

    def test_what_is_deleted_is_gone_for_all(self, pair):
        one, other = pair
        one.fetch()
        one.put(f"{A}/x.kseg", b"1")
        one.put(f"{B}/y.kseg", b"2")
        one.flush()
        other.fetch()
        other.delete(f"{A}/x.kseg")
        other.delete(f"{A}/z.kseg")
        other.flush()
        one.fetch()
        assert one.names() == [f"{B}/y.kseg"]
        with pytest.raises(SegmentError):
            one.get(f"{A}/x.kseg")

    def test_two_machines_write_at_once(self, pair):
        one, other = pair
        one.fetch()
        other.fetch()
        one.put(f"{A}/x.kseg", b"1")
        other.put(f"{B}/y.kseg", b"2")
        one.flush()
        other.flush()
        one.fetch()
        assert one.names() == [f"{A}/x.kseg", f"{B}/y.kseg"]

    def test_a_memory_is_the_same_on_both(self, pair, tmp_path):
        machines = [Sync(tmp_path / name, host=name) for name in ("one", "other")]
        for machine, remote in zip(machines, pair, strict=True):
            (machine.root / "sync").mkdir(parents=True)
            KEY.save(machine.root / "sync" / "key")
            record = {"id": f"memory/{machine.host}", "text": f"text of {machine.host}"}
            FileJournals(machine.root).records("documents").append([record])
            assert machine.run([remote]).problems == ()
        machines[0].run([pair[0]])
        FileJournals(machines[0].root).records("documents").forget(["memory/other"])
        for _ in range(2):
            for machine, remote in zip(machines, pair, strict=True):
                assert machine.run([remote]).problems == ()
        held = [list(FileJournals(machine.root).records("documents").ids()) for machine in machines]
        assert held == [["memory/one"], ["memory/one"]]
        pair[0].fetch()
        assert b"".join(map(pair[0].get, pair[0].names())).find(b"text of other") == -1

    def test_a_clean_run_leaves_nothing_to_find(self, pair, tmp_path):
        machine = Sync(tmp_path / "one", host="one")
        (machine.root / "sync").mkdir(parents=True)
        KEY.save(machine.root / "sync" / "key")
        FileJournals(machine.root).records("documents").append([{"id": "memory/a", "text": "a"}])
        assert machine.run([pair[0]]).problems == ()
        assert list(machine.examine(pair[1])) == []
        assert pair[1].names() != []

    @pytest.mark.promise("Y35")
    def test_a_file_that_cannot_be_read_is_found(self, pair, tmp_path):
        machine = Sync(tmp_path / "one", host="one")
        (machine.root / "sync").mkdir(parents=True)
        KEY.save(machine.root / "sync" / "key")
        assert machine.run([pair[0]]).problems == ()
        for name in (f"{A}/x.kseg", f"{B}/y.kseg"):
            pair[0].put(name, b"not a segment")
        pair[0].flush()
        assert [problem.partition(":")[0] for problem in machine.examine(pair[1])] == [f"{A}/x.kseg", f"{B}/y.kseg"]


class TestFolder:
    def test_a_link_is_not_followed(self, tmp_path):
        (tmp_path / "secret").write_bytes(b"secret")
        (tmp_path / A).mkdir()
        (tmp_path / A / "x.kseg").symlink_to(tmp_path / "secret")
        folder = Folder(tmp_path)
        assert folder.names() == []
        with pytest.raises(SegmentError):
            folder.get(f"{A}/x.kseg")

    @pytest.mark.parametrize("name", ["../x.kseg", f"{A}/../../x", f"{A}/x/y", "..", f"{A}/", "/etc/passwd"])
    def test_no_name_leaves_the_folder(self, tmp_path, name):
        for act in (Folder(tmp_path / "f").get, Folder(tmp_path / "f").delete):
            with pytest.raises(SegmentError):
                act(name)
        with pytest.raises(SegmentError):
            Folder(tmp_path / "f").put(name, b"x")

    def test_other_files_are_left_alone(self, tmp_path):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "x.kseg").write_bytes(b"x")
        (tmp_path / A).mkdir()
        (tmp_path / A / ".syncthing.x.kseg.tmp").write_bytes(b"x")
        (tmp_path / A / "readme.txt").write_bytes(b"x")
        assert Folder(tmp_path).names() == []


class TestAddresses:
    def test_each_has_its_kind(self, tmp_path):
        kinds = {
            "git+https://example.org/memory": "GitRepository",
            "git@example.org:memory.git": "GitRepository",
            "ssh://example.org/memory": "GitRepository",
            str(tmp_path / "memory.git"): "GitRepository",
            str(tmp_path / "memory"): "Folder",
        }
        data = tmp_path / "data"
        assert {place: type(open_remote(place, data)).__name__ for place in kinds} == kinds

    def test_a_password_is_not_shown(self, tmp_path):
        remote = open_remote("git+https://ann:secret@example.org/memory", tmp_path)
        assert remote.location == "https://example.org/memory"

    @pytest.mark.parametrize("place", ["", "  "])
    def test_no_place(self, place, tmp_path):
        with pytest.raises(ConfigError, match="no place"):
            open_remote(place, tmp_path)

    def test_a_repository_that_is_not_there(self, tmp_path):
        remote = GitRepository(str(tmp_path / "nowhere.git"), tmp_path / "cache")
        with pytest.raises(StoreError, match="git fetch"):
            remote.fetch()

    def test_an_address_of_no_known_kind(self, tmp_path):
        with pytest.raises(StoreError):
            open_remote("nothing://example", Path(tmp_path))


def test_hooks_of_the_user_do_not_run(tmp_path, monkeypatch):
    hook = tmp_path / "hooks" / "pre-push"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    settings = tmp_path / "settings"
    settings.write_text(f"[core]\n\thooksPath = {hook.parent}\n")
    one, other = repositories(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    settings.rename(tmp_path / ".gitconfig")
    one.fetch()
    one.put(f"{A}/{A}-00000001-0123456789abcdef.kseg", b"one")
    one.flush()
    other.fetch()
    assert len(other.names()) == 1


NAME = f"{A}/{A}-00000001-0123456789abcdef.kseg"


def filled(tmp_path):
    """Return two caches of a repository with a file, which the first one has."""
    one, other = repositories(tmp_path)
    one.fetch()
    one.put(NAME, b"one")
    one.flush()
    return one, other


def damage(repository):
    """Empty every object, as a power cut may do."""
    for path in (repository / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")


def test_what_a_killed_examination_has_left_does_not_stop_the_next(tmp_path):
    here, _ = repositories(tmp_path)
    left = here.cache.with_name(f"{here.cache.name}-examined")
    left.mkdir()
    (left / "HEAD").write_text("broken", "utf-8")
    here.fetch_all()
    assert not left.exists()


def _without_forced_pushes(shared, _there):
    subprocess.run(["git", "-C", shared, "config", "receive.denyNonFastForwards", "true"], check=True)


def _with_a_hook(shared, _there):
    hook = shared / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    hook.chmod(0o755)


def _with_another_push(_shared, there):
    there.fetch()
    there.put(f"{A}/other.kseg", b"2")
    there.flush()


@pytest.mark.parametrize(
    ("refuse", "hint"),
    [
        (_without_forced_pushes, "git config receive.denyNonFastForwards false"),
        (_with_a_hook, "let the hooks and rules of that repository accept the branches klaw/*"),
        (_with_another_push, "klaw sync"),
    ],
)
def test_a_refused_push_says_what_to_do(tmp_path, refuse, hint):
    here, there = repositories(tmp_path)
    here.fetch()
    here.put(f"{A}/first.kseg", b"1")
    here.flush()
    refuse(Path(here.address), there)
    here.put(f"{A}/second.kseg", b"1")
    with pytest.raises(StoreError) as raised:
        here.flush()
    assert raised.value.hint.endswith(hint)


def test_a_shallow_repository_is_read(tmp_path):
    _one, other = filled(tmp_path)
    whole = (tmp_path / "shared.git").rename(tmp_path / "whole.git")
    arguments = ["--quiet", "--mirror", "--depth=1", "--no-single-branch"]
    subprocess.run(["git", "clone", *arguments, whole.as_uri(), other.address], check=True)
    assert (tmp_path / "shared.git" / "shallow").exists()
    other.fetch()
    assert (other.names(), other.get(NAME)) == ([NAME], b"one")
    other.put(f"{B}/{B}-00000001-0123456789abcdef.kseg", b"two")
    other.flush()
    other.fetch()
    assert len(other.names()) == 2


@pytest.mark.parametrize("cached", ["objects", "HEAD", "config"])
def test_a_damaged_cache_is_made_again(cached, tmp_path):
    one, _other = filled(tmp_path)
    damage(one.cache)
    if cached != "objects":
        (one.cache / cached).write_bytes(b"\0")
    one.fetch()
    assert (one.names(), one.get(NAME)) == ([NAME], b"one")


def test_a_cache_that_is_damaged_before_a_push_is_made_again_by_the_next_run(tmp_path):
    one, other = filled(tmp_path)
    second = NAME.replace("00000001", "00000002")
    one.put(second, b"two")
    damage(one.cache)
    with pytest.raises(StoreError, match="next `klaw sync`"):
        one.flush()
    one.fetch()
    one.put(second, b"two")
    one.flush()
    other.fetch()
    assert [other.get(name) for name in other.names()] == [b"one", b"two"]


@pytest.mark.promise("Y35")
def test_an_examination_reads_the_repository_and_not_its_cache(tmp_path):
    one, _other = filled(tmp_path)
    left = one.cache.with_name(f"{one.cache.name}-examined")
    left.mkdir()
    (left / "HEAD").write_text("what a killed examination has left", "utf-8")
    one.fetch_all()
    assert not left.exists()
    damage(tmp_path / "shared.git")
    one.fetch()
    with pytest.raises(StoreError, match="git fetch"):
        one.fetch_all()
    assert one.get(NAME) == b"one"
    machine = Sync(tmp_path / "machine", host="one")
    (machine.root / "sync").mkdir(parents=True)
    KEY.save(machine.root / "sync" / "key")
    assert "git fetch" in next(machine.examine(one))


def test_two_fetches_of_one_repository_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.setattr("klaw_sync.git._SECONDS", 0.01)
    remote = repositories(tmp_path)[0]
    with locked(remote.cache), pytest.raises(StoreLockedError):
        remote.fetch()


def test_a_cache_that_cannot_be_made_is_an_error_of_the_place(tmp_path):
    (tmp_path / "cache-0").write_text("not a directory")
    with pytest.raises(StoreError):
        repositories(tmp_path)[0].fetch()


def test_a_server_that_does_not_answer_is_a_problem(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    remote = open_remote(bucket, tmp_path)
    with pytest.raises(StoreError, match="s3://memory/of/ann"):
        remote.names()


def test_three_machines_through_three_places(tmp_path, bucket):
    """One uses the folder and the repository, one the repository and the bucket, one only the bucket."""
    place, repository = folders(tmp_path)[0], repositories(tmp_path)
    objects = [open_remote(bucket, tmp_path / name) for name in ("two", "three")]
    reached = [[place, repository[0]], [repository[1], objects[0]], [objects[1]]]
    machines = [Sync(tmp_path / name, host=name) for name in ("one", "two", "three")]
    for machine in machines:
        (machine.root / "sync").mkdir(parents=True)
        KEY.save(machine.root / "sync" / "key")

    def meet():
        for _ in range(4):
            for machine, remotes in zip(machines, reached, strict=True):
                assert machine.run(remotes).problems == ()

    journals = [FileJournals(machine.root) for machine in machines]
    logs = [journal.logs("conversations").log("telegram_1", "2026-01-01") for journal in journals]
    for number in range(6):
        mine = number % 3
        journals[mine].records("documents").append([{"id": f"memory/{number % 4}", "text": f"text {number}"}])
        logs[mine].append({"id": f"m{number}", "ts": f"2026-01-01T10:0{number}:00.000Z", "content": f"said {number}"})
    meet()
    logs[2].remove(lambda line: line.value["id"] == "m0")
    journals[0].records("documents").forget(["memory/3"])
    meet()
    assert logs[0].path.read_bytes() == logs[1].path.read_bytes() == logs[2].path.read_bytes()
    assert [line.value["id"] for line in logs[0].read()] == ["m1", "m2", "m3", "m4", "m5"]
    shown = [dict(journal.records("documents").replay().records) for journal in journals]
    assert shown[0] == shown[1] == shown[2]
    assert sorted(shown[0]) == ["memory/0", "memory/1", "memory/2"]


@pytest.mark.parametrize("server", ["nonsense", "localhost:9000", "ftp://host", "http://", "https://a b", ""])
@pytest.mark.parametrize("name", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_an_address_of_no_server_is_refused_before_the_library_panics(name, server, monkeypatch):
    monkeypatch.setenv(name, server)
    with pytest.raises(ConfigError, match=f"{name} is not the address of a server") as raised:
        open_bucket("s3://boats/memory")
    assert raised.value.hint == "https://HOST:PORT"
