"""Indexes of vectors outside of the store's transactions: what they share, so that an engine needs few methods.

A plugin passes an :class:`OutsideIndex` to :class:`OutsideVectors`, which is the index that the store knows.
"""

from klaw_store_sqlitevec.outside.engine import Changes, Found, OutsideIndex, TableRecord, Wanted
from klaw_store_sqlitevec.outside.index import OutsideVectors

__all__ = ["Changes", "Found", "OutsideIndex", "OutsideVectors", "TableRecord", "Wanted"]
