"""Export and import of a real memory: files, errors, what happens half-way, and searching afterwards."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from klaw_core import KlawError, NewDocument, NotFoundError
from klaw_doctor.export import export
from klaw_doctor.importing import import_
from klaw_journals.chats import Chat
from klaw_journals.jsonl import RecordError
from klaw_journals.messages import Message
from klaw_journals.record_journal import FileJournal
from klaw_memories.core_memory import CoreMemory
from klaw_memories.saved import Saved
from klaw_testing.extension import shipped_extensions


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


@pytest.fixture
def exported(home, tmp_path):
    """The export of a memory that has one of everything."""
    home.write("a.md", "# Alpha\n\nThe harbour master.\n")
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("The ferry leaves at seven.", chat_id="telegram_1")
        memory.core.update("user", "name", "Ada")
        message = Message("user", "Is the pier open?", ts=memory_moment(), meta={"channel": "telegram", "chat_id": "1"})
        memory.conversations.journal.append(message)
        report = memory.export(tmp_path / "export.jsonl")
    assert report.counts == {"workspace": 1, "core": 1, "saved": 1, "message": 1}
    return tmp_path / "export.jsonl"


def memory_moment():
    return datetime(2026, 2, 24, 12, tzinfo=UTC)


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def files(directory):
    """Everything under a directory that is a person's own, byte by byte."""
    derived = ("klaw.db", "klaw.db-wal", "klaw.db-shm", "klaw.db.lock")
    found = (path for path in directory.rglob("*") if path.is_file() and path.name not in derived)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def test_each_line_has_its_kind(exported):
    found = lines(exported)
    assert [line["kind"] for line in found] == ["header", "workspace", "core", "saved", "message", "end"]
    assert found[0] == {"kind": "header", "format": "klaw-export", "version": 1}
    assert found[-1] == {"kind": "end", "records": 4}
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600


def test_an_import_into_an_empty_memory_restores_everything(exported, make_home, home):
    other = make_home("sqlite")
    with other.open() as memory:
        report = memory.import_(exported, workspaces=True)
        assert report.added == {"workspace": 1, "core": 1, "saved": 1, "message": 1}
        assert [hit.content for hit in memory.search("ferry")] == ["The ferry leaves at seven."]
        assert memory.core.get().user == {"name": "Ada"}
        memory.index()
        assert memory.search("harbour master")
        assert memory.search("pier")
        assert memory.doctor().findings == ()
    mine, theirs = files(home.root / "data"), files(other.root / "data")
    assert {name: text for name, text in mine.items() if "workspaces" not in name} == {
        name: text for name, text in theirs.items() if "workspaces" not in name
    }


def test_a_failing_model_affects_only_the_vectors_of_an_import(exported, make_home):
    other = make_home("sqlite")
    other.recorder.fail_at = 0
    with other.open() as memory:
        report = memory.import_(exported, workspaces=True)
        assert report.added["saved"] == 1
        assert any("told to fail" in notice for notice in report.notices)


