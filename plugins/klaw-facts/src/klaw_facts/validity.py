"""How exactly the beginning and the end of a fact are known, and how that is told.

A beginning is an interval. ``by``: at some time, at the latest when it was said. A calendar unit (``day``, ``week``,
``month``, ``year``): at some time from ``valid_from`` to the end of the unit that contains it. ``moment``: then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from attrs import evolve

from klaw_facts.values import PERSON, Fact, Precision

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_COARSE = frozenset({"week", "month", "year"})
_LONGEST = {"day": 1, "week": 7, "month": 31, "year": 366}


def unit_start(moment: datetime, precision: Precision) -> datetime:
    """Return the start of the calendar unit that contains a moment; other precisions return the moment."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    starts: Mapping[str, Callable[[], datetime]] = {
        "day": lambda: day,
        "week": lambda: day - timedelta(day.weekday()),
        "month": lambda: day.replace(day=1),
        "year": lambda: day.replace(month=1, day=1),
    }
    return starts[precision]() if precision in starts else moment


def later_by(moment: datetime, span: timedelta) -> datetime:
    """Return a moment after a span of time; the last one that Python has, if that is later than it."""
    try:
        return moment + span
    except OverflowError:  # a message may state any date
        return datetime.max.replace(tzinfo=moment.tzinfo)


def unit_end(moment: datetime, precision: Precision) -> datetime:
    """Return the end of the calendar unit that contains a moment; other precisions return the moment."""
    start = unit_start(moment, precision)
    end = later_by(start, timedelta(_LONGEST.get(precision, 0)))
    first = unit_start(end, precision) if precision in {"month", "year"} else end
    return end if first == start else first  # the last month or year that Python has does not end later


def latest_begin(moment: datetime, precision: Precision) -> datetime:
    """Return the end of the time in which something can have begun that began in the unit that contains a moment.

    For a week it is seven days later: many mean the seven days before they speak, or do not know when the week began.
    """
    return later_by(unit_end(moment, precision), timedelta(days=7 if precision == "week" else 0))


def is_dated(fact: Fact) -> bool:
    """Whether somebody said when a fact began. Otherwise all that is known is that it was true when it was said."""
    return fact.valid_from is not None and fact.precision != "by" and fact.valid_from != fact.said_at


def begun_after(new: Fact, old: Fact, by: str) -> Fact:
    """Return a fact that followed another one: if its begin is not known exactly, it is not before that one's end.

    ``by``: who noted that. The begin that a person wrote is changed by a person only.
    """
    if new.is_by_person and by != PERSON:
        return new
    if not is_dated(new) or new.valid_from is None or old.valid_to is None or old.valid_to <= new.valid_from:
        return new
    return evolve(new, valid_from=old.valid_to) if old.valid_to <= latest_begin(new.valid_from, new.precision) else new


def told(moment: datetime | None, precision: Precision) -> str:
    """Return a moment as exactly as it is known: ``2026-06-05``, ``about June 2026``, ``2026-06-05 or earlier``."""
    if moment is None:
        return ""
    if precision not in _COARSE:
        return moment.date().isoformat() + (" or earlier" if precision == "by" else "")
    start = unit_start(moment, precision)
    names = {"week": start.date().isoformat(), "month": f"{_MONTHS[start.month - 1]} {start.year:04}"}
    return f"about {names.get(precision, f'{start.year:04}')}"


def told_end(fact: Fact) -> str:
    """Return the end of a fact, as ``told`` shows a moment; empty if it has not ended."""
    return told(fact.valid_to, fact.end_precision)


def validity(fact: Fact) -> str:
    """Return the period in which a fact is true, as exactly as it is known, or else when it was said."""
    if fact.valid_from is None and fact.valid_to is None:
        said = fact.said_at or fact.recorded_at
        return "" if said is None else said.date().isoformat()
    begin, end = told(fact.valid_from, fact.precision), told_end(fact)
    if not begin:
        return f"until {end}"
    return f"{begin} to {end}" if end else f"since {begin}"
