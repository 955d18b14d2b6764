"""The hook implementations of klaw-lancedb. The factory imports apsw and numpy, the first search imports LanceDB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from klaw_core import Component, ComponentContext, hookimpl
from klaw_lancedb.options import LanceOptions


@hookimpl
def klaw_retrievers() -> Iterable[Component[LanceOptions, Any]]:
    """Yield the retriever ``lancedb``."""
    yield Component("lancedb", LanceOptions, _index, 2, "nearest neighbours in LanceDB, also on object storage")


def _index(options: LanceOptions, context: ComponentContext) -> Any:
    from klaw_lancedb.index import LanceIndex

    return LanceIndex(options, context.data_dir, context.agent)
