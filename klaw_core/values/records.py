"""One object of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Record:
    """A record of an export: a JSON object and its kind, which determines the extension that imports it."""

    kind: str
    value: Mapping[str, Any] = field(repr=False)


@frozen
class ImportCounts:
    """The result of an import: how many records were added, how many existed already, and which differ.

    ``kept`` describes, one line each, records that differ from the existing ones and were not imported. ``notices`` say
    what the user should do.
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
