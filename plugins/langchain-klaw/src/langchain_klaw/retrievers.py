"""``KlawRetriever``: notes, conversations and saved texts of a memory, for a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from klaw_core import Filters, Memory
from langchain_klaw.filters import conditions_of
from langchain_klaw.vectorstores import documents_of


class KlawRetriever(BaseRetriever):
    """The chunks of a memory that answer a question; its metadata have file, lines and relevance.

    with Memory.open() as memory:
        memory.index("~/notes")
        KlawRetriever(memory=memory, k=5).invoke("what did we decide about sign-in")
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    k: int = Field(default=4, ge=1)
    mode: Literal["hybrid", "fts", "vector"] = "hybrid"
    collection: str | Sequence[str] | None = None
    filter: dict[str, Any] = Field(default_factory=dict)
    min_relevance: float | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        results = self.memory.search(
            query,
            k or self.k,
            mode=self.mode,
            collection=self.collection,
            filters=Filters(metadata=conditions_of(self.filter)),
            min_relevance=self.min_relevance,
        )
        return documents_of(results)
