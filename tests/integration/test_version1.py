"""A data directory of the version before extensions: it opens, finds the same chunks, and nothing is wrong with it.

``version1/home.tar.gz`` was written by that version with the embedder of these tests: notes, a manual in the collection
``docs``, a note that was forgotten, a saved memory, a chat with its summary, and core memory; ``found.json`` is what
it found. ``ROOT`` stands for the directory in which the workspaces lie.
"""

import json
import tarfile
from pathlib import Path

import pytest

from klaw_core import Chat, NewDocument

ARCHIVE = Path(__file__).parent / "version1" / "home.tar.gz"
CHAT = Chat.parse("telegram_123456")
#: As many short messages shared a chunk by default.
AS_THEN = {"packed_tokens": 64}


@pytest.fixture
def old(make_home):
    """A home with a copy of the data directory of that version."""
    home = make_home("sqlite")
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later have it
        archive.extractall(home.root)
    workspaces = home.root / "data" / "workspaces.json"
    text = workspaces.read_text("utf-8")
    assert text.count('"ROOT/') == 2
    workspaces.write_text(text.replace('"ROOT/', f'"{home.root}/'), "utf-8")
    return home


@pytest.fixture
def before(old):
    """What that version found, by mode, collection and query."""
    found = json.loads((old.root / "found.json").read_text("utf-8"))
    return {tuple(key.split(" ", 2)): value for key, value in found.items()}


def found(memory, before):
    return {
        (mode, collection, query): [
            [item.chunk_id, item.path, item.start_line, item.end_line, item.content]
            for item in memory.search(query, 20, mode=mode, collection=collection)
            if item.source != "summary"  # which that version did not index
        ]
        for mode, collection, query in before
    }


def known(before):
    return {key: [item[:5] for item in results] for key, results in before.items()}


def test_a_file_of_version_1_finds_the_same_chunks(old, before):
    with old.open() as memory:
        assert found(memory, before) == known(before)


def keys(memory):
    """Return the keys of all chunks, and what they are: a chunk that was replaced has another key."""
    with memory._assembly.store.read() as snapshot:
        return {
            name: [(item.key, item.chunk.chunk_id) for item in snapshot.chunks(name, snapshot.keys(name).tolist())]
            for name in ("memory", "docs")
        }


@pytest.mark.needs("klaw-conversations")
def test_a_file_of_version_1_needs_only_new_chunking(old, check):
    with old.open() as memory:
        # That version named the chunkers of all formats in what decides whether a document is cut again.
        assert {finding.check for finding in memory.doctor().findings} <= {"stale", "never-indexed", "index-outdated"}
        check(memory)
        memory.index()
        assert memory.doctor().findings == ()
        check(memory)


@pytest.mark.needs("klaw-conversations")
def test_chunking_again_replaces_no_chunk_and_embeds_nothing(old, before):
    with old.open(conversations=AS_THEN) as memory:
        there = keys(memory)
        report = memory.index()
        # Only the summary of the chat is new: that version did not index it.
        assert (report.added, report.removed, report.embedded, report.lacking) == (1, 0, 1, 0)
        assert [pairs[: len(there[name])] for name, pairs in keys(memory).items()] == list(there.values())
        assert found(memory, before) == known(before)
        assert memory.index().changed == 0
    assert [text for text in old.recorder.texts if "passkeys" in text] == []


@pytest.mark.needs("klaw-conversations")
def test_after_a_reindex_the_same_chunks_are_found(old, before):
    with old.open(conversations=AS_THEN) as memory:
        memory.reindex()
        assert {key: sorted(value) for key, value in found(memory, before).items()} == {
            key: sorted(value) for key, value in known(before).items()
        }
        assert memory.doctor().findings == ()


def test_messages_memories_and_forgotten_texts_are_unchanged(old):
    with old.open() as memory:
        assert memory.core.get().user == {"name": "Ada"}
        assert [line.message.id for line in memory.conversations.read(CHAT)] == ["m1", "m2"]
        assert [item.content for item in memory.conversations.summaries(CHAT)] == ["Somebody looks for the spare key."]
        assert [item.id for item in memory.conversations.search("boiler")] == ["m2"]
        assert {item.origin for item in memory.sources()} == {"notes", "manual", "saved", "conversations"}
        old.write("private.md", "This note was forgotten.\n")
        memory.index()
        assert not memory.search("forgotten", mode="fts")


@pytest.mark.needs("klaw-conversations")
def test_new_features_work_in_a_file_of_version_1(old, check):
    old.write("tagged.md", "---\nstatus: open\n---\nThe heron is new.\n")
    with old.open() as memory:
        memory.add([NewDocument("d1", "The kingfisher is new.", {"tags": ["a"]})])
        memory.index()
        assert memory.search("heron", mode="fts")[0].metadata == {"status": "open"}
        assert memory.search("kingfisher", mode="fts")[0].metadata == {"tags": ("a",)}
        both = memory.search("new installer", mode="fts", collection=["memory", "docs"])
        assert {item.collection for item in both} == {"memory", "docs"}
        assert "Bertha" in memory.context("office plant").volatile
        check(memory)
        assert memory.doctor().findings == ()
