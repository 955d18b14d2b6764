"""Export the user's own data as JSON Lines, from which another installation can rebuild the same memory."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from attrs import field, frozen

from klaw_core.errors import RecordError, StoreError, isolated
from klaw_core.extensions.host import having
from klaw_core.files.atomic import sync_directory, writing_failed
from klaw_core.files.jsonl import encode
from klaw_core.files.layout import DataDirectory
from klaw_core.interfaces.extension import Extension, RecordedExtension
from klaw_core.maintenance.records import as_line, end, header
from klaw_core.values.records import Record
from klaw_core.values.runs import SkippedEntry


@frozen
class ExportReport:
    """The number of exported records by kind, and the skipped parts, such as broken lines in the files."""

    counts: Mapping[str, int] = field(factory=dict)
    skipped: tuple[SkippedEntry, ...] = ()


def export(extensions: Mapping[str, Extension], data_dir: Path, target: Path | BinaryIO) -> ExportReport:
    """Write the records of all extensions to a file (atomically, mode 0600) or to a stream, one per line.

    Equal contents give equal bytes. Raise StoreCorruptError if a file cannot be read completely, StoreError.
    """
    if not isinstance(target, Path):
        return _write(extensions, data_dir, target)
    with _replacing(target) as stream:
        return _write(extensions, data_dir, stream)


def _write(extensions: Mapping[str, Extension], data_dir: Path, stream: BinaryIO) -> ExportReport:
    counts: Counter[str] = Counter()
    skipped: list[SkippedEntry] = []
    stream.write(encode(header()))
    for item in _items(extensions, data_dir):
        if isinstance(item, SkippedEntry):
            skipped.append(item)
            continue
        try:
            line = encode(as_line(item))
        except RecordError as error:  # a record that Klaw did not write, for example after a manual edit
            skipped.append(SkippedEntry(item.kind, error.message, keep=True))
            continue
        stream.write(line)
        counts[item.kind] += 1
    stream.write(encode(end(counts.total())))
    return ExportReport(dict(counts), tuple(skipped))


def _items(extensions: Mapping[str, Extension], data_dir: Path) -> Iterator[Record | SkippedEntry]:
    for name, extension in having(extensions, RecordedExtension):
        with isolated(f"the records of the extension {name!r}"):
            yield from extension.records()
    for place in sorted(DataDirectory(data_dir).agents.glob("*/")):
        reason = f"the memory of an agent is exported separately: klaw export --data-dir {place} FILE"
        yield SkippedEntry(f"agents/{place.name}", reason, keep=True)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream to a private temporary file; replace ``path`` with it atomically at the end of the block."""
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise StoreError(f"cannot write {path}: no such directory: {place.parent}", hint="create it first")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".klaw-{place.name}-", dir=place.parent)
        try:
            with open(descriptor, "wb") as stream:  # noqa: PTH123  # a descriptor
                yield stream
                stream.flush()
                os.fsync(descriptor)
            Path(name).replace(place)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink(missing_ok=True)
            raise
        sync_directory(place.parent)
    except OSError as error:
        raise writing_failed(path, error) from error
