"""A byte of a row has become another: what stands around it is found, what is wrong is said and made again."""

from contextlib import closing

import apsw
import pytest

from klaw_core import Chat, Filters, KlawError, Message
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")


@pytest.fixture
def home(make_home):
    home = make_home("sqlite")
    home.write("dose.md", "# Dose\n\nTake 10 mg in the harbour.\n")
    home.write("other.md", "# Other\n\nThe harbour is calm.\n")
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("the harbour code is 4711", created_at=MOMENT)
        memory.conversations.append(Message("user", "meet me at the harbour", MOMENT, meta=CHAT.meta))
        memory.conversations.append(Message("user", "bring the harbour map", MOMENT, meta=CHAT.meta))
        memory.index()
    return home


def damage(home, table, column, old, new):
    """Change a value of one row behind Klaw's back; ``new`` need be no Unicode."""
    with closing(apsw.Connection(str(home.root / "data" / "klaw.db"))) as connection:
        where = f"WHERE instr(CAST({column} AS BLOB), ?)"
        ((row, value),) = connection.execute(
            f"SELECT rowid, CAST({column} AS BLOB) FROM {table} {where}", (old,)
        ).fetchall()
        connection.execute(
            f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE rowid = ?", (value.replace(old, new), row)
        )


def checks(memory):
    return [finding.check for finding in memory.doctor().findings]


@pytest.mark.promise("D35")
@pytest.mark.parametrize(
    "change",
    [
        ("content", b"10 mg", b"90 mg"),
        ("content", b"10 mg", b"\xff\xfe mg"),
        ("content", b"the harbour.", b"the harb\xc3ur."),
        ("heading", b'["Dose"]', b'["Dote"]'),
        ("heading", b'["Dose"]', b'["Dose"'),
        ("heading", b'["Dose"]', b"\xff"),
    ],
)
@pytest.mark.one_of(3)
@pytest.mark.parametrize("mode", ["fts", "vector", "hybrid"])
def test_a_damaged_chunk_is_left_out_reported_and_made_again(home, check, change, mode):
    damage(home, "memory_chunks", *change)
    with home.open() as memory:
        answer = memory.search("harbour", 10, mode=mode)
        paths = {result.path for result in answer}
        assert "notes/other.md" in paths
        assert "notes/dose.md" not in paths
        assert any("damaged" in notice and "doctor --fix" in notice for notice in answer.notices)
        (finding,) = memory.doctor().findings
        assert (finding.check, finding.severity) == ("damaged-chunks", "error")
        assert [item.check for item in memory.doctor(fix=True).findings if not item.fixed] == []
        assert memory.doctor().findings == ()
        answer = memory.search("10 mg harbour", mode=mode)
        assert "Take 10 mg in the harbour." in {result.content.partition("\n\n")[2].strip() for result in answer}
        assert not answer.notices
        check(memory)


@pytest.mark.parametrize("column", ["source", "chat_id", "created_at"])
def test_a_label_that_is_not_text_does_not_end_a_search(home, column):
    old = {"source": b"dose.md", "chat_id": b"telegram_1", "created_at": b"2026-02-24T12:00:00"}[column]
    with closing(apsw.Connection(str(home.root / "data" / "klaw.db"))) as connection:
        connection.execute(
            f"UPDATE memory_chunks SET {column} = CAST(? AS TEXT) "
            f"WHERE id = (SELECT min(id) FROM memory_chunks WHERE instr({column}, ?))",
            (b"\xff\xfe", old),
        )
    with home.open() as memory:
        assert memory.search("harbour", 10).notices
        assert checks(memory) == ["damaged-chunks"]
        memory.doctor(fix=True)
        assert checks(memory) == []
        assert not memory.search("harbour", 10).notices


@pytest.mark.parametrize("new", [b"1174", b"\xff\xff\xff\xff"])
def test_a_damaged_memory_is_not_shown(home, new):
    damage(home, "memory_chunks", "content", b"4711", new)
    with home.open() as memory:
        (path,) = (record.path for record in memory.documents(prefix="saved/"))
        assert memory.get(path).content == "the harbour code is 4711", "the journal has it"
        (home.root / "data" / "saved.jsonl").unlink()
        with pytest.raises(KlawError):
            memory.get(path)


