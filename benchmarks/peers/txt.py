"""txtai's hybrid index: Faiss, its own BM25 in memory, texts in SQLite."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from corpus import Embedded, Matrix, Vector

os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"  # or it does not load an index whose vectors come from outside

from txtai import Embeddings

from peers import Peer

# Text to vector. txtai stores the name of the function that embeds, so it must stand in a module.
_known: dict[str, Vector] = {}


def known_vectors(texts: Sequence[str]) -> Matrix:
    """Return the vectors of texts that are known."""
    return np.stack([_known[text] for text in texts])


class Txtai(Peer):
    """Its defaults, with vectors from outside."""

    summary = "txtai hybrid, content in SQLite"

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Index everything and save it."""
        _known.update(zip(texts, vectors, strict=True))
        index = Embeddings(method="external", transform=f"{__name__}.known_vectors", hybrid=True, content=True)
        index.index((number, text, None) for number, text in enumerate(texts))
        index.save(str(self.place / "index"))

    def open(self, questions: Embedded) -> None:
        """Load it."""
        _known.update(zip(questions.texts, questions.vectors, strict=True))
        self._index = Embeddings()
        self._index.load(str(self.place / "index"))

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Ask for both, with equal weights."""
        del vector
        return [row["text"] for row in self._index.search(question, limit)]

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Ask Faiss only: the words weigh nothing."""
        del vector
        return [int(row["id"]) for row in self._index.search(question, limit, weights=1)]
