"""The extension ``date`` prefers chunks of the days in a question; ``--explain`` shows the bonus.

A date in the question (``2025-05-20``, ``10 May 2025``, ``May 10``) prefers notes with this date in their title, a
heading or the front matter, and messages of this day. A relative day (``yesterday``, ``last Tuesday``, ``two weeks
ago``) or a month has a smaller bonus, because people do not remember such days exactly. A question that contains
nothing else (``what did I do yesterday?``) asks for what is of that time: the day is searched for as notes write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from attrs import frozen

from klaw_core import Preference, PreferringExtension, StoredChunk
from klaw_words.dates import resolve_relative
from klaw_words.days import DATE_KEYS, named_day, written_moment

# Bonuses as shares of the best score. If the question contains only a day, the note of that day comes first.
_ALONE, _NAMED, _LIKELY, _HINT = 1.0, 0.5, 0.4, 0.2
# The most other words of a question in which a relative day counts nearly as much as a written one: a name, a topic.
_FEW_WORDS = 2
# The relevance of what is of the day, if the question contains only a day.
_RELEVANCE = 0.7
_WEEK = 7  # days

# What has the time at which it was written.
_WRITTEN_AT = ("saved/", "facts/")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{0}>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
# Words of a question that only ask for the day itself.
_EMPTY_WORDS = """
a about all an and anything are at been chat chats conversation conversations day diary did discuss discussed do doing
done entries entry everything for from happen happened have he her his i in is it journal list log me meeting meetings
memories message messages my new note notes of on our s said saved say she show something talk talked tell that the
their there they to told up was we were what which who with work worked write writing written wrote you monday tuesday
wednesday thursday friday saturday sunday
am an er es gab gemacht geschehen getan habe haben hat ich im in ist notizen passiert sie war wir was worüber gesprochen
в во говорили заметки записи за и мы написал написала на о об обсуждали он она они произошло с сделал сказал сказала
сообщения у что я было были делал делала делали
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())


@frozen
class DayPreference:
    """The days that a question asks about: ``first`` to ``last``, in any year if ``yearless``.

    ``weight`` is the bonus as a share of the best score; ``is_named``: the question contains the date, and
    ``is_alone``: nothing else.
    """

    first: date
    last: date
    weight: float
    is_named: bool = True
    yearless: bool = False
    is_alone: bool = False

    def holds(self, day: date) -> bool:
        """Return whether a day is in the range."""
        if self.yearless:
            return (day.month, day.day) == (self.first.month, self.first.day)
        return self.first <= day <= self.last

    def written(self) -> str:
        """Return the days as notes and chats write them, to search for them."""
        count = (self.last - self.first).days + 1
        if count == 1:
            return named_day(self.first)
        if count <= _WEEK:
            return " ".join(str(self.first + timedelta(days=number)) for number in range(count))
        month = f"{self.first:%Y-%m} {named_day(self.first).rpartition(', ')[2].partition(' ')[2]}"
        return month if self.first.month == self.last.month else str(self.first.year)

    def has(self, stored: StoredChunk) -> bool:
        """Return whether a chunk is of one of the days.

        If nothing else is asked for, the day of a file's modification time does not count: a copy of a directory has
        files of today.
        """
        return any(map(self.holds, _days_of(stored, named=self.is_named or self.is_alone)))


@frozen
class Dates(PreferringExtension):
    """Prefers the days that a question asks about."""

    name = "date"

    def prefer(self, question: str, /) -> Preference | None:
        """Return the preference for a question; ``yesterday`` is that of the local time."""
        days = preferred_days(question, date.today())  # noqa: DTZ011
        if days is None:
            return None
        if not days.is_alone:
            return Preference(days.weight, days.has)
        if days.is_named:  # a question finds it as it is written
            return Preference(days.weight, days.has, relevance=_RELEVANCE)
        notice = f"read as {days.first}" + (f" to {days.last}" if days.last > days.first else "")
        return Preference(days.weight, days.has, question=days.written(), notice=notice, relevance=_RELEVANCE)


def preferred_days(question: str, today: date) -> DayPreference | None:
    """Return the days that a question asks about, or None."""
    text = question.casefold()
    for start, end, day, yearless in _written(text):
        is_alone = not _others(text[:start] + text[end:])
        return DayPreference(day, day, _ALONE if is_alone else _NAMED, yearless=yearless, is_alone=is_alone)
    relative = None
    if (found := _month(text)) is not None:
        first, last, rest = found
    elif (relative := resolve_relative(text, datetime.combine(today, time(), UTC))) is not None:
        first, last, rest = relative[0].first, relative[0].last, relative[1]
    else:
        return None
    others = _others(rest)
    weight = _ALONE if not others else _LIKELY if len(others) <= _FEW_WORDS and relative is not None else _HINT
    return DayPreference(first, last, weight, is_named=False, is_alone=not others)


def _others(rest: str) -> set[str]:
    """Return the words of the rest of a question that ask for something else than the day."""
    return set(re.findall(r"\w+", rest.casefold())) - _EMPTY


def _days_of(stored: StoredChunk, *, named: bool) -> Iterator[date]:
    """Yield the days of a chunk; with ``named``, without the day of the file's modification time."""
    if not named or stored.chat_id is not None or stored.path.startswith(_WRITTEN_AT):
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


def _month(text: str) -> tuple[date, date, str] | None:
    """Return the first and last day of a month that is written with its year, and the rest of the text."""
    match = re.search(rf"\b{_MONTH.format('name')},?\s+(?P<year>(?:19|20)\d\d)(?!\d)", text)
    if match is None:
        match = re.search(r"(?<!\d)(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)(?![\d-])", text)
        if match is None or not 1 <= int(match["number"]) <= len(_MONTHS):
            return None
        first = date(int(match["year"]), int(match["number"]), 1)
    else:
        first = date(int(match["year"]), _MONTHS.index(match["name"][:3]) + 1, 1)
    return first, _next_month(first) - timedelta(days=1), text[: match.start()] + text[match.end() :]


def _next_month(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)
