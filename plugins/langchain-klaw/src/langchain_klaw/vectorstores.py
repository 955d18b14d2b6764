"""``KlawVectorStore``: documents of LangChain in a collection of a Klaw memory, found by words and by meaning."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from klaw_core import Filters, Memory, SearchResult, metadata_part, unit_rows
from klaw_core.cli.kit import visible, visible_json
from klaw_journals import NewDocument
from langchain_klaw.embeddings import KlawEmbeddings, open_memory, report_problems
from langchain_klaw.filters import conditions_of

_PREFIX = "documents/"
_PAGE = 500
# Chunks requested per document, because several chunks of a long document may match.
_CHUNKS_PER_DOCUMENT = 3


class KlawVectorStore(VectorStore):
    """A vector store that also searches by words (``mode="hybrid"``) and keeps everything in one SQLite file.

        store = KlawVectorStore(data_dir="memory")
        store.add_texts(["The ferry leaves at seven."], [{"year": 2026}], ids=["ferry"])
        store.similarity_search("when does the ferry leave", k=1, filter={"year": {"$gte": 2026}})

    ``embedding`` replaces the configured embedder; without it Klaw's own model runs locally. ``memory`` is a memory
    that the caller opens and closes; otherwise the memory in ``data_dir`` is opened. Documents are in ``collection``.
    ``max_tokens`` is the maximum length of a text for the model of ``embedding``. The store can be used from several
    threads. The asynchronous methods run in LangChain's executor.

    Filters are mappings: ``{"key": value}``, ``{"key": {"$gte": 3}}`` with ``$eq $ne $gt $gte $lt $lte $in``, and
    ``{"$and": [...]}``. They are applied inside the index, before the limit. Metadata can be any JSON values; filters
    support strings, numbers, booleans and lists of strings.
    """

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        memory: Memory | None = None,
        data_dir: str | Path | None = None,
        collection: str = "langchain",
        mode: Literal["hybrid", "fts", "vector"] = "hybrid",
        max_tokens: int = 512,
    ) -> None:
        self._owned = open_memory(data_dir, embedding, max_tokens) if memory is None else None
        self._memory = memory or self._owned_memory
        self._embeddings = embedding
        self._collection = collection
        self._mode = mode

    @property
    def _owned_memory(self) -> Memory:
        assert self._owned is not None
        return self._owned

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory, if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    @property
    def memory(self) -> Memory:
        """The memory that keeps the documents."""
        return self._memory

    @property
    def embeddings(self) -> Embeddings:
        """The model: the given one, or Klaw's own."""
        return self._embeddings or KlawEmbeddings(self._memory)

    def add_documents(self, documents: list[Document], ids: list[str] | None = None, **_kwargs: Any) -> list[str]:
        """Store documents and return their ids; a document with a known id replaces the old one.

        ``ids`` replaces the ids of the documents; a document without an id gets one. Raise ValueError if there are
        more or fewer ids than documents, and klaw_core.RecordError for a document that cannot be stored.
        """
        if ids is not None and len(ids) != len(documents):
            raise ValueError(f"{len(documents)} documents and {len(ids)} ids were given")
        names = ids or [document.id or str(uuid.uuid4()) for document in documents]
        kept = [
            NewDocument(
                name, document.page_content, metadata_part(document.metadata), payload=document.metadata or None
            )
            for name, document in zip(names, documents, strict=True)
        ]
        report_problems(self._memory.add(kept, collection=self._collection))
        return names

    def delete(self, ids: list[str] | None = None, **_kwargs: Any) -> bool:
        """Delete documents, or all documents if ``ids`` is None; unknown ids are ignored."""
        names = list(self._ids()) if ids is None else ids
        self._memory.delete(names, collection=self._collection, missing_ok=True)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents of these ids that there are."""
        found = self._memory.get_by_ids(ids, collection=self._collection)
        return [_document(kept) for kept in found]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[Document]:
        """Return the k documents that answer a question, best first."""
        return [document for document, _ in self._search(query, k, filter)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return documents with their scores, higher is better.

        With vectors alone a score is the cosine; hybrid scores are comparable only within one answer.
        """
        return [(document, self._score(result)) for document, result in self._search(query, k, filter)]

    def _similarity_search_with_relevance_scores(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[tuple[Document, float]]:
        found = self._search(query, k, filter)
        return [(document, result.relevance or 0.0) for document, result in found]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[Document]:
        """Return the k documents nearest to a vector."""
        return [document for document, _ in self._near(embedding, k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[Document]:
        """Return k of the best ``fetch_k`` documents, chosen to differ from each other (Carbonell, Goldstein 1998)."""
        found = [document for document, _ in self._search(query, fetch_k, filter)]
        return self._diverse(self.embeddings.embed_query(query), found, k, lambda_mult)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # their name
        **_kwargs: Any,
    ) -> list[Document]:
        """Return k of the ``fetch_k`` documents nearest to a vector, chosen to differ from each other."""
        found = [document for document, _ in self._near(embedding, fetch_k, filter)]
        return self._diverse(embedding, found, k, lambda_mult)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Open a store with the other arguments of the class, and add texts to it."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def _search(self, query: str, k: int, where: Mapping[str, Any] | None) -> list[tuple[Document, SearchResult]]:
        if not (query.strip() or where) or not self._has_collection():
            return []
        return self._found(query, k, where, None)

    def _near(
        self, embedding: Sequence[float], k: int, where: Mapping[str, Any] | None
    ) -> list[tuple[Document, SearchResult]]:
        if not self._has_collection():
            return []
        return self._found("vector", k, where, unit_rows(np.asarray([embedding], np.float32), "the given vector")[0])

    def _found(
        self, query: str, k: int, where: Mapping[str, Any] | None, vector: Any
    ) -> list[tuple[Document, SearchResult]]:
        results = self._memory.search(
            query,
            k * _CHUNKS_PER_DOCUMENT,
            mode=self._mode if vector is None else "vector",
            filters=Filters(path=_PREFIX, metadata=conditions_of(where)),
            collection=self._collection,
            per_document=1,
            vector=vector,
            duplicates="keep",
        )
        best: dict[str, SearchResult] = {}
        for result in results:
            best.setdefault(result.path.removeprefix(_PREFIX), result)
        names = list(best)[:k]
        return [(document, best[document.id or ""]) for document in self.get_by_ids(names)]

    def _score(self, result: SearchResult) -> float:
        return result.similarity if self._mode == "vector" and result.similarity is not None else result.score

    def _diverse(self, embedding: list[float], found: list[Document], k: int, lambda_mult: float) -> list[Document]:
        if not found:
            return []
        rows = self.embeddings.embed_documents([document.page_content for document in found])
        chosen = maximal_marginal_relevance(np.asarray(embedding), rows, lambda_mult, k)
        return [found[number] for number in chosen]

    def _has_collection(self) -> bool:
        return self._collection in self._memory.collections()

    def _ids(self) -> Iterator[str]:
        if not self._has_collection():
            return
        after = ""
        while page := self._memory.documents(collection=self._collection, prefix=_PREFIX, after=after, limit=_PAGE):
            yield from (record.path.removeprefix(_PREFIX) for record in page)
            after = page[-1].path


def _document(kept: NewDocument) -> Document:
    return Document(id=kept.id, page_content=kept.text, metadata=kept.payload or {})


def documents_of(results: Iterable[SearchResult]) -> list[Document]:
    """Return results as documents, with location and explanation as metadata."""
    return [
        Document(
            id=result.chunk_id,
            page_content=visible(result.content),
            metadata=visible_json(
                {
                    **result.metadata,
                    "path": result.path,
                    "start_line": result.start_line,
                    "end_line": result.end_line,
                    "heading": list(result.heading),
                    "origin": result.origin,
                    "source": result.source,
                    "created_at": result.created_at.isoformat(),
                    "score": result.score,
                    "relevance": result.relevance,
                    "is_weak": result.is_weak,
                    "trust": result.trust,
                }
            ),
        )
        for result in results
    ]
