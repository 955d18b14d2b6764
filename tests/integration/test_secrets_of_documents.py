"""Secrets of known shapes reach klaw.db from no source but notes, and not from those where that is configured."""

from datetime import UTC, datetime

import pytest
from attrs import evolve

from klaw_core import Document, Entry, NewDocument, Source
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.plugins.isolation import IsolatedSource
from klaw_redaction import REDACTED

SECRET = "sk-ant-" + "a1B2" * 10


class Transcripts(Source):
    """A plugin's source of transcripts."""

    origin = "sessions"

    def scan(self):
        return [Entry("sessions/1.jsonl", 10)]

    def read(self, entry):
        text = f"User: first\nUser: the key is {SECRET}\nUser: last"
        moment = datetime(2026, 2, 24, tzinfo=UTC)
        metadata = {"command": f"export KEY={SECRET}", "tags": (SECRET, "x")}
        return Document(
            entry.path, text, "session", self.origin, moment, format="transcript", title=SECRET, metadata=metadata
        )


class Redacted(Transcripts):
    """A source that has redacted its documents by rules of its own, and knows which have changed."""

    def scan(self):
        return [Entry("sessions/1.jsonl", 10, fingerprint="1")]

    def read(self, entry):
        return evolve(super().read(entry), is_redacted=True)


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def in_database(home):
    return SECRET.encode() in b"".join(path.read_bytes() for path in (home.root / "data").glob("klaw.db*"))


@pytest.mark.promise("T24")
def test_saved_memories_and_added_documents_are_redacted(home):
    with home.open() as memory:
        memory.save(f"The key is {SECRET}.")
        memory.add([NewDocument("d", f"Another key: {SECRET}", {"note": SECRET})])
        memory.index()
        found = {result.content for result in memory.search("key", mode="fts")}
        assert found == {f"The key is {REDACTED}.", f"Another key: {REDACTED}"}
        report = memory.index()
        assert (report.changed, report.unchanged) == (0, 2)
        assert memory.doctor().findings == ()
    assert not in_database(home)
    assert SECRET in (home.root / "data" / "saved.jsonl").read_text("utf-8"), "the journal is what was said"


def test_documents_of_a_plugin_are_redacted_and_keep_their_lines(home):
    with home.open() as memory:
        indexer = memory._assembly.indexer("memory")
        source = IsolatedSource.of(Transcripts(), "sessions")
        indexer.write(source, EmbeddingRun())
        (result,) = memory.search("last", mode="fts")
        assert result.content.split("\n") == ["User: first", f"User: the key is {REDACTED}", "User: last"]
        assert result.metadata == {"command": f"export KEY={REDACTED}", "tags": (REDACTED, "x")}
        assert indexer.write(source, EmbeddingRun()).unchanged == 1
    assert not in_database(home)


def test_a_document_that_its_source_has_redacted_is_indexed_as_it_is_whatever_the_patterns_are(home):
    source = IsolatedSource.of(Redacted(), "sessions")
    with home.open() as memory:
        memory._assembly.indexer("memory").write(source, EmbeddingRun())
        results = memory.search("key", mode="fts")
        assert any(SECRET in result.content for result in results)
        assert SECRET in results[0].metadata["command"]
    with home.open(conversations={"redact": ["last"]}) as memory:
        indexer = memory._assembly.indexer("memory")
        report = indexer.write(source, EmbeddingRun())
        assert (report.changed, report.unchanged) == (0, 1)


def test_notes_are_redacted_if_configured_and_again_after_a_change(home):
    home.write("a.md", f"# Keys\n\nthe key is {SECRET}\n\nand hunter2\n")
    with home.open() as memory:
        memory.index(home.notes)
        assert SECRET in memory.search("key", mode="fts")[0].content
    with home.open(conversations={"redact_notes": True}) as memory:
        assert memory.index().changed == 1
        (result,) = memory.search("key", mode="fts")
        assert result.content == f"# Keys\n\nthe key is {REDACTED}\n\nand hunter2"
        assert (result.start_line, result.end_line) == (1, 5)
        assert SECRET in memory.get(result.path).content, "the file is as it is"
        assert memory.index().changed == 0
    with home.open(conversations={"redact_notes": True, "redact": ["hunter2"]}) as memory:
        assert memory.index().changed == 1
        assert "hunter2" not in memory.search("key", mode="fts")[0].content
