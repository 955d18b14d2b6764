"""Everything a person owns, as JSON lines: what is needed to have the same memory elsewhere."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from attrs import field, frozen

from klaw_core.conversations.journal import Journal
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.core_memory.facts import FILE_NAME as CORE_FILE
from klaw_core.core_memory.facts import SECTIONS, CoreMemory
from klaw_core.errors import RecordError
from klaw_core.files.atomic import make_private_directory, sync_directory, writing_failed
from klaw_core.files.jsonl import BadLine, encode
from klaw_core.maintenance.checks.owned_files import CONVERSATIONS, SAVED_FILE, SUMMARIES, WORKSPACES_FILE
from klaw_core.maintenance.records import CoreFact, Item, MessageRecord, SummaryRecord, as_line, end, header, kind_of
from klaw_core.sources.saved import SavedJournal
from klaw_core.sources.workspaces import Workspaces
from klaw_core.values.runs import SkippedEntry


@frozen
class ExportReport:
    """How many lines of each kind were written, and what could not be: broken lines of the files themselves."""

    counts: Mapping[str, int] = field(factory=dict)
    skipped: tuple[SkippedEntry, ...] = ()


def export(data_dir: Path, target: Path | BinaryIO) -> ExportReport:
    """Write everything a person owns to a file (atomically, 0600) or to a stream, line by line.

    Equal contents give equal bytes. Raise StoreError, StoreCorruptError if a file cannot be read as a whole.
    """
    if not isinstance(target, Path):
        return _write(data_dir, target)
    with _replacing(target) as stream:
        return _write(data_dir, stream)


def _write(data_dir: Path, stream: BinaryIO) -> ExportReport:
    counts: Counter[str] = Counter()
    skipped: list[SkippedEntry] = []
    stream.write(encode(header()))
    for item in _items(data_dir):
        if isinstance(item, SkippedEntry):
            skipped.append(item)
            continue
        try:
            line = encode(as_line(item))
        except RecordError as error:  # what only a hand or a file system can have made
            skipped.append(SkippedEntry(kind_of(item), error.message, keep=True))
            continue
        stream.write(line)
        counts[kind_of(item)] += 1
    stream.write(encode(end(counts.total())))
    return ExportReport(dict(counts), tuple(skipped))


def _items(data_dir: Path) -> Iterator[Item | SkippedEntry]:
    yield from Workspaces(data_dir / WORKSPACES_FILE).all().values()
    core = CoreMemory(data_dir / CORE_FILE).get()
    for section in SECTIONS:
        for key, value in getattr(core, section).items():
            yield CoreFact(section, key, value)
    replayed = SavedJournal(data_dir / SAVED_FILE).read()
    yield from replayed.memories
    yield from map(_broken, replayed.bad)
    journal = Journal(data_dir / CONVERSATIONS)
    listing = journal.files()
    for file in listing.files:
        for line in journal.read_file(file):
            yield (
                _broken(line)
                if isinstance(line, BadLine)
                else MessageRecord(file.chat, file.day.isoformat(), line.message)
            )
    yield from listing.skipped
    summaries = SummaryFiles(data_dir / SUMMARIES)
    for chat in summaries.listing():
        if isinstance(chat, SkippedEntry):
            yield chat
            continue
        for told in summaries.lines(chat):
            yield _broken(told) if isinstance(told, BadLine) else SummaryRecord(chat, told)

    for place in sorted((data_dir / "agents").glob("*/")):
        reason = f"an agent's memory is exported by itself: klaw export --data-dir {place} FILE"
        yield SkippedEntry(f"agents/{place.name}", reason, keep=True)


def _broken(line: BadLine) -> SkippedEntry:
    return SkippedEntry(f"{line.file}@{line.offset}", line.reason, keep=True)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a stream to a private file that takes the place of ``path`` at the end of the block, whole or not at all."""
    place = Path(os.path.realpath(path))
    make_private_directory(place.parent)
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
