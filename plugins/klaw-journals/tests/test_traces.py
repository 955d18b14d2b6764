"""Traces of what was forgotten, and the replacement of a journal's records under its lock."""

from __future__ import annotations

import pytest

from klaw_core import FileLock, RecordError, StoreLockedError
from klaw_journals import FileJournals, Traces
from klaw_journals.jsonl import JsonLines
from klaw_journals.traces import digest

KEY = "00112233445566ff " + "ab" * 32 + "\n"


@pytest.fixture
def data(tmp_path):
    (tmp_path / "sync").mkdir()
    (tmp_path / "sync" / "key").write_text(KEY)
    return tmp_path


def scopes(data):
    return {scope for scope, _ in Traces(data).read()}


class TestTraces:
    def test_a_forgotten_record_leaves_a_keyed_hash_of_its_id(self, data):
        journal = FileJournals(data).records("saved")
        journal.append([{"id": "a", "text": "the lantern"}, {"id": "b", "text": "the boat"}])
        journal.forget(["a"])
        assert scopes(data) == {Traces(data).scope("saved", "a")}
        assert b"lantern" not in (data / "sync" / "forgotten.jsonl").read_bytes()

    def test_a_removed_line_leaves_its_hash_and_that_of_its_id(self, data):
        log = FileJournals(data).logs("conversations").log("telegram_1", "2026-01-01")
        log.append({"id": "m1", "text": "one"}, {"id": "m2", "text": "two"})
        log.remove(lambda line: line.value["id"] == "m1")
        traces = Traces(data)
        line = traces.scope("conversations", "telegram_1", digest({"id": "m1", "text": "one"}))
        assert scopes(data) == {line, traces.scope("id", "conversations", "telegram_1", "m1")}
        is_forgotten = traces.forgotten()
        assert is_forgotten("conversations", "telegram_1", "m1")
        assert not is_forgotten("conversations", "telegram_1", "m2")

    def test_a_deleted_log_forgets_its_group(self, data):
        log = FileJournals(data).logs("conversations").log("telegram_1", "2026-01-01")
        log.append({"id": "m1"})
        log.delete()
        assert Traces(data).forgotten()("conversations", "telegram_1", "anything")

    def test_nobody_can_write_between_a_trace_and_the_deletion(self, data):
        path = data / "conversations" / "telegram_1" / "2026-01-01.jsonl"
        seen = []

        def look(gone):
            with pytest.raises(StoreLockedError), FileLock(path, limit_seconds=0.0):
                pass
            seen.append((gone, path.exists()))

        log = JsonLines(path, on_removal=look)
        log.append({"id": "m1"})
        log.delete()
        assert seen == [(None, True)]
        assert not path.exists()
        log.delete()
        assert len(seen) == 1, "nothing was removed"
        assert not path.exists()

    def test_two_forgettings_of_one_record_are_two_traces(self, data):
        journal = FileJournals(data).records("saved")
        for _ in range(2):
            journal.append([{"id": "a"}])
            journal.forget(["a"])
        assert len({name for _, name in Traces(data).read()}) == 2

    def test_a_memory_without_other_machines_writes_none(self, tmp_path):
        journal = FileJournals(tmp_path).records("saved")
        journal.append([{"id": "a"}])
        journal.forget(["a"])
        assert not (tmp_path / "sync").exists()
        assert Traces(tmp_path).arrived() is None

    def test_another_key_gives_other_hashes(self, data, tmp_path):
        other = tmp_path / "other"
        (other / "sync").mkdir(parents=True)
        (other / "sync" / "key").write_text(KEY.replace("ab", "cd"))
        assert Traces(data).scope("saved", "a") != Traces(other).scope("saved", "a")


class TestSettling:
    def test_records_get_a_new_order_and_no_trace(self, data):
        journal = FileJournals(data).records("facts")
        journal.append([{"id": "a"}, {"id": "b"}])
        assert journal.settle(lambda held: held[::-1])
        assert list(journal.replay().records) == ["b", "a"]
        assert scopes(data) == set()

    def test_new_records_are_appended(self, data):
        journal = FileJournals(data).records("facts")
        journal.append([{"id": "a"}])
        before = journal.path.read_bytes()
        journal.settle(lambda held: [*held, {"id": "b"}])
        assert journal.path.read_bytes() == before + b'{"id":"b"}\n'

    def test_the_bytes_of_a_record_that_goes_are_gone(self, data):
        journal = FileJournals(data).records("saved")
        journal.append([{"id": "a", "text": "lantern"}, {"id": "b"}])
        journal.settle(lambda held: held[1:])
        assert journal.path.read_bytes() == b'{"id":"b"}\n'

    def test_broken_lines_stay(self, data):
        journal = FileJournals(data).records("saved")
        journal.path.write_bytes(b'{"id":"a"}\nno json\n{"id":"b"}\n')
        journal.settle(lambda held: held[1:])
        assert journal.path.read_bytes() == b'no json\n{"id":"b"}\n'

    def test_an_invalid_record_is_refused_before_anything_changes(self, data):
        journal = FileJournals(data).records("saved")
        journal.append([{"id": "a"}])
        with pytest.raises(RecordError):
            journal.settle(lambda _held: [{"no": "id"}])
        assert list(journal.replay().records) == ["a"]

    def test_nothing_is_written_if_nothing_differs(self, data):
        journal = FileJournals(data).records("saved")
        journal.append([{"id": "a"}])
        before = journal.version
        assert not journal.settle(lambda held: held)
        assert journal.version == before

    def test_lines_of_a_log_are_replaced_and_an_empty_log_goes(self, data):
        log = FileJournals(data).logs("conversations").log("telegram_1", "2026-01-01")
        log.append({"n": 2}, {"n": 1})
        assert log.settle(lambda held: sorted(held, key=lambda value: value["n"]))
        assert log.path.read_bytes() == b'{"n":1}\n{"n":2}\n'
        assert log.settle(lambda _held: [])
        assert not log.exists
        assert scopes(data) == set()

    def test_a_log_that_does_not_exist_is_not_made_for_nothing(self, data):
        log = FileJournals(data).logs("conversations").log("telegram_1", "2026-01-01")
        assert not log.settle(lambda held: held)
        assert not log.exists
