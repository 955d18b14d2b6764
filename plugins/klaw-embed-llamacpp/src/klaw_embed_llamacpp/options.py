"""The options of the embedder ``llamacpp``."""

from __future__ import annotations

from attrs import field, frozen, validators

_at_least_one = validators.optional(validators.ge(1))


@frozen
class LlamaCppOptions:
    """Options of the embedder ``llamacpp``.

    ``model``: the name of a model that was added with ``klaw models add``.
    ``path``: a ``.gguf`` file, or a directory with one and its ``model.json``; used instead of ``model``.
    ``pooling``: the method that combines the tokens' vectors: ``mean``, ``cls`` or ``last``; ``auto`` uses the model's.
    ``query_prefix``, ``document_prefix``: the text before a query and before a document (default: the manifest's, or
    none).
    ``max_tokens``: tokens of a text per window (default: the model's maximum, up to 2,048 with special tokens).
    ``dimension``: keep only this many numbers of each vector, if the model was trained for it (Matryoshka; default:
    all).
    ``threads``: the number of threads; 0 means one less than the number of processors that this process may use.
    """

    model: str = field(default="embeddinggemma-300M", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    pooling: str = field(default="auto", validator=validators.in_(("auto", "mean", "cls", "last")))
    query_prefix: str | None = None
    document_prefix: str | None = None
    max_tokens: int | None = field(default=None, validator=_at_least_one)
    dimension: int | None = field(default=None, validator=_at_least_one)
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
