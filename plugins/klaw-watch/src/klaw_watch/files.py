"""Changes of files, as the system tells them, or by looking again and again where it cannot."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import define, field
from watchfiles import Change, watch

_STEP_MS = 50
_GATHER_MS = 400
_WAIT_MS = 500
_SCAN_MS = 10_000

#: What happened to a path.
FileChange = tuple[Change, Path]

_Told = Generator[set[tuple[Change, str]], None, None]


@define(eq=False)
class FileEvents:
    """Tells of changes below some paths, until ``stop`` is set.

    ``scanning`` says why files are looked at every few seconds instead of being told of; empty if they are not.
    """

    stop: threading.Event
    scan_ms: int = _SCAN_MS
    scanning: str = ""
    _told: _Told | None = field(default=None, init=False)

    def watch(self, paths: Sequence[Path]) -> set[FileChange]:
        """Watch these paths from now on; return what changed meanwhile.

        What was watched before, and still is, is watched all the while.
        """
        before, self._told = self._told, None
        changes: set[FileChange] = set()
        try:
            changes |= self._begin(paths)
        except Exception as error:  # noqa: BLE001  # handles ran out, or the kernel has none: what is raised differs
            self.scanning = str(error) or type(error).__name__
            changes |= self._begin(paths)
        if before is not None:
            changes |= _next(before)
            before.close()
        return changes

    def wait(self) -> set[FileChange] | None:
        """Return what changed, after half a second at the latest; None if these paths must be watched anew."""
        if self._told is None:
            self.stop.wait(_WAIT_MS / 1000)
            return set()
        try:
            changes = _next(self._told)
            self._probe([path for change, path in changes if change is Change.added and path.is_dir()])
        except Exception as error:  # noqa: BLE001  # as above
            self.scanning = str(error) or type(error).__name__
            self.close()
            return None
        return changes

    def _probe(self, directories: Sequence[Path]) -> None:
        """Raise OSError if new directories cannot be watched: where handles run out later, nothing else says so."""
        if directories and not self.scanning:
            told = self._open(directories)
            with suppress(FileNotFoundError):  # it is gone again
                _next(told)
            told.close()

    def close(self) -> None:
        """Watch nothing any more."""
        if self._told is not None:
            self._told.close()
            self._told = None

    def _begin(self, paths: Sequence[Path]) -> set[FileChange]:
        """Watch paths; the system does so once this returns."""
        if not paths:
            return set()
        told = self._open(paths)
        changes = _next(told)
        self._told = told
        return changes

    def _open(self, paths: Sequence[Path]) -> _Told:
        # Told to pass over what it may not read, watchfiles would pass over handles that run out as well.
        return watch(
            *paths,
            watch_filter=None,
            debounce=_GATHER_MS,
            step=_STEP_MS,
            stop_event=self.stop,
            rust_timeout=_WAIT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=bool(self.scanning),
            poll_delay_ms=self.scan_ms,
            ignore_permission_denied=bool(self.scanning),
        )


def _next(told: _Told) -> set[FileChange]:
    return {(change, Path(path)) for change, path in next(told, set())}
