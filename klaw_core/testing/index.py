r"""What every retriever and every index must do, as tests to inherit.

    class TestMyIndex(IndexContract[Connection]):
        @pytest.fixture
        def index(self): return MyIndex()
        @pytest.fixture
        def connection(self): ...            # a bare resource; the contract prepares and migrates it
        def begin(self, resource): ...
        def rollback(self, resource): ...

Two kinds of index pass alike: one that finds words answers with the chunks that share one with the query,
one that finds vectors answers with the nearest. So the laws ask about chunks whose whole text is the
query, and about the shape of every answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from klaw_core import (
    CheckedIndex,
    Chunk,
    ChunkSelection,
    ErasingIndex,
    Hit,
    Index,
    KeyDigest,
    KeyDigestIndex,
    Keys,
    KeySelection,
    Matrix,
    OutdatedIndex,
    Query,
    Retriever,
    StoredChunk,
    Vector,
    VectorSpace,
)

R = TypeVar("R")

#: Names of collections that an index may have use for itself, or that look like another's with something added.
AWKWARD_NAMES = (
    *("facts_vec", "facts_fts", "facts_words", "facts_vec_chunks", "facts_fts_data", "facts_words_blocks", "fts"),
    *("docs_words", "docs_fts", "memory_chunks", "vec_memory", "quantized_memory", "messages", "select", "a", "z" * 40),
)

#: The space of :func:`unit_vector`.
SPACE = VectorSpace(model="contract", revision="1", dimension=8)

#: The word that every chunk of :func:`crowd` shares.
COMMON = "harbour"

_FULL_TEXT_SYNTAX = ('"', "'", "*", "(", ")", "AND", "OR", "NOT", "NEAR(", "^", ":", "-", "+", "{", "}", "text:", "\\")
_AWKWARD = (
    "", " \n\t", "\0", "\ud800", "C++", "foo-bar", "cat's", '"', '""', '"unclosed', "*", "a*", "NEAR(a b, 3)",
    "text : x", "NOT", "-", "(" * 1000, '"' * 999, "a OR " * 50_000, "x" * 1_000_000, "数" * 100_000, "\u0301" * 5000,
)  # fmt: skip
_ALPHABET = st.characters(codec=None, exclude_categories=())  # lone surrogates and NUL included

_pieces = st.one_of(st.sampled_from((*_FULL_TEXT_SYNTAX, COMMON)), st.text(_ALPHABET, max_size=8))
#: Any text at all, and text that is nearly a full-text expression.
queries = st.one_of(st.text(_ALPHABET, max_size=200), st.lists(_pieces, max_size=30).map(" ".join))

# A fixture serves all examples of a law, so each example starts by resetting what it writes to; and many
# subclasses run one law, which is the point of a contract.
_law = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def stored(key: int, text: str, heading: tuple[str, ...] = (), context: str = "") -> StoredChunk:
    """Return a stored chunk of a document that holds nothing else."""
    return StoredChunk(
        key=key,
        chunk=Chunk(
            chunk_id=hashlib.sha256(f"{key} {text}".encode("utf-8", "surrogatepass")).hexdigest(),
            text=text,
            start=0,
            end=len(text),
            start_line=1,
            end_line=text.count("\n") + 1,
            heading=heading,
            context=context,
        ),
        path=f"notes/{key}.md",
        source=f"{key}.md",
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
    )


def unit_vector(text: str, dimension: int = SPACE.dimension) -> Vector:
    """Return a unit vector of shape (dimension,), float32, the same for the same text.

    It is the normalised sum of one vector a word, so texts that share words are near each other.
    """
    total = sum((_word_vector(word, dimension) for word in text.split()), start=_word_vector("", dimension))
    vector: Vector = (total / np.linalg.norm(total)).astype(np.float32)
    return vector


@cache
def _word_vector(word: str, dimension: int) -> NDArray[np.float64]:
    seed = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(list(seed)).standard_normal(dimension)


def unit_vectors(chunks: Sequence[StoredChunk], dimension: int = SPACE.dimension) -> Matrix:
    """Return the vectors of the chunks' texts, float32 of shape (n, dimension)."""
    rows = [unit_vector(chunk.chunk.text, dimension) for chunk in chunks]
    return np.asarray(rows, dtype=np.float32).reshape(len(rows), dimension)


def crowd(size: int, first: int = 1) -> list[StoredChunk]:
    """Return chunks that all hold :data:`COMMON`, among ever more other words; keys from ``first``."""
    return [
        stored(key, " ".join([COMMON, f"tide{key}", *(f"gull{key}" for _ in range(key - first))]))
        for key in range(first, first + size)
    ]


def key_array(keys: Iterable[int]) -> Keys:
    """Return distinct keys, ascending, as int64."""
    return np.array(sorted(set(keys)), dtype=np.int64)


def selection(keys: Iterable[int]) -> ChunkSelection:
    """Return the selection of these keys, as a search is given one."""
    return KeySelection(key_array(keys))


@frozen(eq=False)
class _ForeignSelection:
    """A selection of another store's class: all that a retriever knows of it is the Protocol."""

    wanted: frozenset[int]

    def keys(self) -> Keys:
        return key_array(self.wanted)

    @property
    def is_empty(self) -> bool:
        return not self.wanted


