"""The cache of models: ``models/`` in Klaw's cache directory, one directory per model.

A model is added atomically: its files are written to a temporary directory next to it, checked, synced and renamed.
Only one process writes at a time. The next process deletes leftovers of a killed one.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from klaw_core import Descriptor, FileLock, sync_directory
from klaw_models.errors import ModelError, storage_error
from klaw_models.manifest import MANIFEST
from klaw_models.places import cache_directory
from klaw_models.reading import read_manifest

_TEMPORARY = ".adding-"
_LOCK = ".lock"
# One or two parts: "all-MiniLM-L6-v2", "owner/model".
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_PATTERNS = (f"*/{MANIFEST}", f"*/*/{MANIFEST}")


@frozen
class ModelCache:
    """The models that were added on this machine. ``cache_dir`` is Klaw's cache directory."""

    cache_dir: Path

    @property
    def directory(self) -> Path:
        """Return the directory with the models."""
        return self.cache_dir / "models"

    def names(self) -> list[str]:
        """Return the names of the cached models, including damaged ones."""
        found = (
            path.parent.relative_to(self.directory) for pattern in _PATTERNS for path in self.directory.glob(pattern)
        )
        return sorted(path.as_posix() for path in found if not path.parts[0].startswith("."))

    def place(self, name: str) -> Path:
        """Return the directory for a model of this name. Raise ModelError if the name is invalid."""
        directory = cache_directory(name, self.cache_dir)
        if directory is None or not _NAME.fullmatch(name) or MANIFEST in name.split("/"):
            hint = f"use letters, digits, - . _ and at most one /; {MANIFEST} is reserved"
            raise ModelError(f"{name!r} is not a valid model name", hint=hint)
        return directory

    def put(self, name: str, fill: Callable[[Path], None], *, size: int = 0) -> Path:
        """Let ``fill`` write a model's files into a new directory, then add it as the model of this name.

        A model with this name is replaced. If ``fill`` raises, or its manifest is invalid, nothing changes. ``size`` is
        the number of free bytes that the disk must have. Raise ModelError or ModelCorruptError.
        """
        place = self.place(name)
        try:
            with self._locked():
                self._require_space(size)
                made = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self.directory))
                try:
                    fill(made)
                    read_manifest(made)
                    _sync_tree(made)
                    self._replace(place, made)
                finally:
                    shutil.rmtree(made, ignore_errors=True)
        except OSError as error:
            raise storage_error(self.directory, error) from error
        return place

    def remove(self, name: str) -> Path:
        """Remove a model. Raise ModelError if it does not exist or cannot be removed."""
        place = self.place(name)
        if not (place / MANIFEST).is_file():
            raise ModelError(
                f"no model {name!r} in {self.directory}", hint="klaw models list shows the available models"
            )
        try:
            with self._locked():
                shutil.rmtree(self._set_aside(place))
                if place.parent != self.directory:
                    with suppress(OSError):  # it contains other models
                        place.parent.rmdir()
        except OSError as error:
            raise storage_error(self.directory, error) from error
        return place

    def _replace(self, place: Path, made: Path) -> None:
        if any(place.glob(f"*/{MANIFEST}")) or (place.parent / MANIFEST).is_file():
            raise ModelError(f"{place} contains other models, or is inside one", hint="choose another name")
        _make_private(place.parent)
        aside = self._set_aside(place) if place.exists() else None
        made.rename(place)
        sync_directory(place.parent)
        if aside:
            shutil.rmtree(aside)

    def _set_aside(self, place: Path) -> Path:
        """Move a model's directory into one that is to be deleted, and return that."""
        aside = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self.directory))
        place.rename(aside / "model")
        sync_directory(place.parent)
        return aside

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other writing processes, and delete leftovers of killed ones. Raise ModelError or OSError."""
        _make_private(self.directory)

        def refuse() -> None:
            raise ModelError(
                f"another process is changing {self.directory}", hint="wait until it is done, then try again"
            )

        with FileLock(self.directory / _LOCK, os.O_RDWR | os.O_CREAT, on_wait=refuse):
            for leftover in self.directory.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            yield

    def _require_space(self, size: int) -> None:
        free = shutil.disk_usage(self.directory).free
        if free < size:
            raise ModelError(
                f"the model needs {size:,} bytes; the disk of {self.directory} has {free:,} free",
                hint="free some space, then try again",
            )


def _make_private(directory: Path) -> None:
    """Create a directory and its parents with access only for the owner, which ``parents=True`` does not do."""
    for missing in reversed([path for path in (directory, *directory.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _sync_tree(directory: Path) -> None:
    """Restrict the files in a new directory to their owner, and fsync them, before the directory is renamed."""
    for path in (*directory.rglob("*"), directory):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if path.is_dir():
            sync_directory(path)
            continue
        with Descriptor(path, os.O_RDWR) as descriptor:  # Windows flushes only what may be written
            os.fsync(descriptor)