def test_differing_records_are_kept_and_named(exported, tmp_path):
    here = tmp_path / "here"
    CoreMemory(here / "core_memory.json").update("user", "name", "Grace")
    report = import_(shipped_extensions(here), exported, workspaces=True)
    assert report.kept == ("core memory user.name already has another value",)
    assert CoreMemory(here / "core_memory.json").get().user == {"name": "Grace"}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda found: found[:-1], "its end is missing"),
        (lambda found: found[1:], "the first line is not a header"),
        (lambda _: [], "is not a Klaw export: the file is empty"),
        (lambda found: [found[0] | {"version": 2}, *found[1:]], "the export has version 2; this Klaw reads version 1"),
        (lambda found: [found[0] | {"version": 10**9}, *found[1:]], "has version a number; this Klaw reads version 1"),
        (lambda found: [*found[:2], {"kind": "recipe"}, *found[2:]], "line 3: unknown kind 'recipe'"),
        (lambda found: [*found[:2], {"kind": ["x"]}, *found[2:]], "line 3: unknown kind an array"),
        (lambda found: [*found[:3], {"kind": "saved", "value": {"id": 3}}, *found[4:]], "line 4: id is not a string"),
        (lambda found: [*found[:3], {"kind": "saved"}, *found[4:]], "line 4: not a record of kind 'saved'"),
        (lambda found: [*found[:4], found[4] | {"value": None}, found[5]], "the wrong type or is not allowed"),
        (lambda found: [*found[:4], found[4] | {"day": "../etc/psw"}, found[5]], "line 5"),
        (lambda found: [*found[:4], found[4] | {"chat": "nochat"}, found[5]], "is not a chat name"),
        (lambda found: [*found[:2], found[2] | {"section": "world"}, *found[3:]], "no section 'world'"),
        (lambda found: [found[0], found[1] | {"name": "../x"}, *found[2:]], "line 2"),
        (lambda found: [found[0], found[1] | {"value": {"path": "notes"}}, *found[2:]], "is not an absolute path"),
        (lambda found: [found[0], found[1] | {"value": {"path": "/\0"}}, *found[2:]], "is not an absolute path"),
        (lambda found: [*found[:2], *found[3:]], "found 3 records"),
        (lambda found: [*found, found[2]], "there is data after the end record"),
    ],
)
def test_an_unknown_record_changes_nothing(exported, tmp_path, spoil, reason):
    exported.write_text("".join(json.dumps(line) + "\n" for line in spoil(lines(exported))))
    with pytest.raises(RecordError) as caught:
        import_(shipped_extensions(tmp_path / "here"), exported, workspaces=True)
    assert reason in str(caught.value)
    assert "nothing was imported" in str(caught.value)
    assert caught.value.hint, "it says what to do"
    assert "Error" not in caught.value.message
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("content", ["# Notes\n\ntext\n", "text without a line end", "[\n]\n", '{"a": 1}', "\0\xff"])
def test_a_file_that_is_no_export_is_called_that_first(tmp_path, content):
    path = tmp_path / "notes.md"
    path.write_text(content, "latin-1")
    with pytest.raises(RecordError) as caught:
        import_(shipped_extensions(tmp_path / "here"), path)
    assert caught.value.message.startswith(f"{path} is not a Klaw export: the first line is not a header like {{")
    assert '"format": "klaw-export"' in caught.value.message
    assert "klaw export" in caught.value.hint


def test_a_file_that_cannot_be_read_is_not_called_another_file(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(RecordError, match=r"line 1: cannot be read: .*; nothing was imported") as caught:
        import_(shipped_extensions(tmp_path / "here"), path)
    assert "is not a Klaw export" not in caught.value.message


def test_a_truncated_export_is_rejected(exported, tmp_path):
    data = exported.read_bytes()
    for size in range(0, len(data), 7):
        exported.write_bytes(data[:size])
        with pytest.raises(RecordError):
            import_(shipped_extensions(tmp_path / "here"), exported, workspaces=True)
    assert not (tmp_path / "here").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFoundError):
        import_(shipped_extensions(tmp_path / "here"), tmp_path / "missing.jsonl", workspaces=True)
    with pytest.raises(RecordError):
        import_(shipped_extensions(tmp_path / "here"), tmp_path, workspaces=True)


def test_a_failed_import_reports_its_progress_and_the_next_one_continues(exported, tmp_path):
    here = tmp_path / "here"
    (here / "saved.jsonl").mkdir(parents=True)
    with pytest.raises(KlawError) as caught:
        import_(shipped_extensions(here), exported, workspaces=True)
    assert "imported before the error: 1 × workspace, 1 × core" in str(caught.value)
    (here / "saved.jsonl").rmdir()
    report = import_(shipped_extensions(here), exported, workspaces=True)
    assert (report.added, report.present) == ({"saved": 1, "message": 1}, {"workspace": 1, "core": 1})


