"""The options of the embedder ``onnx``."""

from __future__ import annotations

from attrs import field, frozen, validators


@frozen
class OnnxOptions:
    """Options of the embedder ``onnx``.

    ``model``: the name of a model that is installed or was added (``klaw models list``).
    ``path``: a directory that holds a model and its ``model.json``, instead of a name.
    ``threads``: how many batches are computed at once; 0 is one for each processor this process may use.
    ``batch_tokens``: how many tokens one batch holds, padding included.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=256, validator=validators.ge(1))
