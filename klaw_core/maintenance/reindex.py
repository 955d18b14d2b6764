"""The whole index anew, perhaps in another vector space, while the one in use goes on answering.

In two steps. First every document is cut and embedded into the cache of the live store: this takes the time, and
keeps nobody from anything; interrupted, it goes on where it stopped, because what is cached is not computed again.
Then the index is built beside the live one from what is cached, and takes its place; meanwhile writers wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from klaw_core.assembly import Parts
from klaw_core.collection import Collection
from klaw_core.embedding import PROBE, SAME_WEIGHTS, EmbeddingRun, agreement, make_space_record
from klaw_core.forgetting import drop_forgotten
from klaw_core.indexing import Indexer, ProgressCallback
from klaw_core.interfaces import Embedder, Source, Store
from klaw_core.sources import Sources, bad_lines
from klaw_core.values import COLLECTIONS, IndexReport, SpaceRecord, text_hash


def reindex(parts: Parts, sources: Sources, embedder: Embedder, on_progress: ProgressCallback) -> IndexReport:
    """Build the index anew in the embedder's own space and put it in the place of the one in use.

    If it raises, or the process dies, the index in use is as it was. Raise WorkspaceError if a directory is missing,
    StoreLockedError if another process is writing, EmbeddingError, StoreError.
    """
    started = time.monotonic()
    ahead = EmbeddingRun()
    record = None
    if any(index.needs_vectors for _, index in parts.indexes()):
        record = make_space_record(embedder)
        _keep_probe(parts.store, record)
        for indexer, source in _each(parts, parts.store, embedder, _by_collection(sources)):
            indexer.embed_ahead(source, ahead, record, on_progress=on_progress)
    run = EmbeddingRun()
    with parts.store.rebuild() as fresh:
        own = _by_collection(sources)  # anew: in the hours of the first step some were added, or forgotten
        skipped = bad_lines(evolve(sources.mirror, store=fresh).sync(), sources.mirror.journal.root)
        report = IndexReport(skipped=skipped)
        for name, documents in own.items():
            collection = Collection(fresh, embedder, parts.indexes(), name)
            if record is not None and (documents or name == COLLECTIONS[0]):
                collection.adopt_space(record)
            collection.keep_origins({source.origin for source in documents})
        for indexer, source in _each(parts, fresh, embedder, own):
            report += indexer.write(source, run, on_progress=on_progress)
        for name in COLLECTIONS:
            report += _indexer(parts, fresh, embedder, name).embed(run)  # what came after the first step
        embedded = ahead.embedded + run.embedded
        with fresh.write() as transaction:  # there, where nobody else writes: once it has taken its place, another may
            transaction.tend_cache(parts.config.cache.max_entries, found=ahead.cached, computed=embedded)
    for indexer, source in _each(parts, parts.store, embedder, own):
        if source not in parts.sources:
            drop_forgotten(indexer.collection, source, sources.workspaces)
    return evolve(
        report,
        embedded=embedded,
        cached=ahead.cached,
        notices=tuple(dict.fromkeys(report.notices)),
        seconds=time.monotonic() - started,
    )


def _by_collection(sources: Sources) -> Mapping[str, Sequence[Source]]:
    return {name: sources.of(name) for name in COLLECTIONS}


def _each(
    parts: Parts, store: Store[Any], embedder: Embedder, own: Mapping[str, Sequence[Source]]
) -> list[tuple[Indexer, Source]]:
    return [(_indexer(parts, store, embedder, name), source) for name in own for source in own[name]]


def _indexer(parts: Parts, store: Store[Any], embedder: Embedder, name: str) -> Indexer:
    return Indexer(Collection(store, embedder, parts.indexes(), name), parts.chunker, parts.recipe, parts.formats)


def _keep_probe(store: Store[Any], now: SpaceRecord) -> None:
    """If a model's name stands for other weights now, let no cached vector of the old ones be taken for theirs.

    A space that is being moved to has no collection yet to prove this by: its probe is kept in the cache.
    """
    digest = text_hash(PROBE)
    with store.write() as transaction:
        records = [record for record in map(transaction.space, COLLECTIONS) if record is not None]
        probes = [old.probe for old in records if old.space == now.space]
        probes += transaction.cached_vectors(now.space, [digest]).values()
        if any(agreement(probe, now.probe) < SAME_WEIGHTS for probe in probes):
            transaction.retire_space(now.space)
        transaction.cache_vectors(now.space, {digest: now.probe})
