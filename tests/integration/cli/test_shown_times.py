"""Days and times that commands print for people are those of the reader's clock."""

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import klaw_core
from klaw_conversations.journal import Journal
from klaw_core.cli.moments import shown_day, shown_moment
from klaw_journals import Chat, Message

ROOT = Path(klaw_core.__file__).parents[1]
#: What prints a moment in UTC, and says so.
_OTHERS = {
    "klaw_core/cli/moments.py",
    "plugins/klaw-serve/src/klaw_serve/warm/extension.py",
    "plugins/klaw-sessions/src/klaw_sessions/extension.py",
    "plugins/klaw-sync/src/klaw_sync/command.py",
}
_LATE = "2026-02-24T23:30:00Z"
_CHAT = Chat.parse("telegram_1")


@pytest.fixture
def tokyo(monkeypatch):
    """Let the clock be that of a place where the day begins nine hours earlier."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_what_is_listed_has_the_day_of_the_clock_and_a_note_of_a_day_has_that_day(klaw, user_home):
    notes = user_home / "notes"
    notes.mkdir()
    (notes / "2026-02-24.md").write_text("The heron.\n", "utf-8")
    assert klaw("index", str(notes)).exit_code == 0
    saved = json.loads(klaw("save", "The kestrel.", "--date", _LATE, "--json").stdout)
    for words in (("list",), ("recent",)):
        days = {line.split()[1]: line.split()[0] for line in klaw(*words).stdout.splitlines() if line[:2] == "20"}
        assert days == {"notes/2026-02-24.md": "2026-02-24", saved["path"]: "2026-02-25"}, words
        assert f'"{_LATE}"' in klaw(*words, "--json").stdout
    assert "2026-02-25 08:30  current" in klaw("history", saved["path"]).stdout


@pytest.mark.usefixtures("tokyo")
def test_the_time_of_a_message_is_that_of_the_clock(klaw, user_home):
    moment = datetime.fromisoformat(_LATE)
    Journal(user_home / "data" / "klaw" / "conversations").append(Message("user", "Hi.", moment, meta=_CHAT.meta))
    assert klaw("logs", "--chat", "telegram_1").stdout.startswith("2026-02-25 08:30:00")


@pytest.mark.usefixtures("tokyo")
def test_a_moment_is_shown_by_the_clock():
    assert shown_day(_LATE) == "2026-02-25"
    assert shown_day("2026-02-24T00:00:00.000Z") == "2026-02-24"
    assert shown_day("") == ""
    assert shown_moment(datetime(2026, 2, 24, 23, 30, 5, tzinfo=UTC)) == "2026-02-25 08:30"
    assert shown_moment(datetime(2026, 2, 24, 23, 30, 5, tzinfo=UTC), seconds=True) == "2026-02-25 08:30:05"


def test_no_other_module_prints_a_day_or_a_time():
    sources = [*ROOT.glob("klaw_core/cli/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    assert len(sources) > 100
    pattern = re.compile(
        r"""\{[^{}]*:%Y-%m-%d[^{}]*\}|strftime\("%Y-%m-%d|(?:_at|\.at|\.ts)["']?\]?\[:10\]|(?:created_at|since)\.date\(\)\.iso"""
    )
    found = {path.relative_to(ROOT).as_posix() for path in sources if pattern.search(path.read_text("utf-8"))}
    assert found == _OTHERS
