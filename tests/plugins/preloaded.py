"""Start the Python processes of tests from one that has imported everything, instead of each from nothing.

A process of Klaw imports for half a second and more, and hundreds of tests start some. In place of ``subprocess.Popen``
this module puts a class that has ``fork_server.py`` start what is this Python with ``-m klaw_core``, a text or a file.
Everything else, and everything out of the ordinary (options of Python, an environment that Python reads as it starts, a
function to be called before), starts as before. So does everything

- in tests marked ``cold_start``: those about what is imported, and about what fails during an import;
- in a text that looks at ``sys.modules``, and where files may get in the way of imports;
- with ``--cold-starts``, on systems other than Linux, and where a server cannot be started.

The processes are children of the one that asks, as without this.
"""

from __future__ import annotations

import array
import ctypes
import inspect
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("fork_server.py")
#: Python and its libraries read these as they start, but for the two that say where compiled modules are.
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_", "MKL_")
_READ_LATER = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"})
#: What the server has in its own environment: it may have no threads.
_OF_THE_SERVER = {"OPENBLAS_NUM_THREADS": "1"}
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_NAMES = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]
_ORDINARY = {
    "preexec_fn": None,
    "close_fds": True,
    "pass_fds": (),
    "shell": False,
    "restore_signals": True,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
    "process_group": -1,
}
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    read = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    return {
        name: value for name, value in read.items() if name not in _READ_LATER and _OF_THE_SERVER.get(name) != value
    }


def _is_program(words: list[str], directory: Path) -> bool:
    """Return whether the words are a program that is not about modules, run where no file is one."""
    if words[:1] == ["-c"] or words[:2] == ["-m", "klaw_core"]:
        alone = directory == ROOT or not any(directory.glob("*.py"))
        return alone and len(words) > 1 and "sys.modules" not in words[1]
    return bool(words) and words[0].endswith(".py") and Path(directory, words[0]).is_file()


def _umask() -> int:
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("\nUmask:")[2].split(maxsplit=1)[0], 8)


class Server:
    """The server of this process, started at the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = dict(os.environ)
        self.cold = sys.platform != "linux"

    def start(self, call: Mapping[str, Any]) -> int:
        """Start a process as ``Popen._execute_child`` is asked to; return its number, or 0 if it is not ordinary."""
        words = [] if isinstance(call["args"], str | bytes | os.PathLike) else [*map(os.fsdecode, call["args"])]
        program = os.fsdecode(call["executable"] or sys.executable)
        directory = Path(os.fsdecode(call["cwd"] or os.curdir)).resolve()
        environment = {**(os.environ if call["env"] is None else call["env"])}
        if (
            self.cold
            or words[:1] != [sys.executable]
            or program != sys.executable
            or any(call[name] != usual for name, usual in _ORDINARY.items())
            or _read_at_start(environment) != _read_at_start(self._environment)
            or not directory.is_dir()
            or not _is_program(words[1:], directory)
        ):
            return 0
        streams = [call["p2cread"], call["c2pwrite"], call["errwrite"]]
        request = (words[1:], environment, str(directory), _umask(), _limits(), call["start_new_session"])
        with self._lock:
            return self._ask(request, [number if given == -1 else given for number, given in enumerate(streams)])

    def stop(self) -> None:
        """End the server, if this process has started it."""
        if self._channel is not None and self._process is not None and self._owner == os.getpid():
            self._channel.close()
            self._process.wait()
            self._channel = None

    def _ask(self, request: tuple[Any, ...], streams: list[int]) -> int:
        channel = self._connected()
        asked = os.memfd_create("request")
        prctl = ctypes.CDLL(None).prctl
        try:
            os.write(asked, pickle.dumps(request))
            os.lseek(asked, 0, os.SEEK_SET)
            # Only while the process in between ends: what else loses its parent goes where it always goes.
            if prctl(_ADOPT_ORPHANS, 1, 0, 0, 0):
                return 0
            descriptors = array.array("i", [asked, *streams])
            channel.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            if answer := channel.recv(20):
                return int(answer)
        except OSError:
            pass
        finally:
            prctl(_ADOPT_ORPHANS, 0, 0, 0, 0)
            os.close(asked)
        self.stop()  # it is gone; the next request starts another
        return 0

    def _connected(self) -> socket.socket:
        if self._channel is None or self._owner != os.getpid():
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._owner = os.getpid()
            number = theirs.fileno()
            command = [sys.executable, str(SERVER), str(number)]
            environment = {**self._environment, **_OF_THE_SERVER}
            with theirs:
                self._process = _Popen(
                    command, stdin=DEVNULL, stdout=DEVNULL, env=environment, cwd=ROOT, pass_fds=[number]
                )
        return self._channel


def _limits() -> dict[int, tuple[int, int]]:
    import resource  # not on Windows

    return {kind: resource.getrlimit(kind) for name, kind in vars(resource).items() if name.startswith("RLIMIT_")}


SERVING = Server()
_Popen = subprocess.Popen


class Popen(_Popen):  # type: ignore[type-arg]  # the arguments are those of the instance
    """A process that the server starts, if it is an ordinary one."""

    def _execute_child(self, *arguments: Any) -> None:
        call = dict(zip(_NAMES, arguments, strict=True))
        number = SERVING.start(call)
        if not number:
            super()._execute_child(*arguments)
            return
        self.pid = number
        self._child_created = True
        self._close_pipe_fds(*(call[name] for name in _PIPES))


subprocess.Popen = Popen  # type: ignore[misc]  # this is the point


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cold-starts", action="store_true", help="start every process from nothing, as a user's does")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cold_start: its processes start from nothing, as a user's do")


def pytest_runtest_setup(item: pytest.Item) -> None:
    cold = item.config.option.cold_starts or item.get_closest_marker("cold_start")
    SERVING.cold = sys.platform != "linux" or bool(cold)


def pytest_unconfigure() -> None:
    SERVING.stop()
