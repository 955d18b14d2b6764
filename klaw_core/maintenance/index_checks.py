"""Whether the indexes hold exactly the chunks there are, soundly, in the vector space that is configured."""

from collections.abc import Iterator, Sequence
from typing import Any

from klaw_core.collection import Collection
from klaw_core.differences import compare
from klaw_core.embedding import SAME_WEIGHTS, agreement, make_space_record
from klaw_core.errors import EmbeddingError, as_klaw_error
from klaw_core.findings import FIX, Finding, Severity
from klaw_core.interfaces import CheckedIndex, Embedder, Index, Snapshot
from klaw_core.values import SpaceRecord

_KEYS_NAMED = 20


def check_indexes(collection: Collection) -> Iterator[Finding]:
    """Compare the keys of every index with the store's, and let each index check itself; in one snapshot."""
    with collection.store.read() as snapshot:
        for name, index in collection.indexes:
            where = f"{collection.name}/{name}"
            try:
                yield from _check_keys(collection, snapshot, index, where)
                yield from _check_content(collection, snapshot, index, where)
            except Exception as error:  # noqa: BLE001  # a plugin's
                yield Finding("index-content", "error", as_klaw_error(error).message, where, "klaw reindex")


def check_space(collection: Collection) -> Iterator[Finding]:
    """Compare the recorded vector space with the embedder's, and the probe's vector with what the model says now."""
    if not collection.uses_vectors:
        return
    with collection.store.read() as snapshot:
        record = snapshot.space(collection.name)
        held = any(
            index.needs_vectors and index.keys(snapshot.resource, collection.name).size
            for _, index in collection.indexes
        )
    if record is None:
        if held:
            what = "its vectors are there, and which model made them is not recorded"
            yield Finding("vector-space", "error", what, collection.name, "klaw reindex")
        return
    yield from _compare_spaces(record, collection.embedder, collection.name)


def check_model(embedder: Embedder) -> Iterator[Finding]:
    """Look whether the embedder works at all."""
    try:
        make_space_record(embedder)
    except Exception as error:  # noqa: BLE001  # a plugin's
        problem = as_klaw_error(error)
        what = f"searching by meaning is off: {problem.message}"
        yield Finding("model", "error", what, "memory.embedding", problem.hint or "klaw config get memory.embedding")


def damaged_indexes(collection: Collection) -> list[Index[Any]]:
    """Return the indexes that find their own rows damaged: those have to be emptied and filled again."""
    with collection.store.read() as snapshot:
        return [index for name, index in collection.indexes if any(_check_content(collection, snapshot, index, name))]


def _compare_spaces(record: SpaceRecord, embedder: Embedder, where: str) -> Iterator[Finding]:
    if record.space != embedder.space:
        what = f"it was indexed with {record.space}; the configured embedder is {embedder.space}"
        yield Finding("vector-space", "error", what, where, "`klaw reindex`, or set memory.embedding back")
        return
    try:
        probe = make_space_record(embedder).probe
    except EmbeddingError:  # check_model reports it
        return
    similarity = agreement(probe, record.probe)
    if similarity < SAME_WEIGHTS:
        what = (
            f"{record.space} now gives another vector for the sentence that proves it (similarity {similarity:.3f}): "
            "the model behind the name has changed"
        )
        yield Finding("vector-probe", "error", what, where, "klaw reindex")


def _check_keys(collection: Collection, snapshot: Snapshot[Any], index: Index[Any], where: str) -> Iterator[Finding]:
    compared = compare(snapshot, collection.name, index)
    missing: tuple[Severity, str] = ("error", "chunks are not in it and cannot be found by it")
    if index.needs_vectors:  # an embedder that fails, or is not asked, leaves vectors for later
        missing = ("warning", "chunks have no vector yet and are found by words alone")
    lagging = "chunks are found by it, but more slowly: they are not in the configured form yet"
    mend = "klaw embed" if index.needs_vectors else "klaw index"
    findings: tuple[tuple[str, Severity, str, Sequence[int], str], ...] = (
        ("index-missing", *missing, compared.missing, mend),
        ("index-lagging", "warning", lagging, compared.lagging, mend),
        ("index-orphans", "error", "entries are of chunks that are gone", compared.stale, FIX),
    )
    for check, severity, what, keys, command in findings:
        if keys:
            yield Finding(check, severity, f"{len(keys):,} {what}", where, command, tuple(map(str, keys[:_KEYS_NAMED])))


def _check_content(collection: Collection, snapshot: Snapshot[Any], index: Index[Any], where: str) -> Iterator[Finding]:
    if not isinstance(index, CheckedIndex):
        return
    record = snapshot.space(collection.name)
    space = record.space if record is not None and index.needs_vectors else None
    problems = tuple(index.check(snapshot.resource, collection.name, space))
    if problems:
        yield Finding("index-content", "error", problems[0], where, FIX, problems)
