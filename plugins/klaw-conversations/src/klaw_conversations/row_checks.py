"""Compare the rows of conversations with the journal, message by message."""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

from klaw_conversations.journal import JournalEntry
from klaw_conversations.row_sync import RowSync, chat_of
from klaw_core import Finding, RecordError
from klaw_core.values.findings import FIX, named
from klaw_journals import Chat, MessageReader, StoredMessage

ROWS = "conversation-rows"

#: The values of a message that are compared: its id and place, and possibly more.
_Row: TypeAlias = tuple[Any, ...]


def check_rows(row_sync: RowSync) -> Iterator[Finding]:
    """Compare the messages of every chat with its rows, one chat at a time.

    Rows that were made with other redaction patterns are compared by id and place only; the next index run makes them
    again.
    """
    with row_sync.store.read() as snapshot:
        rows = snapshot.messages
        known = rows.chats()
        journal = {chat.name: chat for chat in row_sync.journal.chats()}
        behind: list[str] = []
        wrong: list[str] = []
        for name in sorted({*known, *journal}):
            recipe = row_sync.recipe
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
        what = f"the summaries of {len(unlike):,} chats differ from their files: {named(unlike)}"
        yield Finding("summary-rows", "warning", what, row_sync.summaries.logs.location, "klaw index", tuple(unlike))
    if wrong:
        what = f"the database and the journal have different messages in {len(wrong):,} chats: {named(wrong)}"
        yield Finding(ROWS, "error", what, location, FIX, tuple(wrong))


def fix_rows(row_sync: RowSync, found: Sequence[Finding]) -> None:
    """Make the wrong rows again from the journal. Raise StoreError."""
    wrong = [name for finding in found if finding.check == ROWS for name in finding.items]
    failures: list[Exception] = []
    for name in wrong:
        chat = chat_of(name)
        if chat is not None:
            failures += row_sync.mirror_again(chat).failures
            continue
        with row_sync.store.write() as transaction:
            transaction.messages.purge(name)
    failures += row_sync.sync().failures
    for failure in failures:
        raise failure


def _has_summaries(row_sync: RowSync, rows: MessageReader, name: str) -> bool:
    """Return whether a chat's summaries in the store are those of its file."""
    try:
        chat = Chat.parse(name)
    except RecordError:  # rows with an invalid chat name
        return True
    return list(rows.summaries(name)) == row_sync.written_summaries(chat)


def _said(row_sync: RowSync, chat: Chat) -> list[StoredMessage]:
    lines = row_sync.journal.read(chat)
    return [row_sync.row(line) for line in lines if isinstance(line, JournalEntry) and not line.duplicate]


def _key(row: StoredMessage, days: Container[date]) -> _Row:
    """Return the values of a row to compare: all of them if the row's day is in ``days``, else its id and place."""
    place = (row.id, row.day, row.position)
    if row.day not in days:
        return place
    metadata = json.dumps(dict(row.metadata), sort_keys=True)
    return (*place, row.channel, row.role, row.type, row.content, row.created_at, metadata)


def _is_behind(held: Sequence[_Row], said: Sequence[_Row], ends: Mapping[date, int]) -> bool:
    """Return whether the rows only lack messages from the parts of files that are not mirrored yet."""
    missing = set(said) - set(held)
    return [row for row in said if row not in missing] == list(held) and all(
        position >= ends.get(day, 0) for _, day, position, *_ in missing
    )
