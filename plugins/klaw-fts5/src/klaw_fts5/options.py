"""The options of the retriever ``fts5``."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

_is_weight = validators.and_(validators.ge(0.0), validators.le(1000.0))
_SEARCHES = ("auto", "exact", "packed")


@frozen
class Fts5Options:
    """Options of ``type = "fts5"``.

    ``heading_weight``, ``text_weight`` and ``context_weight`` are BM25's column weights for a chunk's heading path, its
    text, and the text just before it (https://sqlite.org/fts5.html#the_bm25_function). ``pair_weight`` is the weight of
    adjacent words of the question that are also adjacent in the chunk; 0 disables this.

    ``search`` selects the index for searches: FTS5 (``"exact"``), packed postings (``"packed"``), or FTS5 for up to
    ``exact_up_to`` chunks and packed postings above that (``"auto"``).
    """

    heading_weight: float = field(default=3.0, validator=_is_weight)
    text_weight: float = field(default=1.0, validator=_is_weight)
    context_weight: float = field(default=0.5, validator=_is_weight)
    pair_weight: float = field(default=0.25, validator=_is_weight)
    search: Literal["auto", "exact", "packed"] = field(default="auto", validator=validators.in_(_SEARCHES))
    exact_up_to: int = field(default=5_000, validator=validators.ge(0))
