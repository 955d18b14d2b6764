"""Call fusions, and check the results of retrievers and fusions. A plugin that violates its Protocol is reported."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from operator import attrgetter, ge, index
from typing import TYPE_CHECKING, Any

from klaw_core.errors import PluginContractError, isolated, quoted
from klaw_core.values.search import Hit

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Fusion
    from klaw_core.values.search import ChunkSelection, Ranking

#: The maximum number of hits that a retriever is asked for; also the limit of sqlite-vec's vec0.
MAX_DEPTH = 4096
_MAX_KEY = 2**63
_KEY, _SCORE = attrgetter("key"), attrgetter("score")


def fusion_depth(fusion: Fusion, limit: int) -> int:
    """Return the number of hits to ask each retriever for. Raise PluginError if the fusion does not return one."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        depth: Any = fusion.depth(limit)
    if not isinstance(depth, int) or depth < 1:
        raise PluginContractError(f"{who} asked for {quoted(depth)} hits of each retriever")
    return min(int(depth), MAX_DEPTH)


def fuse(fusion: Fusion, rankings: Sequence[Ranking], limit: int) -> Sequence[Hit]:
    """Fuse rankings into one of at most ``limit`` hits. Raise PluginError if the fusion fails."""
    who = f"the fusion {type(fusion).__name__}"
    with isolated(who):
        fused = tuple(fusion.fuse(rankings, limit))
        check_hits(fused, limit, None, who)
    return fused


def check_hits(hits: Sequence[Any], depth: int, within: ChunkSelection | None, who: str) -> None:
    """Raise PluginContractError unless the hits are Hits with distinct, allowed keys, in order, and not too many."""
    kinds = set(map(type, hits))
    numbers = list(map(index, map(_KEY, hits))) if all(issubclass(kind, Hit) for kind in kinds) else None
    if numbers is None or (numbers and not -_MAX_KEY < min(numbers) <= max(numbers) < _MAX_KEY):
        raise PluginContractError(f"{who} returned something other than Hits, or a key outside int64")
    scores = list(map(_SCORE, hits))
    keys = set(numbers)
    ordered = all(map(ge, scores, scores[1:]))
    if (
        not (ordered and all(map(math.isfinite, scores)) and _allowed(keys, within))
        or len(keys) != len(hits)
        or len(hits) > depth
    ):
        raise PluginContractError(
            f"{who} returned hits that are unsorted, repeated, not finite, not allowed or too many"
        )


def _allowed(keys: Collection[int], within: ChunkSelection | None) -> bool:
    """Return whether all keys are selected.

    The keys of the selection are not listed, because that may transfer them from a server.
    """
    return not keys or within is None or len(within.among(sorted(keys))) == len(keys)
