"""Exports in the formats of the programs' documentation, read by `Memory.import_` as a person's own would be."""

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import (
    Filters,
    KlawError,
    Memory,
    NotFoundError,
    PluginNotFoundError,
    RecordError,
    WorkspaceError,
    load_config,
    parse_condition,
)
from klaw_doctor.importers import _write
from klaw_doctor.readers import basic_memory, chatgpt, claude, mem0, openclaw
from klaw_journals import Chat, Record

T0 = 1_760_000_000.25
WORDS_ONLY = {"memory": {"embedding": {"type": "none"}}}


def node(key, parent, role="user", parts=("",), *, at=None, children=(), **more):
    message = {
        "id": key,
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "text", "parts": list(parts)},
        "metadata": {},
        **more,
    }
    return {"id": key, "parent": parent, "children": list(children), "message": message}


CHATGPT = [
    {
        "conversation_id": "6812-ab",
        "title": "Ferries to Oslo",
        "create_time": T0,
        "current_node": "a2",
        "mapping": {
            "root": {"id": "root", "parent": None, "children": ["s"], "message": None},
            "s": node("s", "root", "system", [""], children=["q1", "q2"]),
            "q1": node("q1", "s", "user", ["An abandoned question about zebras"], at=T0, children=[]),
            "q2": node("q2", "s", "user", ["When does the ferry leave?"], at=T0 + 1, children=["t"]),
            "t": node("t", "q2", "assistant", children=["a2"], content={"content_type": "thoughts", "thoughts": []}),
            "a2": node("a2", "t", "assistant", [{"asset": 1}, "At seven."], at=None, metadata={"model_slug": "gpt-5"}),
        },
    },
    {"title": "no id"},
]
CLAUDE_CHATS = [
    {
        "uuid": "c-1",
        "name": "Bread",
        "created_at": "2026-01-02T08:00:00.000000Z",
        "chat_messages": [
            {
                "uuid": "m-1",
                "sender": "human",
                "text": "old field",
                "created_at": "2026-01-02T08:00:01.5Z",
                "content": [{"type": "text", "text": "How long does rye rise?"}],
                "attachments": [{"file_name": "recipe.txt", "extracted_content": "Rye needs patience."}],
            },
            {
                "uuid": "m-2",
                "sender": "assistant",
                "text": "",
                "created_at": "2026-01-03T08:00:09Z",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Four hours."}],
            },
        ],
    }
]
CLAUDE_PROJECTS = [
    {
        "uuid": "p-1",
        "name": "Bakery",
        "created_at": "2026-01-01T00:00:00Z",
        "prompt_template": "Answer as a baker.",
        "docs": [{"uuid": "d-1", "filename": "ovens.md", "content": "# Ovens\n\nThe stone oven is hot."}],
    }
]
CLAUDE_MEMORIES = [{"account_uuid": "acc", "conversations_memory": "Bakes rye.", "project_memories": {"p-1": "Ovens."}}]
MEM0 = {
    "results": [
        {
            "id": "f1-a",
            "memory": "Ada takes the ferry at seven.",
            "user_id": "ada",
            "metadata": {"topic": "travel", "nested": {"x": 1}},
            "created_at": "2026-01-02T03:04:05.678901-08:00",
            "updated_at": None,
        },
        {"id": "f1-b", "memory": ""},
    ]
}
OPENCLAW_SESSION = [
    {"type": "session", "version": 3, "id": "s-9", "timestamp": "2026-02-24T09:00:00.000Z", "cwd": "/home/ada"},
    {"type": "model_change", "id": "x"},
    {
        "type": "message",
        "id": "m1",
        "timestamp": "2026-02-24T09:00:01.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "Where is the wombat?"}]},
    },
    {
        "type": "message",
        "id": "m2",
        "message": {
            "role": "assistant",
            "model": "opus",
            "timestamp": 1771923605000,
            "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "In the shed."}],
        },
    },
]


@pytest.fixture
def memory(tmp_path):
    with Memory.open(load_config(data_dir=tmp_path / "data", overrides=WORDS_ONLY)) as memory:
        yield memory


