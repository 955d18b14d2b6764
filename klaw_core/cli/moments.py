"""Moments as people type them: ``2026-02-24``, ``2026-02``, ``2026``, ``7d``, ``3 days ago``, ``yesterday``.

A day, and a time without a zone, are those of the reader's clock. But a note that is named for a day, or that states
one, is stored as the day's beginning in UTC, so an interval of days includes both.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

_FORMS = "write 2026-02-24, 2026-02, 2026, 2026-02-24T10:30, 7d, '3 days ago', yesterday or 'last week'"
_AGO = re.compile(r"(\d{1,6}|an?)\s*([hdwmy]|(?:hour|day|week|month|year)s?)(?: ago)?")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_MONTH = re.compile(r"(\d{4})(?:[-/](\d{1,2}))?")
_DAY = timedelta(days=1)
_LAST = datetime.max.replace(tzinfo=UTC)


def parse_moment(value: str, now: datetime, *, day: Literal["begin", "last", "first", "end"] = "begin") -> datetime:
    """Return the moment in UTC. Raise ValueError, whose text says what can be written.

    A day is its beginning in UTC, as a note of that day is stored; with ``last`` the last millisecond of that day. With
    ``first`` it is the moment from which on something was on that day or later, with ``end`` the moment before which
    something was on that day or earlier. So is a week, a month or a year.
    """
    try:
        found = _parsed(" ".join(value.lower().split()), now)
    except (ValueError, OverflowError) as error:
        raise ValueError(_FORMS) from error
    if isinstance(found, datetime):
        return found
    begin, end = found
    if day == "first":
        return min(_beginnings(begin))
    if day == "end":
        return _LAST if end == date.max else max(_beginnings(end + _DAY))
    if day == "begin":
        return datetime.combine(begin, time(), UTC)
    return datetime.combine(end, time(), UTC) + (_DAY - timedelta(milliseconds=1))


def by_the_clock(moment: datetime) -> datetime:
    """Return a moment in the zone of the reader's clock; in UTC if that zone is none, such as one of 26 hours.

    A moment without a zone is one of that clock.
    """
    try:
        return moment.astimezone()
    except (OverflowError, ValueError):
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown_day(stored: str) -> str:
    """Return the day of a moment that is stored (``2026-02-24T23:30:00.000Z``), as people read it.

    It is that of the reader's clock, as a day that people type is. The beginning of a day in UTC is that of a note of
    that day, which is the same day everywhere. Of no moment it is "".
    """
    if not stored:
        return ""
    moment = datetime.fromisoformat(stored)
    return moment.date().isoformat() if moment.time() == time() else f"{by_the_clock(moment):%Y-%m-%d}"


def shown_moment(moment: datetime, *, seconds: bool = False) -> str:
    """Return a moment by the reader's clock, as people read it."""
    return f"{by_the_clock(moment):{'%Y-%m-%d %H:%M:%S' if seconds else '%Y-%m-%d %H:%M'}}"


def _parsed(text: str, now: datetime) -> datetime | tuple[date, date]:
    """Return a moment in UTC, or the first and the last day of a period."""
    today = by_the_clock(now).date()
    monday, before = today - _DAY * today.weekday(), today.replace(day=1) - _DAY
    named = {
        "today": (today, today),
        "yesterday": (today - _DAY, today - _DAY),
        "this week": (monday, monday + _DAY * 6),
        "last week": (monday - _DAY * 7, monday - _DAY),
        "this month": _period(today.year, today.month),
        "last month": _period(before.year, before.month),
        "this year": _period(today.year),
        "last year": _period(today.year - 1),
    }
    if text in named:
        return named[text]
    if ago := _AGO.fullmatch(text):
        return now - timedelta(days=(int(ago[1]) if ago[1].isdecimal() else 1) * _DAYS[ago[2][0]])
    if month := _MONTH.fullmatch(text):
        return _period(int(month[1]), int(month[2]) if month[2] else None)
    moment = datetime.fromisoformat(text.upper())
    return by_the_clock(moment).astimezone(UTC) if ":" in text or "t" in text else (moment.date(), moment.date())


def _period(year: int, month: int | None = None) -> tuple[date, date]:
    last = month or 12
    return date(year, month or 1, 1), date(year, last, monthrange(year, last)[1])


def _beginnings(day: date) -> Iterator[datetime]:
    """Yield the beginning of a day in UTC and, if UTC can express it, by the local clock."""
    begin = datetime.combine(day, time())
    yield begin.replace(tzinfo=UTC)
    try:
        yield begin.astimezone(UTC)
    except (OverflowError, ValueError):
        return
