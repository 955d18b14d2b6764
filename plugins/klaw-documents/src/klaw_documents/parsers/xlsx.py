"""Spreadsheets: each sheet is a section, each row a line that names its columns. Values are read, never formulas."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from importlib import import_module
from typing import Any

from klaw_core import Conversion, ConversionError
from klaw_documents.parsers.archives import open_archive, property_of, read_member, xml_of
from klaw_documents.parsers.values import clean, described, iso_moment, one_line
from klaw_documents.tables import rows_as_text


def parse(data: bytes, _name: str) -> Conversion:
    """Return the sheets as Markdown. Raise ConversionError."""
    properties = None
    if data.startswith(b"PK"):
        properties = xml_of(read_member(open_archive(data, "spreadsheet"), "docProps/core.xml"))
    calamine: Any = import_module("python_calamine")
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    except calamine.PasswordError:
        raise ConversionError("is encrypted: save a copy without its password") from None
    except (calamine.CalamineError, OSError):
        raise ConversionError("is not a valid spreadsheet") from None
    parts = [part for name in workbook.sheet_names for part in _sheet(workbook, name)]
    text = "\n".join(parts)
    if not text.strip():
        raise ConversionError("has no text")
    metadata = described(title=property_of(properties, "title"), author=property_of(properties, "creator"))
    return Conversion(f"{text.strip()}\n", "markdown", metadata, iso_moment(property_of(properties, "modified")))


def _sheet(workbook: Any, name: str) -> Iterator[str]:
    rows = workbook.get_sheet_by_name(name).iter_rows()
    lines = list(rows_as_text([clean(_shown(cell)) for cell in row] for row in rows))
    if lines:
        yield f"\n## {one_line(name)}\n"
        yield from lines


def _shown(cell: Any) -> str:
    """Return a value as people write it: no ``.0`` after whole numbers, dates in ISO 8601."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:  # noqa: PLR2004  # above, digits are lost
        return str(int(cell))
    if isinstance(cell, datetime) and not (cell.hour or cell.minute or cell.second):
        return cell.date().isoformat()
    if isinstance(cell, datetime | date | time):
        return cell.isoformat(*([" "] if isinstance(cell, datetime) else []))
    return "" if cell is None else str(cell)
