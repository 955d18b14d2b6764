"""Chroma's collection of vectors. Its search for words is a filter that ranks nothing, so it takes no part."""

from __future__ import annotations

from collections.abc import Sequence

import chromadb
from chromadb.config import Settings
from corpus import Embedded, Matrix, Vector

from peers import Peer

_BATCH = 5000


class Chroma(Peer):
    """The default HNSW index, with cosine distance."""

    summary = "Chroma HNSW, no words"
    ranks_words = False

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Add everything, batch by batch."""
        collection = self._client().create_collection(
            "chunks", metadata={"hnsw:space": "cosine", "hnsw:num_threads": 1}
        )
        for first in range(0, len(texts), _BATCH):
            part = range(first, min(first + _BATCH, len(texts)))
            documents = [texts[number] for number in part]
            collection.add(ids=list(map(str, part)), embeddings=vectors[part.start : part.stop], documents=documents)

    def open(self, questions: Embedded) -> None:
        """Open the collection."""
        del questions
        self._collection = self._client().get_collection("chunks", embedding_function=None)

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Return the texts of the nearest vectors."""
        del question
        return self._collection.query(vector[None], n_results=limit, include=["documents"])["documents"][0]

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Ask for the nearest vectors."""
        del question
        return list(map(int, self._collection.query(vector[None], n_results=limit, include=[])["ids"][0]))

    def _client(self) -> chromadb.ClientAPI:
        return chromadb.PersistentClient(str(self.place), Settings(anonymized_telemetry=False))
