"""Moments as people type them: ``2026-02-24``, ``2026-02-24T10:30``, ``7d``, ``2w``, ``today``, ``yesterday``.

A day, and a time without a zone, are those of the reader's clock. But a note that is named for a day, or that states
one, is stored as the day's beginning in UTC, so an interval of days includes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

_AGO = re.compile(r"(\d{1,6})\s*([hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_DAY = timedelta(days=1)
_LAST = datetime.max.replace(tzinfo=UTC)


def parse_moment(value: str, now: datetime, *, day: Literal["begin", "last", "first", "end"] = "begin") -> datetime:
    """Return the moment in UTC. Raise ValueError or OverflowError.

    A day is its beginning in UTC, as a note of that day is stored; with ``last`` the last millisecond of that day. With
    ``first`` it is the moment from which on something was on that day or later, with ``end`` the moment before which
    something was on that day or earlier.
    """
    found = _parsed(value, now)
    if isinstance(found, datetime):
        return found
    if day == "first":
        return min(_beginnings(found))
    if day == "end":
        return _LAST if found == date.max else max(_beginnings(found + _DAY))
    begin = datetime.combine(found, time(), UTC)
    return begin if day == "begin" else begin + (_DAY - timedelta(milliseconds=1))


def _parsed(value: str, now: datetime) -> datetime | date:
    """Return a day, or a moment in UTC."""
    text = value.strip().lower()
    if text in {"today", "yesterday"}:
        return now.astimezone().date() - _DAY * (text == "yesterday")
    if ago := _AGO.fullmatch(text):
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    moment = datetime.fromisoformat(text.upper())
    return moment.astimezone(UTC) if ":" in text or "t" in text else moment.date()


def _beginnings(day: date) -> Iterator[datetime]:
    """Yield the beginning of a day in UTC and, if UTC can express it, by the local clock."""
    begin = datetime.combine(day, time())
    yield begin.replace(tzinfo=UTC)
    try:
        yield begin.astimezone(UTC)
    except (OverflowError, ValueError):
        return
