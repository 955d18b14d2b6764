"""Put untrusted text into a prompt or a list so that it stays in its place: the only functions that do this.

A note, a file name or a speaker may be written by a stranger. It must not start a heading or a list item, close the
frame around it, or contain characters that a reader does not see.
"""

from __future__ import annotations

import re
from functools import lru_cache

from klaw_core.cli.neutral import CONTROLS, LINE_BREAKS, MARKS

# Tag characters are invisible copies of ASCII, which models read.
_REMOVED = dict.fromkeys((*CONTROLS, *MARKS, *range(0xE0000, 0xE0080)))
_UNSEEN = (
    r"[\s\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return a text without control characters; every kind of line break is a line feed, and tabs stay."""
    return text if text.isascii() and text.isprintable() else LINE_BREAKS.sub("\n", text).translate(_REMOVED)


def one_line(text: str) -> str:
    """Return a label (a path, a heading, a speaker) on one line, without control characters."""
    return " ".join(visible(text).split())


def item_text(text: str) -> str:
    """Return the text of a list item: further lines are indented, so that none starts a heading or another item.

    A text that is one already stays as it is.
    """
    first, *rest = visible(text).split("\n")
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in rest)])


def framed(tag: str, text: str) -> str:
    """Return a text in a pair of tags, which nothing in the text can close or open, in whatever spelling."""
    return f"<{tag}>\n{_tag(tag).sub('(', visible(text))}\n</{tag}>"


@lru_cache
def _tag(name: str) -> re.Pattern[str]:
    """Return the pattern of the start of a tag: with characters that are not seen, and other forms of the bracket."""
    letters = rf"{_UNSEEN}*".join(map(re.escape, name))
    return re.compile(rf"[<\uff1c\ufe64](?=(?:{_UNSEEN}|[/\uff0f\\])*{letters})", re.IGNORECASE)
