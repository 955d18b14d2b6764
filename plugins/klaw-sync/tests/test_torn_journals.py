"""A crash has left the beginning of a line in a journal, and another machine forgets something of it.

A broken line may have been any record, so an index run keeps what it does not find. What is known to be forgotten goes.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from klaw_core import Chat, Memory, Message, NewDocument, load_config
from klaw_sync import MemoryKey
from klaw_sync.extension import SyncExtension

KEY = MemoryKey("00112233445566aa", bytes(range(32)))
NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "1")
WORD = "quartzxylophone"
TORN = b'{"id":"torn","text":"half a li\n'  # the next append has ended it


def said(text, number):
    return Message("user", text, NOON.replace(minute=number), id=f"m{number}", meta=CHAT.meta)


def summarise(memory):
    memory.conversations.append(said("Where is it?", 1))
    memory.conversations.add_summary(CHAT, f"the {WORD} is red", from_message_id="m1", to_message_id="m1")


#: Of each journal: how a text gets into it, how it is forgotten, and the file.
JOURNALS = {
    "saved": (
        lambda memory: memory.save(f"the {WORD} is red", created_at=NOON),
        lambda memory: memory.forget(memory.search(WORD, mode="fts")[0].path),
        "saved.jsonl",
    ),
    "documents": (
        lambda memory: memory.add([NewDocument("d", f"the {WORD} is red")]),
        lambda memory: memory.delete(["d"]),
        "documents.jsonl",
    ),
    "conversations": (
        lambda memory: memory.conversations.append(said(f"the {WORD} is red", 1)),
        lambda memory: memory.conversations.forget(CHAT, ["m1"]),
        "conversations/telegram_1/2026-02-24.jsonl",
    ),
    "summaries": (
        summarise,
        lambda memory: memory.conversations.forget(CHAT, ["m1"]),
        "summaries/telegram_1/*.jsonl",
    ),
    "facts": (
        lambda memory: memory.extension("facts").remember(f"The {WORD} is red."),
        lambda memory: memory.extension("facts").forget([memory.extension("facts").list()[0].id]),
        "facts.jsonl",
    ),
}


@pytest.fixture
def machine(tmp_path):
    """Return a function that opens the memory of a machine."""

    def opened(name):
        data = tmp_path / name
        (data / "sync").mkdir(parents=True, exist_ok=True)
        KEY.save(data / "sync" / "key")
        overrides = {"memory": {"embedding": {"type": "none"}}}
        return Memory.open(load_config(data_dir=data, overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"}))

    return opened


def holding(root):
    return [
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*"))
        if path.is_file() and WORD.encode() in path.read_bytes()
    ]


@pytest.mark.promise("Y15")
@pytest.mark.parametrize("kind", JOURNALS)
def test_what_another_machine_forgets_goes_in_spite_of_a_torn_line(machine, tmp_path, kind):
    write, forget, place = JOURNALS[kind]
    collection = "facts" if kind == "facts" else "memory"
    folder = str(tmp_path / "folder")

    def synchronise(*names):
        for name in names:
            with machine(name) as memory:
                assert memory.extension(SyncExtension).run([folder]).problems == ()

    with machine("one") as memory:
        write(memory)
        memory.save("something else", created_at=NOON)
        memory.index()
    synchronise("one", "two")
    (journal,) = (tmp_path / "one").glob(place)
    journal.write_bytes(journal.read_bytes() + TORN)
    with machine("one") as memory:
        memory.index()
        assert memory.search(WORD, mode="fts", collection=collection).results != ()
    with machine("two") as memory:
        memory.index()
        forget(memory)
    synchronise("two", "one")
    with machine("one") as memory:
        assert memory.search(WORD, mode="fts", collection=collection).results == ()
        assert holding(tmp_path / "one") == []
        memory.index()
        memory.reindex()
        assert memory.search(WORD, mode="fts", collection=collection).results == ()
    assert holding(tmp_path / "one") == []
