"""Handle standard streams that are closed, full, or no longer read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import click


class OutputError(Exception):
    """Standard output cannot be written; the message says why. Not an OSError, which click would handle itself."""


class ReaderGoneError(Exception):
    """The reader of standard output has closed the pipe, as in ``klaw search x | head -1``."""


class _GuardedStream:
    """A standard stream that reports its own write errors, whether click, rich or Klaw writes to it.

    Control characters are removed from text for a terminal, unless the stream ``is_trusted`` (cleaned, styled text).
    """

    def __init__(self, stream: Any, *, for_notices: bool = False, is_trusted: bool = False) -> None:
        self._stream = stream
        self._for_notices = for_notices
        self._drives_terminal = stream.isatty() and not is_trusted

    @property
    def buffer(self) -> _GuardedStream:
        """The underlying binary stream, which click wraps in its own text stream if the encoding is ASCII."""
        return _GuardedStream(self._stream.buffer, for_notices=self._for_notices)

    @property
    def rich_proxied_file(self) -> _GuardedStream:
        """The trusted stream for styled text; rich looks for this attribute name."""
        return _GuardedStream(self._stream, for_notices=self._for_notices, is_trusted=True)

    def write(self, data: str | bytes) -> int:
        if data == "":  # click writes an empty string to detect the kind of stream, and hides the error
            return 0
        with _writing(self._stream, for_notices=self._for_notices):
            self._stream.write(_neutral(data) if self._drives_terminal else data)
        return len(data)

    def flush(self) -> None:
        with _writing(self._stream, for_notices=self._for_notices):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def trusted(stream: Any) -> Any:
    """Return the stream for text that is already cleaned and styled."""
    return getattr(stream, "rich_proxied_file", stream)


def _neutral(data: str | bytes) -> str | bytes:
    from klaw_core.cli.neutral import neutral  # imported late: only a terminal needs it

    return neutral(data) if isinstance(data, str) else neutral(bytes(data).decode("utf-8", "replace")).encode()


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard the standard streams in the block, and replace closed ones (``klaw ... >&-``), which are None in Python.

    Closed input is empty, and notices to a closed stderr are lost. Writing to a closed stdout fails, as in other tools.
    The replacements also prevent later files from getting the descriptor of a standard stream.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = _opened(sys.stdin, os.O_RDONLY, "r")
    sys.stdout = _GuardedStream(_opened(sys.stdout, os.O_RDONLY, "w"))
    sys.stderr = _GuardedStream(_opened(sys.stderr, os.O_WRONLY, "w"), for_notices=True)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _opened(stream: Any, flags: int, mode: str) -> Any:
    if stream is not None and not stream.closed:
        return stream
    return open(os.open(os.devnull, flags), mode, encoding="utf-8")  # noqa: PTH123  # a descriptor, which stays open


@contextmanager
def _writing(stream: Any, *, for_notices: bool) -> Iterator[None]:
    """Guard a write to a stream. Raise OutputError or ReaderGoneError; later output to the stream is discarded.

    Errors of the stream for notices are ignored: a notice that cannot be printed must not make a command fail.
    """
    try:
        yield
    except OSError as error:
        _silence(stream)
        if for_notices:
            return
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from error
        raise OutputError(f"cannot write to standard output: {error.strerror or error}") from error


def echo(text: str, *, stream: IO[str] | None = None, nl: bool = True) -> None:
    """Print text on a stream, by default on stdout, without a wrapper of click."""
    click.echo(text, file=sys.stdout if stream is None else stream, nl=nl)


def _silence(stream: Any) -> None:
    """Discard the buffered output of a stream, which would cause an error message at exit."""
    with suppress(OSError, ValueError):  # in tests a stream may have no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
