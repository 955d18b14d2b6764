"""The standard streams when they are not what a program expects: closed, full, or left by their reader."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import click


class OutputError(Exception):
    """Standard output does not take what was asked for; the message says why. No OSError, which click would take."""


class ReaderGoneError(Exception):
    """Whoever read standard output has gone, as in ``klaw search x | head -1``."""


class _NamedStream:
    """A standard stream whose errors say which stream it is; whatever prints, click and rich included.

    What is written to a terminal cannot drive it, unless it ``is_trusted``: made harmless and then styled.
    """

    def __init__(self, stream: Any, *, for_notices: bool = False, is_trusted: bool = False) -> None:
        self._stream = stream
        self._for_notices = for_notices
        self._drives_terminal = stream.isatty() and not is_trusted

    @property
    def buffer(self) -> _NamedStream:
        """The stream of bytes below, around which click puts a stream of its own if the encoding is ASCII."""
        return _NamedStream(self._stream.buffer, for_notices=self._for_notices)

    @property
    def rich_proxied_file(self) -> _NamedStream:
        """The stream that rich writes to, by the name that it looks for: what it writes is styled."""
        return _NamedStream(self._stream, for_notices=self._for_notices, is_trusted=True)

    def write(self, data: str | bytes) -> int:
        if data == "":  # with which click tries what kind of stream this is, and swallows the error
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
    """Return the stream for text that is harmless and styled."""
    return getattr(stream, "rich_proxied_file", stream)


def _neutral(data: str | bytes) -> str | bytes:
    from klaw_core.cli.neutral import neutral  # only a terminal needs it

    return neutral(data) if isinstance(data, str) else neutral(bytes(data).decode("utf-8", "replace")).encode()


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard the streams in the block, and put something in the place of one that was closed (``klaw ... >&-``).

    Python leaves None there. Input is empty then, and notices are lost. Output must not be lost unseen: what is
    written there fails, as in other tools. Besides, no file that is opened later gets a stream's descriptor.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = _opened(sys.stdin, os.O_RDONLY, "r")
    sys.stdout = _NamedStream(_opened(sys.stdout, os.O_RDONLY, "w"))
    sys.stderr = _NamedStream(_opened(sys.stderr, os.O_WRONLY, "w"), for_notices=True)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _opened(stream: Any, flags: int, mode: str) -> Any:
    if stream is not None and not stream.closed:
        return stream
    return open(os.open(os.devnull, flags), mode, encoding="utf-8")  # noqa: PTH123  # a descriptor, kept


@contextmanager
def _writing(stream: Any, *, for_notices: bool) -> Iterator[None]:
    """Write to a stream in the block. Raise OutputError, or ReaderGoneError; the stream is silent from then on.

    That a notice cannot be written is no reason to fail: errors of theirs end the block and nothing else.
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
    """Print text on a stream, stdout by default: that very one, and not what click may wrap around it."""
    click.echo(text, file=sys.stdout if stream is None else stream, nl=nl)


def _silence(stream: Any) -> None:
    """Let what a stream still holds go nowhere; else the interpreter would complain about it at exit."""
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
