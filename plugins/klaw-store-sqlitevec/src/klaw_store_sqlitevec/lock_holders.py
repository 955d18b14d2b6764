"""Who holds SQLite's lock of a database."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_OTHER = "another process"
# SQLite locks these bytes of the shared memory of its log (the one of writers), and of the file (reserved, pending).
_WRITE_BYTES = {"-shm": range(120, 121), "": range(0x40000000, 0x40000002)}


def writer_of(path: Path) -> str:
    """Return which process writes to a database, as far as the system says it (Linux): ``process 4711 (klaw)``."""
    if sys.platform != "linux":
        return _OTHER
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        number = next(_holders(path, lines), None)
        if number is None:
            return _OTHER
        if number == os.getpid():
            return "this process"
        name = Path(f"/proc/{number}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return _OTHER
    return f"process {number} ({name})"


def _holders(path: Path, lines: list[list[str]]) -> Iterator[int]:
    """Yield the processes with the lock of a writer. A line has a number, the kind, how, ``WRITE``, process, place."""
    if sys.platform == "win32":  # there is no list of locks
        return
    for suffix, locked in _WRITE_BYTES.items():
        try:
            status = path.with_name(path.name + suffix).stat()
        except OSError:
            continue
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        for line in lines:
            if len(line) < 8 or line[1] != "POSIX" or line[3] != "WRITE" or line[5] != place:  # noqa: PLR2004
                continue
            first, last = int(line[6]), sys.maxsize if line[7] == "EOF" else int(line[7])
            if first < locked.stop and last >= locked.start:
                yield int(line[4])
