"""Other readings of a text, in which a secret is next to its name: the text as displayed, and one line per table cell.

Patterns look for a value next to its name. In a table, the name is in the header of a column. Characters that are not
displayed may stand inside a name, and JSON has escapes instead of characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeAlias

from attrs import frozen

# The characters with the property Default_Ignorable_Code_Point (DerivedCoreProperties.txt of Unicode 15).
_INVISIBLE = (
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Digits and letters as wide as those of Chinese, and the digits of Arabic.
_WIDE = r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u0660-\u0669\u06f0-\u06f9]"
# An invisible or a wide character, or an escape as JSON and messages of errors have them.
_UNSEEN = rf"{_INVISIBLE}|{_WIDE}|\\{{1,4}}(?P<code>[nrt]|u[0-9A-Fa-f]{{4}}|x[0-9A-Fa-f]{{2}})"
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
# A line of hyphens below the header of a table: of Markdown, Org, reStructuredText, or a client of a database.
_RULE = r"\n(?P<row>[ \t>]*+[|+:=-](?:[ \t]?[|+:=-])*+[ \t]*+)(?=\n|\r|\Z)"
_INLINE_RULE = r"\|[ \t]?(?P<row>\|(?:[ \t]?:?-{2,}+:?[ \t]?\|)++)[ \t]?\|"
_CELLS = {mark: rf'"(?:[^"\n]|"")*+"|(?:\\.|[^{re.escape(mark)}\n\\])*+' for mark in "|,;\t"}
_MAX_NAME = 60
_MAX_WORDS = 3
_MAX_HEADER = 1_000

#: The patterns that decide which readings a text has.
PATTERNS = (_INVISIBLE, _UNSEEN, _RULE, _INLINE_RULE, *_CELLS.values())

#: Yields where in a text names of secrets may begin.
Names: TypeAlias = Callable[[str], Iterable[int]]


@frozen(eq=False, repr=False)
class Reading:
    """A text to search, and the range of each of its characters in the original, negative if it is not from there."""

    text: str
    begins: Sequence[int]
    ends: Sequence[int]

    def spans(self, filled: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the original whose characters are others in ``filled``, in the order of this text."""
        begin = last = -1
        for old, new, at, end in zip(self.text, filled, self.begins, self.ends, strict=True):
            if old == new or at < 0:
                if begin >= 0:
                    yield begin, last
                begin = -1
            else:
                begin, last = at if begin < 0 else begin, end
        if begin >= 0:
            yield begin, last


def other_readings(text: str, names: Names) -> Iterator[Reading]:
    """Yield the other readings of a text; ``names`` yields where in a text names of secrets may begin."""
    plain = Reading(text, range(len(text)), range(1, len(text) + 1))
    if ("\\" in text or not text.isascii()) and re.compile(_UNSEEN).search(text):
        yield (plain := _displayed(text))
    said: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    for name, begin, end in _cells(plain.text, names):
        said += [name, plain.text[begin:end], "\n"]
        added = [-1] * len(name)
        begins += [*added, *plain.begins[begin:end], -1]
        ends += [*added, *plain.ends[begin:end], -1]
    if said:
        yield Reading("".join(said), begins, ends)


def _displayed(text: str) -> Reading:
    """Return the text without invisible characters, and with characters instead of their escapes."""
    parts: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    at = 0
    for match in re.compile(_UNSEEN).finditer(text):
        begin, end = match.span()
        code = match["code"]
        character = _LETTERS.get(code) or chr(int(code[1:], 16) if code else ord(match[0][0]))
        character = "" if re.match(_INVISIBLE, character) else _narrow(character)
        parts += [text[at:begin], character]
        begins += [*range(at, begin), *([begin] if character else [])]
        ends += [*range(at + 1, begin + 1), *([end] if character else [])]
        at = end
    return Reading(
        "".join([*parts, text[at:]]), [*begins, *range(at, len(text))], [*ends, *range(at + 1, len(text) + 1)]
    )


