"""Read the optional attributes of an embedder."""

from __future__ import annotations

from klaw_core.interfaces.components import Embedder

#: Texts per call for an embedder that does not declare a number.
TEXTS_PER_CALL = 64


def is_remote(embedder: Embedder) -> bool:
    """Return whether an embedder calls a server."""
    return bool(getattr(embedder, "remote", False))


def texts_per_call(embedder: Embedder) -> int:
    """Return how many texts an embedder accepts per call."""
    return int(getattr(embedder, "texts_per_call", TEXTS_PER_CALL))


def model_name(embedder: Embedder) -> str:
    """Return the name of an embedder's model; empty if it is not known without loading it or calling a server."""
    return str(getattr(embedder, "model", ""))
