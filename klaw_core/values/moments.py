"""Moments as people type them: ``2026-02-24``, ``2026-02-24T10:30``, ``7d``, ``2w``, ``today``, ``yesterday``.

A day is that of the reader's clock. But a note that is named for a day, or that states one, is stored as the day's
beginning in UTC, so an interval of days includes both.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

_AGO = re.compile(r"(\d{1,6})\s*([hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_DAY = timedelta(days=1)


def parse_moment(value: str, now: datetime) -> datetime:
    """Return the moment in UTC; of a day, its beginning in UTC. Raise ValueError or OverflowError."""
    found = _parsed(value, now)
    return found if isinstance(found, datetime) else datetime.combine(found, time(), UTC)


def first_moment(value: str, now: datetime) -> datetime:
    """Return the moment from which on something was at that time or later; of a day, its beginning. Raise as above."""
    found = _parsed(value, now)
    return found if isinstance(found, datetime) else min(_beginnings(found))


def end_moment(value: str, now: datetime) -> datetime:
    """Return the moment before which something was up to that time; of a day, its end. Raise as above."""
    found = _parsed(value, now)
    return found if isinstance(found, datetime) else max(_beginnings(found + _DAY))


def _parsed(value: str, now: datetime) -> datetime | date:
    """Return a day, or a moment in UTC."""
    text = value.strip().lower()
    if text in {"today", "yesterday"}:
        return now.astimezone().date() - _DAY * (text == "yesterday")
    if ago := _AGO.fullmatch(text):
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    moment = datetime.fromisoformat(text.upper())
    if not (":" in text or "t" in text):
        return moment.date()
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _beginnings(day: date) -> tuple[datetime, datetime]:
    """Return the beginning of a day in UTC and by the local clock, both in UTC."""
    begin = datetime.combine(day, time())
    return begin.replace(tzinfo=UTC), begin.astimezone(UTC)
