"""Write a test set's documents as Markdown notes, one each, with the title as heading.

Their text is not Markdown. A line that starts with ``#`` or ``-`` must not become a heading or a list, so each
paragraph is written as one line, and a special character at its start is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from klaw_eval.values import Page

_A_FOLDER = 1_000  # notes
_BLANK_LINES = re.compile(r"\n[ \t\f\v]*\n\s*")
# The starts of blocks in CommonMark 0.31: heading, quote, list, rule, fence, table, HTML, definition; not indentation.
_BLOCK = re.compile(r"[#>|<\[=~`]|[-+*_]|\d{1,9}[.)](?=\s|$)")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")


def write_notes(pages: Sequence[Page], directory: Path) -> None:
    """Write a note for each page at :func:`note_path`."""
    for number, page in enumerate(pages):
        file = directory / note_path(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(as_note(page), encoding="utf-8")


def note_path(number: int) -> str:
    """Return the relative path of a page's note. It contains a number, because an id may be any string."""
    return f"{number // _A_FOLDER:04}/{number:07}.md"


def as_note(page: Page) -> str:
    """Return a page as Markdown, with each paragraph on one line."""
    title = " ".join(_printable(page.title).split())
    blocks = [f"# {title}"] if title else []
    return "\n\n".join([*blocks, *_paragraphs(_printable(page.text))]) + "\n"


def _printable(text: str) -> str:
    """Return text that can be encoded in UTF-8 and is not mistaken for a binary file."""
    return _UNPRINTABLE.sub(" ", text)


def _paragraphs(text: str) -> Iterator[str]:
    for block in _BLANK_LINES.split(text):
        line = " ".join(block.split())
        if found := _BLOCK.match(line):
            escaped = found.end() - 1  # for `1.` the dot, otherwise the character itself
            line = f"{line[:escaped]}\\{line[escaped:]}"
        if line:
            yield line
