"""The names of messages: their ids, unless a writer has used an id before in the chat for another message.

The first message with an id is called by it. Another message with that id is called by its full name, which consists of
the id and a digest of the whole message. Equal messages are one message, which a writer has appended twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Generic, TypeVar

from attrs import define, field

from klaw_journals import Message, format_ts

PlaceT = TypeVar("PlaceT", bound=Hashable)

_DIGITS = 32
_FULL_NAME = re.compile(rf".+~[0-9a-f]{{{_DIGITS}}}", re.DOTALL)
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def full_name(message: Message) -> str:
    """Return the name that no other message of the chat can have: ``msg_001~`` and 32 hexadecimal digits.

    It depends only on the message, so it stays the same whatever is appended or forgotten.
    """
    whole = [message.role, message.content, format_ts(message.ts), message.type, message.meta, message.extra]
    digest = sha256(_encode([message.id, *whole]).encode()).hexdigest()
    return f"{message.id}~{digest[:_DIGITS]}"


def base_of(name: str) -> str:
    """Return the id in a full name; any other name is returned unchanged."""
    return name[: -_DIGITS - 1] if may_be_full(name) else name


def may_be_full(name: str) -> bool:
    """Return whether a name has the form of a full name."""
    return _FULL_NAME.fullmatch(name) is not None


@define(eq=False)
class Names(Generic[PlaceT]):
    """Names the messages of a chat in order. ``read`` returns the message at a place, None if there is none any more.

    ``first`` has the place of the first message with each id. So a message that repeats an id is compared with that
    message alone, and the others are not kept.
    """

    read: Callable[[PlaceT], Message | None]
    first: dict[str, PlaceT] = field(factory=dict)
    _full: dict[str, str] = field(factory=dict, init=False)

    def name(self, message: Message, place: PlaceT) -> str:
        """Return the name of the next message. An id that looks like a full name is never a name itself."""
        if may_be_full(message.id):
            return full_name(message)
        first = self.first.setdefault(message.id, place)
        if first == place:
            return message.id
        if message.id not in self._full:
            found = self.read(first)
            self._full[message.id] = "" if found is None else full_name(found)
        name = full_name(message)
        return message.id if name == self._full[message.id] else name
