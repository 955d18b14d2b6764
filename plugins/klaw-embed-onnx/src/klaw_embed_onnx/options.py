"""The options of the embedder ``onnx``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class OnnxOptions:
    """Options of the embedder ``onnx``.

    ``model``: the name of an installed or added model (``klaw models list``).
    ``path``: a directory with a model and its ``model.json``; used instead of ``model``.
    ``threads``: the number of parallel batches; 0 means one for each processor that this process may use.
    ``batch_tokens``: the maximum number of tokens per batch, including padding.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=256, validator=validators.ge(1))
