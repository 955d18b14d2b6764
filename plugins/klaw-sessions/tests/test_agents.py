"""The sessions of each other agent, in the form in which its program writes them, as documents."""

import json
import sqlite3
from contextlib import closing

import pytest
from agent_transcripts import claude_line, codex_message, write_lines

from klaw_core import Document, Entry, Memory, SkippedEntry, WorkspaceError, load_config
from klaw_sessions.aider import AIDER
from klaw_sessions.archive import Archive, SessionSource
from klaw_sessions.cline import CLINE
from klaw_sessions.copilot import COPILOT_CLI
from klaw_sessions.cursor import CURSOR
from klaw_sessions.gemini_cli import GEMINI_CLI
from klaw_sessions.opencode import OPENCODE
from klaw_sessions.options import SessionOptions
from klaw_sessions.plugin import klaw_sources
from klaw_sessions.source import TranscriptSource
from klaw_testing.source import SourceContract

DIRECTORY = "/home/ann/klaw"
SECRET = "sk-ant-api03-" + "a1B2" * 10
SAID = ["User: When does the gate open?", "Assistant: At seven."]
CALL = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a.py"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "import os"}]}


def lines(*values):
    return [json.dumps(value) for value in values]


def write_json(file, value):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), "utf-8")
    return file


def cursor(home):
    def line(role, *content):
        return {"role": role, "message": {"content": list(content)}}

    place = home / ".cursor" / "projects" / "home-ann-klaw" / "agent-transcripts" / "5e7f"
    typed = "<open_files>a.py</open_files>\n<user_query>\nWhen does the gate open?\n</user_query>"
    write_lines(place / "subagents" / "1.jsonl", *lines(line("user", {"type": "text", "text": "of a subagent"})))
    write_lines(place.parent.parent / "terminals" / "1.jsonl", *lines(line("user", {"type": "text", "text": "no"})))
    return write_lines(
        place / "5e7f.jsonl",
        *lines(
            line("user", {"type": "text", "text": typed}),
            line("assistant", CALL),
            line("user", RESULT),
            line("assistant", {"type": "text", "text": "At seven."}),
        ),
    )


def gemini(home):
    def line(number, kind, content, **more):
        return {
            "id": f"m{number}",
            "timestamp": f"2026-03-01T10:00:0{number}.000Z",
            "type": kind,
            "content": content,
            **more,
        }

    place = home / ".gemini" / "tmp" / "klaw" / "chats"
    call = {"id": "t", "name": "read_file", "args": {"path": "a.py"}, "resultDisplay": "import os"}
    context = line(0, "user", [{"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}])
    write_lines(place / "5e7f" / "sub.jsonl", *lines({"sessionId": "sub"}, line(1, "user", "of a subagent")))
    write_lines(place.parent / "logs" / "session-1.jsonl", *lines(line(1, "user", "no")))
    return write_lines(
        place / "session-2026-03-01T10-00-5e7f.jsonl",
        *lines(
            {"sessionId": "5e7f", "projectHash": "781e", "startTime": "2026-03-01T10:00:00.000Z", "kind": "main"},
            {"$set": {"messages": [context]}},
            line(1, "user", [{"text": "@a.py all of it"}], displayContent=[{"text": "When does the gate open?"}]),
            line(2, "gemini", "At seven."),
            line(2, "gemini", "At seven.", toolCalls=[call]),
            line(3, "info", "Request cancelled."),
        ),
    )


def copilot(home):
    def event(number, kind, data, **more):
        return {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-03-01T10:00:0{number}.000Z", **more}

    place = home / ".copilot" / "session-state" / "5e7f"
    write_json(place / "workspace.json", {})
    return write_lines(
        place / "events.jsonl",
        *lines(
            event(0, "session.start", {"sessionId": "5e7f", "version": 1, "context": {"cwd": DIRECTORY}}),
            event(1, "user.message", {"content": "When does the gate open?", "transformedContent": "<now/>When"}),
            event(2, "user.message", {"content": "a skill", "source": "skill-pdf"}),
            event(2, "tool.execution_start", {"toolName": "read_file", "arguments": {"path": "a.py"}}),
            event(3, "tool.execution_complete", {"toolCallId": "t", "result": {"content": "import os"}}),
            event(4, "assistant.message", {"content": "of a subagent"}, agentId="a1"),
            event(5, "assistant.message", {"content": "At seven.", "toolRequests": []}),
        ),
    )


def opencode(home):
    file = home / ".local" / "share" / "opencode" / "opencode.db"
    file.parent.mkdir(parents=True)
    tool = {"type": "tool", "tool": "read_file", "state": {"input": {"path": "a.py"}, "output": "import os"}}
    said = [
        ("m1", "user", {"type": "text", "text": "When does the gate open?"}),
        ("m1", "user", {"type": "text", "text": "a file", "synthetic": True}),
        ("m2", "assistant", {"type": "step-start"}),
        ("m2", "assistant", tool),
        ("m2", "assistant", {"type": "text", "text": "At seven."}),
    ]
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, time_updated INT)")
        database.execute("CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INT, data TEXT)")
        database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)")
        rows = [("ses_1", None, DIRECTORY, 1), ("ses_2", "ses_1", DIRECTORY, 1)]
        database.executemany("INSERT INTO session VALUES (?, ?, ?, ?)", rows)
        for number, (message, role, part) in enumerate(said):
            row = (message, "ses_1", 1772359200000 + 1000 * int(message[1]), json.dumps({"role": role}))
            database.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?)", row)
            database.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?)", (f"p{number}", message, json.dumps(part)))
    return file


