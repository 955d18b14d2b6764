"""The transcripts of Claude Code and Codex as documents."""

import json
import os

import pytest
from agent_transcripts import claude_line, codex_line, codex_message, write_lines

from klaw_core import Entry, Filters, KlawError, SkippedEntry, WorkspaceError, load_config
from klaw_sessions import source as module
from klaw_sessions.claude_code import CLAUDE_CODE
from klaw_sessions.codex import CODEX
from klaw_sessions.options import SessionOptions
from klaw_sessions.plugin import klaw_sources
from klaw_sessions.source import TranscriptSource
from klaw_testing.source import SourceContract

CLAUDE = {"type": "claude-code"}
SECRET = "sk-ant-" + "a1B2" * 10


def read_all(source):
    return [source.read(entry) for entry in source.scan() if isinstance(entry, Entry)]


class TestContract(SourceContract):
    @pytest.fixture
    def source(self, claude):
        write_lines(claude / "s1.jsonl", claude_line("user", "hello"), claude_line("assistant", "hi"))
        write_lines(claude / "s2.jsonl", claude_line("user", [{"type": "tool_result", "content": "nothing said"}]))
        return TranscriptSource.of(CLAUDE_CODE, SessionOptions())


@pytest.mark.usefixtures("claude")
class TestClaudeCode:
    @pytest.fixture
    def source(self):
        return TranscriptSource.of(CLAUDE_CODE, SessionOptions())

    def test_only_user_and_assistant_messages_are_shown(self, source, claude):
        answer = [
            {"type": "thinking", "thinking": "hmm"},
            {"type": "text", "text": "Because of\n\nthe lock."},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
        ]
        result = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a.py"}]}]
        write_lines(
            claude / "s1.jsonl",
            json.dumps({"type": "summary", "summary": "A lock", "leafUuid": "x"}),
            claude_line("user", "Why does it wait?", at="2026-03-01T10:00:00Z"),
            claude_line("assistant", answer, at="2026-03-01T10:00:05Z"),
            claude_line("user", result),
            claude_line("user", "a caveat", isMeta=True),
            claude_line("user", "all that was said", isCompactSummary=True),
            claude_line("assistant", "from a subagent", isSidechain=True),
            claude_line("assistant", "API Error: 529", isApiErrorMessage=True),
            claude_line("user", "[Request interrupted by user for tool use]"),
            claude_line("user", "<command-name>/review</command-name><command-args>the lock</command-args>"),
            claude_line("user", "<system-reminder>be brief</system-reminder>Thanks.<klaw-memory>told</klaw-memory>"),
            '{"type":"user","message":{"content":17}}',
            '{"type":"user","message":',
            "[]",
        )
        write_lines(claude / "agent-7.jsonl", claude_line("user", "to a subagent"))
        (document,) = read_all(source)
        assert document.text.split("\n") == [
            "User: Why does it wait?",
            "Assistant: Because of the lock.",
            "User: /review the lock",
            "User: Thanks.",
        ]
        assert document.path == "claude-code/-home-ann-klaw/s1.jsonl"
        assert document.metadata == {
            "agent": "claude-code", "project": "klaw", "directory": "/home/ann/klaw", "session": "s1"
        }  # fmt: skip
        assert (document.format, document.chat_id, document.heading) == ("transcript", "s1", ("klaw",))
        assert document.created_at.isoformat() == "2026-03-01T10:00:00+00:00"
        assert [line for line, _ in document.times] == [1, 2, 3, 4]

    def test_tools_are_shown_if_configured(self, claude):
        use = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]
        result = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a.py\nb.py"}]}]
        write_lines(claude / "s1.jsonl", claude_line("assistant", use, uuid="1"), claude_line("user", result, uuid="2"))
        source = TranscriptSource.of(CLAUDE_CODE, SessionOptions(roles=("tool",)))
        (document,) = read_all(source)
        assert document.text.split("\n") == ['Tool: Bash {"command":"ls"}', "Tool: a.py b.py"]

    def test_a_line_that_was_written_twice_is_shown_once(self, source, claude):
        line = claude_line("user", "Once.", uuid="u1")
        write_lines(claude / "s1.jsonl", line, line, claude_line("user", "Once.", uuid="u2"))
        (document,) = read_all(source)
        assert document.text == "User: Once.\nUser: Once."

    def test_a_line_that_is_being_written_waits_for_its_end(self, source, claude):
        file = write_lines(claude / "s1.jsonl", claude_line("user", "First."))
        with file.open("a") as more:
            more.write(claude_line("user", "Second."))
        assert read_all(source)[0].text == "User: First."
        write_lines(file, "")
        assert read_all(source)[0].text == "User: First.\nUser: Second."

    def test_parts_contain_every_message_once_and_only_the_last_changes(self, source, claude, monkeypatch):
        monkeypatch.setattr(module, "PART_BYTES", 1000)
        lines = [claude_line("user", f"message {number} " + "x" * (number * 37 % 400)) for number in range(40)]
        lines[20] = claude_line("user", "message 20 " + "y" * 5000)  # begins in one part, ends five further on
        file = write_lines(claude / "s1.jsonl", *lines)

        def messages():
            documents = [item for item in read_all(source) if not isinstance(item, SkippedEntry)]
            return {item.path: item.text for item in documents}

        before = messages()
        said = [line.split()[2] for text in before.values() for line in text.split("\n")]
        assert said == [str(number) for number in range(40)]
        assert list(before)[:2] == ["claude-code/-home-ann-klaw/s1.jsonl", "claude-code/-home-ann-klaw/s1.2.jsonl"]
        write_lines(file, claude_line("user", "message 40"))
        after = messages()
        assert "\n".join(after.values()).endswith("message 40")
        changed = {path for path in after if after[path] != before.get(path)}
        assert len(changed) == 1
        assert source.documents_of(str(file)) == tuple(entry.path for entry in source.scan())

    def test_unreadable_transcripts_stay_and_excluded_ones_are_removed(self, source, claude):
        write_lines(claude / "s1.jsonl", claude_line("user", "hello"))
        os.mkfifo(claude / "pipe.jsonl")
        write_lines(claude / "s1.2.jsonl", claude_line("user", "hello"))
        (claude / "gone.jsonl").symlink_to(claude / "nowhere")
        found = {item.path.rpartition("/")[2]: item for item in source.scan()}
        assert isinstance(found["s1.jsonl"], Entry)
        assert "pipe.jsonl" not in found
        assert isinstance(found["gone.jsonl"], SkippedEntry)
        assert isinstance(found["s1.2.jsonl"], SkippedEntry)
        none = TranscriptSource.of(CLAUDE_CODE, SessionOptions(exclude=("-home-ann-*",)))
        assert list(none.scan()) == []
        assert none.locate(str(claude / "s1.jsonl")) is None
        for path in ("claude-code/../../../etc/passwd.jsonl", "claude-code/x.md", "other/-home-ann-klaw/s1.jsonl"):
            assert isinstance(source.read(Entry(path)), SkippedEntry)

    def test_a_missing_directory_is_reported(self, home):
        source = TranscriptSource.of(CLAUDE_CODE, SessionOptions(path=str(home / "nowhere")))
        with pytest.raises(WorkspaceError, match="has stored no transcripts"):
            list(source.scan())