class RetrieverContract(Generic[R]):
    """The shape of every answer. A subclass supplies ``retriever`` and ``filled``."""

    @pytest.fixture
    def retriever(self) -> Retriever[R]:
        """Return the retriever under test."""
        raise NotImplementedError

    @pytest.fixture
    def filled(self) -> R:
        """Return a resource whose collection ``memory`` holds the chunks of ``crowd(30)``."""
        raise NotImplementedError

    def query(self, retriever: Retriever[R], text: str, *, collection: str = "memory", within: Any = None) -> Query:
        """Return the query as the core would ask it, with a vector if the retriever needs one."""
        vector = unit_vector(text) if retriever.needs_vectors else None
        selected = KeySelection(within) if isinstance(within, np.ndarray) else within
        return Query(text=text, collection=collection, vector=vector, within=selected)

    def ask(
        self,
        retriever: Retriever[R],
        resource: R,
        text: str,
        limit: int = 10,
        *,
        collection: str = "memory",
        within: Any = None,
    ) -> Sequence[Hit]:
        """Search, check the shape of the answer, and return it."""
        hits = retriever.search(resource, self.query(retriever, text, collection=collection, within=within), limit)
        keys, scores = [hit.key for hit in hits], [hit.score for hit in hits]
        assert len(hits) <= limit
        assert len(set(keys)) == len(keys)
        assert all(type(key) is int for key in keys)
        assert all(np.isfinite(score) for score in scores)
        assert scores == sorted(scores, reverse=True)
        if within is not None:
            assert set(keys) <= set((within if isinstance(within, np.ndarray) else within.keys()).tolist())
        return hits

    def test_joins_a_type(self, retriever: Retriever[R], filled: R) -> None:
        assert isinstance(filled, retriever.joins)

    def test_finds_the_chunk_whose_text_is_the_query(self, retriever: Retriever[R], filled: R) -> None:
        for chunk in crowd(30):
            assert chunk.key in {hit.key for hit in self.ask(retriever, filled, chunk.chunk.text, 30)}

    def test_is_deterministic(self, retriever: Retriever[R], filled: R) -> None:
        assert self.ask(retriever, filled, COMMON) == self.ask(retriever, filled, COMMON)

    @pytest.mark.parametrize("limit", [0, 1, 7, 30, 5000])
    def test_returns_the_best_of_at_most_limit(self, retriever: Retriever[R], filled: R, limit: int) -> None:
        everything = self.ask(retriever, filled, COMMON, 30)
        assert len(everything) == 30
        best = self.ask(retriever, filled, COMMON, limit)
        assert [hit.key for hit in best] == [hit.key for hit in everything[:limit]]

    def test_filters_inside_the_search_and_not_after_it(self, retriever: Retriever[R], filled: R) -> None:
        worst = key_array(hit.key for hit in self.ask(retriever, filled, COMMON, 30)[-5:])
        assert {hit.key for hit in self.ask(retriever, filled, COMMON, 5, within=worst)} == set(worst.tolist())

    def test_any_class_of_selections_will_do(self, retriever: Retriever[R], filled: R) -> None:
        for wanted in (frozenset({2, 3, 5, 999}), frozenset[int]()):
            hits = self.ask(retriever, filled, COMMON, within=_ForeignSelection(wanted))
            assert {hit.key for hit in hits} == wanted - {999}

    def test_answers_nothing_within_no_keys(self, retriever: Retriever[R], filled: R) -> None:
        assert not self.ask(retriever, filled, COMMON, within=key_array([]))

    def test_keys_that_it_does_not_hold_may_be_allowed(self, retriever: Retriever[R], filled: R) -> None:
        within = key_array([3, 10_000, 2**40])
        assert [hit.key for hit in self.ask(retriever, filled, COMMON, within=within)] == [3]

    def test_a_filter_that_cannot_be_written_to_is_read(self, retriever: Retriever[R], filled: R) -> None:
        within = key_array([2, 4])
        within.flags.writeable = False
        assert {hit.key for hit in self.ask(retriever, filled, COMMON, within=within)} == {2, 4}

    @_law
    @given(kept=st.sets(st.integers(1, 30)), limit=st.integers(1, 30))
    def test_a_filter_keeps_all_that_it_allows(
        self, retriever: Retriever[R], filled: R, kept: set[int], limit: int
    ) -> None:
        hits = self.ask(retriever, filled, COMMON, limit, within=key_array(kept))
        assert len(hits) == min(limit, len(kept))

    @_law
    @given(text=queries)
    def test_every_text_is_answered(self, retriever: Retriever[R], filled: R, text: str) -> None:
        self.ask(retriever, filled, text)

    @pytest.mark.parametrize("text", _AWKWARD, ids=lambda text: ascii(text[:12]))
    def test_awkward_texts_are_answered(self, retriever: Retriever[R], filled: R, text: str) -> None:
        self.ask(retriever, filled, text)


