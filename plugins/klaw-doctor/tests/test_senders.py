"""Every door through which messages come in writes who wrote them, or it is listed here why it cannot."""

import json
import re
from pathlib import Path

import pytest

from klaw_core import Memory, load_config
from klaw_doctor.importers import importers, load_importer
from klaw_journals import Chat

ROOT = Path(__file__).parents[3]
WRITES = re.compile(r"conversations\.append(?:_many)?\(|\bconversation\(\s*\"|journal\.append\(Message")
#: Modules that write messages, and where the sender's id comes from.
DOORS = {
    "klaw-agents/src/klaw_agents/openai.py": "sender_id of the session",
    "klaw-agents/src/klaw_agents/strands.py": "sender_id of the store",
    "klaw-agents/src/klaw_agents/turns.py": "sender_id that the host gives",
    "langchain-klaw/src/langchain_klaw/chat_message_histories.py": "sender_id of the history, name of the message",
    "klaw-conversations/src/klaw_conversations/history.py": "metadata",
    "klaw-doctor/src/klaw_doctor/readers/chatgpt.py": "user.json",
    "klaw-doctor/src/klaw_doctor/readers/claude.py": "account",
    "klaw-doctor/src/klaw_doctor/readers/openclaw.py": "not in the source",
    "klaw-eval/src/klaw_eval/building.py": "name: a test set has no ids",
    "klaw-eval/src/klaw_eval/poisoning.py": "name: an attack forges a speaker, not an id",
    "klaw-serve/src/klaw_serve/chats.py": "sender_id and name of the call",
}
#: Importers, and whether their messages have a sender's id.
IMPORTERS = {
    "basic-memory": "no messages",
    "chatgpt": "yes",
    "claude": "yes",
    "mem0": "no messages",
    "openclaw": "not in the source",
}
USER = {"id": "user-1", "email": "ada@example.org"}
CHATGPT = {
    "id": "c-1",
    "current_node": "b",
    "mapping": {
        "a": {"id": "a", "message": {"id": "a", "author": {"role": "user"}, "content": {"parts": ["Hi"]}}},
        "b": {"id": "b", "parent": "a", "message": {"author": {"role": "assistant"}, "content": {"parts": ["Yes?"]}}},
    },
}
CLAUDE = {
    "uuid": "c-1",
    "account": {"uuid": "acc-1"},
    "chat_messages": [
        {"uuid": "a", "sender": "human", "text": "Hi"},
        {"uuid": "b", "sender": "assistant", "text": "?"},
    ],
}


@pytest.mark.needs("klaw-conversations")
def test_every_module_that_writes_messages_is_listed():
    modules = {path for path in (ROOT / "plugins").glob("*/src/**/*.py") if WRITES.search(path.read_text("utf-8"))}
    assert {str(path.relative_to(ROOT / "plugins").as_posix()) for path in modules} - {
        "klaw-watch/src/klaw_watch/background.py",  # an example in a docstring
    } == DOORS.keys()


def test_every_importer_is_listed():
    assert importers().keys() == IMPORTERS.keys()


@pytest.mark.parametrize(("name", "value", "person"), [("chatgpt", CHATGPT, "user-1"), ("claude", CLAUDE, "acc-1")])
def test_imported_messages_of_the_user_have_the_account_as_sender(tmp_path, name, value, person):
    source = tmp_path / "export"
    source.mkdir()
    (source / "conversations.json").write_text(json.dumps([value]), "utf-8")
    (source / "user.json").write_text(json.dumps(USER), "utf-8")
    said = [record.value["value"] for record in load_importer(name)(source)]
    assert {line["role"]: line["meta"].get("sender_id") for line in said} == {"user": person, "assistant": None}


@pytest.mark.parametrize("given", ["not JSON", "[]", '{"id": 7}', None])
def test_an_export_without_an_account_is_imported_without_senders(tmp_path, given):
    (tmp_path / "conversations.json").write_text(json.dumps([CHATGPT]), "utf-8")
    if given is not None:
        (tmp_path / "user.json").write_text(given, "utf-8")
    said = [record.value["value"] for record in load_importer("chatgpt")(tmp_path)]
    assert [line["meta"].get("sender_id") for line in said] == [None, None]


@pytest.mark.needs("klaw-conversations")
def test_what_was_imported_without_senders_is_not_imported_again(tmp_path):
    source = tmp_path / "export"
    source.mkdir()
    (source / "conversations.json").write_text(json.dumps([CHATGPT]), "utf-8")
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"memory": {"embedding": {"type": "none"}}},
        environment={"KLAW_CONFIG": "/dev/null"},
    )
    with Memory.open(config) as memory:
        memory.import_(source, importer="chatgpt")
        (source / "user.json").write_text(json.dumps(USER), "utf-8")
        memory.import_(source, importer="chatgpt")
        assert len(list(memory.conversations.read(Chat("chatgpt", "c-1")))) == 2
