"""Since when the value of a slot is true, as far as the statement says so."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from attrs import frozen

from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.slots import Stated, all_stated_in, ended_in
from klaw_facts.values import Fact, Precision, normalised
from klaw_words.dates import resolve
from klaw_words.lazy_patterns import lazy_pattern

#: The metadata of a fact that says that a value of a slot has ended: the slots. Its text says which value.
ENDS = "ends"
_CHINESE = lazy_pattern("[一-鿿]")
# "From January I work at Acme" may be said in October of January to come; "работаю с января" is said of the last one.
_MAYBE_TO_COME = lazy_pattern(
    r"(?:from|as of|с|[从自])(?!.*(?:last|this|yesterday|прошл|эт|[去今昨上]|\d{4}))", re.IGNORECASE
)
_NAMED_DAY = lazy_pattern("(?!yester)[a-z]+day", re.IGNORECASE)
_NEXT_IS_NEAR = timedelta(days=365 - 120)
_RUSSIAN = lazy_pattern("[а-яё]", re.IGNORECASE)
_YEAR = lazy_pattern(r"(?<!\d)\d{4}(?!\d)")


# A text about the future, and what is in quotation marks.
_AHEAD = lazy_pattern(
    r"\b(?:will|shall)(?! have\b)|\bwon['’]t\b|['’]ll\b(?! have\b)"
    r"|\b(?:going to|gonna|plan(?:s|ning)? to|upcoming|deadline)\b|\b(?:next|due)(?! to\b)"
    r"|(?:['’](?:m|re|s)|\b(?:am|is|are)) (?:meeting|flying|leaving|moving|starting|visiting|getting|travell?ing)\b"
    r"|\b(?:буд(?:у|ет|ем|ут|ешь|ете)|планиру\w+|собира\w+)\b|[会會将將]|打算|计划|計劃",
    re.IGNORECASE,
)
_QUOTED = lazy_pattern(r"[\"“«„「『][^\"”»“」』]*[\"”»“」』]")


@frozen
class Begin:
    """When a value began to be true, how exactly that is known, and, if it is dated, when it was said to be true."""

    valid_from: datetime | None = None
    precision: Precision = "unknown"
    affirmed_at: datetime | None = None


def begin_of(text: str, stated: Stated | None, when: str | None, said_at: datetime) -> Begin:
    """Return the begin of what a text states; ``when`` are the words of the text in which it may say it."""
    if stated is None:
        return Begin()
    undated = Begin(said_at, "by")
    if not when or not stated.time:
        return undated
    found = resolve(stated.time, said_at, forward=stated.is_planned)
    if found is None or (found.moment > said_at and found.moment.date() == said_at.date()):
        return undated
    if when != text and when.strip() not in stated.said and resolve(when, said_at) != found:
        return undated
    if found.moment > said_at or stated.is_event or stated.is_planned:
        return Begin(found.moment, found.precision)
    return Begin(found.moment, found.precision, said_at)


def is_dated(stated: Stated, said_at: datetime) -> bool:
    """Return whether the time that a statement names, if any, can be read."""
    return not stated.time or resolve(stated.time, said_at, forward=stated.is_planned) is not None


def begin_of_part(message: SourceMessage, place: tuple[int, int], when: str | None) -> tuple[Begin, Stated | None]:
    """Return what a part of a message states, as :func:`begin_in`; nothing if it may be nobody's words."""
    return (Begin(), None) if message.is_framed else begin_in(message.content, place, when, message.said_at)


def begin_in(content: str, place: tuple[int, int], when: str | None, said_at: datetime) -> tuple[Begin, Stated | None]:
    """Return what a part of a text states, and since when that is true; ``when``: the words that may say it.

    A plan without a date, and a statement with a date that cannot be read, state nothing; nor does "I moved tomorrow".
    """
    start, end = place
    stated = next((item for item in all_stated_in(content) if item.start < end and start < item.end), None)
    if stated is None or not is_dated(stated, said_at):
        return Begin(), None
    begin = begin_of(content[start:end], stated, when, said_at)
    is_later = begin.valid_from is not None and begin.valid_from > said_at
    has_past = not is_later and (stated.is_planned or _may_be_to_come(stated, begin, said_at))
    if has_past or (is_later and _is_past(stated)) or _is_unborn(stated, said_at):
        return Begin(), None
    return begin, stated


def _is_past(stated: Stated) -> bool:
    """Return whether a statement tells of what has begun; verbs of Chinese have no tense."""
    has_begun = stated.is_event or stated.time.casefold().startswith("since")
    return has_begun and _CHINESE.search(stated.said) is None


def _may_be_to_come(stated: Stated, begin: Begin, said_at: datetime) -> bool:
    """Return whether a statement of the present names a day or a month that may be the next one, for that is near."""
    is_after = _RUSSIAN.match(stated.time) is not None and stated.said.endswith(stated.time)
    if stated.is_event or is_after or _MAYBE_TO_COME.match(stated.time) is None or begin.valid_from is None:
        return False
    return said_at - begin.valid_from > _NEXT_IS_NEAR or _NAMED_DAY.search(stated.time) is not None


def _is_unborn(stated: Stated, said_at: datetime) -> bool:
    """Return whether it states a birthday in a year to come."""
    if stated.slot != "birthday" or not _YEAR.search(stated.value):
        return False
    day = resolve(stated.value, said_at)
    return day is not None and day.moment > said_at


def is_said(when: str | None, content: str) -> bool:
    """Return whether a text has these words, however they are written."""
    return bool(when) and normalised(str(when)) in normalised(content)


def told_by(text: str, stated: Stated | None) -> dict[str, Any]:
    """Return the slot, the value and the metadata of a fact with this statement in its text."""
    if stated is None or stated.is_ended:
        slots = " ".join(dict.fromkeys(item.slot for item in ended_in(text))) if stated else ""
        return {"slot": None, "value": None, "metadata": {ENDS: slots} if slots else {}}
    return {"slot": stated.slot, "value": stated.value, "metadata": {}}


def endings_of(fact: Fact) -> tuple[Stated, ...]:
    """Return what a fact says to be so no more; nothing if a person has changed its text since."""
    return ended_in(fact.text) if ENDS in fact.metadata and fact.slot is None else ()


def date_told(words: str | None, said: str, said_at: datetime) -> str:
    """Return the date that words of a text name, as far as it is known; empty if it is a guess.

    A day without a year that is to come is one only in a text about the future. A title in quotation marks is no date.
    """
    if not words or not is_said(words, said):
        return ""
    is_ahead = _AHEAD.search(said) is not None
    when = resolve(_QUOTED.sub(" ", words), said_at, forward=is_ahead)
    is_guess = when is not None and not (when.is_year_told or is_ahead) and when.first > said_at.date()
    return "" if when is None or is_guess else when.told
