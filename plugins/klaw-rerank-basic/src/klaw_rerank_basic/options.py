"""The options of the stages, without the modules that compute."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen, validators

_MAX_FACTOR = 1000.0


def _usable(_instance: object, attribute: Any, factors: Mapping[str, float]) -> None:
    for mark, factor in factors.items():
        if not 0 <= factor <= _MAX_FACTOR:  # also true of NaN
            raise ValueError(f"{attribute.name}: expected a number from 0 to {_MAX_FACTOR:g} for {mark!r}")


@frozen
class ImportanceOptions:
    """Options of the stage ``importance``.

    ``factors`` maps a source label (``MEMORY.md``, ``manual``) or the beginning of a path (``notes/archive/``) to a
    factor for the score. A path takes precedence over a label, and a longer path over a shorter one. Other chunks
    have the factor 1.
    """

    factors: Mapping[str, float] = field(
        factory=lambda: {"MEMORY.md": 1.2, "memory.md": 1.2, "manual": 1.2}, validator=_usable
    )


@frozen
class RecencyOptions:
    """Options of the stage ``recency``.

    ``half_life_days``: the age at which a chunk has lost half of the share that age can remove.
    ``floor``: the share of its score that the oldest chunk keeps; 1 makes age irrelevant.
    ``evergreen``: source labels (``MEMORY.md``, ``manual``) or beginnings of paths (``notes/reference/``) of chunks
    that never age.
    """

    half_life_days: float = field(default=30.0, validator=[validators.gt(0), validators.lt(float("inf"))])
    floor: float = field(default=0.8, validator=[validators.ge(0), validators.le(1)])
    evergreen: tuple[str, ...] = ("MEMORY.md", "memory.md")


@frozen
class MmrOptions:
    """Options of the stage ``mmr``.

    ``relevance``: the weight of relevance against novelty, the lambda of the paper; 1 changes nothing.
    """

    relevance: float = field(default=0.7, validator=[validators.gt(0), validators.le(1)])