@pytest.mark.parametrize("new", [b"1174", b"\xff\xff\xff\xff"])
def test_a_damaged_memory_can_be_forgotten_with_its_vector(home, new):
    damage(home, "memory_chunks", "content", b"4711", new)
    with home.open() as memory:
        (path,) = (record.path for record in memory.documents(prefix="saved/"))
        cached = int(memory._assembly.store.statistics()["cached_vectors"])
        memory.forget(path)
        assert not memory.documents(prefix="saved/")
        assert int(memory._assembly.store.statistics()["cached_vectors"]) == cached - 1
        assert checks(memory) == []


@pytest.mark.parametrize("new", [b"farbour", b"\xffarbour"])
def test_a_damaged_message_does_not_end_a_search_and_its_row_is_made_again(home, new):
    damage(home, "messages", "content", b"harbour map", new + b" map")
    with home.open() as memory:
        contents = [message.content for message in memory.conversations.search("harbour")]
        assert "meet me at the harbour" in contents
        assert "conversation-rows" in checks(memory)
        memory.doctor(fix=True)
        assert checks(memory) == []
        assert len(memory.conversations.search("harbour map")) == 2


def test_a_damaged_message_can_be_purged(home):
    damage(home, "messages", "content", b"harbour map", b"\xff\xff")
    with home.open() as memory:
        memory.conversations.purge(CHAT)
        assert not memory.conversations.search("harbour")
        memory.index()
        assert checks(memory) == []


def test_a_database_without_checksums_gets_them(home):
    """Rows that are damaged already do not keep the database from being opened."""
    with closing(apsw.Connection(str(home.root / "data" / "klaw.db"))) as connection:
        connection.execute("ALTER TABLE memory_chunks DROP COLUMN checksum")
        connection.execute("ALTER TABLE doc_chunks DROP COLUMN checksum")
        connection.execute("ALTER TABLE message_files DROP COLUMN checksum")
        connection.execute("DROP TABLE cache_documents")
        connection.execute("DELETE FROM klaw_migrations WHERE name = '0011-checksums'")
        connection.execute("UPDATE memory_chunks SET content = CAST(x'ff' AS TEXT) WHERE instr(content, '10 mg')")
    with home.open() as memory:
        assert memory.search("harbour", filters=Filters(path="notes/other.md"))
        assert checks(memory) == ["damaged-chunks"]
        memory.index()
        memory.doctor(fix=True)
        assert checks(memory) == []
    damage(home, "memory_chunks", "content", b"10 mg", b"90 mg")
    with home.open() as memory:
        assert checks(memory) == ["damaged-chunks"]


@pytest.mark.parametrize("limit", [2**31, 2**63 - 1, 2**63, 2**200])
def test_any_limit_works_with_a_damaged_chunk(home, limit):
    with home.open() as memory:
        assert len(memory.conversations.search("harbour", limit)) == 2
        assert len(memory.documents(limit=limit)) == 4
        assert memory.search("harbour", limit)


@pytest.mark.parametrize("row", ["dose.md", "other.md"])
def test_a_chunk_that_moved_to_another_document_is_noticed(home, row):
    """Both notes are named: the one without its chunk, and the one with a foreign one."""
    with closing(apsw.Connection(str(home.root / "data" / "klaw.db"))) as connection:
        ids = {path: number for number, path in connection.execute("SELECT id, path FROM documents")}
        other = {"dose.md": "other.md", "other.md": "dose.md"}[row]
        change = "UPDATE memory_chunks SET document_id = ? WHERE document_id = ?"
        connection.execute(change, (ids[f"notes/{other}"], ids[f"notes/{row}"]))
    with home.open() as memory:
        (finding,) = memory.doctor().findings
        assert (finding.check, finding.hint) == ("other-chunks", "klaw reindex")
        assert set(finding.items) == {"notes/dose.md", "notes/other.md"}
        memory.reindex()
        assert checks(memory) == []
