"""Download a large file of known size. The caller checks its SHA-256.

Unlike :class:`~klaw_http.client.HttpClient` this follows redirects, because model hubs redirect to their content
network: a limited number, never from https to http. A download sends neither keys nor a body.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn
from urllib.parse import urljoin, urlsplit, urlunsplit

from attrs import field, frozen, validators

from klaw_http.deadline import SECONDS, Deadline, DeadlineError
from klaw_http.errors import BodyError, StatusError
from klaw_http.retrying import LaterError, backoff_seconds, retry_after_seconds
from klaw_http.urls import names_a_host

if TYPE_CHECKING:
    import ssl

    import httpx2

# Statuses of a content network that may be temporary, including 500, unlike for a model's server.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_RANGE_NOT_SATISFIABLE = 416
_MAX_REDIRECTS = 5
_MAX_URL_CHARACTERS = 16_384
_MAX_PAUSE_SECONDS = 60.0


@frozen
class DownloadLimits:
    """Time limits of a download.

    ``read_timeout_seconds`` limits the server's silence. Each ``stretch_bytes`` must arrive within
    ``stretch_seconds``, the headers with the first, so that a very slow server also ends the attempt. ``retries``
    counts consecutive attempts that received less than a stretch.
    """

    connect_timeout_seconds: float = field(default=10.0, validator=SECONDS)
    read_timeout_seconds: float = field(default=30.0, validator=SECONDS)
    stretch_bytes: int = field(default=256 * 1024, validator=validators.gt(0))
    stretch_seconds: float = field(default=120.0, validator=SECONDS)
    retries: int = field(default=4, validator=validators.ge(0))
    pause: Callable[[float], None] = field(default=time.sleep, repr=False)


def download(
    url: str,
    target: Path,
    *,
    size: int,
    on_bytes: Callable[[int], None] = lambda _done: None,
    limits: DownloadLimits | None = None,
) -> None:
    """Write the file at ``url``, ``size`` bytes long, to ``target``, a new file, and fsync it.

    A broken or silent connection is retried, and continued at the same byte if the server supports it. ``on_bytes`` is
    called with the number of bytes received. Raise HttpError; OSError if the file cannot be written. After an error,
    ``target`` may be a part of the file.
    """
    with target.open("xb") as stream:
        _Download(url, stream, size, on_bytes, limits or DownloadLimits()).run()
        stream.flush()
        os.fsync(stream.fileno())


def without_query(url: str) -> str:
    """Return a URL for messages, without the query, which is a signature on content networks."""
    return urlunsplit((*urlsplit(url)[:3], "", ""))


def redirected(url: str, location: str) -> str:
    """Return the target of a redirect. Raise BodyError if it is not allowed.

    Allowed are http and https without credentials, but never from https to http.
    """
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        valid = names_a_host(parts) and target.isascii() and target.isprintable()
    except ValueError:
        valid = False
    if not valid or len(target) > _MAX_URL_CHARACTERS:
        raise BodyError(f"{without_query(url)} redirects to an invalid address")
    if parts.username is not None or parts.password is not None:
        raise BodyError(f"{without_query(url)} redirects to an address with credentials, which is not followed")
    if parts.scheme not in {"http", "https"} or (parts.scheme == "http" and urlsplit(url).scheme == "https"):
        raise BodyError(f"{without_query(url)} redirects to {parts.scheme}://{parts.hostname}, which is not encrypted")
    return urlunsplit((*parts[:4], ""))


class _Download:
    """The download of one file, over as many connections as necessary."""

    def __init__(
        self, url: str, stream: BinaryIO, size: int, on_bytes: Callable[[int], None], limits: DownloadLimits
    ) -> None:
        self._url = url
        self._stream = stream
        self._size = size
        self._on_bytes = on_bytes
        self._limits = limits
        self._done = 0

    def run(self) -> None:
        """Fetch until all bytes are received. Raise HttpError or OSError."""
        failures = 0
        while True:
            before = self._done
            try:
                self._attempt()
            except LaterError as failure:
                if self._done == self._size:  # the connection broke after the last byte
                    return
                failures = 1 if self._done - before >= self._limits.stretch_bytes else failures + 1
                if failures > self._limits.retries:
                    raise failure.last(
                        f"{without_query(self._url)} {failure} after {self._done:,} of {self._size:,} bytes"
                    ) from failure
                wait = max(backoff_seconds(failures), failure.retry_after_seconds)
            else:
                return
            self._limits.pause(min(wait, _MAX_PAUSE_SECONDS))

    def _attempt(self) -> None:
        from klaw_http.transport import TIMEOUTS, TRANSIENT, UNUSABLE, default_ssl_context, open_client

        pace = Deadline(self._limits.stretch_seconds)
        timeout = (self._limits.connect_timeout_seconds, self._limits.read_timeout_seconds)
        context: ssl.SSLContext = default_ssl_context()
        url = self._url
        try:
            with open_client(pace, context, timeout) as client:
                for _ in range(_MAX_REDIRECTS + 1):
                    with client.stream("GET", url, headers=self._headers()) as response:
                        if not response.is_redirect:
                            self._take(url, response, pace)
                            return
                        url = redirected(url, response.headers.get("location", ""))
            raise BodyError(f"{without_query(self._url)} redirects more than {_MAX_REDIRECTS} times")
        except TRANSIENT as error:
            raise LaterError(f"cannot be reached: {str(error) or type(error).__name__}") from error
        except (DeadlineError, *TIMEOUTS) as error:
            raise LaterError("sent no data, or almost none") from error
        except UNUSABLE as error:
            raise BodyError(f"{without_query(url)} is not a valid address") from error

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "klaw"}
        return headers | {"range": f"bytes={self._done}-"} if self._done else headers

    def _take(self, url: str, response: httpx2.Response, pace: Deadline) -> None:
        """Append the response to the file. Raise LaterError if it is incomplete."""
        where = without_query(url)
        if not response.is_success:
            self._refuse(where, response)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise BodyError(f"{where} sends the file compressed, which was not requested")
        if response.status_code != 206 or self._begin_of(response) != self._done:  # noqa: PLR2004  # Partial Content
            self._restart()
        length = response.headers.get("content-length", "")
        if length.isdecimal() and self._done + int(length) != self._size:
            raise BodyError(f"the file at {where} has {self._done + int(length):,} bytes, expected {self._size:,}")
        stretch = 0
        for piece in response.iter_raw():
            self._stream.write(piece)
            self._done += len(piece)
            stretch += len(piece)
            if self._done > self._size:
                raise BodyError(f"the file at {where} has more than the expected {self._size:,} bytes")
            self._on_bytes(self._done)
            if stretch >= self._limits.stretch_bytes:
                stretch = 0
                pace.renew()
        if self._done < self._size:
            raise LaterError("closed the connection")

    def _begin_of(self, response: httpx2.Response) -> int:
        """Return the first byte of a partial response: ``Content-Range: bytes 5-9/10`` (RFC 9110, 14.4)."""
        said = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
        return int(said[1]) if said else -1

    def _restart(self) -> None:
        self._stream.seek(0)
        self._stream.truncate()
        self._done = 0

    def _refuse(self, where: str, response: httpx2.Response) -> NoReturn:
        status = response.status_code
        if status in _PASSING:
            raise LaterError(f"answers {status}", retry_after_seconds(response.headers.get("retry-after")))
        if status == _RANGE_NOT_SATISFIABLE and self._done:
            self._restart()
            raise LaterError("cannot resume the download")
        raise StatusError(f"{where} answers {status}", status=status)