@pytest.fixture
def exports(tmp_path):
    root = tmp_path / "exports"

    def write(name, content):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    write("chatgpt/conversations.json", CHATGPT)
    write("claude/conversations.json", CLAUDE_CHATS)
    write("claude/projects.json", CLAUDE_PROJECTS)
    write("claude/memories.json", CLAUDE_MEMORIES)
    write("mem0.json", MEM0)
    write("openclaw/workspace/MEMORY.md", "# Memory\n\nThe heron lives at the pond.\n")
    write("openclaw/workspace/memory/2026-02-24.md", "Fed the heron.\n")
    write("openclaw/agents/main/sessions/s-9.jsonl", "\n".join(map(json.dumps, OPENCLAW_SESSION)) + "\n{torn")
    write(
        "basic/notes/coffee.md", "---\ntitle: Coffee\npermalink: notes/coffee\n---\n\n- [method] Pour slowly #brewing\n"
    )
    write("basic/.obsidian/x.md", "not a note")
    return root


def said(memory, chat):
    lines = memory.conversations.read(Chat.parse(chat))
    return [(line.message.role, line.message.content, line.message.id) for line in lines]


class TestChatGPT:
    @pytest.mark.needs("klaw-conversations")
    def test_the_last_shown_branch_is_imported_with_times_and_ids(self, memory, exports):
        report = memory.import_(exports / "chatgpt", importer="chatgpt")
        assert report.added == {"message": 2}
        assert [item.reason for item in report.skipped] == ["it has no id or no messages"]
        assert said(memory, "chatgpt_6812-ab") == [
            ("user", "When does the ferry leave?", "q2"),
            ("assistant", "At seven.", "a2"),
        ]
        question, answer = (line.message for line in memory.conversations.read(Chat("chatgpt", "6812-ab")))
        assert question.ts == datetime.fromtimestamp(T0 + 1, UTC)
        assert answer.ts == question.ts
        assert answer.meta["model"] == "gpt-5"
        assert answer.meta["title"] == "Ferries to Oslo"
        memory.index()
        assert "seven" in memory.search("ferry leave")[0].content
        assert not memory.search("zebras")

    @pytest.mark.needs("klaw-conversations")
    def test_an_archive_and_split_files_are_read(self, memory, exports, tmp_path):
        archive = tmp_path / "export.zip"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("export/conversations-000.json", json.dumps(CHATGPT[:1]))
            file.writestr("export/chat.html", "<p>")
        assert memory.import_(archive, importer="chatgpt").added == {"message": 2}
        assert memory.import_(exports / "chatgpt" / "conversations.json", importer="chatgpt").present == {"message": 2}

    def test_without_current_node_the_newest_branch_is_imported(self, tmp_path):
        mapping = {
            "root": {"id": "root", "parent": None, "message": None},
            "q": node("q", "root", parts=["When does the ferry leave?"], at=T0),
            "a": node("a", "q", "assistant", ["At seven."], at=T0 + 2),
            "old": node("old", "q", "assistant", ["At nine."], at=T0 + 1),
        }
        for entry in mapping.values():
            entry.pop("children", None)
        (tmp_path / "c.json").write_text(json.dumps([{"id": "x", "mapping": mapping}]))
        found = [record.value["value"]["content"] for record in chatgpt.read(tmp_path / "c.json")]
        assert found == ["When does the ferry leave?", "At seven."]

    def test_a_circular_tree_ends(self, tmp_path):
        mapping = {"a": node("a", "b", parts=["one"]), "b": node("b", "a", parts=["two"])}
        (tmp_path / "c.json").write_text(json.dumps([{"id": "x", "mapping": mapping, "current_node": "a"}]))
        assert len(list(chatgpt.read(tmp_path / "c.json"))) == 2


@pytest.mark.needs("klaw-conversations")
def test_an_export_of_claude_is_imported(memory, exports):
    report = memory.import_(exports / "claude", importer="claude")
    assert report.added == {"message": 2, "document": 4}
    assert said(memory, "claude_c-1") == [
        ("user", "How long does rye rise?\n\n[recipe.txt]\nRye needs patience.", "m-1"),
        ("assistant", "Four hours.", "m-2"),
    ]
    memory.index()
    found = memory.search("stone oven")[0]
    assert found.path == "documents/claude/projects/p-1/d-1"
    assert found.metadata == {"project": "Bakery", "title": "ovens.md"}
    assert memory.search("bakes rye")[0].path == "documents/claude/memories/acc"


