"""The lines of an export: a header, one record per line, and an end record with the number of records.

An export without the end record is incomplete and is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klaw_core import RecordError, update_command
from klaw_journals import Record
from klaw_journals.journal_lines import MAX_LINE_BYTES
from klaw_journals.timestamps import shown

FORMAT = "klaw-export"
VERSION = 1
#: The longest line of an export in bytes: the longest line of a journal, plus room for the export's own keys.
MAX_EXPORT_LINE_BYTES = MAX_LINE_BYTES + (1 << 20)

_HEADER, _END = "header", "end"
# A larger number is no version, and may be a secret.
_LARGE = 1_000_000


def header() -> dict[str, Any]:
    """Return the first line of an export."""
    return {"kind": _HEADER, "format": FORMAT, "version": VERSION}


def end(count: int) -> dict[str, Any]:
    """Return the last line of an export; ``count`` is the number of records."""
    return {"kind": _END, "records": count}


def as_line(record: Record) -> dict[str, Any]:
    """Return a record's line."""
    return {"kind": record.kind, **record.value}


def parse_line(line: Mapping[str, Any]) -> Record:
    """Return the record of a line. Raise RecordError if the line has no kind."""
    kind = line.get("kind")
    if not isinstance(kind, str):
        raise RecordError(f"unknown kind {shown(kind)}")
    return Record(kind, {key: value for key, value in line.items() if key != "kind"})


def is_frame(line: Mapping[str, Any]) -> bool:
    """Return whether this is the header or the end record."""
    return line.get("kind") in {_HEADER, _END}


def is_header(line: Mapping[str, Any]) -> bool:
    """Return whether this is the first line of an export, of any version."""
    return line.get("kind") == _HEADER and line.get("format") == FORMAT


def check_version(line: Mapping[str, Any]) -> None:
    """Raise RecordError unless this version of Klaw can read the export with this header."""
    version = line.get("version")
    if version != VERSION:
        told = version if type(version) is int and abs(version) < _LARGE else shown(version)
        raise RecordError(
            f"the export has version {told}; this Klaw reads version {VERSION}",
            hint=update_command(),
        )
