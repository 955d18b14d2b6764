"""The directory for the indexes of an evaluation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from klaw_eval.errors import DatasetError


@contextmanager
def index_root(keep: Path | None) -> Iterator[Path]:
    """Yield the directory of the indexes: the one to keep, or a temporary one. Raise DatasetError."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="klaw-eval-") as root:
            yield Path(root)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatasetError(f"indexes cannot be kept in {keep}: {error.strerror or error}") from error
    yield keep.resolve()
