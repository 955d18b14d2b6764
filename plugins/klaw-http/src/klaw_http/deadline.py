"""One deadline for a whole call: connecting, sending, waiting, reading, and retries."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from attrs import validators

#: Validates a number of seconds: at most a day, because sockets do not accept infinity.
SECONDS: Callable[[Any, Any, float], Any] = validators.and_(validators.gt(0), validators.le(86_400.0))


class DeadlineError(Exception):
    """The deadline has passed."""


class Deadline:
    """A moment on the monotonic clock, ``seconds`` after this was made or renewed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Start the time again from now."""
        self._at = monotonic() + self.seconds

    def remaining(self) -> float:
        """Return the remaining seconds; negative after the deadline."""
        return self._at - monotonic()

    def limit(self, timeout_seconds: float | None) -> float:
        """Return the smaller of the timeout and the remaining time. Raise DeadlineError if none remains."""
        left = self.remaining()
        if left <= 0:
            raise DeadlineError
        return left if timeout_seconds is None else min(timeout_seconds, left)
