"""The contract of a source; the subclass defines the fixture ``source``, which must have documents."""

from datetime import datetime
from typing import Any

import pytest

from klaw_core import Document, Entry, Forgetful, Forgettable, SkippedEntry, Source
from klaw_testing.report import lacks


class SourceContract:
    """The laws of a source."""

    @pytest.fixture
    def source(self) -> Any:
        """Return the source under test, with documents."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def made_again(self, source: Any) -> Any:
        """Return the source as the next index run makes it; by default ``source``, which must know what changed."""
        return source

    def test_what_it_says_of_itself_are_values(self, source: Source) -> None:
        told = ("origin", "collection", "forgets_missing", "stamp")
        methods = [name for name in told if callable(getattr(source, name))]
        assert methods == [], f"make {', '.join(methods)} an attribute or a property, not a method"

    def test_a_scan_finds_distinct_paths_and_is_repeatable(self, source: Source) -> None:
        first, second = list(source.scan()), list(source.scan())
        assert first == second
        paths = [item.path for item in first]
        assert len(set(paths)) == len(paths)
        assert any(isinstance(item, Entry) for item in first), "the contract needs a source with documents"

    def test_every_entry_reads_as_a_document_of_this_origin_or_is_skipped_with_a_reason(self, source: Source) -> None:
        documents = 0
        for entry in source.scan():
            if isinstance(entry, SkippedEntry):
                assert entry.reason
                continue
            read = source.read(entry)
            assert read.path == entry.path
            if isinstance(read, Document):
                documents += 1
                assert read.origin == source.origin
                assert read.text.strip()
                assert read.source
                assert isinstance(read.created_at, datetime), "created_at must be a datetime; use that of the place"
                assert read.created_at.utcoffset() is not None, "dates must be timezone-aware"
            else:
                assert read.reason
        assert documents, "the contract needs a source with documents"

    def test_reading_is_deterministic(self, source: Source) -> None:
        entries = [entry for entry in source.scan() if isinstance(entry, Entry)]
        assert entries, "the contract needs a source with documents"
        for entry in entries:
            assert source.read(entry) == source.read(entry)

    def test_an_unchanged_digest_is_recognised(self, source: Source) -> None:
        read = {entry: source.read(entry) for entry in source.scan() if isinstance(entry, Entry)}
        documents = {entry: document for entry, document in read.items() if isinstance(document, Document)}
        assert documents, "the contract needs a source with documents"
        for entry, document in documents.items():
            assert source.read_changed(entry, "another") == document
            if document.digest:
                assert source.read_changed(entry, document.digest) is None

    def test_a_missing_entry_is_skipped(self, source: Source) -> None:
        path = f"{source.origin}/never-was-there.md"
        read = source.read(Entry(path))
        assert isinstance(read, SkippedEntry)
        assert read.path == path, "with another path, the wrong indexed document would be kept or removed"

    def test_a_forgotten_document_is_not_found_again(self, source: Source) -> None:
        if not isinstance(source, Forgettable):
            lacks("Forgettable")
        before = [entry.path for entry in source.scan() if isinstance(entry, Entry)]
        assert before, "the contract needs a source with documents"
        source.forget([f"{source.origin}/never-was-there.md", before[0]])
        source.forget([before[0]])
        found = self.made_again(source).scan()
        assert [entry.path for entry in found if isinstance(entry, Entry)] == before[1:]
        if isinstance(source, Forgetful):
            assert list(source.forgotten(before)) == before[:1]
