"""Put lines into a text and take them out, so that the text gets back what it had: its line ends and its last one."""

from __future__ import annotations


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def last_line(text: str) -> str:
    """Return the last line of a text, with its end."""
    return text[text.rfind("\n", 0, max(len(text) - 1, 0)) + 1 :]


def is_blank_line(line: str) -> bool:
    """Return whether a line consists of its end alone."""
    return line in {"\n", "\r\n"}


def inserted(text: str, at: int, lines: str, *, before: str = "") -> str:
    """Return a text with lines at the start of a line, or at its end. `before` stands in front of them.

    If the last line of the text has no end, the last of the new lines has none either: `removed` sees this.
    """
    if at == len(text) and text and not text.endswith("\n"):
        return f"{text}{newline_of(text)}{before}{lines}".removesuffix("\n").removesuffix("\r")
    return f"{text[:at]}{before}{lines}{text[at:]}"


def removed(text: str, start: int, end: int) -> str:
    """Return a text without the lines between two places; see `inserted`."""
    before = text[:start]
    if end == len(text) and not text.endswith("\n"):
        before = before.removesuffix("\n").removesuffix("\r")
    return before + text[end:]
