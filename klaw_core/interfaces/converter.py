"""What turns the bytes of a file into text: PDF, office documents, web pages, source code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.values.conversions import Conversion


class Converter(Protocol):
    """Turns the bytes of files of some kinds into text.

    Constructing one is cheap: a parser is imported at its first file. Equal bytes give equal text. A file may be
    hostile: a converter bounds its time and memory, and parses in a process of its own what can hang or take more
    memory than there is.
    """

    @property
    def patterns(self) -> Sequence[str]:
        """Return the patterns of the names of its files, such as ``*.pdf``; they match in any case."""

    @property
    def version(self) -> str:
        """Return what changes whenever equal bytes give another text: the cached text is then made again."""

    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Return the text of a file; ``name`` is its name without directories. Raise ConversionError."""


@runtime_checkable
class RequestedConverter(Protocol):
    """A converter that does not convert every file that it could. Optional."""

    @property
    def on_request(self) -> bool:
        """Return whether its files are read only in a workspace whose ``include`` matches them."""


@runtime_checkable
class LargeFileConverter(Protocol):
    """A converter whose files may be larger than notes. Optional."""

    @property
    def max_bytes(self) -> int:
        """Return how large a file may be."""


class Converters(Protocol):
    """Every installed converter, and the cache of what they made. Sources are given it in their ``ComponentContext``.

    ``path`` is the path of a document, which begins with the origin of its source.
    """

    def reads(self, name: str, /, *, requested: bool = True) -> bool:
        """Return whether a file of this name is converted; ``requested``: a person has named such files."""

    def recipe(self, name: str, /) -> str:
        """Return what the text of a file of this name depends on besides its bytes: converter, options, version."""

    def max_bytes(self, name: str, /) -> int:
        """Return how large a file of this name may be; 0 if its converter does not say."""

    def convert(self, path: str, data: bytes, /) -> Conversion:
        """Return the text of a file, from the cache if it was converted before. Raise ConversionError, PluginError."""
