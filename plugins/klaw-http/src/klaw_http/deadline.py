"""One end for everything a call does: connecting, sending, waiting, reading, and trying again."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from attrs import validators

#: Validates how many seconds something may take: a day at most, since no socket takes an infinity.
SECONDS: Callable[[Any, Any, float], Any] = validators.and_(validators.gt(0), validators.le(86_400.0))


class DeadlineError(Exception):
    """The deadline has passed."""


class Deadline:
    """A moment on the monotonic clock, ``seconds`` after this was made or renewed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Give the whole time again, from now on."""
        self._at = monotonic() + self.seconds

    def remaining(self) -> float:
        """Return the seconds that are left; negative once it has passed."""
        return self._at - monotonic()

    def limit(self, timeout_seconds: float | None) -> float:
        """Return the timeout, or what is left if that is less. Raise DeadlineError if nothing is."""
        left = self.remaining()
        if left <= 0:
            raise DeadlineError
        return left if timeout_seconds is None else min(timeout_seconds, left)
