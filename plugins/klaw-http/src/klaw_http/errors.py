"""What can go wrong between a request and its answer.

    HttpError (a KlawError)
    ├── NoAnswerError   nobody answered in time, or only to say "later"
    ├── StatusError     the server answered, and refused
    └── BodyError       the server agreed, but its answer cannot be used

A plugin turns these into the errors of its Protocol (``EmbedderUnavailableError`` …), with a hint that
only it can give. No message holds a header, a key or a request's body.
"""

from klaw_core import KlawError


class HttpError(KlawError):
    """Base of this library's errors."""


class NoAnswerError(HttpError):
    """The server could not be reached, fell silent, or stayed busy until the retries or the deadline ran out.

    ``status`` is what a busy one last said, None if nobody said anything. ``was_sent`` is False if the request was
    never sent, because there was no connection.
    """

    def __init__(self, message: str, *, hint: str = "", status: int | None = None, was_sent: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.was_sent = was_sent


class StatusError(HttpError):
    """The server refused. ``status`` is the HTTP status, ``detail`` the server's own words (may be empty)."""

    def __init__(self, message: str, *, hint: str = "", status: int, detail: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.detail = detail


class BodyError(HttpError):
    """The answer is too large, broken, or not a JSON object, or leads to no valid address."""
