"""When to retry an attempt; shared by the client and downloads."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from klaw_http.errors import NoAnswerError, StatusError

#: The status of a server that cannot answer now.
BUSY = frozenset({429, 502, 503, 504})
_FIRST_PAUSE_SECONDS = 0.25
_MAX_DOUBLINGS = 5  # to 8 s


class LaterError(Exception):
    """An attempt failed in a way that may be temporary. ``refusal`` is the server's message, if it answered.

    ``was_sent`` is False if the request was not sent because there was no connection.
    """

    def __init__(
        self,
        message: str,
        retry_after_seconds: float = 0.0,
        refusal: StatusError | None = None,
        *,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.was_sent = was_sent
        self._refusal = refusal

    def last(self, message: str) -> NoAnswerError | StatusError:
        """Return the error to raise if there is no further attempt."""
        refusal = self._refusal
        if refusal is None or refusal.status in BUSY:
            return NoAnswerError(message, status=refusal.status if refusal else None, was_sent=self.was_sent)
        return StatusError(message, status=refusal.status, detail=refusal.detail)


def backoff_seconds(attempt: int) -> float:
    """Return the pause after an attempt (the first is 1): doubling, half of it random.

    The jitter prevents clients that failed together from retrying together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """
    full = _FIRST_PAUSE_SECONDS * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)
    return random.uniform(full / 2, full)  # noqa: S311  # spreads load, protects nothing


def retry_after_seconds(value: str | None) -> float:
    """Parse ``Retry-After``, seconds or a date (RFC 9110, 10.2.3); an invalid value counts as absent."""
    if value is None:
        return 0.0
    if value.strip().isdecimal():
        return float(value)
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
