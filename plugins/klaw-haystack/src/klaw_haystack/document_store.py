"""``KlawDocumentStore``: documents of Haystack in a collection of a Klaw memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from haystack import Document, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils.filters import document_matches_filter

from klaw_core import Filters, Memory, NewDocument, SearchResult, metadata_part
from klaw_haystack.filters import check, conditions_of

Mode = Literal["hybrid", "fts", "vector"]

_PREFIX = "documents/"
#: The field of a payload that says when a document was written, in nanoseconds.
_ORDER = "written_at_ns"
_PAGE = 500
# Of a document several chunks may be found, and a filter may refuse some documents.
_CHUNKS_PER_DOCUMENT = 4


class KlawDocumentStore:
    """Documents found by words and by meaning, in one SQLite file; Klaw's own model embeds them.

        store = KlawDocumentStore("memory")
        store.write_documents([Document(content="The ferry leaves at seven.", meta={"year": 2026})])
        store.search("when does the ferry leave")

    ``data_dir`` is the memory's directory (default: the user's), ``collection`` where documents are kept. The memory is
    opened at the first use. Embeddings that documents bring are kept and returned; searches use Klaw's.
    """

    def __init__(self, data_dir: str | Path | None = None, collection: str = "haystack") -> None:
        self.data_dir = None if data_dir is None else str(data_dir)
        self.collection = collection
        self._opened: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The memory that keeps the documents. Raise klaw_core.KlawError if it cannot be opened."""
        if self._opened is None:
            self._opened = Memory.open(data_dir=self.data_dir)
        return self._opened

    def close(self) -> None:
        """Close the memory; the next use opens it again."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the store for the file of a pipeline."""
        written: dict[str, Any] = default_to_dict(self, data_dir=self.data_dir, collection=self.collection)
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KlawDocumentStore:
        """Return the store that :meth:`to_dict` described."""
        store: KlawDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return sum(1 for _ in self._ids())

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that match Haystack's filters, in the order of writing. Raise FilterError."""
        check(filters)
        kept = self.memory.get_by_ids(list(self._ids()), collection=self.collection)
        found = [_from_klaw(document) for document in sorted(kept, key=lambda document: int(document.payload[_ORDER]))]
        return [document for document in found if not filters or document_matches_filter(filters, document)]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Keep documents and return how many were written.

        NONE means FAIL: raise DuplicateDocumentError, and write nothing, if an id is known. Raise ValueError for
        anything but a list of documents.
        """
        given: object = documents
        if not isinstance(given, list) or not all(isinstance(item, Document) for item in given):
            raise ValueError("write_documents takes a list of haystack.Document")
        latest = {document.id: document for document in documents}
        if policy != DuplicatePolicy.OVERWRITE:
            known = {kept.id for kept in self.memory.get_by_ids(list(latest), collection=self.collection)}
            if known and policy != DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"the store has a document with the id {min(known)!r}")
            latest = {name: document for name, document in latest.items() if name not in known}
        self._keep(latest.values())
        return len(latest)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; ids that are not there are ignored."""
        self.memory.delete(document_ids, collection=self.collection, missing_ok=True)

    def delete_all_documents(self) -> None:
        """Delete every document."""
        self.delete_documents(list(self._ids()))

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match; return how many there were."""
        found = [document.id for document in self.filter_documents(filters)]
        self.delete_documents(found)
        return len(found)

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set fields of the metadata of the documents that match; return how many there were."""
        found = self.filter_documents(filters)
        changed = [Document.from_dict({**item.to_dict(flatten=False), "meta": {**item.meta, **meta}}) for item in found]
        self._keep(changed)
        return len(found)

    def search(
        self, query: str, top_k: int = 10, filters: dict[str, Any] | None = None, mode: Mode = "hybrid"
    ) -> list[Document]:
        """Return the documents that answer a question, best first, with scores that compare within one answer.

        Without a question, return the newest ones that pass the filters.

        ``meta`` also has the ``relevance``, from 0 to 1 and comparable between questions, and ``is_weak``, which is
        true if the document most likely does not answer the question. Comparisons that must all hold are checked inside
        the index, other filters on what it finds.
        """
        check(filters)
        if not (query.strip() or filters) or self.collection not in self.memory.collections():
            return []
        results = self.memory.search(
            query,
            top_k * _CHUNKS_PER_DOCUMENT,
            mode=mode,
            filters=Filters(path=_PREFIX, metadata=conditions_of(filters)),
            collection=self.collection,
            per_document=1,
            duplicates="keep",
        )
        best: dict[str, SearchResult] = {}
        for result in results:
            best.setdefault(result.path.removeprefix(_PREFIX), result)
        found = self.memory.get_by_ids(list(best), collection=self.collection)
        documents = [_from_klaw(kept, best[kept.id].score) for kept in found]
        kept = [item for item in documents if not filters or document_matches_filter(filters, item)][:top_k]
        # After the filters, which are about the user's own fields.
        return [replace(item, meta={**item.meta, **_judgement(best[item.id])}) for item in kept]

    def _keep(self, documents: Iterable[Document]) -> None:
        now = time.time_ns()
        kept = [_to_klaw(document, now + number) for number, document in enumerate(documents)]
        self.memory.add(kept, collection=self.collection)

    def _ids(self) -> Iterator[str]:
        if self.collection not in self.memory.collections():
            return
        after = ""
        while page := self.memory.documents(collection=self.collection, prefix=_PREFIX, after=after, limit=_PAGE):
            yield from (record.path.removeprefix(_PREFIX) for record in page)
            after = page[-1].path


def _judgement(result: SearchResult) -> dict[str, Any]:
    return {"relevance": result.relevance, "is_weak": result.is_weak}


def _to_klaw(document: Document, order: int) -> NewDocument:
    written = document.to_dict(flatten=False)
    payload = {key: value for key, value in written.items() if key not in {"id", "content", "score"} and value}
    payload |= {_ORDER: order, "has_content": document.content is not None}
    return NewDocument(document.id, document.content or "", metadata_part(document.meta), payload=payload)


def _from_klaw(kept: NewDocument, score: float | None = None) -> Document:
    fields = {key: value for key, value in kept.payload.items() if key not in {_ORDER, "has_content"}}
    content = kept.text if kept.payload["has_content"] else None
    document: Document = Document.from_dict({**fields, "id": kept.id, "score": score, "content": content})
    return document