def test_invalid_lines_are_named_and_valid_ones_exported(exported, home, tmp_path):
    path = home.root / "data" / "saved.jsonl"
    path.write_bytes(b"{broken}\n" + path.read_bytes())
    report = export(shipped_extensions(home.root / "data"), home.root / "data", tmp_path / "again.jsonl")
    assert report.counts["saved"] == 1
    assert [item.path for item in report.skipped] == [f"{path}@0"]
    assert (tmp_path / "again.jsonl").read_bytes() == exported.read_bytes()


@pytest.mark.usefixtures("exported")
def test_summaries_are_exported_and_invalid_ones_named(home, tmp_path):
    root = home.root / "data" / "summaries"
    with home.open() as memory:
        memory.conversations.add_summary(Chat("telegram", "1"), "They spoke of piers.", created_at=memory_moment())
    path = root / "telegram_1" / "summaries.jsonl"
    good = path.read_bytes()
    bad = [b"{broken}\n", b"{}\n", good.replace(b"null", b"7"), good.replace(b"2026-02", b"2026-13"), good[:-1]]
    path.write_bytes(b"".join([good, *bad]))
    for stray in ("foo", "telegram_%32"):
        (root / stray).mkdir()
        (root / stray / "summaries.jsonl").write_bytes(good)
    report = export(shipped_extensions(home.root / "data"), home.root / "data", tmp_path / "again.jsonl")
    assert report.counts == {"workspace": 1, "core": 1, "saved": 1, "message": 1, "summary": 1}
    places = [len(good) + sum(map(len, bad[:number])) for number in range(len(bad))]
    assert [item.path for item in report.skipped] == [
        str(root / "foo"), str(root / "telegram_%32"), *(f"{path}@{place}" for place in places)
    ]  # fmt: skip
    (told,) = [line for line in lines(tmp_path / "again.jsonl") if line["kind"] == "summary"]
    assert (told["chat"], told["value"]) == ("telegram_1", json.loads(good))
    assert (
        import_(shipped_extensions(tmp_path / "there"), tmp_path / "again.jsonl", workspaces=True).added["summary"] == 1
    )
    assert (tmp_path / "there" / "summaries" / "telegram_1" / "summaries.jsonl").read_bytes() == good


@pytest.mark.usefixtures("exported")
def test_summaries_that_cannot_be_listed_are_named(home, tmp_path):
    (home.root / "data" / "summaries").write_text("a file stands in the way")
    (skipped,) = export(shipped_extensions(home.root / "data"), home.root / "data", tmp_path / "again.jsonl").skipped
    assert (skipped.path, skipped.reason) == (str(home.root / "data" / "summaries"), "cannot be read: Not a directory")


@pytest.mark.parametrize(
    "value", [3, None, {}, {"content": 3}, {"content": "x", "ts": "2026-02-24T00:00:00Z", "from_message_id": 3}]
)
def test_an_invalid_summary_is_rejected(exported, tmp_path, value):
    found = lines(exported)
    told = {"kind": "summary", "chat": "telegram_1", "value": value}
    exported.write_text("".join(json.dumps(line) + "\n" for line in [*found[:-1], told, found[-1] | {"records": 5}]))
    with pytest.raises(RecordError, match="line 6"):
        import_(shipped_extensions(tmp_path / "here"), exported, workspaces=True)


def test_a_broken_core_memory_keeps_an_older_export(exported, home):
    before = exported.read_bytes()
    (home.root / "data" / "core_memory.json").write_text("[]")
    with pytest.raises(KlawError, match="not core memory"):
        export(shipped_extensions(home.root / "data"), home.root / "data", exported)
    assert exported.read_bytes() == before
    assert [path.name for path in exported.parent.glob(".klaw-*")] == []


def test_many_memories_are_imported_in_ordered_batches(tmp_path):
    texts = [
        Saved(f"saved/2026-02-24/{number:012}", f"text {number}", "manual", memory_moment()) for number in range(250)
    ]
    FileJournal(tmp_path / "a" / "saved.jsonl").append([text.record() for text in texts])
    export(shipped_extensions(tmp_path / "a"), tmp_path / "a", tmp_path / "export.jsonl")
    import_(shipped_extensions(tmp_path / "b"), tmp_path / "export.jsonl", workspaces=True)
    assert list(FileJournal(tmp_path / "b" / "saved.jsonl").replay().records.values()) == [
        text.record() for text in texts
    ]


