"""The extension ``documents``: texts that a program stores under its own ids, in a journal."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from attrs import define, field, frozen

from klaw_core.errors import ESCAPING, KlawError, NotFoundError, RecordError, quoted
from klaw_core.extensions.owned_files import check_lines, check_private, make_private
from klaw_core.files.journals import FileJournals
from klaw_core.files.layout import DataDirectory
from klaw_core.files.timestamps import as_utc, format_ts, parse_ts
from klaw_core.interfaces.extension import (
    AttachedExtension,
    CheckedExtension,
    Host,
    RecordedExtension,
    SourcedExtension,
)
from klaw_core.interfaces.journal import RecordJournal
from klaw_core.interfaces.source import Forgetful, Forgettable, Source
from klaw_core.redaction import Redactor
from klaw_core.values.checked_names import check_name, secret_in_name
from klaw_core.values.collections import MEMORY, check_collection_name
from klaw_core.values.documents import Document, Entry
from klaw_core.values.findings import FIX, Finding
from klaw_core.values.metadata import Metadata, check_metadata
from klaw_core.values.records import ImportCounts, Record
from klaw_core.values.runs import IndexReport, SkippedEntry
from klaw_core.values.text import DEFAULT_FORMAT

#: The origin of these documents, the beginning of their paths, and the name of their journal.
DOCUMENTS = "documents"

_MAX_ID_CHARACTERS = 500
_MAX_TEXT_CHARACTERS = 1_000_000
_MAX_PAYLOAD_CHARACTERS = 1_000_000
_BATCH = 500


def _check_id(_instance: object, _attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value or len(value) > _MAX_ID_CHARACTERS or not value.isprintable():
        raise RecordError(f"invalid document id {quoted(value)}: use 1 to {_MAX_ID_CHARACTERS} printable characters")


def _check_text(_instance: object, _attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or len(value) > _MAX_TEXT_CHARACTERS:
        raise RecordError(f"the text must be a string of at most {_MAX_TEXT_CHARACTERS:,} characters")


def _check_payload(_instance: object, _attribute: Any, value: Any) -> None:
    if value is None:
        return
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        same = json.loads(written) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"the payload of a document must be JSON: {error}") from error
    if not same:
        raise RecordError("the payload of a document must be JSON: objects with string keys, lists, no tuples")
    if len(written) > _MAX_PAYLOAD_CHARACTERS:
        raise RecordError(f"the payload of a document takes at most {_MAX_PAYLOAD_CHARACTERS:,} characters as JSON")


@frozen
class NewDocument:
    """A text to store under an id of the caller.

    Searches can filter by ``metadata``; ``source`` is the label that results show; ``created_at`` (default: now) is
    aware. ``format`` names the chunker. ``payload`` is any JSON value: it is stored and returned with the document, but
    never searched. Raise RecordError for invalid values.
    """

    id: str = field(validator=_check_id)
    text: str = field(repr=False, validator=_check_text)
    metadata: Metadata = field(factory=dict, converter=check_metadata)
    source: str = "document"
    created_at: datetime = field(factory=lambda: datetime.now(UTC), converter=as_utc)
    format: str = DEFAULT_FORMAT
    payload: Any = field(default=None, repr=False, validator=_check_payload)

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return the document of a journal's record. Raise RecordError."""
        try:
            return cls(
                record["document"],
                record["text"],
                record.get("metadata", {}),
                str(record["source"]),
                parse_ts(record["created_at"]),
                str(record.get("format", DEFAULT_FORMAT)),
                record.get("payload"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"not a document: {type(error).__name__}: {error}") from error

    @property
    def path(self) -> str:
        """The path of the document in results."""
        return f"{DOCUMENTS}/{self.id}"

    def record(self, collection: str) -> dict[str, Any]:
        """Return the record for the journal."""
        return {
            "id": _key(collection, self.id),
            "collection": collection,
            "document": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "format": self.format,
            "metadata": {
                key: list(value) if isinstance(value, tuple) else value for key, value in self.metadata.items()
            },
            "text": self.text,
            **({} if self.payload is None else {"payload": self.payload}),
        }

    def as_document(self) -> Document:
        """Return the document to index."""
        return Document(
            self.path,
            self.text,
            self.source,
            DOCUMENTS,
            self.created_at,
            format=self.format,
            metadata=self.metadata,
        )


def _key(collection: str, name: str) -> str:
    return f"{collection}/{name}"


def _check_record(record: Mapping[str, Any]) -> None:
    """Raise RecordError unless this is a record of the journal."""
    collection = record.get("collection")
    if not isinstance(collection, str) or record.get("id") != _key(collection, str(record.get("document"))):
        raise RecordError("the id must consist of a collection and a document")
    NewDocument.parse(record)


@define(eq=False)
class DocumentsExtension(AttachedExtension, SourcedExtension, CheckedExtension, RecordedExtension):
    """Stores documents by id, in any collection, and indexes them."""

    directory: DataDirectory
    origins: Sequence[str] = (DOCUMENTS,)
    record_kinds: Sequence[str] = ("document",)
    _host: Host | None = field(default=None, init=False)
    _journal: RecordJournal | None = field(default=None, init=False)
    _collections: tuple[Hashable, Sequence[str]] = field(default=(None, ()), init=False)

    name = DOCUMENTS

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host, self._journal = host, None

    @property
    def journal(self) -> RecordJournal:
        """The journal. It is one object, because it caches the places of records."""
        if self._journal is None:
            journals = FileJournals(self.directory) if self._host is None else self._host.journals
            self._journal = journals.records(DOCUMENTS, _check_record)
        return self._journal

    def put(self, documents: Iterable[NewDocument], collection: str = MEMORY) -> IndexReport:
        """Store and index documents; a known id replaces the earlier document. See ``Memory.add``."""
        check_collection_name(collection)
        documents = _checked(documents)
        for name in (collection, *(document.id for document in documents)):
            check_name(self._redactor, "the id of a document", name)
        latest = {
            document.id: document for document in documents
        }  # of two documents with the same id, the last one counts
        journal = self.journal
        version = journal.append([document.record(collection) for document in latest.values()])
        try:
            return self._index(latest, collection, version)
        except (KlawError, *ESCAPING) as error:
            # They are in the journal: after an exception, the caller would add them again.
            kept = f"{len(latest):,} documents are kept, and will be found after the next `klaw index`: {error}"
            return IndexReport(notices=(kept,))

    def _index(self, latest: Mapping[str, NewDocument], collection: str, version: Hashable) -> IndexReport:
        """Index documents that are in the journal at a version."""
        report = self._attached.index_documents([item.as_document() for item in latest.values()], collection)
        self._follow(latest, collection, version)
        return report

    def _follow(self, indexed: Mapping[str, NewDocument | None], collection: str, version: Hashable) -> None:
        """Index what others changed since a version of the journal. None means that a document is not indexed.

        Two writers of one id may write to the journal in one order and to the index in the other. The order of the
        journal decides.
        """
        while self.journal.version != version:
            version = self.journal.version
            current = {item.id: item for item in self.get(list(indexed), collection)}
            changed = [item.as_document() for name, item in current.items() if item != indexed[name]]
            if changed:
                self._attached.index_documents(changed, collection)
            gone = [f"{DOCUMENTS}/{name}" for name, item in indexed.items() if item and name not in current]
            if gone:
                self._attached.remove_documents(gone, collection)
            if not changed and not gone:  # a later change is indexed by its own writer
                return
            indexed = {name: current.get(name) for name in indexed}

    def get(self, ids: Sequence[str], collection: str = MEMORY) -> tuple[NewDocument, ...]:
        """Return the existing documents with these ids, in the order of the ids."""
        records = self.journal.get([_key(collection, name) for name in ids])
        found = (records.get(_key(collection, name)) for name in ids)
        return tuple(NewDocument.parse(record) for record in found if record is not None)

    def delete(self, ids: Sequence[str], collection: str = MEMORY, *, missing_ok: bool = False) -> int:
        """Forget documents; return their number. Raise NotFoundError, and forget nothing, if an id is unknown."""
        known = self.journal.get([_key(collection, name) for name in ids])
        unknown = [name for name in ids if _key(collection, name) not in known]
        if unknown and not missing_ok:
            raise NotFoundError(
                f"the collection {collection!r} has no document {unknown[0]!r}",
                hint="pass missing_ok=True to ignore that",
            )
        paths = [f"{DOCUMENTS}/{name}" for name in ids]
        self._attached.remove_documents(paths, collection)
        count = self.journal.forget([_key(collection, name) for name in ids])
        # An index run that has read the journal before may have written them again.
        with self._attached.read() as snapshot:
            back = [path for path in paths if snapshot.record(collection, DOCUMENTS, path) is not None]
        if back:
            self._attached.remove_documents(back, collection)
            self._follow(dict.fromkeys(ids), collection, None)  # or another writer has added them again
        with self._attached.write() as transaction:
            transaction.forget_documents(collection, paths)
        return count

    @property
    def _redactor(self) -> Redactor:
        return Redactor() if self._host is None else self._host.config.conversations.redactor

    @property
    def _attached(self) -> Host:
        assert self._host is not None
        return self._host

    def sources(self) -> Sequence[Source]:
        """Return a source for each collection that has documents."""
        journal = self.journal
        if not journal.exists:
            return ()
        version = journal.version
        if version is None or version != self._collections[0]:
            names = dict.fromkeys((MEMORY, *(key.partition("/")[0] for key in journal.ids())))
            self._collections = (version, tuple(names))
        return [DocumentSource(journal, name) for name in self._collections[1]]

    def check(self) -> Iterator[Finding]:
        """Report broken lines of the journal, and forgotten texts that are still in it."""
        journal = self.journal
        yield from check_private([self.directory.journal(DOCUMENTS)])
        replayed = journal.replay()
        yield from check_lines("document-lines", journal.location, replayed.broken)
        if replayed.unfinished:
            what = f"{len(replayed.unfinished):,} forgotten documents still have their text in the file"
            yield Finding("document-unfinished", "error", what, journal.location, FIX, replayed.unfinished)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Complete forgetting that a crash interrupted, and make the file private. Raise StoreError."""
        make_private([self.directory.journal(DOCUMENTS)])
        self.journal.finish()

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every document."""
        replayed = self.journal.replay()
        yield from (Record("document", {"value": record}) for record in replayed.records.values())
        yield from (SkippedEntry(f"{bad.location}@{bad.position}", bad.reason, keep=True) for bad in replayed.broken)

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a document."""
        value = record.value.get("value")
        if not isinstance(value, Mapping):
            raise RecordError("not a document: not a JSON object")
        self._attached.check_writable(str(value.get("collection")))
        _check_record(value)

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add documents. An existing document with other content is not changed."""
        known = dict(self.journal.replay().records)
        counts = ImportCounts()
        batch: list[Mapping[str, Any]] = []
        for record in (item.value["value"] for item in records):
            if refusal := secret_in_name(self._redactor, "the id of a document", record["id"]):
                counts += ImportCounts(kept=(refusal,))
                continue
            here = known.setdefault(record["id"], record)
            if here is record:
                batch.append(record)
            elif here == record:
                counts += ImportCounts(present=1)
            else:
                counts += ImportCounts(kept=(f"the document {record['id']} already exists with other content",))
            if len(batch) == _BATCH:
                counts += self._keep(batch)
        return counts + self._keep(batch)

    def _keep(self, batch: list[Mapping[str, Any]]) -> ImportCounts:
        self.journal.append(batch)
        counts = ImportCounts(added=len(batch))
        batch.clear()
        return counts


@define(eq=False)
class DocumentSource(Source, Forgettable, Forgetful):
    """The documents of one collection as a source. ``read`` returns documents of the last scan."""

    journal: RecordJournal
    collection: str
    _found: dict[str, Mapping[str, Any]] = field(factory=dict, init=False, repr=False)
    _forgotten: set[str] = field(factory=set, init=False, repr=False)
    #: The version of the journal at the last scan, and whether a part of it was broken.
    _scanned: tuple[Hashable, bool] = field(default=(None, False), init=False, repr=False)

    origin = DOCUMENTS
    forgets_missing = True

    @property
    def stamp(self) -> Hashable:
        """The version of the journal."""
        return self.journal.version

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every document in the order of addition, and each broken part of the journal."""
        version = self.journal.version
        replayed = self.journal.replay()
        self._scanned = version, bool(replayed.broken)
        own = [record for record in replayed.records.values() if record["collection"] == self.collection]
        self._found.clear()
        self._found.update({f"{DOCUMENTS}/{record['document']}": record for record in own})
        entries = [Entry(path, len(record["text"])) for path, record in self._found.items()]
        return [*entries, *(SkippedEntry(DOCUMENTS, str(bad), keep=True) for bad in replayed.broken)]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return one document."""
        record = self._found.get(entry.path)
        if record is None:
            return SkippedEntry(entry.path, "was deleted", keep=False)
        return NewDocument.parse(record).as_document()

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget documents; their texts leave the journal's bytes. Raise StoreError."""
        self.journal.forget([_key(self.collection, path.removeprefix(f"{DOCUMENTS}/")) for path in paths])
        self._forgotten.update(paths)

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return the documents that are no longer in the journal.

        A broken line may contain any document. If there is one, only documents that this object has forgotten count.
        """
        version, is_broken = self._scanned
        if version is not None and version == self.journal.version:  # nothing was written since the scan
            gone = [path for path in paths if path not in self._found]
        else:
            replayed = self.journal.replay()
            is_broken = bool(replayed.broken)
            keys = {path: _key(self.collection, path.removeprefix(f"{DOCUMENTS}/")) for path in paths}
            gone = [path for path, key in keys.items() if key not in replayed.records]
        return [path for path in gone if path in self._forgotten or not is_broken]

    def prepare(self, _store: object, /) -> Sequence[SkippedEntry]:
        """Complete forgetting that a crash interrupted."""
        self.journal.finish()
        return ()


def _checked(documents: Iterable[NewDocument]) -> list[NewDocument]:
    """Return the documents as a list. Raise RecordError if an element is not a NewDocument."""
    given: object = documents
    if isinstance(given, NewDocument) or not isinstance(given, Iterable):
        raise RecordError("documents must be given as a list", hint="Memory.add([NewDocument(id, text)])")
    found: list[Any] = list(documents)
    if wrong := [item for item in found if not isinstance(item, NewDocument)]:
        raise RecordError(f"not a document: {quoted(wrong[0])}", hint="Memory.add([NewDocument(id, text)])")
    return found