def cline(home):
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "text": '<user_input mode="act">When does the gate open?</user_input>'}],
        },
        {"role": "assistant", "content": [CALL], "ts": 1772359201000},
        {"role": "user", "content": [RESULT], "ts": 1772359202000},
        {"role": "assistant", "content": [{"type": "text", "text": "At seven."}], "ts": 1772359203000},
    ]
    place = home / ".cline" / "data" / "sessions" / "1772359200000_ab"
    write_json(place / f"{place.name}.json", {"version": 1, "cwd": DIRECTORY})
    write_json(place / "sub.messages.json", {"version": 1, "messages": messages})
    return write_json(place / f"{place.name}.messages.json", {"version": 1, "messages": messages})


def aider(home):
    place = home / "projects" / "klaw"
    place.mkdir(parents=True)
    file = place / ".aider.chat.history.md"
    file.write_text(
        "\n# aider chat started at 2026-03-01 09:00:00\n\n> Aider v0.86.2  \n"
        '\n# aider chat started at 2026-03-01 10:00:00\n\n> read_file {"path":"a.py"}  \n> import os  \n'
        "\n#### When does the  \n#### gate open?  \n\nAt seven.\n\n> Tokens: 5 sent.  \n",
        "utf-8",
    )
    return file


#: The agents by name: who writes a session, and how its source is made.
WRITERS = {
    "cursor": cursor,
    "gemini-cli": gemini,
    "copilot-cli": copilot,
    "opencode": opencode,
    "cline": cline,
    "aider": aider,
}
AGENTS = {agent.name: agent for agent in (CURSOR, GEMINI_CLI, COPILOT_CLI, OPENCODE, CLINE, AIDER)}


def source_of(name, home, **options):
    agent = AGENTS[name]
    if name == "aider":
        options = {"path": str(home / "projects"), **options}
    kind = SessionSource if isinstance(agent, Archive) else TranscriptSource
    return kind.of(agent, SessionOptions(**options))


def read_all(source):
    return [source.read(entry) for entry in source.scan()]


def scanned(source):
    return [source.read(item) if isinstance(item, Entry) else item for item in source.scan()]


@pytest.fixture(params=sorted(AGENTS))
def name(request):
    return request.param


