"""Put the reply to a question after the question.

The words of a question to memory often match a question of the conversation better than its reply, which contains the
answer: "What did you paint?", "A sunrise." So the reply to one of the best messages is moved up to the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from klaw_tools import ContextItem

# Only of the best messages: further down, a reply would take the place of a message that fits better.
_BEST = 5
_PREFIX = "conversations/"
# Each context needs the places of its 50 chunks three times.
_PLACES_KEPT = 1024


def put_replies_after_questions(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Return the items, with the next message right after each of the best messages that contain a question mark.

    Only moves items: a reply that the search did not find is not added. Items that are not chunks of conversations keep
    their order.
    """
    by_start = {place[:2]: item for item in items if (place := message_place(item)) is not None}
    ordered: dict[int, ContextItem] = {}
    messages = 0
    for item in items:
        ordered.setdefault(id(item), item)
        if (place := message_place(item)) is None:
            continue
        messages += 1
        reply = by_start.get((place[0], place[2] + 1)) if messages <= _BEST and _asks(item.text) else None
        if reply is not None:
            ordered.setdefault(id(reply), reply)
    return list(ordered.values())


def _asks(text: str) -> bool:
    return "?" in text or "？" in text


def message_place(item: ContextItem) -> tuple[str, int, int] | None:
    """Return the path and the first and last line of a chunk of a conversation, None for other items."""
    return _place(item.source)


@lru_cache(_PLACES_KEPT)
def _place(source: str) -> tuple[str, int, int] | None:
    path, _, lines = source.rpartition(":")
    first, _, last = lines.partition("-")
    if not path.startswith(_PREFIX) or not first.isdecimal() or not last.isdecimal():
        return None
    return path, int(first), int(last)