def test_a_conversation_that_cannot_be_imported_does_not_stop_the_others(memory, tmp_path):
    """JavaScript leaves half of a character where it cuts a text, and a chat's name has at most 255 bytes."""
    odd = [{**CHATGPT[0], "conversation_id": key} for key in ("x" * 300, "half \ud83d", "whole")]
    odd[2]["title"] = "Ferries \ud83d"
    place = tmp_path / "odd"
    place.mkdir()
    (place / "conversations.json").write_text(json.dumps(odd), "utf-8")
    report = memory.import_(place, importer="chatgpt")
    assert [each.path.startswith("the conversation 'xxx") for each in report.skipped] == [True]
    found = {Chat.parse(each.name).chat_id for each in memory.conversations.chats()}
    assert found == {"half \N{REPLACEMENT CHARACTER}", "whole"}


@pytest.mark.parametrize("program", ["mem0", "claude"])
def test_a_document_that_cannot_be_imported_does_not_stop_the_others(memory, tmp_path, program):
    place = tmp_path / "odd"
    place.mkdir()
    if program == "mem0":
        found = [{"id": key, "memory": f"{key[:4]} \ud83d"} for key in ("x" * 5000, "half \ud83d", "whole")]
        (place / "memories.json").write_text(json.dumps({"results": found}), "utf-8")
        place /= "memories.json"
    else:
        docs = [
            {"uuid": key, "filename": "a.md", "content": "text \ud83d"} for key in ("x" * 5000, "half\ud83d", "whole")
        ]
        (place / "conversations.json").write_text("[]", "utf-8")
        (place / "projects.json").write_text(json.dumps([{"uuid": "p", "name": "P", "docs": docs}]), "utf-8")
    report = memory.import_(place, importer=program)
    assert len(report.skipped) == 1
    assert report.added == {"document": 2}


def test_a_record_that_cannot_be_written_is_skipped_alone():
    stream = io.BytesIO()
    records = [Record("message", {"value": {"x": float("nan")}}), Record("message", {"value": {"x": 1}})]
    count, skipped = _write(records, stream)
    assert (count, [each.path for each in skipped]) == (1, ["a record: message"])


def test_an_export_of_mem0_is_imported(memory, exports):
    report = memory.import_(exports / "mem0.json", importer="mem0")
    assert report.added == {"document": 1}
    assert len(report.skipped) == 1
    (kept,) = memory.get_by_ids(["mem0/f1-a"])
    assert kept.text == "Ada takes the ferry at seven."
    assert kept.metadata == {"topic": "travel", "user_id": "ada"}
    assert kept.created_at == datetime(2026, 1, 2, 11, 4, 5, 678000, UTC)


@pytest.mark.needs("klaw-conversations")
def test_an_export_of_openclaw_is_imported(memory, exports):
    report = memory.import_(exports / "openclaw", importer="openclaw")
    assert report.added == {"message": 2, "document": 2}
    assert [item.path for item in report.skipped] == ["agents/main/sessions/s-9.jsonl, line 5"]
    assert [role for role, _, _ in said(memory, "openclaw_s-9")] == ["user", "assistant"]
    memory.index()
    (day,) = memory.get_by_ids(["openclaw/workspace/memory/2026-02-24.md"])
    assert day.created_at == datetime(2026, 2, 24, tzinfo=UTC)
    assert memory.search("heron pond")[0].path == "documents/openclaw/workspace/MEMORY.md"


@pytest.mark.parametrize(("count", "extra"), [(20, {}), (3, {"next": "https://api.example/page=2"})])
def test_an_export_of_mem0_that_is_probably_incomplete_is_reported(memory, tmp_path, count, extra):
    memories = [{"id": f"m{number}", "memory": f"Fact {number}."} for number in range(count)]
    (tmp_path / "m.json").write_text(json.dumps({"results": memories, **extra}))
    report = memory.import_(tmp_path / "m.json", importer="mem0")
    assert report.added == {"document": count}
    assert [item.path for item in report.skipped] == ["m.json"]
    assert "get_all" in report.skipped[0].reason or "pages" in report.skipped[0].reason


