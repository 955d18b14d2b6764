"""Copies of damaged databases, next to the database: ``klaw.db.broken-1`` (``-2`` …) and its log."""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Sequence
from pathlib import Path

import apsw

from klaw_core import Descriptor, StoreFullError, StoreReadOnlyError
from klaw_store_sqlitevec.connections import NO_SPACE
from klaw_store_sqlitevec.rebuild_lock import SIDE_FILES, others
from klaw_store_sqlitevec.salvage import DatabaseFile

#: Copies that are kept; a further one replaces the oldest.
MAX_COPIES = 2
# The files of a copy, and the kinds as which SQLite opens them.
_COPIED = {"": apsw.SQLITE_OPEN_MAIN_DB, "-wal": apsw.SQLITE_OPEN_WAL}
_BLOCK = 1 << 20


def copies(database: Path) -> Sequence[Path]:
    """Return all files and directories that were set aside for a database, the oldest first."""
    pattern = re.compile(re.escape(database.name) + r"\.broken-([1-9][0-9]*)(-wal|-shm|\.lock)?")
    found = ((pattern.fullmatch(path.name), path) for path in database.parent.iterdir())
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match is not None)]


def remove_copies(database: Path) -> None:
    """Remove the copies, because they may contain what is being forgotten. Directories that were set aside stay."""
    for path in copies(database):
        if not path.is_dir():
            path.unlink(missing_ok=True)


def move_others(database: Path) -> list[str]:
    """Move what is in the place of a file of the database without being a file; return what to tell.

    Raise StoreReadOnlyError.
    """
    notices = []
    number = max(_numbers(database), default=0) + 1
    try:
        for path in others(database):
            path.rename(_copy_path(database, number, path.name.removeprefix(database.name)))
            notices.append(f"{path} was not a file; it is now {database.name}.broken-{number}")
    except OSError as error:
        raise _failure(database, error) from error
    return notices


def set_aside(database: Path) -> Path | None:
    """Copy a damaged database and its log; return the copy, or an equal one, or None if there is no database.

    Raise StoreFullError, StoreReadOnlyError; the database is then unchanged.
    """
    numbers = _numbers(database)
    last = numbers[-1] if numbers else 0
    if not database.is_file():
        return None
    try:
        for suffix, kind in _COPIED.items():
            _copy(Path(f"{database}{suffix}"), _copy_path(database, last + 1, suffix), kind)
    except OSError as error:
        raise _failure(database, error) from error
    if last and all(_are_equal(database, last, last + 1, suffix) for suffix in _COPIED):
        _remove(database, last + 1)
        return _copy_path(database, last)
    for number in numbers[: max(len(numbers) + 1 - MAX_COPIES, 0)]:
        _remove(database, number)
    return _copy_path(database, last + 1)


def _numbers(database: Path) -> list[int]:
    return sorted({int(re.split(r"\.broken-(\d+)", path.name)[-2]) for path in copies(database)})


def _copy_path(database: Path, number: int, suffix: str = "") -> Path:
    return Path(f"{database}.broken-{number}{suffix}")


def _copy(path: Path, target: Path, kind: int) -> None:
    """Copy a file, if it exists.

    A block that the disk cannot read is replaced by zeros.
    """
    if not path.is_file():
        return
    copy = _Copy(target)
    with DatabaseFile(path, apsw.SQLITE_OPEN_READONLY | kind) as source, copy as descriptor:
        size = source.xFileSize()
        with open(descriptor, "wb", closefd=False) as file:  # a descriptor
            file.writelines(_read(source, at, min(_BLOCK, size - at)) for at in range(0, size, _BLOCK))
        os.fsync(descriptor)
        copy.is_complete = True


class _Copy(Descriptor):
    """A new file, which is removed at the end of the block unless it is complete."""

    __slots__ = ("is_complete",)

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self.is_complete = False

    def give_back(self) -> None:
        """Close it."""
        if self._open and not self.is_complete:
            Path(self.path).unlink(missing_ok=True)
        super().give_back()


def _read(source: apsw.VFSFile, start: int, size: int) -> bytes:
    try:
        return bytes(source.xRead(size, start))
    except apsw.IOError:
        return bytes(size)


def _are_equal(database: Path, one: int, other: int, suffix: str) -> bool:
    first, second = _copy_path(database, one, suffix), _copy_path(database, other, suffix)
    if not first.is_file() or not second.is_file():
        return os.path.lexists(first) == os.path.lexists(second)
    return filecmp.cmp(first, second, shallow=False)


def _remove(database: Path, number: int) -> None:
    for suffix in SIDE_FILES:
        path = _copy_path(database, number, suffix)
        if not path.is_dir():
            path.unlink(missing_ok=True)


def _failure(database: Path, error: OSError) -> StoreFullError | StoreReadOnlyError:
    if error.errno in NO_SPACE:
        size = sum(path.stat().st_size for path in (database, Path(f"{database}-wal")) if path.is_file())
        return StoreFullError(
            f"no space left for a copy of the damaged {database} ({size >> 20:,} MiB); it is unchanged",
            hint="free some space, then `klaw reindex`",
        )
    return StoreReadOnlyError(
        f"the damaged {database} cannot be copied: {error.strerror}",
        hint=f"chmod u+rwx {database.parent}, then `klaw reindex`",
    )
