"""What a journal of records holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class BrokenRecord:
    """A line of a journal that holds no record: where it is, and why. ``torn``: a crash cut it short."""

    where: str
    reason: str
    torn: bool = False


@frozen
class Replay:
    """The records of a journal by id, without those that were forgotten, in the order in which ids first came.

    ``unfinished`` are ids that were forgotten while their bytes are still there, because a crash came between.
    """

    records: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    broken: tuple[BrokenRecord, ...] = ()
    unfinished: tuple[str, ...] = ()
