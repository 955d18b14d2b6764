"""Let a helper that has everything imported run a command, instead of importing everything in this process.

A helper is a process of the same user and the same installation that listens on the Unix socket ``warm.sock`` in the
data directory. Once it has greeted, this module sends it the command line, the environment, the current directory and
the three standard streams. The helper forks a process that runs the command with them, so output, errors and exit
status are those of a process of its own. If there is no such helper, or it does not answer, the caller runs the command
itself. Only commands that change nothing are sent, because such a command may then run twice.

It imports only what Python has imported anyway, and ``_socket`` if there is a helper, because the import of ``socket``
takes half as long as the interpreter's start.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in klaw_core
if TYPE_CHECKING:
    import _socket
    from collections.abc import Sequence
    from typing import Any

#: The name of the helper's socket in the data directory.
HELPER_SOCKET = "warm.sock"
#: The commands that a helper runs.
HELPER_COMMANDS = frozenset({"search"})
#: What a helper sends to a client before it gets the client's streams.
HELPER_GREETING = b"\n"
#: The bytes of a request's length, and of the numbers in an answer.
HELPER_NUMBER_BYTES = 8
# A helper that is stopped accepts connections, but does not answer.
_ANSWER_SECONDS = 1.0
# The address of a Unix socket is limited to 104 to 108 bytes. Linux can open a longer path relative to its directory.
_MAX_ADDRESS_BYTES = 100
_OTHERS = 0o077


def run_in_helper(words: Sequence[str], seconds: float = _ANSWER_SECONDS) -> int | None:
    """Run a command in the helper and return its exit status; None if it must run here.

    The helper has so many ``seconds`` to begin.
    """
    if not words or words[0] not in HELPER_COMMANDS or "--debug" in words:
        return None
    if sys.platform == "win32":  # there Python has no Unix sockets
        return None
    directory = data_directory(words)
    try:
        status = os.stat(os.path.join(directory, HELPER_SOCKET), follow_symlinks=False)  # noqa: PTH116, PTH118  # pathlib's import takes longer than all of this
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            return None
        request = request_of(words)
        import _socket

        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            connect(connection, directory, HELPER_SOCKET)
            # Streams in the queue of a process that hangs would stay open, and who reads them would wait.
            if connection.recv(1) != HELPER_GREETING:
                return None
            streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
            sent = connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
            connection.sendall(request[sent:])  # a large environment does not fit into one message
            return _wait(connection)
        finally:
            connection.close()
    except (OSError, ValueError, AttributeError):  # AttributeError: a closed stream is None
        return None


def connect(connection: _socket.socket, directory: str, name: str) -> None:
    """Connect to a Unix socket in a directory, however long its path is. Raise OSError."""
    path = os.path.join(directory, name)  # noqa: PTH118  # as above
    if len(os.fsencode(path)) <= _MAX_ADDRESS_BYTES or sys.platform != "linux":
        connection.connect(path)
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        connection.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)


def _wait(connection: _socket.socket) -> int | None:
    """Let the process that the helper has forked run, and return its exit status; None if it ended without one."""
    process = _number(connection)
    if process is None:
        return None
    connection.sendall(b"\n")  # without it the process ends: a helper that was stopped must not print later
    connection.settimeout(None)
    while True:
        try:
            return _number(connection)
        except KeyboardInterrupt:  # the process is in no group of this terminal
            import contextlib
            import signal

            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(process, signal.SIGINT)


def _number(connection: _socket.socket) -> int | None:
    content = b""
    while len(content) < HELPER_NUMBER_BYTES:
        block = connection.recv(HELPER_NUMBER_BYTES - len(content))
        if not block:
            return None
        content += block
    return int.from_bytes(content, "big")


def request_of(words: Sequence[str]) -> bytes:
    """Return what a helper must know: its length, and strings that end with a zero byte."""
    streams: tuple[Any, ...] = (sys.stdin, sys.stdout, sys.stderr)
    fields = [
        installation(),
        os.getcwd(),  # noqa: PTH109  # as above
        *(f"{each.encoding} {each.errors} {each.line_buffering:d} {each.write_through:d}" for each in streams),
        str(len(words)),
        *words,
        *(f"{name}={value}" for name, value in os.environ.items()),
    ]
    body = b"".join(os.fsencode(field) + b"\0" for field in fields)
    return len(body).to_bytes(HELPER_NUMBER_BYTES, "big") + body


def installation() -> str:
    """Return a string that is equal in processes that import the same modules in the same way."""
    flags = (sys.flags.optimize, sys.flags.isolated, sys.flags.utf8_mode, sys.flags.dev_mode)
    found = (sys.version, sys.prefix, __file__, sys.path[1:], flags, sys.warnoptions, sys.getfilesystemencoding())
    return repr(found)


def data_directory(words: Sequence[str]) -> str:
    """Return the data directory that a command probably uses: the configuration is not read, so it may be another.

    Then the helper's process finds that out, and opens that memory itself.
    """
    for number, word in enumerate(words):
        if word.startswith("--data-dir="):
            return word.partition("=")[2]
        if word == "--data-dir":
            return "".join(words[number + 1 : number + 2])
    home = os.environ.get("HOME", "")
    usual = f"{home}/Library/Application Support" if sys.platform == "darwin" else f"{home}/.local/share"
    base = os.environ.get("XDG_DATA_HOME") or usual
    return os.environ.get("KLAW_DATA_DIR") or f"{base}/klaw"
