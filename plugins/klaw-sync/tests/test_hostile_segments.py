"""Somebody else writes into the folder: with the key they can do what an import can, and without it nothing."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import RecordError
from klaw_journals import FileJournals, Traces
from klaw_sync import Folder, MemoryKey, Sync
from klaw_sync.errors import SegmentError
from klaw_sync.segments import MAX_BYTES, Writer, name_of, read
from klaw_sync.values import KINDS

KEY = MemoryKey("00112233445566aa", bytes(range(32)))
OTHER = MemoryKey(KEY.memory, bytes(32))
EVIL = "ee" * 8
HASH = "ab" * 16


def refuse_evil(_kind, _place, body):
    if "evil" in json.dumps(body):
        raise RecordError("an import would refuse this")


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "data" / "sync").mkdir(parents=True)
    KEY.save(tmp_path / "data" / "sync" / "key")
    return Sync(tmp_path / "data", refuse_evil)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "folder")


def line(machine, body, *, kind="saved", place="", v="11" * 8, **changes):
    scopes = list(KINDS[kind].scopes(Traces(machine.root), place, body)) if kind in KINDS else [HASH]
    base = {"k": kind, "p": place, "v": v, "m": EVIL, "n": 1, "t": 1, "s": scopes, "a": [], "o": [], "b": body}
    return {**base, **changes}


def send(folder, *lines, key=KEY, encrypt=True):
    for name, data in Writer(key, EVIL, "evil", encrypt=encrypt).pack(1, lines):
        folder.put(name, data)


def saved(text, name="saved/2026-01-01/0123456789ab"):
    return {"id": name, "created_at": "2026-01-01T00:00:00.000Z", "source": "x", "chat_id": None, "text": text}


def held(machine, kind="saved"):
    return [record["text"] for record in FileJournals(machine.root).records(kind).replay().records.values()]


def files(root):
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class TestWithoutTheKey:
    @pytest.mark.parametrize("encrypt", [True, False])
    def test_nothing_is_added_or_forgotten(self, machine, folder, encrypt):
        FileJournals(machine.root).records("saved").append([saved("kept")])
        machine.run([folder])
        scope = Traces(machine.root).scope("saved", saved("")["id"])
        send(folder, line(machine, saved("forged")), {"k": "tomb", "s": scope, "x": EVIL}, key=OTHER, encrypt=encrypt)
        report = machine.run([folder])
        assert held(machine) == ["kept"]
        assert len(report.waiting) == 1

    @pytest.mark.promise("Y23")
    @settings(max_examples=60, deadline=None)
    @given(data=st.data(), encrypt=st.booleans())
    def test_no_changed_byte_is_read(self, data, encrypt):
        ((_, whole),) = Writer(KEY, EVIL, "x", encrypt=encrypt).pack(1, [{"k": "tomb", "s": HASH, "x": EVIL}])
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = bytearray(whole)
        changed[place] ^= data.draw(st.integers(1, 255))
        with pytest.raises(SegmentError):
            read(KEY, bytes(changed))

    @settings(max_examples=60, deadline=None)
    @given(data=st.data(), encrypt=st.booleans())
    def test_no_part_is_read(self, data, encrypt):
        ((_, whole),) = Writer(KEY, EVIL, "x", encrypt=encrypt).pack(1, [{"k": "tomb", "s": HASH, "x": EVIL}])
        with pytest.raises(SegmentError):
            read(KEY, whole[: data.draw(st.integers(0, len(whole) - 1))])

    @settings(max_examples=60, deadline=None)
    @given(data=st.binary(max_size=300))
    def test_any_bytes_are_refused(self, data):
        with pytest.raises(SegmentError):
            read(KEY, data)

    def test_another_memory_is_not_joined(self, machine, folder):
        machine.run([folder])
        other = MemoryKey("ff" * 8, KEY.key)
        send(folder, line(machine, saved("other")), key=other)
        assert "another memory" in machine.run([folder]).waiting[0]


class TestWithTheKey:
    @pytest.mark.promise("Y25")
    def test_a_record_that_an_import_refuses_is_left_out_and_the_rest_applies(self, machine, folder):
        good = line(machine, saved("good", "saved/2026-01-01/aaaaaaaaaaaa"), v="22" * 8)
        send(folder, line(machine, saved("evil")), good)
        report = machine.run([folder])
        assert held(machine) == ["good"]
        assert "left out: an import would refuse this" in report.problems[0]

    @pytest.mark.parametrize(
        "place",
        ["../../x/2026-01-01", "telegram_1/../../x", ".hidden/2026-01-01", "telegram_1", "a/b/c", "/etc/x", "a/"],
    )
    def test_no_place_leaves_the_journal(self, machine, folder, place, tmp_path):
        machine.run([folder])
        before = {name for name in files(tmp_path) if not name.startswith(("folder/", "data/sync/"))}
        send(folder, line(machine, {"id": "m", "ts": "2026-01-01T00:00:00.000Z"}, kind="conversations", place=place))
        report = machine.run([folder])
        assert {name for name in files(tmp_path) if not name.startswith(("folder/", "data/sync/"))} == before
        assert "names another place" in report.problems[0]

    @pytest.mark.parametrize("kind", ["roots", "agents", "config", "../x", "machine-id"])
    def test_other_journals_are_not_written(self, machine, folder, kind):
        send(folder, line(machine, {"id": "x"}, kind=kind))
        machine.run([folder])
        assert {path.name for path in machine.root.iterdir()} <= {"sync", "locks"}

    def test_a_record_that_nobody_could_forget_is_left_out(self, machine, folder):
        send(folder, line(machine, saved("immortal"), s=[HASH]))
        assert "nobody could forget it" in machine.run([folder]).problems[0]
        assert held(machine) == []

    def test_one_id_never_stands_for_two_texts(self, machine, folder):
        send(folder, line(machine, saved("one")), line(machine, saved("two"), v="22" * 8))
        machine.run([folder])
        records = FileJournals(machine.root).records("saved").replay().records
        assert sorted(record["text"] for record in records.values()) == ["one", "two"]

    def test_one_version_never_stands_for_two_texts(self, machine, tmp_path):
        first, second = (line(machine, saved(text, f"saved/2026-01-01/{text * 12}")) for text in "ab")
        other = Sync(tmp_path / "other")
        (other.root / "sync").mkdir(parents=True)
        KEY.save(other.root / "sync" / "key")
        for one, order in ((machine, (first, second)), (other, (second, first))):
            mine = Folder(tmp_path / f"folder-{one.root.name}")
            for each in order:
                send(mine, each)
                one.run([mine])
        assert held(machine) == held(other)

    @pytest.mark.parametrize(
        "change", [{"t": 7_258_118_400_001}, {"t": -1}, {"n": True}, {"s": ["x"]}, {"a": "x"}, {"v": "../x"}, {"b": 3}]
    )
    def test_a_line_that_is_not_valid_is_counted(self, machine, folder, change):
        send(folder, line(machine, saved("x"), **change))
        assert "1 lines are not valid" in machine.run([folder]).problems[0]
        assert held(machine) == []

    def test_versions_that_replace_each_other_stop_nobody(self, machine, folder):
        body = {"id": "memory/d", "text": "x"}
        lines = [line(machine, body, kind="documents", v=v * 8, o=[o * 8]) for v, o in (("11", "22"), ("22", "11"))]
        send(folder, *lines, line(machine, saved("good"), v="33" * 8))
        machine.run([folder])
        assert held(machine) == ["good"]

    def test_a_bomb_is_not_unpacked(self):
        bomb = zlib.compress(b"\n" * (MAX_BYTES + 10))
        head = json.dumps(
            {
                "klaw": "segment",
                "v": 1,
                "memory": KEY.memory,
                "machine": EVIL,
                "n": 1,
                "z": "zlib",
                "crypt": "none",
                "size": 10,
            }
        ).encode()
        whole = head + b"\n" + KEY.sign(head + b"\n", bomb)
        with pytest.raises(SegmentError, match="another size"):
            read(KEY, whole)

    def test_a_newer_format_waits_for_an_update(self):
        head = json.dumps({"klaw": "segment", "v": 2, "memory": KEY.memory, "machine": EVIL, "n": 1}).encode() + b"\n"
        with pytest.raises(SegmentError, match="newer version") as found:
            read(KEY, head)
        assert found.value.hint == "update Klaw on this machine"

    def test_lines_of_unknown_kinds_survive_a_compaction(self, machine, folder):
        known = line(machine, saved("gone"))
        unknown = line(machine, {"x": "from the future"}, kind="dreams", v="22" * 8)
        send(folder, known, unknown, {"k": "wish", "x": "of the future"})
        machine.run([folder])
        FileJournals(machine.root).records("saved").forget([saved("")["id"]])
        machine.run([folder])
        segments = [read(KEY, folder.get(name)) for name in folder.names()]
        assert [version.body for one in segments for version in one.versions if version.kind == "dreams"] == [
            {"x": "from the future"}
        ]
        assert [dict(other) for one in segments for other in one.others] == [{"k": "wish", "x": "of the future"}]
        assert not any(version.body for one in segments for version in one.versions if version.kind == "saved")

    def test_a_segment_with_a_line_that_is_not_valid_is_not_packed_away(self, machine, folder):
        send(folder, line(machine, saved("gone")), line(machine, saved("x"), v="22" * 8, t=7_258_118_400_001))
        (name,) = folder.names()
        before = folder.get(name)
        machine.run([folder])
        FileJournals(machine.root).records("saved").forget([saved("")["id"]])
        for _ in range(2):
            assert "what was forgotten stays in this file" in machine.run([folder]).problems[0]
            assert folder.get(name) == before


def test_names_say_what_is_in_a_file():
    ((name, data),) = Writer(KEY, EVIL, "x").pack(7, [{"k": "tomb", "s": HASH, "x": EVIL}])
    assert name == name_of(EVIL, 7, data)
    assert read(KEY, data).number == 7
