"""The guard in front of everything: it checks who sends a request and from where, and limits size, time and rate.

Any page that a browser on this machine shows can reach a server on a loopback address. Three checks keep such a page
out: ``Host`` (the page's own name may point here), ``Origin``, and the token, which the page does not know. No response
allows another origin to read it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field
from starlette.exceptions import HTTPException

from klaw_core import KlawError
from klaw_serve.answers import json_body
from klaw_serve.metrics import Metrics
from klaw_serve.options import Limits, Listening
from klaw_serve.tokens import Tokens

Scope = dict[str, Any]
_LOG = logging.getLogger("klaw")
_AGENTS = "/agents/"
# Paths without private data: the files of the page, the description of the API, and the health check.
_OPEN = ("/", "/health", "/openapi.json")
_OPEN_BELOW = "/page/"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_MAX_ADDRESSES = 10_000


class _RefusedError(HTTPException):
    """A request that the guard refuses. If it is raised while the body is read, the application behind answers it."""


def bearer(headers: dict[bytes, bytes]) -> str:
    """Return the token of ``Authorization: Bearer``; empty if there is none."""
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def agent_of(path: str) -> tuple[str, str]:
    """Return the agent that a path names (``""`` for the owner), and the rest of the path."""
    if not path.startswith(_AGENTS):
        return "", path
    name, slash, rest = path.removeprefix(_AGENTS).partition("/")
    return name, f"{slash}{rest}" or "/"


@define(eq=False)
class Guard:
    """An ASGI application that wraps another."""

    app: Callable[..., Any]
    listening: Listening
    limits: Limits
    tokens: Tokens
    metrics: Metrics
    _rates: dict[str, tuple[float, float]] = field(factory=dict, init=False)

    async def __call__(self, scope: Scope, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope)
        except _RefusedError as refused:
            await self._refuse(scope, send, refused)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
        else:
            await self._http(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.listening.accepts(_without_port(host)):
            raise _RefusedError(
                421, "the Host header has a name that this server does not accept; start it with --allow-host NAME"
            )
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).netloc.lower() != host.lower():
            raise _RefusedError(403, "requests from other sites are not allowed")
        self._count(scope)
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self.limits.body_bytes:
            raise _RefusedError(413, f"the body may have at most {self.limits.body_bytes:,} bytes")
        agent, path = agent_of(scope["path"])
        scope["klaw.agent"], scope["klaw.path"] = agent, path
        token = bearer(headers)
        if path in _OPEN or path.startswith(_OPEN_BELOW):
            return
        if not token and scope["type"] == "websocket":
            return  # the first frame has the token
        if not self.accepts(token, agent):
            raise _RefusedError(401, "the token is missing or wrong; `klaw serve token` prints it")
        scope["klaw.authorised"] = True

    def accepts(self, token: str, agent: str) -> bool:
        """Return whether a token opens an agent's memory. If the token's file cannot be read, no token does."""
        try:
            return self.tokens.accept(token, agent)
        except KlawError as error:
            _LOG.warning("%s", error)
            return False

    def _count(self, scope: Scope) -> None:
        """Refuse an address that sends too many requests (a token bucket for each address)."""
        address = (scope.get("client") or ("local",))[0]
        rate, now = self.limits.requests_per_second, time.monotonic()
        left, then = self._rates.get(address, (2 * rate, now))
        left = min(2 * rate, left + (now - then) * rate) - 1
        if len(self._rates) >= _MAX_ADDRESSES:
            self._rates.clear()
        self._rates[address] = (max(left, 0.0), now)
        if left < 0:
            raise _RefusedError(429, "too many requests")

    async def _http(self, scope: Scope, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        began = False
        taken = 0

        async def take() -> Any:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.limits.body_bytes:
                raise _RefusedError(413, f"the body may have at most {self.limits.body_bytes:,} bytes")
            return message

        async def give(message: Any) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                if _is_stream(message):
                    deadline.reschedule(None)
                message = {**message, "headers": [*message.get("headers", ()), *_added(message)]}
            await send(message)

        try:
            async with asyncio.timeout(self.limits.request_seconds + 1) as deadline:
                await self.app(scope, take, give)
        except TimeoutError:
            if began:
                raise
            await self._refuse(scope, send, _RefusedError(408, "the request or its response took too long"))
        except _RefusedError as refused:
            if began:
                raise
            await self._refuse(scope, send, refused)

    async def _refuse(self, scope: Scope, send: Callable[[Any], Any], refused: _RefusedError) -> None:
        self.metrics.refused[refused.status_code] += 1
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 4000 + refused.status_code})
            return
        body = json_body({"error": refused.detail})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *_HEADERS,
        ]
        if refused.status_code == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        if refused.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _without_port(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_stream(message: Any) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in message["headers"]
    )


def _added(message: Any) -> list[tuple[bytes, bytes]]:
    given = {name.lower() for name, _ in message.get("headers", ())}
    return [(name, value) for name, value in _HEADERS if name not in given]
