"""The extension ``saved``: texts that a person or a model has saved."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any

from attrs import define

from klaw_core import Document, Excerpt, Filters, KlawError, RecordError, Tool, ToolExtension, line_starts, quoted
from klaw_journals import ImportCounts, Record
from klaw_memories.arguments import Json, string
from klaw_memories.journal_extension import JournalExtension
from klaw_memories.saved import SAVED, Saved, is_same

_MAX_CONTENT_CHARACTERS = 100_000
_MAX_LABEL_CHARACTERS = 200
# The labels that a model may always use. Other labels must not look like those of documents, such as paths of notes.
_LABELS = frozenset({"manual", "conversation"})
_LABEL_HINT = "use manual or conversation, and name the file or the person in the content"


@define(eq=False)
class SavedExtension(JournalExtension, ToolExtension):
    """Stores saved memories in a journal, indexes them, and exports them."""

    name = kind = SAVED
    plural = "memories"

    def parse(self, record: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the record of a saved memory. Raise RecordError."""
        return Saved.parse(record).record()

    def document_of(self, record: Mapping[str, Any], /) -> Document:
        """Return the document of a saved memory."""
        saved = Saved.parse(record)
        return Document(saved.id, saved.text, saved.source, SAVED, saved.created_at, saved.chat_id)

    def save(self, text: str, source: str, chat_id: str | None, created_at: datetime | None) -> Excerpt:
        """Store and index a text; see ``Memory.save``."""
        moment = created_at or datetime.now(
            UTC
        )  # only once, because a second attempt after midnight would have another date
        for attempt in count():
            saved = Saved.make(text, source, chat_id, moment, attempt=attempt)
            if not self.journal.add([saved.record()], is_same):
                break
        return Excerpt(saved.id, text, 1, _count_lines(text), notice=self._index(saved))

    def _index(self, saved: Saved) -> str:
        """Index a saved memory; return why it cannot be found by meaning, or at all, for now; usually empty."""
        try:
            reason = "; ".join(self.index([saved.record()]).notices)
        except KlawError as error:  # the text is in the journal: after an exception, the caller would save it again
            return f"saved, but not searchable before the next `klaw index`: {error}"
        return f"saved and found by words, but not embedded yet: {reason}" if reason else ""

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add and index memories. An existing memory with the same id and another text is not changed."""
        counts = super().add(records)
        return counts + ImportCounts(notices=self._index_all() if counts.added else ())

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
        with self.host.read() as view:
            for collection in view.collections():
                every, own = (view.select(collection, Filters(label, path)).keys() for path in (None, f"{SAVED}/"))
                if len(every) > len(own):
                    raise RecordError(f"{quoted(label)} is already the source of other documents", hint=_LABEL_HINT)


def _is_words(label: str) -> bool:
    """Return whether a label has only letters, digits, spaces, hyphens and underscores: no dot, no slash."""
    return all(letter in " -_" or unicodedata.category(letter)[0] in "LMN" for letter in label)


def _count_lines(text: str) -> int:
    starts = line_starts(text)
    return len(starts) - (len(starts) > 1 and starts[-1] == len(text))
