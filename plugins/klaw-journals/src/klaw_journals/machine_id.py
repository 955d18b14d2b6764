"""The random id of a data directory, by which a store of several machines tells them apart.

A host name is not enough: containers often share one, and the path of the data directory with it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from klaw_core import KlawError
from klaw_core.files.atomic import make_private_directory, read_regular
from klaw_journals.rewriting import write_new

_MAX_LENGTH = 64


def read_machine_id(file: Path) -> str:
    """Return the id; empty if there is none yet, or the file cannot be read."""
    try:
        found = read_regular(file).decode("ascii").strip()
    except (OSError, ValueError):
        return ""
    return found if len(found) <= _MAX_LENGTH else ""


def make_machine_id(file: Path) -> str:
    """Return the id; make it if there is none. Empty if the directory cannot be written to."""
    if found := read_machine_id(file):
        return found
    with suppress(KlawError, OSError):  # of several processes the first makes it, and the others read it
        make_private_directory(file.parent)
        write_new(file, f"{os.urandom(16).hex()}\n".encode())
    return read_machine_id(file)
