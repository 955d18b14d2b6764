"""Vectors as one bit a dimension to find candidates by, and as int8 to rank them by; all of it in klaw.db."""

from klaw_store_sqlitevec.quantized.stages import search
from klaw_store_sqlitevec.quantized.tables import (
    FEWEST_FOR_CENTRE,
    QuantizationForm,
    add,
    count,
    drop_form,
    key_digest,
    make_form,
    read_form,
    read_keys,
    remove,
)

__all__ = [
    "FEWEST_FOR_CENTRE",
    "QuantizationForm",
    "add",
    "count",
    "drop_form",
    "key_digest",
    "make_form",
    "read_form",
    "read_keys",
    "remove",
    "search",
]
