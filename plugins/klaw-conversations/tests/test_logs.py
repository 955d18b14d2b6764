"""``klaw logs``: what was said, once and as it is said."""

import json
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from klaw_conversations.journal import Journal
from klaw_journals.chats import Chat
from klaw_journals.messages import Message

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")


@pytest.fixture
def journal(user_home):
    journal = Journal(user_home / "data" / "klaw" / "conversations")
    journal.append_many(
        [
            Message("user", "Where is the kiln?", NOON, meta=CHAT.meta),
            Message("tool", "found 3", NOON + timedelta(minutes=1), meta={**CHAT.meta, "tool": "search"}),
            Message("system", "", NOON + timedelta(minutes=2), type="session_break", meta=CHAT.meta),
            Message("assistant", "In the\nshed.", NOON + timedelta(days=1), meta=CHAT.meta),
        ]
    )
    return journal


@pytest.mark.usefixtures("journal")
class TestOnce:
    def test_messages_are_printed_in_order(self, klaw):
        result = klaw("logs", "--chat", "telegram_123456")

        assert result.exit_code == 0
        assert result.stdout.splitlines() == [
            "2026-02-24 12:00:00  user: Where is the kiln?",
            "2026-02-24 12:01:00  tool search: found 3",
            "2026-02-24 12:02:00  a new session begins",
            "2026-02-25 12:00:00  assistant: In the",
            "  shed.",
        ]

    def test_limit_and_since_restrict_the_messages(self, klaw):
        assert klaw("logs", "--chat", CHAT.name, "-n", "1").stdout.startswith("2026-02-25")
        assert klaw("logs", "--chat", CHAT.name, "--limit", "0").stdout == ""
        assert len(klaw("logs", "--chat", CHAT.name, "--since", "2026-02-25").stdout.splitlines()) == 2
        since = klaw("logs", "--chat", CHAT.name, "--since", "2026-02-24T12:01", "--limit", "2").stdout
        assert since.startswith("2026-02-24 12:02")

    def test_json_prints_the_lines_of_the_journal(self, klaw, journal):
        lines = klaw("logs", "--chat", CHAT.name, "--json").stdout.splitlines()

        assert [json.loads(line) for line in lines] == [line.message.record() for line in journal.read(CHAT)]

    def test_invalid_lines_are_reported_on_stderr_and_the_others_printed(self, klaw, journal):
        with journal.file(CHAT, NOON.date()).log.path.open("ab") as file:
            file.write(b"garbage\n")
        result = klaw("logs", "--chat", CHAT.name)

        assert "not valid JSON" in result.stderr
        assert len(result.stdout.splitlines()) == 5
        assert klaw("logs", "--chat", CHAT.name, "--quiet").stderr == ""

    def test_an_unknown_chat_lists_the_existing_ones(self, klaw):
        result = klaw("logs", "--chat", "telegram_9")

        assert result.exit_code == 1
        assert "known: telegram_123456" in result.stderr
        assert klaw("logs", "--chat", "telegram").exit_code == 1

    def test_control_characters_of_messages_do_not_reach_the_terminal(self, klaw, journal):
        journal.append(Message("user", "\x1b[31mred", NOON + timedelta(days=2), meta=CHAT.meta))

        assert "\x1b" not in klaw("logs", "--chat", CHAT.name).stdout


@pytest.mark.usefixtures("klaw")
def test_follow_prints_new_messages(journal):
    command = [sys.executable, "-m", "klaw_core", "logs", "--chat", CHAT.name, "--follow", "-n", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        assert json.loads(process.stdout.readline())["content"] == "In the\nshed."
        for number in range(3):
            journal.append(Message("user", f"more {number}", NOON + timedelta(days=number), meta=CHAT.meta))
            assert json.loads(process.stdout.readline())["content"] == f"more {number}"
        journal.file(CHAT, NOON.date()).log.path.unlink()
        journal.append(Message("user", "after a cut", NOON, meta=CHAT.meta))
        assert json.loads(process.stdout.readline())["content"] == "after a cut"
        journal.append(Message("user", "and on", NOON, meta=CHAT.meta))
        assert json.loads(process.stdout.readline())["content"] == "and on"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == ""
        guard.cancel()
    assert process.returncode == 130
