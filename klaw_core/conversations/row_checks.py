"""Whether the rows of conversations agree with the journal, message by message."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import Journal, JournalEntry
from klaw_core.conversations.row_sync import RowSync
from klaw_core.errors import RecordError
from klaw_core.values.findings import FIX, Finding, named

ROWS = "conversation-rows"


def check_rows(row_sync: RowSync) -> Iterator[Finding]:
    """Compare the messages of every chat with its rows, by id and place; ids are held for one chat at a time."""
    with row_sync.store.read() as snapshot:
        rows = snapshot.messages
        known = rows.chats()
        journal = {chat.name: chat for chat in row_sync.journal.chats()}
        behind: list[str] = []
        wrong: list[str] = []
        for name in sorted({*known, *journal}):
            held = [(row.id, row.day, row.position) for row in rows.all(name)]
            said = _said(row_sync.journal, journal[name]) if name in journal else []
            if held != said:
                (behind if _is_behind(held, said) else wrong).append(name)
    if behind:
        what = f"messages of {len(behind):,} chats are not in the database yet: {named(behind)}"
        yield Finding("conversation-behind", "warning", what, str(row_sync.journal.root), "klaw index", tuple(behind))
    if wrong:
        what = f"the database has other messages than the journal, in {len(wrong):,} chats: {named(wrong)}"
        yield Finding(ROWS, "error", what, str(row_sync.journal.root), FIX, tuple(wrong))


def fix_rows(row_sync: RowSync, found: Sequence[Finding]) -> None:
    """Make rows again where they were found wrong; the journal is the truth. Raise StoreError."""
    wrong = [name for finding in found if finding.check == ROWS for name in finding.items]
    for name in wrong:
        with row_sync.store.write() as transaction:
            transaction.messages.purge(name)
        with suppress(RecordError):  # rows of what is no chat's name
            row_sync.sync_chat(Chat.parse(name))
    row_sync.sync()


def _said(journal: Journal, chat: Chat) -> list[tuple[str, object, int]]:
    lines = journal.read(chat)
    return [
        (line.message.id, line.file.day, line.offset)
        for line in lines
        if isinstance(line, JournalEntry) and not line.duplicate
    ]


def _is_behind(held: Sequence[object], said: Sequence[object]) -> bool:
    """Return whether only messages are missing that come after what is held of their file or chat."""
    return len(held) < len(said) and set(held) <= set(said) and list(said[: len(held)]) == list(held)
