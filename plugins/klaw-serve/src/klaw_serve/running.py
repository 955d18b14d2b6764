"""Allow one server for a data directory, and let other programs on this machine find it."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from klaw_core import (
    Descriptor,
    FileLock,
    StoreLockedError,
    StoreReadOnlyError,
    read_regular,
    require_own_link,
    write_atomically,
)

LOCK = "serve.lock"
SOCKET = "serve.sock"
#: Where the command line looks for a server of its data directory.
RENDEZVOUS = "server.json"
_PRIVATE_UMASK = 0o177


@contextmanager
def only_server(data_dir: Path) -> Iterator[None]:
    """Lock a data directory for one server until the block ends. Raise StoreLockedError if another server runs."""

    def refuse() -> None:
        found = read_rendezvous(data_dir)
        who = f" at {found['url']} (process {found['pid']})" if found else ""
        raise StoreLockedError(f"a server for {data_dir} is running{who}", hint="stop it first")

    try:
        require_own_link(data_dir / LOCK)
        lock = FileLock(data_dir / LOCK, os.O_RDWR | os.O_CREAT, on_wait=refuse)
        lock.__enter__()
    except OSError as error:
        raise StoreReadOnlyError(f"{data_dir / LOCK} cannot be locked: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            if _is_held_here(data_dir):
                (data_dir / RENDEZVOUS).unlink()
        lock.end()


def _is_held_here(data_dir: Path) -> bool:
    found = read_rendezvous(data_dir)
    return found is not None and found.get("pid") == os.getpid()


def read_rendezvous(data_dir: Path) -> dict[str, Any] | None:
    """Return the content of ``server.json``; None if there is no valid file."""
    try:
        found = json.loads(read_regular(data_dir / RENDEZVOUS))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"url", "pid"} <= found.keys() else None


def announce(data_dir: Path, **what: Any) -> None:
    """Write ``server.json``, which contains the address of the server for the user's other programs."""
    write_atomically(data_dir / RENDEZVOUS, json.dumps({"pid": os.getpid(), **what}))


@contextmanager
def local_socket(data_dir: Path, name: str = SOCKET) -> Iterator[socket.socket | None]:
    """Listen on a Unix socket in the data directory that only its owner can use; None if that is not possible.

    The path of a Unix socket is limited to about 100 bytes, so on Linux it is opened through the open directory.
    """
    if sys.platform == "win32":  # there Python has no such sockets
        yield None
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = data_dir / name
    before = os.umask(_PRIVATE_UMASK)
    try:
        path.unlink(missing_ok=True)
        with Descriptor(data_dir, os.O_RDONLY) as directory:
            through = Path(f"/proc/self/fd/{directory}")
            listener.bind(str((through if through.is_dir() else data_dir) / name))
    except OSError:
        listener.close()
        yield None
        return
    finally:
        os.umask(before)
    try:
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)
