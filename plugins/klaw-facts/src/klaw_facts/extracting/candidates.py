"""The input and output of extractors: messages, and candidates for facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from attrs import field, frozen

from klaw_facts.values import Quote
from klaw_journals import Chat
from klaw_journals.messages import speaker_of
from klaw_words.lazy_patterns import lazy_pattern

#: The headings of Klaw's contexts. Text below them is never extracted again.
_OWN_BLOCK = lazy_pattern(
    r"^## (?:Relevant memory|Core memory|Relevant Memory)\s*$.*?(?=^(?!\s*$|- |\s|#{2,3} ).+|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MAX_NAME_CHARACTERS = 80


@frozen
class SourceMessage:
    """A message as extractors read it.

    ``content`` is the text in the journal with sentences that contain a secret, and text from memory, replaced by
    spaces, so that offsets stay correct. A sentence that says where the secret is kept stays, with the secret filled.
    ``speaker`` is the name in the journal, or the role. ``trust`` is the class of its writer. ``is_imported``: it has
    another class than its role, and others wrote it. ``project`` is what the message was about, as its writer says.
    ``is_framed``: another message says that this one may be nobody's words. ``takes_back`` is the id of the message
    that this one takes back.
    """

    chat: str
    id: str
    role: str
    speaker: str
    content: str = field(repr=False)
    said_at: datetime
    person: str = ""
    trust: str = "owner"
    is_imported: bool = False
    project: str = ""
    is_framed: bool = False
    takes_back: str = ""

    def quote(self, start: int, end: int) -> Quote:
        """Return a quote of this message."""
        return Quote(self.chat, self.id, start, end)


@frozen
class Candidate:
    """A claim that an extractor derived from a message, before verification. ``when`` is a phrase, not a date."""

    message: SourceMessage
    quote: str
    text: str
    category: str = ""
    when: str | None = None
    made_by: str = "rules"


def blanked(content: str, meta: Mapping[str, Any]) -> str:
    """Replace text from memory in a message by spaces. Offsets do not change."""
    for told in _told(meta.get("memory")):
        content = content.replace(told, " " * len(told))
    return _OWN_BLOCK.sub(lambda match: " " * len(match[0]), content)


def person_of(chat: Chat, role: str, meta: Mapping[str, Any]) -> str:
    """Return who said a message: the channel and the sender's id, or else the chat and the name or role."""
    sender = sender_of(meta)
    return f"{chat.channel}:{sender}" if sender else f"{chat.name}/{speaker_of(role, meta)}"


def project_of(meta: Mapping[str, Any]) -> str:
    """Return the project of a message; empty if it has none."""
    project = meta.get("project")
    known = isinstance(project, str) and 0 < len(project) <= _MAX_NAME_CHARACTERS
    return " ".join(str(project).split()) if known else ""


def sender_of(meta: Mapping[str, Any]) -> str:
    """Return the sender's id of a message; empty if it has none."""
    sender = meta.get("sender_id")
    is_id = isinstance(sender, str | int) and not isinstance(sender, bool)
    return str(sender) if is_id and 0 < len(str(sender)) <= _MAX_NAME_CHARACTERS else ""


def _told(value: object) -> Iterator[str]:
    """Yield the texts in a message's ``meta.memory``, longest first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _told(value.get("text"))
    elif isinstance(value, list | tuple):
        yield from sorted((item for part in value for item in _told(part)), key=len, reverse=True)
