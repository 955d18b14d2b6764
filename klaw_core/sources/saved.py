"""Saved memories: texts that ``save`` keeps in the journal ``saved``, so that klaw.db can be deleted and rebuilt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self

from attrs import define, field, frozen

from klaw_core.errors import RecordError
from klaw_core.files.record_journal import FileJournal
from klaw_core.files.timestamps import as_utc, format_ts, parse_ts
from klaw_core.interfaces.journal import RecordJournal
from klaw_core.values.documents import Document, Entry
from klaw_core.values.journals import BrokenRecord
from klaw_core.values.runs import SkippedEntry
from klaw_core.values.text import text_hash

#: The origin of saved memories, the beginning of their paths, and the name of their journal.
SAVED = "saved"

_MAX_CHARACTERS = 1_000_000
_DIGEST_CHARACTERS = 32  # 128 bits; 48 until two texts had one id
_ID = re.compile(rf"{SAVED}/(\d{{4}}-\d\d-\d\d)/[0-9a-f]{{12,64}}", re.ASCII)


@frozen
class Saved:
    """A text that was saved. ``id`` is its path: ``saved/2026-02-24/`` and hexadecimal digits of a hash."""

    id: str
    text: str = field(repr=False)
    source: str
    created_at: datetime = field(converter=as_utc)
    chat_id: str | None = None

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return what a record of the journal holds. Raise RecordError with the reason if it holds nothing saved."""
        for name in ("id", "text", "source"):
            if not isinstance(record.get(name), str):
                raise RecordError(f"{name} is not a string" if name in record else f"{name} is missing")
            if not record[name] and name != "source":
                raise RecordError(f"{name} is empty")
        if not _is_id(record["id"]):
            raise RecordError(f"{record['id']!r:.80} is not the id of a saved memory")
        chat_id = record.get("chat_id")
        if not (chat_id is None or isinstance(chat_id, str)):
            raise RecordError("chat_id is not a string")
        return cls(record["id"], record["text"], record["source"], parse_ts(record.get("created_at")), chat_id)

    @classmethod
    def make(
        cls, text: str, source: str, chat_id: str | None, created_at: datetime | None, *, attempt: int = 0
    ) -> Self:
        """Return a text as a saved memory, dated now unless given. Raise RecordError if it cannot be saved.

        Each ``attempt`` gives it another id, for where another text has the one before.
        """
        if not text.strip():
            raise RecordError("nothing to save: the text is empty")
        if not source.strip():
            raise RecordError("a saved memory needs a source", hint='the default is "manual"')
        try:
            "".join((text, source, chat_id or "")).encode()
        except UnicodeEncodeError as error:
            raise RecordError("the text cannot be saved: it is not valid Unicode (an unpaired surrogate)") from error
        if len(text) > _MAX_CHARACTERS:
            raise RecordError(
                f"the text has {len(text):,} characters; the limit is {_MAX_CHARACTERS:,}",
                hint="put it in a file and `klaw index` its directory",
            )
        moment = as_utc(created_at or datetime.now(UTC)).replace(microsecond=0)
        identity = (source, chat_id or "", text, *([str(attempt)] if attempt else []))
        digest = text_hash("\0".join(identity))[:_DIGEST_CHARACTERS]
        return cls(f"{SAVED}/{moment.date().isoformat()}/{digest}", text, source, moment, chat_id)

    def record(self) -> dict[str, Any]:
        """Return the object that the journal keeps: the id first, so that a torn line shows what it was of."""
        return {
            "id": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "chat_id": self.chat_id,
            "text": self.text,
        }


@frozen
class SavedMemories:
    """What the journal holds: the memories that were not forgotten, in the order in which they were first saved."""

    memories: tuple[Saved, ...] = ()
    broken: tuple[BrokenRecord, ...] = ()
    unfinished: tuple[str, ...] = ()


@frozen
class SavedJournal:
    """The journal of saved memories. Safe for several threads and processes at once."""

    records: RecordJournal

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the journal in a file."""
        return cls(FileJournal(path, Saved.parse))

    def append(self, *saved: Saved) -> None:
        """Keep memories; they are durable when this returns. Raise RecordError or StoreError.

        The same id again replaces what was saved, in its place.
        """
        self.records.append([memory.record() for memory in saved])

    def add(self, *saved: Saved) -> frozenset[str]:
        """Keep memories, but for those whose id another text has; return these ids. Raise RecordError or StoreError."""
        return self.records.add([memory.record() for memory in saved], _is_same)

    def read(self) -> SavedMemories:
        """Replay the journal; nothing that it can contain raises."""
        found = self.records.replay()
        memories = tuple(Saved.parse(record) for record in found.records.values())
        return SavedMemories(memories, found.broken, found.unfinished)

    def forget(self, *ids: str) -> int:
        """Forget memories and return how many there were; their texts are then gone from the journal's bytes.

        Raise StoreError: forgetting may have taken effect even so, with the bytes left to :meth:`finish`.
        """
        return self.records.forget(ids)

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash. Raise StoreError."""
        self.records.finish()


@define(eq=False)
class SavedSource:
    """The memories of a journal as documents. ``read`` answers from what the last scan found."""

    journal: SavedJournal
    _found: dict[str, Saved] = field(factory=dict, init=False, repr=False)

    origin = SAVED
    forgets_missing = True

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every memory in the order in which it was saved, and each part of the journal that is broken."""
        replayed = self.journal.read()
        memories = {saved.id: saved for saved in replayed.memories}
        self._found.clear()
        self._found.update(memories)
        entries = [Entry(saved.id, len(saved.text)) for saved in memories.values()]
        # A broken line does not say which memory it was, and the index may hold the last copy: all of them stay.
        broken = (SkippedEntry(SAVED, str(bad), keep=True) for bad in replayed.broken)
        return [*entries, *broken]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return one memory as a document."""
        saved = self._found.get(entry.path)
        return as_document(saved) if saved else SkippedEntry(entry.path, "was forgotten", keep=False)

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget memories; their texts leave the journal's bytes. Raise StoreError."""
        self.journal.forget(*paths)

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return the memories that the journal does not have any more; none while a part of it is broken."""
        replayed = self.journal.read()
        if replayed.broken:
            return ()
        kept = {saved.id for saved in replayed.memories}
        return [path for path in paths if path not in kept]

    def prepare(self, _store: object, /) -> Sequence[SkippedEntry]:
        """Complete what a crash left of forgetting."""
        self.journal.finish()
        return ()


def _is_id(name: str) -> bool:
    """Return whether this is the id of a saved memory: it becomes a path, and must be no other document's."""
    found = _ID.fullmatch(name)
    try:
        return found is not None and bool(date.fromisoformat(found[1]))
    except ValueError:
        return False


def _is_same(held: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether two records are of one text that was saved twice."""
    return all(held.get(name) == new.get(name) for name in ("text", "source", "chat_id"))


def as_document(saved: Saved) -> Document:
    """Return a saved memory as the document that is indexed."""
    return Document(saved.id, saved.text, saved.source, SAVED, saved.created_at, saved.chat_id)