def test_triggers_and_importance_of_openclaw_become_metadata(memory, tmp_path):
    lines = [
        "# Memory",
        "",
        "<!-- openclaw-memory-promotion:9f2 -->",
        "- Keep the gateway on loopback. <!-- trigger: network safety, Tor --> <!-- importance: 9 -->",
        "- The heron is fed at noon. <!-- Importance: 4 --> <!-- trigger: Tor, birds --> <!-- project: a/b; c -->",
        "- A comment <!-- of mine --> stays.",
    ]
    (tmp_path / "MEMORY.md").write_text("\n".join(lines), "utf-8")
    memory.import_(tmp_path, importer="openclaw")
    (page,) = memory.get_by_ids(["openclaw/MEMORY.md"])
    assert page.text.splitlines() == [
        "# Memory",
        "",
        "- Keep the gateway on loopback. (network safety, Tor)",
        "- The heron is fed at noon.  (Tor, birds)",
        "- A comment <!-- of mine --> stays.",
    ]
    expected = {"trigger": ("network safety", "Tor", "birds"), "project": ("a/b", "c"), "importance": 9}
    assert {name: page.metadata[name] for name in expected} == expected
    memory.index()
    found = memory.search("birds", filters=Filters(metadata=(parse_condition("importance>=9"),)))
    assert [result.path for result in found] == ["documents/openclaw/MEMORY.md"]


def test_an_annotation_that_never_ends_takes_no_time_and_stays(memory, tmp_path):
    endless = "- A line " + "<!-- trigger: " * 20_000
    (tmp_path / "MEMORY.md").write_text(endless, "utf-8")
    memory.import_(tmp_path, importer="openclaw")
    (page,) = memory.get_by_ids(["openclaw/MEMORY.md"])
    assert (page.text, "trigger" in page.metadata) == (endless, False)


def openclaw_database(path, columns="session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER"):
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE transcript_events ({columns})")
        rows = [("s-9", number, json.dumps(line), 0) for number, line in enumerate(OPENCLAW_SESSION)]
        connection.executemany(
            f"INSERT INTO transcript_events VALUES ({', '.join('?' * len(columns.split(',')))})", rows
        )


