"""Put untrusted text into a prompt or a list so that it stays in its place: the only functions that do this.

A note, a file name or a speaker may be written by a stranger. It must not start a heading or a list item, close the
frame around it, or contain characters that a reader does not see.
"""

from __future__ import annotations

import re
from functools import lru_cache

from klaw_core.cli.neutral import CONTROLS, LINE_BREAKS, MARKS

_REMOVED = dict.fromkeys((*CONTROLS, *MARKS))
# Characters that nobody sees and models read: spaces and joiners without a width, fillers, selectors of variants, and
# tag characters, which are invisible copies of ASCII. Any text can be spelled in them.
_INVISIBLE = (
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = rf"[\s{_INVISIBLE}]"
_EMOJI = r"[\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
# Scripts in which joiners change what is read: Arabic, Syriac, N'Ko, those of India, Burma, Cambodia and Mongolia.
_JOINED = (
    r"[\u0600-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1a20-\u1aff\u1b00-\u1bff\ua840-\ua8ff"
    r"\ua980-\ua9ff\uaa60-\uaaff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
# One of these is kept where a reader sees its effect; a further one behind it is not.
_NEEDED = (
    rf"(?<={_EMOJI})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})"
    rf"|(?<={_JOINED})[\u200c\u200d]|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
)
_INVISIBLE_OR_NEEDED = re.compile(rf"({_NEEDED})|[{_INVISIBLE}]")


def visible(text: str) -> str:
    """Return a text without control characters and others that nobody sees.

    Every kind of line break is a line feed; tabs stay. Also a joiner stays in a script that needs it, and between two
    emoji, and so does the selector of a variant behind an emoji: U+200C, U+200D, U+FE0E, U+FE0F.
    """
    if text.isascii():
        return text if text.isprintable() else LINE_BREAKS.sub("\n", text).translate(_REMOVED)
    return _INVISIBLE_OR_NEEDED.sub(r"\1", LINE_BREAKS.sub("\n", text).translate(_REMOVED))


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
