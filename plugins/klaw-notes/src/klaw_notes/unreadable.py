"""Blank the parts of a note that people do not read: encoded files, and link definitions.

Spaces replace them in the text that is chunked, so that they are neither found nor embedded, and offsets and line
numbers stay correct. ``klaw get`` reads the file itself and shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WIDTH_OF_ROWS = 60
# Longer than any word; paths and addresses contain other characters.
_MIN_RUN_CHARACTERS = 120
_RUN = re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{120,}+={0,2}")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")
_MIN_HEXADECIMAL_DIGITS = 256  # 128 digits may be a hash, which a user may search for
_DATA_ADDRESS = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w=.+-]{1,80}){0,5}?;base64,[A-Za-z0-9+/=%_-]{16,}+")
# At least three lines of equal width, as in MIME and PEM, and the shorter last line.
_ROWS = re.compile(
    r"^[ \t]*[A-Za-z0-9+/]{60,80}[ \t]*(?:\r\n?|\n)(?:[ \t]*[A-Za-z0-9+/]{60,80}[ \t]*(?:\r\n?|\n)){2,}+"
    r"(?:[ \t]*[A-Za-z0-9+/]{1,80}={0,2}[ \t]*$)?",
    re.MULTILINE,
)
_ROW, _MIN_ROWS = re.compile(r"[A-Za-z0-9+/]{60,80}"), 3
# In random base64 these shares are .41, .41 and .16. Words and identifiers hardly ever reach all three minimums.
_MIN_LETTERS, _MIN_DIGITS = 0.15, 0.05

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DEFINITION = re.compile(
    r""" {0,3}\[(?!\^)([^\[\]]{1,200})\]:[ \t]*+(?:<[^<>]*>|[^\s<]\S*)"""
    r"""(?:[ \t]++(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*"""
)
_BEGINNINGS = frozenset(" `~[")
_LABEL = re.compile(r"\[([^\[\]]{1,200})\]")
_SOLID = re.compile(r"[^\r\n]")


def blank_unreadable(text: str) -> str:
    """Return the text with spaces in place of encoded files and link definitions. Time is linear in the text."""
    if "base64," in text:
        text = _DATA_ADDRESS.sub(_blank, text)
    # Looking at every word is much faster than searching for the patterns at every character.
    if words := [word for word in text.split() if len(word) >= _WIDTH_OF_ROWS]:
        text = _without_codes(text, words)
    return _without_definitions(text) if "]:" in text else text


def _without_codes(text: str, words: Sequence[str]) -> str:
    """Blank encoded files. ``words`` are the long words of the text: each encoded run and each encoded line is one."""
    if any(_RUN.search(word) for word in words if len(word) >= _MIN_RUN_CHARACTERS):
        text = _RUN.sub(_blank_code, text)
    if sum(_ROW.fullmatch(word) is not None for word in words) >= _MIN_ROWS:
        text = _ROWS.sub(_blank_code, text)
    return text


def _blank(match: re.Match[str]) -> str:
    return _SOLID.sub(" ", match[0])


def _blank_code(match: re.Match[str]) -> str:
    """Blank a run of characters if it looks random; words in capitals, for example, stay."""
    run = "".join(match[0].split())
    if _HEXADECIMAL.fullmatch(run) and not run.isdigit():
        return _blank(match) if len(run) >= _MIN_HEXADECIMAL_DIGITS else match[0]
    upper, lower, digits = (sum(map(kind, run)) / len(run) for kind in (str.isupper, str.islower, str.isdigit))
    is_random = min(upper, lower) >= _MIN_LETTERS and digits >= _MIN_DIGITS
    return _blank(match) if is_random else match[0]


def _without_definitions(text: str) -> str:
    """Blank the link definitions that the text refers to; a definition without a reference is ordinary text."""
    lines = text.splitlines(keepends=True)
    found = dict(_definitions(lines))
    if not found:
        return text
    rest = lines.copy()
    for number in found:
        rest[number] = ""
    used = set(map(_normal, set(_LABEL.findall("".join(rest)))))
    for number, label in found.items():
        if label in used:
            lines[number] = _SOLID.sub(" ", lines[number])
    return "".join(lines)


def _definitions(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the label of each link definition outside fenced code."""
    fence = ""
    for number, line in enumerate(lines):
        if line[:1] not in _BEGINNINGS:
            continue
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif not fence and (match := _DEFINITION.fullmatch(line.rstrip("\r\n"))):
            yield number, _normal(match[1])


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()
