"""The process of a warm helper: it forks a process for each command, next to a server that has the memory open.

The helper has one thread and only imports, so that it can fork at any time. Its child, the server, has the memory open
and the model loaded, and answers on ``serve.sock`` as ``klaw serve`` does; it ends with the helper.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import lru_cache

from attrs import define, field

from klaw_core import Config, ConfigError, KlawError, StoreError
from klaw_core.cli.kit import HELPER_NUMBER_BYTES, Settings
from klaw_serve.running import local_socket
from klaw_serve.warm import forks
from klaw_serve.warm.options import WarmOptions
from klaw_serve.warm.state import HelperFiles, HelperState

assert sys.platform != "win32"  # for mypy; the command refuses to import this there

#: Seconds between two looks at whether the data directory and the server are still there.
_LOOK_SECONDS = 2.0
_BACKLOG = 64
_READY = b"\n"
_MAX_REASON_BYTES = 4096


def options_of(config: Config) -> WarmOptions:
    """Return the options of ``[extensions.warm]``. Raise ConfigError if it is off, or an option is invalid."""
    selection = config.extensions.get("warm")
    try:
        options = WarmOptions(**(selection.options if selection else {}))
    except (TypeError, ValueError) as error:
        raise ConfigError([f"extensions.warm: {error}"], hint="klaw config get extensions.warm") from error
    if not options.enabled:
        raise ConfigError(["the warm helper is off"], hint="klaw config set extensions.warm.enabled true")
    return options


def run_helper(settings: Settings, on_ready: Callable[[], None]) -> None:
    """Run a helper until it is idle, told to end, or no longer fits. ``on_ready`` is called once it answers.

    Raise ConfigError if it is off, StoreLockedError if one runs, StoreError if the directory can have no socket.
    """
    config = settings.load_config()
    options = options_of(config)
    files = HelperFiles(config.data_dir)
    if not files.data_dir.is_dir():
        raise StoreError(f"{files.data_dir} does not exist", hint="klaw init")
    seconds = options.idle_minutes * 60.0
    files.end_a_dead_one()
    with files.lock() as lock:
        before = files.read()
        files.forget()  # the process of a helper that was killed may be another one now
        if before:
            files.end_server(before)
        try:
            _run(settings, config, files, seconds, on_ready, lock=lock)
        except Exception as error:
            files.write(HelperState(0, time.time(), seconds, config.fingerprint, failed=_reason(error)))
            raise


def _reason(error: BaseException) -> str:
    """Return what ``klaw status`` shows: nobody reads the error stream of a helper in the background."""
    return str(error) if isinstance(error, KlawError) else f"defect in Klaw: {type(error).__name__}: {error}"


def _run(
    settings: Settings,
    config: Config,
    files: HelperFiles,
    idle_seconds: float,
    on_ready: Callable[[], None],
    *,
    lock: int,
) -> None:
    told = Told()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    with ExitStack() as stack:
        server = Server.start(settings, lock)
        stack.callback(server.end)
        forks.preload()
        server.wait_until_ready()
        listener = stack.enter_context(local_socket(files.data_dir, files.socket.name))
        if listener is None:
            raise StoreError(f"{files.data_dir} cannot have a Unix socket", hint="use `klaw serve` instead")
        listener.listen(_BACKLOG)
        helper = Helper(files, server, listener, idle_seconds, told, lock)
        helper.watched = helper.stamps(config)
        files.write(HelperState(os.getpid(), time.time(), idle_seconds, config.fingerprint, server.pid))
        stack.callback(files.forget)
        gc.collect()
        gc.freeze()  # what a child does not touch stays shared
        on_ready()
        helper.run()


class Told:
    """A handler of signals: whether one has told this process to end."""

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self, *_: object) -> None:
        """Remember the signal."""
        self.is_set = True


@define(eq=False)
class Server:
    """The child that has the memory open: its process, and two pipes.

    The end of ``life`` ends it. Through ``said``, it says that it is ready, and why it fails.
    """

    pid: int
    life: int
    said: int

    @classmethod
    def start(cls, settings: Settings, lock: int) -> Server:
        """Fork the server. It does not keep the lock of the helper, which may be killed."""
        (ended, life), (said, tell) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                forks.close((life, said, lock))
                _serve(settings, ended, tell)
                status = 0
            except BaseException as error:  # noqa: BLE001  # a forked process must not return
                if not isinstance(error, KlawError):
                    traceback.print_exception(error)
                os.write(tell, _reason(error).encode("utf-8", "replace")[:_MAX_REASON_BYTES])
            finally:
                os._exit(status)
        forks.close((ended, tell))
        return cls(pid, life, said)

    def wait_until_ready(self) -> None:
        """Wait until the server answers. Raise StoreError with its reason if it ends instead."""
        if (said := os.read(self.said, _MAX_REASON_BYTES)) != _READY:
            raise StoreError(said.decode("utf-8", "replace") or "the server of the warm helper ended as it started")

    def check(self) -> None:
        """Raise StoreError if the server, which has ended, has said why."""
        if said := os.read(self.said, _MAX_REASON_BYTES):
            raise StoreError(f"the server of the warm helper ended: {said.decode('utf-8', 'replace')}")

    def runs(self) -> bool:
        """Return whether the server still runs."""
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def end(self) -> None:
        """End the server, and wait for its end."""
        forks.close((self.life, self.said))
        with suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _serve(settings: Settings, ended: int, tell: int) -> None:
    """Serve until the helper ends, in whatever way: then its end of the pipe is closed."""

    def follow() -> None:
        os.read(ended, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    from klaw_serve.run import serve_locally

    memory = settings.open_memory()
    threading.Thread(target=follow, daemon=True).start()
    serve_locally(memory, lambda: [os.write(tell, _READY)])  # type: ignore[arg-type]  # nothing is expected


@define(eq=False)
class Helper:
    """The loop of a helper."""

    files: HelperFiles
    server: Server
    listener: socket.socket
    idle_seconds: float
    told: Told
    lock: int
    watched: Mapping[str, object] = field(factory=dict)
    _forked: set[int] = field(factory=set, init=False)

    def run(self) -> None:
        """Fork a process for each client until it is idle, told to end, or no longer fits."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        deadline = time.monotonic() + self.idle_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while not self.told.is_set:
                found = selector.select(min(_LOOK_SECONDS, max(0.0, deadline - time.monotonic())))
                with suppress(BlockingIOError):
                    os.read(woken, 4096)
                self._reap()
                if self._forked:
                    deadline = time.monotonic() + self.idle_seconds
                elif time.monotonic() >= deadline:
                    return
                if not self._fits():
                    return
                if any(key.fileobj is self.listener for key, _ in found):
                    self._accept()
                    deadline = time.monotonic() + self.idle_seconds

    def stamps(self, config: Config) -> dict[str, object]:
        """Return the stamps of what must not change: modules, paths of imports, configuration files, data directory."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        own = {name for name in modules if name and f"{os.sep}klaw_" in name}
        files = {str(path) for path in (*config.files, config.data_dir / "config.toml")}
        paths = sys.path[1:]  # the first is the directory of the program, or the current one
        return self._look((*paths, *own, *files))

    def _look(self, paths: Iterable[str]) -> dict[str, object]:
        kept = (self.files.data_dir, self.files.socket)  # their times change, but not what they are
        return {
            **{path: _stamp(path) for path in paths},
            **{str(path): _stamp(str(path), timed=False) for path in kept},
        }

    def _fits(self) -> bool:
        """Return whether a new process would do what a forked one does, and the server still answers.

        Raise StoreError if the server has failed.
        """
        if not self.server.runs():
            self.server.check()
            return False
        return self._look(self.watched) == self.watched

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        try:
            request = forks.received(connection)
        except (OSError, ValueError):
            connection.close()
            return
        if not request.is_acceptable:
            forks.close(request.descriptors)
            connection.close()
            return
        try:
            pid = os.fork()
        except OSError:  # there are too many processes; the client runs the command
            forks.close(request.descriptors)
            connection.close()
            return
        if pid == 0:
            signal.set_wakeup_fd(-1)
            self.listener.close()
            forks.close((self.server.life, self.lock))  # it may outlive the helper
            forks.become(request, connection)
        forks.close(request.descriptors)
        self.files.touch()
        self._forked.add(pid)
        with suppress(OSError), connection:
            connection.sendall(pid.to_bytes(HELPER_NUMBER_BYTES, "big"))

    def _reap(self) -> None:
        """Let the system forget the processes that have ended."""
        self._forked -= {pid for pid in self._forked if os.waitpid(pid, os.WNOHANG)[0]}


def _stamp(path: str, *, timed: bool = True) -> tuple[int, ...] | None:
    """Return what changes if a file is replaced or, with ``timed``, written; None if there is no such file.

    A directory with ``timed`` changes if it gets, loses or replaces an entry that may be imported.
    """
    try:
        status = os.stat(path or os.curdir)  # noqa: PTH116  # an entry of sys.path, not always a path
        written = status.st_mtime_ns if timed else 0
        if timed and stat.S_ISDIR(status.st_mode):
            written = _entries(path or os.curdir, written)
    except OSError:
        return None
    return status.st_dev, status.st_ino, written


@lru_cache(maxsize=512)  # a listing for each time of writing
def _entries(path: str, _written: int) -> int:
    """Return a number for the entries of a directory, without caches of tools (``.mypy_cache``)."""
    with os.scandir(path) as entries:
        return hash(frozenset((entry.name, entry.inode()) for entry in entries if not entry.name.startswith(".")))
