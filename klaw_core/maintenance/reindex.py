"""The whole index anew, perhaps in another vector space, while the one in use goes on answering.

In two steps. First every document is cut and embedded into the cache of the live store: this takes the time, and
keeps nobody from anything; interrupted, it goes on where it stopped, because what is cached is not computed again.
Then the index is built beside the live one from what is cached, and takes its place; meanwhile writers wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from attrs import evolve

from klaw_core.assembly import Assembly
from klaw_core.builtin.workspace import Workspace
from klaw_core.conversations.source import CONVERSATIONS, ConversationSource
from klaw_core.embedding.run import PROBE, SAME_WEIGHTS, EmbeddingRun, agreement, make_space_record
from klaw_core.files.atomic import EMBEDDING_LOCK, locked
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.flow import Indexer, ProgressCallback, stays
from klaw_core.interfaces.components import Embedder
from klaw_core.interfaces.source import Source
from klaw_core.interfaces.store import Store
from klaw_core.sources.catalogue import Sources, bad_lines
from klaw_core.sources.forgetting import drop_forgotten
from klaw_core.values.documents import Document
from klaw_core.values.runs import IndexReport, SkippedEntry
from klaw_core.values.text import COLLECTIONS, StoredChunk, text_hash
from klaw_core.values.vectors import SpaceRecord

_MOVING_LOCK = f"{EMBEDDING_LOCK}/moving"


def reindex(assembly: Assembly, sources: Sources, embedder: Embedder, on_progress: ProgressCallback) -> IndexReport:
    """Build the index anew in the embedder's own space and put it in the place of the one in use.

    If it raises, or the process dies, the index in use is as it was. Raise WorkspaceError if a directory is missing,
    StoreLockedError if another process is writing, EmbeddingError, StoreError.
    """
    started = time.monotonic()
    ahead = EmbeddingRun()
    alone: Callable[[], AbstractContextManager[None]] = nullcontext
    record = None
    if any(index.needs_vectors for _, index in assembly.indexes()):
        record = make_space_record(embedder)
        alone = partial(locked, assembly.config.data_dir / _lock(assembly.store, record))
        _keep_probe(assembly.store, record)
        for indexer, source in _each(assembly, assembly.store, embedder, _by_collection(sources)):
            indexer.embed_ahead(source, ahead, record, alone=alone, on_progress=on_progress)
    run = EmbeddingRun()
    with alone(), assembly.store.rebuild() as fresh:  # in this order: what another is being answered, it can still keep
        own = _by_collection(sources)  # anew: in the hours of the first step some were added, or forgotten
        skipped = bad_lines(evolve(sources.row_sync, store=fresh).sync(), sources.row_sync.journal.root)
        report = IndexReport(skipped=skipped)
        for name, documents in own.items():
            collection = assembly.collection(name, store=fresh, embedder=embedder)
            if record is not None and (documents or name == COLLECTIONS[0]):
                collection.adopt_space(record)
            collection.keep_origins({source.origin for source in documents})
        for indexer, source in _each(assembly, fresh, embedder, own):
            written = indexer.write(source, run, on_progress=on_progress)
            _carry_over(assembly.store, indexer.collection, source, written.skipped)
            if isinstance(source, ConversationSource):
                _carry_over_messages(assembly.store, fresh, written.skipped)
            report += written
        for name in COLLECTIONS:
            report += _indexer(assembly, fresh, embedder, name).embed(run)  # what came after the first step
        embedded = ahead.embedded + run.embedded
        with fresh.write() as transaction:  # there, where nobody else writes: once it has taken its place, another may
            transaction.tend_cache(assembly.config.cache.max_entries, found=ahead.cached, computed=embedded)
    for indexer, source in _each(assembly, assembly.store, embedder, own):
        if source not in assembly.sources:
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
    assembly: Assembly, store: Store[Any], embedder: Embedder, own: Mapping[str, Sequence[Source]]
) -> list[tuple[Indexer, Source]]:
    return [(_indexer(assembly, store, embedder, name), source) for name in own for source in own[name]]


def _indexer(assembly: Assembly, store: Store[Any], embedder: Embedder, name: str) -> Indexer:
    return assembly.indexer(name, store=store, embedder=embedder)


def _lock(store: Store[Any], record: SpaceRecord) -> str:
    """Return the lock of all who embed in this space: what is answered in another is of no use to them."""
    with store.read() as snapshot:
        spaces = [found.space for found in map(snapshot.space, COLLECTIONS) if found is not None]
    return EMBEDDING_LOCK if not spaces or record.space in spaces else _MOVING_LOCK


def _carry_over(store: Store[Any], fresh: Collection, source: Source, skipped: Sequence[SkippedEntry]) -> None:
    """Take what could not be read now as it stands in the index in use; the next run that can read it cuts it anew."""
    with store.read() as snapshot, fresh.store.read() as new:
        there = new.manifest(fresh.name, source.origin)
        lost = [path for path in snapshot.manifest(fresh.name, source.origin) if path not in there]
        for chunks in (snapshot.outline(fresh.name, path) for path in lost if stays(path, skipped)):
            if chunks:
                fresh.replace([(_as_indexed(chunks[0], source), [stored.chunk for stored in chunks])])


def _as_indexed(stored: StoredChunk, source: Source) -> Document:
    """Return the document of a chunk, without its text: its hash is then that of no text that can be read."""
    version = source.version if isinstance(source, Workspace) else ""
    return Document(
        stored.path, "", stored.source, stored.origin, stored.created_at, stored.chat_id, version, recipe="carried over"
    )


def _carry_over_messages(store: Store[Any], fresh: Store[Any], skipped: Sequence[SkippedEntry]) -> None:
    """Take the rows of the files of conversations that could not be read now, and how far those were mirrored."""
    with store.read() as snapshot, fresh.write() as transaction:
        old, new = snapshot.messages, transaction.messages
        for name in old.chats():
            there = new.files(name)
            for day, file in old.files(name).items():
                if day not in there and stays(f"{CONVERSATIONS}/{name}/{day.isoformat()}.jsonl", skipped):
                    new.insert([message for message in old.all(name) if message.day == day])
                    new.put_file(file)


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
