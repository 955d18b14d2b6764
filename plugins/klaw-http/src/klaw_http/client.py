"""JSON over HTTP for servers that may be slow, busy, broken or hostile."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import field, frozen, validators

from klaw_http.bodies import error_detail, parse_json, parse_object, read_body, retry_delay_seconds
from klaw_http.deadline import SECONDS, Deadline, DeadlineError
from klaw_http.errors import BodyError, NoAnswerError, StatusError
from klaw_http.retrying import BUSY, LaterError, backoff_seconds, retry_after_seconds
from klaw_http.urls import http_url

if TYPE_CHECKING:
    import ssl

    import httpx2

_ERROR_BODY_BYTES = 64 * 1024
_MIN_SECRET_CHARACTERS = 6
_MAX_DETAIL_CHARACTERS = 300
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2


def _sendable(_instance: object, _attribute: object, headers: Mapping[str, str]) -> None:
    """Refuse a header that cannot be sent, without showing its value, which may be a key with a line end.

    h11 would refuse it too (RFC 9110, 5.5), but with the value in its message.
    """
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid header name")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise ValueError(
                f"header {name}: its value starts or ends with white space, or has characters that HTTP cannot send"
            )


@frozen
class _Request:
    """A request, and the maximum size of its answer. ``body`` are arguments of httpx2: ``content``, or a form."""

    method: str
    path: str
    limit_bytes: int
    body: Mapping[str, Any] = field(factory=dict)


def _every_refusal(_error: StatusError) -> bool:
    return True


@frozen(eq=False)
class HttpClient:
    """Requests JSON or a file from one server.

    ``headers`` contain the keys; they appear in no repr, log or message. ``deadline_seconds`` limits a whole call with
    its retries, ``read_timeout_seconds`` the server's silence. Temporary failures (no connection, a broken one, 429,
    502, 503, 504) are retried up to ``retries`` times, after a jittered, doubling pause or the server's
    ``Retry-After``, never beyond the deadline. Other refusals are retried unless ``is_final`` returns True, because the
    meaning of a 500 depends on the server. A request that must not be repeated needs a client without retries.
    Unpacked bodies are limited to ``max_response_bytes``. Calls share nothing, so a client may be used from several
    threads and after a fork.
    """

    base_url: str = field(validator=http_url)
    headers: Mapping[str, str] = field(factory=dict, repr=False, validator=_sendable)
    connect_timeout_seconds: float = field(default=5.0, validator=SECONDS)
    read_timeout_seconds: float = field(default=60.0, validator=SECONDS)
    deadline_seconds: float = field(default=120.0, validator=SECONDS)
    retries: int = field(default=2, validator=validators.ge(0))
    max_response_bytes: int = field(default=64 * 1024 * 1024, validator=validators.gt(0))
    is_final: Callable[[StatusError], bool] = field(default=_every_refusal, repr=False)
    pause: Callable[[float], None] = field(default=time.sleep, repr=False)

    def post(self, path: str, body: Mapping[str, object], /) -> dict[str, Any]:
        """Send a JSON object to ``path`` and return the JSON object that comes back. Raise HttpError."""
        return self._json(_Request("POST", path, self.max_response_bytes, _json_body(body)))

    def ask(self, path: str, body: Mapping[str, object], /) -> Any:
        """Send a JSON object to ``path`` and return any JSON value, such as a list. Raise HttpError."""
        return self._call(_Request("POST", path, self.max_response_bytes, _json_body(body)), parse_json)

    def get(self, path: str, /) -> dict[str, Any]:
        """Return the JSON object at ``path``. Raise HttpError."""
        return self._json(_Request("GET", path, self.max_response_bytes))

    def put(self, path: str, body: Mapping[str, object], /) -> dict[str, Any]:
        """Put a JSON object at ``path`` and return the JSON object that comes back. Raise HttpError."""
        return self._json(_Request("PUT", path, self.max_response_bytes, _json_body(body)))

    def delete(self, path: str, /) -> dict[str, Any]:
        """Delete what is at ``path`` and return the JSON object that comes back. Raise HttpError."""
        return self._json(_Request("DELETE", path, self.max_response_bytes))

    def upload(self, path: str, fields: Mapping[str, str], name: str, content: bytes, /) -> dict[str, Any]:
        """Send form fields, and a file in the field ``file``; return the answer, a JSON object. Raise HttpError."""
        form = {"data": fields, "files": {"file": (name, content, "application/octet-stream")}}
        return self._json(_Request("POST", path, self.max_response_bytes, form))

    def fetch(self, path: str, limit_bytes: int, /) -> bytes:
        """Return the content at ``path``, of any type, at most ``limit_bytes``. Raise HttpError."""
        body: bytes = self._call(_Request("GET", path, limit_bytes), bytes)
        return body

    def _json(self, request: _Request) -> dict[str, Any]:
        answer: dict[str, Any] = self._call(request, parse_object)
        return answer

    def _call(self, request: _Request, parse: Callable[[bytes], Any]) -> Any:
        from klaw_http.transport import open_client

        deadline = Deadline(self.deadline_seconds)
        timeout = (self.connect_timeout_seconds, self.read_timeout_seconds)
        where = self._where(request.path)
        with open_client(deadline, self._ssl_context, timeout) as client:
            attempt, was_sent = 1, False
            while True:
                try:
                    return self._attempt(client, deadline, request, parse)
                except LaterError as failure:
                    failure.was_sent = was_sent = was_sent or failure.was_sent
                    wait = max(failure.retry_after_seconds, backoff_seconds(attempt))
                    if attempt > self.retries:
                        raise failure.last(f"{where} {failure} ({attempt} attempts)") from failure
                    if wait >= deadline.remaining():
                        raise failure.last(
                            f"{where} {failure}; a retry after {wait:.0f} s would exceed the "
                            f"deadline of {deadline.seconds:g} s"
                        ) from failure
                self.pause(wait)
                attempt += 1

    def _attempt(
        self, client: httpx2.Client, deadline: Deadline, request: _Request, parse: Callable[[bytes], Any]
    ) -> Any:
        headers = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": "klaw", **self.headers}
        if "content" in request.body:
            headers["content-type"] = "application/json"
        url = self._where(request.path)
        with (
            self._failures_named(request.path, deadline),
            client.stream(request.method, url, headers=headers, **request.body) as response,
        ):
            if not response.is_success:
                raise self._refusal(request.path, response)
            return parse(read_body(response.iter_raw(), _encoding(response), request.limit_bytes))

    @contextmanager
    def _failures_named(self, path: str, deadline: Deadline) -> Iterator[None]:
        """Convert exceptions of httpx2 and httpcore2 into this library's errors, which name the server."""
        from klaw_http.transport import TIMEOUTS, TRANSIENT, UNCONNECTED, UNUSABLE

        where = self._where(path)
        try:
            yield
        except BodyError as error:
            raise BodyError(f"{where}: {error.message}") from error
        except (DeadlineError, *TIMEOUTS, *TRANSIENT) as error:
            if deadline.remaining() <= 0:
                raise NoAnswerError(f"{where} did not finish within {deadline.seconds:g} s") from error
            if isinstance(error, TRANSIENT):
                reason = f"cannot be reached: {str(error) or type(error).__name__}"
                raise LaterError(reason, was_sent=not isinstance(error, UNCONNECTED)) from error
            raise NoAnswerError(f"{where} was silent for {self.read_timeout_seconds:g} s") from error
        except UNUSABLE as error:
            raise BodyError(f"{where} is not a valid address") from error

    def _refusal(self, path: str, response: httpx2.Response) -> Exception:
        status = response.status_code
        if response.is_redirect:
            return StatusError(
                f"{self._where(path)} answers {status}, a redirect, which is not followed; configure its target",
                status=status,
            )
        body = _error_body(response)
        detail = self.without_secrets(error_detail(body))[:_MAX_DETAIL_CHARACTERS]
        said = f"answers {status}: {detail}" if detail else f"answers {status}"
        retry_after = max(retry_after_seconds(response.headers.get("retry-after")), retry_delay_seconds(body))
        refusal = StatusError(f"{self._where(path)} {said}", status=status, detail=detail)
        passes = status in BUSY or not self.is_final(refusal)
        return LaterError(said, retry_after, refusal) if passes else refusal

    def _where(self, path: str) -> str:
        return self.base_url.rstrip("/") + path

    def without_secrets(self, text: str) -> str:
        """Remove the values of headers from a text, because some servers repeat a wrong key in their answer."""
        for value in self.headers.values():
            for word in value.split():
                if len(word) >= _MIN_SECRET_CHARACTERS:
                    text = text.replace(word, "***")
        return text

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext | None:
        if not self.base_url.startswith("https:"):
            return None
        from klaw_http.transport import default_ssl_context

        return default_ssl_context()


def _json_body(value: Mapping[str, object]) -> dict[str, bytes]:
    """Return a JSON body in ASCII, because ``json=`` of httpx2 cannot send a lone surrogate."""
    return {"content": json.dumps(value).encode("ascii")}


def _error_body(response: httpx2.Response) -> bytes:
    """Return the body of a refusal; empty if it cannot be read."""
    from klaw_http.transport import TIMEOUTS, TRANSIENT

    try:
        return read_body(response.iter_raw(), _encoding(response), _ERROR_BODY_BYTES)
    except (BodyError, DeadlineError, *TIMEOUTS, *TRANSIENT):
        return b""  # an unreadable body must not hide the status


def _encoding(response: httpx2.Response) -> str:
    encoding: str = response.headers.get("content-encoding", "")
    return encoding.strip().lower()