@pytest.mark.needs("klaw-conversations")
def test_sessions_in_a_database_of_openclaw_are_imported(memory, tmp_path):
    openclaw_database(tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    report = memory.import_(tmp_path, importer="openclaw")
    assert (report.added, report.skipped) == ({"message": 2}, ())
    assert [role for role, _, _ in said(memory, "openclaw_s-9")] == ["user", "assistant"]


def test_a_newer_form_of_an_export_is_named_instead_of_importing_nothing(memory, tmp_path):
    openclaw_database(tmp_path / "a" / "openclaw-agent.sqlite", "a, b, c, d")
    with pytest.raises(RecordError, match="a newer form of OpenClaw's sessions") as caught:
        memory.import_(tmp_path, importer="openclaw")
    assert "newer version of Klaw" in caught.value.hint
    (tmp_path / "c.json").write_text(json.dumps([{"id": "x", "messages": {}}]))
    with pytest.raises(RecordError, match="it has no id or no messages"):
        memory.import_(tmp_path / "c.json", importer="chatgpt")


def test_an_export_of_another_program_names_its_importer(memory, tmp_path):
    exported = [{"id": str(number), "memory": f"Fact {number}"} for number in range(20)]
    (tmp_path / "all.json").write_text(json.dumps(exported))
    for importer in ("chatgpt", "claude", "basic-memory", "openclaw"):
        with pytest.raises(RecordError, match=f"that the importer '{importer}' reads") as caught:
            memory.import_(tmp_path / "all.json", importer=importer)
        assert caught.value.hint == "the importer 'mem0' reads it: --from mem0"


def test_an_export_of_basic_memory_is_imported(memory, exports):
    assert memory.import_(exports / "basic", importer="basic-memory").added == {"document": 1}
    memory.index()
    assert memory.search("pour slowly")[0].path == "documents/basic-memory/notes/coffee.md"


@pytest.mark.parametrize(
    ("importer", "path"),
    [
        ("chatgpt", "chatgpt"),
        ("claude", "claude"),
        ("mem0", "mem0.json"),
        ("openclaw", "openclaw"),
        ("basic-memory", "basic"),
    ],
)
class TestEvery:
    @pytest.mark.needs("klaw-conversations")
    def test_importing_again_changes_nothing(self, memory, exports, importer, path):
        first = memory.import_(exports / path, importer=importer)
        again = memory.import_(exports / path, importer=importer)
        assert not again.added
        assert again.present == first.added

    @pytest.mark.needs("klaw-conversations")
    def test_a_dry_run_counts_and_changes_nothing(self, memory, exports, importer, path):
        rehearsed = memory.import_(exports / path, importer=importer, dry_run=True)
        assert not memory.conversations.chats()
        with pytest.raises(WorkspaceError, match="nothing has been indexed"):
            memory.index()
        assert memory.import_(exports / path, importer=importer).added == rehearsed.added
        again = memory.import_(exports / path, importer=importer, dry_run=True)
        assert not again.added
        assert again.present == rehearsed.added

    @pytest.mark.needs("klaw-conversations")
    def test_imported_records_can_be_exported_and_imported(self, memory, exports, importer, path, tmp_path):
        added = memory.import_(exports / path, importer=importer).added
        memory.export(tmp_path / "all.jsonl")
        with Memory.open(load_config(data_dir=tmp_path / "other", overrides=WORDS_ONLY)) as other:
            assert other.import_(tmp_path / "all.jsonl").added == added

    @pytest.mark.needs("klaw-conversations")
    @pytest.mark.parametrize("trust", [None, "agent", "owner"])
    def test_its_records_are_foreign_unless_said_otherwise(self, memory, exports, *, importer, path, trust, tmp_path):
        memory.import_(exports / path, importer=importer, trust=trust)
        memory.index()
        memory.export(tmp_path / "all.jsonl")
        lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text("utf-8").splitlines()]
        written = [(line["kind"], line["value"]) for line in lines if line.get("kind") in {"message", "document"}]
        assert written
        defaults = {"message": "", "document": "foreign"}
        assert {value.get("trust", defaults[kind]) for kind, value in written} == {trust or "foreign"}

    def test_an_invalid_export_is_rejected(self, memory, tmp_path, importer, path):
        (tmp_path / "empty").mkdir()
        with pytest.raises(NotFoundError):
            memory.import_(tmp_path / path / "nowhere", importer=importer)
        with pytest.raises(RecordError):
            memory.import_(tmp_path / "empty", importer=importer)


def test_an_unknown_importer_lists_the_installed_ones(memory, tmp_path):
    with pytest.raises(PluginNotFoundError, match="chatgpt, claude, mem0"):
        memory.import_(tmp_path, importer="notion")


def test_a_directory_needs_an_importer(memory, tmp_path):
    with pytest.raises(RecordError, match="directory") as caught:
        memory.import_(tmp_path)
    assert "--from" in caught.value.hint


FIELDS = """
id uuid mapping message author role content parts text create_time created_at current_node parent children name title
chat_messages sender docs results memory metadata timestamp type project_memories
"""
KEYS = st.sampled_from(FIELDS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(value=JSON)
def test_law_no_json_breaks_an_importer(tmp_path_factory, value):
    """Whatever a file holds is read, skipped or refused as an error of Klaw's."""
    path = tmp_path_factory.mktemp("law") / "conversations.json"
    path.write_text(json.dumps([value]))
    for module in (chatgpt, claude, mem0, openclaw, basic_memory):
        try:
            read = list(module.read(path))
        except KlawError as error:
            assert error.message.strip()  # noqa: PT017  # any other exception is a failure
        else:
            assert read or not isinstance(value, dict), "an object is read or named"
            named = [json.dumps(item.value) if hasattr(item, "value") else item.reason for item in read]
            assert "" not in named
