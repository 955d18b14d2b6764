"""Klaw through its public ``Memory``; its model is the known vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from corpus import Embedded, Matrix, Vector
from known import Bench, Table, text_number

from peers import Peer


class Klaw(Peer):
    """The default configuration."""

    summary = "Memory.search, default configuration"
    retrieval: ClassVar[Sequence[Table]] = ()

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Run ``memory.index()``."""
        known = dict(zip(texts, vectors, strict=True))
        with Bench(self.place, known, texts, retrieval=self.retrieval).open() as memory:
            memory.index()

    def open(self, questions: Embedded) -> None:
        """Open the memory."""
        known = dict(zip(questions.texts, questions.vectors, strict=True))
        self._memory = Bench(self.place, known, retrieval=self.retrieval).open()

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Search by words and vectors."""
        del vector
        return [result.content for result in self._memory.search(question, limit).results]

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Search by vectors only."""
        del vector
        results = self._memory.search(question, limit, mode="vector").results
        return [text_number(result.path, result.start_line) for result in results]


class KlawExact(Klaw):
    """Both retrievers exhaustive: what the default may differ from, and the form for small collections."""

    summary = "Memory.search, both retrievers exact"
    retrieval = ({"type": "sqlite-vec", "search": "exact"}, {"type": "fts5", "search": "exact"})