@pytest.fixture
def file(name, home):
    return WRITERS[name](home)


class TestContract(SourceContract):
    @pytest.fixture
    def source(self, name, file, home):
        assert file.exists()
        return source_of(name, home)


@pytest.mark.usefixtures("file")
def test_what_the_user_and_the_agent_said_is_shown(name, home):
    (document,) = read_all(source_of(name, home))
    assert document.text.split("\n") == SAID
    assert document.path.startswith(f"{name}/")
    assert document.trust == "agent"
    assert document.metadata["agent"] == name
    assert "klaw" in document.metadata["project"]
    assert document.chat_id
    assert "events" not in document.chat_id
    if name in {"copilot-cli", "opencode", "cline"}:
        assert document.metadata["directory"] == DIRECTORY
    if name != "cursor":  # whose files have no times
        assert document.created_at.date().isoformat() == "2026-03-01"


@pytest.mark.usefixtures("file")
def test_tools_are_shown_if_configured(name, home):
    (document,) = read_all(source_of(name, home, roles=("tool",)))
    assert "import os" in document.text
    assert 'read_file {"path":"a.py"}' in document.text
    assert "At seven" not in document.text
    assert document.trust == "foreign"


def test_a_session_is_found_by_its_file_and_can_be_excluded(name, file, home):
    source = source_of(name, home)
    (entry,) = source.scan()
    assert source.documents_of(str(file)) == (entry.path,)
    assert source.locate(str(file)) == entry.path
    assert source.file_of(entry.path) == file
    assert source.file_text(entry.path).split("\n") == SAID
    assert source.documents_of(str(home / "other")) == ()
    assert file.is_relative_to(source.watch_paths()[0])
    _, hint = source.why_not_forgotten(entry.path)
    pattern = hint.partition("'")[2].partition("'")[0]
    without = source_of(name, home, exclude=(pattern,))
    assert list(without.scan()) == []
    assert without.documents_of(str(file)) == ()


def test_what_has_another_form_is_skipped_and_stays_indexed(name, file, home):
    """A newer version may write another form; what was indexed of the older one is not lost."""
    source = source_of(name, home)
    (before,) = source.scan()
    if name == "aider":
        file.write_text("# aider chat started at 2026-03-01 10:00:00\n\n#### \n", "utf-8")
    elif name == "opencode":
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("ALTER TABLE part RENAME TO piece")
    else:
        file.write_text('{"kind": "new"}\n', "utf-8")
    (skipped,) = scanned(source)
    assert isinstance(skipped, SkippedEntry)
    assert f"{before.path}/".startswith(f"{skipped.path}/")
    if name != "aider":  # in whose pages everything is text
        assert skipped.keep
        assert f"if {name} is newer than this version of Klaw, update Klaw" in skipped.reason


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE session RENAME TO sessions",
        "ALTER TABLE message RENAME TO messages",
        "ALTER TABLE part RENAME COLUMN data TO content",
        "ALTER TABLE message RENAME COLUMN time_created TO created",
        "UPDATE part SET data = replace(data, '\"type\"', '\"kind\"')",
        "UPDATE message SET data = '[]'",
    ],
)
def test_a_database_of_a_newer_opencode_says_so_and_names_its_file(change, home):
    file = opencode(home)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(change)
    (skipped,) = scanned(source_of("opencode", home))
    assert skipped.keep
    assert "if opencode is newer than this version of Klaw, update Klaw" in skipped.reason
    assert skipped.path == "opencode/ses_1" or str(file) in skipped.reason


def test_a_file_that_is_no_database_is_named(home):
    file = opencode(home)
    file.write_bytes(b"no database" * 1000)
    (skipped,) = scanned(source_of("opencode", home))
    assert skipped.reason == f"{file} cannot be read: file is not a database"


def varied(value):
    """Yield a value of JSON with each of its parts replaced by values of other types."""
    for other in (None, True, 7, "x", [], {}, [1], [[]], {"text": 1}, [{"type": "text", "text": []}]):
        yield other
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for other in varied(part):
            if isinstance(value, dict):
                yield {**value, key: other}
            else:
                yield [*value[:key], other, *value[key + 1 :]]


