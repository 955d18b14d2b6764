"""What extractors read and what they find: a window of messages, and candidates for facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from attrs import field, frozen

from klaw_facts.values import Quote

#: The headings of contexts that Klaw gives to models: their text is never extracted again.
_OWN_BLOCK = re.compile(
    r"^## (?:Relevant memory|Core memory|Relevant Memory)\s*$.*?(?=^(?!\s*$|- |\s|#{2,3} ).+|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LONGEST_NAME = 80


@frozen
class SourceMessage:
    """A message as extractors read it.

    ``content`` is what was said, character by character as in the journal, but blank where it is a secret or what
    memory itself had told; ``speaker`` is the name that the journal gives, or the role.
    """

    chat: str
    id: str
    role: str
    speaker: str
    content: str = field(repr=False)
    said_at: datetime

    def quote(self, start: int, end: int) -> Quote:
        """Return a quote of this message."""
        return Quote(self.chat, self.id, start, end)


@frozen
class Candidate:
    """A claim that an extractor made of a message, before it is verified. ``when`` is a phrase, not a date."""

    message: SourceMessage
    quote: str
    text: str
    category: str = ""
    when: str | None = None
    made_by: str = "rules"


def blanked(content: str, redacted: str, meta: Mapping[str, Any]) -> str:
    """Return a message's content with secrets and its own memory blank, every other character in its place."""
    text = content if redacted == content else _without_secrets(content, redacted)
    for told in _told(meta.get("memory")):
        text = text.replace(told, " " * len(told))
    return _OWN_BLOCK.sub(lambda match: " " * len(match[0]), text)


def speaker_of(role: str, meta: Mapping[str, Any]) -> str:
    """Return who said a message: the name that the journal gives, or the role."""
    name = meta.get("name")
    known = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and not name.isspace()
    return " ".join(str(name).split()) if known else role


def _told(value: object) -> Iterator[str]:
    """Yield the texts of memory that a message's ``meta.memory`` names, the longest first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _told(value.get("text"))
    elif isinstance(value, list | tuple):
        yield from sorted((item for part in value for item in _told(part)), key=len, reverse=True)


def _without_secrets(content: str, redacted: str) -> str:
    """Return the content with all that redaction struck out blank: what is left of ``redacted`` stands around it."""
    kept = re.split(r"\[redacted(?:: [^\]]*)?\]", redacted)
    text, position = "", 0
    for piece in kept:
        found = content.find(piece, position) if piece else position
        if found < 0:
            return " " * len(content)
        text += " " * (found - position) + piece
        position = found + len(piece)
    tail = content[position:]
    return text + (" " * len(tail) if kept[-1] == "" else tail)
