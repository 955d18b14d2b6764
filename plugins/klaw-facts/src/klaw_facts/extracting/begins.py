"""Since when the value of a slot is true, as far as the sentence says so.

The date that a sentence names is not always that: it may be the value itself (a birthday), the end ("until May"), or
the date of something else that the sentence tells.
"""

from __future__ import annotations

import re
from datetime import datetime

from attrs import frozen

from klaw_facts.extracting.plain import DATED
from klaw_facts.extracting.slots import CONNECTION, Stated
from klaw_facts.values import Precision
from klaw_words.dates import When, resolve

#: Slots whose value is a date.
_OF_DATES = re.compile(r"birthday$|deadline:")
_END = re.compile(r"\b(?:until|till|through|up to|before|до|по)\s|直到|为止|之前|以前", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:i|we|my|our|я|мы|мой|моя|наш\w*)\b|[我咱]", re.IGNORECASE)
# What happened at a time. Other statements are about the present: they were true when they were said.
_EVENT = re.compile(
    r"\b(?:moved|relocated|joined|started|changed|switched|upgraded|updated|migrated|got|became|was|were|been promoted"
    r"|\w*ехал[аи]?|перебрал\w+|начал[аи]?|устроил\w+|обновил\w+|переш\w+|стал[аи]?|повысили)\b|开始|加入|[搬升换改成]",
    re.IGNORECASE,
)
_MAX_ADVERBIAL_WORDS = 6


@frozen
class Begin:
    """When a value began to be true, how exactly that is known, and, if it is dated, when it was said to be true."""

    valid_from: datetime | None = None
    precision: Precision = "unknown"
    affirmed_at: datetime | None = None


def begin_of(text: str, stated: Stated | None, when: str | None, said_at: datetime) -> Begin:
    """Return the begin of what a sentence states; ``when`` are the words in which it may say it."""
    if stated is None:
        return Begin()
    undated = Begin(said_at, "by")
    if _OF_DATES.match(stated.slot) or not when:
        return undated
    found = _when(text, stated, when, said_at)
    if found is None or (found.moment > said_at and found.moment.date() == said_at.date()):
        return undated
    if found.moment > said_at or _EVENT.search(stated.said) or stated.is_planned:
        return Begin(found.moment, found.precision)
    return Begin(found.moment, found.precision, said_at)


def is_dated(text: str, stated: Stated, said_at: datetime) -> bool:
    """Return whether every time that a sentence names beside what it states can be read."""
    if _OF_DATES.match(stated.slot) or ":" in stated.slot:
        return True
    rest = text.replace(stated.value, " " * len(stated.value))
    times = (match[0] for match in re.finditer(rf"(?i:{DATED})", rest))
    return all(resolve(time, said_at, forward=stated.is_planned) is not None for time in times)


def _when(text: str, stated: Stated, when: str, said_at: datetime) -> When | None:
    """Return the date that is said of the value: in its clause, or in one beside it that only names a time."""
    clauses, start = [], 0
    for cut in [*CONNECTION.finditer(text), None]:
        end = len(text) if cut is None else cut.start()
        clauses.append((start, end))
        start = end if cut is None else cut.end()
    places = [index for index, (begin, end) in enumerate(clauses) if begin < stated.end and stated.start < end]
    for index in [*places, *(place for place in (places[0] - 1, places[-1] + 1) if 0 <= place < len(clauses))]:
        clause = text[slice(*clauses[index])]
        if index in places:
            clause = clause.replace(stated.value, " " * len(stated.value))
        elif _FIRST_PERSON.search(clause) or len(clause.split()) > _MAX_ADVERBIAL_WORDS:
            continue
        if not _END.search(clause) and (found := resolve(clause, said_at, forward=stated.is_planned)) is not None:
            said_here = when == text or when.strip() in clause or resolve(when, said_at) == found
            return found if said_here else None
    return None
