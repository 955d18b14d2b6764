"""Documents whose text has not changed: their new dates and fingerprints, written many at a time."""

from __future__ import annotations

from contextlib import suppress

from attrs import define, evolve, field

from klaw_core.errors import StoreError
from klaw_core.indexing.collection import BATCH, Collection, Manifest
from klaw_core.indexing.run_counts import RunCounts
from klaw_core.values.documents import Document, DocumentRecord, Entry

# Fingerprints per transaction.
_REMEMBERED_AT_ONCE = 4096


@define
class UnchangedDocuments:
    """Collects dates and fingerprints of unchanged documents, and writes many in one transaction."""

    collection: Collection
    manifest: Manifest
    counts: RunCounts
    _records: list[DocumentRecord] = field(factory=list, init=False)
    _dated: dict[str, tuple[Document, Entry, str]] = field(factory=dict, init=False)

    def note(self, record: DocumentRecord, seen: str) -> None:
        """Collect the new fingerprint of a document. If it cannot be written, the next run reads the document."""
        if seen and seen != record.seen:
            self._records.append(evolve(record, seen=seen))
            if len(self._records) >= _REMEMBERED_AT_ONCE:
                self.write()

    def date(self, document: Document, entry: Entry, seen: str) -> None:
        """Collect the new date and fingerprint of a document."""
        self._dated[document.path] = document, entry, seen
        if len(self._dated) >= BATCH:
            self.write()

    def write(self) -> None:
        """Write what was collected. Raise StoreError if dates cannot be written."""
        dated, self._dated = self._dated, {}
        if dated:
            seen = {path: note for path, (_, _, note) in dated.items() if note}
            refused = self.collection.touch([document for document, _, _ in dated.values()], self.manifest, seen)
            for path, (_, entry, _) in dated.items():
                if path in refused:
                    self.counts.overtaken.append(entry)
                else:
                    self.counts.keep(entry)
        records, self._records = self._records, []
        with suppress(StoreError):
            self.collection.remember(records)
