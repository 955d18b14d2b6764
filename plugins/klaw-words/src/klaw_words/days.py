"""Days as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
#: Keys of metadata for the day on which a note was written, in order of preference; case is ignored.
DATE_KEYS = (
    *("date", "created", "created_at", "created at", "date created", "date_created", "creation date", "created on"),
    "published",
)

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ].*)?|(?:19|20)\d{6}(?:T\d{4}.*)?")
_TIME = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?:\s*([ap])\.?m\b)?\s*([+-]\d{1,2}(?::?\d{2})?)?", re.IGNORECASE
)
_MONTH = r"([A-Za-z]{3,9})\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
# Year, month and day, in the order of the groups that each form names.
_FORMS = (
    ("ymd", r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})"),
    ("dmy", r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})"),
    ("dmy", r"(1[3-9]|2\d|3[01])/(\d{1,2})/(\d{4})"),  # of 5/7/2021 nobody knows the month
    ("mdy", r"(\d{1,2})/(1[3-9]|2\d|3[01])/(\d{4})"),
    ("mdy", rf"{_MONTH}\s+{_DAY}(?:,\s*|\s+)(\d{{4}})"),
    ("dmy", rf"{_DAY}\s+(?:of\s+)?{_MONTH},?\s+(\d{{4}})"),
    ("ym", r"(\d{4})[-/.](\d{1,2})"),
    ("my", rf"{_MONTH}\s+(\d{{4}})"),
    ("y", r"((?:19|20)\d{2})"),
)
_MAX_CHARACTERS = 60


def named_day(day: date) -> str:
    """Return a day in the forms that people search for: ``2026-02-24, Tuesday, 24 February 2026``, in every locale."""
    return f"{day.isoformat()}, {_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def written_moment(text: str) -> datetime | None:
    """Return the moment in UTC that a person wrote: ``2026-02-24``, ``July 5, 2021``, ``5.7.2021 10:30``, ``2021-07``.

    A day is its beginning in UTC, a month or a year its first day. What follows a day and is no time is ignored. None
    for anything else, and for what is outside of the range of datetime.
    """
    text = text.strip(" <>[]\t")
    if len(text) > _MAX_CHARACTERS:
        return None
    if _ISO.fullmatch(iso := text.replace("/", "-")):
        try:
            return _in_utc(datetime.fromisoformat(iso))
        except OverflowError:  # a moment that UTC cannot express
            return None
        except ValueError:
            pass
    for order, form in _forms():
        if (match := form.fullmatch(text)) is not None:
            *parts, rest = match.groups()
            try:
                return _moment(dict(zip(order, parts, strict=True)), rest or "")
            except (ValueError, OverflowError):
                continue
    return None


@cache
def _forms() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return the forms of dates, compiled when the first one is read. The last group is what follows a day."""
    weekday = r"(?:[A-Za-z]{2,9}\.?,\s*)?"
    return [
        (order, re.compile(weekday + form + (r"((?:[Tt](?=\d)|[\s,]).*)?" if "d" in order else "()")))
        for order, form in _FORMS
    ]


def _moment(parts: Mapping[str, str], rest: str) -> datetime:
    """Return the moment of the parts of a date. Raise ValueError or OverflowError if there is none."""
    month = parts.get("m", "1")
    day = date(int(parts["y"]), int(month) if month.isdigit() else _month_of(month), int(parts.get("d", 1)))
    begin = datetime.combine(day, time(), UTC)
    match = _TIME.search(rest)
    if match is None:
        return begin
    hour, minute, second, half, zone = match.groups()
    hours = int(hour) % 12 + 12 * (half in {"p", "P"}) if half else int(hour)
    if hours > 23 or int(minute) > 59 or int(second or 0) > 59:  # noqa: PLR2004  # of a clock
        return begin
    moment = begin + timedelta(hours=hours, minutes=int(minute), seconds=int(second or 0))
    if zone is None:
        return moment
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return moment + offset if zone[0] == "-" else moment - offset


def _month_of(name: str) -> int:
    """Return the number of a month by its English name or its beginning. Raise ValueError for another word."""
    found = [number for number, month in enumerate(_MONTHS, 1) if month.lower().startswith(name.lower())]
    if len(found) != 1:
        raise ValueError(name)
    return found[0]


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
