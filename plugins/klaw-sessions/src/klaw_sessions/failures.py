"""The log of failed hooks, because a hook must not show errors to the agent."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import frozen

from klaw_core import Descriptor, KlawError, read_regular, require_own_link, write_atomically
from klaw_redaction import Redactor

_MAX_BYTES = 64 * 1024
_RECENT = timedelta(days=1)


@frozen
class HookFailure:
    """A failed hook."""

    moment: datetime
    hook: str
    reason: str


@frozen
class FailureLog:
    """The file ``hook.log``, one line per failure, oldest first."""

    path: Path

    @classmethod
    def of(cls, data_dir: Path) -> FailureLog:
        """Return the log of a data directory."""
        return cls(data_dir / "hook.log")

    def add(self, hook: str, reason: str) -> None:
        """Add a failure; do nothing if that is impossible."""
        from klaw_journals import format_ts  # here, because most hooks do not fail

        reason = " ".join(Redactor().text(reason).split())
        line = f"{format_ts(datetime.now(UTC))} {hook}: {reason[:1000]}\n"
        with suppress(OSError, KlawError):
            if self.path.exists() and self.path.stat().st_size > _MAX_BYTES:
                newest = read_regular(self.path).decode("utf-8", "replace")[-_MAX_BYTES // 2 :]
                write_atomically(self.path, newest.partition("\n")[2])
            require_own_link(self.path)
            with Descriptor(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
                os.write(descriptor, line.encode())

    def recent(self) -> tuple[HookFailure, ...]:
        """Return the failures of the last day, oldest first."""
        since = datetime.now(UTC) - _RECENT
        return tuple(failure for failure in self._all() if failure.moment >= since)

    def _all(self) -> list[HookFailure]:
        from klaw_journals import parse_ts

        try:
            lines = read_regular(self.path).decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            stamp, _, rest = line.partition(" ")
            hook, _, reason = rest.partition(": ")
            with suppress(KlawError):  # an incomplete line after a crash
                found.append(HookFailure(parse_ts(stamp), hook, reason))
        return found
