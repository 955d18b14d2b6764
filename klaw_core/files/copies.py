"""Copies of the texts of documents, such as converted files: one file for each, below the cache directory.

A file is named after the document and not after its content, so that a forgotten document's text can be deleted, also
if the plugin that made the copy is missing. Everything may be deleted at any time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from attrs import frozen

from klaw_core.errors import StoreError
from klaw_core.files.atomic import sync_directory
from klaw_core.values.text import text_hash

_DIGITS = 32
_MEMORY_DIGITS = 16


@frozen
class Copies:
    """The copies of a memory by the path of their documents. Safe for several processes at once."""

    directory: Path

    @classmethod
    def of(cls, cache_dir: Path, data_dir: Path) -> Self:
        """Return those of a memory. Several memories share a cache directory, and may have origins of one name."""
        return cls(cache_dir / "conversions" / text_hash(str(data_dir))[:_MEMORY_DIGITS])

    def drop(self, paths: Iterable[str]) -> None:
        """Delete the copies of documents, durably. Raise StoreError."""
        directories = set()
        for path in paths:
            file = self.file(path)
            _delete(file)
            directories.add(file.parent)
        for directory in directories:
            with suppress(FileNotFoundError):
                sync_directory(directory)

    def keep_only(self, origin: str, get_paths: Callable[[], Iterable[str]]) -> None:
        """Delete the copies of all other documents of an origin. ``get_paths`` is called only if there are copies.

        Raise StoreError.
        """
        directory = self._directory(origin)
        try:
            present = os.listdir(directory)  # noqa: PTH208  # names only
        except OSError:
            return
        kept = {self.file(path).name for path in get_paths()}
        for name in present:
            if name not in kept:
                _delete(directory / name)

    def file(self, path: str) -> Path:
        """Return the file of a document's copy."""
        return self._directory(path.partition("/")[0]) / text_hash(path)[:_DIGITS]

    def _directory(self, origin: str) -> Path:
        return self.directory / text_hash(origin)[:_DIGITS]


def _delete(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{file} cannot be deleted: {error.strerror}") from error
