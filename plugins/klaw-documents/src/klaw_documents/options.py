"""The options of the converters."""

from __future__ import annotations

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
class CodeOptions:
    """Options of the converter of source code.

    ``on_request``: such files are only read if ``include`` of the workspace matches them.
    """

    on_request: bool = True
