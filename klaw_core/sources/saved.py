"""The journal of saved memories, ``saved.jsonl``: what ``save`` keeps, so that klaw.db can be deleted and rebuilt."""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from klaw_core.errors import RecordError
from klaw_core.files.atomic import locked, open_regular, sync_directory, write_all, writing_failed
from klaw_core.files.jsonl import BadLine, JsonLines
from klaw_core.files.timestamps import as_utc, format_ts, parse_ts

#: A saved text may have a million characters, of which JSON makes up to six bytes each.
MAX_LINE_BYTES = 8 << 20

_FORGET = "forget"
_BLOCK = 1 << 20
_HASH_CHARACTERS = 12  # at the end of an id


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
            if not isinstance(record.get(name), str):
                raise RecordError(f"{name} is not a text" if name in record else f"{name} is missing")
            if not record[name] and name != "source":
                raise RecordError(f"{name} is empty")
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
    which counts from then on, and then puts in the place of the file one without the text and the tombstone.
    """

    path: Path

    def append(self, *saved: Saved) -> None:
        """Keep memories; they are on the disk when this returns. Raise RecordError or StoreError.

        The same id again replaces what was saved, in its place.
        """
        with locked(self.path.parent):
            self._lines.append(*(memory.record() for memory in saved))

    def read(self) -> SavedMemories:
        """Replay the journal; nothing that the file can contain raises."""
        memories: dict[str, Saved] = {}
        bad, unfinished = [], {}
        for line in self._read():
            if isinstance(line, BadLine):
                bad.append(line)
            elif line.saved is None:
                memories.pop(line.id, None)
                unfinished[line.id] = True
            else:
                memories[line.id] = line.saved
        return SavedMemories(tuple(memories.values()), tuple(bad), tuple(unfinished))

    def forget(self, *ids: str) -> int:
        """Forget memories and return how many there were; their texts are then gone from the file's bytes.

        A broken line stays, unless it is one of theirs. Raise StoreError: forgetting may have taken effect
        even so, with the bytes left to :meth:`finish`.
        """
        with locked(self.path.parent):
            if not self.path.exists():
                return 0
            known = {saved.id for saved in self.read().memories}
            self._lines.append(*({_FORGET: name} for name in dict.fromkeys(ids)))
            self._rewrite()
        return len(known & set(ids))

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash; to be called at a start. Raise StoreError."""
        if self.read().unfinished:
            with locked(self.path.parent):
                self._rewrite()

    @property
    def _lines(self) -> JsonLines:
        return JsonLines(self.path, MAX_LINE_BYTES)

    def _read(self) -> Iterator["_Line | BadLine"]:
        for line in self._lines.read():
            if isinstance(line, BadLine):
                yield line
            elif isinstance(name := line.value.get(_FORGET), str):
                yield _Line(line.offset, line.end, name)
            else:
                try:
                    saved = Saved.parse(line.value)
                    yield _Line(line.offset, line.end, saved.id, saved)
                except RecordError as error:
                    yield BadLine(self.path, line.offset, line.end, error.message)

    def _rewrite(self) -> None:
        """Put a file without tombstones, and without what they are for, in the place of this one; hold the lock."""
        path = Path(os.path.realpath(self.path))  # a link stays one
        # One name, under the lock: a crash leaves at most one such file, and the next rewrite begins with it.
        temporary = path.with_name(f".klaw-{path.name}-rewrite")
        try:
            with open_regular(path) as file:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
                descriptor = os.open(temporary, flags, 0o600)
                try:
                    for start, end in self._kept(file.fileno()):
                        _copy(file.fileno(), start, end, descriptor)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            temporary.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise writing_failed(path, error) from error

    def _kept(self, descriptor: int) -> list[tuple[int, int]]:
        """Return the stretches of bytes that stay: all but the tombstones and, before each, what it is for."""
        tombs = {line.id: line.offset for line in self._read() if isinstance(line, _Line) and line.saved is None}
        size = os.fstat(descriptor).st_size
        kept, position = [], 0
        for line in self._read():
            if isinstance(line, _Line):
                goes = line.offset <= tombs.get(line.id, -1)
                end = line.end
            else:
                end = size if line.torn else line.end
                names = [name for name, offset in tombs.items() if line.offset < offset]
                goes = _mentions(descriptor, line.offset, end, names)
            if goes:
                kept.append((position, line.offset))
                position = end
        return [*kept, (position, size)]


@frozen
class _Line:
    """A memory of the journal, or (without ``saved``) a tombstone, and where it stands."""

    offset: int
    end: int
    id: str
    saved: Saved | None = None


def _mentions(descriptor: int, start: int, end: int, names: list[str]) -> bool:
    """Return whether a broken line is of one of these memories: it names the text's hash, in which the id ends."""
    hashes = [name[-_HASH_CHARACTERS:].encode() for name in names if len(name) >= _HASH_CHARACTERS]
    if not hashes or start == end:
        return False
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        return any(data.find(digest, start, end) != -1 for digest in hashes)


def _copy(source: int, start: int, end: int, target: int) -> None:
    while start < end and (block := os.pread(source, min(_BLOCK, end - start), start)):
        write_all(target, block)
        start += len(block)
