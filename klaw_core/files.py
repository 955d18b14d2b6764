"""Files written so that a crash leaves the old one or the new one, private to their owner."""

import os
import tempfile
from pathlib import Path

from klaw_core.errors import StoreReadOnlyError

_TEMPORARY = ".klaw-"


def make_private_directory(path: Path) -> None:
    """Create a directory and its parents for the owner only. Raise StoreReadOnlyError with what to do."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{path} cannot be created: {error.strerror}", hint="choose another place: --data-dir or KLAW_DATA_DIR"
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's content; durable when it returns. Raise StoreReadOnlyError if that is impossible.

    A temporary file beside it, fsync, rename, fsync of the directory; left-overs of earlier crashes are swept.
    """
    make_private_directory(path.parent)
    try:
        for leftover in path.parent.glob(f"{_TEMPORARY}{path.name}-*"):
            leftover.unlink(missing_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f"{_TEMPORARY}{path.name}-", dir=path.parent)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  # a descriptor, not a path
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{path} cannot be written: {error.strerror}", hint="check the directory's permissions"
        ) from error


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
