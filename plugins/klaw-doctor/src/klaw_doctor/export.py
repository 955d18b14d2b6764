"""Export the user's own data as JSON Lines, from which another installation can rebuild the same memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

from klaw_core import Extension, RecordError, SkippedEntry, StoreError, sync_directory
from klaw_core.errors import isolated
from klaw_core.extensions.host import having
from klaw_core.files.atomic import writing_failed
from klaw_core.files.held import Temporary
from klaw_core.files.layout import DataDirectory
from klaw_doctor.journals import JournalRecords
from klaw_doctor.records import MAX_EXPORT_LINE_BYTES, as_line, end, header
from klaw_journals import Journals, Record, RecordedExtension
from klaw_journals.file_journals import FileJournals
from klaw_journals.jsonl import encode
from klaw_journals.records import ExportReport


def export(
    extensions: Mapping[str, Extension], data_dir: Path, target: Path | BinaryIO, journals: Journals | None = None
) -> ExportReport:
    """Write the records of all extensions, and other journals, to a file or to a stream, one record per line.

    A file is written atomically, with mode 0600. ``journals`` are those of the store if it has its own, by default
    files. Equal contents give equal bytes. Raise StoreCorruptError if a file cannot be read completely, StoreError.
    """
    others = JournalRecords(FileJournals(data_dir) if journals is None else journals, extensions)
    if not isinstance(target, Path):
        return _write(extensions, others, data_dir, target)
    return _replace(target, partial(_write, extensions, others, data_dir))


def _write(
    extensions: Mapping[str, Extension], others: JournalRecords, data_dir: Path, stream: BinaryIO
) -> ExportReport:
    counts: Counter[str] = Counter()
    skipped: list[SkippedEntry] = []
    stream.write(encode(header()))
    for item in _items(extensions, others, data_dir):
        if isinstance(item, SkippedEntry):
            skipped.append(item)
            continue
        try:
            line = encode(as_line(item))
        except RecordError as error:  # a record that Klaw did not write, for example after a manual edit
            skipped.append(SkippedEntry(item.kind, error.message, keep=True))
            continue
        if len(line) > MAX_EXPORT_LINE_BYTES:
            skipped.append(SkippedEntry(item.kind, "a record is too large for an export", keep=True))
            continue
        stream.write(line)
        counts[item.kind] += 1
    stream.write(encode(end(counts.total())))
    notices = (f"included the journal {name!r}, which no installed extension owns" for name in others.unowned())
    return ExportReport(dict(counts), tuple(skipped), tuple(notices))


def _items(
    extensions: Mapping[str, Extension], others: JournalRecords, data_dir: Path
) -> Iterator[Record | SkippedEntry]:
    for name, extension in having(extensions, RecordedExtension):
        with isolated(f"the records of the extension {name!r}"):
            yield from extension.records()
    yield from others.records()
    for place in sorted(DataDirectory(data_dir).agents.glob("*/")):
        reason = f"the memory of an agent is exported separately: klaw export --data-dir {place} FILE"
        yield SkippedEntry(f"agents/{place.name}", reason, keep=True)


def _replace(path: Path, write: Callable[[BinaryIO], ExportReport]) -> ExportReport:
    """Write to a private temporary file, and replace ``path`` with it atomically.

    Not a context manager of a generator: an interrupt just before its block would leave the file open.
    """
    place = Path(os.path.realpath(path))
    if not place.parent.is_dir():
        raise StoreError(f"cannot write {path}: no such directory: {place.parent}", hint="create it first")
    try:
        temporary = Temporary(place)
        with temporary:
            with temporary.into_file("wb") as stream:
                report = write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace()
        sync_directory(place.parent)
    except OSError as error:
        raise writing_failed(path, error) from error
    return report
