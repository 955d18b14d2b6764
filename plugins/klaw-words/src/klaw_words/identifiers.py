"""Names in a question that are spelled exactly, such as ``ERR_TLS_43``: one that no chunk contains has no answer.

An error code, a ticket, a version or a telephone number resembles others of its kind in words and in meaning, so a
chunk about ``ERR_TLS_42`` seems to answer a question about ``ERR_TLS_43``. What people also write in other ways is not
an identifier: dates, times, amounts, ordinals, units, and names such as ``GitHub`` or ``python3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from attrs import evolve

from klaw_words.query import MAX_CHARACTERS, Term, compile_query
from klaw_words.treatment import is_unspaced, is_word_character

_RUN = re.compile(r"[#$+]?[0-9A-Za-z][0-9A-Za-z_.:#+/\\@=%-]*", re.ASCII)
# Paths, addresses and formulas: parts of them may be written elsewhere.
_NO_NAME = re.compile(r"[/\\@=%$]|::", re.ASCII)
_TELEPHONE = re.compile(r"\+?\d+(?:[-./]\d+)+", re.ASCII)
_DATE = re.compile(
    r"\d{4}[-./]\d{1,2}(?:[-./]\d{1,2}(?:T.*)?)?|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d\d)|\d{1,2}(?::\d\d){1,2}"
    r"|\d{4}[-/](?:\d{4}|\d\d)",
    re.ASCII,
)
_AMOUNT = re.compile(r"\d+[.,]\d+|\d{1,3}(?:[.,]\d{3})+|\d+000", re.ASCII)
# A number and a unit, an ordinal, a decade.
_UNIT = re.compile(r"\d[\d.,]*[A-Za-z]{0,5}", re.ASCII)
# A word and its number: `python3`, `windows11`.
_NUMBERED = re.compile(r"[A-Za-z]*[a-z]\d{1,2}", re.ASCII)
_VERSION = re.compile(r"v\d+(?:\.\d+)+\S*|\d+(?:\.\d+){2,}\S*", re.ASCII | re.IGNORECASE)
_HUMPS = re.compile(r"[a-z]{3,}[A-Z][a-z]\w*|[A-Z][a-z]+[A-Z][a-z]+[A-Z][a-z]\w*", re.ASCII)
_SNAKE = re.compile(r"[0-9A-Za-z]+(?:_+[0-9A-Za-z]+)+(?:[.:]\w+)*", re.ASCII)
_YEAR = re.compile(r"1\d{3}|20\d\d", re.ASCII)
_BORDERS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", re.ASCII)
# The suffix of a file name, or the number of a line.
_SUFFIX = re.compile(r"(?<=.)(?:\.[A-Za-z]\w{0,4}(?::\d+)?|:\d+)\Z", re.ASCII)
# A number of at least three digits after one of these words is one of many of its kind.
_NUMBERED_THINGS = re.compile(
    r"\b(?:bug|build|code|error|exit|http|invoice|issue|order|port|pr|rfc|status|ticket)\s+#?(?=\d{3,}\b)",
    re.ASCII | re.IGNORECASE,
)
# Characters of a part with letters and digits, digits of a number, and characters of a word that may continue.
_MIN_MIXED, _MIN_DIGITS, _MIN_PREFIX = 4, 5, 7
# Digits of a telephone number, which may be written in two or three groups of at least two digits.
_MIN_TELEPHONE, _MAX_TELEPHONE = 7, 15
_MAX_NAMES = 8


class Words(Protocol):
    """The words of one collection."""

    @property
    def has(self) -> Callable[[Term], bool]:
        """Return a function that says whether any chunk contains a term."""


def absent(text: str, get_words: Callable[[], Words | None], /) -> Sequence[str]:
    """Return the identifiers of a question, as they are written, that no chunk contains.

    ``get_words`` is called only for a question with identifiers; None means that there are no words.
    """
    names = list(dict.fromkeys(identifiers(text[:MAX_CHARACTERS])))[:_MAX_NAMES]
    words = get_words() if names else None
    return names if words is None else [name for name in names if not _is_present(name, words.has)]


def _is_present(name: str, has: Callable[[Term], bool]) -> bool:
    """Return whether a chunk contains an identifier in one of its forms.

    A file name whose first word is its heading, too, is indexed without that word.
    """
    if any(map(has, _writings(name))):
        return True
    first, *rest = re.split(r"[-._]+", _SUFFIX.sub("", name))
    parts = [term for words in (first, "-".join(rest)) for term in compile_query(words)[:1]]
    return len(rest) > 1 and first.isalpha() and any(map(str.isdigit, "".join(rest))) and all(map(has, parts))


def identifiers(text: str, /) -> Iterator[str]:
    """Yield the identifiers of a question in order."""
    counted = {match.end() for match in _NUMBERED_THINGS.finditer(text)}
    for match in _RUN.finditer(text):
        name = match[0].rstrip(".:#+/\\@=-_")
        end = match.start() + len(name)
        beside = (text[match.start() - 1 : match.start()], text[end : end + 1])
        if any(each and is_word_character(each) and not is_unspaced(each) for each in beside):
            continue  # a part of a longer word
        is_counted = match.start() in counted or (match[0][0] == "#" and name[2:].isdigit())
        if (is_counted and not _YEAR.fullmatch(name)) or _is_identifier(name.lstrip("#")):
            yield name.lstrip("#")


def _is_identifier(name: str) -> bool:
    """Return whether a word is spelled in only one way, and is neither a date, a time, an amount nor a measure."""
    if _DATE.fullmatch(name) or _AMOUNT.fullmatch(name):
        return False
    if _TELEPHONE.fullmatch(name) and sum(map(str.isdigit, name)) > _MIN_DIGITS:
        return True
    if _NO_NAME.search(name):
        return False
    if name.lstrip("+").isdigit():
        return sum(map(str.isdigit, name)) >= _MIN_DIGITS
    if any(form.fullmatch(name) for form in (_VERSION, _HUMPS, _SNAKE)):
        return True
    return _is_numbered([part for part in re.split(r"[-._:#+]", name) if part])


def _is_numbered(parts: list[str]) -> bool:
    """Return whether parts are those of a code: ``OPS-17``, ``CVE-2023-1234``, ``7f3a9c2e``; not ``20-year-old``."""
    numbers = [part for part in parts if part.isdigit()]
    for part in parts:
        is_mixed = not part.isalpha() and not part.isdigit() and len(part) >= _MIN_MIXED
        if is_mixed and not _UNIT.fullmatch(part) and not _NUMBERED.fullmatch(part):
            return True
    if any(part.isalpha() and part.isupper() and len(part) > 1 for part in parts):
        return bool(numbers)
    codes = [number for number in numbers if len(number) > 2 and not _YEAR.fullmatch(number)]  # noqa: PLR2004  # digits
    return parts[0].isalpha() and bool(codes) and parts[-1].isdigit()


def _writings(name: str) -> Iterator[Term]:
    """Yield the terms for the forms in which an identifier may be written: joined, separated, part of a longer one."""
    bare = _SUFFIX.sub("", name)
    joined = "".join(filter(str.isalnum, name))
    written = [name, bare, joined, _BORDERS.sub(" ", name), _BORDERS.sub(" ", bare)]
    if _VERSION.fullmatch(name):
        written += [name.lstrip("vV"), f"v{name}"]
    if joined.isdigit() and _MIN_TELEPHONE <= len(joined) <= _MAX_TELEPHONE:
        ends = range(2, len(joined) - 1)
        pairs = [(at, to) for at in ends for to in ends if at + 1 < to or at == to]
        written += [" ".join((joined[:at], joined[at:to], joined[to:])) for at, to in pairs]
    for words in dict.fromkeys(written):
        terms = compile_query("-".join(words.split()))
        if terms:
            yield evolve(terms[0], literal=True)
            if len(terms[0].words) == 1 and len(terms[0].words[0]) >= _MIN_PREFIX:
                yield evolve(terms[0], prefix=True)
