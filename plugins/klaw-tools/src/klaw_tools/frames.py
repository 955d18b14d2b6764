"""Put untrusted text into a prompt or a list so that it stays in its place: the only functions that do this.

A note, a file name or a speaker may be written by a stranger. It must not start a heading or a list item, close the
frame around it, or contain characters that a reader does not see.
"""

from __future__ import annotations

import re
import unicodedata

from klaw_core.cli.neutral import INVISIBLE, visible

# Signs of smaller, and brackets that look like one.
_BRACKETS = "<\uff1c\ufe64\u2039\u2329\u27e8\u3008\u276e\u02c2\u1438\u227a"
_BRACKET = re.compile(f"[{_BRACKETS}]")
# What may stand between a bracket and its tag.
_LEAD = re.compile(rf"[\s{INVISIBLE}/\uff0f\u2044\u2215\u29f8\\|]")
# Tags that programs around Klaw put its contexts into, or that models read as the begin or the end of a message.
_OF_HOSTS = ("system-reminder", "im_start", "im_end")
# Letters of other alphabets, and digits, that look like a letter of a tag.
_ALIKE = {
    "a": "\u0430\u03b1\u0251",
    "c": "\u0441\u03f2",
    "e": "\u0435\u03b5\u0454\u212e3",
    "k": "\u03ba\u043a",
    "l": "\u04cf\u0456\u03b91",
    "m": "\u043c",
    "o": "\u043e\u03bf\u03c30",
    "r": "\u0433",
    "s": "\u0455",
    "u": "\u03c5\u057d",
    "w": "\u0461\u03c9\u051d",
    "y": "\u0443\u03b3",
}
_PLAIN = str.maketrans({other: letter for letter, others in _ALIKE.items() for other in others})


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
    """Return a text that stands beside such a pair of tags, in which nothing opens or closes one, or a host's."""
    seen = visible(text)

    def harmless(found: re.Match[str]) -> str:
        return "(" if any(_is_tag(name, seen, found.end()) for name in (tag, *_OF_HOSTS)) else found[0]

    return _BRACKET.sub(harmless, seen)


def _is_tag(name: str, text: str, at: int) -> bool:
    """Return whether a reader sees the name of a tag here, in letters of whatever form and alphabet.

    What is between the letters, such as a dash of another kind, does not count.
    """
    letters, spelled = "".join(filter(str.isalnum, name)), ""
    while at < len(text) and text[at] not in _BRACKETS and letters.startswith(spelled) and spelled != letters:
        plain = unicodedata.normalize("NFKD", text[at]).lower().translate(_PLAIN)
        found = "".join(filter(str.isalnum, plain))
        if not spelled and not found and not _LEAD.match(text[at]):
            return False
        spelled += found
        at += 1
    return spelled.startswith(letters)
