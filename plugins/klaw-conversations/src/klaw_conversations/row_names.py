"""The names of messages in their rows: rows are named without reading the messages before them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from klaw_conversations.journal import ChatFile, Journal, JournalEntry, Place
from klaw_conversations.names import base_of
from klaw_conversations.row_values import Row
from klaw_conversations.source import document_path
from klaw_core import SkippedEntry, Store, StoreError, quoted
from klaw_journals import Chat, JournalFileState, MessageReader, StoredMessage
from klaw_journals.file_journals import FileLogs


class OutOfOrderError(Exception):
    """A message was written before another one with its id, which has a row under that id."""


@frozen
class RowNames:
    """Finds the names of messages in the rows of one store."""

    store: Store[Any]
    journal: Journal

    def name_new(self, chat: Chat, messages: Sequence[Row], rows: MessageReader) -> list[Row]:
        """Give new rows their names. Raise OutOfOrderError if a row with one of the ids is of a later message."""
        held = {row.id: row.place for row in rows.get(chat.name, [row.id for _, row in messages])}
        names = self.journal.names(chat, held)
        made = []
        for entry, row in messages:
            name = names.name(entry.message, entry.place)
            if name != entry.id and held.get(entry.id, entry.place) > entry.place:
                raise OutOfOrderError
            made.append((entry, evolve(row, id=name)))
        return made

    def find_first(self, chat: Chat, before: Place, ids: Collection[str]) -> Mapping[str, Place]:
        """Return the places of the first messages with some ids before a place, from the rows of a chat.

        Lines without rows are read. If a row is not of the line at its place, or the store cannot be read, all are.
        """
        try:
            with self.store.read() as snapshot:
                held = snapshot.messages.get(chat.name, list(ids))
                states = snapshot.messages.files(chat.name)
        except StoreError:
            return self.journal.find_first(chat, before, ids)
        found = {row.id: row.place for row in held if row.place < before}
        for file in self.journal.files(chat).files:
            known = states.get(file.day)
            if file.day > before[0] or (known is not None and self._is_mirrored(file, known, before)):
                continue
            for line in self.journal.read_file(file, 0 if known is None else known.end):
                if isinstance(line, JournalEntry) and line.id in ids and line.place < before:
                    found[line.id] = min(found.get(line.id, line.place), line.place)
        if all(self.journal.is_at(chat, place, name) for name, place in found.items()):
            return found
        return self.journal.find_first(chat, before, ids)

    def _is_mirrored(self, file: ChatFile, known: JournalFileState, before: Place) -> bool:
        """Return whether a file has no line without a row before a place.

        Only Klaw writes to logs that are not files; earlier days of these are not asked for their size.
        """
        if file.day == before[0]:
            return known.end >= before[1]
        return not isinstance(self.journal.logs, FileLogs) or file.log.size == known.end


def renamed(file: ChatFile, rows: Sequence[Row]) -> tuple[SkippedEntry, ...]:
    """Name the first of the rows whose id is not that in the line, and count the others."""
    found = [(entry, row.id) for entry, row in rows if row.id != entry.id]
    if not found:
        return ()
    (entry, name), others = found[0], len(found) - 1
    more = f", and {others:,} more messages likewise" if others else ""
    what = f"an id that another message of the chat has: {quoted(entry.id)} is called {name} here{more}"
    return (SkippedEntry(f"{document_path(file)}@{entry.offset}", what, keep=True),)


def is_among(held: StoredMessage, rows: Iterable[Row], *, is_alike: bool) -> bool:
    """Return whether a message with a row is among the messages of its day, perhaps under another name.

    ``is_alike``: the row was made in the same way as these, so its content can be compared.
    """
    same = (row for entry, row in rows if entry.id in {held.id, base_of(held.id)})
    if is_alike:
        return any(evolve(row, id=held.id, position=held.position) == held for row in same)
    return any((row.created_at, row.role, row.type) == (held.created_at, held.role, held.type) for row in same)
