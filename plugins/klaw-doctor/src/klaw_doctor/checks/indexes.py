"""Checks of the indexes: their chunks, damage in their rows, and their vector space."""

from collections.abc import Iterator, Sequence
from typing import Any

from klaw_core import Embedder, Finding, Index, Snapshot, SpaceRecord
from klaw_core.embedding.run import SAME_WEIGHTS, agreement, make_space_record
from klaw_core.errors import as_klaw_error
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.reconcile import compare
from klaw_core.values.findings import FIX, Severity

_CONTENT = "index-content"
_MAX_LISTED_KEYS = 20  # in a finding


def check_indexes(collection: Collection) -> Iterator[Finding]:
    """Compare the keys of every index with the store's, and let each index check itself, in one snapshot."""
    with collection.store.read() as snapshot:
        for name, index in collection.indexes:
            where = _place(collection, name)
            try:
                yield from _check_keys(collection, snapshot, index, where)
                yield from _check_content(collection, snapshot, index, where)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything
                # A failed check does not prove damage, so this finding does not empty the index.
                what = f"the check failed: {as_klaw_error(error).message}"
                yield Finding("index-unread", "error", what, where, "klaw reindex")


def check_space(collection: Collection) -> Iterator[Finding]:
    """Compare the recorded vector space and probe vector with those of the configured embedder."""
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
            what = "it has vectors, but no record of the model that made them"
            yield Finding("vector-space", "error", what, collection.name, "klaw reindex")
        return
    yield from _compare_spaces(record, collection.embedder, collection.name)


def check_model(embedder: Embedder) -> Iterator[Finding]:
    """Check that the embedder works."""
    try:
        make_space_record(embedder)
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything
        problem = as_klaw_error(error)
        what = f"search by meaning is disabled: {problem.message}"
        yield Finding("model", "error", what, "memory.embedding", problem.hint or "klaw config get memory.embedding")


def damaged_indexes(collection: Collection) -> list[Index[Any]]:
    """Return the indexes that report damage in their own rows; they must be emptied and filled again."""
    damaged = {finding.where for finding in check_indexes(collection) if finding.check == _CONTENT}
    return [index for name, index in collection.indexes if _place(collection, name) in damaged]


def _place(collection: Collection, name: str) -> str:
    return f"{collection.name}/{name}"


def _compare_spaces(record: SpaceRecord, embedder: Embedder, where: str) -> Iterator[Finding]:
    try:
        space = embedder.space
        probe = make_space_record(embedder).probe if space == record.space else None
    except Exception:  # noqa: BLE001  # check_model reports it
        return
    if probe is None:
        what = f"it was indexed with {record.space}; the configured embedder is {space}"
        yield Finding("vector-space", "error", what, where, "`klaw reindex`, or set memory.embedding back")
        return
    similarity = agreement(probe, record.probe)
    if similarity < SAME_WEIGHTS:
        what = (
            f"{record.space} now returns another vector for the probe sentence (similarity {similarity:.3f}): "
            "the model behind the name has changed"
        )
        yield Finding("vector-probe", "error", what, where, "klaw reindex")


def _check_keys(collection: Collection, snapshot: Snapshot[Any], index: Index[Any], where: str) -> Iterator[Finding]:
    compared = compare(snapshot, collection.name, index)
    missing: tuple[Severity, str] = ("error", "{} missing from the index")
    if index.needs_vectors:  # a failed or skipped embedding leaves chunks without vectors, which is no damage
        missing = ("warning", "{} without a vector, found by words alone")
    outdated = "{} in an earlier form: found, but more slowly, or not by all words"
    hint = "klaw embed" if index.needs_vectors else "klaw index"
    findings: tuple[tuple[str, Severity, str, Sequence[int], str], ...] = (
        ("index-missing", *missing, compared.missing, hint),
        ("index-outdated", "warning", outdated, compared.outdated, hint),
        ("index-orphans", "error", "it still finds {} of deleted documents", compared.stale, FIX),
    )
    for check, severity, what, keys, command in findings:
        if keys:
            chunks = "1 chunk" if len(keys) == 1 else f"{len(keys):,} chunks"
            details = tuple(map(str, keys[:_MAX_LISTED_KEYS]))
            yield Finding(check, severity, what.format(chunks), where, command, details)


def _check_content(collection: Collection, snapshot: Snapshot[Any], index: Index[Any], where: str) -> Iterator[Finding]:
    record = snapshot.space(collection.name)
    space = record.space if record is not None and index.needs_vectors else None
    problems = tuple(index.check(snapshot.resource, collection.name, space))
    if problems:
        yield Finding(_CONTENT, "error", problems[0], where, FIX, problems)