class TestCodex:
    @pytest.fixture
    def source(self, home):
        (home / ".codex" / "sessions").mkdir(parents=True)
        return TranscriptSource.of(CODEX, SessionOptions())

    def test_messages_are_shown_without_those_that_codex_adds_as_the_user(self, source, home):
        name = "2026/03/01/rollout-2026-03-01T10-00-00-0199.jsonl"
        call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "1"}
        write_lines(
            home / ".codex" / "sessions" / name,
            codex_line("session_meta", {"id": "0199", "cwd": "/home/ann/klaw", "cli_version": "1"}),
            codex_message("developer", "permissions"),
            codex_message("user", "<klaw-memory>told</klaw-memory>"),
            codex_message("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"),
            codex_message("user", "# Context from my IDE setup:\n\n## My request for Codex:\nWhy does it wait?"),
            codex_line("event_msg", {"type": "user_message", "message": "Why does it wait?"}),
            codex_line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "x"}),
            codex_line("response_item", call),
            codex_line("response_item", {"type": "function_call_output", "call_id": "1", "output": "a.py"}),
            codex_message("assistant", "Because of the lock."),
        )
        (document,) = read_all(source)
        assert document.text.split("\n") == ["User: Why does it wait?", "Assistant: Because of the lock."]
        assert document.path == f"codex/{name}"
        assert document.metadata["project"] == "klaw"
        tools = TranscriptSource.of(CODEX, SessionOptions(roles=("tool",)))
        assert read_all(tools)[0].text == 'Tool: shell {"command":["ls"]}\nTool: a.py'

    def test_a_file_of_the_older_format_is_read(self, source, home):
        write_lines(
            home / ".codex" / "sessions" / "rollout-2025-05-01-1.jsonl",
            json.dumps({"id": "1", "timestamp": "2025-05-01T10:00:00Z", "instructions": None}),
            json.dumps({"record_type": "state"}),
            json.dumps({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}),
        )
        assert read_all(source)[0].text == "User: Hello."


def test_a_transcript_is_found_by_its_project_and_has_no_secrets(open_memory, claude):
    file = write_lines(
        claude / "s1.jsonl",
        claude_line("user", f"The key of the harbour gate is {SECRET}."),
        claude_line("assistant", "Noted."),
    )
    with open_memory(CLAUDE) as memory:
        assert memory.index().added == 1
        found = memory.search("harbour gate", filters=Filters(metadata=[parse("project=klaw")]))[0]
        assert "[redacted]" in found.content
        assert found.source == "claude-code"
        assert not list(memory.search("harbour gate", filters=Filters(metadata=[parse("project=other")])))
        assert memory.get(found.path, 2).content == "Assistant: Noted."
        write_lines(file, claude_line("user", "And the lighthouse?"))
        report = memory.index(paths=[file])
        assert (report.changed, report.added) == (1, 0)
        assert memory.search("lighthouse")
        with pytest.raises(KlawError) as refused:
            memory.forget(found.path)
        assert "add '-home-ann-klaw/s1.jsonl' to `exclude`" in refused.value.hint
        file.unlink()
        assert memory.index().removed == 1
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in (claude.parents[2] / "data").glob("klaw.db*"))


