"""The extension ``date`` prefers chunks of the days in a question; ``--explain`` shows the bonus.

A date in the question (``2025-05-20``, ``10 May 2025``, ``May 10``) prefers notes with this date in their title, a
heading or the front matter, and messages of this day. A relative day (``yesterday``, ``last Tuesday``, ``two weeks
ago``) or a month has a smaller bonus, because people do not remember such days exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache

from attrs import frozen

from klaw_core import Preference, PreferringExtension, StoredChunk
from klaw_words.days import DATE_KEYS, written_moment

# Bonuses as shares of the best score. If the question contains only a day, the note of that day comes first.
_ALONE, _NAMED, _HINT = 1.0, 0.5, 0.2

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
# Words of a question that only ask for the day itself.
_EMPTY_WORDS = """
a about an and at day did do diary entry for from happened have i in is it journal log me my note notes of on show that
the there to was we were what which who with monday tuesday wednesday thursday friday saturday sunday
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


@frozen
class DayPreference:
    """The days that a question asks about: ``first`` to ``last``, in any year if ``yearless``.

    ``weight`` is the bonus as a share of the best score; ``is_named``: the question contains the date.
    """

    first: date
    last: date
    weight: float
    is_named: bool = True
    yearless: bool = False

    def holds(self, day: date) -> bool:
        """Return whether a day is in the range."""
        if self.yearless:
            return (day.month, day.day) == (self.first.month, self.first.day)
        return self.first <= day <= self.last

    def has(self, stored: StoredChunk) -> bool:
        """Return whether a chunk is of one of the days."""
        return any(map(self.holds, _days_of(stored, named=self.is_named)))


@frozen
class Dates(PreferringExtension):
    """Prefers the days that a question asks about."""

    name = "date"

    def prefer(self, question: str, /) -> Preference | None:
        """Return the preference for a question; ``yesterday`` is that of the local time."""
        days = preferred_days(question, date.today())  # noqa: DTZ011
        return None if days is None else Preference(days.weight, days.has)


def preferred_days(question: str, today: date) -> DayPreference | None:
    """Return the days that a question asks about, or None."""
    text = question.casefold()
    for start, end, day, yearless in _written(text):
        rest = re.findall(r"\w+", text[:start] + text[end:])
        weight = _ALONE if _EMPTY.issuperset(rest) else _NAMED
        return DayPreference(day, day, weight, yearless=yearless)
    found = _month(text) or _relative(text, today)
    return None if found is None else DayPreference(*found, _HINT, is_named=False)


def _days_of(stored: StoredChunk, *, named: bool) -> Iterator[date]:
    """Yield the days of a chunk; with ``named``, without the day of the file's modification time."""
    if not named or stored.chat_id is not None:
        yield stored.created_at.date()
    chunk = stored.chunk
    for text in (chunk.title, *chunk.heading):
        yield from (day for *_, day, yearless in _written(text.casefold()) if not yearless)
    for key, value in stored.metadata.items():
        if key.casefold() in DATE_KEYS and (moment := written_moment(str(value))) is not None:
            yield moment.date()


def _written(text: str) -> Iterator[tuple[int, int, date, bool]]:
    """Yield the dates in a text: start, end, day, and whether it has no year."""
    for match in _days().finditer(text):
        found = match.groupdict()
        year = next((int(found[name]) for name in ("year", "year2", "year3", "year4") if found[name]), 0)
        number = next(int(found[name]) for name in ("day", "day2", "day3", "day4") if found[name])
        word = found["name"] or found["name2"]
        month = _MONTHS.index(word[:3]) + 1 if word else int(found["month"] or found["month2"])
        try:  # 29 February exists only in some years
            yield match.start(), match.end(), date(year or 2000, month, number), not year
        except ValueError:
            continue


@cache
def _days() -> re.Pattern[str]:
    year, day = r"(?P<year{0}>(?:19|20)\d\d)", r"(?P<day{0}>\d{{1,2}})"
    return re.compile(
        rf"(?<!\d){year.format('')}[-/.](?P<month>\d{{1,2}})[-/.]{day.format('')}(?!\d)"
        rf"|(?<![\d.]){day.format('2')}(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH.format('name')}(?:,?\s+{year.format('2')})?(?!\d)"
        rf"|\b{_MONTH.format('name2')}\s+{day.format('3')}(?:st|nd|rd|th)?(?!\d)(?:,?\s+{year.format('3')}(?!\d))?"
        rf"|(?<![\d.]){day.format('4')}\.(?P<month2>\d{{1,2}})\.{year.format('4')}(?!\.?\d)"
    )


def _month(text: str) -> tuple[date, date] | None:
    """Return the first and last day of a month that is written with its year."""
    match = re.search(rf"\b{_MONTH.format('name')},?\s+(?P<year>(?:19|20)\d\d)(?!\d)", text)
    if match is None:
        match = re.search(r"(?<!\d)(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)(?![\d-])", text)
        if match is None or not 1 <= int(match["number"]) <= len(_MONTHS):
            return None
        first = date(int(match["year"]), int(match["number"]), 1)
    else:
        first = date(int(match["year"]), _MONTHS.index(match["name"][:3]) + 1, 1)
    return first, _next_month(first) - timedelta(days=1)


def _relative(text: str, today: date) -> tuple[date, date] | None:
    """Return the first and last day of a relative date."""
    words = " ".join(re.findall(r"\w+", text))
    for phrase, days in (("day before yesterday", 2), ("yesterday", 1), ("today", 0)):
        if re.search(rf"\b{phrase}\b", words):
            return today - timedelta(days=days), today - timedelta(days=days)
    if match := re.search(rf"\b(?:last|past|this) ({'|'.join(_WEEKDAYS)})\b", words):
        back = (today.weekday() - _WEEKDAYS.index(match[1]) - 1) % 7 + 1
        return today - timedelta(days=back), today - timedelta(days=back)
    if match := re.search(rf"\b(\d{{1,3}}|{'|'.join(_NUMBERS)}) (day|week|month)s? ago\b", words):
        count = int(match[1]) if match[1].isdigit() else _NUMBERS[match[1]]
        return _ago(today, count, match[2])
    if match := re.search(r"\b(last|this) (week|month|year)\b", words):
        return _span(today, match[2], back=match[1] == "last")
    return None


def _ago(today: date, count: int, unit: str) -> tuple[date, date]:
    """Return a range of days for a past date, wider for longer ago, because people remember it less exactly."""
    days = {"day": 1, "week": 7, "month": 30}[unit]
    middle, slack = today - timedelta(days=count * days), timedelta(days=days // 2)
    return middle - slack, middle + slack


def _span(today: date, unit: str, *, back: bool) -> tuple[date, date]:
    if unit == "week":
        first = today - timedelta(days=today.weekday() + (7 if back else 0))
        return first, first + timedelta(days=6)
    if unit == "month":
        first = today.replace(day=1)
        first = (first - timedelta(days=1)).replace(day=1) if back else first
        return first, _next_month(first) - timedelta(days=1)
    year = today.year - back
    return date(year, 1, 1), date(year, 12, 31)


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)
