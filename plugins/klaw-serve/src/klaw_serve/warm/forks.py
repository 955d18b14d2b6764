"""Run commands in forked processes: each takes on the client's directory, environment and streams."""

from __future__ import annotations

import _thread
import importlib
import io
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from attrs import frozen

from klaw_core.cli.kit import HELPER_COMMANDS, HELPER_GREETING, HELPER_NUMBER_BYTES, installation, run

assert sys.platform != "win32"  # for mypy; the helper imports this

_STREAMS = 3
_MAX_REQUEST_BYTES = 1 << 24
_CLIENT_SECONDS = 1.0
#: What a search imports that asks a server, and what it prints with. Modules that start threads have no place here.
MODULES = """
klaw_core.cli.program klaw_core.cli.search klaw_core.cli.served klaw_core.cli.settings klaw_core.cli.output
klaw_core.cli.results klaw_core.cli.result_forms klaw_core.cli.json_forms klaw_core.cli.conditions
klaw_core.cli.last_search klaw_core.cli.windows klaw_core.cli.snippets klaw_core.cli.notices klaw_core.cli.neutral
klaw_core.cli.streams klaw_core.cli.empty_values klaw_core.config.load klaw_core.config.agents
klaw_core.files.layout klaw_core.files.atomic klaw_core.values.search klaw_core.values.runs klaw_core.errors
klaw_redaction klaw_redaction.forms hashlib json socket tomllib encodings.utf_8_sig
difflib random rich.console rich.control rich.pager rich.screen rich.styled rich.constrain rich.jupyter
"""


@frozen
class Request:
    """What a client asks for."""

    installation: str
    directory: str
    streams: tuple[str, ...]
    words: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...]

    @property
    def is_acceptable(self) -> bool:
        """Whether this process can run it as a new process would."""
        same = self.installation == installation()
        return same and bool(self.words) and self.words[0] in HELPER_COMMANDS and len(self.descriptors) == _STREAMS


def preload() -> None:
    """Import what commands need, so that a forked process imports nothing."""
    for name in MODULES.split():
        importlib.import_module(name)
    sys.modules["rich.cells"].cell_len("é…")  # the table of widths is a module, which the first text imports


def received(connection: socket.socket) -> Request:
    """Greet a client and read its request. Raise OSError, ValueError; descriptors that came with it are closed then."""
    connection.settimeout(_CLIENT_SECONDS)
    connection.sendall(HELPER_GREETING)
    content, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, _STREAMS)
    try:
        length = int.from_bytes(content[:HELPER_NUMBER_BYTES], "big")
        if not len(content) >= HELPER_NUMBER_BYTES or length > _MAX_REQUEST_BYTES:
            raise ValueError("not a request")  # noqa: TRY301  # descriptors are closed below
        while len(content) < HELPER_NUMBER_BYTES + length:
            block = connection.recv(1 << 16)
            if not block:
                raise ValueError("the request ends early")  # noqa: TRY301  # as above
            content += block
        made, directory, *rest = (os.fsdecode(field) for field in content[HELPER_NUMBER_BYTES:].split(b"\0")[:-1])
        streams, (count, *rest) = rest[:_STREAMS], rest[_STREAMS:]
        words, variables = rest[: int(count)], rest[int(count) :]
        environment = dict(variable.split("=", 1) for variable in variables)
        return Request(made, directory, tuple(streams), tuple(words), environment, tuple(descriptors))
    except BaseException:
        close(descriptors)
        raise


def close(descriptors: Any) -> None:
    """Close descriptors that may be closed."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def become(request: Request, connection: socket.socket) -> NoReturn:
    """Run the command in this forked process, once its client has said that it still waits, and end the process.

    The client gets the exit status from this process, because the helper may have ended. If the command cannot begin,
    the client gets none, and runs it itself. If the client ends, so does this process.
    """

    def end(status: int) -> NoReturn:
        with suppress(OSError):
            connection.sendall(status.to_bytes(HELPER_NUMBER_BYTES, "big"))
        os._exit(status)

    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if connection.recv(1) != b"\n":
            os._exit(1)
        connection.settimeout(None)
        _thread.start_new_thread(_end_with, (connection,))
        _take_on(request)
    except BaseException as error:  # noqa: BLE001  # a forked process must not return
        if not isinstance(error, OSError):  # the client has ended, or its directory, which it will say itself
            traceback.print_exception(error)
        os._exit(1)
    try:
        run(in_helper=True, end=end)
    except SystemExit as exit_:
        if not isinstance(exit_.code, int | None):
            sys.stderr.write(f"{exit_.code}\n")
        end(exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None))
    except BaseException:  # noqa: BLE001  # as above; without a status, the client would run the command again
        traceback.print_exc()
    end(1)


def _end_with(connection: socket.socket) -> None:
    """End this process when its client, which sends nothing more, has ended: nobody waits for its output."""
    with suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _take_on(request: Request) -> None:
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    os.chdir(request.directory)
    sys.argv = ["klaw", *request.words]
    for number, (name, said) in enumerate(zip(("stdin", "stdout", "stderr"), request.streams, strict=True)):
        os.dup2(request.descriptors[number], number)
        encoding, errors, lines, through = said.split()
        mode = "w" if number else "r"
        binary: Any = open(number, f"{mode}b", buffering=0 if through == "1" and number else -1, closefd=False)  # noqa: SIM115  # a descriptor
        stream = io.TextIOWrapper(
            binary, encoding, errors, newline="\n", line_buffering=lines == "1", write_through=through == "1"
        )
        stream.mode = mode  # type: ignore[misc]  # as Python sets it
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    close(request.descriptors)
