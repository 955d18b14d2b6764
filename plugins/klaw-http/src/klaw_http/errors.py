"""The errors of HTTP requests.

    HttpError (a KlawError)
    ├── NoAnswerError   no answer in time, or the server stayed busy
    ├── StatusError     the server refused the request
    └── BodyError       the server's answer is unusable

A plugin converts these into the errors of its Protocol (``EmbedderUnavailableError`` …), with its own hint. No message
contains a header, a key or the body of a request.
"""

from klaw_core import KlawError


class HttpError(KlawError):
    """Base of this library's errors."""


class NoAnswerError(HttpError):
    """The server could not be reached, fell silent, or stayed busy until the retries or the deadline ran out.

    ``status`` is the last status of a busy server, None if there was no answer. ``was_sent`` is False if the request
    was never sent, because there was no connection.
    """

    def __init__(self, message: str, *, hint: str = "", status: int | None = None, was_sent: bool = True) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.was_sent = was_sent


class StatusError(HttpError):
    """The server refused. ``status`` is the HTTP status, ``detail`` the server's message (may be empty)."""

    def __init__(self, message: str, *, hint: str = "", status: int, detail: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.detail = detail


class BodyError(HttpError):
    """The answer is too large, broken, or not a JSON object, or leads to no valid address."""
