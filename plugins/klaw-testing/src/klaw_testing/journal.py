"""The contracts of journals, for stores that do not keep them in files.

class TestMyJournal(RecordJournalContract):
    @pytest.fixture
    def journal(self, tmp_path):
        return MyJournal(...)
"""

from __future__ import annotations

import threading
from zlib import crc32

import pytest

from klaw_core import RecordError, StoreError
from klaw_journals import LogFolder, LogRecord, OwnedText, RecordJournal


def _record(name: str, text: str = "") -> dict[str, str]:
    return {"id": name, "text": text or f"text of {name}"}


def _overflow() -> float:
    raise OverflowError("timestamp too large to convert to C _PyTime_t")  # what Python says from 2262 on


class RecordJournalContract:
    """The laws of a journal; the subclass defines the fixture ``journal``, an empty journal."""

    @pytest.fixture
    def journal(self) -> RecordJournal:
        """Return an empty journal of records."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_a_new_journal_is_empty(self, journal: RecordJournal) -> None:
        assert not journal.exists
        assert dict(journal.replay().records) == {}
        journal.finish()
        assert journal.forget(["x"]) == 0

    def test_records_are_replayed_in_order_of_their_first_version(self, journal: RecordJournal) -> None:
        journal.append([_record("b"), _record("a")])
        journal.append([_record("b", "newer")])
        assert list(journal.replay().records.items()) == [("b", _record("b", "newer")), ("a", _record("a"))]

    def test_every_write_makes_a_new_version(self, journal: RecordJournal) -> None:
        """Every write makes a new version that was never used before, and the version stays until the next write."""
        seen = [journal.version, journal.append([_record("a")])]
        journal.replay()
        assert journal.version == seen[-1]
        for text in ("one", "two"):  # of one length
            seen.append(journal.append([_record("a", text)]))
            assert journal.version == seen[-1]
        journal.forget(["a"])
        seen.append(journal.version)
        seen.append(journal.append([_record("b")]))
        assert journal.append([]) == seen[-1]
        assert len(set(seen)) == len(seen)

    def test_a_batch_with_a_record_without_id_writes_nothing(self, journal: RecordJournal) -> None:
        with pytest.raises(RecordError):
            journal.append([_record("a"), {"text": "no id"}])
        assert dict(journal.replay().records) == {}

    def test_nothing_is_written_at_a_moment_that_cannot_be_represented(
        self, journal: RecordJournal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("klaw_journals.timestamps.time.time", _overflow)
            with pytest.raises(StoreError, match="clock"):
                journal.append([_record("a")])
            with pytest.raises(StoreError, match="clock"):
                journal.add([_record("a")])
        assert dict(journal.replay().records) == {}

    def test_add_does_not_replace_a_different_record(self, journal: RecordJournal) -> None:
        assert journal.add([_record("a"), _record("b"), _record("a", "other")]) == {"a"}
        assert journal.add([_record("b", "other"), _record("c"), _record("a")]) == {"b"}
        assert list(journal.replay().records.values()) == [_record("a"), _record("b"), _record("c")]
        assert journal.add([]) == frozenset()

    def test_add_replaces_an_equivalent_record(self, journal: RecordJournal) -> None:
        first, second = {"id": "a", "text": "x", "at": 1}, {"id": "a", "text": "x", "at": 2}
        assert journal.add([first]) == journal.add([second], lambda old, new: old["text"] == new["text"]) == frozenset()
        assert journal.replay().records["a"] == second

    def test_what_is_asked_before_an_add_reads_the_journal_and_can_refuse_it(self, journal: RecordJournal) -> None:
        seen: list[list[str]] = []
        journal.add([_record("a")], ask=lambda: seen.append(list(journal.replay().records)))
        journal.add([_record("b")], ask=lambda: seen.append(list(journal.replay().records)))
        assert seen == [[], ["a"]]

        def refuse() -> None:
            raise RecordError("no")

        with pytest.raises(RecordError, match="no"):
            journal.add([_record("c")], ask=refuse)
        assert list(journal.replay().records) == ["a", "b"]

    def test_concurrent_adds_keep_one_record_per_id(self, journal: RecordJournal) -> None:
        refused: list[str] = []

        def write(writer: int) -> None:
            for number in range(10):
                refused.extend(journal.add([_record(f"{number}", f"by {writer}")]))

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refused) == 30
        assert len(journal.replay().records) == 10

    def test_a_forgotten_record_is_not_replayed(self, journal: RecordJournal) -> None:
        journal.append([_record("a"), _record("b")])
        assert journal.forget(["a", "unknown"]) == 1
        replayed = journal.replay()
        assert list(replayed.records) == ["b"]
        assert replayed.unfinished == ()

    def test_a_forgotten_id_can_be_appended_again(self, journal: RecordJournal) -> None:
        journal.append([_record("a")])
        journal.forget(["a"])
        journal.append([_record("a", "again")])
        assert journal.replay().records["a"] == _record("a", "again")

    def test_get_and_ids_agree_with_replay(self, journal: RecordJournal) -> None:
        """``get`` and ``ids`` agree with ``replay`` after every kind of write."""
        asked = ["a", "b", "c", "nobody's"]

        def agree() -> None:
            records = journal.replay().records
            assert dict(journal.get(asked)) == {name: records[name] for name in asked if name in records}
            assert sorted(journal.ids()) == sorted(records)

        agree()
        journal.append([_record("a"), _record("b")])
        agree()
        journal.append([_record("a", "another text, which is longer"), _record("é/ß 😀")])
        agree()
        journal.add([_record("b", "refused"), _record("c")])
        agree()
        journal.forget(["a", "c"])
        agree()
        journal.append([_record("c", "again")])
        agree()
        assert journal.get(["c"]) == {"c": _record("c", "again")}

    def test_values_are_read_back_equal(self, journal: RecordJournal) -> None:
        record = {"id": "é/ß 😀", "number": 1.5, "none": None, "nested": {"list": [1, "two", True]}, "text": "a\nb\0c"}
        journal.append([record])
        assert journal.replay().records["é/ß 😀"] == record

    def test_concurrent_appends_lose_no_record(self, journal: RecordJournal) -> None:
        def write(writer: int) -> None:
            for number in range(20):
                journal.append([_record(f"{writer}-{number}")])

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(journal.replay().records) == 80


class LogFolderContract:
    """The laws of logs; the subclass defines the fixture ``logs``, an empty folder."""

    @pytest.fixture
    def logs(self) -> LogFolder:
        """Return an empty folder of logs."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_a_new_folder_is_empty(self, logs: LogFolder) -> None:
        log = logs.log("chat_1", "2026-02-24")
        assert not logs.exists
        assert (list(logs.groups()), list(logs.names("chat_1"))) == ([], [])
        assert (log.exists, list(log.read()), list(log.read_backwards())) == (False, [], [])
        assert log.remove(lambda _record: True) == 0
        log.delete()

    def test_logs_are_listed_by_group_and_in_order(self, logs: LogFolder) -> None:
        for group, name in (("b_1", "day"), ("a_1", "later"), ("a_1", "day")):
            logs.log(group, name).append({"n": 1})
        assert logs.exists
        assert list(logs.groups()) == ["a_1", "b_1"]
        assert list(logs.names("a_1")) == ["day", "later"]
        logs.log("a_1", "day").delete()
        assert list(logs.names("a_1")) == ["later"]

    def test_records_are_read_in_order_from_any_offset(self, logs: LogFolder) -> None:
        log = logs.log("chat_1", "day")
        made = [*log.append({"n": 1}, {"n": 2, "text": "é😀\nb\0c"}), *log.append(lambda offset: {"at": offset})]
        assert list(log.read()) == made
        assert list(log.read_backwards()) == made[::-1]
        for number, record in enumerate(made, start=1):
            assert record.offset < record.end
            assert list(log.read(record.end)) == made[number:]
        assert made[2].value == {"at": made[2].offset}
        assert log.size == made[-1].end

    def test_an_append_with_an_invalid_record_writes_nothing(self, logs: LogFolder) -> None:
        log = logs.log("chat_1", "day")
        with pytest.raises(RecordError):
            log.append({"n": 1}, {"n": float("nan")})
        assert list(log.read()) == []

    def test_nothing_is_written_at_a_moment_that_cannot_be_represented(
        self, logs: LogFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("klaw_journals.timestamps.time.time", _overflow)
            with pytest.raises(StoreError, match="clock"):
                logs.log("one", "a").append({"text": "x"})
        assert list(logs.log("one", "a").read()) == []

    def test_removed_records_are_not_read_and_the_others_stay(self, logs: LogFolder) -> None:
        log = logs.log("chat_1", "day")
        log.append(*({"n": number} for number in range(4)))
        before = log.checksum(0, log.size or 0)
        assert log.remove(lambda record: record.value["n"] in (0, 2)) == 2
        log.append({"n": 4})
        assert [line.value["n"] for line in log.read() if isinstance(line, LogRecord)] == [1, 3, 4]
        assert log.checksum(0, log.size or 0) != before

    def test_checksums_can_be_continued(self, logs: LogFolder) -> None:
        """A checksum can be continued from that of the preceding bytes, and differs for other contents."""
        log, other = logs.log("chat_1", "day"), logs.log("chat_2", "day")
        first, second = log.append({"n": 1}, {"n": 2})
        other.append({"n": 1}, {"n": 3})
        whole = log.checksum(0, second.end)
        assert log.checksum(second.offset, second.end, log.checksum(0, first.end) or 0) == whole
        assert whole not in (None, other.checksum(0, second.end), crc32(b""))

    def test_is_end_accepts_only_record_ends(self, logs: LogFolder) -> None:
        log = logs.log("chat_1", "day")
        first, second = log.append({"n": 1}, {"n": 2})
        assert [log.is_end(place) for place in (0, first.end, second.end)] == [True, True, True]
        assert not log.is_end(second.end + 1)
        assert log.count_blank(first.end, second.offset) == 0

    def test_concurrent_appends_lose_no_record(self, logs: LogFolder) -> None:
        def write(writer: int) -> None:
            for number in range(20):
                logs.log("chat_1", "day").append({"writer": writer, "n": number})

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [line.value for line in logs.log("chat_1", "day").read() if isinstance(line, LogRecord)]
        assert len(said) == 80
        assert all([one["n"] for one in said if one["writer"] == writer] == list(range(20)) for writer in range(4))


class OwnedTextContract:
    """The laws of a text that is replaced as a whole; the subclass defines the fixture ``text``, without content."""

    @pytest.fixture
    def text(self) -> OwnedText:
        """Return an owned text that does not exist yet."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_a_new_text_does_not_exist(self, text: OwnedText) -> None:
        assert text.read(10) is None
        with text.changing():
            text.replace("é😀")
        assert text.read(100) == "é😀".encode()
        assert text.read(2) == "é".encode()

    def test_nothing_is_written_at_a_moment_that_cannot_be_represented(
        self, text: OwnedText, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("klaw_journals.timestamps.time.time", _overflow)
            with pytest.raises(StoreError, match="clock"):
                text.replace("a")
        assert text.read(10) is None

    def test_changes_exclude_each_other(self, text: OwnedText) -> None:
        def count() -> None:
            for _ in range(20):
                with text.changing():
                    text.replace(str(int(text.read(9) or b"0") + 1))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert text.read(9) == b"80"

    def test_equal_copies_are_kept_once(self, text: OwnedText) -> None:
        with text.changing():
            text.replace("good")
        places = [text.keep_aside(data) for data in (b"one", b"two", b"one")]
        assert places[0] == places[2] != places[1]
        assert text.read(9) == b"good"

    def test_copies_are_removed(self, text: OwnedText) -> None:
        with text.changing():
            text.replace("good")
        first = text.keep_aside(b"one")
        text.keep_aside(b"two")
        text.remove_copies()
        assert text.read(9) == b"good"
        assert text.keep_aside(b"two") == first, "the numbers begin again: no copy is left"
        text.remove_copies()
        text.remove_copies()
