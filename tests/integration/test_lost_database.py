"""The database is derived: without it, nothing that a person owns is lost."""

from datetime import UTC, datetime

import pytest

from klaw_core import Chat, Message, NewDocument

MOMENT = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")


@pytest.mark.promise("D19")
def test_an_index_run_makes_a_deleted_database_again(make_home, check, dump):
    home = make_home("sqlite")
    home.write("a.md", "# Pier\n\nThe lantern hangs at the pier.\n")
    with home.open() as memory:
        memory.index(home.notes)
        forgotten = memory.save("the walrus", created_at=MOMENT)
        memory.forget(forgotten.path)
        memory.save("the boat lies at the pier", created_at=MOMENT)
        memory.add([NewDocument("crane", "the crane stands at the pier")])
        memory.add([NewDocument("kiln", "the kiln is cold")], collection="other")
        memory.conversations.append(Message("user", "where is the ferry?", MOMENT, "m1", meta=CHAT.meta))
        memory.conversations.add_summary(CHAT, "somebody asked for the ferry", created_at=MOMENT)
        memory.core.update("user", "city", "Split")
        memory.index()
        before = dump(memory)
        assert len(before["chunks"]) >= 4
    for file in list((home.root / "data").glob("klaw.db*")):
        file.unlink()
    with home.open() as memory:
        memory.index()
        check(memory)
        assert dump(memory) == before
        assert (
            memory.search("kiln", collection="other")[0].path == memory.get_by_ids(["kiln"], collection="other")[0].path
        )
        assert [line.message.content for line in memory.conversations.tail(CHAT, 9)] == ["where is the ferry?"]
        assert [one.content for one in memory.conversations.summaries(CHAT)] == ["somebody asked for the ferry"]
        assert memory.core.get().user == {"city": "Split"}
        assert not list(memory.search("walrus", mode="fts"))
        assert memory.doctor().healthy
