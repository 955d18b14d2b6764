"""The errors of adding, storing and removing models."""

from __future__ import annotations

import errno
from pathlib import Path

from klaw_core import KlawError


class ModelError(KlawError):
    """A model could not be fetched, stored or removed."""


def storage_error(directory: Path, error: OSError) -> ModelError:
    """Return the error for a model that could not be stored in ``directory``, with the reason."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError(f"the disk of {directory} is full", hint="free some space, then try again; nothing was kept")
    where = error.filename or directory
    return ModelError(f"the model cannot be kept: {where}: {error.strerror or error}", hint="check the permissions")