def test_an_answer_comes_before_its_question_in_the_transcripts_of_every_agent(open_memory, claude):
    stages = load_config(environment={"KLAW_CONFIG": "/dev/null"}).reranking
    assert {path for stage in stages for path in stage.paths} == {
        "conversations/",
        *(f"{component.name}/" for component in klaw_sources()),
    }
    lines = [
        claude_line("user", "Which port does the staging database use?"),
        claude_line("assistant", "5433, because 5432 is taken by the legacy instance."),
        claude_line("user", "Should we use tabs or spaces in the staging branch?"),
        claude_line("assistant", "Spaces, as the repository says."),
    ]
    write_lines(claude / "s1.jsonl", *lines)
    with open_memory(CLAUDE) as memory:
        memory.index()
        first = memory.search("which port does the staging database use?")[0]
    assert first.content == "Assistant: 5433, because 5432 is taken by the legacy instance."


def test_the_pattern_to_exclude_a_transcript_matches_it(claude):
    """The name of a directory may have the characters of patterns."""
    file = write_lines(claude.parent / "-srv-[old]" / "s1.jsonl", claude_line("user", "harbour"))
    source = TranscriptSource.of(CLAUDE_CODE, SessionOptions(path=str(claude.parent)))
    (path,) = [entry.path for entry in source.scan() if "old" in entry.path]

    _, hint = source.why_not_forgotten(path)

    pattern = hint.partition("'")[2].partition("'")[0]
    excluding = TranscriptSource.of(CLAUDE_CODE, SessionOptions(path=str(claude.parent), exclude=(f"/{pattern}",)))
    assert file.exists()
    assert path not in [entry.path for entry in excluding.scan()]


def test_all_parts_of_a_named_file_are_indexed(open_memory, claude, monkeypatch):
    monkeypatch.setattr(module, "PART_BYTES", 1000)
    file = write_lines(claude / "s1.jsonl", *(claude_line("user", f"harbour {number}") for number in range(20)))
    with open_memory(CLAUDE) as memory:
        report = memory.index(paths=[file])
        assert report.added == len(list(memory.documents())) > 3
        assert memory.index().unchanged == report.added


def test_secrets_in_names_are_redacted(open_memory, claude):
    write_lines(claude / "s1.jsonl", claude_line("user", "harbour", cwd=f"/home/ann/{SECRET}"))
    with open_memory(CLAUDE) as memory:
        memory.index()
        (found,) = memory.search("harbour")
        assert SECRET not in repr(found)


def parse(text):
    from klaw_core import parse_condition

    return parse_condition(text)


@pytest.mark.usefixtures("claude")
def test_history_that_is_written_again_is_indexed_once(claude, monkeypatch):
    """Claude Code repeats messages, with their ids and times, when it resumes a session."""
    monkeypatch.setattr(module, "PART_BYTES", 2_000)
    history = [
        claude_line("user", f"Question {number}", at=f"2026-03-01T10:00:0{number}Z", uuid=f"u{number}")
        for number in range(4)
    ]
    filler = [
        json.dumps({"type": "file-history-snapshot", "uuid": f"f{number}", "text": "x" * 500}) for number in range(5)
    ]
    new = claude_line("user", "A new question", at="2026-03-02T10:00:00Z", uuid="u9")
    write_lines(claude / "s1.jsonl", *history, *filler, *history, *filler, *history, new)
    source = TranscriptSource.of(CLAUDE_CODE, SessionOptions())
    texts = [line for item in read_all(source) if not isinstance(item, SkippedEntry) for line in item.text.split("\n")]
    assert texts == [*(f"User: Question {number}" for number in range(4)), "User: A new question"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<recommended_plugins>\nmany\n</recommended_plugins>", ""),
        ('<hook_prompt hook_run_id="1">run</hook_prompt>', ""),
        ("<permissions instructions>none</permissions instructions>", ""),
        ("<collaboration_mode>plan</collaboration_mode>", ""),
        ("<div>why is this box blue?</div>", "<div>why is this box blue?</div>"),
        ("<my_tag>x</my_tag> is what I typed", "<my_tag>x</my_tag> is what I typed"),
    ],
)
def test_elements_that_codex_adds_are_left_out(text, said):
    line = codex_message("user", text)
    found = [item.text for item in CODEX.read_line(line.encode(), ("user", "assistant")) if hasattr(item, "text")]
    assert found == ([said] if said else [])
