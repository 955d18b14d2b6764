"""Check that only its owner can write the data directory."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from klaw_core import Finding, require_own_link
from klaw_core.files.platform import OTHERS_WRITE
from klaw_core.values.findings import FIX


def check_directory(path: Path) -> Iterator[Finding]:
    """Check that only the owner may write a directory, and that no other user may have created a link in it.

    Anyone else who may write it can replace its files.
    """
    with suppress(OSError):  # an unreadable directory: the checks of its files report it
        for link in sorted(entry for entry in path.iterdir() if entry.is_symlink()):
            yield from _check_link(link)
    if _mode(path) & OTHERS_WRITE:
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
    if _mode(path) & OTHERS_WRITE:
        with suppress(OSError):
            path.chmod(_mode(path) & ~OTHERS_WRITE)


def _mode(path: Path) -> int:
    """Return the permissions; none if it is missing, or was deleted in the meantime."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
