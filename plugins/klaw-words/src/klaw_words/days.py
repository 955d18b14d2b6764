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
# The months of English, German, French, Spanish, Italian, Portuguese, Dutch and Russian in dates (CLDR, wide form):
# a name is one of them, or its beginning if it means the same month in each of these languages.
_MONTH_NAMES = (
    "january januar janvier enero gennaio janeiro januari января",
    "february februar février febrero febbraio fevereiro februari февраля",
    "march märz mars marzo março maart марта",
    "april avril abril aprile апреля",
    "may mai mayo maggio maio mei мая",
    "june juni juin junio giugno junho июня",
    "july juli juillet julio luglio julho июля",
    "august août agosto augustus августа",
    "september septembre septiembre settembre setembro сентября",
    "october oktober octobre octubre ottobre outubro октября",
    "november novembre noviembre novembro ноября",
    "december dezember décembre diciembre dicembre dezembro декабря",
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
_MONTH = r"([^\W\d_]{3,10})\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th|er|º|\.)?"
# Year, month and day, in the order of the groups that each form names.
_FORMS = (
    ("ymd", r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})"),
    ("dmy", r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})"),
    ("dmy", r"(1[3-9]|2\d|3[01])/(\d{1,2})/(\d{4})"),  # of 5/7/2021 nobody knows the month
    ("mdy", r"(\d{1,2})/(1[3-9]|2\d|3[01])/(\d{4})"),
    ("mdy", rf"{_MONTH}\s+{_DAY}(?:,\s*|\s+)(\d{{4}})"),
    ("dmy", rf"{_DAY}\s*(?:(?:of|de)\s+)?{_MONTH}(?:,?|\s+de)\s+(\d{{4}})"),
    ("dmy", rf"{_DAY}-{_MONTH}-(\d{{4}})"),
    ("ymd", r"(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]"),
    ("ym", r"(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]"),
    ("yw", r"(\d{4})-?W(\d\d)"),
    ("ywx", r"(\d{4})-?W(\d\d)-?([1-7])"),
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

    A day is its beginning in UTC, a week, month or year its first day. What follows a day and is no time is ignored.
    None for anything else, and for what is outside of the range of datetime.
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
    weekday = r"(?:[^\W\d_]{2,13}\.?,\s*)?"
    return [
        (order, re.compile(weekday + form + (r"((?:[Tt](?=\d)|[\s,]).*)?" if "d" in order else "()")))
        for order, form in _FORMS
    ]


def _moment(parts: Mapping[str, str], rest: str) -> datetime:
    """Return the moment of the parts of a date. Raise ValueError or OverflowError if there is none."""
    month = parts.get("m", "1")
    if "w" in parts:
        day = date.fromisocalendar(int(parts["y"]), int(parts["w"]), int(parts.get("x", 1)))
    else:
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
    """Return the number of a month by its name or the beginning of it. Raise ValueError for another word."""
    name = name.casefold()
    months = [names.split() for names in _MONTH_NAMES]
    exact = [number for number, names in enumerate(months, 1) if name in names]
    found = exact or [n for n, names in enumerate(months, 1) if any(each.startswith(name) for each in names)]
    if len(found) != 1:
        raise ValueError(name)
    return found[0]


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