class IndexContract(RetrieverContract[R]):
    """What an index keeps. A subclass supplies ``index``, ``connection``, ``begin`` and ``rollback``."""

    collections = ("memory", "docs", "facts")

    @pytest.fixture
    def index(self) -> Index[R]:
        """Return the index under test."""
        raise NotImplementedError

    @pytest.fixture
    def connection(self) -> R:
        """Return a fresh resource on which nothing of the index has been called yet."""
        raise NotImplementedError

    def begin(self, resource: R) -> None:
        """Begin a transaction."""
        raise NotImplementedError

    def rollback(self, resource: R) -> None:
        """Undo everything since :meth:`begin`."""
        raise NotImplementedError

    @pytest.fixture
    def migrated(self, index: Index[R], connection: R) -> R:
        """Return the connection as a store makes it ready; no collection has been reset yet."""
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
        """Return the space that ``reset`` is given."""
        return SPACE if index.needs_vectors else None

    def add(self, index: Index[R], resource: R, chunks: Sequence[StoredChunk], collection: str = "memory") -> None:
        """Add chunks as the core would, with vectors if the index needs them."""
        index.add(resource, collection, chunks, unit_vectors(chunks) if index.needs_vectors else None)

    def found(self, index: Index[R], resource: R, text: str, collection: str = "memory") -> set[int]:
        """Return the keys that are found with a generous limit."""
        return {hit.key for hit in self.ask(index, resource, text, 200, collection=collection)}

    def held(self, index: Index[R], resource: R, collection: str = "memory") -> list[int]:
        """Return the index's keys, after checking their type and order."""
        keys = index.keys(resource, collection)
        assert keys.dtype == np.int64
        assert keys.ndim == 1
        assert keys.tolist() == sorted(set(keys.tolist()))
        if isinstance(index, KeyDigestIndex):
            assert index.key_digest(resource, collection) in {KeyDigest.of(keys), None}
        if isinstance(index, OutdatedIndex):
            assert index.outdated(resource, collection).tolist() == []
        listed: list[int] = keys.tolist()
        return listed

    def test_is_an_index(self, index: Index[R]) -> None:
        assert isinstance(index, Index)

    def test_migrations_have_names_of_their_own(self, index: Index[R]) -> None:
        names = [migration.name for migration in index.migrations()]
        assert len(set(names)) == len(names)
        assert names == [migration.name for migration in index.migrations()]
        assert all(names)

    def test_a_second_connection_may_be_prepared(self, index: Index[R], resource: R) -> None:
        index.prepare(resource)
        assert self.held(index, resource) == []

    def test_an_index_that_was_never_filled_answers_nothing(self, index: Index[R], migrated: R) -> None:
        for collection in self.collections:
            assert tuple(self.ask(index, migrated, COMMON, collection=collection)) == ()
            assert self.held(index, migrated, collection) == []

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_a_collection_of_which_the_index_never_heard_is_empty(self, index: Index[R], filled: R, name: str) -> None:
        for _ in range(2):
            assert tuple(self.ask(index, filled, COMMON, collection=name)) == ()
            assert self.held(index, filled, name) == []
            index.remove(filled, name, [1, 2])
            if isinstance(index, ErasingIndex):
                index.erase(filled, name)
            if isinstance(index, CheckedIndex):
                assert list(index.check(filled, name, None)) == []
        assert self.held(index, filled) == list(range(1, 31))

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

    def test_an_empty_index_answers_nothing(self, index: Index[R], resource: R) -> None:
        for collection in self.collections:
            assert tuple(self.ask(index, resource, COMMON, collection=collection)) == ()
            assert self.held(index, resource, collection) == []

    def test_adding_and_removing_nothing_changes_nothing(self, index: Index[R], filled: R) -> None:
        self.add(index, filled, [])
        index.remove(filled, "memory", [])
        assert self.held(index, filled) == list(range(1, 31))

    def test_what_is_removed_is_never_found(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", range(1, 16))
        assert self.found(index, filled, COMMON) == set(range(16, 31))
        assert self.held(index, filled) == list(range(16, 31))

    def test_unknown_keys_are_ignored(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", [10_000, -1, 5, 2**40])
        assert self.held(index, filled) == [*range(1, 5), *range(6, 31)]

    def test_numpy_keys_are_removed(self, index: Index[R], filled: R) -> None:
        index.remove(filled, "memory", list(key_array(range(2, 31))))
        assert self.held(index, filled) == [1]

    def test_a_removed_key_may_be_added_again(self, index: Index[R], filled: R) -> None:
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

    def test_rolling_back_the_first_rows_of_a_collection_leaves_none(self, index: Index[R], filled: R) -> None:
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

    @_law
    @given(
        steps=st.lists(
            st.tuples(st.booleans(), st.sampled_from(collections), st.sets(st.integers(1, 12), min_size=1, max_size=6)),
            max_size=12,
        )
    )
    def test_holds_what_was_added_less_what_was_removed(
        self, index: Index[R], resource: R, steps: list[tuple[bool, str, set[int]]]
    ) -> None:
        model: dict[str, set[int]] = {}
        for collection in self.collections:
            index.reset(resource, collection, self.space(index))
            model[collection] = set()
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
