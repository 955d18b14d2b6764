"""The options of the embedder ``sentence-transformers``."""

from __future__ import annotations

from attrs import field, frozen, validators

DEVICES = ("auto", "cuda", "xpu", "mps", "cpu")
PRECISIONS = ("auto", "float16", "bfloat16", "float32")


@frozen
class SentenceTransformersOptions:
    """Options of the embedder ``sentence-transformers``.

    ``model``: the name of a model that was downloaded from the hub, such as ``BAAI/bge-small-en-v1.5``.
    ``path``: a directory with a model; used instead of ``model``, whose last part names the vector space.
    ``device``: ``auto`` (the first of the others that is there), ``cuda`` (NVIDIA, and AMD with ROCm), ``xpu`` (Intel),
    ``mps`` (Apple), ``cpu``.
    ``precision``: ``auto`` (float16 on a graphics card, float32 on the CPU), ``float16``, ``bfloat16``, ``float32``.
    ``batch_tokens``: the maximum number of tokens per batch, including padding.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    device: str = field(default="auto", validator=validators.in_(DEVICES))
    precision: str = field(default="auto", validator=validators.in_(PRECISIONS))
    batch_tokens: int = field(default=32_768, validator=validators.ge(1))
