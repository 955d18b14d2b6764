"""A machine that was removed: what it had written stays, what it writes later is read by nobody."""

from __future__ import annotations

from itertools import permutations

import pytest

from klaw_core import ConfigError, NotFoundError, RecordError, StoreError
from klaw_journals import FileJournals
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.errors import SegmentError
from klaw_sync.segments import read

KEY = MemoryKey("00112233445566aa", bytes(range(32)))


def machine(root, name):
    (root / name / "sync").mkdir(parents=True)
    KEY.save(root / name / "sync" / "key")
    return Sync(root / name, host=name)


def put(sync, name):
    FileJournals(sync.root).records("documents").append([{"id": f"memory/{name}", "text": f"text {name}"}])


def ids(sync):
    return sorted(name.partition("/")[2] for name in FileJournals(sync.root).records("documents").ids())


@pytest.fixture
def world(tmp_path):
    """Three machines with a document each, which all of them have, and their folder."""
    folder, machines = Folder(tmp_path / "folder"), [machine(tmp_path, name) for name in ("one", "two", "lost")]
    for each in machines:
        put(each, each.host)
    for _ in range(2):
        for each in machines:
            assert each.run([folder]).problems == ()
    return *machines, folder


@pytest.mark.promise("Y27")
def test_what_it_writes_later_is_read_by_nobody(world):
    one, two, lost, folder = world
    assert one.remove("lost", [folder]).host == "lost"
    one.run([folder])
    put(lost, "later")
    with pytest.raises(ConfigError, match="removed this one"):
        lost.run([folder])
    for each in (one, two, one):
        assert each.run([folder]).problems == ()
    assert ids(one) == ids(two) == ["lost", "one", "two"]
    assert {each.host: each.is_removed for each in two.machines()} == {"two": False, "one": False, "lost": True}
    assert [problem for problem in two.examine(folder) if "after it was removed" in problem] != []


def test_it_is_told_before_it_writes_again_and_changes_nothing(world):
    one, _, lost, folder = world
    one.remove("lost", [folder])
    put(one, "new")
    one.run([folder])
    for _ in range(2):
        with pytest.raises(ConfigError, match="removed this one"):
            lost.run([folder])
    assert ids(lost) == ["lost", "one", "two"]


