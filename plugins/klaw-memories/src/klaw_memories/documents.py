"""The extension ``documents``: texts that a program stores under its own ids, in a journal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from klaw_core import (
    Document,
    IndexReport,
    KlawError,
    NotFoundError,
    RecordError,
    Source,
    check_collection_name,
    quoted,
)
from klaw_journals import NewDocument, Record
from klaw_journals.trust import OWNER
from klaw_memories.journal_extension import JournalExtension

#: The origin of these documents, the beginning of their paths, and the name of their journal.
DOCUMENTS = "documents"

_MEMORY = "memory"  # the collection of documents that name none


def _key(collection: str, name: str) -> str:
    return f"{collection}/{name}"


@define(eq=False)
class DocumentsExtension(JournalExtension):
    """Stores documents by id, in any collection, and indexes them."""

    _collections: tuple[Hashable, Sequence[str]] = field(default=(None, ()), init=False)

    name = plural = DOCUMENTS
    kind = "document"
    checks_collections = True
    label = "the document "

    def parse(self, record: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return a record of the journal. Raise RecordError if it is invalid."""
        collection = record.get("collection")
        if not isinstance(collection, str) or record.get("id") != _key(collection, str(record.get("document"))):
            raise RecordError("the id must consist of a collection and a document")
        NewDocument.parse(record)
        return record

    def document_of(self, record: Mapping[str, Any], /) -> Document:
        """Return the document to index."""
        new = NewDocument.parse(record)
        return Document(
            new.path,
            new.text,
            new.source,
            DOCUMENTS,
            new.created_at,
            format=new.format,
            metadata=new.metadata,
            trust=new.trust,
        )

    def path_of(self, record: Mapping[str, Any], /) -> str:
        """Return the path of the document in results."""
        return f"{DOCUMENTS}/{record['document']}"

    def id_of(self, collection: str, path: str, /) -> str:
        """Return the id of the record of a document."""
        return _key(collection, path.removeprefix(f"{DOCUMENTS}/"))

    def put(self, documents: Iterable[NewDocument], collection: str = _MEMORY) -> IndexReport:
        """Store and index documents; a known id replaces the earlier document. See ``Memory.add``."""
        check_collection_name(collection)
        documents = _checked(documents)
        for name in (collection, *(document.id for document in documents)):
            self.check_name("the id of a document", name)
        latest = {document.id: document.record(collection) for document in documents}  # the last one counts
        records = list(latest.values())
        version = self.journal.append(records)
        try:
            return self.index(records, collection, version)
        except KlawError as error:
            # They are in the journal: after an exception, the caller would add them again.
            kept = f"{len(latest):,} documents are kept, and will be found after the next `klaw index`: {error}"
            return IndexReport(notices=(kept,))

    def index_file(self, path: str | Path, source: str = "", collection: str = _MEMORY) -> IndexReport:
        """Store and index a text file as a document with the id of its name; see ``NewDocument.of_file``.

        Calling it again replaces the document. Raise RecordError if it is no text file in UTF-8.
        """
        return self.put([NewDocument.of_file(path, source, trust=OWNER)], collection)

    def get(self, ids: Sequence[str], collection: str = _MEMORY) -> tuple[NewDocument, ...]:
        """Return the existing documents with these ids, in the order of the ids."""
        records = self.journal.get([_key(collection, name) for name in ids])
        found = (records.get(_key(collection, name)) for name in ids)
        return tuple(NewDocument.parse(record) for record in found if record is not None)

    def delete(self, ids: Sequence[str], collection: str = _MEMORY, *, missing_ok: bool = False) -> int:
        """Forget documents; return their number. Raise NotFoundError, and forget nothing, if an id is unknown.

        Raise StoreError, also if they are forgotten, but a listener failed, which may have kept something.
        """
        known = self.journal.get([_key(collection, name) for name in ids])
        unknown = [name for name in ids if _key(collection, name) not in known]
        if unknown and not missing_ok:
            raise NotFoundError(
                f"the collection {collection!r} has no document {unknown[0]!r}",
                hint="pass missing_ok=True to ignore that",
            )
        keys = [_key(collection, name) for name in ids]
        paths = [f"{DOCUMENTS}/{name}" for name in ids]
        failure = self.host.remove_documents(paths, collection)
        count = self.journal.forget(keys)
        # An index run that has read the journal before may have written them again.
        with self.host.read() as snapshot:
            back = [path for path in paths if snapshot.record(collection, DOCUMENTS, path) is not None]
        if back:
            failure = self.host.remove_documents(back, collection) or failure
            self.follow(dict.fromkeys(keys), collection, None)  # or another writer has added them again
        with self.host.write() as transaction:
            transaction.forget_documents(collection, paths)
        if failure is not None:
            raise failure
        return count

    def sources(self) -> Sequence[Source]:
        """Return a source for each collection that has documents."""
        journal = self.journal
        if not journal.exists:
            return ()
        version = journal.version
        if version is None or version != self._collections[0]:
            names = dict.fromkeys((_MEMORY, *(key.partition("/")[0] for key in journal.ids())))
            self._collections = (version, tuple(names))
        return [self.source(name) for name in self._collections[1]]

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a document of a collection that may have this name."""
        super().check_record(record)
        self.host.check_writable(record.value["value"]["collection"])

    def refusal(self, record: Mapping[str, Any], /) -> str:
        """Return that the id of a document contains a secret, if so."""
        return self.secret_in_name("the id of a document", record["id"])


def _checked(documents: Iterable[NewDocument]) -> list[NewDocument]:
    """Return the documents as a list. Raise RecordError if an element is not a NewDocument."""
    given: object = documents
    if isinstance(given, NewDocument) or not isinstance(given, Iterable):
        raise RecordError("documents must be given as a list", hint="Memory.add([NewDocument(id, text)])")
    found: list[Any] = list(documents)
    if wrong := [item for item in found if not isinstance(item, NewDocument)]:
        raise RecordError(f"not a document: {quoted(wrong[0])}", hint="Memory.add([NewDocument(id, text)])")
    return found
