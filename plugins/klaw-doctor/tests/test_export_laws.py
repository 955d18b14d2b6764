"""Export and import: a round trip gives equal data, a second import changes nothing, and existing data is kept."""

from __future__ import annotations

import io
import tempfile
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core.errors import WorkspaceError
from klaw_doctor.export import export
from klaw_doctor.importing import import_
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_journals.record_journal import FileJournal
from klaw_memories.core_memory import CoreMemory
from klaw_memories.saved import Saved
from klaw_testing.extension import shipped_extensions
from klaw_testing.laws import scaled

Journal = import_module("klaw_conversations").Journal
SummaryFiles = import_module("klaw_conversations.summaries").SummaryFiles
Workspace = import_module("klaw_notes.workspace").Workspace
Workspaces = import_module("klaw_notes.workspace_list").Workspaces

START = datetime(2026, 2, 24, 22, tzinfo=UTC)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
keys = st.sampled_from(["name", "occupation", "имя"])
moments = st.integers(0, 10**7).map(lambda count: START + timedelta(milliseconds=count))
chats = st.builds(Chat, st.sampled_from(["telegram", "a_b"]), st.sampled_from(["1", "x/y"]))
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
saved = st.builds(
    Saved, st.integers(0, 9).map("saved/2026-02-24/{:012}".format), texts, texts, moments, st.none() | texts
)
messages = st.builds(
    lambda chat, meta, **fields: Message(**fields, meta={**meta, **chat.meta}),
    chats,
    st.dictionaries(texts, scalars, max_size=2),
    role=st.sampled_from(["user", "assistant"]),
    content=texts,
    ts=moments,
    id=st.sampled_from(["", "msg_1", "msg_2"]),
    type=st.sampled_from([None, "session_break"]),
    extra=st.dictionaries(st.sampled_from(["kind", "chat", "value"]), scalars, max_size=2),
)
facts = st.tuples(st.sampled_from(["user", "agent"]), keys, texts)
workspaces = st.builds(
    Workspace,
    st.sampled_from([Path("/somewhere/notes"), Path("/somewhere/docs"), Path("/elsewhere")]),
    st.sampled_from(["notes", "docs"]),
    exclude=st.lists(texts, max_size=2, unique=True).map(tuple),
    collection=st.sampled_from(["memory", "docs"]),
    version=st.sampled_from(["", "1.2"]),
)
summaries = st.tuples(chats, texts, moments, st.none() | texts)
homes = st.tuples(
    st.lists(workspaces, max_size=2),
    st.lists(facts, max_size=3),
    st.lists(saved, max_size=3),
    st.lists(messages, max_size=4),
    st.lists(summaries, max_size=3).map(lambda found: sorted(found, key=lambda item: item[2])),
)
law = settings(deadline=None, max_examples=scaled(25))


def fill(directory: Path, home) -> Path:
    known, core, memories, said, told = home
    for workspace in known:
        with suppress(WorkspaceError):
            Workspaces(directory / "workspaces.json").merge(workspace)
    for fact in core:
        CoreMemory(directory / "core_memory.json").update(*fact)
    FileJournal(directory / "saved.jsonl").append([memory.record() for memory in memories])
    Journal(directory / "conversations").append_many(said)
    files = SummaryFiles(directory / "summaries")
    for chat, content, moment, first in told:
        files.append(chat, files.summary(chat, content, moment, first))
    return directory


def dump(directory: Path) -> bytes:
    stream = io.BytesIO()
    assert export(shipped_extensions(directory), directory, stream).skipped == ()
    return stream.getvalue()


@given(homes)
@law
def test_a_round_trip_is_equal_and_a_second_import_changes_nothing(home):
    with tempfile.TemporaryDirectory() as name:
        here = fill(Path(name) / "here", home)
        there = Path(name) / "there"
        file = Path(name) / "export.jsonl"
        report = export(shipped_extensions(here), here, file)
        first = import_(shipped_extensions(there), file, workspaces=True)
        assert first.kept == ()
        assert first.added == report.counts
        assert dump(there) == dump(here) == file.read_bytes()
        again = import_(shipped_extensions(there), file, workspaces=True)
        assert (again.added, again.present, again.kept) == ({}, report.counts, ())
        assert dump(there) == file.read_bytes()
        assert dict(import_(shipped_extensions(here), file, workspaces=True).added) == {}, (
            "an export adds nothing to where it comes from"
        )


@given(homes, homes)
@law
def test_an_import_keeps_existing_records_and_adds_missing_ones(mine, theirs):
    with tempfile.TemporaryDirectory() as name:
        here, there = fill(Path(name) / "here", mine), fill(Path(name) / "there", theirs)
        file = Path(name) / "export.jsonl"
        counts = export(shipped_extensions(there), there, file).counts
        before = dump(here).splitlines()[1:-1]
        report = import_(shipped_extensions(here), file, workspaces=True)
        after = dump(here).splitlines()[1:-1]
        # A workspace that is here may gain what is excluded there: that is added, and no line more.
        unchanged = [line for line in before if b'"kind":"workspace"' not in line]
        added = sum(report.added.values()) - report.added.get("workspace", 0)
        assert sum(b'"kind":"workspace"' not in line for line in after) == len(unchanged) + added
        assert [line for line in unchanged if line not in after] == []
        total = sum(report.added.values()) + sum(report.present.values()) + len(report.kept)
        assert total == sum(counts.values())
        merged = dump(here)
        assert import_(shipped_extensions(here), file, workspaces=True).added == {}
        assert dump(here) == merged


def test_a_hand_written_message_stays_in_its_file(tmp_path):
    """A message that does not say where it belongs, in a file of another day than its own."""
    path = tmp_path / "here" / "conversations" / "telegram_1" / "2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"id":"m","ts":"2020-01-01T00:00:00Z","role":"user","content":"hello"}\n' * 2)
    export(shipped_extensions(tmp_path / "here"), tmp_path / "here", tmp_path / "export.jsonl")
    import_(shipped_extensions(tmp_path / "there"), tmp_path / "export.jsonl", workspaces=True)
    entries = list(Journal(tmp_path / "there" / "conversations").read(Chat("telegram", "1")))
    assert [(entry.file.day, entry.message.content, entry.duplicate) for entry in entries] == [
        (date(2026, 2, 24), "hello", False),
        (date(2026, 2, 24), "hello", True),
    ]
