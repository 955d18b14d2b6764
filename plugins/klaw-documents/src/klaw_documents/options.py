"""The options of the converters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field, frozen, validators

_MIB = 2**20


@frozen
class ParsedOptions:
    """Options of a converter that parses in a separate process.

    ``max_bytes``: the maximum size of a file.
    ``timeout_seconds``: the maximum time for one file.
    ``memory_mb``: the maximum address space of the process.
    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    on_request: bool = False
    max_bytes: int = field(default=100 * _MIB, validator=validators.ge(1))
    timeout_seconds: float = field(default=60.0, validator=validators.gt(0))
    memory_mb: int = field(default=1024, validator=validators.ge(128))


@frozen
class TextOptions:
    """Options of a converter of text files.

    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    on_request: bool = False


@frozen
class TableOptions:
    """Options of the converter of comma-separated values, most of which are data and not notes.

    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    on_request: bool = True


@frozen
class CodeOptions:
    """Options of the converter of source code.

    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    on_request: bool = True


_PICTURES = ("*.png", "*.jpg", "*.jpeg", "*.tif", "*.tiff", "*.webp", "*.bmp", "*.gif")


def _patterns(_options: object, attribute: Any, value: Sequence[str]) -> None:
    for pattern in value:
        if not pattern.strip("*.") or "/" in pattern:
            raise ValueError(f"{attribute.name}: {pattern!r} is not a pattern of file names, such as '*.png'")


@frozen
class CommandOptions:
    """Options of the converter that runs a command, such as ``["tesseract", "{file}", "-"]``.

    ``command``: the program and its arguments; empty turns the converter off. ``{file}`` is the path of a copy of the
    file; without it, the file is the input of the command. What it prints is the text. A program with a relative path
    is looked for in the working directory; it runs in the directory of the copy.
    ``patterns``: the names of the files that it reads.
    ``environment``: the variables of the environment that it gets besides ``PATH`` and the like, such as an API key.
    ``version``: change it to convert all files again.
    ``max_bytes``: the maximum size of a file. ``timeout_seconds``: the maximum time for one file.
    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    command: tuple[str, ...] = ()
    patterns: tuple[str, ...] = field(default=_PICTURES, validator=_patterns)
    environment: tuple[str, ...] = ()
    version: str = ""
    on_request: bool = False
    max_bytes: int = field(default=50 * _MIB, validator=validators.ge(1))
    timeout_seconds: float = field(default=120.0, validator=validators.gt(0))