def _narrow(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return chr(ord(character) - 0xFEE0) if "\uff21" <= character <= "\uff5a" else character


def _cells(text: str, names: Names) -> Iterator[tuple[str, int, int]]:
    """Yield each cell below a header that may name secrets, as what stands before it, the begin and the end."""
    done = 0
    for match in re.compile(_RULE).finditer(text):
        ruled = len(re.findall("[-=]+", match["row"]))
        if match.start() >= done and (ruled > 1 or "|" in match["row"]):  # each row is read once
            table = _Table("|", text[text.rfind("\n", 0, match.start()) + 1 : match.start()], names, ruled)
            done = yield from table.cells(text, match.end())
    rules = list(re.finditer(_INLINE_RULE, text))
    ends = [0, *(rule.end() for rule in rules)]
    starts = [*(rule.start() for rule in rules[1:]), len(text)]
    for rule, after, stop in zip(rules, ends, starts, strict=False):
        yield from _on_one_line(text, rule, after, stop, names)
    read = dict.fromkeys(_CELLS, 0)
    end = 0
    for at in names(text):
        if at < end:  # each row is read once, however many names it has
            continue
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = len(text) if end < 0 else end
        row = text[start : min(end, start + _MAX_HEADER + 1)]
        for mark in _CELLS if len(row) <= _MAX_HEADER else ():
            if mark in row and start >= read[mark]:
                read[mark] = yield from _Table(mark, row, names).cells(text, end)


def _on_one_line(text: str, rule: re.Match[str], after: int, stop: int, names: Names) -> Iterator[tuple[str, int, int]]:
    """Yield the cells of a table of Markdown whose lines were joined, between the rules of two others."""
    width = rule["row"].count("|") - 1
    start = max(after, rule.start() - _MAX_HEADER)
    start = max(start, text.rfind("\n", start, rule.start()) + 1)
    end = text.find("\n", rule.end(), stop)
    header = [text[slice(*cell)] for cell in _split(text, "|", start, rule.start())][-width:]
    named = {number: name for number, name in enumerate(header) if _may_name(name, names)}
    cells = _split(text, "|", rule.end(), stop if end < 0 else end) if named else []
    for number, (begin, last) in enumerate(cells):
        if (name := named.get(number % (width + 1))) and begin < last:  # an empty cell ends each row
            yield f"{name}: ", begin, last


def _may_name(name: str, names: Names) -> bool:
    return 0 < len(name) <= _MAX_NAME and any(True for _ in names(f"{name}: 0"))


class _Table:
    """A table whose header is known: how its rows are split, and which of its columns may have secrets."""

    def __init__(self, mark: str, header: str, names: Names, ruled: int = 0) -> None:
        """Read a header. ``ruled`` is the number of columns in the line of hyphens below it, if there is one."""
        self._mark, self._names = mark, names
        cells = [header[begin:end].strip("*_`~\"'> \t") for begin, end in _split(header, mark, 0, len(header))]
        # without a line of hyphens, a header has a few words in each cell, and each row has as many cells
        self._lengths = range(2, sys.maxsize) if ruled else range(len(cells), len(cells) + 1)
        if ruled:
            cells = cells[: -1 if cells[-1] == "" else None][-ruled:]  # in a message, something may stand in front
        elif mark != "\t" and any(len(cell.split()) > _MAX_WORDS for cell in cells):
            cells = []
        said = "{}: " if ruled else "{} is "
        self.columns = {number: said.format(cell) for number, cell in enumerate(cells) if _may_name(cell, names)}

    def cells(self, text: str, at: int) -> Generator[tuple[str, int, int], None, int]:
        """Yield the cells in the rows after the place ``at``, the end of a line; return where the table ends."""
        while self.columns and at < len(text):
            start, end = at + 1, text.find("\n", at + 1)
            end = len(text) if end < 0 else end
            cells = _split(text, self._mark, start, end)
            is_rule = not text[start:end].strip(" \t\r|+:=->") and start < end
            if is_rule:  # perhaps of the next table: the row above it is its header
                above, ruled = text[text.rfind("\n", 0, at) + 1 : at], len(re.findall("[-=]+", text[start:end]))
                self.columns = _Table(self._mark, above, self._names, ruled).columns or self.columns
            if not is_rule and len(cells) not in self._lengths:
                return at
            for number, said in self.columns.items():
                if number < len(cells) and cells[number][0] < cells[number][1]:
                    yield said, *cells[number]
            at = end
        return at


def _split(text: str, mark: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Return where the cells of a line are, without the space around them."""
    cells, pattern = [], re.compile(_CELLS[mark])
    if opening := re.compile(r"[ \t>]*+\|").match(text, begin, end) if mark == "|" else None:
        begin = opening.end()
    while begin <= end:
        stop = pattern.match(text, begin, end).end()  # type: ignore[union-attr]  # it matches the empty text
        cell = text[begin:stop]
        cells.append((begin + len(cell) - len(cell.lstrip()), begin + len(cell.rstrip())))
        begin = stop + 1
    return cells
