"""The process killed while it appends, indexes and rebuilds: nothing acknowledged is lost, rows and journal agree."""

import os
import signal
from datetime import UTC, datetime

import apsw
import pytest

from klaw_conversations.journal import JournalEntry
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_testing.crash import kill_everywhere

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "1")


class KilledInWrite(apsw.VFS):
    """Passes everything on, and kills the process half-way through the n-th write to a database or its log."""

    def __init__(self, left: int) -> None:
        self.left = left
        super().__init__("killed", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802  # SQLite's name
        return KilledFile(self, name, flags)


class KilledFile(apsw.VFSFile):
    def __init__(self, vfs, name, flags) -> None:
        self.vfs = vfs
        super().__init__("unix", name, flags)

    def xWrite(self, data, offset):  # noqa: N802  # SQLite's name
        self.vfs.left -= 1
        if self.vfs.left == 0:
            super().xWrite(data[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        super().xWrite(data, offset)


def live(home, acknowledge, messages=2):
    """What a day with Klaw does to the files."""
    with home.open() as memory:
        for number in range(messages):
            memory.conversations.append(Message("user", f"word{number}", NOON, id=f"m{number}", meta=CHAT.meta))
            acknowledge(f"m{number}")
            memory.index()
        memory.conversations.session_break(CHAT, NOON)
        memory.conversations.append(Message("assistant", "last", NOON, id="m3", meta=CHAT.meta))
        acknowledge("m3")
        memory.reindex()


def look(home, acknowledged, check, point):
    """Open what was left, bring it up to date, and compare it with the journal."""
    with home.open() as memory:
        memory.conversations.sync()
        said = [line.message for line in memory.conversations.read(CHAT) if isinstance(line, JournalEntry)]
        assert {message.id for message in said} >= set(acknowledged), point
        with memory._assembly.store.read() as snapshot:
            rows = snapshot.messages.all(CHAT.name)
        assert [(row.id, row.content) for row in rows] == [(message.id, message.content) for message in said], point
        if said:
            memory.index()
            check(memory)
            for message in said:
                if message.content:
                    assert memory.search(message.content, mode="fts"), point


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def test_a_kill_in_any_write_of_the_journal_loses_no_message(home, make_home, check, tmp_path, cases):
    def program(directory, acknowledge):
        made = make_home("sqlite")
        made.root = directory
        live(made, acknowledge, messages=1)

    for crash in kill_everywhere(program, tmp_path / "runs", every=cases.every(7)):
        cases.add(1)
        home.root = crash.directory
        look(home, crash.acknowledged, check, crash.point)
    assert cases.tried > 10, cases.tried


def killed_at(home, nth):
    """Live in a child that is killed in its n-th write to a database; return how it ended, and what it acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # killed
        try:
            vfs = KilledInWrite(nth)
            live(home, lambda word: os.write(writer, f"{word}\n".encode()))
            os._exit(0 if vfs.left > 0 else 1)
        finally:
            os._exit(70)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    acknowledged = os.read(reader, 1000).decode().split()  # a few words: the pipe holds them
    os.close(reader)
    return os.waitstatus_to_exitcode(status), acknowledged


@pytest.mark.promise("D4")
def test_a_kill_in_any_write_of_the_database_loses_no_message(make_home, check, cases):
    for nth in range(1, 2000, 37 if cases.whole else 173):
        home = make_home("sqlite")
        ended, acknowledged = killed_at(home, nth)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        cases.add(1)
        look(home, acknowledged, check, f"write {nth}")
    assert cases.tried > 3, cases.tried
