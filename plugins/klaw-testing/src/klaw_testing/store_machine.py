"""A state machine that applies the same operations to a store and to the in-memory store, and compares both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from klaw_core import (
    Condition,
    Document,
    Filters,
    KeyDigest,
    Metadata,
    Replacement,
    Snapshot,
    SpaceRecord,
    Store,
    VectorSpace,
)
from klaw_core.values.text import text_hash
from klaw_testing.memory_store import MemoryStore
from klaw_testing.store_cache import OTHER, SPACE, C, vector
from klaw_testing.store_collections import InjectedError
from klaw_testing.values import MOMENT, conditions, cut_lines, documents, metadata, paths

OpenStore = Callable[[], Store[Any]]

_NAMES = (C, "facts")
_names = st.sampled_from(_NAMES)


def dump(snapshot: Snapshot[Any], *, collection: str = C, renamed: Mapping[int, int] | None = None) -> object:
    """Return all data of a collection as plain data for comparison; ``renamed`` maps the keys to other keys."""
    keys = snapshot.keys(collection).tolist()
    assert snapshot.key_digest(collection) == KeyDigest.of(snapshot.keys(collection))
    assert snapshot.is_empty(collection) == (not keys)
    assert snapshot.count(collection) == len(keys)
    record = snapshot.space(collection)
    chunks = snapshot.chunks(collection, keys)
    if renamed is not None:
        chunks = sorted((evolve(each, key=renamed[each.key]) for each in chunks), key=lambda each: each.key)
    return {
        "chunks": list(chunks),
        "documents": list(snapshot.documents(collection, "", "", 1_000)),
        "manifests": {origin: dict(snapshot.manifest(collection, origin)) for origin in ("notes", "saved")},
        "counts": dict(snapshot.counts(collection)),
        "space": None if record is None else (record.space, record.probe.tolist()),
    }


class StoreMachine(RuleBasedStateMachine):
    """Applies the same operations to a store and to the oracle, the in-memory store, and compares their data.

    The keys of a store may differ from the oracle's. The keys of one call must ascend, and no key may be used twice,
    except one that was rolled back. ``twins`` maps the store's keys to the oracle's.

    A subclass sets ``make_opener``, which returns an opener of new data for each run, and sets ``persistent`` to False
    if the data is lost when the store is closed.
    """

    make_opener: Callable[[], OpenStore]
    persistent = True

    @initialize()
    def begin(self) -> None:
        self.open = type(self).make_opener()
        self.store = self.open()
        self.oracle = MemoryStore()
        self.twins: dict[str, dict[int, int]] = {name: {} for name in _NAMES}

    def both(self, change: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Apply a change to the store and the oracle; return both results."""
        results = []
        for store in (self.store, self.oracle):
            with store.write() as transaction:
                results.append(change(transaction))
        return results[0], results[1]

    def same_keys(self, name: str, mine: Iterable[int], theirs: Iterable[int]) -> None:
        """Check that the store's keys and the oracle's keys belong to the same chunks."""
        assert sorted(self.twins[name][key] for key in mine) == sorted(theirs)

    @rule(name=_names, document=documents)
    def replace(self, name: str, document: Document) -> None:
        mine, theirs = self.both(lambda transaction: transaction.replace(name, document, cut_lines(document)))
        self.same_keys(name, mine.removed, theirs.removed)
        self.same_keys(name, mine.kept, theirs.kept)
        self.take_over(name, mine, theirs)

    def take_over(self, name: str, mine: Replacement, theirs: Replacement) -> None:
        """Check the added chunks, and record the oracle's key for each key of the store."""
        assert [evolve(stored, key=0) for stored in mine.added] == [evolve(stored, key=0) for stored in theirs.added]
        keys = [stored.key for stored in mine.added]
        assert keys == sorted(set(keys)), "the keys of one call must be distinct and ascend"
        assert not self.twins[name].keys() & set(keys), "a key must not be reused"
        self.twins[name].update(zip(keys, (stored.key for stored in theirs.added), strict=True))

    @rule(name=_names, path=paths)
    def delete(self, name: str, path: str) -> None:
        mine, theirs = self.both(lambda transaction: transaction.delete(name, path))
        self.same_keys(name, mine, theirs)

    @rule(name=_names, path=paths, hours=st.integers(0, 48), values=metadata)
    def touch(self, name: str, path: str, hours: int, values: Metadata) -> None:
        document = self.oracle._tables.documents.get((name, path))  # noqa: SLF001  # a class of the core
        if document is not None:
            later = evolve(document, created_at=MOMENT + timedelta(hours=hours), metadata=values)
            self.both(lambda transaction: transaction.touch(name, later))

    @rule(name=_names, space=st.sampled_from([SPACE, OTHER]))
    def set_space(self, name: str, space: VectorSpace) -> None:
        self.both(lambda transaction: transaction.set_space(name, SpaceRecord(space, vector(1, 2, 3, 4))))

    @rule(text=st.sampled_from("xyz"), space=st.sampled_from([SPACE, OTHER]))
    def cache(self, text: str, space: VectorSpace) -> None:
        vectors = {text_hash(text): vector(1, 2, 3, ord(text))}
        self.both(lambda transaction: transaction.cache_vectors(space, vectors))

    @rule(text=st.sampled_from("xyz"))
    def forget(self, text: str) -> None:
        self.both(lambda transaction: transaction.forget_vectors([text_hash(text)]))

    @rule(name=_names, document=documents, path=paths)
    def fail(self, name: str, document: Document, path: str) -> None:
        for store in (self.store, self.oracle):
            with pytest.raises(InjectedError), store.write() as transaction:  # noqa: PT012  # the block is the subject
                transaction.replace(name, document, cut_lines(document))
                transaction.delete(name, path)
                transaction.set_space(name, SpaceRecord(OTHER, vector(1, 1, 1, 1)))
                raise InjectedError

    @rule()
    def reopen(self) -> None:
        if type(self).persistent:
            self.store.close()
            self.store = self.open()

    @rule(
        name=_names,
        source=st.sampled_from([None, "a.md"]),
        path=st.sampled_from([None, "notes/", "notes/sub"]),
        hours=st.sampled_from([0, 12]),
        wanted=st.lists(conditions, max_size=2).map(tuple),
    )
    def select(
        self, name: str, source: str | None, path: str | None, hours: int, wanted: tuple[Condition, ...]
    ) -> None:
        filters = Filters(source=source, path=path, since=MOMENT + timedelta(hours=hours), metadata=wanted)
        with self.store.read() as mine, self.oracle.read() as theirs:
            found, expected = mine.select(name, filters).keys(), theirs.select(name, filters).keys()
            self.same_keys(name, found.tolist(), expected.tolist())

    @invariant()
    def both_show_the_same(self) -> None:
        if not hasattr(self, "store"):
            return
        hashes = [text_hash(text) for text in "xyz"]
        with self.store.read() as mine, self.oracle.read() as theirs:
            assert list(mine.collections()) == list(theirs.collections())
            for name in _NAMES:
                assert dump(mine, collection=name, renamed=self.twins[name]) == dump(theirs, collection=name)
            for space in (SPACE, OTHER):
                found = {digest: row.tolist() for digest, row in mine.cached_vectors(space, hashes).items()}
                assert found == _plain(theirs.cached_vectors(space, hashes))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def _plain(vectors: Any) -> dict[str, Any]:
    """Return vectors that compare equal to others within the precision of half floats."""
    return {digest: pytest.approx(found.tolist(), abs=1e-3) for digest, found in vectors.items()}