def test_equal_contents_give_equal_bytes_however_they_came(tmp_path, make_home):
    """Two machines that synchronise have the lines of their journals in another order."""
    with make_home("sqlite").open() as memory:
        memory.save("The ferry leaves at seven.", created_at=memory_moment())
        memory.add([NewDocument("b", "The pier.", created_at=memory_moment()), NewDocument("a", "The harbour.")])
        memory.save("The bridge is open.", created_at=datetime(2025, 2, 24, tzinfo=UTC))
        memory.export(tmp_path / "one.jsonl")
    one = (tmp_path / "one.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "turned.jsonl").write_text("".join([one[0], *reversed(one[1:-1]), one[-1]]), "utf-8")
    with make_home("sqlite").open() as memory:
        memory.import_(tmp_path / "turned.jsonl")
        memory.export(tmp_path / "other.jsonl")
    assert (tmp_path / "other.jsonl").read_text("utf-8") == "".join(one)


def test_exporting_needs_neither_numpy_nor_a_database(tmp_path):
    program = (
        "import sys; from pathlib import Path; from klaw_doctor.export import export;"
        f"from klaw_testing.extension import shipped_extensions; root = Path({str(tmp_path)!r});"
        f"export(shipped_extensions(root), root, sys.stdout.buffer); assert not {{'numpy', 'apsw'}} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=dict(os.environ), check=True)
    assert done.stdout.count(b"\n") == 2


def test_an_agents_memory_is_named_as_left_out(exported, home, tmp_path):
    data = home.root / "data"
    (data / "agents" / "researcher").mkdir(parents=True)
    (item,) = export(shipped_extensions(data), data, tmp_path / "again.jsonl").skipped
    assert (item.path, item.keep) == ("agents/researcher", True)
    assert f"klaw export --data-dir {data / 'agents' / 'researcher'} FILE" in item.reason
    assert (tmp_path / "again.jsonl").read_bytes() == exported.read_bytes()


def test_workspaces_without_notes_are_named_and_restored_under_their_name(exported, home, make_home, tmp_path):
    with home.open() as memory:
        memory.forget("notes/a.md")
        memory.export(exported)
    home.notes.rename(tmp_path / "moved")
    (tmp_path / "moved" / "b.md").write_text("The lighthouse.", "utf-8")
    with make_home("sqlite").open() as memory:
        assert [
            f"{home.notes} is missing" in notice for notice in memory.import_(exported, workspaces=True).notices
        ] == [True]
        memory.index(tmp_path / "moved", name="notes")
        assert [result.path for result in memory.search("lighthouse harbour", mode="fts")] == ["notes/b.md"]


def test_an_import_does_not_add_workspaces_without_consent(exported, make_home, tmp_path):
    """Neither a directory of this machine that is to be read, nor that notes which are here leave the index."""
    other = make_home("sqlite")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.md").write_text("the secret harbour")
    told = lines(exported)
    evil = [
        {"kind": "workspace", "name": "secret", "value": {"path": str(secret), "exclude": []}},
        {"kind": "workspace", "name": "notes", "value": {"path": str(other.notes), "exclude": ["*"]}},
    ]
    exported.write_text("".join(json.dumps(line) + "\n" for line in [told[0], *evil, {"kind": "end", "records": 2}]))
    other.write("b.md", "the harbour here")
    with other.open() as memory:
        memory.index(other.notes)
        report = memory.import_(exported)
        assert (report.added, len(report.kept)) == ({}, 2)
        assert str(secret) in report.kept[0]
        assert "would exclude '*'" in report.kept[1]
        assert "--workspaces" in report.kept[0]
        memory.index()
        assert [hit.path for hit in memory.search("harbour", mode="fts")] == ["notes/b.md"]
        assert memory.import_(exported, workspaces=True).added == {"workspace": 2}
        memory.index()
        assert [hit.path for hit in memory.search("harbour", mode="fts")] == ["secret/a.md"]
