"""Compute the date that a sentence names, from the time when it was said. English, Russian, Chinese.

A date is never guessed: if it cannot be computed, it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

from attrs import evolve, frozen

from klaw_facts.values import Precision

_MONTHS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "january jan января январе 1月",
            "february feb февраля феврале 2月",
            "march mar марта марте 3月",
            "april apr апреля апреле 4月",
            "may мая мае 5月",
            "june jun июня июне 6月",
            "july jul июля июле 7月",
            "august aug августа августе 8月",
            "september sep sept сентября сентябре 9月",
            "october oct октября октябре 10月",
            "november nov ноября ноябре 11月",
            "december dec декабря декабре 12月",
        ),
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "monday понедельник 一",
            "tuesday вторник 二",
            "wednesday среду 三",
            "thursday четверг 四",
            "friday пятницу 五",
            "saturday субботу 六",
            "sunday воскресенье 日",
        )
    )
    for name in names.split()
}
_WORDS: Mapping[str, int] = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "several": 0,
}
_NAMES = "|".join(sorted((name for name in _MONTHS if not name[0].isdigit()), key=len, reverse=True))
_DAYS = "|".join(name for name in _WEEKDAYS if len(name) > 1)
_UNITS: Mapping[str, str] = {"day": "day", "week": "week", "month": "month", "year": "year"}


@frozen
class When:
    """A moment and its precision."""

    moment: datetime
    precision: Precision


def resolve(text: str, said_at: datetime, *, forward: bool = False) -> When | None:
    """Return the first date in a text; None if there is none, or it cannot be computed.

    ``forward``: the text speaks of the future, so that a month without a year is the next one.
    """
    found = []
    for pattern, compute in _rules():
        if match := pattern.search(text):
            try:
                when = compute(match, said_at.astimezone(UTC))
            except (ValueError, OverflowError):
                continue
            if when is not None:
                found.append((match.start(), _next_year(match, when, said_at) if forward else when))
    return min(found, key=lambda item: item[0])[1] if found else None


def _next_year(match: re.Match[str], when: When, said_at: datetime) -> When:
    """Return a month of the next year, if it has no year of its own and has passed."""
    has_year = when.precision != "month" or match.groupdict().get("year", "-")
    has_passed = (when.moment.year, when.moment.month) < (said_at.year, said_at.month)
    return evolve(when, moment=when.moment.replace(year=when.moment.year + 1)) if has_passed and not has_year else when


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _shifted(days: int) -> Callable[[re.Match[str], datetime], When]:
    return lambda _match, said_at: When(_midnight(said_at) + timedelta(days), "day")


def _iso(match: re.Match[str], _said_at: datetime) -> When:
    return When(datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC), "day")


def _named(match: re.Match[str], said_at: datetime) -> When:
    """Return a day of a month, in the nearest year if none is given."""
    parts = match.groupdict()
    month = _MONTHS[parts["month"].lower().rstrip(".")]
    day, year = int(parts["day"]), parts.get("year")
    if year:
        return When(datetime(int(year), month, day, tzinfo=UTC), "day")
    years = [datetime(said_at.year + shift, month, day, tzinfo=UTC) for shift in (-1, 0, 1)]
    return When(min(years, key=lambda moment: abs(moment - said_at)), "day")


def _month(match: re.Match[str], said_at: datetime) -> When:
    """Return a month, in the given year or else the last one that has begun."""
    month = _MONTHS[match["month"].lower()]
    year = int(match["year"]) if match["year"] else said_at.year - (month > said_at.month)
    return When(datetime(year, month, 1, tzinfo=UTC), "month")


def _year(match: re.Match[str], _said_at: datetime) -> When:
    return When(datetime(int(match["year"]), 1, 1, tzinfo=UTC), "year")


def _chinese(match: re.Match[str], said_at: datetime) -> When:
    year = int(match["year"]) if match["year"] else said_at.year
    return When(datetime(year, int(match["month"]), int(match["day"]), tzinfo=UTC), "day")


def _ago(match: re.Match[str], said_at: datetime) -> When | None:
    count = int(match["count"]) if match["count"].isdigit() else _WORDS.get(match["count"].lower(), 0)
    if not count:
        return None
    unit = _unit(match["unit"].lower())
    if unit == "day":
        return When(_midnight(said_at) - timedelta(count), "day")
    if unit == "week":
        today = _midnight(said_at)
        return When(today - timedelta(today.weekday()) - timedelta(weeks=count), "week")
    months = count * (12 if unit == "year" else 1)
    year, month = divmod(said_at.year * 12 + said_at.month - 1 - months, 12)
    return When(
        datetime(year, 1 if unit == "year" else month + 1, 1, tzinfo=UTC), "year" if unit == "year" else "month"
    )


def _unit(text: str) -> str:
    stems = {"day": ("day", "д", "天"), "week": ("week", "нед", "周", "星期"), "month": ("month", "мес", "个月", "月")}
    return next((unit for unit, begins in stems.items() if text.startswith(begins)), "year")


def _last_or_next(match: re.Match[str], said_at: datetime) -> When:
    forward = match["which"].lower() in {"next", "следующей", "следующем", "下", "下个", "明"}
    unit, step = _unit(match["unit"].lower()), 1 if forward else -1
    today = _midnight(said_at)
    if unit == "week":
        return When(today - timedelta(today.weekday()) + timedelta(weeks=step), "week")
    if unit == "month":
        year, month = divmod(today.year * 12 + today.month - 1 + step, 12)
        return When(datetime(year, month + 1, 1, tzinfo=UTC), "month")
    return When(datetime(today.year + step, 1, 1, tzinfo=UTC), "year")


def _weekday(match: re.Match[str], said_at: datetime) -> When:
    today, wanted = _midnight(said_at), _WEEKDAYS[match["day"].lower()]
    which = (match["which"] or "").lower()
    ahead = (wanted - today.weekday()) % 7
    if which in {"next", "следующий", "следующую", "下"}:
        return When(today + timedelta(ahead or 7), "day")
    back = (today.weekday() - wanted) % 7
    return When(today - timedelta(back or 7), "day")


@cache
def _rules() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], When | None]], ...]:
    def rule(
        pattern: str, compute: Callable[[re.Match[str], datetime], When | None]
    ) -> tuple[re.Pattern[str], Callable[[re.Match[str], datetime], When | None]]:
        return re.compile(pattern, re.IGNORECASE), compute

    year = r"(?:,?\s+(?P<year>\d{4}))?"
    return (
        rule(r"\b(\d{4})-(\d{2})-(\d{2})\b", _iso),
        rule(rf"\b(?P<month>{_NAMES})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b{year}", _named),
        rule(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_NAMES})\b{year}", _named),
        rule(r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]", _chinese),
        rule(r"\btoday\b|\bсегодня\b|今天", _shifted(0)),
        rule(r"\byesterday\b|\bвчера\b|昨天", _shifted(-1)),
        rule(r"\btomorrow\b|\bзавтра\b|明天", _shifted(1)),
        rule(r"(?P<count>\d{1,3}|a|an|one|two|three|four|five|six)\s*(?P<unit>day|week|month|year)s?\s+ago\b", _ago),
        rule(r"\b(?P<count>\d{1,3})\s+(?P<unit>дн\w+|день|недел\w+|месяц\w*|год\w*|лет)\s+назад", _ago),
        rule(r"(?P<count>\d{1,3})\s*(?P<unit>天|周|星期|个月|年)前", _ago),
        rule(r"\b(?P<which>last|next)\s+(?P<unit>week|month|year)\b", _last_or_next),
        rule(r"\b(?P<which>прошлой|прошлом|следующей|следующем)\s+(?P<unit>недел\w+|месяц\w*|год\w*)", _last_or_next),
        rule(r"(?P<which>上个|下个|上|下|去|明)(?P<unit>周|星期|月|年)", _last_or_next),
        rule(rf"\b(?P<which>last|next|прошл\w+|следующ\w+)\s+(?P<day>{_DAYS})\b", _weekday),
        rule(r"\b(?:in|since|from|в|с)\s+(?P<year>(?:19|20)\d{2})\b(?![-:.]\d)", _year),
        rule(r"(?P<year>(?:19|20)\d{2})年(?!\d{1,2}月)", _year),
        rule(
            rf"\b(?:in|since|from|в|с)\s+(?P<which>)?(?P<month>{_NAMES})\b(?!\s+\d{{1,2}}\b)(?:\s+(?P<year>\d{{4}}))?",
            _month,
        ),
    )
