"""``KlawHybridRetriever``: the component that a pipeline asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from klaw_core.cli.kit import visible, visible_json
from klaw_haystack.document_store import KlawDocumentStore, Mode


@component
class KlawHybridRetriever:
    """Finds documents of a :class:`KlawDocumentStore` by words and by meaning.

        pipeline.add_component("retriever", KlawHybridRetriever(store, top_k=5))
        pipeline.run({"retriever": {"query": "when does the ferry leave"}})

    Filters of a run take the place of the component's own.
    """

    def __init__(
        self,
        document_store: KlawDocumentStore,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        mode: Mode = "hybrid",
    ) -> None:
        self.document_store = document_store
        self.top_k = top_k
        self.filters = filters
        self.mode: Mode = mode

    def to_dict(self) -> dict[str, Any]:
        """Return the settings of the component for the file of a pipeline."""
        store = self.document_store.to_dict()
        written: dict[str, Any] = default_to_dict(
            self, document_store=store, top_k=self.top_k, filters=self.filters, mode=self.mode
        )
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KlawHybridRetriever:
        """Return the component that :meth:`to_dict` described."""
        parameters = data["init_parameters"]
        store = KlawDocumentStore.from_dict(parameters["document_store"])
        made = {**data, "init_parameters": {**parameters, "document_store": store}}
        retriever: KlawHybridRetriever = default_from_dict(cls, made)
        return retriever

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return ``documents``, best first, without characters that nobody sees; the store's own are as written."""
        found = self.document_store.search(query, top_k or self.top_k, filters or self.filters, self.mode)
        return {"documents": [_shown(each) for each in found]}


def _shown(document: Document) -> Document:
    return replace(document, content=document.content and visible(document.content), meta=visible_json(document.meta))
