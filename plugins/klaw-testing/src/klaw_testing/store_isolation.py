"""The contract of a store that isolates agents from each other (``isolates``).

class TestIsolation(IsolationContract):
    @pytest.fixture
    def open_for(self, tmp_path):
        return lambda agent: SqliteStore(tmp_path / f"{agent}.db")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from klaw_core import DocumentRecord, Filters, Snapshot, SpaceRecord, Store, Transaction, VectorSpace
from klaw_core.values.text import text_hash
from klaw_journals import JournalFileState, MessageReader, MessageWriter, Summary
from klaw_testing.messages import CHAT, DAY, make_message, message_dump
from klaw_testing.store_cache import OTHER as OTHER_SPACE
from klaw_testing.store_cache import C, vector
from klaw_testing.store_machine import dump
from klaw_testing.values import MOMENT, cut_lines, make_document

SECRET = "the lantern hangs at the pier"  # noqa: S105  # a text
SPACE = VectorSpace("test", "r1", 8)
HASH = text_hash("x")
DOCUMENT = make_document("notes/a.md", SECRET, chat_id=CHAT, metadata={"kind": "secret"})
RECORD = DocumentRecord(DOCUMENT.path, DOCUMENT.origin, DOCUMENT.content_hash, DOCUMENT.created_at, "seen by the thief")

#: A call of each method of a snapshot. The result is truthy if it shows an agent's rows; the second argument is their
#: keys.
READS: Mapping[str, Callable[[Snapshot[Any], Sequence[int]], Any]] = {
    "is_empty": lambda view, _keys: not view.is_empty(C),
    "collections": lambda view, _keys: view.collections(),
    "documents": lambda view, _keys: view.documents(C, "", "", 9),
    "manifest": lambda view, _keys: view.manifest(C, "notes"),
    "manifest_digest": lambda view, _keys: view.manifest_digest(C, "notes")[0],
    "newest": lambda view, _keys: view.newest(C, 9),
    "record": lambda view, _keys: view.record(C, "notes", DOCUMENT.path),
    "select": lambda view, _keys: view.select(C, Filters(source="a.md")).keys().tolist(),
    "chunks": lambda view, keys: view.chunks(C, keys),
    "chunk_ids": lambda view, keys: view.chunk_ids(C, keys),
    "texts": lambda view, keys: view.texts(C, keys),
    "outline": lambda view, _keys: view.outline(C, DOCUMENT.path),
    "damaged": lambda view, _keys: view.damaged(C),
    "find": lambda view, _keys: view.find(C, ""),
    "keys": lambda view, _keys: view.keys(C).tolist(),
    "count": lambda view, _keys: view.count(C),
    "key_digest": lambda view, _keys: view.key_digest(C).count,
    "space": lambda view, _keys: view.space(C),
    "counts": lambda view, _keys: view.counts(C),
    "cached_vectors": lambda view, _keys: view.cached_vectors(SPACE, [HASH]),
    "messages.all": lambda view, _keys: view.messages.all(CHAT),
    "messages.get": lambda view, _keys: view.messages.get(CHAT, [make_message(1).id]),
    "messages.search": lambda view, _keys: view.messages.search(SECRET, 9),
    "messages.chats": lambda view, _keys: view.messages.chats(),
    "messages.session": lambda view, _keys: view.messages.session(CHAT),
    "messages.summaries": lambda view, _keys: view.messages.summaries(CHAT),
    "messages.files": lambda view, _keys: view.messages.files(CHAT),
}
#: A call of each method of a transaction that would change those rows.
WRITES: Mapping[str, Callable[[Transaction[Any]], Any]] = {
    "replace": lambda work: work.replace(C, make_document(DOCUMENT.path, "mine"), []),
    "replace_all": lambda work: work.replace_all(C, [(make_document(DOCUMENT.path, "mine"), [])]),
    "remember": lambda work: work.remember(C, [RECORD]),
    "touch": lambda work: work.touch(C, make_document(DOCUMENT.path, "mine", hours=9)),
    "delete": lambda work: work.delete(C, DOCUMENT.path),
    "set_space": lambda work: work.set_space(C, SpaceRecord(OTHER_SPACE, vector(1, 0, 0, 0))),
    "retire_space": lambda work: work.retire_space(SPACE),
    "cache_vectors": lambda work: work.cache_vectors(SPACE, {HASH: vector(0, 1, 0, 0, 0, 0, 0, 0)}),
    "use_vectors": lambda work: work.use_vectors(SPACE, [HASH]),
    "tend_cache": lambda work: work.tend_cache(0),
    "note_documents": lambda work: work.note_documents(SPACE, {(C, DOCUMENT.path): [HASH]}),
    "forget_documents": lambda work: work.forget_documents(C, [DOCUMENT.path]),
    "forget_unused": lambda work: work.forget_unused(),
    "forget_vectors": lambda work: work.forget_vectors([HASH]),
    "messages.insert": lambda work: work.messages.insert([make_message(0, "mine", id_=make_message(1).id)]),
    "messages.put_file": lambda work: work.messages.put_file(JournalFileState(CHAT, DAY, 1)),
    "messages.put_summaries": lambda work: work.messages.put_summaries(CHAT, []),
    "messages.purge": lambda work: work.messages.purge(CHAT),
}


def fill(transaction: Transaction[Any]) -> Any:
    """Write a row of every kind; return the new chunks."""
    added = transaction.replace(C, DOCUMENT, cut_lines(DOCUMENT)).added
    transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0, 0, 0, 0, 0)))
    transaction.cache_vectors(SPACE, {HASH: vector(1, 0, 0, 0, 0, 0, 0, 0)})
    transaction.note_documents(SPACE, {(C, DOCUMENT.path): [HASH]})
    transaction.messages.insert([make_message(1, SECRET)])
    transaction.messages.put_file(JournalFileState(CHAT, DAY, 9))
    transaction.messages.put_summaries(CHAT, [Summary(CHAT, SECRET, "f", MOMENT)])
    return added


class IsolationContract:
    """No method lets an agent see or change another agent's rows; the subclass defines ``open_for``."""

    @pytest.fixture
    def open_for(self) -> Callable[[str], Store[Any]]:
        """Return a function that opens an agent's store; all stores use the same server or parent directory."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @pytest.fixture
    def victim(self, open_for: Callable[[str], Store[Any]]) -> Iterator[Store[Any]]:
        store = open_for("victim")
        with store.write() as transaction:
            fill(transaction)
        yield store
        store.close()

    @pytest.fixture
    def thief(self, open_for: Callable[[str], Store[Any]]) -> Iterator[Store[Any]]:
        store = open_for("thief")
        yield store
        store.close()

    def everything(self, store: Store[Any]) -> Any:
        with store.read() as snapshot:
            cached = {key: one.tolist() for key, one in snapshot.cached_vectors(SPACE, [HASH]).items()}
            return dump(snapshot), cached, message_dump(snapshot.messages), snapshot.messages.search(SECRET, 9)

    def test_it_declares_isolation(self, thief: Store[Any]) -> None:
        assert thief.isolates

    def test_every_method_is_tried(self) -> None:
        read = _methods(Snapshot) - {"resource", "messages"}
        assert read | {f"messages.{name}" for name in _methods(MessageReader)} == set(READS)
        written = _methods(Transaction) - _methods(Snapshot)
        of_messages = {f"messages.{name}" for name in _methods(MessageWriter) - _methods(MessageReader)}
        assert written | of_messages == set(WRITES)

    def test_no_method_shows_the_rows_of_another_agent(self, victim: Store[Any], thief: Store[Any]) -> None:
        with victim.read() as snapshot:
            keys = snapshot.keys(C).tolist()
            assert [name for name, read in READS.items() if not read(snapshot, keys)] == ["damaged"]
        with thief.read() as snapshot:
            assert {name: read(snapshot, keys) for name, read in READS.items() if read(snapshot, keys)} == {}
        with thief.write() as transaction:
            assert {name: read(transaction, keys) for name, read in READS.items() if read(transaction, keys)} == {}

    @pytest.mark.parametrize("name", WRITES)
    def test_no_method_changes_the_rows_of_another_agent(
        self, victim: Store[Any], thief: Store[Any], name: str
    ) -> None:
        before = self.everything(victim)
        with thief.write() as transaction:
            WRITES[name](transaction)
        assert self.everything(victim) == before

    def test_no_agent_waits_for_another(self, victim: Store[Any], thief: Store[Any]) -> None:
        with victim.write(), thief.write():
            pass
        with victim.lock("facts"), thief.lock("facts", on_wait=lambda: pytest.fail("the lock is another agent's")):
            pass


def _methods(protocol: type) -> set[str]:
    return {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}
