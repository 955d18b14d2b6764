"""Checks of files that a person owns, shared by the extensions that store them."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from klaw_core.files.atomic import require_own_link
from klaw_core.values.findings import FIX, Finding, Severity, named
from klaw_journals.contents import BadLine, BrokenRecord

_PRIVATE = 0o600


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
