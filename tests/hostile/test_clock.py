"""A clock that jumps, backwards as well: nothing is lost, the order of a chat is that of its lines, files are read."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from importlib import import_module

import pytest

from klaw_core import Chat, Memory, Message
from klaw_core.config.load import load_config
from klaw_memories import saved as saved_module
from klaw_memories import saved_extension

archive_module = import_module("klaw_conversations.archive")

CHAT = Chat("telegram", "1")
WORDS_ONLY = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
SAMPLE = 3
STEPS = 25
START = datetime(2026, 2, 24, 12, tzinfo=UTC)
JUMPS = (
    *(timedelta(seconds=1), timedelta(seconds=-1), timedelta(), timedelta(microseconds=1)),
    *(timedelta(days=-1), timedelta(days=400), timedelta(days=-20_000), timedelta(days=20_000), timedelta(hours=-3)),
)


@pytest.fixture
def clock(monkeypatch):
    """A clock of the tests' own; return what sets it forward or back."""
    now = [START]

    class Jumping(datetime):
        @classmethod
        def now(cls, tz=None):
            return now[0].astimezone(tz)

    for module in (saved_extension, saved_module, archive_module):
        monkeypatch.setattr(module, "datetime", Jumping)
    monkeypatch.setattr(time, "time_ns", lambda: int(now[0].timestamp() * 1e9))

    def jump(by: timedelta) -> datetime:
        now[0] = min(max(now[0] + by, datetime(1971, 1, 1, tzinfo=UTC)), datetime(9000, 1, 1, tzinfo=UTC))
        return now[0]

    return jump


def test_whatever_the_clock_says_nothing_is_lost(cases, clock, tmp_path):
    for number, dice in cases.seeded("clock", SAMPLE):
        root = tmp_path / str(number)
        (root / "notes").mkdir(parents=True)
        environment = {"KLAW_CONFIG": os.devnull}
        config = load_config(data_dir=root / "data", environment=environment, overrides={"memory": WORDS_ONLY})
        saved: dict[str, str] = {}
        said: list[str] = []
        notes: dict[str, str] = {}
        memory = Memory.open(config)
        memory.index(root / "notes")
        for step in range(STEPS):
            now = clock(dice.choice(JUMPS))
            match dice.randrange(6):
                case 0:
                    text = f"saved word{number}x{step}"
                    saved[memory.save(text).path] = text
                case 1:
                    text = f"said word{number}x{step}"
                    memory.conversations.append(Message("user", text, now, meta=CHAT.meta))
                    said.append(text)
                case 2:
                    name = f"{dice.randrange(4)}.md"
                    notes[name] = f"note word{number}x{step} "  # of one length, mostly
                    (root / "notes" / name).write_text(notes[name])
                    os.utime(root / "notes" / name, (now.timestamp(), now.timestamp()))
                    memory.index()
                case 3 if saved:
                    path = dice.choice(sorted(saved))
                    memory.forget(path)
                    del saved[path]
                case 4:
                    memory.close()
                    memory = Memory.open(config)
                case _:
                    memory.reindex()
        memory.index()
        for path, text in saved.items():
            assert memory.get(path).content == text
            assert path in {result.path for result in memory.search(text, 50)}
        for name, text in notes.items():
            assert f"notes/{name}" in {result.path for result in memory.search(text, 50)}
        lines = [line.message for line in memory.conversations.read(CHAT)]
        assert sorted(line.content for line in lines) == sorted(said)
        days = [line.ts.date() for line in lines]
        assert days == sorted(days)
        assert len(memory.conversations.search("said", 100)) == len(said)
        assert [item for item in memory.doctor().findings if item.severity == "error"] == []
        memory.close()
    assert number + 1 >= SAMPLE
