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
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

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
    with files.lock() as lock:
        files.forget()  # the process of a helper that was killed may be another one now
        try:
            _run(settings, config, files, seconds, on_ready, lock=lock)
        except KlawError as error:
            files.write(HelperState(0, time.time(), seconds, config.fingerprint, failed=str(error)))
            raise


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
        server = Server.start(settings)
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
    """The child that has the memory open: its process, a pipe whose end ends it, and one that says that it is ready."""

    pid: int
    life: int
    ready: int

    @classmethod
    def start(cls, settings: Settings) -> Server:
        """Fork the server."""
        (ended, life), (ready, tell) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                forks.close((life, ready))
                _serve(settings, ended, tell)
            except KlawError as error:
                os.write(tell, str(error).encode("utf-8", "replace")[:4000])
            finally:
                os._exit(0)
        forks.close((ended, tell))
        return cls(pid, life, ready)

    def wait_until_ready(self) -> None:
        """Wait until the server answers. Raise StoreError with its reason if it ends instead."""
        said = os.read(self.ready, 4096)
        os.close(self.ready)
        if said != b"\n":
            raise StoreError(said.decode("utf-8", "replace") or "the server of the warm helper ended as it started")

    def runs(self) -> bool:
        """Return whether the server still runs."""
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def end(self) -> None:
        """End the server, and wait for its end."""
        forks.close((self.life,))
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
    serve_locally(memory, lambda: [os.write(tell, b"\n")])  # type: ignore[arg-type]  # nothing is expected


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
        """Return the identity of what must not change: modules, paths of imports, configuration files, database."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        own = {name for name in modules if name and f"{os.sep}klaw_" in name}
        files = {str(path) for path in (*config.files, *self._places(config))}
        times = {
            path: _changed(path) for path in (*sys.path[1:], *own, *files)
        }  # the first is the directory of the program, or the current one
        return {**times, "": (_identity(self.files.data_dir), _identity(self.files.socket))}

    @staticmethod
    def _places(config: Config) -> Iterable[Path]:
        return (config.data_dir / "config.toml",)

    def _fits(self) -> bool:
        """Return whether a new process would do what a forked one does, and the server still answers."""
        times = {path: _changed(path) for path in self.watched if path}
        now = {**times, "": (_identity(self.files.data_dir), _identity(self.files.socket))}
        return now == self.watched and self.server.runs()

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
        pid = os.fork()
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


def _changed(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path or os.curdir)  # noqa: PTH116  # an entry of sys.path, not always a path
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
