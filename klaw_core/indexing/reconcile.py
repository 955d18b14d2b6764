"""Compare the keys of indexes with those of the chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import frozen

from klaw_core.interfaces.index import Index
from klaw_core.interfaces.store import Snapshot
from klaw_core.values.key_digest import KeyDigest

#: An index, the keys to add to it, and the keys to remove because their chunks no longer exist; both ascending.
Difference: TypeAlias = tuple[Index[Any], Sequence[int], Sequence[int]]


@frozen
class KeyComparison:
    """Keys that an index lacks, keys that it holds in an outdated form, and keys whose chunks no longer exist."""

    missing: Sequence[int]
    outdated: Sequence[int]
    stale: Sequence[int]


def compare_keys(
    snapshot: Snapshot[Any], collection: str, indexes: Sequence[Index[Any]], waiting: Sequence[int]
) -> list[Difference]:
    """Compare every index with the chunks. ``waiting`` are keys that an index of vectors is expected to lack."""
    wanted = snapshot.key_digest(collection)
    found: list[Difference] = []
    for index in indexes:
        held = index.key_digest(snapshot.resource, collection)
        if held is not None and held == wanted:
            found.append((index, (), ()))
        elif held is not None and index.needs_vectors and held + _key_digest(waiting) == wanted:
            found.append((index, waiting, ()))
        else:
            compared = compare(snapshot, collection, index)
            found.append((index, sorted([*compared.missing, *compared.outdated]), compared.stale))
    return found


def count_lacking(snapshot: Snapshot[Any], collection: str, indexes: Sequence[Index[Any]]) -> int:
    """Return how many chunks are missing in the least complete index."""
    held = [_count(snapshot, collection, index) for index in indexes]
    return snapshot.key_digest(collection).count - min(held) if held else 0


def _count(snapshot: Snapshot[Any], collection: str, index: Index[Any]) -> int:
    key_digest = index.key_digest(snapshot.resource, collection)
    return index.keys(snapshot.resource, collection).size if key_digest is None else key_digest.count


def _key_digest(keys: Sequence[int]) -> KeyDigest:
    import numpy as np

    return KeyDigest.of(np.asarray(keys, dtype=np.int64))


def compare(snapshot: Snapshot[Any], collection: str, index: Index[Any]) -> KeyComparison:
    """Compare all keys of an index with all keys of the chunks."""
    import numpy as np

    chunks, keys = snapshot.keys(collection), index.keys(snapshot.resource, collection)
    outdated = index.outdated(snapshot.resource, collection)
    return KeyComparison(
        missing=np.setdiff1d(chunks, keys, assume_unique=True).tolist(),
        outdated=np.intersect1d(chunks, outdated, assume_unique=True).tolist(),
        stale=np.setdiff1d(keys, chunks, assume_unique=True).tolist(),
    )
