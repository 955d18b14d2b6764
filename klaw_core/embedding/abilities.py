"""What an embedder can say of itself beyond what each must."""

from __future__ import annotations

from klaw_core.interfaces.components import BatchingEmbedder, Embedder, NamedEmbedder

#: Texts of a call for an embedder that does not say how many it takes.
TEXTS_PER_CALL = 64


def is_remote(embedder: Embedder) -> bool:
    """Return whether an embedder asks a server."""
    return bool(getattr(embedder, "remote", False))  # to check the Protocol takes some dozens of times as long


def texts_per_call(embedder: Embedder) -> int:
    """Return how many texts an embedder takes at once."""
    return embedder.texts_per_call if isinstance(embedder, BatchingEmbedder) else TEXTS_PER_CALL


def model_name(embedder: Embedder) -> str:
    """Return the name of an embedder's model, where it is known without asking; otherwise empty."""
    return embedder.model if isinstance(embedder, NamedEmbedder) else ""
