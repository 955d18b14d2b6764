"""LanceDB's hybrid search: its full-text index, its vectors, its reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

import lancedb
import pyarrow as pa
from corpus import Embedded, Matrix, Vector
from lancedb.rerankers import RRFReranker

from peers import Peer


class Lance(Peer):
    """Without an index of vectors: exact, and what one gets."""

    summary = "LanceDB hybrid, flat vectors"

    def build(self, texts: Sequence[str], vectors: Matrix) -> None:
        """Write the table and index its words."""
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        rows = pa.table({"number": pa.array(range(len(texts))), "text": pa.array(texts), "vector": column})
        table = lancedb.connect(str(self.place)).create_table("chunks", rows)
        table.create_fts_index("text")
        self._index_vectors(table)

    def open(self, questions: Embedded) -> None:
        """Open the table."""
        del questions
        self._table = lancedb.connect(str(self.place)).open_table("chunks")
        self._fusion = RRFReranker()

    def search(self, question: str, vector: Vector, limit: int) -> Sequence[str]:
        """Ask for both, fused."""
        query = self._table.search(query_type="hybrid").vector(vector).text(question).distance_type("cosine")
        rows = query.rerank(self._fusion).limit(limit).select(["text"]).to_list()
        return [row["text"] for row in rows]

    def nearest(self, question: str, vector: Vector, limit: int) -> Sequence[int]:
        """Ask for vectors only."""
        del question
        rows = self._table.search(vector).distance_type("cosine").limit(limit).select(["number"]).to_list()
        return [row["number"] for row in rows]

    def _index_vectors(self, table: lancedb.table.Table) -> None:
        """Leave the vectors as they are."""


class LanceIvf(Lance):
    """With the index that LanceDB makes by default."""

    summary = "LanceDB hybrid, IVF-PQ as by default"

    def _index_vectors(self, table: lancedb.table.Table) -> None:
        table.create_index(metric="cosine", vector_column_name="vector")
