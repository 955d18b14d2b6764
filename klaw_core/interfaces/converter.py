"""Converters, which turn files into text: PDF, office documents, web pages, source code."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.values.documents import Conversion


class Converter:
    """Turns the bytes of certain kinds of files into text.

    Constructing one is cheap: it imports its parser for the first file. Equal bytes give equal text. A file may be
    hostile: a converter limits its time and memory, and uses a separate process for a parser that can hang or exhaust
    the memory.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # attributes or properties

        @property
        def patterns(self) -> Sequence[str]:
            """Return the patterns of the names of its files, such as ``*.pdf``; they match in any case."""

        @property
        def version(self) -> str:
            """Return a version that changes whenever equal bytes give another text. It invalidates the cached texts."""

        @property
        def on_request(self) -> bool:
            """Return whether its files are read only in a workspace whose ``include`` matches them."""

        @property
        def max_bytes(self) -> int:
            """Return the maximum size of a file in bytes; 0 if that of the source holds, which is meant for notes."""

    else:
        on_request = False
        max_bytes = 0

    @abstractmethod
    def convert(self, data: bytes, name: str, /) -> Conversion:
        """Return the text of a file; ``name`` is its name without directories. Raise ConversionError."""
