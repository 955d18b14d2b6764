"""Write journals: a new file, a part of a file, or bytes in place, each durable when the call returns."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from klaw_core import Descriptor, require_own_link, sync_directory
from klaw_core.files.atomic import open_regular, write_all, writing_failed
from klaw_core.files.held import TEMPORARY, Temporary, require_regular
from klaw_core.files.platform import NO_FOLLOW, read_at

# The end of the name of a replacement that `keep_ranges` writes.
_REWRITE = "rewrite"
_BLOCK = 1 << 20


def keep_ranges(path: Path, ranges: Callable[[int], Iterable[tuple[int, int]]]) -> None:
    """Replace a file by some ranges of its bytes; durable when it returns. Raise StoreError.

    ``ranges`` gets the open file and returns the ranges to keep, (start, end) in order. The caller holds the lock that
    excludes other writers. A link stays a link: its target is replaced.
    """
    try:
        require_own_link(path)
    except OSError as error:
        raise writing_failed(path, error) from error
    path = Path(os.path.realpath(path))
    temporary = Temporary(path, fixed=_REWRITE)
    try:
        with open_regular(path) as file, temporary as descriptor:
            for start, end in ranges(file.fileno()):
                _copy(file.fileno(), start, end, descriptor)
            temporary.replace()
        sync_directory(path.parent)
    except OSError as error:
        raise writing_failed(path, error) from error


def replace_lines(path: Path, kept: Iterable[tuple[int, int]], lines: Iterable[bytes]) -> None:
    """Replace a file by some ranges of its bytes and then ``lines``; otherwise as :func:`keep_ranges`."""
    try:
        require_own_link(path)
        path = Path(os.path.realpath(path))
        temporary = Temporary(path, fixed=_REWRITE)
        with open_regular(path) as file, temporary as descriptor:
            for start, end in kept:
                _copy(file.fileno(), start, end, descriptor)
            for line in lines:
                write_all(descriptor, line)
            temporary.replace()
        sync_directory(path.parent)
    except OSError as error:
        raise writing_failed(path, error) from error


def leftover_of(path: Path) -> Path:
    """Return where a crash leaves a replacement of this file that :func:`keep_ranges` was writing."""
    path = Path(os.path.realpath(path))
    return path.with_name(f"{TEMPORARY}{path.name}-{_REWRITE}")


def overwrite(path: Path, parts: Iterable[tuple[int, bytes]], *, flush: bool = True) -> None:
    """Overwrite bytes of a file in place; durable when it returns, with ``flush``. Raise StoreError.

    A crash may leave any part of it written. The caller holds the lock that excludes other writers.
    """
    try:
        require_own_link(path)
        with Descriptor(os.path.realpath(path), os.O_WRONLY | NO_FOLLOW) as descriptor:
            require_regular(descriptor)
            for start, data in parts:
                os.lseek(descriptor, start, os.SEEK_SET)
                write_all(descriptor, data)
            if flush:
                getattr(os, "fdatasync", os.fsync)(descriptor)
    except OSError as error:
        raise writing_failed(path, error) from error


def _copy(source: int, start: int, end: int, target: int) -> None:
    while start < end and (block := read_at(source, min(_BLOCK, end - start), start)):
        write_all(target, block)
        start += len(block)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically, also where there are no hard links; durable when it returns. Raise OSError."""
    temporary = Temporary(path)
    with temporary as descriptor:
        write_all(descriptor, data)
        temporary.replace()
    sync_directory(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Create a file atomically; durable when it returns. Raise OSError, FileExistsError if it exists."""
    temporary = Temporary(path)
    with temporary as descriptor:
        write_all(descriptor, data)
        temporary.add()
    sync_directory(path.parent)
