"""The laws of a store's embedding cache, a part of ``StoreContract``."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from klaw_core import Chunk, Document, SpaceRecord, Store, Vector, VectorSpace
from klaw_core.values.text import text_hash
from klaw_testing.values import cut_lines, make_document

C = "memory"
SPACE = VectorSpace("test", "r1", 4)
OTHER = VectorSpace("test", "r2", 4)


def vector(*numbers: float) -> Vector:
    """Return a float32 vector of unit length."""
    array = np.array(numbers, dtype=np.float32)
    return np.asarray(array / np.linalg.norm(array), dtype=np.float32)


def put(store: Store[Any], *items: Document, collection: str = C) -> None:
    """Write documents in one transaction, with one chunk per line."""
    with store.write() as transaction:
        for document in items:
            transaction.replace(collection, document, cut_lines(document))


class CacheLaws:
    """The laws of a cache; the subclass defines the fixture ``store``."""

    def test_the_cache_separates_spaces_and_forgets_in_all(self, store: Store[Any]) -> None:
        digest, other = text_hash("x"), text_hash("y")
        with store.write() as transaction:
            transaction.cache_vectors(SPACE, {digest: vector(1, 0, 0, 0), other: vector(0, 0, 1, 0)})
            transaction.cache_vectors(OTHER, {digest: vector(0, 1, 0, 0)})
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, [digest])[digest].tolist() == [1, 0, 0, 0]
            assert snapshot.cached_vectors(OTHER, [digest, other]).keys() == {digest}
        with store.write() as transaction:
            transaction.forget_vectors([digest])
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, [digest, other]).keys() == {other}
            assert snapshot.cached_vectors(OTHER, [digest]) == {}

    def test_forgetting_a_document_removes_its_vectors_in_a_future_space(self, store: Store[Any]) -> None:
        """Forgetting a document removes its cached vectors in a future space, even if its chunks have changed."""
        one, two, both = (text_hash(text) for text in ("one", "two", "both"))
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(OTHER, vector(1, 0, 0, 0)))
            transaction.cache_vectors(SPACE, {digest: vector(1, 2, 3, 4) for digest in (one, two, both)})
            transaction.note_documents(SPACE, {(C, "notes/a.md"): [one, both], (C, "notes/b.md"): [two, both]})
            transaction.note_documents(SPACE, {(C, "notes/c.md"): [], ("docs", "notes/b.md"): [two]})
        with store.write() as transaction:
            transaction.forget_documents(C, ["notes/a.md", "notes/unknown.md"])
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, [one, two, both]).keys() == {two}
        with store.rebuild() as fresh, fresh.write() as transaction:
            transaction.set_space(C, SpaceRecord(OTHER, vector(1, 0, 0, 0)))
        with store.write() as transaction:
            transaction.forget_documents("docs", ["notes/b.md"])
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, [one, two, both]) == {}

    def test_unused_vectors_can_be_forgotten(self, store: Store[Any]) -> None:
        document = make_document("notes/a.md", "one")
        (chunk,) = cut_lines(document)
        put(store, document)
        unused = text_hash("unused")
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            rows = {chunk.embedding_hash: vector(1, 2, 3, 4), unused: vector(1, 2, 3, 4)}
            transaction.cache_vectors(SPACE, rows)
            transaction.cache_vectors(OTHER, {unused: vector(1, 2, 3, 4)})
        with store.write() as transaction:
            transaction.forget_unused()
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, list(rows)).keys() == {chunk.embedding_hash}
            assert snapshot.cached_vectors(OTHER, [unused]).keys() == {unused}, "that space is being built"

    def test_a_vector_is_unused_once_the_title_that_was_embedded_has_changed(self, store: Store[Any]) -> None:
        document = make_document("notes/a.md", "one")
        titles = ("Before", "After")
        chunks = [Chunk("0" * 32, "one", 0, 3, 1, 1, title=title) for title in titles]
        for title, chunk in zip(titles, chunks, strict=True):
            with store.write() as transaction:
                transaction.replace(C, evolve(document, title=title), (chunk,))
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            transaction.cache_vectors(SPACE, {chunk.embedding_hash: vector(1, 2, 3, 4) for chunk in chunks})
            transaction.forget_unused()
        with store.read() as snapshot:
            cached = snapshot.cached_vectors(SPACE, [chunk.embedding_hash for chunk in chunks])
            assert cached.keys() == {chunks[1].embedding_hash}

    def test_a_full_cache_evicts_the_least_recently_used_vectors(self, store: Store[Any]) -> None:
        hashes = [text_hash(str(number)) for number in range(6)]
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
        for digest in hashes:
            with store.write() as transaction:
                transaction.cache_vectors(SPACE, {digest: vector(1, 2, 3, 4)})
        with store.write() as transaction:
            assert transaction.tend_cache(6, found=1, computed=5) == 0
            transaction.use_vectors(SPACE, [hashes[0], text_hash("unknown")])
            transaction.use_vectors(OTHER, hashes)
        with store.write() as transaction:
            assert transaction.tend_cache(2) == 4
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, hashes).keys() == {hashes[0], hashes[5]}
        with store.write() as transaction:
            assert transaction.tend_cache(0) == 2

    def test_vectors_of_a_space_that_is_being_built_are_not_evicted(self, store: Store[Any]) -> None:
        hashes = [text_hash(str(number)) for number in range(4)]
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
            for space in (SPACE, OTHER):
                transaction.cache_vectors(space, dict.fromkeys(hashes, vector(1, 2, 3, 4)))
            assert transaction.tend_cache(1) == 3
            assert len(transaction.cached_vectors(SPACE, hashes)) == 1
            assert len(transaction.cached_vectors(OTHER, hashes)) == 4

    def test_a_retired_space_stays_with_its_collection_under_a_new_revision(self, store: Store[Any]) -> None:
        record = SpaceRecord(SPACE, vector(1, 2, 3, 4))
        with store.write() as transaction:
            transaction.retire_space(SPACE)
            transaction.set_space(C, record)
            transaction.cache_vectors(SPACE, {text_hash("x"): vector(1, 0, 0, 0)})
            transaction.retire_space(SPACE)
        with store.read() as snapshot:
            retired = snapshot.space(C)
            assert snapshot.cached_vectors(SPACE, [text_hash("x")]) == {}
        assert retired is not None
        assert retired.space == evolve(SPACE, revision=f"replaced-{SPACE.revision}")
        assert retired.probe.tolist() == record.probe.tolist()
        for _ in range(2):  # the same name is used, and replaced, again
            with store.write() as transaction:
                transaction.set_space(C, record)
                transaction.retire_space(SPACE)
        with store.read() as snapshot:
            assert snapshot.space(C) == retired

    def test_a_rebuild_keeps_only_the_cached_vectors_of_its_chunks(self, store: Store[Any]) -> None:
        old, new = make_document("notes/a.md", "one\ntwo"), make_document("notes/a.md", "two\nfour")
        before, after = ([chunk.embedding_hash for chunk in cut_lines(document)] for document in (old, new))
        stray, strayed = text_hash("three"), text_hash("five")
        put(store, old)
        with store.write() as transaction:
            transaction.set_space(C, SpaceRecord(OTHER, vector(1, 0, 0, 0)))
            for space in (SPACE, OTHER):
                transaction.cache_vectors(space, dict.fromkeys([*before, *after[:1], stray], vector(1, 2, 3, 4)))
        with store.rebuild() as fresh:
            put(fresh, new)
            with fresh.write() as transaction:
                transaction.set_space(C, SpaceRecord(SPACE, vector(1, 0, 0, 0)))
                transaction.cache_vectors(SPACE, dict.fromkeys([after[1], strayed], vector(4, 3, 2, 1)))
        hashes = [*before, *after, stray, strayed]
        with store.read() as snapshot:
            assert snapshot.cached_vectors(SPACE, hashes).keys() == set(after)
            assert snapshot.cached_vectors(OTHER, hashes) == {}, "no collection uses that space any more"
