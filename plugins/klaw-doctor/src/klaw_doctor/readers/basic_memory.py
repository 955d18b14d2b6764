"""Basic Memory: a project's directory of Markdown notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klaw_core import SkippedEntry
from klaw_doctor.readers.markdown import pages
from klaw_journals import Record


def read(source: Path) -> Iterator[Record | SkippedEntry]:
    """Yield every note."""
    yield from pages("basic-memory", source)
