"""The contract of a retriever, and chunks to search.

A keyword retriever returns chunks that share a word with the query; a vector retriever returns the nearest chunks. The
laws must hold for both. Therefore they search for chunks whose whole text is the query, and check every result's form.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from klaw_core import (
    Chunk,
    ChunkSelection,
    Document,
    Entry,
    Hit,
    Keys,
    KeySelection,
    LiveComponent,
    Matrix,
    Memory,
    Query,
    Retriever,
    SkippedEntry,
    Source,
    StoredChunk,
    Vector,
    VectorSpace,
    load_config,
)
from klaw_testing import laws

R = TypeVar("R")

#: The vector space of :func:`unit_vector`.
SPACE = VectorSpace(model="contract", revision="1", dimension=8)

#: The word that every chunk of :func:`crowd` contains.
COMMON = "harbour"

_FULL_TEXT_SYNTAX = ('"', "'", "*", "(", ")", "AND", "OR", "NOT", "NEAR(", "^", ":", "-", "+", "{", "}", "text:", "\\")
_AWKWARD = (
    "", " \n\t", "\0", "\ud800", "C++", "foo-bar", "cat's", '"', '""', '"unclosed', "*", "a*", "NEAR(a b, 3)",
    "text : x", "NOT", "-", "(" * 1000, '"' * 999, "a OR " * 50_000, "x" * 1_000_000, "数" * 100_000, "\u0301" * 5000,
)  # fmt: skip
_ALPHABET = st.characters(codec=None, exclude_categories=())  # lone surrogates and NUL included

_pieces = st.one_of(st.sampled_from((*_FULL_TEXT_SYNTAX, COMMON)), st.text(_ALPHABET, max_size=8))
#: Arbitrary texts, and texts that are similar to full-text expressions.
queries = st.one_of(st.text(_ALPHABET, max_size=200), st.lists(_pieces, max_size=30).map(" ".join))

#: All examples of a law use the same fixture, so each example must first reset the data that it writes.
law = settings(laws.law, max_examples=laws.scaled(60))


def stored(key: int, text: str, heading: tuple[str, ...] = (), context: str = "") -> StoredChunk:
    """Return the only stored chunk of a document."""
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
    """Return a deterministic unit vector of a text, float32 of shape (dimension,).

    It is the normalized sum of one vector per word, so texts that share words have similar vectors.
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
    """Return chunks with keys from ``first``; each contains :data:`COMMON` and more other words than the last."""
    return [
        stored(key, " ".join([COMMON, f"tide{key}", *(f"gull{key}" for _ in range(key - first))]))
        for key in range(first, first + size)
    ]


@frozen(eq=False)
class _Crowd(Source):
    """The chunks of ``crowd(30)``, each of which is a document."""

    origin = "crowd"

    def scan(self) -> Iterable[Entry]:
        return [Entry(f"{self.origin}/{chunk.key:02}") for chunk in crowd(30)]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        chunk = crowd(30)[int(entry.path[-2:]) - 1]
        return Document(entry.path, chunk.chunk.text, "crowd", self.origin, chunk.created_at, format="plain")


@contextmanager
def crowded(data_dir: Path, store: str = "sqlite") -> Iterator[Any]:
    """Yield the resource of a store with the chunks of ``crowd(30)``, for retrievers that read the tables of a store.

    The resource is for reading; ``data_dir`` is a directory for the store. Raise KlawError if the store cannot be used.
    """
    memory = {"embedding": {"type": "none"}, "store": {"type": store}, "sources": [{"type": "crowd"}]}
    config = load_config(data_dir=data_dir, environment={"KLAW_CONFIG": os.devnull}, overrides={"memory": memory})
    with Memory.open(config, components=[LiveComponent("source", "crowd", _Crowd())]) as opened:
        opened.index()
        with opened.extensions.host.read() as snapshot:
            yield snapshot.resource


def key_array(keys: Iterable[int]) -> Keys:
    """Return distinct keys, ascending, as int64."""
    return np.array(sorted(set(keys)), dtype=np.int64)


