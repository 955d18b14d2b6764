"""The options of the embedder ``openvino``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_embed_openvino.processor import PRECISIONS


@frozen
class OpenVinoOptions:
    """Options of the embedder ``openvino``.

    ``model``: the name of a model that is installed or was added (``klaw models list``).
    ``path``: a directory that holds a model and its ``model.json``, instead of a name.
    ``precision``: ``auto`` (what the processor is fast in), ``bfloat16``, ``int8`` or ``float32``.
    ``threads``: how many batches are computed at once; 0 is one for each processor this process may use.
    ``batch_tokens``: how many tokens one batch holds, padding included.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    precision: str = field(default="auto", validator=validators.in_(("auto", *PRECISIONS)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=512, validator=validators.ge(1))
