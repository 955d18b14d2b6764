"""How often searches and contexts found each document: counts, which are collected in memory and written later.

A search only adds to a dictionary. The counts are appended to ``facts/recalls.jsonl`` in one write, without waiting for
the disk, in a thread once a minute and when the memory closes. If that fails, the counts are lost and nothing else is.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from attrs import define, field, frozen

from klaw_core import (
    CloseEvent,
    Event,
    FileLock,
    ForgetEvent,
    KlawError,
    ListeningExtension,
    SearchEvent,
    ThreadLock,
    own_directory,
    read_regular,
)

_FILE = "recalls.jsonl"
# Results of a search that count: a person or a model hardly looks further.
_COUNTED = 10
_SECONDS = 60.0
# Seconds that a write waits for another process; then it is tried again with the next one.
_LOCK_SECONDS = 1.0
# The file is written anew, with one line, when it is larger.
_MAX_BYTES = 1 << 18
_MAX_READ_BYTES = 64 << 20


@frozen
class Recalled:
    """How often a document was found, and the last day (UTC) on which it was."""

    count: int
    day: str


@define(eq=False)
class RecallCounts(ListeningExtension):
    """Counts what searches find. ``directory`` is that of the facts; the counts of a forgotten document are erased."""

    directory: Path
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _waiting: dict[str, int] = field(factory=dict, init=False)
    _gone: set[str] = field(factory=set, init=False)  # paths that are still to be erased from the file
    _since: float = field(default=0.0, init=False)
    _guard: ThreadLock = field(factory=lambda: ThreadLock("the counts of what was found"), init=False)

    name = "recalls"

    def on(self, event: Event, /) -> None:
        """Count the results of a search; write the counts at the end; erase those of what was forgotten."""
        if isinstance(event, SearchEvent):
            self.count(result.path for result in event.results[:_COUNTED] if not result.is_weak)
        elif isinstance(event, ForgetEvent):
            self.erase(event.paths)
        elif isinstance(event, CloseEvent):
            self.write()

    def count(self, paths: Iterable[str]) -> None:
        """Count each of these documents once; write the counts in a thread if the first of them is a minute old."""
        with self._guard.hold():
            for path in dict.fromkeys(paths):
                self._waiting[path] = self._waiting.get(path, 0) + 1
            now = time.monotonic()
            self._since = self._since or now
            is_due = now - self._since > _SECONDS
            self._since = 0.0 if is_due else self._since  # one thread is enough
        if is_due:
            threading.Thread(target=self.write, name="klaw-recalls", daemon=True).start()

    def write(self) -> None:
        """Append what was counted, once there are facts, and erase what was forgotten. An error is logged.

        If the file is locked for too long, the next call tries again. After another error, the counts are lost.
        """
        with self._guard.hold():
            self._since = 0.0
            if not self.directory.is_dir():
                self._waiting.clear()
                self._gone.clear()
            if not self._waiting and not self._gone:
                return
        with _errors_logged():
            own_directory(self.directory.parent, self.directory.name)
            with self._opened() as descriptor:
                self._store(descriptor)

    def _store(self, descriptor: int) -> None:
        """Write to the locked file.

        The counts are taken under its lock: who forgets a path finds it among them, or waits until it is in the file.
        """
        with self._guard.hold():
            counts, self._waiting = self._waiting, {}
            gone, self._gone = frozenset(self._gone), set()
        try:
            if gone:
                lines = _read(descriptor)
                if any(gone.intersection(found) for _, found in _parsed(lines)):
                    self._replace(descriptor, lines, gone)
            if not counts:
                return
            line = _line(self.now().date().isoformat(), counts)
            if os.lseek(descriptor, 0, os.SEEK_END) <= _MAX_BYTES:
                os.write(descriptor, line)
            else:
                self._replace(descriptor, [*_read(descriptor), line])
        except BaseException:
            with self._guard.hold():
                self._gone |= gone
            raise

    def erase(self, paths: Sequence[str]) -> None:
        """Erase the counts of documents, whose paths may say what was forgotten.

        An error is logged, and the next write tries again.
        """
        with self._guard.hold():
            for path in paths:
                self._waiting.pop(path, None)
            if not (self.directory / _FILE).exists():
                return
            self._gone.update(paths)
        self.write()

    def read(self) -> Mapping[str, Recalled]:
        """Return the counts by path, also those of other processes as far as they are written."""
        self.write()
        try:
            found = _folded([read_regular(self.directory / _FILE)[:_MAX_READ_BYTES]])
        except OSError:
            return {}
        with self._guard.hold():
            return {path: recalled for path, recalled in found.items() if path not in self._gone}

    def _opened(self) -> FileLock:
        return FileLock(self.directory / _FILE, os.O_RDWR | os.O_CREAT, limit_seconds=_LOCK_SECONDS)

    def _replace(self, descriptor: int, lines: Sequence[bytes], gone: frozenset[str] = frozenset()) -> None:
        """Write the file anew: a line for each last day. A crash may lose counts, and nothing else."""
        days: dict[str, dict[str, int]] = {}
        for path, found in _folded(lines).items():
            if path not in gone:
                days.setdefault(found.day, {})[path] = found.count
        content = b"".join(_line(day, counts) for day, counts in sorted(days.items()))
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, content)


@contextmanager
def _errors_logged() -> Iterator[None]:
    """Log errors of files and locks as details: what fails is only a count."""
    try:
        yield
    except (OSError, KlawError) as error:
        import logging  # a search needs none

        logging.getLogger("klaw").debug("what was found is not counted: %s", error)


def _line(day: str, counts: Mapping[str, int]) -> bytes:
    return json.dumps({"day": day, "found": counts}, separators=(",", ":")).encode() + b"\n"


def _read(descriptor: int) -> list[bytes]:
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return [b"".join(parts)]


def _parsed(parts: Iterable[bytes]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the lines. One that is torn or of another form is left out."""
    for line in b"".join(parts).splitlines():
        try:
            record = json.loads(line)
            counts = {str(path): int(count) for path, count in record["found"].items()}
            yield str(record["day"]), counts
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue


def _folded(parts: Iterable[bytes]) -> dict[str, Recalled]:
    found: dict[str, Recalled] = {}
    for day, counts in _parsed(parts):
        for path, count in counts.items():
            before = found.get(path, Recalled(0, ""))
            found[path] = Recalled(before.count + count, max(before.day, day))
    return found
