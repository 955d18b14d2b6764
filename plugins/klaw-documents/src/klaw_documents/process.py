"""Parse files in a separate process, which is killed if it hangs, and whose crash does not affect this process.

It starts at the first file, parses one file after another, and exits after some idle time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import IO, Any

from attrs import define, field

from klaw_core import Conversion, ConversionError, ThreadLock, shielded
from klaw_redaction.environment import child_environment

_FILES = 200  # files per process; then it is replaced, because libraries may leak memory
_BLOCK = 1 << 16
_MAX_BYTES = 256 * 2**20  # the maximum size of an answer


class _CrashedError(Exception):
    """The process ended without an answer."""


@define(eq=False)
class ParserProcess:
    """Parses files in another process, one at a time. Safe to use from several threads and after a fork."""

    timeout_seconds: float
    memory_mb: int
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _owner: int = field(default=0, init=False)
    _served: int = field(default=0, init=False)
    _is_answering: bool = field(default=False, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the parser of documents"), init=False)

    def parse(self, parser: str, data: bytes, name: str) -> Conversion:
        """Return the result of a parser for a file. Raise ConversionError."""
        request = json.dumps({"parser": parser, "name": name, "size": len(data), "seconds": self.timeout_seconds})
        with self._lock.hold():
            answer = self._ask(request.encode() + b"\n" + data)
        if "error" in answer:
            raise ConversionError(answer["error"], keep=answer["keep"])
        moment = answer["created_at"]
        metadata = {
            key: tuple(value) if isinstance(value, list) else value for key, value in answer["metadata"].items()
        }
        created_at = None if moment is None else datetime.fromisoformat(moment)
        return Conversion(answer["text"], answer["format"], metadata, created_at)

    def close(self) -> None:
        """End the process; the next file starts a new one."""
        with self._lock.hold():
            self._end(0)

    def _ask(self, request: bytes) -> dict[str, Any]:
        if self._is_answering:  # an exception has ended the last exchange, and what comes next is its answer
            self._end(0)
        try:
            fresh = self._served == 0
            self._is_answering = True
            answer = self._exchange(request)
            self._is_answering = False
        except _CrashedError:
            # An idle process may just have exited.
            status = self._end()
            if not fresh:
                return self._ask(request)
            # Another process may have killed it, so the file is tried again in a later index run.
            raise ConversionError(f"cannot be read: its parser crashed ({_exit_reason(status)})", keep=True) from None
        except TimeoutError:
            self._end(0)
            raise ConversionError(f"takes longer than {self.timeout_seconds:g} seconds to read", keep=True) from None
        except BaseException:
            self._end(0)
            raise
        self._served += 1
        if self._served >= _FILES or answer.get("ended"):
            self._end()
        return answer

    def _exchange(self, request: bytes) -> dict[str, Any]:
        """Send a request and receive its answer. Raise _CrashedError, TimeoutError."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        if sys.platform == "win32":
            return _exchange_blocking(process.stdin, process.stdout, request, self.timeout_seconds, process.kill)
        deadline = time.monotonic() + self.timeout_seconds
        unsent, received = memoryview(request), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            selector.register(process.stdin, selectors.EVENT_WRITE)
            while not (received.endswith(b"\n")):
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise TimeoutError
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        unsent = unsent[_write(process.stdin.fileno(), unsent) :]
                        if not unsent:
                            selector.unregister(process.stdin)
                    else:
                        block = os.read(process.stdout.fileno(), _BLOCK)
                        received += block
                        if not block or len(received) > _MAX_BYTES:
                            raise _CrashedError
        answer: dict[str, Any] = json.loads(received)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        self._end(0)
        # Not the current directory, which may contain a malicious module with the name of a library.
        environment = child_environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path)), PYTHONSAFEPATH="1")
        command = [sys.executable, "-P", "-m", "klaw_documents.worker", str(self.memory_mb)]
        self._owner, self._served = os.getpid(), 0

        def start() -> None:
            self._process = subprocess.Popen(  # noqa: S603  # this Python, and a module of ours
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment,
            )

        shielded(start)  # otherwise Ctrl-C could lose the process and its pipes
        assert self._process is not None
        assert self._process.stdin is not None
        if sys.platform != "win32":
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def _end(self, wait_seconds: float = 0.2) -> int:
        """Kill the process; return its exit status."""
        process, self._served, self._is_answering = self._process, 0, False
        if process is None:
            return 0
        if self._owner != os.getpid():  # it belongs to the parent of the fork
            process.returncode = 0
            self._process = None
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_seconds)  # a crashed process is about to end, and its exit status is the reason
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        status = process.wait()
        self._process = None  # last: an exception before it leaves the rest to the next call
        return status


@cache
def process_of(timeout_seconds: float, memory_mb: int) -> ParserProcess:
    """Return the process with these limits. All converters in this process share it."""
    process = ParserProcess(timeout_seconds, memory_mb)
    atexit.register(process.close)
    return process


def _exchange_blocking(
    requests: IO[bytes], answers: IO[bytes], request: bytes, seconds: float, kill: Callable[[], None]
) -> dict[str, Any]:
    """Send a request and receive its answer where pipes cannot be waited for: a thread kills the process in time.

    Raise _CrashedError, TimeoutError.
    """
    deadline = threading.Timer(seconds, kill)
    deadline.start()
    try:
        requests.write(request)
        requests.flush()
        received = answers.readline(_MAX_BYTES)
    except OSError:
        received = b""
    is_late = not deadline.is_alive()
    deadline.cancel()
    if is_late:
        raise TimeoutError
    if not received.endswith(b"\n"):
        raise _CrashedError
    answer: dict[str, Any] = json.loads(received)
    return answer


def _write(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data[:_BLOCK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        raise _CrashedError from None


def _exit_reason(status: int) -> str:
    """Return a description of an exit status."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
