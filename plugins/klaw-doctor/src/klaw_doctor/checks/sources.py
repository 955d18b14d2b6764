"""Checks of the sources: find documents that were changed, deleted, or never indexed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from shlex import quote

from klaw_core import Document, DocumentRecord, Entry, Finding, KlawError, SkippedEntry
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.cutting import Cutter
from klaw_core.indexing.flow import Indexer
from klaw_core.indexing.run_counts import stays
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.values.findings import FIX, Severity, named
from klaw_core.values.runs import EMPTY

_UPDATE = "klaw index"
# The part of a reason that differs between files, such as the size in "is larger than 100 bytes (120)".
_DETAIL = re.compile(r" \([^)]*\)")


def check_source(source: IsolatedSource, indexer: Indexer) -> Iterator[Finding]:
    """Compare one source with the index; every document is read."""
    collection, cutter = indexer.collection, indexer.cutter()
    with collection.store.read() as snapshot:
        manifest = snapshot.manifest(collection.name, source.origin)
    try:
        scanned = list(source.scan())
    except KlawError as error:
        what = f"{error.message}; {len(manifest):,} of its documents stay indexed"
        yield Finding("source-gone", "warning", what, source.origin, error.hint)
        return
    skipped: list[SkippedEntry] = []
    current: set[str] = set()
    changed, new, mixed = [], [], []
    for entry in scanned:
        document = source.read(entry) if isinstance(entry, Entry) else entry
        if isinstance(document, SkippedEntry):
            skipped.append(document)
            continue
        current.add(document.path)
        record = manifest.get(document.path)
        if record is None:
            new.append(document.path)
        elif cutter.recognise(document, record) is None:
            changed.append(document.path)
        elif _has_other_chunks(indexer, cutter, document, record):
            mixed.append(document.path)
    gone = [path for path in manifest if path not in current and not stays(path, skipped)]
    yield from _outdated("stale", "changed since indexed", changed, source.origin)
    yield from _outdated("never-indexed", "never indexed", new, source.origin)
    yield from _outdated("ghosts", "deleted and still found", gone, source.origin)
    if mixed:
        what = f"{len(mixed):,} documents have chunks that are not of their text: {named(mixed)}"
        yield Finding("other-chunks", "error", what, source.origin, "klaw reindex", tuple(mixed))
    if source.root is not None:
        yield from _skipped(skipped, source.origin)


def _has_other_chunks(indexer: Indexer, cutter: Cutter, document: Document, record: DocumentRecord) -> bool:
    """Return whether chunks of a document belong to another one: a row has no checksum of its document's number.

    Of a document with damaged chunks, which another check reports, nothing can be said.
    """
    collection = indexer.collection
    with collection.store.read() as snapshot:
        if snapshot.record(collection.name, document.origin, document.path) != record:
            return False  # it was indexed again in the meantime
        stored = snapshot.outline(collection.name, document.path)
        text = cutter.redactor.text_of(document)
        if stored and all(one.chunk.text == text[one.chunk.start : one.chunk.end] for one in stored):
            return False
        return bool(stored or cutter.cut(document)[1]) and not snapshot.damaged(collection.name, document.path)


def check_origins(
    collection: Collection,
    known: AbstractSet[str],
    reserved: frozenset[str],
    broken: Sequence[str],
    unrecorded: AbstractSet[str],
) -> Iterator[Finding]:
    """Find indexed documents whose source no longer exists: their origin is not ``known``.

    Documents of a ``reserved`` origin belong to an extension whose journal is missing. The index may hold the only
    copy, so they are never removed. Other documents are kept while a plugin or an extension is ``broken``, because
    they may belong to it, and those of an ``unrecorded`` origin, because they may belong to another machine.
    """
    for origin, paths in _unknown(collection, known).items():
        what = f"{len(paths):,} documents are indexed from a source that no longer exists"
        if origin in reserved:
            what = f"{len(paths):,} documents of {origin!r} are in the index, but their files are missing"
            yield Finding("journal-gone", "error", what, origin, "restore the file from a backup or an export", paths)
        elif broken:
            what += f", or may belong to a plugin or extension that does not work: {'; '.join(broken)}"
            yield Finding(
                "ghost-source", "warning", what, origin, f"klaw plugins; or `klaw forget {quote(origin)}/`", paths
            )
        elif origin in unrecorded:
            what += ", or belong to a machine that has not indexed since it was updated"
            yield Finding("ghost-source", "warning", what, origin, f"klaw forget {quote(origin)}/", paths)
        else:
            yield Finding("ghost-source", "warning", what, origin, FIX, paths)


def remove_unknown_origins(collection: Collection, known: AbstractSet[str]) -> None:
    """Remove documents whose origin is not ``known``; their vectors stay cached. Raise StoreError."""
    paths = [path for gone in _unknown(collection, known).values() for path in gone]
    if paths:
        collection.remove(paths)


def _unknown(collection: Collection, known: AbstractSet[str]) -> Mapping[str, tuple[str, ...]]:
    with collection.store.read() as snapshot:
        manifests: dict[str, Mapping[str, DocumentRecord]] = {
            origin: snapshot.manifest(collection.name, origin)
            for origin in snapshot.counts(collection.name)
            if origin not in known
        }
    return {origin: tuple(sorted(manifest)) for origin, manifest in manifests.items()}


def _skipped(skipped: Sequence[SkippedEntry], origin: str) -> Iterator[Finding]:
    """Yield a finding for each reason for which files were skipped; empty notes get the lowest severity."""
    by_reason: dict[str, list[SkippedEntry]] = {}
    for item in skipped:
        by_reason.setdefault(_DETAIL.sub("", item.reason), []).append(item)
    for reason, items in by_reason.items():
        paths = sorted(item.path for item in items)
        several = len(paths) > 1
        what = f"{len(paths):,} {'files are' if several else 'file is'} not indexed ({reason}): {named(paths)}"
        severity: Severity = "note" if reason == EMPTY else "warning"
        details = tuple(f"{item.path}: {item.reason}" for item in items)
        yield Finding("skipped", severity, what, origin, _hint(reason, origin), details)


def _hint(reason: str, origin: str) -> str:
    if reason.startswith("is not valid UTF"):
        return "save it as UTF-8: iconv -f ENCODING -t UTF-8 FILE > NEW, or correct the byte, if it is damaged UTF-8"
    if reason.startswith("cannot be read"):
        return f"chmod u+r the file; or `klaw workspace exclude {quote(origin)} PATTERN` stops this warning"
    return "" if reason == EMPTY else f"`klaw workspace exclude {quote(origin)} PATTERN` stops this warning"


def _outdated(check: str, what: str, paths: Sequence[str], origin: str) -> Iterator[Finding]:
    if paths:
        found = sorted(paths)
        yield Finding(
            check,
            "warning",
            f"{len(found):,} {'document' if len(found) == 1 else 'documents'} {what}: {named(found)}",
            origin,
            _UPDATE,
            tuple(found),
        )
