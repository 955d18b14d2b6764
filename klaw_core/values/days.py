"""Days as people write them."""

from __future__ import annotations

import re
from datetime import date

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")


def named_day(day: date) -> str:
    """Return a day in the forms that people search for: ``2026-02-24, Tuesday, 24 February 2026``, in every locale."""
    return f"{day.isoformat()}, {_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


def leading_day(text: str) -> date | None:
    """Return the day at the beginning of a text, such as ``2026-02-24``; None if there is none."""
    match = _ISO.match(text)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
