"""The guard in front of everything: it checks who sends a request and from where, and limits size, time and rate.

Any page that a browser on this machine shows can reach a server on a loopback address. Three checks keep such a page
out: ``Host`` (the page's own name may point here), ``Origin``, and the token, which the page does not know. No response
allows another origin to read it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from attrs import define, field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from klaw_core import KlawError
from klaw_journals.trust import Trust
from klaw_serve.answers import json_body
from klaw_serve.calls import Caller
from klaw_serve.metrics import Metrics
from klaw_serve.options import Limits, Listening
from klaw_serve.signing_in import SignIn
from klaw_serve.tokens import Tokens

Scope = dict[str, Any]
_LOG = logging.getLogger("klaw")
_AGENTS = "/agents/"
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[^\s:@/,;\[\]]{1,255})(?::[0-9]{0,5})?")
# Paths without private data: the files of the page, the description of the API, and the health check.
_OPEN = ("/", "/health", "/openapi.json")
_OPEN_BELOW = "/page/"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# More buckets than this, and all are forgotten: each takes memory, and one may have many addresses.
_MAX_BUCKETS = 10_000


class _RefusedError(HTTPException):
    """A request that the guard refuses. If it is raised while the body is read, the application behind answers it."""


@define
class _Share:
    """Whose limits a running request counts for."""

    who: str


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
    sign_in: SignIn | None = None
    _rates: dict[tuple[str, str], tuple[float, float]] = field(factory=dict, init=False)
    _running: Counter[str] = field(factory=Counter, init=False)

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
        share = scope["klaw.share"] = _Share(_spender(scope))
        self._running[share.who] += 1
        try:
            if scope["type"] == "websocket":
                await self.app(scope, receive, send)
            else:
                await self._http(scope, receive, send)
        finally:
            self._end(share)

    def _check(self, scope: Scope) -> None:
        """Raise the refusal of a request. What another site sent is not counted: its sender is not known."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        hosts = sum(name.lower() == b"host" for name, _ in scope["headers"])
        if hosts > 1 or not self.listening.accepts(_without_port(host)):
            raise _RefusedError(
                421, "the Host header has a name that this server does not accept; start it with --allow-host NAME"
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in {f"http://{host}", f"https://{host}"}:
            raise _RefusedError(403, "requests from other sites are not allowed")
        agent, path = agent_of(scope["path"])
        scope["klaw.agent"], scope["klaw.path"] = agent, path
        token = bearer(headers)
        trust = (self.trust(token, agent) or self._granted(token, agent, path)) if token else None
        scope["klaw.authorised"], scope["klaw.caller"] = trust is not None, Caller(agent, trust or "foreign")
        self._count(scope)
        if not path.startswith("/"):  # OPTIONS *
            raise _RefusedError(400, "the target of the request must be a path")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self.limits.body_bytes:
            raise _RefusedError(413, f"the body may have at most {self.limits.body_bytes:,} bytes")
        if scope["klaw.authorised"] or path in _OPEN or path.startswith(_OPEN_BELOW) or self.is_sign_in(scope):
            return
        if token or scope["type"] != "websocket":  # the first frame of a WebSocket may have the token
            raise _RefusedError(401, "the token is missing or wrong; `klaw serve token` prints it")

    def is_sign_in(self, scope: Mapping[str, Any]) -> bool:
        """Return whether a request is one of those with which clients sign in."""
        return self.sign_in is not None and not scope["klaw.agent"] and scope["klaw.path"] in self.sign_in.paths

    def _granted(self, token: str, agent: str, path: str) -> Trust | None:
        """Return the class of a token that a client got by signing in: the owner's, in the owner's memory only."""
        return "owner" if self.sign_in is not None and not agent and self.sign_in.accepts(token, path) else None

    def trust(self, token: str, agent: str) -> Trust | None:
        """Return the class of a token in an agent's memory; None if it does not open it, or no file can be read."""
        try:
            return self.tokens.trust(token, agent)
        except KlawError as error:
            _LOG.warning("%s", error)
            return None

    def admit(self, token: str, scope: MutableMapping[str, Any]) -> bool:
        """Return whether the token in the first frame opens a WebSocket, which then counts as one with a token."""
        trust = self.trust(token, scope["klaw.agent"])
        scope["klaw.authorised"] = trust is not None
        scope["klaw.caller"] = Caller(scope["klaw.agent"], trust or "foreign")
        who = _spender(scope)
        if not scope["klaw.authorised"] or self._is_busy(scope, who):
            return False
        self._end(scope["klaw.share"])
        scope["klaw.share"].who = who
        self._running[who] += 1
        return True

    def _end(self, share: _Share) -> None:
        self._running[share.who] -= 1
        if not self._running[share.who]:
            del self._running[share.who]

    def _is_busy(self, scope: Mapping[str, Any], who: str) -> bool:
        """Return whether too many requests run. The owner's are limited only by the number of connections."""
        is_owners = scope["klaw.authorised"] and not scope["klaw.agent"]
        return not is_owners and self._running[who] >= self.limits.running

    def _count(self, scope: Scope) -> None:
        """Refuse a client that sends too many requests, on average or at once.

        Requests with a token are counted apart from those without one, which come from the same address: all programs
        of a machine have one address.
        """
        who = _spender(scope)
        rate, now = self.limits.requests_per_second, time.monotonic()
        sender = (who, _address(scope))
        left, then = self._rates.get(sender, (2 * rate, now))
        left = min(2 * rate, left + (now - then) * rate) - 1
        if len(self._rates) >= _MAX_BUCKETS:
            self._rates.clear()
        self._rates[sender] = (max(left, 0.0), now)
        if left < 0 or self._is_busy(scope, who):
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
                with suppress(ClientDisconnect):  # it left before it had sent the body: nobody waits for an answer
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
            told = "Bearer" if self.sign_in is None else self.sign_in.challenge(scope["klaw.path"])
            headers.append((b"www-authenticate", told.encode()))
        if refused.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _address(scope: Mapping[str, Any]) -> str:
    """Return the address of a client; empty on the Unix socket."""
    return str((scope.get("client") or ("",))[0])


def _spender(scope: Mapping[str, Any]) -> str:
    """Return whose requests are counted together. The Unix socket is the owner's, and has no address."""
    address = _address(scope)
    if scope["klaw.authorised"]:
        return f"token of {scope['klaw.agent']}/{'address' if address else 'local'}"
    return f"address {address}"


def _without_port(host: str) -> str:
    """Return the name or address in a ``Host`` (RFC 9110, section 7.2); empty if it is malformed."""
    found = _HOST.fullmatch(host)
    return found[1] if found else ""


def _is_stream(message: Any) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in message["headers"]
    )


def _added(message: Any) -> list[tuple[bytes, bytes]]:
    given = {name.lower() for name, _ in message.get("headers", ())}
    return [(name, value) for name, value in _HEADERS if name not in given]
