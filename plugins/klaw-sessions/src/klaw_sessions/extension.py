"""The extension ``sessions``: shows failed hooks in ``klaw status`` and ``klaw doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from klaw_core import (
    CheckedExtension,
    Finding,
    StatusExtension,
)
from klaw_sessions.failures import FailureLog


@frozen(eq=False)
class Sessions(CheckedExtension, StatusExtension):
    """Reports on the hooks."""

    log: FailureLog
    name = "sessions"

    def status(self) -> dict[str, int | str]:
        """Return the number of hooks that failed in the last day, if there are any."""
        said = self._said()
        return {"hook_failures": f"{said} ({self.log.path})"} if said else {}

    def check(self) -> Iterable[Finding]:
        """Report hooks that failed in the last day."""
        if said := self._said():
            yield Finding(
                "hook-failures", "warning", said, str(self.log.path), "remove the file once the cause is fixed"
            )

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Fix nothing, because the user must fix the cause."""

    def _said(self) -> str:
        recent = self.log.recent()
        if not recent:
            return ""
        last = recent[-1]
        return f"{len(recent)} in a day, the last {last.moment:%Y-%m-%d %H:%M} UTC, {last.hook}: {last.reason}"
