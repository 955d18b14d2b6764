"""An append-only file of JSON lines: appends are durable when they return, and reading tolerates any content."""

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from attrs import field, frozen

from klaw_core import RecordError
from klaw_core.files.atomic import (
    make_private_directory,
    open_regular,
    require_own_link,
    sync_directory,
    write_all,
    writing_failed,
)
from klaw_core.files.held import FileLock, require_regular
from klaw_core.files.platform import NO_FOLLOW, read_at
from klaw_journals.contents import Appendable, BadLine, LogLine, LogRecord
from klaw_journals.rewriting import keep_ranges, leftover_of, replace_lines
from klaw_journals.timestamps import require_clock

#: The maximum size of a line in bytes, without its end. A longer line is neither written nor loaded.
MAX_LINE_BYTES = 1 << 20
#: The maximum nesting of arrays and objects. The parsers' own limits depend on the depth of the caller's stack.
MAX_DEPTH = 100

_BLOCK = 1 << 16
_CUT = "Input data was truncated"  # msgspec's message for JSON that ends too early
_BOM = b"\xef\xbb\xbf"


def encode(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line, with its end. Raise RecordError if JSON cannot represent it."""
    try:
        text = json.dumps(dict(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode() + b"\n"
    except UnicodeEncodeError as error:
        raise RecordError("a string contains an unpaired surrogate, which is not valid Unicode") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"the record cannot be written as JSON: {error}") from error


def parse_json(data: bytes) -> dict[str, Any]:
    """Parse an object in strict JSON: no NaN, no 1e999, no lone surrogates, UTF-8 with or without a byte order mark.

    Raise RecordError with a reason that does not quote the data.
    """
    import msgspec

    try:
        value: dict[str, Any] = _decoder()(data.removeprefix(_BOM))
    except UnicodeDecodeError as error:
        raise RecordError("not valid UTF-8") from error
    except msgspec.ValidationError as error:
        raise RecordError(f"not a JSON object: {error}") from error
    except msgspec.DecodeError as error:
        raise RecordError(f"not valid JSON: {error}") from error
    except RecursionError as error:
        raise RecordError(f"nested more than {MAX_DEPTH} levels deep") from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise RecordError(f"nested more than {MAX_DEPTH} levels deep")
    return value


@frozen
class JsonLines:
    """The lines of one file, oldest first; implements ``Log``. 0600 in a 0700 directory.

    No directory between ``below`` and the file may be a link that another user may have created. Readers need no lock:
    they see complete lines, and at most a torn last line that is being written.
    """

    path: Path
    max_line_bytes: int = MAX_LINE_BYTES
    below: Path | None = None
    #: Called before records are removed, and with None before the whole file is.
    on_removal: Callable[[Sequence[LogRecord] | None], object] = field(default=lambda _gone: None, eq=False, repr=False)

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether there is a file. Raise OSError."""
        return self.path.exists()

    @property
    def size(self) -> int | None:
        """The size of the file in bytes; None if it cannot be determined."""
        try:
            return self.path.stat().st_size
        except OSError:
            return None

    def append(self, *records: Appendable) -> tuple[LogRecord, ...]:
        """Append records in one write of complete lines; they are on the disk when it returns.

        A torn last line, left by a crash, is ended first, so that it does not damage the new lines. If the disk is
        full, nothing of the records stays. Raise RecordError, and StoreError for a clock that cannot be right, before
        anything is written, StoreFullError or StoreReadOnlyError.
        """
        require_clock()
        try:
            with self._locked() as descriptor:
                size = os.fstat(descriptor).st_size
                closed = size == 0 or read_at(descriptor, 1, size - 1) == b"\n"
                lines = self._lay_out(records, size if closed else size + 1)
                if not lines:
                    return ()
                if size == 0:  # make the name durable first: a process that finds the file not empty relies on it
                    sync_directory(self.path.parent)
                _write_all_or_nothing(descriptor, b"".join([b"" if closed else b"\n", *(line for line, _ in lines)]))
        except OSError as error:
            raise writing_failed(self.path, error) from error
        return tuple(record for _, record in lines)

    def read(self, start: int = 0) -> Iterator[LogLine]:
        """Yield every line from byte ``start`` on: a record, or a description of what is wrong. Skip blank lines.

        ``start`` is 0 or the ``end`` of a line read before. A missing file has no lines. Nothing in a file, and no kind
        of file, raises; a line beyond ``max_line_bytes`` is not loaded.
        """
        offset = start
        try:
            with self._open_to_read() as file:
                for line in self._read_forwards(file, start):
                    offset = line.end
                    yield line
        except FileNotFoundError:
            return
        except OSError as error:
            yield BadLine(self.location, offset, offset, f"cannot be read: {error.strerror}")

    def read_backwards(self) -> Iterator[LogLine]:
        """Yield the lines of :meth:`read` from last to first. Reads no more of the file than necessary."""
        offset = 0
        try:
            with self._open_to_read() as file:
                for offset, end in _spans_backwards(file.fileno()):
                    line = self._line_at(file.fileno(), offset, end)
                    if line is not None:
                        yield line
        except FileNotFoundError:
            return
        except OSError as error:
            yield BadLine(self.location, offset, offset, f"cannot be read: {error.strerror}")

    def remove(self, goes: Callable[[LogRecord], bool]) -> int:
        """Remove records permanently; return their number. All other bytes of the file stay. Raise StoreError."""
        try:
            with self._locked():
                lines = [line for line in self.read() if isinstance(line, LogRecord) and goes(line)]
                if lines:
                    self.on_removal(lines)
                    keep_ranges(self.path, partial(_remaining_ranges, lines))
                else:  # an earlier call may have been killed before it flushed the name of the new file
                    sync_directory(self.path.parent)
        except OSError as error:
            raise writing_failed(self.path, error) from error
        return len(lines)

    def delete(self) -> None:
        """Remove the file if it exists. Raise StoreError.

        It is locked, so that who reads records and the traces of removed ones under the lock misses neither.
        """
        try:
            self._check_directories()
            if self.path.is_file():  # a lock would make a file that is missing
                with self._locked():
                    self.on_removal(None)
                    self._unlink()
            else:
                self._unlink()
        except OSError as error:
            raise writing_failed(self.path, error) from error

    def drop_empty(self) -> None:
        """Remove the file if it is empty. A power cut may bring it back. Raise StoreError."""
        if self.size != 0:
            return
        try:
            with self._locked() as descriptor:
                self._drop_empty(descriptor)
        except OSError as error:
            raise writing_failed(self.path, error) from error

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):  # the directory
            for path in (leftover_of(self.path), self.path):
                path.unlink(missing_ok=True)
            sync_directory(self.path.parent)  # also if it does not exist: an earlier call may have been killed here

    def settle(self, change: Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]], /) -> bool:
        """Replace the records by those that ``change`` returns for them, in their order; return whether any differ.

        Lines that are not records stay, at the beginning. A file that has nothing left is removed. Nothing counts as
        forgotten. Raise RecordError, StoreError.
        """
        try:
            with self._locked() as descriptor:
                lines = list(self.read())
                held = [line.value for line in lines if isinstance(line, LogRecord)]
                wanted = [*change(held)]
                if wanted == held:
                    self._drop_empty(descriptor)
                    return False
                bad = [line for line in lines if isinstance(line, BadLine)]
                if wanted[: len(held)] == held and not any(line.torn for line in bad):
                    if os.fstat(descriptor).st_size == 0:
                        sync_directory(self.path.parent)
                    _write_all_or_nothing(descriptor, b"".join(map(encode, wanted[len(held) :])))
                    return True
                kept = [(line.offset, line.end) for line in bad if line.end > line.offset]
                replace_lines(self.path, kept, map(encode, wanted))
                if not kept and not wanted:
                    self.path.unlink()
                    sync_directory(self.path.parent)
        except OSError as error:
            raise writing_failed(self.path, error) from error
        return True

    def _drop_empty(self, descriptor: int) -> None:
        """Remove the file if it is empty: opening it may have created it."""
        if os.fstat(descriptor).st_size == 0:
            self.path.unlink(missing_ok=True)

    def checksum(self, start: int, end: int, before: int = 0, /) -> int | None:
        """Return the CRC-32 of bytes ``start`` to ``end``, continued from ``before``; None if it cannot be read."""
        try:
            with self._open_to_read() as file:
                file.seek(start)
                while start < end and (block := file.read(min(_BLOCK, end - start))):
                    before, start = crc32(block, before), start + len(block)
        except OSError:
            return None
        return before

    def is_end(self, offset: int, /) -> bool:
        """Return whether a line ends at an offset; also True if the file cannot be read."""
        size = self.size
        if size is None or size == offset:
            return True
        if size < offset:
            return False
        try:
            with self._open_to_read() as file:
                file.seek(offset - 1)
                return offset == 0 or file.read(1) == b"\n"
        except OSError:
            return True

    def count_blank(self, start: int, end: int, /) -> int:
        """Return how many lines end between two offsets. :meth:`read` does not yield blank lines."""
        if start >= end:
            return 0
        with self._open_to_read() as file:
            file.seek(start)
            count = 0
            while start < end and (block := file.read(min(_BLOCK, end - start))):
                count += block.count(b"\n")
                start += len(block)
            return count

    def _locked(self) -> FileLock:
        """Return the file's lock, whose block has the descriptor, opened for appending. Raise OSError."""
        self._check_directories()
        return _CurrentFile(self.path)

    def _open_to_read(self) -> BinaryIO:
        self._check_directories()
        return open_regular(self.path)

    def _check_directories(self) -> None:
        """Raise OSError if one of the directories is a link that another user may have created."""
        if self.below is not None:
            require_own_link(self.path.parent, self.below)

    def _lay_out(self, records: tuple[Appendable, ...], offset: int) -> list[tuple[bytes, LogRecord]]:
        """Return each record's line and place, the first at ``offset``. Raise RecordError."""
        lines = []
        for record in records:
            line = encode(record(offset) if callable(record) else record)
            if (length := len(line) - 1) > self.max_line_bytes:
                raise RecordError(
                    f"the record has {length:,} bytes; a line of {self.path.name} may have {self.max_line_bytes:,}",
                    hint="store the text in a file, and its path in the record",
                )
            lines.append((line, LogRecord(offset, offset + len(line), parse_json(line))))
            offset += len(line)
        return lines

    def _read_forwards(self, file: BinaryIO, start: int) -> Iterator[LogLine]:
        if start > 0:
            file.seek(start - 1)
            if file.read(1) != b"\n":
                yield BadLine(self.location, start, start, "no line begins here: the file was truncated or replaced")
                return
        offset = start
        while data := file.readline(self.max_line_bytes + 1):
            end = offset + len(data)
            ended = data.endswith(b"\n")
            if not ended and len(data) > self.max_line_bytes:
                rest, ended = _skip_line(file)
                end += rest
                line: LogLine | None = self._too_long(offset, end) if ended else self._torn(offset, end)
            else:
                line = self._parse(offset, end, data) if ended else self._torn(offset, end)
            if line is not None:
                yield line
            offset = end

    def _line_at(self, descriptor: int, offset: int, end: int) -> LogLine | None:
        if end - offset > self.max_line_bytes + 1:
            ended = read_at(descriptor, 1, end - 1) == b"\n"
            return self._too_long(offset, end) if ended else self._torn(offset, end)
        data = read_at(descriptor, end - offset, offset)
        return self._parse(offset, end, data) if data.endswith(b"\n") else self._torn(offset, end)

    def _parse(self, offset: int, end: int, data: bytes) -> LogLine | None:
        if not data.strip():
            return None
        try:
            return LogRecord(offset, end, parse_json(data.removesuffix(b"\n")))
        except RecordError as error:
            return BadLine(self.location, offset, end, error.message, cut=str(error.__cause__) == _CUT)

    def _too_long(self, offset: int, end: int) -> BadLine:
        reason = f"the line has {end - offset - 1:,} bytes; the limit is {self.max_line_bytes:,}"
        return BadLine(self.location, offset, end, reason)

    def _torn(self, offset: int, end: int) -> BadLine:
        reason = f"the last line is incomplete: {end - offset:,} bytes without a line end"
        return BadLine(self.location, offset, offset, reason, torn=True)


