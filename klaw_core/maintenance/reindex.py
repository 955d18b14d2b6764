"""The whole index anew, perhaps in another vector space, while the one in use goes on answering.

In two steps. First every document is cut and embedded into the cache of the live store: this takes the time, and
keeps nobody from anything; interrupted, it goes on where it stopped, because what is cached is not computed again.
Then the index is built next to the live one from what is cached, and takes its place; meanwhile writers wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from attrs import evolve

from klaw_core.assembly import Assembly
from klaw_core.embedding.run import PROBE, SAME_WEIGHTS, EmbeddingRun, agreement, make_space_record
from klaw_core.errors import ConfigError
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.flow import stays
from klaw_core.indexing.run_counts import ProgressCallback
from klaw_core.indexing.turns import EMBEDDING_LOCK
from klaw_core.interfaces.components import Embedder
from klaw_core.interfaces.store import Store
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.forgetting import drop_forgotten
from klaw_core.values.collections import MEMORY
from klaw_core.values.config import Selection, named_embedding
from klaw_core.values.documents import Document
from klaw_core.values.runs import IndexReport, SkippedEntry
from klaw_core.values.text import StoredChunk, text_hash
from klaw_core.values.vectors import SpaceRecord

# The lock of those who embed in a space that no collection is in yet.
_MOVING_LOCK = f"{EMBEDDING_LOCK}-moving"


def move(
    assembly: Assembly, sources: Sources, embedding: Selection | str | None, on_progress: ProgressCallback
) -> IndexReport:
    """Build the index anew with an embedder (None: the configured one), which the assembly then goes on with.

    Raise as :func:`reindex`, and ConfigError if only one of the two embedders makes vectors.
    """
    configured = assembly.config.embedding
    selection = named_embedding(embedding, configured) if isinstance(embedding, str) else embedding
    if selection is not None and (selection.type == "none") != (configured.type == "none"):
        raise ConfigError(
            ["nothing to rebuild: neither the index nor the new embedder has vectors"],
            hint=f"klaw config set memory.embedding.type {selection.type}, then `klaw index`",
        )
    embedder = assembly.embedder_for_new_index(selection)
    report = reindex(assembly, sources, embedder, on_progress)
    assembly.move_to(embedder, selection)
    return report


def reindex(assembly: Assembly, sources: Sources, embedder: Embedder, on_progress: ProgressCallback) -> IndexReport:
    """Build the index anew in the embedder's own space and put it in the place of the one in use.

    If it raises, or the process dies, the index in use is as it was. Raise WorkspaceError if a directory is missing,
    PluginError if an extension cannot name its sources, or does not work, and its chunks would be lost,
    StoreLockedError if another process is writing, EmbeddingError, StoreError.
    """
    started = time.monotonic()
    ahead = EmbeddingRun()
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    record = None
    if any(index.needs_vectors for _, index in assembly.indexes()):
        record = make_space_record(embedder)
        alone = partial(assembly.store.lock, _lock(assembly.store, record))
        _keep_probe(assembly.store, record)
        for source in sources.complete():
            indexer = assembly.indexer(source.collection, embedder=embedder)
            indexer.embed_ahead(source, ahead, record, alone=alone, on_progress=on_progress)
    run = EmbeddingRun()
    report = IndexReport()
    with alone(), assembly.store.rebuild() as fresh:  # in this order: what another is answered, it can still keep
        own = sources.complete()  # again: in the hours of the first step some were added, or forgotten
        collections = tuple(dict.fromkeys((MEMORY, *(source.collection for source in own))))
        for name in collections:
            collection = assembly.collection(name, store=fresh, embedder=embedder)
            if record is not None:
                collection.adopt_space(record)
            collection.keep_origins({source.origin for source in own if source.collection == name})
        for source in own:
            prepared = source.prepare(fresh)
            indexer = assembly.indexer(source.collection, store=fresh, embedder=embedder)
            written = indexer.write(source, run, on_progress=on_progress)
            _carry_over(assembly.store, indexer.collection, source, written.skipped)
            source.carry_over(assembly.store, fresh, written.skipped)
            report += written + IndexReport(skipped=tuple(prepared))
        for name in collections:  # what came after the first step
            report += assembly.indexer(name, store=fresh, embedder=embedder).embed(run)
        embedded = ahead.embedded + run.embedded
        with fresh.write() as transaction:  # there, where nobody else writes: once it has taken its place, another may
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


def _lock(store: Store[Any], record: SpaceRecord) -> str:
    """Return the lock of all who embed in this space: what is answered in another is of no use to them."""
    spaces = [found.space for found in _spaces(store)]
    return EMBEDDING_LOCK if not spaces or record.space in spaces else _MOVING_LOCK


def _spaces(store: Store[Any]) -> Sequence[SpaceRecord]:
    with store.read() as snapshot:
        return [found for found in map(snapshot.space, snapshot.collections()) if found is not None]


def _carry_over(store: Store[Any], fresh: Collection, source: IsolatedSource, skipped: Sequence[SkippedEntry]) -> None:
    """Take what could not be read now as it stands in the index in use; the next run that can read it cuts it anew."""
    with store.read() as snapshot, fresh.store.read() as new:
        there = new.manifest(fresh.name, source.origin)
        lost = [path for path in snapshot.manifest(fresh.name, source.origin) if path not in there]
        for chunks in (snapshot.outline(fresh.name, path) for path in lost if stays(path, skipped)):
            if chunks:
                dated = [evolve(stored.chunk, created_at=stored.created_at) for stored in chunks]
                fresh.replace([(_as_indexed(chunks[0], source), dated)])


def _as_indexed(stored: StoredChunk, source: IsolatedSource) -> Document:
    """Return the document of a chunk, without its text: its hash is then that of no text that can be read."""
    return Document(
        stored.path,
        "",
        stored.source,
        stored.origin,
        stored.created_at,
        stored.chat_id,
        source.version,
        recipe="carried over",
        metadata=stored.metadata,
        title=stored.chunk.title,
    )


def _keep_probe(store: Store[Any], now: SpaceRecord) -> None:
    """If a model's name stands for other weights now, let no cached vector of the old ones be taken for theirs.

    A space that is being moved to has no collection yet to prove this by: its probe is kept in the cache.
    """
    digest = text_hash(PROBE)
    with store.write() as transaction:
        records = [record for record in map(transaction.space, transaction.collections()) if record is not None]
        probes = [old.probe for old in records if old.space == now.space]
        probes += transaction.cached_vectors(now.space, [digest]).values()
        if any(agreement(probe, now.probe) < SAME_WEIGHTS for probe in probes):
            transaction.retire_space(now.space)
        transaction.cache_vectors(now.space, {digest: now.probe})
