"""Make untrusted text harmless for terminals, JSON, and tables that a spreadsheet opens.

The stream (:mod:`klaw_core.cli.streams`) applies :func:`neutral` to everything that is written to a terminal. The only
exception is text styled by rich: :class:`~klaw_core.cli.output.Output` cleans its parts before they are styled.
"""

from __future__ import annotations

import re

#: Controls of C0 and C1 except line feed and tab, DEL, line separators, controls of direction, annotations.
CONTROLS = (
    *(code for code in range(32) if chr(code) not in "\n\t"),
    *range(127, 160),
    *(0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xFFF9, 0xFFFC),
)
#: Direction marks of Arabic and Hebrew texts. The text is readable without them.
MARKS = (0x061C, 0x200E, 0x200F)
#: Everything that ends a line anywhere, except the line feed.
LINE_BREAKS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_TERMINAL = {**dict.fromkeys(CONTROLS, "\N{REPLACEMENT CHARACTER}"), **dict.fromkeys(MARKS, "")}
_ESCAPED_IN_JSON = re.compile("[" + "".join(map(re.escape, map(chr, (*CONTROLS[30:], *MARKS)))) + "\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r]")


def neutral(text: str) -> str:
    """Replace characters that can control the terminal; line breaks and tabs stay."""
    return text.replace("\r\n", "\n").translate(_TERMINAL)


def escaped_json(text: str) -> str:
    """Escape the control characters in JSON that JSON itself does not escape; they only occur in strings."""
    return text if text.isascii() and "\x7f" not in text else _ESCAPED_IN_JSON.sub(_escape, text)


def csv_cell(text: str) -> str:
    """Return a CSV cell; text that a spreadsheet would treat as a formula is prefixed with an apostrophe."""
    return f"'{text}" if _FORMULA.match(text) else text


def one_line(text: str) -> str:
    """Return a text on one line, for lists with one name per line."""
    return " ".join(neutral(text).split("\n"))


def plain_lines(text: str) -> str:
    """Normalize line breaks to newlines, so that a margin can be added to every line."""
    return LINE_BREAKS.sub("\n", text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
