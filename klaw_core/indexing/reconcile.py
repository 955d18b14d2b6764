"""What the indexes of a collection lack, and what they hold for chunks that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from attrs import frozen

from klaw_core.interfaces.index import Index, KeyDigestIndex, OutdatedIndex
from klaw_core.interfaces.store import Snapshot
from klaw_core.values.key_digest import KeyDigest

#: An index, the keys that are to be added to it, and those that it holds for chunks that are gone; both ascending.
Difference: TypeAlias = tuple[Index[Any], Sequence[int], Sequence[int]]


@frozen
class KeyComparison:
    """What an index lacks, what it finds in another form than the configured one, and what it holds in vain."""

    missing: Sequence[int]
    outdated: Sequence[int]
    stale: Sequence[int]


def compare_keys(
    snapshot: Snapshot[Any], collection: str, indexes: Sequence[Index[Any]], waiting: Sequence[int]
) -> list[Difference]:
    """Compare every index with the chunks; ``waiting`` are keys that an index of vectors is expected to lack.

    Where an index can tell its key digest, keys are listed only if it is not the one expected: so a run over a large
    collection that changes little, or nothing, does not read every key there is.
    """
    wanted = snapshot.key_digest(collection) if any(isinstance(index, KeyDigestIndex) for index in indexes) else None
    found: list[Difference] = []
    for index in indexes:
        held = index.key_digest(snapshot.resource, collection) if isinstance(index, KeyDigestIndex) else None
        if held is not None and held == wanted:
            found.append((index, (), ()))
        elif held is not None and index.needs_vectors and held + _key_digest(waiting) == wanted:
            found.append((index, waiting, ()))
        else:
            compared = compare(snapshot, collection, index)
            found.append((index, sorted([*compared.missing, *compared.outdated]), compared.stale))
    return found


def count_lacking(snapshot: Snapshot[Any], collection: str, indexes: Sequence[Index[Any]]) -> int:
    """Return how many chunks the index lacks that lacks most."""
    held = [_count(snapshot, collection, index) for index in indexes]
    return snapshot.key_digest(collection).count - min(held) if held else 0


def _count(snapshot: Snapshot[Any], collection: str, index: Index[Any]) -> int:
    key_digest = index.key_digest(snapshot.resource, collection) if isinstance(index, KeyDigestIndex) else None
    return index.keys(snapshot.resource, collection).size if key_digest is None else key_digest.count


def _key_digest(keys: Sequence[int]) -> KeyDigest:
    import numpy as np

    return KeyDigest.of(np.asarray(keys, dtype=np.int64))


def compare(snapshot: Snapshot[Any], collection: str, index: Index[Any]) -> KeyComparison:
    """List the keys of an index and those of the chunks, and say in what they differ."""
    import numpy as np

    chunks, keys = snapshot.keys(collection), index.keys(snapshot.resource, collection)
    outdated = index.outdated(snapshot.resource, collection) if isinstance(index, OutdatedIndex) else keys[:0]
    return KeyComparison(
        missing=np.setdiff1d(chunks, keys, assume_unique=True).tolist(),
        outdated=np.intersect1d(chunks, outdated, assume_unique=True).tolist(),
        stale=np.setdiff1d(keys, chunks, assume_unique=True).tolist(),
    )
