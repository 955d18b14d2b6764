"""Copy one memory to another: the primary data and the computed vectors; then compare both.

The source is not changed. The target may hold the data of an interrupted attempt, which this one completes.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from klaw_core import StoreError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from klaw_core import Memory, Store

# The number of chunks whose vectors are looked up at once: some megabytes of text.
_CHUNKS = 1_000
_ALL = 2**31 - 1
_MAX_SHOWN_KINDS = 3


@frozen
class MigrationReport:
    """The number of records of each kind in the target, and the number of vectors copied.

    ``differing`` are the paths of documents that only one of the two has indexed, or that are indexed differently.
    """

    records: Mapping[str, int] = field(factory=dict)
    vectors: int = 0
    differing: tuple[str, ...] = ()


def migrate(source: Memory, target: Memory) -> MigrationReport:
    """Copy everything from one memory to another. Raise StoreError if they are one, or differ afterwards."""
    place, other = (memory.extensions.host.store.location for memory in (source, target))
    if os.path.realpath(place) == os.path.realpath(other):  # also if one is a link to the other
        raise StoreError(f"the source and the target are the same memory, {place}", hint="name another target")
    with tempfile.TemporaryDirectory() as directory:
        first, second = (Path(directory, name) for name in ("source.jsonl", "target.jsonl"))
        report = source.export(first)
        target.import_(first, workspaces=True)
        vectors = _copy_vectors(source.extensions.host.store, target.extensions.host.store)
        with suppress(WorkspaceError):  # the target has no workspace to index
            target.index()
        target.export(second)
        _require_equal(first, second, source, target)
    documents = [_documents(memory.extensions.host.store) for memory in (source, target)]
    differing = sorted({path for _, path, _ in documents[0] ^ documents[1]})
    return MigrationReport(report.counts, vectors, tuple(differing))


def _copy_vectors(source: Store[Any], target: Store[Any]) -> int:
    """Copy the vectors of the source's chunks to the target's cache; return their number."""
    count = 0
    with source.read() as snapshot:
        for collection in snapshot.collections():
            record = snapshot.space(collection)
            keys = snapshot.keys(collection).tolist() if record is not None else []
            for first in range(0, len(keys), _CHUNKS):
                chunks = snapshot.chunks(collection, keys[first : first + _CHUNKS])
                assert record is not None
                hashes = list({stored.chunk.embedding_hash for stored in chunks})
                found = snapshot.cached_vectors(record.space, hashes)
                with target.write() as transaction:
                    transaction.cache_vectors(record.space, found)
                count += len(found)
    return count


def _require_equal(first: Path, second: Path, source: Memory, target: Memory) -> None:
    """Raise StoreError unless two exports hold the same records in any order."""
    lacking, more = (
        sorted(set(_records(one)) - set(_records(other))) for one, other in ((first, second), (second, first))
    )
    if lacking or more:
        places = [memory.extensions.host.store.location for memory in (source, target)]
        kinds = ", ".join(sorted({json.loads(line)["kind"] for line in (*lacking, *more)})[:_MAX_SHOWN_KINDS])
        raise StoreError(
            f"{places[1]} lacks {len(lacking):,} records of {places[0]} and has {len(more):,} others ({kinds})",
            hint="nothing was removed; migrate to an empty memory, while no program writes to either",
        )


def _records(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        yield from (line for line in lines if json.loads(line)["kind"] not in {"header", "end"})


def _documents(store: Store[Any]) -> set[tuple[str, str, str]]:
    """Return the indexed documents: collection, path, and hash of content and recipe."""
    with store.read() as snapshot:
        return {
            (collection, record.path, record.content_hash)
            for collection in snapshot.collections()
            for record in snapshot.documents(collection, "", "", _ALL)
        }
