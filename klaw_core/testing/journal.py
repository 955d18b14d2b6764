"""The contract of a journal of records, for whoever keeps journals elsewhere than in files.

class TestMyJournal(RecordJournalContract):
    @pytest.fixture
    def journal(self, tmp_path):
        return MyJournal(...)
"""

from __future__ import annotations

import threading

import pytest

from klaw_core.errors import RecordError
from klaw_core.interfaces.journal import RecordJournal


def _record(name: str, text: str = "") -> dict[str, str]:
    return {"id": name, "text": text or f"text of {name}"}


class RecordJournalContract:
    """The laws of a journal; the subclass gives the fixture ``journal``, an empty one."""

    @pytest.fixture
    def journal(self) -> RecordJournal:
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def test_a_new_journal_is_empty(self, journal: RecordJournal) -> None:
        assert not journal.exists
        assert dict(journal.replay().records) == {}
        journal.finish()
        assert journal.forget(["x"]) == 0

    def test_records_are_replayed_in_the_order_in_which_they_first_came(self, journal: RecordJournal) -> None:
        journal.append([_record("b"), _record("a")])
        journal.append([_record("b", "newer")])
        assert list(journal.replay().records.items()) == [("b", _record("b", "newer")), ("a", _record("a"))]

    def test_law_of_versions(self, journal: RecordJournal) -> None:
        """The version is that of the last write until the next one, and no write leaves one that was there before."""
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

    def test_nothing_is_kept_of_a_batch_with_a_record_without_id(self, journal: RecordJournal) -> None:
        with pytest.raises(RecordError):
            journal.append([_record("a"), {"text": "no id"}])
        assert dict(journal.replay().records) == {}

    def test_adding_lets_no_record_replace_another(self, journal: RecordJournal) -> None:
        assert journal.add([_record("a"), _record("b"), _record("a", "other")]) == {"a"}
        assert journal.add([_record("b", "other"), _record("c"), _record("a")]) == {"b"}
        assert list(journal.replay().records.values()) == [_record("a"), _record("b"), _record("c")]
        assert journal.add([]) == frozenset()

    def test_adding_replaces_what_counts_as_the_same(self, journal: RecordJournal) -> None:
        first, second = {"id": "a", "text": "x", "at": 1}, {"id": "a", "text": "x", "at": 2}
        assert journal.add([first]) == journal.add([second], lambda old, new: old["text"] == new["text"]) == frozenset()
        assert journal.replay().records["a"] == second

    def test_adding_side_by_side_keeps_one_text_of_an_id(self, journal: RecordJournal) -> None:
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

    def test_what_is_forgotten_does_not_come_back(self, journal: RecordJournal) -> None:
        journal.append([_record("a"), _record("b")])
        assert journal.forget(["a", "unknown"]) == 1
        replayed = journal.replay()
        assert list(replayed.records) == ["b"]
        assert replayed.unfinished == ()

    def test_a_forgotten_id_can_be_kept_again(self, journal: RecordJournal) -> None:
        journal.append([_record("a")])
        journal.forget(["a"])
        journal.append([_record("a", "again")])
        assert journal.replay().records["a"] == _record("a", "again")

    def test_values_come_back_as_they_were(self, journal: RecordJournal) -> None:
        record = {"id": "é/ß 😀", "number": 1.5, "none": None, "nested": {"list": [1, "two", True]}, "text": "a\nb\0c"}
        journal.append([record])
        assert journal.replay().records["é/ß 😀"] == record

    def test_writers_side_by_side_lose_nothing(self, journal: RecordJournal) -> None:
        def write(writer: int) -> None:
            for number in range(20):
                journal.append([_record(f"{writer}-{number}")])

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(journal.replay().records) == 80
