"""Importers: what other programs export, as records, from entry points of the group ``klaw.importers``.

    [project.entry-points."klaw.importers"]
    chatgpt = "klaw_import.chatgpt:read"

The value is a function that takes a path and yields a :class:`Record` for each thing to import, and a
:class:`SkippedEntry` for what it cannot read. Equal input must give equal records, so that importing again changes
nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import BinaryIO, TypeAlias

from klaw_core.errors import NotFoundError, PluginError, PluginNotFoundError, isolated
from klaw_core.files.atomic import writing_failed
from klaw_core.files.jsonl import encode
from klaw_core.maintenance.records import as_line, end, header
from klaw_core.plugins.catalogue import install_command
from klaw_core.values.records import Record
from klaw_core.values.runs import SkippedEntry

GROUP = "klaw.importers"

#: Reads a file or a directory of another program.
Importer: TypeAlias = Callable[[Path], Iterable[Record | SkippedEntry]]


def importers() -> dict[str, str]:
    """Return the installed importers, each with its distribution's name."""
    points = sorted(_entry_points(), key=lambda point: point.name)
    return {point.name: point.value if point.dist is None else point.dist.name for point in points}


def load_importer(name: str) -> Importer:
    """Return the importer of a name. Raise PluginNotFoundError if it is not installed, PluginError if it fails."""
    points = list(_entry_points().select(name=name))
    if not points:
        known = importers()
        raise PluginNotFoundError(
            f"no importer {name!r} is installed" + (f"; installed are {', '.join(known)}" if known else ""),
            hint=install_command(["import"]),
        )
    with isolated(f"the importer {name!r}"):
        importer = points[0].load()
    if not callable(importer):
        raise PluginError(f"the importer {name!r} is not a function but {type(importer).__name__}")
    found: Importer = importer
    return found


@contextmanager
def converted(name: str, source: Path) -> Iterator[tuple[Path, tuple[SkippedEntry, ...]]]:
    """Give a temporary export with the records that an importer reads from ``source``, and what it skipped.

    Raise NotFoundError if there is no such path, PluginError, RecordError, StoreError if the export cannot be written.
    """
    importer = load_importer(name)
    if not source.exists():
        raise NotFoundError(f"there is no file or directory {source}")
    with tempfile.TemporaryDirectory(prefix="klaw-import-") as directory:
        path = Path(directory) / "records.jsonl"
        try:
            with path.open("wb") as stream, isolated(f"the importer {name!r}"):
                skipped = _write(importer(source), stream)
        except OSError as error:
            raise writing_failed(path, error) from error
        yield path, skipped


def _write(items: Iterable[Record | SkippedEntry], stream: BinaryIO) -> tuple[SkippedEntry, ...]:
    skipped = []
    count = 0
    stream.write(encode(header()))
    for item in items:
        if isinstance(item, SkippedEntry):
            skipped.append(item)
        else:
            stream.write(encode(as_line(item)))
            count += 1
    stream.write(encode(end(count)))
    return tuple(skipped)


def _entry_points() -> EntryPoints:
    return entry_points(group=GROUP)
