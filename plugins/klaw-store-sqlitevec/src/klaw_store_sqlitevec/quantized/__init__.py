"""Quantized vectors in klaw.db: one bit per dimension to find candidates, and int8 to rank them."""

from klaw_store_sqlitevec.quantized.searching import search, typical_similarity
from klaw_store_sqlitevec.quantized.tables import (
    MIN_FOR_CENTRE,
    Quantization,
    add,
    count,
    create_quantization,
    drop_quantization,
    key_digest,
    read_keys,
    read_quantization,
    remove,
)

__all__ = [
    "MIN_FOR_CENTRE",
    "Quantization",
    "add",
    "count",
    "create_quantization",
    "drop_quantization",
    "key_digest",
    "read_keys",
    "read_quantization",
    "remove",
    "search",
    "typical_similarity",
]
