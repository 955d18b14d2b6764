"""The contract of a store.

    class TestSqliteStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: SqliteStore(tmp_path / "klaw.db")

and, for the stateful laws against the in-memory store:

    class SqliteMachine(StoreMachine):
        make_opener = staticmethod(open_in_a_fresh_directory)

    TestSqliteMachine = SqliteMachine.TestCase
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from klaw_core import Filters, Replacement, SpaceRecord, Store, StoreError
from klaw_core.values.text import text_hash
from klaw_testing.store_cache import OTHER, SPACE, C, CacheLaws, put, vector
from klaw_testing.store_collections import CollectionLaws, InjectedError
from klaw_testing.store_locks import LockLaws
from klaw_testing.store_machine import OpenStore, StoreMachine, dump
from klaw_testing.store_metadata import MetadataLaws
from klaw_testing.store_writers import WRITERS, WriterLaws
from klaw_testing.values import MOMENT, cut_lines, make_document


class StoreContract(CollectionLaws, MetadataLaws, CacheLaws, LockLaws, WriterLaws):
    """The laws of a store. ``open_store`` opens the same data each time it is called."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Return a function that opens the store; each call opens the same data."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Any:
        store = open_store()
        yield store
        store.close()

    def test_what_is_forgotten_while_it_erases_once_is_gone_at_the_end(self, store: Store[Any]) -> None:
        for path in ("notes/a.md", "notes/b.md"):
            put(store, make_document(path=path, text="one\n"))
        with store.erasing_once():
            for path in ("notes/a.md", "notes/b.md"):
                with store.write() as transaction:
                    assert transaction.delete(C, path)
        with store.read() as snapshot:
            assert snapshot.keys(C).tolist() == []

    def test_a_new_store_is_empty(self, store: Store[Any]) -> None:
        with store.read() as snapshot:
            assert snapshot.keys(C).tolist() == []
            assert snapshot.keys(C).dtype == np.int64
            assert snapshot.chunks(C, [1, 2]) == ()
            assert snapshot.outline(C, "notes/a.md") == ()
            assert snapshot.manifest(C, "notes") == {}
            assert snapshot.record(C, "notes", "notes/a.md") is None
            assert snapshot.counts(C) == {}
            assert snapshot.space(C) is None
            assert snapshot.cached_vectors(SPACE, [text_hash("x")]) == {}

    def test_written_data_is_read_back_equal(self, store: Store[Any]) -> None:
        document = make_document("notes/a.md", "alpha\n\nпамять 内存\nline 🧵", chat_id="telegram_1")
        with store.write() as transaction:
            change = transaction.replace(C, document, cut_lines(document))
        with store.read() as snapshot:
            stored = snapshot.outline(C, document.path)
            assert tuple(stored) == change.added
            assert [item.chunk for item in stored] == list(cut_lines(document))
            assert {(item.path, item.source, item.chat_id, item.created_at, item.origin) for item in stored} == {
                (document.path, document.source, "telegram_1", document.created_at, "notes")
            }
            assert snapshot.manifest(C, "notes")[document.path].content_hash == document.content_hash

    def test_a_document_is_replaced_only_if_the_expected_one_is_stored(self, store: Store[Any]) -> None:
        first, other = make_document("notes/a.md", "one"), make_document("notes/b.md", "two")
        with store.write() as transaction:
            change = transaction.replace(C, first, cut_lines(first), expected={})
            assert change.is_new
        with store.read() as snapshot:
            seen = dict(snapshot.manifest(C, "notes"))
            before = dump(snapshot)
        newer = make_document("notes/a.md", "three", hours=1)
        for expected in ({}, {"notes/a.md": evolve(seen["notes/a.md"], content_hash="another")}):
            with store.write() as transaction:
                assert transaction.replace(C, newer, cut_lines(newer), expected=expected) == Replacement(refused=True)
            with store.read() as snapshot:
                assert dump(snapshot) == before
        with store.write() as transaction:
            missing = {"notes/b.md": evolve(seen["notes/a.md"], path="notes/b.md")}
            assert transaction.replace(C, other, cut_lines(other), expected=missing).refused
            change = transaction.replace(C, newer, cut_lines(newer), expected=seen)
            assert (change.is_new, change.refused, len(change.added)) == (False, False, 1)
            assert transaction.replace(C, newer, cut_lines(newer), expected=seen).refused, "it must see its own changes"

    def test_replace_all_agrees_with_replace(self, store: Store[Any]) -> None:
        first = [make_document(f"notes/{number}.md", f"one\ntwo {number}") for number in range(5)]
        put(store, *first[:3])
        with store.read() as snapshot:
            seen = dict(snapshot.manifest(C, "notes"))
        outdated = evolve(seen["notes/1.md"], content_hash="another")
        changed = [make_document(f"notes/{number}.md", f"two {number}\nthree", hours=1) for number in (4, 0, 1)]
        again = make_document("notes/4.md", "four", metadata={"kind": "late"})
        documents = [(document, cut_lines(document)) for document in (first[3], *changed, again)]
        with store.write() as transaction:
            assert transaction.replace_all(C, []) == []
            expected = {**seen, "notes/1.md": outdated}
            changes = transaction.replace_all(C, documents[:-1], expected=expected)
            last = transaction.replace_all(C, [*documents[:1], documents[-1], documents[-1]])
        assert [change.is_new for change in changes] == [True, True, False, False]
        assert [change.refused for change in changes] == [False, False, False, True]
        assert [len(change.added) for change in changes] == [2, 2, 1, 0]
        assert [len(change.removed) for change in (*changes, *last)] == [0, 0, 1, 0, 0, 2, 0]
        assert [len(change.kept) for change in (*changes, *last)] == [0, 0, 1, 0, 2, 0, 1]
        with store.read() as snapshot:
            for document in (first[3], changed[1], first[1], first[2], again):
                outline = snapshot.outline(C, document.path)
                assert [stored.chunk for stored in outline] == list(cut_lines(document))
                assert {stored.created_at for stored in outline} == {document.created_at}
            assert {stored.metadata["kind"] for stored in snapshot.outline(C, again.path)} == {"late"}
            keys = [stored.key for change in changes for stored in change.added]
            assert keys == sorted(set(keys))

    @pytest.mark.parametrize("where", ["text", "heading", "context", "path", "source", "chat_id", "metadata"])
    def test_nul_characters_are_stored_or_rejected(self, store: Store[Any], where: str) -> None:
        document = make_document("notes/a.md", "one\ntwo")
        chunks = cut_lines(document)
        if where in ("text", "heading", "context"):
            value: Any = ("a", "b\0c") if where == "heading" else "b\0c"
            chunks = (chunks[0], evolve(chunks[1], **{where: value}))
        else:
            change: dict[str, Any] = {where: {"kind": "b\0c"} if where == "metadata" else "b\0c"}
            document = evolve(document, **change)
        try:
            with store.write() as transaction:
                transaction.replace(C, document, chunks)
        except StoreError:
            with store.read() as snapshot:
                assert snapshot.is_empty(C)
            return
        with store.read() as snapshot:
            (first, second) = snapshot.outline(C, document.path)
            assert (first.chunk, second.chunk) == chunks
            assert (second.path, second.source, second.chat_id) == (document.path, document.source, document.chat_id)
            assert dict(second.metadata) == dict(document.metadata)
            assert [record.path for record in snapshot.documents(C, "", "", 9)] == [document.path]

    def test_an_unchanged_chunk_keeps_its_key_and_gets_its_new_position(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo\nthree"))
        with store.read() as snapshot:
            before = {item.chunk.text: item for item in snapshot.outline(C, "notes/a.md")}
        changed = make_document("notes/a.md", "zero\none\nthree", hours=1)
        with store.write() as transaction:
            change = transaction.replace(C, changed, cut_lines(changed))
        assert change.removed == (before["two"].key,)
        assert change.kept == tuple(sorted(before[text].key for text in ("one", "three")))
        assert [item.chunk.text for item in change.added] == ["zero"]
        with store.read() as snapshot:
            after = {item.chunk.text: item for item in snapshot.outline(C, "notes/a.md")}
        assert {text: after[text].key for text in ("one", "three")} == {
            text: before[text].key for text in ("one", "three")
        }
        assert after["one"].chunk.start_line == 2
        assert after["one"].created_at == changed.created_at

    def test_a_chunk_with_a_new_title_is_renewed_and_keeps_its_key(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"))
        renamed = evolve(make_document("notes/a.md", "one\nthree"), title="Numbers")
        chunks = tuple(evolve(chunk, title=renamed.title) for chunk in cut_lines(renamed))
        with store.write() as transaction:
            change = transaction.replace(C, renamed, chunks)
        with store.read() as snapshot:
            outline = snapshot.outline(C, "notes/a.md")
        assert [stored.chunk for stored in outline] == list(chunks)
        assert [list(part) for part in (change.renewed, change.added)] == [[outline[0]], [outline[1]]]
        assert change.kept == (outline[0].key,)
        with store.write() as transaction:
            assert not transaction.replace(C, renamed, chunks).renewed

    def test_a_chunk_whose_document_has_other_metadata_is_renewed(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one"))
        tagged = evolve(make_document("notes/a.md", "one"), metadata={"tags": ("work",)})
        with store.write() as transaction:
            change = transaction.replace(C, tagged, cut_lines(tagged))
        assert [stored.metadata for stored in change.renewed] == [{"tags": ("work",)}]
        with store.write() as transaction:
            assert not transaction.replace(C, tagged, cut_lines(tagged)).renewed

    def test_chunks_use_their_own_date_if_they_have_one(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"))
        moments = [MOMENT + timedelta(hours=hours) for hours in (3, 4)]
        document = evolve(make_document("notes/a.md", "one\nthree"), times=((1, moments[0]), (2, moments[1])))
        chunks = [evolve(chunk, created_at=moment) for chunk, moment in zip(cut_lines(document), moments, strict=True)]
        with store.write() as transaction:
            transaction.replace(C, document, chunks)
            transaction.touch(C, document)
        with store.read() as snapshot:
            assert [stored.created_at for stored in snapshot.outline(C, "notes/a.md")] == moments
            late = snapshot.select(C, Filters(since=moments[1])).keys()
            assert [stored.chunk.text for stored in snapshot.chunks(C, late.tolist())] == ["three"]
        put(store, make_document("notes/a.md", "one\nthree"))
        with store.read() as snapshot:
            assert {stored.created_at for stored in snapshot.outline(C, "notes/a.md")} == {MOMENT}

    def test_a_changed_chunk_with_the_same_id_is_replaced(self, store: Store[Any]) -> None:
        """A chunk with a known id and a different text replaces the stored text."""
        document = make_document("notes/a.md", "one")
        (chunk,) = cut_lines(document)
        put(store, document)
        for other in (
            evolve(chunk, text="ten"),
            evolve(chunk, heading=("other",)),
            evolve(chunk, context="other"),
        ):
            with store.write() as transaction:
                change = transaction.replace(C, document, [other])
            assert (len(change.removed), [item.chunk for item in change.added]) == (1, [other])
            with store.read() as snapshot:
                assert [item.chunk for item in snapshot.outline(C, "notes/a.md")] == [other]

    def test_keys_are_never_reused(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"))
        with store.write() as transaction:
            gone = transaction.delete(C, "notes/a.md")
        put(store, make_document("notes/b.md", "three"))
        with store.read() as snapshot:
            assert not set(snapshot.keys(C).tolist()) & set(gone)

    def test_keys_of_one_call_are_distinct_and_ascending(self, store: Store[Any]) -> None:
        for text in ("one\ntwo\nthree", "zero\ntwo\nthree\nfour"):
            document = make_document("notes/a.md", text)
            with store.write() as transaction:
                change = transaction.replace(C, document, cut_lines(document))
            keys = [stored.key for stored in change.added]
            assert keys == sorted(set(keys))
            assert all(0 < key < 2**63 for key in keys)

    def test_delete_removes_the_document_and_returns_its_keys(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"), make_document("notes/b.md", "three"))
        with store.write() as transaction:
            expected = [item.key for item in transaction.outline(C, "notes/a.md")]
            assert list(transaction.delete(C, "notes/a.md")) == sorted(expected)
            assert list(transaction.delete(C, "notes/a.md")) == []
        with store.read() as snapshot:
            assert list(snapshot.manifest(C, "notes")) == ["notes/b.md"]
            assert snapshot.counts(C) == {"notes": (1, 1)}

    def test_record_agrees_with_the_manifest(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"), make_document("saved/b", "three", origin="saved"))
        later = make_document("notes/a.md", "one", hours=1)
        with store.write() as transaction:
            before = transaction.record(C, "notes", later.path)
            transaction.replace(C, later, cut_lines(later))
            assert transaction.record(C, "notes", later.path) != before, "a transaction must see its own changes"
        with store.read() as snapshot:
            for origin in ("notes", "saved"):
                manifest = snapshot.manifest(C, origin)
                recorded = {path: snapshot.record(C, origin, path) for path in ("notes/a.md", "saved/b", "notes/c.md")}
                assert {path: record for path, record in recorded.items() if record} == manifest

    def test_the_digest_of_a_manifest_shows_every_change_of_it(self, store: Store[Any]) -> None:
        first, second = make_document("notes/a.md", "one"), make_document("notes/b.md", "two")
        other = make_document("saved/x", "x", origin="saved")

        def digest() -> tuple[int, int]:
            with store.read() as snapshot:
                return snapshot.manifest_digest(C, "notes")

        found = [digest()]
        for document in (first, second, make_document("notes/a.md", "three"), first):
            put(store, document)
            found.append(digest())
        put(store, other)
        assert digest() == found[-1]
        assert found[2] == found[4]
        with store.write() as transaction:
            transaction.delete(C, first.path)
        found.append(digest())
        put(store, first)
        found[2:3] = [digest()]  # the same documents in other rows may have another digest
        assert len({found[0], found[1], found[3], found[4], found[5]}) == 5

    def test_the_newest_documents_are_those_of_the_manifests(self, store: Store[Any]) -> None:
        documents = [make_document(f"notes/{name}.md", name, hours=name in "bd") for name in "edcba"]
        documents += [make_document("saved/x", "x", origin="saved", hours=3)]
        put(store, *documents)
        with store.read() as snapshot:
            records = [*snapshot.manifest(C, "notes").values(), *snapshot.manifest(C, "saved").values()]
            records.sort(key=lambda record: (-record.created_at.timestamp(), record.path))
            for limit in (0, 1, 2, 9):
                assert list(snapshot.newest(C, limit)) == records[:limit]
            assert list(snapshot.newest(C, 2, origin="notes")) == records[1:3]
            assert list(snapshot.newest(C, 9, since=records[2].created_at)) == records[:3]
            assert list(snapshot.newest("empty", 9)) == []
            assert [record.seen for record in snapshot.newest(C, 1)] == [""]

    def test_seen_is_kept_until_the_document_is_written_again(self, store: Store[Any]) -> None:
        document, other = make_document("notes/a.md", "one\ntwo"), make_document("notes/b.md", "three")
        put(store, document, other)
        with store.write() as transaction:
            record, second = (transaction.record(C, "notes", item.path) for item in (document, other))
            assert record is not None
            assert second is not None
            assert (record.seen, second.seen) == ("", "")
            outdated = evolve(second, content_hash="another", seen="never noted")
            transaction.remember(C, [evolve(record, seen="one\ntwo"), outdated, evolve(record, path="notes/none.md")])
        for change in ("replace", "touch", "delete"):
            with store.read() as snapshot:
                found = snapshot.record(C, "notes", document.path)
                assert found == record, "'seen' must not take part in comparisons"
                assert found is not None
                assert found.seen == "one\ntwo"
                manifest = snapshot.manifest(C, "notes")
                assert {path: item.seen for path, item in manifest.items()} == {
                    document.path: found.seen,
                    other.path: "",
                }
                assert [item.seen for item in snapshot.documents(C, "", "", 9)] == [found.seen, ""]
            with store.write() as transaction:
                if change == "replace":
                    transaction.replace(C, document, cut_lines(document))
                elif change == "touch":
                    transaction.touch(C, document)
                else:
                    transaction.delete(C, document.path)
                    transaction.replace(C, document, cut_lines(document))
            with store.read() as snapshot:
                after = snapshot.record(C, "notes", document.path)
            assert after is not None
            assert after.seen == ""
            with store.write() as transaction:
                transaction.remember(C, [evolve(record, seen="one\ntwo")])

    def test_chunks_are_returned_in_the_requested_order(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo\nthree"))
        with store.read() as snapshot:
            keys = snapshot.keys(C).tolist()
            wanted = [keys[2], 10_000, keys[0]]
            assert [item.key for item in snapshot.chunks(C, wanted)] == [keys[2], keys[0]]
            first, _, third = snapshot.outline(C, "notes/a.md")
            ids = {keys[0]: first.chunk.chunk_id, keys[2]: third.chunk.chunk_id}
            assert dict(snapshot.chunk_ids(C, wanted)) == ids
            assert dict(snapshot.chunk_ids("docs", wanted)) == dict(snapshot.chunk_ids(C, [])) == {}
            assert dict(snapshot.texts(C, wanted)) == {keys[0]: first.chunk.text, keys[2]: third.chunk.text}
            assert dict(snapshot.texts("docs", wanted)) == dict(snapshot.texts(C, [])) == {}

    def test_filters_select_exactly(self, store: Store[Any]) -> None:
        items = [
            make_document("notes/a.md", "one", hours=0),
            make_document("notes/ab.md", "two", hours=1, chat_id="telegram_1"),
            make_document("notes/sub/c.md", "three", hours=2),
            make_document("saved/1", "four", hours=3, origin="saved"),
        ]
        put(store, *items)
        cases = {
            Filters(source="a.md"): {"notes/a.md"},
            Filters(path="notes/a"): {"notes/a.md", "notes/ab.md"},
            Filters(path="notes/sub/"): {"notes/sub/c.md"},
            Filters(chat_id="telegram_1"): {"notes/ab.md"},
            Filters(since=MOMENT + timedelta(hours=2)): {"notes/sub/c.md", "saved/1"},
            Filters(until=MOMENT + timedelta(hours=2)): {"notes/a.md", "notes/ab.md"},
            Filters(path="notes/", since=MOMENT + timedelta(hours=1)): {"notes/ab.md", "notes/sub/c.md"},
            Filters(source="nothing"): set(),
            Filters(): {item.path for item in items},
        }
        with store.read() as snapshot:
            for filters, expected in cases.items():
                selected = snapshot.select(C, filters)
                keys = selected.keys()
                assert keys.dtype == np.int64
                assert keys.tolist() == sorted(set(keys.tolist()))
                assert selected.is_empty == (not expected)
                assert {item.path for item in snapshot.chunks(C, keys.tolist())} == expected, filters

    def test_a_chunk_is_found_by_the_prefix_of_its_id(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"))
        with store.read() as snapshot:
            wanted = snapshot.outline(C, "notes/a.md")[1]
            assert list(snapshot.find(C, wanted.chunk.chunk_id[:10])) == [wanted]
            assert list(snapshot.find(C, "zz")) == []

    def test_a_failed_transaction_leaves_nothing(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one\ntwo"))
        with store.read() as snapshot:
            before = dump(snapshot)
        with pytest.raises(InjectedError), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.delete(C, "notes/a.md")
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            transaction.cache_vectors(SPACE, {text_hash("x"): vector(1, 2, 3, 4)})
            raise InjectedError
        with store.read() as snapshot:
            assert dump(snapshot) == before
            assert snapshot.cached_vectors(SPACE, [text_hash("x")]) == {}

    def test_a_snapshot_does_not_see_later_writes(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one"))
        with store.read() as snapshot:
            put(store, make_document("notes/b.md", "two"))
            assert list(snapshot.manifest(C, "notes")) == ["notes/a.md"]
        with store.read() as snapshot:
            assert sorted(snapshot.manifest(C, "notes")) == ["notes/a.md", "notes/b.md"]

    def test_the_space_is_recorded_and_replaced(self, store: Store[Any]) -> None:
        for space in (SPACE, OTHER):
            with store.write() as transaction:
                transaction.set_space(C, SpaceRecord(space, vector(1, 2, 3, 4)))
            with store.read() as snapshot:
                record = snapshot.space(C)
            assert record is not None
            assert record.space == space
            assert record.probe.tolist() == vector(1, 2, 3, 4).tolist()

    def test_concurrent_writes_lose_no_document(self, store: Store[Any]) -> None:
        def write(number: int) -> None:
            for part in range(5):
                put(store, make_document(f"notes/{number}-{part}.md", "one\ntwo"))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.read() as snapshot:
            assert snapshot.counts(C) == {"notes": (20, 40)}
            assert len(set(snapshot.keys(C).tolist())) == 40

    def test_a_rebuild_replaces_all_data_and_can_read_the_cache(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "old"))
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            transaction.cache_vectors(SPACE, {text_hash("x"): vector(1, 2, 3, 4)})
            transaction.cache_vectors(OTHER, {text_hash("y"): vector(4, 3, 2, 1)})
        with store.rebuild() as fresh:
            with fresh.read() as snapshot:
                assert snapshot.keys(C).tolist() == []
                assert snapshot.cached_vectors(SPACE, [text_hash("x")])[text_hash("x")].tolist() == pytest.approx(
                    vector(1, 2, 3, 4).tolist()
                )
                assert snapshot.cached_vectors(OTHER, [text_hash("x"), text_hash("y")]).keys() == {text_hash("y")}
            put(fresh, make_document("notes/b.md", "new\nnewer"))
            with store.read() as snapshot:
                assert list(snapshot.manifest(C, "notes")) == ["notes/a.md"], "searches must work during a rebuild"
        with store.read() as snapshot:
            assert list(snapshot.manifest(C, "notes")) == ["notes/b.md"]
            assert snapshot.counts(C) == {"notes": (1, 2)}
            assert snapshot.space(C) is None
        put(store, make_document("notes/c.md", "later"))

    def test_a_failed_rebuild_changes_nothing(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "old"))
        with store.read() as snapshot:
            before = dump(snapshot)
        with pytest.raises(InjectedError), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
            put(fresh, make_document("notes/b.md", "new"))
            raise InjectedError
        with store.read() as snapshot:
            assert dump(snapshot) == before
        put(store, make_document("notes/c.md", "later"))

    def test_what_a_failed_rebuild_leaves_can_be_removed(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "old"))
        with store.read() as snapshot:
            before = dump(snapshot)
        with pytest.raises(InjectedError), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
            put(fresh, make_document("notes/b.md", "new"))
            raise InjectedError
        store.tidy()
        store.tidy()
        with store.read() as snapshot:
            assert dump(snapshot) == before
        assert not [finding for finding in store.check() if finding.check == "leftovers"]

    def test_an_undamaged_store_has_nothing_to_fix(self, store: Store[Any]) -> None:
        assert list(store.check()) == []
        put(store, make_document("notes/a.md", "one\ntwo"))
        with store.write() as transaction:
            transaction.cache_vectors(SPACE, {text_hash("one"): vector(0, 1, 0, 0)})
        with store.read() as snapshot:
            before = dump(snapshot)
        assert list(store.check()) == []
        assert list(store.check(fix=True)) == []
        with store.read() as snapshot:
            assert dump(snapshot) == before
            assert text_hash("one") in snapshot.cached_vectors(SPACE, [text_hash("one")])

    def test_closing_twice_is_allowed(self, open_store: OpenStore) -> None:
        store = open_store()
        store.close()
        store.close()
        opened = open_store()
        put(opened, make_document("notes/a.md", "one"))
        with opened.read() as snapshot:
            assert list(snapshot.manifest(C, "notes")) == ["notes/a.md"]
        opened.close()


class PersistentStoreContract(StoreContract):
    """The laws of a store whose data remains after it is closed."""

    @pytest.fixture
    def writers(self, store: Store[Any], open_store: OpenStore) -> Any:
        others = [open_store() for _ in range(WRITERS - 1)]
        yield [store, *others]
        for other in others:
            other.close()

    @pytest.mark.parametrize(("days", "is_kept"), [(0, True), (29.9, True), (30.1, False), (400, False)])
    def test_vectors_of_an_unfinished_reindex_are_kept_for_thirty_days(
        self, store: Store[Any], monkeypatch: pytest.MonkeyPatch, *, days: float, is_kept: bool
    ) -> None:
        """They may have been paid for."""
        digest, later = text_hash("x"), time.time_ns() + round(days * 24 * 3600 * 10**9)
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            for space in (SPACE, OTHER):
                transaction.cache_vectors(space, {digest: vector(1, 2, 3, 4)})
        monkeypatch.setattr(time, "time_ns", lambda: later)
        with store.write() as transaction:
            transaction.tend_cache(10)
        with store.read() as snapshot:
            assert bool(snapshot.cached_vectors(OTHER, [digest])) == is_kept
            assert snapshot.cached_vectors(SPACE, [digest]), "those in use are kept for ever"

    def test_the_share_of_vectors_that_were_cached_is_counted(self, store: Store[Any]) -> None:
        assert store.statistics()["cache_hit_rate"] == "no lookups yet"
        for found, computed in ((3, 0), (0, 1)):
            with store.write() as transaction:
                transaction.tend_cache(10, found=found, computed=computed)
        assert store.statistics()["cache_hit_rate"] == "75% of 4"

    def test_committed_data_is_read_after_reopening(self, open_store: OpenStore) -> None:
        first = open_store()
        put(first, make_document("notes/a.md", "one\ntwo"))
        with first.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 2, 3, 4)))
            transaction.cache_vectors(SPACE, {text_hash("x"): vector(1, 0, 0, 0)})
        with first.read() as snapshot:
            before = dump(snapshot)
        first.close()
        second = open_store()
        try:
            with second.read() as snapshot:
                assert dump(snapshot) == before
                assert snapshot.cached_vectors(SPACE, [text_hash("x")])
        finally:
            second.close()

    def test_a_lock_excludes_other_stores_with_the_same_data(self, open_store: OpenStore) -> None:
        first, second = open_store(), open_store()
        self.assert_excludes(first, second)
        first.close()
        second.close()


__all__ = ["InjectedError", "OpenStore", "PersistentStoreContract", "StoreContract", "StoreMachine", "dump", "put"]
