"""The converter ``command``: a program of the user turns files into text, such as OCR of pictures and scans."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from queue import Empty, SimpleQueue
from shutil import which
from typing import IO

from attrs import frozen

from klaw_core import Conversion, ConversionError
from klaw_documents.converters import LimitedConverter
from klaw_documents.options import CommandOptions
from klaw_redaction.environment import child_environment

_MAX_BYTES = 64 * 2**20  # of an answer
_MAX_REASON = 4096  # bytes of what it says on standard error, of which the first line is shown
_MAX_SHOWN = 200  # characters of that line
_BLOCK = 1 << 16
_POLL_SECONDS = 0.05
_FILE = "{file}"
# Returns blocks from streams within some seconds.
_Reader = Callable[[Sequence[IO[bytes]], float], list[tuple[IO[bytes], bytes]]]


@frozen
class CommandConverter(LimitedConverter):
    """Runs a command for each file; what it prints is the text, as Markdown."""

    options: CommandOptions

    @property
    def patterns(self) -> Sequence[str]:
        """The patterns of file names; none without a command."""
        return self.options.patterns if self.options.command else ()

    @property
    def version(self) -> str:
        """A version of the command and its arguments."""
        return sha256("\0".join((*self.options.command, self.options.version)).encode()).hexdigest()[:16]

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Return what the command prints. Raise ConversionError."""
        program = self.options.command[0]
        found = which(program)
        if found is None:
            raise ConversionError(f"cannot be read: {program} is not installed", keep=True)
        suffix = PurePosixPath(name).suffix
        with tempfile.TemporaryDirectory(prefix="klaw-") as directory:
            file = Path(directory) / f"file{suffix if suffix[1:].isalnum() else ''}"
            file.write_bytes(data)
            # The command runs in the directory of the copy, where ./ocr.sh is not.
            text = self._run(str(Path(found).absolute()), file).decode("utf-8", "replace").replace("\r\n", "\n")
        text = text.replace("\f", "\n").strip()
        if not text:
            raise ConversionError("has no text")
        return Conversion(f"{text}\n".replace("\0", ""))

    def _run(self, program: str, file: Path) -> bytes:
        """Return what the command prints about a file: its argument ``{file}``, or its input. Raise ConversionError."""
        name, *words = self.options.command
        arguments = [word.replace(_FILE, str(file)) for word in words]
        kept = {key: os.environ[key] for key in self.options.environment if key in os.environ}
        with file.open("rb") as given:
            try:
                process = subprocess.Popen(  # noqa: S603  # a command of the owner's configuration
                    [program, *arguments],
                    bufsize=0,
                    stdin=subprocess.DEVNULL if arguments != words else given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=file.parent,
                    env=child_environment(**kept),
                    start_new_session=True,
                )
            except OSError as error:
                raise ConversionError(f"cannot be read: {name}: {error.strerror}", keep=True) from None
        try:
            status, printed, said = _answer_of(process, time.monotonic() + self.options.timeout_seconds)
        except TimeoutError:
            seconds = f"{self.options.timeout_seconds:g}"
            raise ConversionError(f"takes {name} longer than {seconds} seconds to read", keep=True) from None
        finally:
            _end(process)
        if status:
            reason = _first_line(said.replace(os.fsencode(file), os.fsencode(file.name)))
            ended = f"{name} ended with the exit status {status}{': ' if reason else ''}{reason}"
            raise ConversionError(f"cannot be read: {ended}", keep=True)
        return printed


def _answer_of(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, bytes, bytes]:
    """Return the exit status of a process, what it has printed, and the beginning of what it has said of errors.

    Raise TimeoutError at the deadline, even if a process that it has left behind keeps its output open, and
    ConversionError if it prints too much.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    streams = [process.stdout, process.stderr]
    read = _reader_of(streams)
    printed, said = bytearray(), bytearray()
    while (is_printing := process.stdout in streams) or (streams and process.poll() is None):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        for stream, block in read(streams, left if is_printing else min(left, _POLL_SECONDS)):
            if not block:
                streams.remove(stream)
            elif stream is process.stderr:
                said += block[: _MAX_REASON - len(said)]
            else:
                printed += block
        if len(printed) > _MAX_BYTES:
            raise ConversionError(f"has more than {_MAX_BYTES:,} bytes of text")
    try:
        status = process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return status, bytes(printed), bytes(said)


def by_selector(_streams: Sequence[IO[bytes]]) -> _Reader:
    """Return what reads from those streams that have something within some seconds: blocks, empty at the end."""

    def read(streams: Sequence[IO[bytes]], seconds: float) -> list[tuple[IO[bytes], bytes]]:
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                selector.register(stream, selectors.EVENT_READ, stream)
            return [(key.data, os.read(key.fd, _BLOCK)) for key, _ in selector.select(seconds)]

    return read


def by_threads(streams: Sequence[IO[bytes]]) -> _Reader:
    """Return the same where pipes cannot be waited for: a thread reads each, and closes it at its end."""
    blocks: SimpleQueue[tuple[IO[bytes], bytes]] = SimpleQueue()

    def pump(stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):  # it was closed
            while block := stream.read(_BLOCK):
                blocks.put((stream, block))
        blocks.put((stream, b""))
        stream.close()

    def read(_streams: Sequence[IO[bytes]], seconds: float) -> list[tuple[IO[bytes], bytes]]:
        try:
            return [blocks.get(timeout=seconds)]
        except Empty:
            return []

    for stream in streams:
        start_new_thread(pump, (stream,))
    return read


_reader_of = by_threads if sys.platform == "win32" else by_selector


def _first_line(said: bytes) -> str:
    """Return the first line that is not empty, without control characters."""
    lines = said.decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip()), "")
    return " ".join("".join(mark if mark.isprintable() else " " for mark in first).split())[:_MAX_SHOWN]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it has started in its session, unless it has ended; close what it printed to."""
    if process.returncode is None:  # nobody has waited for it: its number is still its own
        _kill(process)
    for stream in (process.stdout, process.stderr):
        if stream is not None and sys.platform != "win32":  # there the threads close them
            stream.close()
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
