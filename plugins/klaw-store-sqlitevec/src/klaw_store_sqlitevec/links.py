"""The file that the path of a database means."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path

from klaw_core import StoreError


def resolved(path: Path) -> Path:
    """Return the path with links resolved, because SQLite keeps the log next to the file itself.

    Raise StoreError for a link that leads nowhere.
    """
    remove = f"remove the link: rm {shlex.quote(str(path))}"
    try:
        path.stat()
    except FileNotFoundError:
        target = Path(os.path.realpath(path))
        if path.is_symlink() and not target.parent.is_dir():
            raise StoreError(
                f"{path} is a link to {target}, and there is no directory {target.parent}",
                hint=f"create or mount it, or {remove}",
            ) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{path} is a link that leads to itself", hint=f"{remove}, then `klaw index`") from error
    return path.resolve()
