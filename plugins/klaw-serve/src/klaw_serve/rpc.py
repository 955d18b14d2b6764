"""JSON-RPC 2.0, as one POST and as frames of a WebSocket.

A WebSocket starts with the frame ``{"type": "auth", "token": "…"}`` unless the handshake had the token. Each further
frame is a call: ``{"id": "1", "method": "memory.search", "params": {"query": "…", "k": 5}}``. ``jsonrpc`` is optional.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, Final

from attrs import define, field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from klaw_serve.answers import answer, json_body, parsed
from klaw_serve.calls import Caller, Calls
from klaw_serve.operations import Json, OperationError
from klaw_serve.options import Limits
from klaw_serve.tenants import Tenant

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_NO_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
#: Any other error of Klaw; ``data.status`` is its HTTP status.
_REFUSED: Final = -32000
_CODES: Final = {400: _INVALID_PARAMS, 500: _INTERNAL}

_MAX_BATCH_CALLS: Final = 50
#: Codes of the close frame: an HTTP status, above those of the protocol.
_REFUSED_SOCKET: Final = 4000
_UNAUTHORISED: Final = _REFUSED_SOCKET + 401
_MAX_REASON_CHARACTERS: Final = 40  # at most 123 bytes
# The number of calls of one WebSocket that run at once; further frames are not read until one ends.
_MAX_RUNNING_CALLS: Final = 32
_SUBSCRIBE: Final = "events.subscribe"


Admit = Callable[[str, MutableMapping[str, Any]], bool]


def routes(calls: Calls, admit: Admit) -> list[BaseRoute]:
    """Return the routes of the POST and of the WebSocket. ``admit`` checks the token in a first frame."""
    door = _Door(admit, calls.limits)
    return [
        Route("/rpc", partial(_post, calls), methods=["POST"]),
        WebSocketRoute("/ws", partial(_socket, calls, door)),
    ]


async def _post(calls: Calls, request: Request) -> Response:
    caller = request.scope["klaw.caller"]
    try:
        frame = parsed(await request.body())
    except OperationError as error:
        return answer(_error(None, _PARSE_ERROR, error.message))
    if not isinstance(frame, list):
        reply = await _reply(calls, caller, frame)
        return Response(status_code=204) if reply is None else answer(reply)
    if not 0 < len(frame) <= _MAX_BATCH_CALLS:
        return answer(_error(None, _INVALID_REQUEST, f"a batch has 1 to {_MAX_BATCH_CALLS} calls"))
    replies = [await _reply(calls, caller, each) for each in frame]
    told = [reply for reply in replies if reply is not None]
    return answer(told) if told else Response(status_code=204)


async def _reply(calls: Calls, caller: Caller, frame: Any) -> Json | None:
    """Return the reply to a call; None for a notification."""
    if not isinstance(frame, dict) or not isinstance(frame.get("method"), str):
        return _error(None, _INVALID_REQUEST, 'a call is {"id": …, "method": "memory.search", "params": {…}}')
    call_id, method = frame.get("id"), frame["method"]
    if isinstance(call_id, bool | dict | list):
        return _error(None, _INVALID_REQUEST, "an id is a string or a number")
    try:
        result = await calls.call(caller, method, frame.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": call_id, "result": result}
    except OperationError as error:
        code = _NO_METHOD if method not in calls.operations else _CODES.get(error.status, _REFUSED)
        reply = _error(call_id, code, error.message, {"status": error.status, "hint": error.hint})
    return reply if "id" in frame else None


def _error(call_id: Any, code: int, message: str, data: Json | None = None) -> Json:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": call_id, "error": error}


async def _socket(calls: Calls, door: _Door, socket: WebSocket) -> None:
    try:
        await socket.accept()
        if not socket.scope["klaw.authorised"] and not await door.opens(socket):
            await socket.close(_UNAUTHORISED, "the token is missing or wrong")
            return
        try:
            tenant = await calls.tenant(socket.scope["klaw.caller"])
        except OperationError as error:
            await socket.close(_REFUSED_SOCKET + error.status, error.message[:_MAX_REASON_CHARACTERS])
            return
        await _Conversation(calls, socket).run(tenant)
    except (WebSocketDisconnect, RuntimeError):  # RuntimeError: the client disconnected during a send
        return


@define(eq=False)
class _Door:
    """WebSockets that wait for their token. If there are too many, the oldest has waited long enough."""

    admit: Admit
    limits: Limits
    _waiting: dict[WebSocket, asyncio.Timeout] = field(factory=dict, init=False)

    async def opens(self, socket: WebSocket) -> bool:
        """Wait for the first frame, and return whether its token is valid."""
        if len(self._waiting) >= self.limits.unauthorised_sockets:
            oldest = next(iter(self._waiting))
            self._waiting.pop(oldest).reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(self.limits.auth_seconds) as deadline:
                self._waiting[socket] = deadline
                frame = parsed(await _text(socket))
        except (TimeoutError, OperationError):
            return False
        finally:
            self._waiting.pop(socket, None)
        token = frame.get("token") if isinstance(frame, dict) and frame.get("type") == "auth" else None
        if not isinstance(token, str) or not self.admit(token, socket.scope):
            return False
        await _send(socket, {"type": "auth", "ok": True})
        return True


async def _text(socket: WebSocket) -> str | bytes:
    """Return the content of the next frame. Raise WebSocketDisconnect."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str | bytes = message.get("text") or message.get("bytes") or ""
    return text


async def _send(socket: WebSocket, value: Json) -> None:
    await socket.send_text(json_body(value).decode())


class _Conversation:
    """An authorised WebSocket. Calls run concurrently, and each reply is sent when it is ready."""

    def __init__(self, calls: Calls, socket: WebSocket) -> None:
        self._calls, self._socket, self._caller = calls, socket, socket.scope["klaw.caller"]
        self._free = asyncio.Semaphore(_MAX_RUNNING_CALLS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribed = False

    async def run(self, tenant: Tenant) -> None:
        """Answer calls until the client disconnects or the server stops."""
        with tenant.hub.stream() as ended:  # ends when the server stops
            self._begin(self._pass_on(ended))
            try:
                while True:
                    text = await _text(self._socket)
                    await self._free.acquire()
                    self._begin(self._answer(text))
            finally:
                for task in self._tasks:
                    task.cancel()

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieves what a send raised: the client has gone

    async def _answer(self, text: str | bytes) -> None:
        try:
            try:
                frame = parsed(text)
            except OperationError as error:
                await _send(self._socket, _error(None, _PARSE_ERROR, error.message))
                return
            if isinstance(frame, dict) and frame.get("method") == _SUBSCRIBE:
                self._subscribed = True
                await _send(self._socket, {"jsonrpc": "2.0", "id": frame.get("id"), "result": {"subscribed": True}})
                return
            reply = await _reply(self._calls, self._caller, frame)
            if reply is not None:
                await _send(self._socket, reply)
        finally:
            self._free.release()

    async def _pass_on(self, notices: Any) -> None:
        async for notice in notices:
            if self._subscribed:
                params = {"event": notice.kind, "data": notice.data}
                await _send(self._socket, {"jsonrpc": "2.0", "method": "event", "params": params})
        await self._socket.close(1001, "the server stops")
