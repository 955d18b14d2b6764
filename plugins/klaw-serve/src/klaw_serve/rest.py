"""The REST API: a route for every operation, and the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from klaw_core import quoted
from klaw_serve.answers import answer, json_body, parsed, reply
from klaw_serve.calls import Calls
from klaw_serve.events import EventHub
from klaw_serve.operations import Json, Operation, OperationError

_IN_QUERY = ("GET", "DELETE")
# The interval of comments in a silent stream. Proxies end silent streams, and a write shows that a client has gone.
_HEARTBEAT_SECONDS = 15.0
# A stream whose client reads nothing for this long is ended.
_WRITE_SECONDS = 30.0

Scope = dict[str, Any]


@frozen(eq=False)
class Endpoint:
    """An operation as an ASGI application."""

    calls: Calls
    operation: Operation

    async def __call__(self, scope: Scope, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        """Answer a request."""
        operation = self.operation
        try:
            if operation.method in _IN_QUERY:
                arguments = _from_query(operation, scope["query_string"])
            else:
                arguments = await _from_body(Request(scope, receive))
            arguments = {**arguments, **scope.get("path_params", {})}
            body, status = await self.calls.body(scope["klaw.caller"], operation.name, arguments), operation.status
        except OperationError as error:
            body, status = json_body(error.as_json()), error.status
        await reply(send, body, status)


def direct(calls: Calls) -> Mapping[tuple[str, str], Endpoint]:
    """Return the endpoints of the operations whose path has no parameters, by method and path.

    Most requests are searches, and Starlette's middleware, routing and request objects cost more than all other steps.
    """
    found = calls.operations.values()
    return {(each.method, each.path): Endpoint(calls, each) for each in found if "{" not in each.path}


def routes(calls: Calls) -> list[Route]:
    """Return the routes of all operations, more literal paths first."""
    operations = sorted(calls.operations.values(), key=lambda each: ("{" in each.path, each.path))
    own = [
        Route(_pattern(each.path), Endpoint(calls, each), methods=[each.method], name=each.name) for each in operations
    ]
    return [*own, Route("/api/events", partial(_events, calls), methods=["GET"])]


def _pattern(path: str) -> str:
    """Return a path whose last parameter may contain slashes, as names do."""
    return f"{path[:-1]}:path}}" if path.endswith("}") else path


def _from_query(operation: Operation, query: bytes) -> Json:
    """Return the parameters of the query string; an array parameter may occur several times."""
    given: Json = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        own = operation.aliases.get(name, name)
        if operation.properties.get(own, {}).get("type") == "array":
            given.setdefault(own, []).append(value)
        elif own in given:
            raise OperationError(400, f"{quoted(own)} is given twice")
        else:
            given[own] = value
    return given


async def _from_body(request: Request) -> Json:
    body = await request.body()
    found = parsed(body) if body.strip() else {}
    if not isinstance(found, dict):
        raise OperationError(400, "the body must be a JSON object")
    return found


async def _events(calls: Calls, request: Request) -> Response:
    try:
        tenant = await calls.tenant(request.scope["klaw.caller"])
    except OperationError as error:
        return answer(error.as_json(), error.status)
    return EventStream(_frames(tenant.hub), media_type="text/event-stream")


async def _frames(hub: EventHub) -> AsyncIterator[bytes]:
    """Yield server-sent events, and a comment after a silent interval."""
    with hub.stream() as notices:
        yield b": open\n\n"
        upcoming: asyncio.Task[Any] | None = None
        try:
            while True:
                upcoming = upcoming or asyncio.ensure_future(anext(notices, None))
                done, _ = await asyncio.wait({upcoming}, timeout=_HEARTBEAT_SECONDS)
                if not done:
                    yield b": \n\n"
                    continue
                notice, upcoming = upcoming.result(), None
                if notice is None:
                    return
                yield b"event: " + notice.kind.encode() + b"\ndata: " + json_body(notice.data) + b"\n\n"
        finally:
            if upcoming is not None:
                upcoming.cancel()


class EventStream(StreamingResponse):
    """A stream that ends if its client does not read."""

    async def stream_response(self, send: Callable[[Any], Awaitable[None]]) -> None:
        """Send the stream's events."""

        async def in_time(message: Any) -> None:
            async with asyncio.timeout(_WRITE_SECONDS):
                await send(message)

        await super().stream_response(in_time)
