"""The cache of converted files: one file per document, below ``conversions`` in the cache directory.

A cache file is named after the document and not after its content, so that a forgotten document's text can be deleted.
The whole cache may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import Conversion, ConversionError, KlawError, StoreError, check_metadata, sync_directory
from klaw_core.files.atomic import make_private_directory, write_all
from klaw_core.files.held import Temporary
from klaw_core.values.text import text_hash

_RETRY_SECONDS = 24 * 3600  # a file that needed too much time or memory is tried again after a day
_DIGITS = 32


@frozen
class ConversionCache:
    """Conversions by the path of their documents. Safe for several processes at once.

    An unreadable entry counts as missing; an entry that cannot be written is converted again next time.
    """

    directory: Path

    def get(self, path: str, digest: str) -> Conversion | None:
        """Return the conversion of the bytes with this digest; None if there is none.

        Raise the cached ConversionError if they could not be converted.
        """
        file = self._file(path)
        try:
            found = json.loads(zlib.decompress(file.read_bytes()))
            if found["digest"] != digest:
                return None
            if "error" in found:
                age = time.time() - file.stat().st_mtime
                error = ConversionError(str(found["error"]), keep=bool(found["keep"]))
            else:
                return _parse(found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, KlawError, zlib.error):
            return None
        if error.keep and not 0 <= age < _RETRY_SECONDS:
            return None
        raise error

    def put(self, path: str, digest: str, made: Conversion | ConversionError) -> None:
        """Store the conversion of a document's file, and replace an earlier one."""
        if isinstance(made, ConversionError):
            entry: dict[str, Any] = {"digest": digest, "error": made.message, "keep": made.keep}
        else:
            entry = {
                "digest": digest,
                "text": made.text,
                "format": made.format,
                "metadata": made.metadata,
                "created_at": None if made.created_at is None else made.created_at.isoformat(),
            }
        with suppress(OSError, KlawError):
            self._write(self._file(path), zlib.compress(json.dumps(entry).encode(), 1))

    def drop(self, paths: Iterable[str]) -> None:
        """Delete the entries of documents, durably. Raise StoreError."""
        directories = set()
        for path in paths:
            file = self._file(path)
            self._delete(file)
            directories.add(file.parent)
        for directory in directories:
            with suppress(FileNotFoundError):
                sync_directory(directory)

    def keep_only(self, origin: str, get_paths: Callable[[], Iterable[str]]) -> None:
        """Delete the entries of all other documents of an origin. ``get_paths`` is called only if there are entries.

        Raise StoreError.
        """
        directory = self._directory(origin)
        try:
            present = os.listdir(directory)  # noqa: PTH208  # names only
        except OSError:
            return
        kept = {self._file(path).name for path in get_paths()}
        for name in present:
            if name not in kept:
                self._delete(directory / name)

    def _directory(self, origin: str) -> Path:
        return self.directory / _digest(origin)

    def _file(self, path: str) -> Path:
        return self._directory(path.partition("/")[0]) / _digest(path)

    @staticmethod
    def _write(file: Path, data: bytes) -> None:
        """Replace a file. A part left by a crash is invalid, and counts as missing."""
        make_private_directory(file.parent)
        temporary = Temporary(file)
        with temporary as descriptor:
            write_all(descriptor, data)
            temporary.replace(flush=False)

    @staticmethod
    def _delete(file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{file} cannot be deleted: {error.strerror}") from error


def _parse(found: dict[str, Any]) -> Conversion:
    """Parse a stored conversion. Raise various exceptions if it is damaged."""
    metadata = {key: tuple(value) if isinstance(value, list) else value for key, value in found["metadata"].items()}
    check_metadata(metadata)
    text, text_format, moment = found["text"], found["format"], found["created_at"]
    if not isinstance(text, str) or not isinstance(text_format, str):
        raise TypeError
    return Conversion(text, text_format, metadata, None if moment is None else datetime.fromisoformat(moment))


def _digest(name: str) -> str:
    return text_hash(name)[:_DIGITS]