def selection(keys: Iterable[int]) -> ChunkSelection:
    """Return a selection of these keys, as used in a query."""
    return KeySelection(key_array(keys))


@frozen(eq=False)
class _ForeignSelection:
    """A selection of another store's class, of which a retriever knows only the Protocol."""

    wanted: frozenset[int]

    def keys(self) -> Keys:
        return key_array(self.wanted)

    @property
    def is_empty(self) -> bool:
        return not self.wanted

    def among(self, keys: Sequence[int], /) -> Sequence[int]:
        return [key for key in keys if key in self.wanted]


class RetrieverContract(Generic[R]):
    """The laws of a retriever; the subclass defines ``retriever`` and ``filled``.

    A retriever that answers only some questions also overrides :meth:`query`, to ask for a text in such a question.
    """

    @pytest.fixture
    def retriever(self) -> Retriever[R]:
        """Return the retriever under test."""
        raise NotImplementedError

    @pytest.fixture
    def filled(self) -> R:
        """Return a resource with the chunks of ``crowd(30)`` in its collection ``memory``."""
        raise NotImplementedError

    def query(self, retriever: Retriever[R], text: str, *, collection: str = "memory", within: Any = None) -> Query:
        """Return the query that the core would make, with a vector if the retriever needs one."""
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
        """Search, check the form of the hits, and return them."""
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

    def test_what_it_says_of_itself_are_values(self, retriever: Retriever[R]) -> None:
        assert isinstance(retriever.joins, type), "joins is the type of the resource"
        assert isinstance(retriever.needs_vectors, bool), "needs_vectors is True or False, not a method"
        assert isinstance(retriever.limitation, str), "limitation is a text or a property, not a method"

    def test_the_resource_has_the_declared_type(self, retriever: Retriever[R], filled: R) -> None:
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

    def test_filters_are_applied_before_the_limit(self, retriever: Retriever[R], filled: R) -> None:
        worst = key_array(hit.key for hit in self.ask(retriever, filled, COMMON, 30)[-5:])
        assert {hit.key for hit in self.ask(retriever, filled, COMMON, 5, within=worst)} == set(worst.tolist())

    def test_a_selection_of_another_class_is_accepted(self, retriever: Retriever[R], filled: R) -> None:
        for wanted in (frozenset({2, 3, 5, 999}), frozenset[int]()):
            hits = self.ask(retriever, filled, COMMON, within=_ForeignSelection(wanted))
            assert {hit.key for hit in hits} == wanted - {999}

    def test_an_empty_filter_finds_nothing(self, retriever: Retriever[R], filled: R) -> None:
        assert not self.ask(retriever, filled, COMMON, within=key_array([]))

    def test_unknown_keys_in_a_filter_are_ignored(self, retriever: Retriever[R], filled: R) -> None:
        within = key_array([3, 10_000, 2**40])
        assert [hit.key for hit in self.ask(retriever, filled, COMMON, within=within)] == [3]

    def test_a_read_only_filter_is_accepted(self, retriever: Retriever[R], filled: R) -> None:
        within = key_array([2, 4])
        within.flags.writeable = False
        assert {hit.key for hit in self.ask(retriever, filled, COMMON, within=within)} == {2, 4}

    @law
    @given(kept=st.sets(st.integers(1, 30)), limit=st.integers(1, 30))
    def test_a_filter_finds_all_allowed_chunks(
        self, retriever: Retriever[R], filled: R, kept: set[int], limit: int
    ) -> None:
        hits = self.ask(retriever, filled, COMMON, limit, within=key_array(kept))
        assert len(hits) == min(limit, len(kept))

    @law
    @given(text=queries)
    def test_every_text_is_answered(self, retriever: Retriever[R], filled: R, text: str) -> None:
        self.ask(retriever, filled, text)

    @pytest.mark.parametrize("text", _AWKWARD, ids=lambda text: ascii(text[:12]))
    def test_awkward_texts_are_answered(self, retriever: Retriever[R], filled: R, text: str) -> None:
        self.ask(retriever, filled, text)
