"""One server for a data directory, and how others on this machine find it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from klaw_core import StoreLockedError, StoreReadOnlyError, require_own_link, write_atomically

LOCK = "serve.lock"
SOCKET = "serve.sock"
#: Where the command line looks for a server of its data directory.
RENDEZVOUS = "server.json"
_PRIVATE = 0o177


@contextmanager
def only_server(data_dir: Path) -> Iterator[None]:
    """Be the one server of a data directory until the end of the block. Raise StoreLockedError if there is one."""
    try:
        require_own_link(data_dir / LOCK)
        descriptor = os.open(data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreReadOnlyError(f"{data_dir / LOCK} cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            found = read_rendezvous(data_dir)
            who = f" at {found['url']} (process {found['pid']})" if found else ""
            raise StoreLockedError(f"a server for {data_dir} is running{who}", hint="stop it first") from error
        except OSError as error:
            raise StoreReadOnlyError(f"{data_dir} cannot be locked: {error.strerror}") from error
        yield
    finally:
        with suppress(FileNotFoundError):
            if _is_held_here(data_dir):
                (data_dir / RENDEZVOUS).unlink()
        os.close(descriptor)


def _is_held_here(data_dir: Path) -> bool:
    found = read_rendezvous(data_dir)
    return found is not None and found.get("pid") == os.getpid()


def read_rendezvous(data_dir: Path) -> dict[str, Any] | None:
    """Return what the server of a data directory left for others, None if there is nothing sound."""
    try:
        found = json.loads((data_dir / RENDEZVOUS).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"url", "pid"} <= found.keys() else None


def announce(data_dir: Path, **what: Any) -> None:
    """Tell others on this machine, of the same user, where the server is."""
    write_atomically(data_dir / RENDEZVOUS, json.dumps({"pid": os.getpid(), **what}))


@contextmanager
def local_socket(data_dir: Path) -> Iterator[socket.socket | None]:
    """Listen on a socket in the data directory, which only its owner can use; None where that is not possible.

    The path of such a socket has at most some hundred bytes, so it is named through the open directory on Linux.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = data_dir / SOCKET
    before = os.umask(_PRIVATE)
    try:
        path.unlink(missing_ok=True)
        directory = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            through = Path(f"/proc/self/fd/{directory}")
            listener.bind(str((through if through.is_dir() else data_dir) / SOCKET))
        finally:
            os.close(directory)
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
