"""The example that replays a chat: days of messages, facts from them, and who said what."""

import importlib.util
import json
from pathlib import Path

import pytest

from klaw_core import Memory
from klaw_facts import Facts

SCRIPT = Path(__file__).parents[3] / "examples" / "replay_chat.py"


@pytest.fixture
def replay(tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    config.write_text('[extensions.facts]\nextractor = "rules"\n[memory.embedding]\ntype = "none"\n', "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KLAW_CONFIG", str(config))
    spec = importlib.util.spec_from_file_location("replay_chat", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def history():
    with Memory.open() as memory:
        return [(fact.slot, fact.value, fact.quotes[0].chat) for fact in memory.extension(Facts).history()]


def test_the_sample_chat_shows_what_changed_and_who_said_it(replay, capsys):
    replay(None, 3)
    assert ("home", "Lyon", "replay_invented") in history()
    assert ("deadline:harbour gate", "March 12", "replay_invented") in history()
    replay(None, 3)
    days = [line for line in capsys.readouterr().out.splitlines() if line.startswith("2026-")]
    assert [line.partition(": ")[2] for line in days[3:]] == ["0 messages, 0 new facts"] * 3


def test_a_file_of_messages_and_one_of_locomo_are_replayed_up_to_a_day(replay, tmp_path, capsys):
    lines = [
        {"ts": f"2026-01-0{day}T10:00:00Z", "role": "user", "content": f"I live in {place}."}
        for day, place in ((1, "Rome"), (2, "Oslo"), (3, "Kiel"))
    ]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    replay(tmp_path / "chat.jsonl", 2)
    assert [value for _, value, _ in history()] == ["Rome", "Oslo"]
    turn = {"speaker": "Ada", "text": "My name is Ada Byron."}
    said = {"speaker_b": "Eve", "session_1": [turn], "session_1_date_time": "1:56 pm on 8 May, 2023"}
    (tmp_path / "locomo.json").write_text(json.dumps([{"conversation": said}]), "utf-8")
    replay(tmp_path / "locomo.json", 1)
    assert "2023-05-08: 1 messages, 1 new facts" in capsys.readouterr().out
