"""Text that others wrote, made harmless: for a terminal, for JSON, for a table that a spreadsheet opens.

What reaches a terminal passes :func:`neutral` in one place, the stream itself (:mod:`klaw_core.cli.streams`); only
what rich has styled passes by it, whose pieces :class:`~klaw_core.cli.output.Output` has cleaned.
"""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, what ends a line or reorders text: a note must not be able to drive the terminal.
_CONTROLS = (
    *(code for code in range(32) if chr(code) not in "\n\t"),
    *range(127, 160),
    *(0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xFFF9, 0xFFFC),
)
# Marks of direction, which texts in Arabic and Hebrew have: without them they can be read.
_MARKS = (0x061C, 0x200E, 0x200F)
_TERMINAL = {**dict.fromkeys(_CONTROLS, "\N{REPLACEMENT CHARACTER}"), **dict.fromkeys(_MARKS, "")}
_ESCAPED_IN_JSON = re.compile("[" + "".join(map(re.escape, map(chr, (*_CONTROLS[30:], *_MARKS)))) + "\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def neutral(text: str) -> str:
    """Return text in which no character can control the terminal; line breaks and tabs stay."""
    return text.replace("\r\n", "\n").translate(_TERMINAL)


def escaped_json(text: str) -> str:
    """Return JSON, which holds controls only in strings, with escapes for those that JSON would let pass."""
    return text if text.isascii() and "\x7f" not in text else _ESCAPED_IN_JSON.sub(_escape, text)


def csv_cell(text: str) -> str:
    """Return a text for a cell of CSV that no spreadsheet takes for a formula: an apostrophe stands before it then."""
    return f"'{text}" if _FORMULA.match(text) else text


def one_line(text: str) -> str:
    """Return a name on one line, for a list of one name a line."""
    return " ".join(neutral(text).split("\n"))


def plain_lines(text: str) -> str:
    """Return text whose lines end in one way, so that a margin stands before each."""
    return _LINE_BREAKS.sub("\n", text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
