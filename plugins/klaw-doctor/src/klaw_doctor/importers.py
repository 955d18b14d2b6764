"""Importers: functions that read the exports of other programs, found in the entry point group ``klaw.importers``.

    [project.entry-points."klaw.importers"]
    chatgpt = "klaw_doctor.readers.chatgpt:read"

An importer takes a path. It yields a :class:`Record` for each item to import and a :class:`SkippedEntry` for each
part that it cannot read. Equal input must give equal records, so that a second import changes nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoints, entry_points
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from klaw_core import (
    NotFoundError,
    PluginError,
    PluginNotFoundError,
    RecordError,
    SkippedEntry,
    update_command,
)
from klaw_core.errors import isolated
from klaw_core.files.atomic import writing_failed
from klaw_doctor.readers.records import whole_characters
from klaw_doctor.records import as_line, end, header
from klaw_journals import Record
from klaw_journals.jsonl import encode

GROUP = "klaw.importers"
# The number of items of an export that another importer is tried with.
_LOOKED_AT = 5

#: A function that reads a file or a directory of another program.
Importer: TypeAlias = Callable[[Path], Iterable[Record | SkippedEntry]]


def importers() -> dict[str, str]:
    """Return the name of the distribution of each installed importer, by importer."""
    points = sorted(_entry_points(), key=lambda point: point.name)
    return {point.name: point.value if point.dist is None else point.dist.name for point in points}


def load_importer(name: str) -> Importer:
    """Load an importer by name. Raise PluginNotFoundError if it is not installed, PluginError if loading fails."""
    points = list(_entry_points().select(name=name))
    if not points:
        known = importers()
        raise PluginNotFoundError(
            f"no importer {name!r} is installed" + (f"; installed are {', '.join(known)}" if known else "")
        )
    with isolated(f"the importer {name!r}"):
        importer = points[0].load()
    if not callable(importer):
        raise PluginError(f"the importer {name!r} is not a function but {type(importer).__name__}")
    found: Importer = importer
    return found


@contextmanager
def converted(name: str, source: Path) -> Iterator[tuple[Path, tuple[SkippedEntry, ...]]]:
    """Run an importer on ``source``; yield the path of a temporary export file, and the skipped parts.

    Raise NotFoundError if ``source`` does not exist, StoreError if the export cannot be written, PluginError,
    RecordError.
    """
    importer = load_importer(name)
    if not source.exists():
        raise NotFoundError(f"there is no file or directory {source}")
    with tempfile.TemporaryDirectory(prefix="klaw-import-") as directory:
        path = Path(directory) / "records.jsonl"
        try:
            with path.open("wb") as stream, isolated(f"the importer {name!r}"):
                count, skipped = _write(importer(source), stream)
        except OSError as error:
            raise writing_failed(path, error) from error
        if skipped and not count:
            first = skipped[0]
            raise RecordError(
                f"nothing in {source} has the form that the importer {name!r} reads: {first.path}: {first.reason}",
                hint=f"the importer {other!r} reads it: --from {other}"
                if (other := _other_reader(name, source))
                else f"a newer version of Klaw may read it: {update_command()}",
            )
        yield path, skipped


def _other_reader(name: str, source: Path) -> str:
    """Return the name of another installed importer that reads the beginning of ``source``; empty if none does."""
    for other in importers():
        # A plugin may raise anything; what another program's export is, is only a guess.
        with suppress(Exception):
            beginning = islice(load_importer(other)(source) if other != name else (), _LOOKED_AT)
            if any(isinstance(item, Record) for item in beginning):
                return other
    return ""


def _write(items: Iterable[Record | SkippedEntry], stream: BinaryIO) -> tuple[int, tuple[SkippedEntry, ...]]:
    """Write records, and return how many they are, and what was skipped."""
    skipped = []
    count = 0
    stream.write(encode(header()))
    for item in items:
        if isinstance(item, SkippedEntry):
            skipped.append(item)
        else:
            line = as_line(item)
            try:
                stream.write(encode(_whole(line)))
            except RecordError as error:  # the others are imported
                skipped.append(SkippedEntry(f"a record: {line.get('kind')}", error.message, keep=True))
                continue
            count += 1
    stream.write(encode(end(count)))
    return count, tuple(skipped)


def _whole(value: Any) -> Any:
    """Return a value of JSON with whole characters in all texts."""
    if isinstance(value, str):
        return value if value.isascii() else whole_characters(value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list | tuple) else value


def _entry_points() -> EntryPoints:
    return entry_points(group=GROUP)
