"""What journals hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen


@frozen
class BrokenRecord:
    """A part of a journal that is not a record, and the reason.

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


@frozen
class LogRecord:
    """An object of a log and where its line stands: bytes ``offset`` (included) to ``end`` (excluded, with its end)."""

    offset: int
    end: int
    value: dict[str, Any]


@frozen
class BadLine:
    """A line without a record, or (with ``offset == end``) a log that cannot be read from ``offset`` on.

    ``torn``: the last line has no end yet. It may be one that is being written just now, so it is not
    consumed: ``end`` is ``offset``. Reading goes on at ``end``, as after a :class:`LogRecord`.
    ``cut``: it ends before its JSON does, as a torn line that a later append has closed off.
    """

    location: str
    offset: int
    end: int
    reason: str
    torn: bool = False
    cut: bool = False

    @property
    def ends_reading(self) -> bool:
        """Whether the log could not be read any further, so that what is missing after it says nothing."""
        return self.offset == self.end and not self.torn

    def __str__(self) -> str:
        return f"{self.location}, byte {self.offset:,}: {self.reason}"


#: What one line gives.
LogLine: TypeAlias = LogRecord | BadLine
#: A record, or what makes it from the offset that its line will have.
Appendable: TypeAlias = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]