def test_it_can_join_again(world):
    one, two, lost, folder = world
    one.remove("lost", [folder])
    one.run([folder])
    put(lost, "later")
    with pytest.raises(ConfigError):
        lost.run([folder])
    assert "until that machine joins again" in next(one.examine(folder))
    lost.join(folder, KEY.code)
    for each in (lost, one, two, lost):
        assert each.run([folder]).problems == ()
    assert [*one.examine(folder)] == []
    assert ids(one) == ids(two) == ids(lost) == ["later", "lost", "one", "two"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_one_machine_had_read_before_it_learned_of_it_comes_to_all(world, tmp_path, order):
    one, two, lost, folder = world
    one.remove("lost", [folder])
    put(lost, "later")
    lost.run([folder])
    two.run([folder])  # it reads that file; only then it learns
    third = machine(tmp_path, "third")
    machines = [one, two, third]
    one.run([folder])
    for _ in range(3):
        for number in order:
            assert machines[number].run([folder]).problems == ()
    assert ids(one) == ids(two) == ids(third) == ["later", "lost", "one", "two"]
    before = folder.names()
    for each in machines:
        each.run([folder])
    assert folder.names() == before


def test_a_machine_without_its_state_learns_it_again(world):
    one, _, lost, folder = world
    one.remove("lost", [folder])
    one.run([folder])
    put(lost, "later")
    with pytest.raises(ConfigError):
        lost.run([folder])
    (one.root / "sync" / "state.db").unlink()
    for _ in range(2):
        one.run([folder])
    assert ids(one) == ["lost", "one", "two"]
    assert [each.host for each in one.machines() if each.is_removed] == ["lost"]


def test_forgetting_packs_the_removal_along(world, tmp_path):
    one, two, _, folder = world
    one.remove("lost", [folder])
    one.run([folder])
    FileJournals(one.root).records("documents").forget(["memory/one"])
    for each in (one, two, one):
        each.run([folder])
    third = machine(tmp_path, "third")
    third.run([folder])
    assert [each.host for each in third.machines() if each.is_removed] == ["lost"]


def test_names_that_name_none_or_several(world, tmp_path):
    one, _, _, folder = world
    with pytest.raises(NotFoundError, match="no machine 'nobody'"):
        one.remove("nobody", [folder])
    with pytest.raises(RecordError, match="cannot remove itself"):
        one.remove("one", [folder])
    other = machine(tmp_path / "elsewhere", "lost")
    for each in (other, one):
        put(each, "more")
        each.run([folder])
    with pytest.raises(RecordError, match="2 machines"):
        one.remove("lost", [folder])


def test_what_nobody_has_read_yet_stays(world):
    one, two, lost, folder = world
    put(lost, "unread")
    lost.run([folder])
    reports = []
    one.remove("lost", [folder], then=reports.append)
    assert [report.received for report in reports] == [1]
    for each in (one, two):
        assert each.run([folder]).problems == ()
    assert ids(one) == ids(two) == ["lost", "one", "two", "unread"]
    assert list(two.examine(folder)) == []


def test_a_machine_that_is_not_known_here_yet_is_removed(world, tmp_path):
    one, _, _, folder = world
    new = machine(tmp_path, "new")
    put(new, "unread")
    new.run([folder])
    assert one.remove("new", [folder]).last == 1
    assert ids(one) == ["lost", "one", "two", "unread"]


@pytest.mark.parametrize("fault", ["fetch", "names", "get"])
def test_a_machine_whose_files_cannot_be_read_is_not_removed(world, fault):
    one, two, lost, folder = world
    put(lost, "unread")
    lost.run([folder])

    class Broken(Folder):
        """A folder that fails in one of its methods."""

    def fail(_self, *_arguments):
        raise StoreError("the disk is gone")

    setattr(Broken, fault, fail)
    with pytest.raises(StoreError, match=r"'lost' was not removed: .*the disk is gone"):
        one.remove("lost", [Broken(folder.root)])
    assert [each.host for each in one.machines() if each.is_removed] == []
    for each in (one, two):
        assert each.run([folder]).problems == ()
    assert ids(one) == ids(two) == ["lost", "one", "two", "unread"]


@pytest.mark.promise("Y28")
def test_a_machine_with_a_file_that_is_not_complete_is_not_removed(world):
    one, two, lost, folder = world
    before = set(folder.names())
    put(lost, "unread")
    lost.run([folder])
    (name,) = set(folder.names()) - before
    whole = (folder.root / name).read_bytes()
    (folder.root / name).write_bytes(whole[:-1])
    with pytest.raises(StoreError, match=rf"'lost' was not removed: .*{name}"):
        one.remove("lost", [folder])
    (folder.root / name).write_bytes(whole)
    assert one.remove("lost", [folder]).is_removed
    for each in (one, two):
        assert each.run([folder]).problems == ()
    assert ids(one) == ids(two) == ["lost", "one", "two", "unread"]


def test_a_file_that_comes_after_the_run_is_not_refused(world):
    one, two, lost, folder = world

    def meanwhile(_report):
        if "late" not in ids(lost):
            put(lost, "late")
            lost.run([folder])

    with pytest.raises(StoreError, match="'lost' was not removed"):
        one.remove("lost", [folder], then=meanwhile)
    one.remove("lost", [folder], then=meanwhile)
    two.run([folder])
    assert ids(one) == ids(two) == ["late", "lost", "one", "two"]


def test_a_removal_without_a_place_is_refused(world):
    one, *_ = world
    with pytest.raises(ConfigError, match="no place"):
        one.remove("lost", [])


def test_a_machine_that_was_removed_is_removed_again_whatever_it_has_written_since(world):
    one, two, lost, folder = world
    two.remove("lost", [folder])
    put(lost, "later")
    lost.run([folder])
    two.run([folder])
    assert one.remove("lost", [folder]).is_removed
    assert ids(one) == ["lost", "one", "two"]


class TestANewKey:
    """``remove(…, new_key=True)``: what is written from then on can be read by those who have the new code."""

    @pytest.fixture
    def renewed(self, world):
        one, two, lost, folder = world
        before = {name: folder.get(name) for name in folder.names()}
        one.remove("lost", [folder], new_key=True)
        put(one, "secret")
        one.run([folder])
        return one, two, lost, folder, before

    @pytest.mark.promise("Y29")
    def test_the_removed_machine_reads_nothing_new_and_what_it_had_read_stays(self, renewed):
        one, _, lost, folder, before = renewed
        report = lost.run([folder])
        assert ids(lost) == ["lost", "one", "two"]
        assert len(report.waiting) > 0
        assert {"newer key" in each for each in report.waiting} == {True}
        assert lost.key == KEY
        new = [folder.get(name) for name in folder.names() if name not in before]
        for data in new:
            with pytest.raises(SegmentError, match="newer key"):
                read(KEY, data)
            read(one.key, data)
        for data in before.values():
            assert [each.body for each in read(KEY, data).versions] == [
                each.body for each in read(one.key, data).versions
            ]

    @pytest.mark.promise("Y38")
    def test_the_others_read_it_once_they_have_the_new_code(self, renewed, tmp_path):
        one, two, _, folder, _ = renewed
        assert "newer key" in two.run([folder]).waiting[0]
        put(two, "old")
        two.run([folder])  # with the old key
        two.join(folder, one.key.code)
        assert two.key == one.key != KEY
        put(two, "new")
        before = set(folder.names())
        two.run([folder])
        for name in set(folder.names()) - before:
            with pytest.raises(SegmentError, match="newer key"):
                read(KEY, folder.get(name))
        third = Sync(tmp_path / "third", host="third")
        third.join(folder, one.key.code)
        for each in (one, third, two):
            assert (each.run([folder]).problems, each.run([folder]).waiting) == ((), ())
        assert ids(one) == ids(two) == ids(third) == ["lost", "new", "old", "one", "secret", "two"]
        assert one.run([folder]).sent == 0

    def test_what_was_forgotten_before_stays_forgotten(self, renewed):
        one, two, _, folder, _ = renewed
        two.join(folder, one.key.code)
        FileJournals(two.root).records("documents").forget(["memory/secret", "memory/one"])
        for each in (two, one, two, one):
            assert each.run([folder]).problems == ()
        assert ids(one) == ids(two) == ["lost", "two"]
        bodies = [each.body for name in folder.names() for each in read(one.key, folder.get(name)).versions]
        assert sorted(body["text"] for body in bodies if body is not None) == ["text lost", "text two"]

    def test_an_older_code_takes_no_key_away_and_two_new_ones_are_both_kept(self, renewed):
        one, two, _, folder, _ = renewed
        newer = one.key
        one.join(folder, KEY.code)
        assert one.key == newer
        two.remove("lost", [folder], new_key=True)
        put(two, "of two")
        two.run([folder])
        other = two.key
        two.join(folder, newer.code)
        one.join(folder, other.code)
        assert {*one.key.newer} == {*two.key.newer} == {*newer.newer, *other.newer}
        for each in (one, two, one):
            assert each.run([folder]).waiting == ()
        assert ids(one) == ids(two) == ["lost", "of two", "one", "secret", "two"]

    def test_another_memory_is_refused(self, renewed):
        one, _, _, folder, _ = renewed
        with pytest.raises(ConfigError, match="another key"):
            one.join(folder, MemoryKey(KEY.memory, bytes(32)).renewed().code)

    def test_a_machine_that_is_removed_already_gets_no_newer_key_either(self, renewed):
        one, _, _, folder, _ = renewed
        one.remove("lost", [folder], new_key=True)
        assert len(one.key.newer) == 2

    def test_readable_segments_are_not_taken_with_another_key(self, world):
        one, two, _, folder = world
        for each in (one, two):
            each.plain = True
        one.remove("lost", [folder], new_key=True)
        put(one, "secret")
        one.run([folder])
        assert "newer key" in two.run([folder]).waiting[0]
        two.join(folder, one.key.code)
        assert two.run([folder]).waiting == ()
        assert "secret" in ids(two)

    def test_a_code_with_several_keys_is_a_code(self):
        key = KEY.renewed().renewed()
        assert MemoryKey.parse(key.code) == key
        with pytest.raises(RecordError):
            MemoryKey.parse(key.code[:-20])
