"""Resolve a quote: the text, the file and the line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import RecordError
from klaw_facts.values import Fact, Quote
from klaw_journals import BadLine, Chat, Message

if TYPE_CHECKING:
    from klaw_conversations import Conversations


@frozen
class Place:
    """The place of a quote: a path for ``klaw get``, the line, and the range of characters in the message."""

    path: str
    line: int
    message: Message = field(repr=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        """The quoted text."""
        return self.message.content[self.start : self.end]


@frozen(eq=False)
class Pointers:
    """Reads the journals of conversations."""

    conversations: Conversations

    def messages(self, chat: str, names: Iterable[str] = ()) -> dict[str, Message]:
        """Return the messages of a chat by id, and by those of these names that a message has besides."""
        try:
            lines = self.conversations.read(Chat.parse(chat))
        except RecordError:
            return {}
        said = [line for line in lines if not isinstance(line, BadLine) and not line.duplicate]
        found = {line.message.id: line.message for line in said}
        for name in {name for name in names if "~" in name} - set(found):
            found.update((name, line.message) for line in said if line.is_called(name))
        return found

    def is_readable(self, chat: str, *, whole: bool) -> bool:
        """Return whether a chat can be read, so that a message that is not found was removed.

        ``whole``: a damaged line also counts as unreadable, because it may be the message. A line that a crash has torn
        does not, because it was never acknowledged.
        """
        try:
            place = Chat.parse(chat)
        except RecordError:
            return True
        if any(item.keep for item in self.conversations.journal.files(place).skipped):
            return False
        bad = [line for line in self.conversations.read(place) if isinstance(line, BadLine)]
        return not any(line.ends_reading or (whole and not (line.torn or line.cut)) for line in bad)

    def unsound(self, facts: Iterable[Fact]) -> list[Fact]:
        """Return facts with a quote that is not in the journal, or with a text that differs from all their quotes."""
        facts = list(facts)
        quotes = [quote for fact in facts for quote in fact.quotes]
        known = {
            chat: self.messages(chat, [quote.message for quote in quotes if quote.chat == chat])
            for chat in {quote.chat for quote in quotes}
        }
        wrong = []
        for fact in facts:
            texts = []
            for quote in fact.quotes:
                message = known[quote.chat].get(quote.message)
                is_there = message is not None and quote.end <= len(message.content)
                texts.append(message.content[quote.start : quote.end] if message is not None and is_there else None)
            if None in texts or (fact.verified == "quote" and fact.text not in texts):
                wrong.append(fact)
        return wrong

    def place(self, quote: Quote) -> Place | None:
        """Return the place of a quote; None if its message was removed."""
        numbers: Counter[str] = Counter()
        for line in self.conversations.read(Chat.parse(quote.chat)):
            location = line.location if isinstance(line, BadLine) else line.file.log.location
            numbers[location] += 1
            if not isinstance(line, BadLine) and line.is_called(quote.message):
                path = f"conversations/{quote.chat}/{line.file.day.isoformat()}.jsonl"
                return Place(path, numbers[location], line.message, quote.start, quote.end)
        return None
