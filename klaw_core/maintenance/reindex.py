"""Rebuild the whole index, optionally in another vector space, while the current index stays in use.

Step 1 chunks and embeds every document and stores the vectors in the cache of the current store. This takes most of
the time and does not block others. If it is interrupted, the next run continues from the cached vectors. Step 2 builds
a new index next to the current one from the cache, and then replaces the current one. Writers wait during step 2.

If the database is damaged, the store replaces it, and an index run fills the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from shlex import quote
from typing import Any, TypeGuard

from attrs import evolve

from klaw_core.assembly import Assembly
from klaw_core.embedding.run import PROBE, SAME_WEIGHTS, EmbeddingRun, agreement, make_space_record
from klaw_core.errors import (
    ConfigError,
    DatabaseCorruptError,
    EmbeddingError,
    KlawError,
    PluginError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
    WorkspaceError,
)
from klaw_core.indexing.backfill import Backfill
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.flow import Indexer
from klaw_core.indexing.run_counts import ProgressCallback, stays
from klaw_core.interfaces.components import Embedder
from klaw_core.interfaces.source import Folder, RowSource
from klaw_core.interfaces.store import RepairableStore, Store
from klaw_core.kinds import EMBEDDER
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.plugins.registry import Registry
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.forgetting import drop_forgotten
from klaw_core.sources.index_runs import EMBEDDING_LOCK, IndexRuns
from klaw_core.values.collections import MEMORY
from klaw_core.values.config import Selection, named_embedding
from klaw_core.values.documents import Document
from klaw_core.values.runs import IndexReport, Progress, SkippedEntry
from klaw_core.values.text import Chunk, StoredChunk, text_hash
from klaw_core.values.vectors import SpaceRecord

# The lock for embedding in a vector space that no collection uses yet.
_MOVING_LOCK = f"{EMBEDDING_LOCK}-moving"
_CARRIED_AT_ONCE = 100
# Errors with another cause than damage, which is not looked for then.
_UNDAMAGED = (ConfigError, EmbeddingError, StoreFullError, StoreLockedError, StoreReadOnlyError, WorkspaceError)


def move(
    assembly: Assembly, runs: IndexRuns, embedding: Selection | str | None, on_progress: ProgressCallback
) -> IndexReport:
    """Rebuild the index with an embedder (None: the configured one), which the assembly uses afterwards.

    A damaged database is replaced first. Raise the errors of :func:`reindex`, PluginNotFoundError if no plugin provides
    the embedder, and ConfigError if only one of the old and new embedders makes vectors.
    """
    configured = assembly.config.embedding
    selection = named_embedding(embedding, configured) if isinstance(embedding, str) else embedding
    if selection is not None:
        check_embedder(assembly.registry, selection)
    if selection is not None and (selection.type == "none") != (configured.type == "none"):
        raise _not_by_rebuilding(selection)
    embedder = assembly.embedder_for_new_index(selection)
    report = None
    if not assembly.replaced:
        try:
            _require_tables(runs.sources)
            report = reindex(assembly, runs.sources, embedder, on_progress)
        except KlawError as error:
            if not _is_damaged(assembly.store, error):
                raise
            assembly.replaced = assembly.store.replace_damaged()
    assembly.move_to(embedder, selection)
    return _refilled(assembly, runs, on_progress) if report is None else report


def _not_by_rebuilding(selection: Selection) -> ConfigError:
    """Return the error for a change between an index with vectors and one without; this changes the retrievers."""
    if selection.type == "none":
        told = "a rebuild does not remove the vectors; without a configured embedder, searches use words only"
    else:
        told = "the index has no vectors to rebuild; with a configured embedder, an index run computes them"
    given = {"type": selection.type, "model": selection.options.get("model")}
    commands = (f"`klaw config set memory.embedding.{key} {quote(value)}`" for key, value in given.items() if value)
    return ConfigError([told], hint=f"{', '.join(commands)}, then `klaw index`")


def check_embedder(registry: Registry, selection: Selection) -> None:
    """Raise PluginError, which names the setting, if no plugin provides the embedder of a selection."""
    try:
        registry.component(EMBEDDER, selection.type)
    except PluginError as error:
        error.message = f"{selection.place}: {error.message}"
        raise


def _require_tables(sources: Sources) -> None:
    """Raise the DatabaseCorruptError of an extension whose tables cannot be used."""
    for row in sources.owned:
        if isinstance(row.failure, DatabaseCorruptError):
            raise row.failure


def _is_damaged(store: Store[Any], error: KlawError) -> TypeGuard[RepairableStore]:
    """Return whether an error means that the store is damaged and can be replaced."""
    if not isinstance(store, RepairableStore) or isinstance(error, _UNDAMAGED):
        return False
    return isinstance(error, DatabaseCorruptError) or store.is_damaged()


def _refilled(assembly: Assembly, runs: IndexRuns, on_progress: ProgressCallback) -> IndexReport:
    """Index everything after the store has replaced its data. An error or an interrupt says that, too."""
    notices, assembly.replaced = assembly.replaced, ()
    try:
        runs = evolve(runs, sources=runs.sources.again())  # with the replaced store
        report = runs.over(runs.sources.all(), on_progress=on_progress)
    except KlawError as error:
        error.message = "; ".join([*notices, error.message])
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("; ".join([*notices, "finished work is kept; `klaw index` continues from there"]))
        raise
    return evolve(report, notices=(*notices, *report.notices))


def reindex(assembly: Assembly, sources: Sources, embedder: Embedder, on_progress: ProgressCallback) -> IndexReport:
    """Build a new index in the embedder's vector space and replace the current index with it.

    A source that fails, such as one on a missing drive, is reported as skipped, and what is indexed of it is carried
    over. If this raises or the process dies, the current index is unchanged. Raise PluginError if chunks would be lost
    as an extension fails or cannot list its sources, StoreLockedError, EmbeddingError, StoreError.
    """
    started = time.monotonic()
    ahead = EmbeddingRun()
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    record = None
    if any(index.needs_vectors for _, index in assembly.indexes()):
        record = make_space_record(embedder)
        alone = partial(assembly.store.lock, _lock(assembly.store, record))
        _keep_probe(assembly.store, record)
        _embed_ahead(assembly, sources, embedder, ahead, record, alone=alone, on_progress=on_progress)
    run = EmbeddingRun()
    report = IndexReport()
    # Take the lock first: a process that is embedding can then store its vectors before the rebuild blocks writers.
    with alone(), assembly.store.rebuild() as fresh:
        sources = sources.again()  # sources may have been added or forgotten during step 1
        own = _own(sources)
        elsewhere = _not_here(sources)
        origins = {(each.origin, each.collection) for each in own} | set(elsewhere)
        collections = tuple(dict.fromkeys((MEMORY, *sorted(collection for _, collection in origins))))
        for name in collections:
            collection = assembly.collection(name, store=fresh, embedder=embedder)
            if record is not None:
                collection.adopt_space(record)
            collection.keep_origins({origin for origin, held_in in origins if held_in == name})
        for source in own:
            indexer = sources.indexer(source, store=fresh, embedder=embedder)
            report += _rewrite(assembly.store, source, indexer, run, on_progress=on_progress)
        for origin, name in elsewhere:  # their files are on other machines
            fresh_collection = assembly.collection(name, store=fresh, embedder=embedder)
            _copy_unreadable(assembly.store, fresh_collection, origin, "", lambda _: True)
        for name in collections:  # embed the documents that were added after step 1
            report += assembly.indexer(name, store=fresh, embedder=embedder).embed(run)
        embedded = ahead.embedded + run.embedded
        with fresh.write() as transaction:  # in the new store, before other processes can write to it
            transaction.tend_cache(assembly.config.cache.max_entries, found=ahead.cached, computed=embedded)
    for source in own:
        drop_forgotten(assembly.collection(source.collection, embedder=embedder), source)
    return evolve(
        report,
        embedded=embedded,
        cached=ahead.cached,
        notices=tuple(dict.fromkeys(report.notices)),
        seconds=time.monotonic() - started,
    )


def _own(sources: Sources) -> list[IsolatedSource]:
    """Return the sources that this machine may index. Raise the errors of ``Sources.complete``, StoreError."""
    return [source for source in sources.complete() if sources.machines.problem(source) is None]


def _not_here(sources: Sources) -> list[tuple[str, str]]:
    """Return the (origin, collection) of documents that belong, or may belong, to other machines."""
    return sorted({*sources.machines.elsewhere(), *sources.machines.unrecorded()})


def _embed_ahead(
    assembly: Assembly,
    sources: Sources,
    embedder: Embedder,
    run: EmbeddingRun,
    record: SpaceRecord,
    *,
    alone: Callable[[], AbstractContextManager[None]],
    on_progress: ProgressCallback,
) -> None:
    """Cache the vectors of every source; of one that fails, those of its indexed chunks."""
    stored = list(_not_here(sources))
    for source in _own(sources):
        try:
            indexer = sources.indexer(source, embedder=embedder)
            indexer.embed_ahead(source, run, record, alone=alone, on_progress=on_progress)
        except WorkspaceError:
            stored.append((source.origin, source.collection))
    for origin, name in stored:
        collection = assembly.collection(name, embedder=embedder)
        _embed_stored_ahead(collection, origin, run, record, alone=alone, on_progress=on_progress)


def _rewrite(
    store: Store[Any], source: IsolatedSource, indexer: Indexer, run: EmbeddingRun, *, on_progress: ProgressCallback
) -> IndexReport:
    """Write a source into the new index. What cannot be read now is carried over; all of it, if the source fails."""
    fresh = indexer.collection.store
    prepared: Sequence[SkippedEntry] = ()
    try:
        with source.guarded():
            prepared = source.source.prepare(fresh)
        written = indexer.write(source, run, on_progress=on_progress)
    except WorkspaceError as error:
        written = IndexReport(skipped=(SkippedEntry(source.origin, str(error), keep=True),))
    folder = source.source
    version = folder.version if isinstance(folder, Folder) else ""
    _copy_unreadable(store, indexer.collection, source.origin, version, partial(stays, skipped=written.skipped))
    source.use(RowSource, RowSource.carry_over, store, fresh, written.skipped)
    return written + IndexReport(skipped=tuple(prepared))


def _lock(store: Store[Any], record: SpaceRecord) -> str:
    """Return the lock for embedding in this space. Processes that embed in other spaces need not wait for it."""
    spaces = [found.space for found in _spaces(store)]
    return EMBEDDING_LOCK if not spaces or record.space in spaces else _MOVING_LOCK


def _spaces(store: Store[Any]) -> Sequence[SpaceRecord]:
    with store.read() as snapshot:
        return [found for found in map(snapshot.space, snapshot.collections()) if found is not None]


def _embed_stored_ahead(
    collection: Collection,
    origin: str,
    run: EmbeddingRun,
    record: SpaceRecord,
    *,
    alone: Callable[[], AbstractContextManager[None]],
    on_progress: ProgressCallback,
) -> None:
    """Cache the vectors of the indexed chunks of an origin whose files are on other machines.

    Raise the error that stopped the run, StoreError.
    """
    with collection.store.read() as snapshot:
        paths = sorted(snapshot.manifest(collection.name, origin))
        _, total = snapshot.counts(collection.name).get(origin, (0, 0))
    done = 0
    for first in range(0, len(paths), _CARRIED_AT_ONCE):
        documents = _indexed_chunks(collection, paths[first : first + _CARRIED_AT_ONCE])
        with alone():
            Backfill(collection, run).cache(documents, record, gone=partial(_changed, collection, documents))
        if run.failing and run.error is not None:
            raise run.error
        done += sum(map(len, documents.values()))
        on_progress(Progress("embed", done, total))


def _indexed_chunks(collection: Collection, paths: Sequence[str]) -> Mapping[str, Sequence[Chunk]]:
    with collection.store.read() as snapshot:
        return {path: [stored.chunk for stored in snapshot.outline(collection.name, path)] for path in paths}


def _changed(collection: Collection, documents: Mapping[str, Sequence[Chunk]], paths: Sequence[str]) -> set[str]:
    """Return the documents that were forgotten, or indexed with another text, since they were read."""
    now = _indexed_chunks(collection, paths)
    return {path for path in paths if now[path] != documents[path]}


def _copy_unreadable(
    store: Store[Any], fresh: Collection, origin: str, version: str, keeps: Callable[[str], bool]
) -> None:
    """Copy documents that cannot be read now from the current index; a later run that can read them updates them."""
    with store.read() as snapshot, fresh.store.read() as new:
        written = new.manifest(fresh.name, origin)
        lost = [path for path in snapshot.manifest(fresh.name, origin) if path not in written and keeps(path)]
        for first in range(0, len(lost), _CARRIED_AT_ONCE):
            outlines = [snapshot.outline(fresh.name, path) for path in lost[first : first + _CARRIED_AT_ONCE]]
            fresh.replace([
                (_placeholder(chunks[0], version), [evolve(one.chunk, created_at=one.created_at) for one in chunks])
                for chunks in outlines if chunks
            ])  # fmt: skip


def _placeholder(stored: StoredChunk, version: str) -> Document:
    """Return the document of a chunk with an empty text; its hash differs from that of any text that can be read."""
    return Document(
        stored.path,
        "",
        stored.source,
        stored.origin,
        stored.created_at,
        stored.chat_id,
        version,
        recipe="carried over",
        metadata=stored.metadata,
        title=stored.chunk.title,
    )


def _keep_probe(store: Store[Any], now: SpaceRecord) -> None:
    """Retire the cached vectors of this space if the model behind its name has changed.

    The probe vector shows the change. A space that no collection uses yet has its probe vector in the cache.
    """
    digest = text_hash(PROBE)
    with store.write() as transaction:
        records = [record for record in map(transaction.space, transaction.collections()) if record is not None]
        probes = [old.probe for old in records if old.space == now.space]
        probes += transaction.cached_vectors(now.space, [digest]).values()
        if any(agreement(probe, now.probe) < SAME_WEIGHTS for probe in probes):
            transaction.retire_space(now.space)
        transaction.cache_vectors(now.space, {digest: now.probe})
