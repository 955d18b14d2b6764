"""The journal of saved memories, ``saved.jsonl``: what ``save`` keeps, so that klaw.db can be deleted and rebuilt."""

import json
import mmap
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from klaw_core.conversations.message import as_utc, format_ts, parse_ts
from klaw_core.files import locked, open_regular, sync_directory, write_all, writing_failed
from klaw_core.jsonl import BadLine, JsonLines, Record, RecordError

#: A saved text may have a million characters, of which JSON makes up to six bytes each.
MAX_LINE_BYTES = 8 << 20

_FORGET = "forget"
_BLOCK = 1 << 20
_SHORTEST_HASH = 12


@frozen
class Saved:
    """A text that was saved. ``id`` is its path, ``saved/2026-02-24/`` and the beginning of the text's SHA-256."""

    id: str
    text: str = field(repr=False)
    source: str
    created_at: datetime = field(converter=as_utc)
    chat_id: str | None = None

    @classmethod
    def parse(cls, record: dict[str, Any]) -> Self:
        """Return what a line of the journal holds. Raise RecordError with the reason if it holds nothing saved."""
        for name in ("id", "text", "source"):
            if not isinstance(record.get(name), str) or not record[name]:
                raise RecordError(f"{name} is not a text" if name in record else f"{name} is missing")
        chat_id = record.get("chat_id")
        if not (chat_id is None or isinstance(chat_id, str)):
            raise RecordError("chat_id is not a text")
        return cls(record["id"], record["text"], record["source"], parse_ts(record.get("created_at")), chat_id)

    def record(self) -> dict[str, Any]:
        """Return the object that the journal writes: the id first, so that a torn line betrays what it was of."""
        return {
            "id": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "chat_id": self.chat_id,
            "text": self.text,
        }


@frozen
class SavedMemories:
    """What the journal holds: the memories that were not forgotten, in the order in which they were first saved.

    ``unfinished`` names what was forgotten while its bytes are still in the file, because a crash came between:
    :meth:`SavedJournal.finish` removes them.
    """

    memories: tuple[Saved, ...] = ()
    bad: tuple[BadLine, ...] = ()
    unfinished: tuple[str, ...] = ()


@frozen
class SavedJournal:
    """The file ``saved.jsonl``. Safe for several threads and processes at once.

    It is appended to, and rewritten only to forget. Forgetting first appends a tombstone (``{"forget": id}``),
    which counts from then on, and then puts a file without the text, and without the tombstone, in the place of this one.
    """

    path: Path

    def append(self, saved: Saved) -> None:
        """Keep a memory; it is on the disk when this returns. Raise RecordError or StoreError.

        The same id again replaces what was saved, in its place.
        """
        with locked(self.path.parent):
            self._lines.append(saved.record())

    def read(self) -> SavedMemories:
        """Replay the journal; nothing that the file can contain raises."""
        memories: dict[str, Saved] = {}
        unfinished: dict[str, None] = {}
        bad = []
        for line, content in self._contents():
            if isinstance(content, Saved):
                memories[content.id] = content
            elif isinstance(content, str):
                memories.pop(content, None)
                unfinished[content] = None
            else:
                bad.append(BadLine(self.path, line.offset, line.end, content.reason, content.torn))
        return SavedMemories(tuple(memories.values()), tuple(bad), tuple(unfinished))

    def forget(self, *ids: str) -> int:
        """Forget memories, and return how many there were; their texts are then gone from the file's bytes.

        A broken line stays, unless it is of a memory that is forgotten. Raise StoreError; forgetting may have
        taken effect even so, with the bytes still there for :meth:`finish`.
        """
        with locked(self.path.parent):
            known = {saved.id for saved in self.read().memories}
            self._lines.append(*({_FORGET: name} for name in dict.fromkeys(ids) if name in known))
            self._rewrite(set(ids))
        return len(known & set(ids))

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash; call it at a start. Raise StoreError."""
        if self.read().unfinished:
            with locked(self.path.parent):
                self._rewrite(set())

    @property
    def _lines(self) -> JsonLines:
        return JsonLines(self.path, MAX_LINE_BYTES)

    def _contents(self) -> Iterator[tuple[Record | BadLine, Saved | str | BadLine]]:
        """Yield each line with what it holds: a memory, the id on a tombstone, or what is wrong."""
        for line in self._lines.read():
            if isinstance(line, BadLine):
                yield line, line
            elif isinstance(name := line.value.get(_FORGET), str):
                yield line, name
            else:
                try:
                    yield line, Saved.parse(line.value)
                except RecordError as error:
                    yield line, BadLine(self.path, line.offset, line.end, error.message)
