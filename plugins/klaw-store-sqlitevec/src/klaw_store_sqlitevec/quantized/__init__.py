"""Vectors as one bit a dimension to find candidates by, and as int8 to rank them by; all of it in klaw.db."""

from klaw_store_sqlitevec.quantized.searching import search, typical_similarity
from klaw_store_sqlitevec.quantized.tables import (
    FEWEST_FOR_CENTRE,
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
    "FEWEST_FOR_CENTRE",
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
