"""Lists of indexed documents."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from klaw_core.interfaces.store import Snapshot, Store
from klaw_core.values.documents import DocumentRecord, ListedDocument

_PREVIEW = 160  # characters
_HEADINGS = re.compile(r"\A(?:\s*#{1,6}[ \t][^\n]*(?:\n|\Z))+")  # the leading headings, which repeat the title
# Other headings: the text, and punctuation at its end, if any.
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?([:.?!])?)[ \t#]*$", re.MULTILINE)


def recent_documents(
    store: Store[Any],
    limit: int | None,
    *,
    since: datetime | None = None,
    origin: str | None = None,
    collections: Sequence[str] | None = None,
) -> tuple[ListedDocument, ...]:
    """Return the most recent documents, newest first; documents of the same date are sorted by path."""
    with store.read() as snapshot:
        names = snapshot.collections() if collections is None else collections
        found = [
            (record, name)
            for name in names
            for record in _candidates(snapshot, name, origin, since, limit)
            if since is None or record.created_at >= since
        ]
        wanted = len(found) if limit is None else limit
        newest = heapq.nsmallest(wanted, found, key=lambda item: (-item[0].created_at.timestamp(), item[0].path))
        return tuple(filter(None, (_listed(snapshot, record, name) for record, name in newest)))


def _candidates(
    snapshot: Snapshot[Any], collection: str, origin: str | None, since: datetime | None, limit: int | None
) -> Iterable[DocumentRecord]:
    """Return records among which are the ``limit`` newest of a collection."""
    if limit is None:
        return _records(snapshot, collection, origin)
    found = snapshot.newest(collection, limit, origin=origin, since=since)
    # If there are fewer, documents with a damaged date, which count as the oldest, may be missing.
    return found if len(found) >= limit or since is not None else _records(snapshot, collection, origin)


def _records(snapshot: Snapshot[Any], collection: str, origin: str | None) -> Iterator[DocumentRecord]:
    for name in snapshot.counts(collection) if origin is None else (origin,):  # counting reads all chunks
        yield from snapshot.manifest(collection, name).values()


def _listed(snapshot: Snapshot[Any], record: DocumentRecord, collection: str) -> ListedDocument | None:
    """Return a document's list entry, or None if it has no chunks."""
    if not (chunks := snapshot.outline(collection, record.path)):
        return None
    first, path, date = chunks[0], record.path, record.created_at
    title = "".join(first.chunk.heading[:1])
    body = _HEADINGS.sub("", first.chunk.text)
    text = " ".join(_HEADING.sub(lambda found: found[1] + ("" if found[2] or not found[1] else ":"), body).split())
    preview = text if len(text) <= _PREVIEW else f"{text[:_PREVIEW]}…"
    return ListedDocument(
        path, record.origin, collection, date, first.source, first.chat_id, title, preview, len(chunks)
    )
