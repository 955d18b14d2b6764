"""The hook implementations of klaw-qdrant. The factory imports apsw and numpy, the first request imports httpx2."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, RetrievalError, hookimpl
from klaw_http import require_network
from klaw_qdrant.options import QdrantOptions

if TYPE_CHECKING:
    from klaw_store_sqlitevec.outside import OutsideVectors


@hookimpl
def klaw_retrievers() -> Iterable[Component[QdrantOptions, OutsideVectors]]:
    """Yield the retriever ``qdrant``."""
    yield Component("qdrant", QdrantOptions, _index, 2, "nearest neighbours on a Qdrant server")


def vectors(options: QdrantOptions, data_dir: Path) -> OutsideVectors:
    """Return the index of the memory in ``data_dir``. The server is asked at the first use."""
    from klaw_qdrant.tables import QdrantTables
    from klaw_store_sqlitevec.outside import OutsideVectors

    return OutsideVectors("qdrant", data_dir, options.buffer, partial(QdrantTables, options))


def _index(options: QdrantOptions, context: ComponentContext) -> OutsideVectors:
    require_network(options.url, context, "the url in [[memory.retrieval]]", RetrievalError)
    return vectors(options, context.data_dir)
