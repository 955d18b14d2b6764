r"""The contract of an index.

    class TestMyIndex(IndexContract[Connection]):
        @pytest.fixture
        def index(self): return MyIndex()
        @pytest.fixture
        def connection(self): ...            # a bare resource; the contract prepares and migrates it
        def begin(self, resource): ...
        def rollback(self, resource): ...

The contract of a retriever is in :mod:`klaw_testing.retriever`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import (
    Index,
    KeyDigest,
    Query,
    Retriever,
    StoredChunk,
    VectorSpace,
)
from klaw_testing.report import lacks
from klaw_testing.retriever import (
    COMMON,
    SPACE,
    RetrieverContract,
    crowd,
    key_array,
    law,
    queries,
    selection,
    stored,
    unit_vector,
    unit_vectors,
)

R = TypeVar("R")

#: Names of collections that may clash with an index's own tables, or with another collection's tables.
AWKWARD_NAMES = (
    *("facts_vec", "facts_fts", "facts_words", "facts_vec_chunks", "facts_fts_data", "facts_words_blocks", "fts"),
    *("docs_words", "docs_fts", "memory_chunks", "vec_memory", "quantized_memory", "messages", "select", "a", "z" * 40),
)


class IndexContract(RetrieverContract[R]):
    """The laws of an index; the subclass defines ``index``, ``connection``, ``begin`` and ``rollback``."""

    collections = ("memory", "docs", "facts")

    @pytest.fixture
    def index(self) -> Index[R]:
        """Return the index under test."""
        raise NotImplementedError

    @pytest.fixture
    def connection(self) -> R:
        """Return a new resource that the index has not used yet."""
        raise NotImplementedError

    def begin(self, resource: R) -> None:
        """Begin a transaction."""
        raise NotImplementedError

    def rollback(self, resource: R) -> None:
        """Undo everything since :meth:`begin`."""
        raise NotImplementedError

    @pytest.fixture
    def migrated(self, index: Index[R], connection: R) -> R:
        """Return the connection, prepared and migrated as a store does; no collection has been reset yet."""
        index.prepare(connection)
        for migration in index.migrations():
            migration.apply(connection)
        return connection

    @pytest.fixture
    def resource(self, index: Index[R], migrated: R) -> R:
        """Return the connection with every collection empty and ready for rows."""
        for collection in self.collections:
            index.reset(migrated, collection, self.space(index))
        return migrated

    @pytest.fixture
    def retriever(self, index: Index[R]) -> Retriever[R]:
        return index

    @pytest.fixture
    def filled(self, index: Index[R], resource: R) -> R:
        self.add(index, resource, crowd(30))
        return resource

    def space(self, index: Index[R]) -> VectorSpace | None:
        """Return the vector space to pass to ``reset``."""
        return SPACE if index.needs_vectors else None

    def add(self, index: Index[R], resource: R, chunks: Sequence[StoredChunk], collection: str = "memory") -> None:
        """Add chunks as the core would, with vectors if the index needs them."""
        index.add(resource, collection, chunks, unit_vectors(chunks) if index.needs_vectors else None)

    def found(self, index: Index[R], resource: R, text: str, collection: str = "memory") -> set[int]:
        """Return the keys that a search with a large limit finds."""
        return {hit.key for hit in self.ask(index, resource, text, 200, collection=collection)}

    def held(self, index: Index[R], resource: R, collection: str = "memory") -> list[int]:
        """Return the index's keys after a check of their type and order."""
        keys = index.keys(resource, collection)
        assert keys.dtype == np.int64
        assert keys.ndim == 1
        assert keys.tolist() == sorted(set(keys.tolist()))
        assert index.key_digest(resource, collection) in {KeyDigest.of(keys), None}
        assert index.outdated(resource, collection).tolist() == []
        assert index.lacking(resource, collection, lambda: len(keys)) in {0, None}
        listed: list[int] = keys.tolist()
        return listed

    def test_is_an_index(self, index: Index[R]) -> None:
        assert isinstance(index, Index)

    def test_migrations_have_distinct_names(self, index: Index[R]) -> None:
        names = [migration.name for migration in index.migrations()]
        assert len(set(names)) == len(names)
        assert names == [migration.name for migration in index.migrations()]
        assert all(names)

    def test_a_resource_can_be_prepared_twice(self, index: Index[R], resource: R) -> None:
        index.prepare(resource)
        assert self.held(index, resource) == []

    def test_an_unfilled_index_finds_nothing(self, index: Index[R], migrated: R) -> None:
        for collection in self.collections:
            assert tuple(self.ask(index, migrated, COMMON, collection=collection)) == ()
            assert self.held(index, migrated, collection) == []

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_an_unknown_collection_is_empty(self, index: Index[R], filled: R, name: str) -> None:
        for _ in range(2):
            assert tuple(self.ask(index, filled, COMMON, collection=name)) == ()
            assert self.held(index, filled, name) == []
            index.remove(filled, name, [1, 2])
            index.erase(filled, name)
            assert list(index.check(filled, name, None)) == []
        assert self.held(index, filled) == list(range(1, 31))

    def test_compacting_does_not_change_results(self, index: Index[R], filled: R) -> None:
        if type(index).compact is Index.compact:
            lacks("Index.compact")
        for number in range(31, 61):
            self.add(index, filled, [stored(number, f"lantern tide{number}")])
        index.remove(filled, "memory", [3, 33])
        held = self.held(index, filled)
        asked = {text: tuple(self.ask(index, filled, text, 200)) for text in (COMMON, "lantern", "tide40")}
        for name in ("memory", *AWKWARD_NAMES):
            index.compact(filled, name)
            assert not index.is_scattered(filled, name)
        assert self.held(index, filled) == held
        assert {text: tuple(self.ask(index, filled, text, 200)) for text in asked} == asked

    def test_collections_of_any_name_are_separate(self, index: Index[R], filled: R) -> None:
        for name in AWKWARD_NAMES:
            index.reset(filled, name, self.space(index))
        for number, name in enumerate(AWKWARD_NAMES, start=1):
            self.add(index, filled, [stored(1, "lantern"), stored(number + 1, f"lantern tide{number}")], name)
        for number, name in enumerate(AWKWARD_NAMES, start=1):
            assert self.held(index, filled, name) == [1, number + 1]
            assert self.found(index, filled, "lantern", name) == {1, number + 1}
            index.remove(filled, name, [1])
            assert self.held(index, filled, name) == [number + 1]
            index.reset(filled, name, self.space(index))
            assert self.held(index, filled, name) == []
        assert self.held(index, filled) == list(range(1, 31))
        assert self.found(index, filled, COMMON) == set(range(1, 31))

    def test_an_empty_index_finds_nothing(self, index: Index[R], resource: R) -> None:
        for collection in self.collections:
            assert tuple(self.ask(index, resource, COMMON, collection=collection)) == ()
            assert self.held(index, resource, collection) == []

    def test_adding_and_removing_nothing_changes_nothing(self, index: Index[R], filled: R) -> None:
        self.add(index, filled, [])
        index.remove(filled, "memory", [])
        assert self.held(index, filled) == list(range(1, 31))

    def test_a_removed_chunk_is_never_found(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", range(1, 16))
        assert self.found(index, filled, COMMON) == set(range(16, 31))
        within = key_array(range(10, 21))
        assert {hit.key for hit in self.ask(index, filled, COMMON, within=within)} == set(range(16, 21))
        assert self.held(index, filled) == list(range(16, 31))

    def test_unknown_keys_are_ignored(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", [10_000, -1, 5, 2**40])
        assert self.held(index, filled) == [*range(1, 5), *range(6, 31)]

    def test_numpy_keys_are_removed(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", list(key_array(range(2, 31))))
        assert self.held(index, filled) == [1]

    def test_a_removed_key_can_be_added_again(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", [7])
        self.add(index, filled, [stored(7, "lantern")])
        assert 7 in self.found(index, filled, "lantern")
        assert self.held(index, filled) == list(range(1, 31))

    def test_large_keys_are_kept(self, index: Index[R], resource: R) -> None:
        self.add(index, resource, [stored(2**53 + 1, "lantern")])
        assert self.found(index, resource, "lantern") == {2**53 + 1}
        assert self.held(index, resource) == [2**53 + 1]

    def test_equal_texts_are_ordered_by_key(self, index: Index[R], resource: R) -> None:
        self.add(index, resource, [stored(key, "lantern") for key in (5, 3, 9, 1)])
        assert [hit.key for hit in self.ask(index, resource, "lantern")] == [1, 3, 5, 9]

    @pytest.mark.parametrize(
        "text", ["", " ", "\0", "!?", "\ud800", "a\0b", "数据" * 5000, "word " * 50_000], ids=ascii
    )
    def test_every_text_can_be_added_and_removed(self, index: Index[R], resource: R, text: str) -> None:
        chunks = [stored(1, text), stored(2, COMMON, heading=(text, "b")), stored(3, COMMON, context=text)]
        self.add(index, resource, chunks)
        assert self.held(index, resource) == [1, 2, 3]
        assert {2, 3} <= self.found(index, resource, COMMON)
        index.remove(resource, "memory", [1, 2, 3])
        assert self.held(index, resource) == []

    def test_collections_are_separate(self, index: Index[R], resource: R) -> None:
        memory, docs = self.collections[:2]
        self.add(index, resource, [stored(1, "lantern")], memory)
        self.add(index, resource, [stored(1, "anchor"), stored(2, "lantern")], docs)
        assert self.held(index, resource, memory) == [1]
        assert self.found(index, resource, "lantern", memory) == {1}
        index.remove(resource, memory, [1, 2])
        assert self.held(index, resource, docs) == [1, 2]
        assert 2 in self.found(index, resource, "lantern", docs)

    def test_reset_empties_one_collection(self, index: Index[R], filled: R) -> None:
        self.add(index, filled, [stored(1, "lantern")], "docs")
        index.reset(filled, "memory", self.space(index))
        assert self.held(index, filled) == []
        assert self.found(index, filled, COMMON) == set()
        assert self.held(index, filled, "docs") == [1]
        self.add(index, filled, crowd(3))
        assert self.found(index, filled, COMMON) == {1, 2, 3}

    def test_rolling_back_undoes_everything(self, index: Index[R], filled: R) -> None:
        before = self.ask(index, filled, COMMON, 30)
        self.begin(filled)
        index.remove(filled, "memory", [1, 2, 3])
        self.add(index, filled, crowd(5, first=100))
        self.rollback(filled)
        assert self.held(index, filled) == list(range(1, 31))
        assert self.ask(index, filled, COMMON, 30) == before

    def test_rolling_back_the_first_rows_of_a_collection_leaves_no_rows(self, index: Index[R], filled: R) -> None:
        for undone in (True, False):
            self.begin(filled)
            index.reset(filled, "figures", self.space(index))
            self.add(index, filled, crowd(3), "figures")
            assert self.found(index, filled, COMMON, "figures") == {1, 2, 3}
            if undone:
                self.rollback(filled)
                assert self.held(index, filled, "figures") == []
                assert self.found(index, filled, COMMON, "figures") == set()
        assert self.held(index, filled, "figures") == [1, 2, 3]
        assert self.held(index, filled) == list(range(1, 31))

    def test_rolling_back_a_reset_restores_the_rows(self, index: Index[R], filled: R) -> None:
        self.begin(filled)
        index.reset(filled, "memory", self.space(index))
        self.rollback(filled)
        assert self.found(index, filled, COMMON) == set(range(1, 31))

    def test_recall_is_at_least_0_9(self, index: Index[R], resource: R) -> None:
        """A search for 10 of 5,000 chunks returns 10, with a recall of at least 0.9, also with filters."""
        if not index.needs_vectors:
            lacks("needs_vectors")
        count, space = 5_000, VectorSpace("recall", "1", 48)
        chance = np.random.default_rng(3)
        groups = chance.standard_normal((250, space.dimension))
        rows = groups[chance.integers(0, 250, count)] + 0.6 * chance.standard_normal((count, space.dimension))
        vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        index.reset(resource, "docs", space)
        for first in range(0, count, 1_000):
            chunks = [stored(key, f"text {key}") for key in range(first + 1, first + 1_001)]
            index.add(resource, "docs", chunks, vectors[first : first + 1_000])
        for share in (1.0, 0.5, 0.01):
            allowed = np.sort(chance.choice(np.arange(1, count + 1), round(count * share), replace=False))
            within = None if share == 1.0 else selection(allowed.tolist())
            found = 0
            for _ in range(20):
                asked = vectors[chance.integers(0, count)] + 0.05 * chance.standard_normal(space.dimension)
                asked = (asked / np.linalg.norm(asked)).astype(np.float32)
                keys = {hit.key for hit in index.search(resource, Query("", "docs", asked, within), 10)}
                assert len(keys) == 10
                nearest = allowed[np.argsort(-(vectors[allowed - 1] @ asked))[:10]]
                found += len(keys.intersection(nearest.tolist()))
            assert found >= 0.9 * 200, f"recall of {found / 200:.2f} if {share:.0%} of the chunks are allowed"

    @law
    @given(
        steps=st.lists(
            st.tuples(st.booleans(), st.sampled_from(collections), st.sets(st.integers(1, 12), min_size=1, max_size=6)),
            max_size=12,
        )
    )
    def test_keys_are_those_added_and_not_removed(
        self, index: Index[R], resource: R, steps: list[tuple[bool, str, set[int]]]
    ) -> None:
        model: dict[str, set[int]] = {collection: set() for collection in self.collections}
        for collection in model:
            index.reset(resource, collection, self.space(index))
        for adds, collection, keys in steps:
            if adds:
                fresh = keys - model[collection]
                self.add(index, resource, [stored(key, f"{COMMON} tide{key}") for key in sorted(fresh)], collection)
                model[collection] |= fresh
            else:
                index.remove(resource, collection, sorted(keys))
                model[collection] -= keys
        for collection, keys in model.items():
            assert self.held(index, resource, collection) == sorted(keys)
            assert self.found(index, resource, COMMON, collection) == keys


__all__ = [
    "AWKWARD_NAMES",
    "COMMON",
    "SPACE",
    "IndexContract",
    "RetrieverContract",
    "crowd",
    "key_array",
    "queries",
    "selection",
    "stored",
    "unit_vector",
    "unit_vectors",
]
