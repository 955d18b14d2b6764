"""Moments as people type them: ``2026-02-24``, ``2026-02-24T10:30``, ``7d``, ``2w``, ``today``, ``yesterday``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,6})\s*([hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


def parse_moment(value: str, now: datetime, after_a_day: timedelta = timedelta()) -> datetime:
    """Return the moment in UTC; ``after_a_day`` is added to a day that has no time.

    A bare date is the day in UTC, as notes named for a day are dated. Raise ValueError or OverflowError.
    """
    text = value.strip().lower()
    if text in {"today", "yesterday"}:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=text == "yesterday") + after_a_day
    if ago := _AGO.fullmatch(text):
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    moment = datetime.fromisoformat(text.upper())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    has_time = ":" in text or "t" in text
    return moment.astimezone(UTC) + (timedelta() if has_time else after_a_day)
