"""The REST surface: a route for every operation, and the stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from klaw_serve.answers import answer, json_body, parsed
from klaw_serve.calls import Calls
from klaw_serve.events import EventHub
from klaw_serve.operations import Json, Operation, OperationError

_IN_QUERY = ("GET", "DELETE")
# A comment now and then: a proxy ends what is silent, and a client that has gone is noticed.
_HEARTBEAT_SECONDS = 15.0
# A client that does not read for so long is given up.
_WRITE_SECONDS = 30.0

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(calls: Calls) -> list[Route]:
    """Return the routes of every operation, those with more literal paths first."""
    operations = sorted(calls.operations.values(), key=lambda each: ("{" in each.path, each.path))
    own = [
        Route(_pattern(each.path), partial(_endpoint, calls, each), methods=[each.method], name=each.name)
        for each in operations
    ]
    return [*own, Route("/api/events", partial(_events, calls), methods=["GET"])]


def _pattern(path: str) -> str:
    """Return a path whose last parameter may have slashes in it, as names have."""
    return f"{path[:-1]}:path}}" if path.endswith("}") else path


async def _endpoint(calls: Calls, operation: Operation, request: Request) -> Response:
    try:
        arguments = _from_query(operation, request) if operation.method in _IN_QUERY else await _from_body(request)
        arguments = {**arguments, **request.path_params}
        found = await calls.call(request.scope["klaw.agent"], operation.name, arguments)
    except OperationError as error:
        return answer(error.as_json(), error.status)
    return answer(found, operation.status)


def _from_query(operation: Operation, request: Request) -> Json:
    """Return the parameters of the query; those that are arrays may come several times."""
    given: Json = {}
    for name, value in request.query_params.multi_items():
        own = operation.aliases.get(name, name)
        if operation.properties.get(own, {}).get("type") == "array":
            given.setdefault(own, []).append(value)
        elif own in given:
            raise OperationError(400, f"{own!a:.80} is given twice")
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
        tenant = await calls.tenant(request.scope["klaw.agent"])
    except OperationError as error:
        return answer(error.as_json(), error.status)
    return EventStream(_frames(tenant.hub), media_type="text/event-stream")


async def _frames(hub: EventHub) -> AsyncIterator[bytes]:
    """Yield server-sent events, and a comment when there are none for a while."""
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
    """A stream that gives up a client who does not read."""

    async def stream_response(self, send: Callable[[Any], Awaitable[None]]) -> None:
        """Send what comes."""

        async def in_time(message: Any) -> None:
            async with asyncio.timeout(_WRITE_SECONDS):
                await send(message)

        await super().stream_response(in_time)
