"""The converter ``command``: a program of the user turns files into text, such as OCR of pictures and scans."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from shutil import which

from attrs import frozen

from klaw_core import Conversion, ConversionError, Converter, child_environment
from klaw_documents.options import CommandOptions

_MAX_BYTES = 64 * 2**20  # of an answer
_FILE = "{file}"


@frozen
class CommandConverter(Converter):
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

    @property
    def on_request(self) -> bool:
        """Whether such files are only read if ``include`` matches them."""
        return self.options.on_request

    @property
    def max_bytes(self) -> int:
        """The maximum size of a file."""
        return self.options.max_bytes

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Return what the command prints. Raise ConversionError."""
        program = self.options.command[0]
        if which(program) is None:
            raise ConversionError(f"cannot be read: {program} is not installed", keep=True)
        suffix = PurePosixPath(name).suffix
        with tempfile.TemporaryDirectory(prefix="klaw-") as directory:
            file = Path(directory) / f"file{suffix if suffix[1:].isalnum() else ''}"
            file.write_bytes(data)
            text = self._run(file).decode("utf-8", "replace").replace("\r\n", "\n")
        text = text.replace("\f", "\n").strip()
        if not text:
            raise ConversionError("has no text")
        return Conversion(f"{text}\n".replace("\0", ""))

    def _run(self, file: Path) -> bytes:
        """Return what the command prints about a file: its argument ``{file}``, or its input. Raise ConversionError."""
        command = [word.replace(_FILE, str(file)) for word in self.options.command]
        kept = {name: os.environ[name] for name in self.options.environment if name in os.environ}
        late: list[bool] = []
        with file.open("rb") as given:
            try:
                process = subprocess.Popen(  # noqa: S603  # a command of the owner's configuration
                    command,
                    stdin=subprocess.DEVNULL if command != list(self.options.command) else given,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd=file.parent,
                    env=child_environment(**kept),
                    start_new_session=True,
                )
            except OSError as error:
                raise ConversionError(f"cannot be read: {command[0]}: {error.strerror}", keep=True) from None
        assert process.stdout is not None

        def end() -> None:
            late.append(True)
            _kill(process)

        timer = threading.Timer(self.options.timeout_seconds, end)
        timer.start()
        try:
            printed = process.stdout.read(_MAX_BYTES + 1)
            if len(printed) > _MAX_BYTES:
                raise ConversionError(f"has more than {_MAX_BYTES:,} bytes of text")
            status = process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                _kill(process)
            process.stdout.close()
            process.wait()
        if late:
            seconds = f"{self.options.timeout_seconds:g}"
            raise ConversionError(f"takes {command[0]} longer than {seconds} seconds to read", keep=True)
        if status:
            raise ConversionError(f"cannot be read: {command[0]} ended with the exit status {status}", keep=True)
        return printed


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
