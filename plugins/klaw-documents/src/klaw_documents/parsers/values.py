"""Validate the metadata in files: strings and dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_MAX_CHARACTERS = 500
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
# Control characters except tabs and line ends. Form feeds are removed, because Klaw uses them as page breaks.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_PDF_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?)?")


def clean(text: str) -> str:
    """Return a text in Klaw's form: valid Unicode, LF line ends, no control characters, no ligatures."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_LIGATURES)
    return _CONTROLS.sub("", text).encode("utf-8", "replace").decode()


def one_line(value: object) -> str:
    """Return a value as one line, or an empty string for an invalid value."""
    return " ".join(clean(value).split())[:_MAX_CHARACTERS].rstrip() if isinstance(value, str) else ""


def described(**values: object) -> dict[str, str | int | tuple[str, ...]]:
    """Return the values that are not empty, as metadata."""
    found: dict[str, str | int | tuple[str, ...]] = {}
    for key, value in values.items():
        if isinstance(value, int):
            found[key] = value
        elif line := one_line(value):
            found[key] = line
    return found


def iso_moment(value: object) -> datetime | None:
    """Return the date of an ISO 8601 string, or None for other values."""
    try:
        moment = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    return _valid_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def pdf_moment(value: object) -> datetime | None:
    """Return the date of a PDF string, ``D:20240506070809+02'00'``, or None for other values."""
    match = _PDF_DATE.match(str(value).strip())
    if match is None:
        return None
    parts = [int(part or default) for part, default in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)]
    offset = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
    try:
        zone = timezone(-offset if match[7] == "-" else offset)
        return _valid_utc(datetime(*parts, tzinfo=zone))  # type: ignore[arg-type,misc]  # six integers
    except ValueError:
        return None


def _valid_utc(moment: datetime) -> datetime | None:
    """Return a date in UTC, or None if it is before the file format existed, as with clocks that were never set."""
    try:
        found = moment.astimezone(UTC).replace(microsecond=0)
    except (OverflowError, ValueError):
        return None
    return found if found.year >= 1980 else None  # noqa: PLR2004  # the epoch of FAT and ZIP
