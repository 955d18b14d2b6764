"""Compute the date that a text names, from the time when it was said: in what people say and in what they ask.

English, Russian and Chinese, and of German what is told from today. A date is never guessed: if it cannot be computed
("a few days ago"), it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Literal, TypeAlias

from attrs import evolve, frozen

Unit: TypeAlias = Literal["day", "week", "month", "year"]
_Compute: TypeAlias = "Callable[[re.Match[str], datetime], When]"


def _numbered(*names: str, start: int) -> Mapping[str, int]:
    return {name: number for number, several in enumerate(names, start) for name in several.split()}


_MONTHS = _numbered(
    "january jan januar января январе 1月",
    "february feb februar февраля феврале 2月",
    "march mar märz марта марте 3月",
    "april apr апреля апреле 4月",
    "may mai мая мае 5月",
    "june jun juni июня июне 6月",
    "july jul juli июля июле 7月",
    "august aug августа августе 8月",
    "september sep sept сентября сентябре 9月",
    "october oct oktober октября октябре 10月",
    "november nov ноября ноябре 11月",
    "december dec dezember декабря декабре 12月",
    start=1,
)
_WEEKDAYS = _numbered(
    "monday montag понедельник 一 1",
    "tuesday dienstag вторник 二 2",
    "wednesday mittwoch среду 三 3",
    "thursday donnerstag четверг 四 4",
    "friday freitag пятницу 五 5",
    "saturday samstag субботу 六 6",
    "sunday sonntag воскресенье 日 天 7",
    start=0,
)
_COUNTS = _numbered(
    "a an one ein eine einem einer один одну 一",
    "two zwei два две 二 两 couple",
    "three drei три 三",
    "four vier четыре 四",
    "five fünf пять 五",
    "six sechs шесть 六",
    "seven sieben семь 七",
    "eight acht восемь 八",
    "nine neun девять 九",
    "ten zehn десять",
    start=1,
)
_NAMES = "|".join(sorted((name for name in _MONTHS if not name[0].isdigit()), key=len, reverse=True))
_ENGLISH = "couple of|" + "|".join(name for name in _COUNTS if name.isascii() and name != "couple")
_GERMAN = "eine[mr]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn"
_GERMAN_UNITS = "(?P<unit>tag|woche|monat|jahr)e?n?"
_ENGLISH_UNITS = "(?P<unit>day|week|fortnight|month|year)"
_RUSSIAN = "|".join(name for name in _COUNTS if "а" <= name[0] <= "я")
_UNITS = r"(?P<unit>дн\w+|день|недел\w+|месяц\w*|год\w*|лет)"
_DAYS = "|".join(name for name in _WEEKDAYS if len(name) > 1)
# How far ahead, or behind, in days or units.
_OFFSETS: Mapping[str, int] = {
    **dict.fromkeys(("last", "past", "previous", "上", "上个", "上個", "去"), -1),
    **dict.fromkeys(("this", "current", "这", "这个", "這", "這個", "本", "今"), 0),
    **dict.fromkeys(("next", "coming", "下", "下个", "下個", "明"), 1),
    **dict.fromkeys(("上上", "上上个", "上上個", "前"), -2),
    **dict.fromkeys(("下下", "下下个", "下下個"), 2),
    "后": 2,
    "後": 2,
}
_STEMS: Mapping[Unit, tuple[str, ...]] = {
    "day": ("day", "tag", "д", "天", "日"),
    "week": ("week", "woche", "fortnight", "нед", "周", "星期", "礼拜"),
    "month": ("month", "monat", "мес", "个月", "個月", "月"),
}

# What says that the day after it ends a period, or names one.
_PERIOD_BEFORE = re.compile(
    r"(?:\d(?:st|nd|rd|th|\.)?\s*(?:and|to|or|till?|until|и|по|до|bis|und|[-–—])|\bweek\s+(?:of|from)(?:\s+the)?)\s*$",
    re.IGNORECASE,
)


@frozen
class When:
    """The beginning of a day, week (from Monday on), month or year, and which of these it is.

    It is that of the calendar where the text was said, written as a time in UTC. ``is_year_told``: the text, or the day
    on which it was said, decides the year; otherwise it is the nearest.
    """

    moment: datetime
    precision: Unit
    is_year_told: bool = True

    @property
    def first(self) -> date:
        """The first day."""
        return self.moment.date()

    @property
    def last(self) -> date:
        """The last day."""
        first = self.first
        match self.precision:
            case "day":
                return first
            case "week":
                return first + timedelta(days=6)
            case "month":
                return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        return first.replace(month=12, day=31)

    @property
    def told(self) -> str:
        """As much of the date as is known of all its days: ``2026-05-04``, ``2026-05`` or ``2026``."""
        first, last = self.first, self.last
        if first == last:
            return first.isoformat()
        return f"{first:%Y-%m}" if (first.year, first.month) == (last.year, last.month) else f"{first.year:04}"


def resolve(text: str, said_at: datetime, *, forward: bool = False) -> When | None:
    """Return the first date in a text; None if there is none, or it cannot be computed.

    ``forward``: the text speaks of the future, so that a month without a year is the next one, and "in two weeks" is a
    date and no duration.
    """
    rules = (*_written(), *_relative(), *(_ahead() if forward else ()))
    found = _first(rules, text, said_at)
    return None if found is None else _next_year(found[1], said_at) if forward else found[1]


def resolve_relative(text: str, said_at: datetime) -> tuple[When, str] | None:
    """Return the first date that is told from ``said_at`` ("yesterday", "last week"), and the text without it.

    A question looks back: "on Monday" is the last one, "November" without a year the last that has begun.
    """
    found = _first((*_relative(), *_behind()), text, said_at)
    return None if found is None else (found[1], f"{text[: found[0].start()]} {text[found[0].end() :]}")


def _first(
    rules: Sequence[tuple[re.Pattern[str], _Compute]], text: str, said_at: datetime
) -> tuple[re.Match[str], When] | None:
    """Return the date that begins first in a text, and of these the longest."""
    found = []
    for pattern, compute in rules:
        if match := pattern.search(text):
            try:
                found.append((match, compute(match, said_at.replace(tzinfo=UTC))))
            except (ValueError, OverflowError):
                continue
    return min(found, key=lambda item: (item[0].start(), -item[0].end()), default=None)


def _next_year(when: When, said_at: datetime) -> When | None:
    """Return a day or a month of the next year, if it has no year of its own and has passed; None if there is none."""
    if when.is_year_told or when.last >= said_at.date():
        return when
    with suppress(ValueError):
        return evolve(when, moment=when.moment.replace(year=when.moment.year + 1))
    return None


def _moved(said_at: datetime, unit: Unit, count: int) -> When:
    """Return the day, week, month or year that is ``count`` of them later."""
    today = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "day":
        return When(today + timedelta(count), unit)
    if unit == "week":
        return When(today - timedelta(today.weekday()) + timedelta(weeks=count), unit)
    year, month = divmod(today.year * 12 + today.month - 1 + count * (12 if unit == "year" else 1), 12)
    return When(datetime(year, 1 if unit == "year" else month + 1, 1, tzinfo=UTC), unit)


def _shifted(days: int) -> _Compute:
    return lambda _match, said_at: _moved(said_at, "day", days)


def _counted(sign: int) -> _Compute:
    def compute(match: re.Match[str], said_at: datetime) -> When:
        parts = match.groupdict()
        count = _count(parts.get("count") or "one") * (2 if parts["unit"].lower() == "fortnight" else 1)
        return _moved(said_at, _unit(parts["unit"]), sign * count)

    return compute


def _count(text: str) -> int:
    """Return a number as it is written: ``3``, ``three``, ``три``, ``十二``. Raise ValueError for any other word."""
    text = text.lower().removesuffix(" of")
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.partition("十")
    if ten:
        return 10 * (_COUNTS[tens] if tens else 1) + (_COUNTS[ones] if ones else 0)
    if text not in _COUNTS:
        raise ValueError(text)
    return _COUNTS[text]


def _unit(text: str) -> Unit:
    return next((unit for unit, begins in _STEMS.items() if text.lower().startswith(begins)), "year")


def _offset(which: str) -> int:
    which = which.lower()
    if which in _OFFSETS:
        return _OFFSETS[which]
    is_behind = which.startswith(("прошл", "letzt", "vorig"))
    return -1 if is_behind else int(which.startswith(("следующ", "будущ", "nächst")))


def _span(match: re.Match[str], said_at: datetime) -> When:
    return _moved(said_at, _unit(match["unit"]), _offset(match["which"]))


def _weekday(match: re.Match[str], said_at: datetime) -> When:
    """Return the nearest such day: ahead with "next", and otherwise behind."""
    today, wanted = said_at.weekday(), _WEEKDAYS[match["day"].lower()]
    is_ahead = _offset(match["which"]) > 0
    return _moved(said_at, "day", ((wanted - today) % 7 or 7) if is_ahead else -((today - wanted) % 7 or 7))


def _weekday_ahead(match: re.Match[str], said_at: datetime) -> When:
    """Return the nearest such day ahead."""
    return _moved(said_at, "day", (_WEEKDAYS[match["day"].lower()] - said_at.weekday()) % 7 or 7)


def _weekday_of_week(match: re.Match[str], said_at: datetime) -> When:
    """Return a day of the last, this or the next week, as Chinese counts."""
    week = _moved(said_at, "week", _offset(match["which"])).moment
    return When(week + timedelta(_WEEKDAYS[match["day"]]), "day")


def _weekend(match: re.Match[str], said_at: datetime) -> When:
    """Return the week with the weekend."""
    return _moved(said_at, "week", _offset(match["which"]))


def _numeric(match: re.Match[str], _said_at: datetime) -> When:
    return When(datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC), "day")


def _named(match: re.Match[str], said_at: datetime) -> When:
    """Return a day of a month, in the nearest year if none is given. Raise ValueError for the end of a period."""
    if _PERIOD_BEFORE.search(match.string, 0, match.start()):
        raise ValueError(match[0])
    parts = match.groupdict()
    name = parts["month"].lower().rstrip(".")
    month, day, year = int(name) if name.isdecimal() else _MONTHS[name], int(parts["day"]), parts.get("year")
    if year:
        return When(datetime(int(year), month, day, tzinfo=UTC), "day")
    years = [datetime(said_at.year + shift, month, day, tzinfo=UTC) for shift in (-1, 0, 1)]
    return When(min(years, key=lambda moment: abs(moment - said_at)), "day", is_year_told=False)


def _month(match: re.Match[str], said_at: datetime) -> When:
    """Return a month, in the given year or else the last one that has begun."""
    name = match["month"].lower()
    month = int(name) if name.isdecimal() else _MONTHS[name]
    year = int(match["year"]) if match["year"] else said_at.year - (month > said_at.month)
    return When(datetime(year, month, 1, tzinfo=UTC), "month", is_year_told=bool(match["year"]))


def _year(match: re.Match[str], _said_at: datetime) -> When:
    return When(datetime(int(match["year"]), 1, 1, tzinfo=UTC), "year")


def _rules(*rules: tuple[str, _Compute]) -> Sequence[tuple[re.Pattern[str], _Compute]]:
    return [(re.compile(pattern, re.IGNORECASE), compute) for pattern, compute in rules]


@cache
def _written() -> Sequence[tuple[re.Pattern[str], _Compute]]:
    """Return the forms of dates that say the same whenever they are said, but perhaps without their year."""
    year = r"(?:,?\s+(?P<year>\d{4}))?"
    return _rules(
        (r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b", _numeric),
        (r"(?<![\d.])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d{2})(?!\.?\d)", _numeric),
        (rf"\b(?P<month>{_NAMES})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b{year}", _named),
        (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_NAMES})\b{year}", _named),
        (r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]", _chinese),
        (r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?!\d{1,2}[日号])", _month),
        (r"\b(?:in|since|from|as\s+of|в|с)\s+(?P<year>(?:19|20)\d{2})\b(?![-:.]\d)", _year),
        (r"(?P<year>(?:19|20)\d{2})年(?!\d{1,2}月)", _year),
        (
            rf"\b(?:in|since|from|as\s+of|в|с)\s+(?P<month>{_NAMES})\b(?!\s+\d{{1,2}}\b)(?:\s+(?P<year>\d{{4}}))?",
            _month,
        ),
    )


def _chinese(match: re.Match[str], said_at: datetime) -> When:
    year = int(match["year"]) if match["year"] else said_at.year
    return When(datetime(year, int(match["month"]), int(match["day"]), tzinfo=UTC), "day", bool(match["year"]))


@cache
def _relative() -> Sequence[tuple[re.Pattern[str], _Compute]]:
    """Return the forms of dates that are told from the day on which they are said."""
    # Of "twenty-one days ago" or "half a year ago" the end alone says something else.
    whole = r"(?<![a-z]ty[\s-])(?<!half\s)(?<![\d.,])"
    later = r"(?<!один\s)(?<!одну\s)"
    whole_russian = r"(?<!дцать\s)(?<!десят\s)(?<!сорок\s)(?<!сто\s)(?<![\d.,])"
    digit = "[一二两三四五六七八九]"
    chinese = rf"(?<![一二三四五六七八九十百千万\d])(?P<count>\d{{1,3}}|{digit}?十{digit}?|{digit})"
    which = r"(?P<which>прошл\w+|эт[оуа]\w*|следующ\w+|будущ\w+)"
    of_weeks = "(?P<which>上上个?|下下个?|上个|下个|上|下|这个|这|本)"
    no_day = rf"(?!\s+(?:today|(?:on\s+)?(?:{_DAYS})\b))"  # "a week ago Friday" is no week
    return _rules(
        (r"\b(?:the\s+)?day\s+before\s+yesterday\b|\bvorgestern\b|\bпозавчера\b|(?<!大)前天", _shifted(-2)),
        (r"大前天", _shifted(-3)),
        (r"\byesterday\b|\blast\s+(?:night|evening)\b|\bgestern\b|\bвчера\b|昨[天晚日夜]", _shifted(-1)),
        (r"(?<!ago\s)\btoday\b|\btonight\b|\bthis\s+(?:morning|afternoon|evening)\b|\bheute\b", _shifted(0)),
        (r"\bсегодня\b|今[天晚早日晨]", _shifted(0)),
        (r"(?<!after\s)\btomorrow\b|\bзавтра\b|明[天晚早日]", _shifted(1)),
        (r"\b(?:the\s+)?day\s+after\s+tomorrow\b|\bпослезавтра\b|\bübermorgen\b|[后後]天", _shifted(2)),
        (rf"{whole}\b(?:a\s+)?(?P<count>\d{{1,3}}|{_ENGLISH})\s*{_ENGLISH_UNITS}s?\s+ago\b{no_day}", _counted(-1)),
        (rf"{whole_russian}\b(?P<count>\d{{1,3}}|{_RUSSIAN})\s+{_UNITS}\s+(?:тому\s+)?назад\b", _counted(-1)),
        (rf"{whole_russian}{later}\b(?P<unit>день|неделю|месяц|год)\s+(?:тому\s+)?назад\b", _counted(-1)),
        (rf"{chinese}\s*(?P<unit>天|周|星期|礼拜|个月|個月|年)(?:之|以)?前", _counted(-1)),
        (r"\b(?P<which>last|past|previous|this|current|next|coming)\s+(?P<unit>week|month|year)\b", _span),
        (rf"\b{which}\s+(?P<unit>недел\w+|месяц\w*|год\w*)", _span),
        (r"\b(?P<which>letzt\w+|vorig\w+|dies\w+|nächst\w+)\s+(?P<unit>woche|monat|jahr)(?:e?s)?\b", _span),
        (rf"\b(?P<which>letzt\w+|vorig\w+|nächst\w+)\s+(?P<day>{_DAYS})\b", _weekday),
        (rf"\bvor\s+(?P<count>\d{{1,3}}|{_GERMAN})\s+{_GERMAN_UNITS}\b", _counted(-1)),
        (r"\b(?P<which>letzt\w+|dies\w+|nächst\w+)\s+wochenende\b", _weekend),
        (rf"{of_weeks}(?P<unit>周|星期|礼拜|月)(?![末一二三四五六日天1-7])", _span),
        (r"(?P<which>去|今|明|前|后|後)(?P<unit>年)", _span),
        (rf"\b(?P<which>last|past|previous|next|coming)\s+(?P<day>{_DAYS})\b", _weekday),
        (rf"\b(?P<which>прошл\w+|следующ\w+|будущ\w+)\s+(?P<day>{_DAYS})\b", _weekday),
        (
            rf"{of_weeks}(?:周|星期|礼拜)(?P<day>[一二三四五六日天1-7])",
            _weekday_of_week,
        ),
        (r"\b(?P<which>last|past|this|next|coming)\s+weekend\b", _weekend),
        (rf"\b{which}\s+выходны\w+", _weekend),
        (rf"{of_weeks}周末", _weekend),
    )


@cache
def _behind() -> Sequence[tuple[re.Pattern[str], _Compute]]:
    """Return the forms that are a date only in a question, which looks back."""
    return _rules(
        (rf"\b(?P<which>on|this|am|эт\w+)\s+(?P<day>{_DAYS})s?\b", _weekday),
        (rf"\b(?:in|of|from|last|im|в)\s+(?P<month>{_NAMES})\b(?!\s+\d)(?P<year>(?!))?", _month),
    )


@cache
def _ahead() -> Sequence[tuple[re.Pattern[str], _Compute]]:
    """Return the forms that are a date only in a text about the future, and otherwise how long something takes."""
    return _rules(
        (rf"\b(?:this|on|эт\w+)\s+(?P<day>{_DAYS})\b", _weekday_ahead),
        (rf"\bin\s+(?P<count>\d{{1,3}}|{_GERMAN})\s+{_GERMAN_UNITS}\b", _counted(1)),
        (rf"\bin\s+(?P<count>\d{{1,3}}|{_ENGLISH})\s+{_ENGLISH_UNITS}s?\b(?!\s+ago)", _counted(1)),
        (rf"\bчерез\s+(?:(?P<count>\d{{1,3}}|{_RUSSIAN})\s+)?{_UNITS}", _counted(1)),
        (r"(?P<count>\d{1,3}|[一二两三四五六七八九十]+)\s*(?P<unit>天|周|星期|个月|年)(?:之|以)?[后後]", _counted(1)),
    )
