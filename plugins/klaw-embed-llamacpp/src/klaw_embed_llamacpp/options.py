"""The options of the embedder ``llamacpp``."""

from __future__ import annotations

from attrs import field, frozen, validators

_at_least_one = validators.optional(validators.ge(1))


@frozen
class LlamaCppOptions:
    """Options of the embedder ``llamacpp``.

    ``model``: the name of a model that ``klaw models add`` has fetched.
    ``path``: a ``.gguf`` file, or a directory that holds one and its ``model.json``, instead of a name.
    ``pooling``: how tokens become one vector: ``mean``, ``cls`` or ``last``; ``auto`` is what the model says.
    ``query_prefix``, ``document_prefix``: what stands before a text; by default what the manifest says, or nothing.
    ``max_tokens``: tokens of a text in one window; by default what the model has room for, up to 2,048 in all.
    ``dimension``: keep this many numbers of each vector, for a model trained so (Matryoshka); by default all.
    ``threads``: how many threads compute; 0 is one for each processor that this process may use but one.
    """

    model: str = field(default="embeddinggemma-300M", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    pooling: str = field(default="auto", validator=validators.in_(("auto", "mean", "cls", "last")))
    query_prefix: str | None = None
    document_prefix: str | None = None
    max_tokens: int | None = field(default=None, validator=_at_least_one)
    dimension: int | None = field(default=None, validator=_at_least_one)
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
