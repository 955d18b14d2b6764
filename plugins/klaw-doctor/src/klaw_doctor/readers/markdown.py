"""Directories of Markdown, in which each file becomes a document under its own path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from klaw_core import SkippedEntry
from klaw_doctor.readers.files import named_files
from klaw_doctor.readers.records import document, skipped
from klaw_journals import Record

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
# A single file is given with any name, but not that of another kind of file.
_SUFFIXES = ("", ".md", ".markdown", ".txt")


Parse = Callable[[str], tuple[str, dict[str, Any]]]


def _as_it_is(text: str) -> tuple[str, dict[str, Any]]:
    return text, {}


def pages(
    program: str, source: Path, *, required: bool = True, parse: Parse = _as_it_is
) -> Iterator[Record | SkippedEntry]:
    """Yield each Markdown file, dated by its name. The index reads the front matter, as in notes.

    ``parse`` returns the text to keep of a file, and the metadata in it.
    """
    for name, content in named_files(source, "*.md", required=required):
        path = PurePosixPath(name)
        if any(part.startswith(".") for part in path.parts):
            continue
        if path.suffix.lower() not in _SUFFIXES:
            yield skipped(name, "not Markdown")
            continue
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            yield skipped(name, f"not UTF-8: {error}")
            continue
        text, metadata = parse(text)
        if not text.strip():
            continue
        yield document(program, path.as_posix(), text, _day_of(path.stem), {"title": path.stem, **metadata})


def _day_of(stem: str) -> datetime | None:
    match = _DAY.match(stem)
    try:
        return datetime.fromisoformat(match.group()).replace(tzinfo=UTC) if match else None
    except ValueError:
        return None
