"""What a journal of records holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class BrokenRecord:
    """A part of a journal that holds no record, and why.

    ``location`` and ``position`` say where it is: a file and a byte in it, for a journal in a file. ``torn``: a crash
    cut it short, so that it was never acknowledged.
    """

    location: str
    position: int
    reason: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.location}, byte {self.position:,}: {self.reason}"


@frozen
class Replay:
    """The records of a journal by id, without those that were forgotten, in the order in which ids first came.

    ``unfinished`` are ids that were forgotten while their bytes are still there, because a crash came between.
    """

    records: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    broken: tuple[BrokenRecord, ...] = ()
    unfinished: tuple[str, ...] = ()
