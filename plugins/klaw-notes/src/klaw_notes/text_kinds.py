"""Which markup a ``.txt`` file has: documentation in reStructuredText and AsciiDoc is often named so."""

from __future__ import annotations

import re

_MOST_CHARACTERS = 50_000  # that are looked at
# A title of one line above a line of one character, after an empty line or another such line.
_UNDERLINED = re.compile(
    r"(?:\A|\n[ \t]*\n|(?:\A|\n)([=~#*-])\1{2,}[ \t]*\n)[ ]?(?P<title>\S[^\n]{0,99}?)[ \t]*\n"
    r"(?P<line>(?P<mark>[-=~^\"'`*+#])(?P=mark){2,})[ \t]*(?=\n|\Z)"
)
_MIN_TITLES = 2
_RST = re.compile(r"^\.\. \S|^:\w[\w -]*:[ \t]|``\S|:\w[\w:]*:`", re.MULTILINE)
_ASCIIDOC = re.compile(r"^\[[\w\"#,.= -]+\]$|^={1,5} \S|^include::|^\S.*::$|^:[\w-]+:(?:\s|$)", re.MULTILINE)
_TITLE = re.compile(r"\s*(?:(?://|:)[^\n]*\n)*= \S[^\n]*\n.*?^==+ \S", re.MULTILINE | re.DOTALL)


def markup_of(text: str) -> str:
    """Return the suffix of files with the markup of a text: ``.rst``, ``.adoc``; empty for a text without titles."""
    text = text[:_MOST_CHARACTERS].replace("\r\n", "\n")
    if _TITLE.match(text):
        return ".adoc"
    titles = sum(len(match["line"]) >= len(match["title"]) - 1 for match in _UNDERLINED.finditer(text))
    if titles < _MIN_TITLES:
        return ""
    return ".adoc" if len(_ASCIIDOC.findall(text)) > len(_RST.findall(text)) else ".rst"
