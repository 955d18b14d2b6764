"""Whether the rows of conversations agree with the journal, message by message."""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, TypeAlias

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import JournalEntry
from klaw_core.conversations.row_sync import RowSync
from klaw_core.errors import RecordError
from klaw_core.interfaces.messages import MessageReader
from klaw_core.values.chat_rows import StoredMessage
from klaw_core.values.findings import FIX, Finding, named

ROWS = "conversation-rows"

#: A message, for comparing: its id and place, and what else is to be compared.
_Row: TypeAlias = tuple[Any, ...]


def check_rows(row_sync: RowSync) -> Iterator[Finding]:
    """Compare the messages of every chat with its rows, one chat at a time.

    By place only where the rows were made with other patterns of redaction: the next index makes them again.
    """
    with row_sync.store.read() as snapshot:
        rows = snapshot.messages
        known = rows.chats()
        journal = {chat.name: chat for chat in row_sync.journal.chats()}
        behind: list[str] = []
        wrong: list[str] = []
        for name in sorted({*known, *journal}):
            recipe = row_sync.redactor.recipe
            files = rows.files(name)
            days = {day for day, state in files.items() if state.recipe == recipe}
            held = [_key(row, days) for row in rows.all(name)]
            said = [_key(row, days) for row in _said(row_sync, journal[name])] if name in journal else []
            lacking = bool(said) and rows.session(name) is None
            if held != said or lacking:
                ends = {day: state.end for day, state in files.items()}
                (behind if not lacking and _is_behind(held, said, ends) else wrong).append(name)
        chats = {*known, *row_sync.summaries.chats()}
        unlike = [name for name in sorted(chats) if not _has_summaries(row_sync, rows, name)]
    location = row_sync.journal.logs.location
    if behind:
        what = f"messages of {len(behind):,} chats are missing from the database: {named(behind)}"
        yield Finding("conversation-behind", "warning", what, location, "klaw index", tuple(behind))
    if unlike:
        what = f"summaries of {len(unlike):,} chats are not those of their files: {named(unlike)}"
        yield Finding("summary-rows", "warning", what, row_sync.summaries.logs.location, "klaw index", tuple(unlike))
    if wrong:
        what = f"the database and the journal have different messages in {len(wrong):,} chats: {named(wrong)}"
        yield Finding(ROWS, "error", what, location, FIX, tuple(wrong))


def fix_rows(row_sync: RowSync, found: Sequence[Finding]) -> None:
    """Make rows again where they were found wrong; the journal is the truth. Raise StoreError."""
    wrong = [name for finding in found if finding.check == ROWS for name in finding.items]
    for name in wrong:
        with row_sync.store.write() as transaction:
            transaction.messages.purge(name)
        with suppress(RecordError):  # rows of what is no chat's name
            row_sync.sync_chat(Chat.parse(name))
    row_sync.sync()


def _has_summaries(row_sync: RowSync, rows: MessageReader, name: str) -> bool:
    """Return whether a chat's summaries are those of its file."""
    try:
        chat = Chat.parse(name)
    except RecordError:  # rows of what is no chat's name
        return True
    return list(rows.summaries(name)) == row_sync.written_summaries(chat)


def _said(row_sync: RowSync, chat: Chat) -> list[StoredMessage]:
    lines = row_sync.journal.read(chat)
    return [row_sync.row(line) for line in lines if isinstance(line, JournalEntry) and not line.duplicate]


def _key(row: StoredMessage, days: Container[date]) -> _Row:
    """Return what two rows of one message agree in: of these days in all that they hold."""
    place = (row.id, row.day, row.position)
    if row.day not in days:
        return place
    metadata = json.dumps(dict(row.metadata), sort_keys=True)
    return (*place, row.channel, row.role, row.type, row.content, row.created_at, metadata)


def _is_behind(held: Sequence[_Row], said: Sequence[_Row], ends: Mapping[date, int]) -> bool:
    """Return whether only messages are missing that stand where their file is not mirrored yet."""
    missing = set(said) - set(held)
    return [row for row in said if row not in missing] == list(held) and all(
        position >= ends.get(day, 0) for _, day, position, *_ in missing
    )
