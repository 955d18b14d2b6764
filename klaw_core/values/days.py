"""Days as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import cache

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# The day at the start of a file's name: as most programs write it, as Logseq does (``2026_02_24``), and as Denote and
# Zettelkasten do, with the time (``20260224T101530--title``, ``202602241015 title``).
_IN_NAME = re.compile(
    r"(\d{4})([-_])(\d{2})\2(\d{2})(?!\d)|((?:19|20)\d{2})(\d{2})(\d{2})(?:T?\d{4}(?:\d{2})?)?(?![^\W_])"
)
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(Z|[+-]\d{1,2}(?::?\d{2})?|UTC|GMT)?"
_MONTH = r"([A-Za-z]{3,9})\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
# Year, month and day, in the order of the groups that each form names; a time, if there is one, follows.
_FORMS = (
    ("ymd", r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?"),
    ("dmy", r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})"),
    ("mdy", rf"{_MONTH}\s+{_DAY}(?:,\s*|\s+)(\d{{4}})"),
    ("dmy", rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+(\d{{4}})"),
    ("my", rf"{_MONTH}\s+(\d{{4}})"),
    ("y", r"((?:19|20)\d{2})"),
)
_MAX_CHARACTERS = 60


def named_day(day: date) -> str:
    """Return a day in the forms that people search for: ``2026-02-24, Tuesday, 24 February 2026``, in every locale."""
    return f"{day.isoformat()}, {_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def leading_day(name: str) -> tuple[date, str] | None:
    """Return the day at the beginning of a file's name, and the rest of the name; None if it begins with none."""
    match = _IN_NAME.match(name)
    if match is None:
        return None
    year, month, day = (match[1], match[3], match[4]) if match[1] else match.group(5, 6, 7)
    try:
        return date(int(year), int(month), int(day)), name[match.end() :]
    except ValueError:
        return None


def written_moment(text: str) -> datetime | None:
    """Return the moment in UTC that a person wrote: ``2026-02-24``, ``July 5, 2021``, ``5.7.2021 10:30``, ``2021-07``.

    A day is its beginning in UTC, a month or a year its first day. None for anything else, and for what is outside of
    the range of datetime.
    """
    text = text.strip(" <>[]\t")
    if len(text) > _MAX_CHARACTERS:
        return None
    try:
        return _in_utc(datetime.fromisoformat(text.replace("/", "-")))
    except (ValueError, OverflowError):  # or a moment that UTC cannot express
        pass
    for order, form in _forms():
        if (match := form.fullmatch(text)) is not None:
            try:
                return _moment(dict(zip(order, match.groups(), strict=False)), *match.groups()[len(order) :])
            except (ValueError, OverflowError):
                continue
    return None


@cache
def _forms() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return the forms of dates, compiled when the first one is read."""
    weekday, after = r"(?:[A-Za-z]{2,9}\.?,\s*)?", r"(?:T|,?\s+)(?:[A-Za-z]{2,9}\.?,?\s+)?"
    return [(order, re.compile(rf"{weekday}{form}(?:{after}{_TIME}|\s+[A-Za-z]{{2,9}}\.?)?")) for order, form in _FORMS]


def _moment(
    parts: Mapping[str, str | None], hour: str | None, minute: str | None, second: str | None, zone: str | None
) -> datetime:
    """Return the moment of the parts of a date. Raise ValueError or OverflowError if there is none."""
    month = parts.get("m") or "1"
    day = date(int(parts["y"] or 0), int(month) if month.isdigit() else _month_of(month), int(parts.get("d") or 1))
    moment = datetime.combine(day, time(int(hour or 0), int(minute or 0), int(second or 0)))
    if zone is None or zone.isalpha():
        return moment.replace(tzinfo=UTC)
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return _in_utc(moment.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset)))


def _month_of(name: str) -> int:
    """Return the number of a month by its English name or its beginning. Raise ValueError for another word."""
    found = [number for number, month in enumerate(_MONTHS, 1) if month.lower().startswith(name.lower())]
    if len(found) != 1:
        raise ValueError(name)
    return found[0]


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
