"""The extension ``sessions``: tells ``klaw status`` and ``klaw doctor`` which hooks failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from klaw_core import Finding
from klaw_sessions.failures import FailureLog


@frozen(eq=False)
class Sessions:
    """Reports on the hooks."""

    log: FailureLog
    name = "sessions"

    def status(self) -> dict[str, int | str]:
        """Return how often hooks failed in the last day, if they did."""
        said = self._said()
        return {"hook_failures": f"{said} ({self.log.path})"} if said else {}

    def check(self) -> Iterable[Finding]:
        """Say that hooks failed in the last day."""
        if said := self._said():
            yield Finding(
                "hook-failures", "warning", said, str(self.log.path), "remove the file once the cause is fixed"
            )

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Fix nothing: only a person can."""

    def _said(self) -> str:
        recent = self.log.recent()
        if not recent:
            return ""
        last = recent[-1]
        return f"{len(recent)} in a day, the last {last.moment:%Y-%m-%d %H:%M} UTC, {last.hook}: {last.reason}"