class _CurrentFile(FileLock):
    """The locked file that has this path, even if it is replaced while the lock is waited for."""

    __slots__ = ()

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_FOLLOW)

    def take(self) -> int:
        while True:
            descriptor = self._open_own()
            require_regular(descriptor)
            self.lock(descriptor)
            if _is_current_file(descriptor, Path(self.path)):
                return descriptor
            self.give_back()

    def _open_own(self) -> int:
        """Open the file, also through a link of this user. Raise OSError."""
        try:
            try:
                return self.open()
            except FileNotFoundError:
                make_private_directory(Path(self.path).parent)
                return self.open()
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EMLINK}:
                raise
            require_own_link(Path(self.path))
            return self.open(follow=True)


def _remaining_ranges(lines: Sequence[LogRecord], descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges before, between and after these lines."""
    position = 0
    for line in lines:
        yield position, line.offset
        position = line.end
    yield position, os.fstat(descriptor).st_size


def _write_all_or_nothing(descriptor: int, data: bytes) -> None:
    """Append bytes to the open file, durably. If that fails, as on a full disk, the file keeps its size."""
    size = os.fstat(descriptor).st_size
    try:
        write_all(descriptor, data)
        _flush(descriptor)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def _flush(descriptor: int) -> None:
    """Make a file's bytes durable, but not its times, if the system (not macOS) distinguishes them."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


@cache
def _decoder() -> Callable[[bytes], dict[str, Any]]:
    import msgspec  # imported at first use, because `klaw --help` does not need it

    return msgspec.json.Decoder(dict[str, Any]).decode


def _is_deep(value: dict[str, Any]) -> bool:
    """Return whether containers are nested more than MAX_DEPTH levels deep, without recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        children = chain.from_iterable(item.values() if isinstance(item, dict) else item for item in level)
        level = [child for child in children if isinstance(child, dict | list)]
    return bool(level)


def _skip_line(file: BinaryIO) -> tuple[int, bool]:
    """Read to the end of a line, block by block; return the number of bytes, and whether there was an end."""
    skipped = 0
    while block := file.readline(_BLOCK):
        skipped += len(block)
        if block.endswith(b"\n"):
            return skipped, True
    return skipped, False


def _spans_backwards(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end (after its newline) of each line, from last to first."""
    position = end = os.fstat(descriptor).st_size
    while position:
        start = max(0, position - _BLOCK)
        block = read_at(descriptor, position - start, start)
        newline = len(block)
        while (newline := block.rfind(b"\n", 0, newline)) != -1:
            begin = start + newline + 1
            if begin < end:
                yield begin, end
            end = begin
        position = start
    if end:
        yield 0, end


def _is_current_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
