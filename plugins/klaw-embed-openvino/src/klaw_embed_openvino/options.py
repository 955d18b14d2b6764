"""The options of the embedder ``openvino``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_embed_openvino.processor import PRECISIONS


@frozen
class OpenVinoOptions:
    """Options of the embedder ``openvino``.

    ``model``: the name of an installed or added model (``klaw models list``).
    ``path``: a directory with a model and its ``model.json``; used instead of ``model``.
    ``precision``: ``auto`` (the fastest on this processor), ``bfloat16``, ``int8`` or ``float32``.
    ``threads``: the number of parallel batches; 0 means one for each processor that this process may use.
    ``batch_tokens``: the maximum number of tokens per batch, including padding.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    precision: str = field(default="auto", validator=validators.in_(("auto", *PRECISIONS)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=512, validator=validators.ge(1))
