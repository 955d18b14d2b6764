"""One object of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Record:
    """What an extension exports: a JSON object, and its kind, which says which extension imports it."""

    kind: str
    value: Mapping[str, Any] = field(repr=False)


@frozen
class ImportCounts:
    """What importing records did: how many were added, how many were there already, and what stays as it was here.

    ``kept`` describes, one line each, what is different here and was therefore left alone. ``notices`` say what a
    person should do.
    """

    added: int = 0
    present: int = 0
    kept: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.added + other.added,
            self.present + other.present,
            self.kept + other.kept,
            self.notices + other.notices,
        )
