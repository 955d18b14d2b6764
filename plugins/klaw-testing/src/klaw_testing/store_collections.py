"""The laws of a store's collections, a part of ``StoreContract``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Filters, KeyDigest, QueryError, Snapshot, SpaceRecord, Store
from klaw_core.values.collections import MEMORY
from klaw_testing.laws import law, scaled
from klaw_testing.store_cache import SPACE, put, vector
from klaw_testing.values import cut_lines, make_document

#: Names that may clash with a store's own tables, or with another collection's tables.
AWKWARD_NAMES = (
    *("facts", "facts_vec", "facts_fts", "facts_vec_chunks", "fts", "vec", "chunks", "documents", "collections"),
    *("docs_words", "memory_chunks", "vec_memory", "sqlite_schema", "select", "c5_facts", "x_facts", "a", "z" * 40),
)
_PATHS = ("a", "a/b", "a/c", "ab", "a\U0010ffff", "a\U0010ffffb", "a\ud7ff", "a\ue000", "b", "Тетрадь")


class InjectedError(Exception):
    """Raised inside a transaction to check that the transaction leaves nothing behind."""


class CollectionLaws:
    """The laws of collections; the subclass defines the fixture ``store``."""

    def test_an_unwritten_collection_is_empty(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one"))
        with store.read() as snapshot:
            self._assert_nothing_in(snapshot, "facts")
            assert list(snapshot.collections()) == [MEMORY]
        with store.write() as transaction:
            self._assert_nothing_in(transaction, "facts")
            assert list(transaction.delete("facts", "notes/a.md")) == []
        with store.read() as snapshot:
            assert list(snapshot.collections()) == [MEMORY], "nothing was written"

    def _assert_nothing_in(self, snapshot: Snapshot[Any], name: str) -> None:
        assert snapshot.is_empty(name)
        assert list(snapshot.documents(name, "", "", 10)) == []
        assert dict(snapshot.manifest(name, "notes")) == {}
        assert snapshot.record(name, "notes", "notes/a.md") is None
        for filters in (Filters(), Filters(path="notes/"), Filters(source="a.md")):
            assert snapshot.select(name, filters).is_empty
            assert snapshot.select(name, filters).keys().tolist() == []
        assert list(snapshot.chunks(name, [1, 2])) == list(snapshot.outline(name, "notes/a.md")) == []
        assert dict(snapshot.chunk_ids(name, [1, 2])) == {}
        assert dict(snapshot.texts(name, [1, 2])) == {}
        assert dict(snapshot.counts(name)) == {}
        assert list(snapshot.find(name, "")) == []
        assert snapshot.keys(name).tolist() == []
        assert snapshot.key_digest(name) == KeyDigest()
        assert snapshot.count(name) == 0
        assert snapshot.space(name) is None

    def test_a_document_or_a_space_creates_a_collection(self, store: Store[Any]) -> None:
        with store.read() as snapshot:
            assert list(snapshot.collections()) == []
        put(store, make_document("notes/a.md", "one"), collection="facts")
        with store.write() as transaction:
            transaction.set_space("b_side", SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            assert list(transaction.collections()) == ["b_side", "facts"], "a transaction must see its own changes"
        with store.write() as transaction:
            transaction.delete("facts", "notes/a.md")
        with store.read() as snapshot:
            assert list(snapshot.collections()) == ["b_side", "facts"]
            assert snapshot.is_empty("facts")
            assert snapshot.space("b_side") is not None

    def test_collections_of_any_name_are_separate(self, store: Store[Any]) -> None:
        for name in AWKWARD_NAMES:
            put(store, make_document("notes/a.md", f"one\n{name}"), collection=name)
        with store.read() as snapshot:
            assert list(snapshot.collections()) == sorted(AWKWARD_NAMES)
        for name, following in pairwise((*AWKWARD_NAMES, MEMORY)):
            with store.write() as transaction:
                stored = transaction.outline(name, "notes/a.md")
                assert [item.chunk.text for item in stored] == ["one", name]
                selected = transaction.select(name, Filters(source="a.md"))
                assert selected.keys().tolist() == transaction.keys(name).tolist()
                assert [item.key for item in transaction.find(name, stored[1].chunk.chunk_id)] == [stored[1].key]
                assert dict(transaction.counts(name)) == {"notes": (1, 2)}
                transaction.delete(name, "notes/a.md")
                assert transaction.is_empty(name)
                assert transaction.is_empty(following) == (following == MEMORY)

    def test_an_invalid_collection_name_is_rejected(self, store: Store[Any]) -> None:
        for name in ("", "Facts", "a-b", "1a", "_a", "a b", "z" * 41, "a;--", 'a"', "a\n", "ф"):
            with pytest.raises(QueryError):
                put(store, make_document("notes/a.md", "one"), collection=name)
            with pytest.raises(QueryError), store.write() as transaction:
                transaction.set_space(name, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
        with store.read() as snapshot:
            assert list(snapshot.collections()) == []

    def test_a_failed_transaction_creates_no_collection(self, store: Store[Any]) -> None:
        document = make_document("notes/a.md", "one")
        with pytest.raises(InjectedError), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.replace("facts", document, cut_lines(document))
            raise InjectedError
        with store.read() as snapshot:
            assert list(snapshot.collections()) == []
            assert snapshot.is_empty("facts")
        put(store, document, collection="facts")
        with store.read() as snapshot:
            assert [item.chunk.text for item in snapshot.outline("facts", document.path)] == ["one"]

    def test_a_snapshot_does_not_see_a_later_collection(self, store: Store[Any]) -> None:
        with store.read() as snapshot:
            assert snapshot.is_empty("facts")
            put(store, make_document("notes/a.md", "one"), collection="facts")
            assert list(snapshot.collections()) == []
            assert snapshot.is_empty("facts")
            assert list(snapshot.outline("facts", "notes/a.md")) == []
        with store.read() as snapshot:
            assert not snapshot.is_empty("facts")

    def test_a_rebuild_has_only_the_collections_written_to_it(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one"), collection="facts")
        with store.rebuild() as fresh:
            with fresh.read() as snapshot:
                assert list(snapshot.collections()) == []
            put(fresh, make_document("notes/b.md", "two"), collection="figures")
        with store.read() as snapshot:
            assert list(snapshot.collections()) == ["figures"]
            assert snapshot.is_empty("facts")
            assert [item.chunk.text for item in snapshot.outline("figures", "notes/b.md")] == ["two"]

    def test_a_collection_without_chunks_is_empty(self, store: Store[Any]) -> None:
        for name in (MEMORY, "docs", "facts"):
            document = make_document("notes/a.md", "one")
            with store.write() as transaction:
                assert transaction.is_empty(name)
                transaction.replace(name, document, [])
                assert transaction.is_empty(name), "it has a document, but no chunk"
                transaction.replace(name, document, cut_lines(document))
                assert not transaction.is_empty(name)

    @settings(law, max_examples=scaled(60))
    @given(
        paths=st.sets(st.sampled_from(_PATHS), max_size=8),
        prefix=st.sampled_from(["", "a", "a/", "a\U0010ffff", "a\ud7ff", "c", *_PATHS]),
        after=st.sampled_from(["", "a", "a/b", "b"]),
        limit=st.integers(-1, 9),
    )
    def test_documents_are_listed_in_pages_ordered_by_path(
        self, store: Store[Any], paths: set[str], prefix: str, after: str, limit: int
    ) -> None:
        with store.write() as transaction:
            for path in _PATHS:
                transaction.delete("facts", path)
            for path in paths:
                document = make_document(path, "one")
                transaction.replace("facts", document, cut_lines(document))
                transaction.replace(MEMORY, make_document(f"{path}/other", path), [])
        expected = sorted(path for path in paths if path.startswith(prefix) and path > after)[: max(limit, 0)]
        with store.read() as snapshot:
            page = snapshot.documents("facts", prefix, after, limit)
            assert [record.path for record in page] == expected
            selected = snapshot.select("facts", Filters(path=prefix)).keys().tolist()
            found = {stored.path for stored in snapshot.chunks("facts", selected)}
            assert found == {path for path in paths if path.startswith(prefix)}
            assert [snapshot.record("facts", record.origin, record.path) for record in page] == list(page)