@pytest.mark.parametrize("source", sorted(component.name for component in klaw_sources() if component.name != "aider"))
def test_no_other_type_in_a_file_is_a_defect(source, home):
    """A newer version may write a list where this one writes a string."""
    file = ALL_WRITERS[source](home)
    (component,) = (component for component in klaw_sources() if component.name == source)
    options = SessionOptions(
        roles=("user", "assistant", "tool"), **({"path": str(home / "projects")} if source == "jsonl" else {})
    )
    read = component.factory(options, None)
    (entry,) = [item for item in read.scan() if isinstance(item, Entry)]
    count = 0
    if source == "opencode":
        with closing(sqlite3.connect(file)) as database:
            for table in ("message", "part"):
                for key, data in database.execute(f"SELECT id, data FROM {table}").fetchall():
                    for other in varied(json.loads(data)):
                        with database:
                            database.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (json.dumps(other), key))
                        assert isinstance(read.read(entry), (Document, SkippedEntry))
                        count += 1
                    with database:
                        database.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (data, key))
    else:
        lines_of = file.read_text("utf-8").splitlines()
        for number, line in enumerate(lines_of):
            for other in varied(json.loads(line)):
                text = "\n".join([*lines_of[:number], json.dumps(other), *lines_of[number + 1 :]]) + "\n"
                file.write_text(text, "utf-8")
                assert isinstance(read.read(entry), (Document, SkippedEntry)), text
                count += 1
    assert count > 50


def aider_session(home, answer):
    place = home / "projects" / "klaw"
    place.mkdir(parents=True)
    text = f"\n# aider chat started at 2026-03-01 10:00:00\n\n{answer}"
    (place / ".aider.chat.history.md").write_text(text, "utf-8")
    return [document.text.split("\n") for document in read_all(source_of("aider", home, roles=("user", "assistant")))]


ASKED = "#### Write it.  \n\n"
BLOCK = "Here:\n\na.md\n{0}markdown\n#### Plans\n> wise words\n>>>>>>> REPLACE\n{0}\n\nDone.\n\n> Tokens: 5  \n\n"
IN_BLOCK = "Assistant: Here: a.md {0}markdown #### Plans > wise words >>>>>>> REPLACE {0} Done."


@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
@pytest.mark.parametrize("end", ["  ", ""], ids=["as written", "spaces removed"])
def test_what_looks_like_a_mark_in_a_block_of_code_is_the_models(fence, end, home):
    text = (ASKED + BLOCK.format(fence) + "#### Thanks.  \n").replace("  \n", f"{end}\n")
    assert aider_session(home, text) == [["User: Write it.", IN_BLOCK.format(fence), "User: Thanks."]]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Steps:\n\n#### First\n\nGo.\n\n", ["Assistant: Steps: #### First Go."]),  # a heading in an answer
        ("So:\n\n```\na = 1\n\n> ^C again to exit  \n", ["Assistant: So: ``` a = 1"]),  # interrupted
        ("So:\n\n```\na = 1\n\n", ["Assistant: So: ``` a = 1"]),
        ("````\n```\n#### a\n```\n#### b\n````\n\n", ["Assistant: ```` ``` #### a ``` #### b ````"]),
    ],
)
def test_an_answer_of_aider_ends_where_the_user_types(answer, expected, home):
    text = f"{ASKED}{answer}\n#### And  \n#### now?  \n"
    assert aider_session(home, text) == [["User: Write it.", *expected, "User: And now?"]]


def claude(home):
    return write_lines(
        home / ".claude" / "projects" / "-home-ann-klaw" / "5e7f.jsonl",
        claude_line("user", "When does the gate open?"),
        claude_line("assistant", "At seven."),
    )


