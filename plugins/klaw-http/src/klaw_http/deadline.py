"""One end for everything a call does: connecting, sending, waiting, reading, and trying again."""

from time import monotonic

from attrs import frozen


class DeadlineError(Exception):
    """The deadline has passed."""


@frozen
class Deadline:
    """A moment on the monotonic clock. ``seconds`` is how long was given (for messages)."""

    seconds: float
    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Return the deadline that many seconds from now."""
        return cls(seconds, monotonic() + seconds)

    def remaining(self) -> float:
        """Return the seconds that are left; negative once it has passed."""
        return self.at - monotonic()

    def limit(self, timeout_seconds: float | None) -> float:
        """Return the timeout, or what is left if that is less. Raise DeadlineError if nothing is."""
        left = self.remaining()
        if left <= 0:
            raise DeadlineError
        return left if timeout_seconds is None else min(timeout_seconds, left)
