"""The extension ``saved``: texts that a person or a model has saved."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from shlex import quote
from typing import Any

from attrs import define, field

from klaw_core import (
    Document,
    Excerpt,
    Filters,
    KlawError,
    RecordError,
    Source,
    Tool,
    ToolExtension,
    line_starts,
    quoted,
)
from klaw_journals import ImportCounts, Record
from klaw_journals.trust import AGENT, OWNER
from klaw_memories.arguments import Json, string, strings
from klaw_memories.journal_extension import JournalExtension, JsonRecord
from klaw_memories.saved import SAVED, Saved, is_same
from klaw_memories.versions import (
    VersionedSource,
    chain_of,
    earlier,
    find_version,
    may_replace,
    replaced,
    replacements,
)

_MEMORY = "memory"  # the collection of saved memories
_MAX_CONTENT_CHARACTERS = 100_000
_MAX_LABEL_CHARACTERS = 200
# The labels that a model may always use. Other labels must not look like those of documents, such as paths of notes.
_LABELS = frozenset({"manual", "conversation"})
_LABEL_HINT = "use manual or conversation, and name the file or the person in the content"


@define(eq=False)
class SavedExtension(JournalExtension, ToolExtension):
    """Stores saved memories in a journal, indexes them, and exports them."""

    # The version of the journal, and the texts of earlier versions that it had then.
    _earlier: tuple[Hashable, Mapping[str, str]] = field(default=(None, {}), init=False, repr=False)

    name = kind = SAVED
    plural = "memories"

    def parse(self, record: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the record of a saved memory. Raise RecordError."""
        return Saved.parse(record).record()

    def document_of(self, record: Mapping[str, Any], /) -> Document:
        """Return the document of a saved memory."""
        saved = Saved.parse(record)
        tags: dict[str, Any] = {"tags": saved.tags} if saved.tags else {}
        place = (saved.id, saved.text, saved.source, SAVED, saved.created_at, saved.chat_id)
        return Document(*place, metadata=tags, trust=saved.trust)

    def source(self, collection: str = _MEMORY, /) -> Source:
        """Return the memories that no other one replaces as a source."""
        return VersionedSource(self, collection)

    def current(self, records: Mapping[str, JsonRecord], /) -> Mapping[str, JsonRecord]:
        """Return the records that no other one replaces."""
        gone = replaced(records)
        return {name: record for name, record in records.items() if name not in gone} if gone else records

    def with_earlier(self, ids: Sequence[str], /) -> Sequence[str]:
        """Return ids with those of all earlier versions, which would be current again."""
        return earlier(self.journal.replay().records, ids)

    def texts_of_earlier(self) -> Mapping[str, str]:
        """Return the texts of earlier versions by id. The journal is read only if it has changed."""
        version = self.journal.version
        if version is None or version != self._earlier[0]:
            records = self.journal.replay().records
            gone = replaced(records) & records.keys()
            self._earlier = version, {name: str(records[name]["text"]) for name in gone}
        return self._earlier[1]

    def save(
        self,
        text: str,
        source: str,
        chat_id: str | None,
        created_at: datetime | None,
        *,
        tags: Sequence[str] = (),
        supersedes: str | None = None,
        trust: str = OWNER,
    ) -> Excerpt:
        """Store and index a text of a class; see ``Memory.save``. The id of what it replaces may be a beginning."""
        for tag in tags:
            self.check_name("a tag", tag)
        old = None if supersedes is None else self.replaceable(supersedes, trust)
        known = set(self.journal.ids()) if old is not None else set()
        moment = created_at or datetime.now(
            UTC
        )  # only once, because a second attempt after midnight would have another date
        for attempt in count():
            named: Any = {"tags": tags, "supersedes": None if old is None else old.id, "attempt": attempt}
            saved = Saved.make(text, source, chat_id, moment, trust=trust, **named)
            if saved.id not in known and not self._add(saved):
                break
        return Excerpt(saved.id, text, 1, _count_lines(text), notice=self._index(saved), trust=saved.trust)

    def version(self, name: str, /) -> Saved:
        """Return a memory, also an earlier version, by its path or the beginning of it. Raise NotFoundError."""
        return Saved.parse(find_version(self.journal.replay().records, name))

    def history(self, name: str, /) -> Sequence[Saved]:
        """Return every version of a memory, the oldest first. Raise NotFoundError."""
        records = self.journal.replay().records
        replaces = replacements(records)
        names = set(chain_of(replaces, find_version(records, name)["id"]))
        while more := {new for new, old in replaces.items() if old in names} - names:
            names |= more
        found = [Saved.parse(records[each]) for each in names if each in records]
        return sorted(found, key=lambda saved: (len(chain_of(replaces, saved.id)), saved.created_at, saved.id))

    def replaceable(self, name: str, trust: str = OWNER, /) -> Saved:
        """Return a memory, by its path or the beginning of it, that a writer of a class may replace.

        Raise NotFoundError. Raise RecordError if it was replaced, or if its writer is trusted more.
        """
        records = self.journal.replay().records
        old = Saved.parse(find_version(records, name))
        if not may_replace(old.trust, trust):
            hint = "save the change as a memory of its own; the owner can replace it: klaw save --supersedes"
            raise RecordError(f"{old.id} is by the {old.trust}, whose memories no {trust} replaces", hint=hint)
        for new, replaced_by_it in replacements(records).items():
            if replaced_by_it == old.id:
                shown = f"`klaw history {quote(old.id)}` shows all versions"
                hint = f"replace that one: --supersedes {quote(new)}; {shown}"
                raise RecordError(f"{old.id} is replaced already by {new}", hint=hint)
        return old

    def _add(self, saved: Saved) -> bool:
        """Write a memory; return whether it has the id of another. Raise the errors of :meth:`replaceable`.

        That no other one replaces the same memory is asked under the lock of the journal, because another process may
        have done so since it was asked first.
        """

        def ask() -> None:
            if saved.supersedes:
                self.replaceable(saved.supersedes, saved.trust)

        return bool(self.journal.add([saved.record()], self._may_hold, ask))

    def _may_hold(self, held: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether a new record may have the id of another: it is the same text, and nothing replaces it."""
        return is_same(held, new) and held["id"] not in replaced(self.journal.replay().records)

    def _index(self, saved: Saved) -> str:
        """Index a saved memory; return why it cannot be found by meaning, or at all, for now; usually empty."""
        try:
            reason = "; ".join(self.index([saved.record()]).notices)
            if saved.supersedes and (failure := self.host.remove_documents([saved.supersedes], _MEMORY)) is not None:
                return str(failure)
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
        description = "Save a fact, decision or event for later, in a sentence that is clear by itself."
        properties = {
            "content": string("The text to remember.", _MAX_CONTENT_CHARACTERS),
            "source": string("Its origin: manual (default) or conversation.", _MAX_LABEL_CHARACTERS),
            "tags": strings("Such as work."),
            "supersedes": string("Path that this replaces.", _MAX_LABEL_CHARACTERS),
        }
        aliases = {
            **dict.fromkeys(("text", "memory", "fact", "note", "message", "value"), "content"),
            **dict.fromkeys(("tag", "labels", "categories"), "tags"),
            **dict.fromkeys(("replaces", "updates", "old", "previous"), "supersedes"),
        }
        return (Tool("memory_save", description, properties, self._save, ("content",), aliases=aliases),)

    def _save(self, arguments: Json) -> Json:
        source = arguments.get("source", "manual")
        self._check_label(source)
        tags = [tag for item in arguments.get("tags", ()) for tag in item.split(",") if tag.strip()]
        old = arguments.get("supersedes")
        saved = self.save(arguments["content"], source, None, None, tags=tags, supersedes=old, trust=AGENT)
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
