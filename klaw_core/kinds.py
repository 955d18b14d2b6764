"""The kinds of components: one row each, from the hook that yields them to the table that configures them.

A new kind is a Protocol in :mod:`klaw_core.interfaces`, a hook in :mod:`klaw_core.hookspecs` and a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from attrs import frozen

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Chunker, Embedder, Fusion, Reranker
    from klaw_core.interfaces.converter import Converter
    from klaw_core.interfaces.extension import Extension
    from klaw_core.interfaces.index import Retriever
    from klaw_core.interfaces.language_model import LanguageModel
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Store

T_co = TypeVar("T_co", covariant=True)


@frozen(eq=False, repr=False)
class Kind(Generic[T_co]):
    """A kind of component; the type parameter is the Protocol that its components implement.

    ``table`` is the table under ``[memory]`` that selects a component by its ``type``, an array of tables if ``many``;
    empty for components that are configured by name: extensions in ``[extensions.NAME]``, converters in
    ``[memory.converters.NAME]``. ``required``: the table has a default, so that a memory always has such a component.
    ``methods`` must exist as soon as a component is built.
    """

    name: str
    hook: str
    table: str
    many: bool = False
    required: bool = False
    methods: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


STORE: Kind[Store[Any]] = Kind(
    "store", "klaw_stores", "store", required=True, methods=("enlist", "read", "write", "close")
)
CHUNKER: Kind[Chunker] = Kind("chunker", "klaw_chunkers", "chunking", required=True, methods=("split",))
# Embedders and rerankers are checked when they are called, because looking up an attribute may load the model.
EMBEDDER: Kind[Embedder] = Kind("embedder", "klaw_embedders", "embedding", required=True)
RETRIEVER: Kind[Retriever[Any]] = Kind(
    "retriever", "klaw_retrievers", "retrieval", many=True, required=True, methods=("search",)
)
FUSION: Kind[Fusion] = Kind("fusion", "klaw_fusions", "fusion", required=True, methods=("depth", "fuse"))
RERANKER: Kind[Reranker] = Kind("reranker", "klaw_rerankers", "reranking", many=True)
SOURCE: Kind[Source] = Kind("source", "klaw_sources", "sources", many=True, methods=("scan", "read"))
CONVERTER: Kind[Converter] = Kind("converter", "klaw_converters", "", methods=("convert",))
LANGUAGE_MODEL: Kind[LanguageModel] = Kind(
    "language model", "klaw_language_models", "language_model", methods=("complete",)
)
EXTENSION: Kind[Extension] = Kind("extension", "klaw_extensions", "")

#: Every kind, by name, in the order in which `klaw plugins` and the configuration show them.
KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind
    for kind in (STORE, CHUNKER, EMBEDDER, FUSION, RETRIEVER, RERANKER, SOURCE, CONVERTER, LANGUAGE_MODEL, EXTENSION)
}
