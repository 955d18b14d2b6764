"""The extension ``saved``: texts that a person or a model has saved."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from attrs import define, field

from klaw_core.errors import ESCAPING, KlawError, RecordError, quoted
from klaw_core.extensions.owned_files import check_lines, check_private, make_private
from klaw_core.extensions.schemas import string
from klaw_core.files.journals import FileJournals
from klaw_core.files.layout import DataDirectory
from klaw_core.interfaces.extension import (
    AttachedExtension,
    CheckedExtension,
    Host,
    RecordedExtension,
    SourcedExtension,
    ToolExtension,
)
from klaw_core.interfaces.source import Source
from klaw_core.sources.saved import SAVED, Saved, SavedJournal, SavedSource, as_document
from klaw_core.values.collections import MEMORY
from klaw_core.values.findings import FIX, Finding
from klaw_core.values.lines import count_lines
from klaw_core.values.records import ImportCounts, Record
from klaw_core.values.runs import Excerpt, SkippedEntry
from klaw_core.values.search import Filters
from klaw_core.values.tools import Json, Tool

_BATCH = 100
_MAX_CONTENT_CHARACTERS = 100_000
_MAX_LABEL_CHARACTERS = 200
# The labels that a model may always use. Other labels must not look like those of documents, such as paths of notes.
_LABELS = frozenset({"manual", "conversation"})
_LABEL_HINT = "use manual or conversation, and name the file or the person in the content"


@define(eq=False)
class SavedExtension(AttachedExtension, SourcedExtension, ToolExtension, CheckedExtension, RecordedExtension):
    """Stores saved memories in a journal, indexes them, and exports them."""

    directory: DataDirectory
    origins: Sequence[str] = (SAVED,)
    record_kinds: Sequence[str] = (SAVED,)
    _host: Host | None = field(default=None, init=False)
    _journal: SavedJournal | None = field(default=None, init=False)

    name = SAVED

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host, self._journal = host, None

    @property
    def journal(self) -> SavedJournal:
        """The journal: that of the store, if it has its own, once the extension is attached.

        It is one object, because it caches the places of records.
        """
        if self._journal is None:
            journals = FileJournals(self.directory) if self._host is None else self._host.journals
            self._journal = SavedJournal(journals.records(SAVED, Saved.parse))
        return self._journal

    def save(self, text: str, source: str, chat_id: str | None, created_at: datetime | None) -> Excerpt:
        """Store and index a text; see ``Memory.save``."""
        moment = created_at or datetime.now(
            UTC
        )  # only once, because a second attempt after midnight would have another date
        journal = self.journal
        for attempt in count():
            saved = Saved.make(text, source, chat_id, moment, attempt=attempt)
            if not journal.add(saved):
                break
        return Excerpt(saved.id, text, 1, count_lines(text), notice=self._index(saved))

    def _index(self, saved: Saved) -> str:
        """Index a saved memory; return why it cannot be found by meaning, or at all, for now; usually empty."""
        assert self._host is not None
        journal = self.journal.records
        try:
            version = journal.version
            report = self._host.index_documents([as_document(saved)])
            indexed = True
            while journal.version != version:  # another process may have forgotten the text, or saved it again
                version = journal.version
                if bool(journal.get([saved.id])) == indexed:
                    break  # a later writer updates the index itself
                if indexed:
                    self._host.remove_documents([saved.id], MEMORY)
                else:
                    report = self._host.index_documents([as_document(saved)])
                indexed = not indexed
        except (KlawError, *ESCAPING) as error:
            # The text is in the journal: after an exception, the caller would save it again.
            return f"saved, but not searchable before the next `klaw index`: {error}"
        reason = "; ".join(report.notices)
        return f"saved and found by words, but not embedded yet: {reason}" if reason else ""

    def sources(self) -> Sequence[Source]:
        """Return the journal as a source; none if it does not exist."""
        journal = self.journal
        return (SavedSource(journal),) if journal.records.exists else ()

    def check(self) -> Iterator[Finding]:
        """Report broken lines of the journal, and forgotten texts that are still in it."""
        yield from check_private(self._files())
        location = self.journal.records.location
        replayed = self.journal.read()
        yield from check_lines("saved-lines", location, replayed.broken)
        if replayed.unfinished:
            what = f"{len(replayed.unfinished):,} forgotten memories still have their text in the file"
            yield Finding("saved-unfinished", "error", what, location, FIX, replayed.unfinished)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Complete forgetting that a crash interrupted, and make the file private. Raise StoreError."""
        make_private(self._files())
        self.journal.finish()

    def _files(self) -> list[Path]:
        return [self.directory.journal(SAVED)]

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every saved memory."""
        replayed = self.journal.read()
        yield from (Record(SAVED, {"value": saved.record()}) for saved in replayed.memories)
        yield from (
            SkippedEntry(f"{line.location}@{line.position}", line.reason, keep=True) for line in replayed.broken
        )

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a saved memory."""
        Saved.parse(record.value["value"])

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add and index memories. An existing memory with the same id and another text is not changed."""
        journal = self.journal
        known = {saved.id: saved for saved in journal.read().memories}
        counts = ImportCounts()
        batch: list[Saved] = []
        for saved in (Saved.parse(record.value["value"]) for record in records):
            here = known.setdefault(saved.id, saved)
            if here is saved:
                batch.append(saved)
            elif here == saved:
                counts += ImportCounts(present=1)
            else:
                counts += ImportCounts(kept=(_differs(saved.id),))
            if len(batch) >= _BATCH:
                counts += self._keep(journal, batch)
        counts += self._keep(journal, batch)
        return counts + ImportCounts(notices=self._index_all() if counts.added else ())

    def _keep(self, journal: SavedJournal, batch: list[Saved]) -> ImportCounts:
        refused = journal.add(*batch)  # another program has saved it since `known` was read
        counts = ImportCounts(added=len(batch) - len(refused), kept=tuple(map(_differs, sorted(refused))))
        batch.clear()
        return counts

    def _index_all(self) -> tuple[str, ...]:
        if self._host is None:
            return ()
        try:
            notices = self._host.index(SAVED).notices
        except KlawError as error:  # everything is in the journal, and the next index run indexes it
            return (f"not indexed yet: {error.message}",)
        return tuple(f"found by words, but not embedded yet: {notice}" for notice in notices[:1])

    def tools(self) -> Sequence[Tool]:
        """Return the tool that saves."""
        description = (
            "Save a fact, decision or event for later, in a sentence that is clear by itself. Nothing is ever "
            "overwritten: if something has changed, say so and when."
        )
        properties = {
            "content": string("The text to remember.", _MAX_CONTENT_CHARACTERS),
            "source": string("Its origin: manual (default) or conversation.", _MAX_LABEL_CHARACTERS),
        }
        aliases = dict.fromkeys(("text", "memory", "fact", "note", "message", "value"), "content")
        return (Tool("memory_save", description, properties, self._save, ("content",), aliases=aliases),)

    def _save(self, arguments: Json) -> Json:
        source = arguments.get("source", "manual")
        self._check_label(source)
        saved = self.save(arguments["content"], source, None, None)
        return {"saved": saved.path, **({"notice": saved.notice} if saved.notice else {})}

    def _check_label(self, label: str) -> None:
        """Raise RecordError for a source that a model may not give: a file's name, or what other documents have."""
        if label in _LABELS:
            return
        if not _is_words(label):
            problem = f"{quoted(label)} cannot be a source: it may be the name of a file, and a label consists of words"
            raise RecordError(problem, hint=_LABEL_HINT)
        assert self._host is not None
        with self._host.read() as view:
            for collection in view.collections():
                every, own = (view.select(collection, Filters(label, path)).keys() for path in (None, f"{SAVED}/"))
                if len(every) > len(own):
                    raise RecordError(f"{quoted(label)} is already the source of other documents", hint=_LABEL_HINT)


def _is_words(label: str) -> bool:
    """Return whether a label has only letters, digits, spaces, hyphens and underscores: no dot, no slash."""
    return all(letter in " -_" or unicodedata.category(letter)[0] in "LMN" for letter in label)


def _differs(name: str) -> str:
    return f"{name} already exists with other content"
