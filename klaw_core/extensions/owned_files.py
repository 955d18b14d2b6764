"""Checks of files that a person owns, shared by the extensions that store them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from klaw_core.errors import KlawError
from klaw_core.files.atomic import require_own_link
from klaw_core.values.findings import FIX, Finding, Severity, named
from klaw_core.values.journals import BadLine, BrokenRecord

_PRIVATE = 0o600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_private(paths: Iterable[Path]) -> Iterator[Finding]:
    """Check that only the owner may read and write these files; missing files are accepted."""
    for path in paths:
        if _mode(path) & ~_PRIVATE:
            what = f"other users can access it (mode {_mode(path):03o})"
            yield Finding("permissions", "error", what, str(path), FIX)


def make_private(paths: Iterable[Path]) -> None:
    """Restrict these files to their owner, as far as possible."""
    for path in paths:
        if _mode(path) & ~_PRIVATE:
            with suppress(OSError):  # a file or link of another user, or a read-only disk
                require_own_link(path)
                path.chmod(_PRIVATE)


def check_directory(path: Path) -> Iterator[Finding]:
    """Check that only the owner may write a directory, and that no other user may have created a link in it.

    Anyone else who may write it can replace its files.
    """
    with suppress(OSError):  # an unreadable directory: the checks of its files report it
        for link in sorted(entry for entry in path.iterdir() if entry.is_symlink()):
            yield from _check_link(link)
    if _mode(path) & _OTHERS_WRITE:
        what = f"other users can create files there (mode {_mode(path):03o})"
        yield Finding("permissions", "error", what, str(path), FIX)


def _check_link(link: Path) -> Iterator[Finding]:
    try:
        require_own_link(link)
    except OSError as error:
        hint = "check where it leads, and remove it"
        yield Finding("planted-link", "error", str(error.strerror), str(link), hint)


def make_directory_private(path: Path) -> None:
    """Remove the write permission of everybody but the owner from a directory, as far as possible."""
    if _mode(path) & _OTHERS_WRITE:
        with suppress(OSError):
            path.chmod(_mode(path) & ~_OTHERS_WRITE)


def check_readable(check: str, location: str, read: Callable[[], object]) -> Iterator[Finding]:
    """Check that a person's data can be read."""
    try:
        read()
    except KlawError as error:
        yield Finding(check, "error", error.message, location, error.hint)


def check_lines(check: str, location: str, bad: Iterable[BadLine | BrokenRecord]) -> Iterator[Finding]:
    """Report invalid lines. A line that a crash truncated was never acknowledged; nothing else is lost."""
    lines = tuple(bad)
    places = tuple(f"byte {_position(line):,}: {line.reason}" for line in lines)
    if not lines:
        return
    severity: Severity = "warning" if all(_is_torn(line) for line in lines) else "error"
    what = f"{len(lines):,} {'line is' if len(lines) == 1 else 'lines are'} broken: {named(places)}"
    yield Finding(check, severity, what, location, "fix the file by hand; its other lines are still used", places)


def _position(line: BadLine | BrokenRecord) -> int:
    return line.offset if isinstance(line, BadLine) else line.position


def _is_torn(line: BadLine | BrokenRecord) -> bool:
    return line.torn or (isinstance(line, BadLine) and line.cut)


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:  # missing, or deleted in the meantime
        return _PRIVATE
