"""The vectors as one array in memory: alone, and beside tantivy's index of words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from corpus import Embedded, Matrix, Vector

from peers import DEPTH, Peer, fuse

if TYPE_CHECKING:
    import tantivy


class Numpy(Peer):
    """One matrix product, exact; texts in memory as well."""

    summary = "float32 matrix in memory, no words"
    ranks_words = False

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Write the array and the texts."""
        np.save(self.place / "vectors.npy", vectors)
        (self.place / "texts.json").write_text(json.dumps(list(texts)))

    def open(self, questions: Embedded) -> None:
        """Read them."""
        del questions
        self._vectors = np.load(self.place / "vectors.npy")
        self._texts = json.loads((self.place / "texts.json").read_text())

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Return the texts of the nearest vectors."""
        return [self._texts[number] for number in self.nearest(question, vector, limit)]

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Multiply, select, sort."""
        del question
        scores = self._vectors @ vector
        best = np.argpartition(scores, -limit)[-limit:]
        return [int(number) for number in best[np.argsort(-scores[best])]]


class TantivyNumpy(Numpy):
    """Tantivy's BM25 beside the matrix, and reciprocal rank fusion."""

    summary = "tantivy + float32 matrix in memory, RRF"
    ranks_words = True

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Write the array, and index the texts' stems; the texts are stored there."""
        import tantivy

        np.save(self.place / "vectors.npy", vectors)
        writer = self._index(new=True).writer(heap_size=256_000_000, num_threads=1)
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(number=number, content=text))
        writer.commit()
        writer.wait_merging_threads()

    def open(self, questions: Embedded) -> None:
        """Open the index and read the array."""
        del questions
        self._vectors = np.load(self.place / "vectors.npy")
        self._words = self._index(new=False)
        self._searcher = self._words.searcher()

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Ask both, fuse, and fetch the texts."""
        terms = " ".join(re.findall(r"\w+", question.lower()))
        found = self._searcher.search(self._words.parse_query(terms, ["content"]), DEPTH).hits
        documents = {}
        for _, address in found:
            document = self._searcher.doc(address)
            documents[document["number"][0]] = document["content"][0]
        best = fuse([self.nearest(question, vector, DEPTH), list(documents)], limit)
        return [documents[number] if number in documents else self._text(number) for number in best]

    def _text(self, number: int) -> str:
        import tantivy

        query = tantivy.Query.term_query(self._words.schema, "number", number)
        text: str = self._searcher.doc(self._searcher.search(query, 1).hits[0][1])["content"][0]
        return text

    def _index(self, *, new: bool) -> tantivy.Index:
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("number", stored=True, indexed=True)
        schema.add_text_field("content", stored=True, tokenizer_name="en_stem")
        directory = self.place / "tantivy"
        directory.mkdir(exist_ok=True)
        return tantivy.Index(schema.build(), path=str(directory), reuse=not new)
