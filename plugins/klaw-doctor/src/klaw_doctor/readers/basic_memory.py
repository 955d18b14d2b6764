"""Basic Memory: a project's directory of Markdown notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klaw_core import Record, SkippedEntry
from klaw_doctor.readers.markdown import pages


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield every note."""
    yield from pages("basic-memory", source)
