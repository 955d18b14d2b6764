"""Changes of files, reported by the system, or found by polling if it cannot report them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import define, field
from watchfiles import Change, watch

from klaw_core import Flag

_STEP_MS = 50
_GATHER_MS = 400
_WAIT_MS = 500
_SCAN_MS = 10_000

#: The kind of a change, and the path.
FileChange = tuple[Change, Path]

_ChangeStream = Generator[set[tuple[Change, str]], None, None]


@define(eq=False)
class FileEvents:
    """Reports changes below some paths, until ``stop`` is set.

    ``scanning`` is the reason why files are polled every few seconds; empty if the system reports changes.
    """

    stop: Flag
    scan_ms: int = _SCAN_MS
    scanning: str = ""
    _changes: _ChangeStream | None = field(default=None, init=False)

    def watch(self, paths: Sequence[Path]) -> set[FileChange]:
        """Watch these paths from now on; return the changes in the meantime.

        Paths that were already watched are watched without interruption.
        """
        before, self._changes = self._changes, None
        changes: set[FileChange] = set()
        try:
            changes |= self._begin(paths)
        except Exception as error:  # noqa: BLE001  # no handles are left, or the kernel has no support; the exceptions differ
            self.scanning = str(error) or type(error).__name__
            changes |= self._begin(paths)
        if before is not None:
            changes |= _next(before)
            before.close()
        return changes

    def wait(self) -> set[FileChange] | None:
        """Return the changes, after half a second at most; None if the paths must be watched again."""
        if self._changes is None:
            self.stop.wait(_WAIT_MS / 1000)
            return set()
        try:
            changes = _next(self._changes)
            self._probe([path for change, path in changes if change is Change.added and path.is_dir()])
        except Exception as error:  # noqa: BLE001  # as above
            self.scanning = str(error) or type(error).__name__
            self.close()
            return None
        return changes

    def _probe(self, directories: Sequence[Path]) -> None:
        """Raise OSError if new directories cannot be watched; watchfiles does not report a later lack of handles."""
        if directories and not self.scanning:
            stream = self._open(directories)
            with suppress(FileNotFoundError):  # it was deleted in the meantime
                _next(stream)
            stream.close()

    def close(self) -> None:
        """Stop watching."""
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def _begin(self, paths: Sequence[Path]) -> set[FileChange]:
        """Start to watch paths; the system reports changes from the return of this function on."""
        if not paths:
            return set()
        stream = self._open(paths)
        changes = _next(stream)
        self._changes = stream
        return changes

    def _open(self, paths: Sequence[Path]) -> _ChangeStream:
        # With `ignore_permission_denied`, watchfiles would also ignore that no handles are left.
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


def _next(stream: _ChangeStream) -> set[FileChange]:
    return {(change, Path(path)) for change, path in next(stream, set())}
