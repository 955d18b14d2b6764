"""Put untrusted text into a prompt or a list so that it stays in its place: the only functions that do this.

A note, a file name or a speaker may be written by a stranger. It must not start a heading or a list item, close the
frame around it, or contain characters that a reader does not see.
"""

from __future__ import annotations

import re
from functools import lru_cache

from klaw_core.cli.neutral import INVISIBLE, visible

_UNSEEN = rf"[\s{INVISIBLE}]"


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
    return f"<{tag}>\n{defused(tag, text)}\n</{tag}>"


def defused(tag: str, text: str) -> str:
    """Return a text that stands beside such a pair of tags, in which nothing opens or closes one."""
    return _tag(tag).sub("(", visible(text))


@lru_cache
def _tag(name: str) -> re.Pattern[str]:
    """Return the pattern of the start of a tag: with characters that are not seen, and other forms of the bracket."""
    letters = rf"{_UNSEEN}*".join(map(re.escape, name))
    return re.compile(rf"[<\uff1c\ufe64](?=(?:{_UNSEEN}|[/\uff0f\\])*{letters})", re.IGNORECASE)
