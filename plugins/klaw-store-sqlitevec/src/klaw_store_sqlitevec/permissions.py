"""Which permission is missing if the database cannot be opened, and the command that gives it."""

import errno
import os
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path

from klaw_core import Descriptor
from klaw_store_sqlitevec.rebuild_lock import SIDE_FILES

_FILES = 4
_RAISE_LIMIT = "close files or connections, or raise the limit of open files (ulimit -n)"
_OTHER_PLACE = "choose another directory: --data-dir or KLAW_DATA_DIR"


def how_to_permit(database: Path) -> str:
    """Return what to do if a database, a file next to it or its directory cannot be read or written."""
    if not _can_open_a_file():  # SQLite does not say so
        return _RAISE_LIMIT
    files = [(Path(f"{database}{suffix}"), "u+rw", os.R_OK | os.W_OK) for suffix in SIDE_FILES]
    for path, mode, needed in ((database.parent, "u+rwx", os.R_OK | os.W_OK | os.X_OK), *files):
        if os.access(path, needed) or not os.access(path, os.F_OK):
            continue
        if sys.platform == "win32":
            break
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return f"its file system is read-only: {_OTHER_PLACE}"
        if path.stat().st_uid != os.geteuid():
            return f"sudo chown {os.geteuid()} {shlex.quote(str(path))}"
        return f"chmod {mode} {shlex.quote(str(path))}"
    return f"check its permissions, or {_OTHER_PLACE}"


def _can_open_a_file() -> bool:
    """Return whether the process may open as many files as SQLite needs at once: the database, its log and a lock."""
    try:
        with ExitStack() as opened:
            for _ in range(_FILES):
                opened.enter_context(Descriptor(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
