"""The options of the retriever ``lancedb``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen, validators


def _without_agent(_instance: object, _attribute: Any, value: str) -> None:
    if "{agent" in value.lower():
        raise ValueError(f"uri: {value!r}: the vectors of each agent are kept apart without it; leave {{agentId}} out")


@frozen
class LanceOptions:
    """Options of ``[[memory.retrieval]] type = "lancedb"``.

    ``uri`` is the database: a directory, relative to the data directory, or an address on object storage
    (``s3://bucket/prefix``, ``gs://``, ``az://``). ``storage`` has the options of the object storage by their LanceDB
    names, such as ``region``; without them, environment variables are used (``AWS_ACCESS_KEY_ID`` and so on). Up to
    ``buffer`` new vectors of a collection are buffered in klaw.db before they are appended to its table. A collection
    with at least ``approximate_from`` vectors gets an approximate index; with fewer, a search compares every vector.
    """

    uri: str = field(default="lancedb", validator=[validators.min_len(1), _without_agent])
    storage: Mapping[str, str] = field(factory=dict, repr=False)
    buffer: int = field(default=1_000, validator=[validators.ge(1), validators.le(100_000)])
    approximate_from: int = field(default=20_000, validator=validators.ge(256))
