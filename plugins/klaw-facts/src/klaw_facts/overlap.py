"""Leave out of a context what it would say twice: a message, and a summary of the chat that covers the message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import RecordError
from klaw_journals import Chat, Summary
from klaw_tools import ContextItem
from klaw_words.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from klaw_conversations import Conversations

_PLACE = lazy_pattern(r"conversations/(?P<chat>[^/]+)/(?P<file>[^/]+)\.jsonl:(?P<line>\d+)(?:-\d+)?")
_SUMMARIES = "summaries"


@frozen
class Span:
    """The messages that a summary covers: those of a chat between two moments, with both."""

    chat: str
    first: datetime
    last: datetime

    def covers(self, chat: str, moment: datetime | None) -> bool:
        """Return whether a message of this chat and moment is covered."""
        return chat == self.chat and moment is not None and self.first <= moment <= self.last


@frozen(eq=False)
class Overlap:
    """Finds what summaries cover. It reads a chat only if a summary of the chat is among the items."""

    get_conversations: Callable[[], Conversations]

    def without(self, items: Sequence[ContextItem]) -> list[ContextItem]:
        """Return the items without messages that an earlier summary covers, and summaries of earlier messages.

        The one that was found first stays, so the result does not depend on the budget.
        """
        places = [_PLACE.fullmatch(item.source) for item in items]
        if not any(place and place["file"] == _SUMMARIES for place in places):
            return list(items)
        kept: list[ContextItem] = []
        spans: list[Span] = []
        said: list[tuple[str, datetime | None]] = []
        for item, place in zip(items, places, strict=True):
            if place is None:
                kept.append(item)
            elif place["file"] != _SUMMARIES:
                if not any(span.covers(place["chat"], item.created_at) for span in spans):
                    said.append((place["chat"], item.created_at))
                    kept.append(item)
            else:
                own = list(self._spans(place["chat"], int(place["line"])))
                if not any(span.covers(*message) for span in own for message in said):
                    spans += own
                    kept.append(item)
        return kept

    def _spans(self, name: str, line: int) -> Iterator[Span]:
        """Yield what the summary in a line covers; nothing if it does not say that, or its messages are gone."""
        conversations = self.get_conversations()
        try:
            chat = Chat.parse(name)
        except RecordError:
            return
        summary = next((each for number, each in enumerate(_lines(conversations, chat), 1) if number == line), None)
        if not isinstance(summary, Summary) or summary.to_message_id is None:
            return
        ends = [each for each in (summary.from_message_id, summary.to_message_id) if each]
        with conversations.row_sync.store.read() as snapshot:
            found = {message.id: message.created_at for message in snapshot.messages.get(name, ends)}
        last = found.get(summary.to_message_id)
        if last is not None:
            yield Span(name, found.get(summary.from_message_id or "", datetime.min.replace(tzinfo=last.tzinfo)), last)


def _lines(conversations: Conversations, chat: Chat) -> Iterator[object]:
    return conversations.row_sync.summaries.lines(chat)
