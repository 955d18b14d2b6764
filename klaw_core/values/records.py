"""The objects of an export, and what an export and an import report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from klaw_core.values.runs import SkippedEntry


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


@frozen
class ExportReport:
    """The number of exported records by kind, and the skipped parts, such as broken lines in the files.

    ``notices`` name exported journals that belong to no installed extension.
    """

    counts: Mapping[str, int] = field(factory=dict)
    skipped: tuple[SkippedEntry, ...] = ()
    notices: tuple[str, ...] = ()


@frozen
class ImportReport:
    """The numbers of added and of existing (``present``) records by kind.

    ``kept`` describes what the import did not change. ``notices`` say what the user should do next, and why added
    records cannot be found yet, if so. ``skipped`` lists the parts that an importer could not read.
    """

    added: Mapping[str, int] = field(factory=dict)
    present: Mapping[str, int] = field(factory=dict)
    kept: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()