def codex(home):
    return write_lines(
        home / ".codex" / "sessions" / "2026" / "03" / "01" / "rollout-5e7f.jsonl",
        codex_message("user", "When does the gate open?"),
        codex_message("assistant", "At seven."),
    )


def plain(home):
    return write_lines(
        home / "projects" / "5e7f.jsonl",
        *lines({"role": "user", "content": "When does the gate open?"}, {"role": "assistant", "content": "At seven."}),
    )


ALL_WRITERS = {**WRITERS, "claude-code": claude, "codex": codex, "jsonl": plain}


@pytest.mark.parametrize("source", sorted(component.name for component in klaw_sources()))
def test_get_prints_no_key_of_a_transcript(source, home):
    """Agents run ``klaw get``, and a transcript is not the user's own text."""
    file = ALL_WRITERS[source](home)
    if source == "opencode":
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("UPDATE part SET data = replace(data, 'At seven.', ?)", (f"At seven: {SECRET}",))
    else:
        file.write_text(file.read_text("utf-8").replace("At seven.", f"At seven: {SECRET}"), "utf-8")
    place = {"path": str(home / "projects")} if source in {"aider", "jsonl"} else {}
    options = {"embedding": {"type": "none"}, "sources": [{"type": source, **place}]}
    with Memory.open(load_config(data_dir=home / "data", overrides={"memory": options})) as memory:
        memory.index()
        (record,) = memory.documents()
        for excerpt in (memory.get(record.path), memory.get(str(file)), memory.get(record.path, 2, 1)):
            assert SECRET not in excerpt.content
            assert "At seven: [redacted]" in excerpt.content
        file.unlink()
        assert SECRET not in memory.get(record.path).content


def test_a_missing_directory_is_reported(name, home):
    with pytest.raises(WorkspaceError, match="does not exist"):
        list(source_of(name, home).scan())


@pytest.mark.usefixtures("home")
def test_aider_needs_a_path():
    with pytest.raises(WorkspaceError, match="`path` has to name") as refused:
        list(SessionSource.of(AIDER, SessionOptions()).scan())
    assert "configuration" in refused.value.hint


def test_a_session_that_has_not_changed_is_not_read_again(home):
    source = source_of("opencode", home)
    file = opencode(home)
    (entry,) = source.scan()
    digest = source.read(entry).digest
    assert source.read_changed(entry, digest) is None
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE session SET time_updated = 2")
        database.execute(
            "UPDATE part SET data = ? WHERE id = 'p4'", (json.dumps({"type": "text", "text": "At nine."}),)
        )
    list(source.scan())
    assert "At nine." in source.read_changed(entry, digest).text
    assert source_of("opencode", home, roles=("user",)).read_changed(entry, digest) is not None


def test_the_tasks_of_clines_extension_are_read(home, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    place = home / "config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1772359200000"
    task = "<task>\nWhen does the gate open?\n</task>\n<environment_details>\n# Files\na.py\n</environment_details>"
    messages = [
        {"role": "user", "content": [{"type": "text", "text": task}]},
        {"role": "assistant", "content": [{"type": "text", "text": "<thinking>Hm.</thinking>\nAt seven."}]},
        {"role": "user", "content": [{"type": "text", "text": "[read_file for 'a.py'] Result:\nimport os"}]},
    ]
    write_json(place / "api_conversation_history.json", messages)
    write_json(place.parent / "1772359200001" / "api_conversation_history.json", {"new": messages})
    document, skipped = read_all(source_of("cline", home))
    assert document.text.split("\n") == SAID
    assert document.created_at.isoformat() == "2026-03-01T10:00:00+00:00"
    assert "update Klaw" in skipped.reason


def test_a_file_that_vanishes_or_cannot_be_read_is_skipped(home):
    file = cline(home)
    source = source_of("cline", home)
    (entry,) = source.scan()
    file.write_bytes(b"\xff")
    assert source.read(entry).keep
    file.unlink()
    assert source.read(entry).reason == "vanished"
