"""Read the metadata of a GGUF file, without llama.cpp and without trusting the file.

The format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Only the metadata is read, at most once;
llama.cpp checks the tensors.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from klaw_core import ModelCorruptError, ModelNotFoundError

_MAGIC = b"GGUF"
_OLDEST, _NEWEST = 2, 3
# The `struct` formats of the types 0 to 12; 8 is a string and 9 an array.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_POOLINGS = {0: None, 1: "mean", 2: "cls", 3: "last"}
_MAX_KEYS = 10_000

Value: TypeAlias = str | int | float | bool | None


@frozen
class Header:
    """The metadata that an embedder needs. ``pooling`` is None if the file does not contain it."""

    context_tokens: int
    pooling: str | None

    @classmethod
    def read(cls, path: Path) -> Header:
        """Read the metadata of a file. Raise ModelNotFoundError or ModelCorruptError."""
        try:
            with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _interpret(_Walk(content).metadata())
        except FileNotFoundError as error:
            raise ModelNotFoundError(f"no file {path}", hint="set memory.embedding.path to a .gguf file") from error
        except OSError as error:
            raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=FETCH_AGAIN) from error
        except ValueError as error:  # mmap also raises it for an empty file
            raise ModelCorruptError(f"{path} is not a valid GGUF file: {error}", hint=FETCH_AGAIN) from error


FETCH_AGAIN = "download the file again, and compare its `sha256sum` with the publisher's"


def _interpret(metadata: Mapping[str, Value]) -> Header:
    architecture = metadata.get("general.architecture")
    context = metadata.get(f"{architecture}.context_length")
    if not isinstance(architecture, str) or not isinstance(context, int) or context < 1:
        raise ValueError("it has no architecture and context length")
    pooling = metadata.get(f"{architecture}.pooling_type", 0)
    if not isinstance(pooling, int) or pooling not in _POOLINGS:
        raise ValueError(f"pooling type {pooling} gives no sentence embedding; is this a reranker?")
    return Header(context, _POOLINGS[pooling])


class _Walk:
    """Reads the metadata in order. Raises ValueError for any offset outside of the file."""

    def __init__(self, content: Any) -> None:
        self._content = content
        self._at = 0

    def metadata(self) -> dict[str, Value]:
        if self._bytes(4) != _MAGIC:
            raise ValueError("it does not begin with GGUF")
        version = self._number("I")
        if not _OLDEST <= version <= _NEWEST:
            raise ValueError(f"version {version} is not {_OLDEST} or {_NEWEST}")
        self._number("Q")  # tensors
        keys = self._number("Q")
        if keys > _MAX_KEYS:
            raise ValueError(f"{keys} metadata keys")
        return {self._string(): self._value(self._number("I")) for _ in range(keys)}

    def _value(self, kind: int) -> Value:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            self._skip_array()
            return None
        if kind not in _NUMBERS:
            raise ValueError(f"a value of type {kind}")
        number: Value = self._number(_NUMBERS[kind])
        return number

    def _skip_array(self) -> None:
        kind, count = self._number("I"), self._number("Q")
        if kind == _STRING:
            for _ in range(count):  # a wrong count ends with an error at the end of the file
                self._skip(self._number("Q"))
        elif kind in _NUMBERS:
            self._skip(count * struct.calcsize(_NUMBERS[kind]))
        else:
            raise ValueError(f"an array of type {kind}")

    def _string(self) -> str:
        return self._bytes(self._number("Q")).decode("utf-8", "replace")

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack(f"<{form}", self._bytes(struct.calcsize(f"<{form}")))
        return number

    def _bytes(self, length: int) -> bytes:
        start = self._at
        self._skip(length)
        found: bytes = self._content[start : self._at]
        return found

    def _skip(self, length: int) -> None:
        self._at += length
        if self._at > len(self._content):
            raise ValueError("its metadata is truncated")
