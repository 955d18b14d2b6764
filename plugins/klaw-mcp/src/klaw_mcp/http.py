"""The server over Streamable HTTP: an ASGI application, which an HTTP server mounts at any path.

That HTTP server authenticates clients. Requests are independent of each other, so no state is kept between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from attrs import define
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from klaw_core import Memory
from klaw_mcp import direct
from klaw_mcp.connector import FETCH, SEARCH
from klaw_mcp.notices import Notices, told_of_changes
from klaw_mcp.prologue import INSTRUCTIONS
from klaw_mcp.server import make_server
from klaw_mcp.tools import Policy, Toolbox

Receive = Callable[[], Any]
Send = Callable[[Any], Any]


#: The path below the application at which only ``search`` and ``fetch`` are offered.
CONNECTOR = "/connector"


def make(memory: Memory, *, read_only: bool = False) -> HttpApp:
    """Return the application for an open memory. The caller closes the memory."""
    usual = Toolbox(partial(_given, memory), Policy(read_only=read_only))
    connector = Toolbox(partial(_given, memory), Policy(read_only=True, names=(SEARCH, FETCH)))
    return HttpApp(memory, {"": _Room.of(usual), CONNECTOR: _Room.of(connector, None)})


def _given(memory: Memory) -> Memory:
    return memory


@define(eq=False)
class _Room:
    """A server at one path."""

    toolbox: Toolbox
    server: Server[Any]
    notices: Notices
    manager: StreamableHTTPSessionManager | None = None

    @classmethod
    def of(cls, toolbox: Toolbox, instructions: str | None = INSTRUCTIONS) -> _Room:
        return cls(toolbox, *make_server(toolbox, instructions))

    async def answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, once the room is open."""
        if self.manager is None:
            return
        if not direct.may_be_call(scope):
            await self.manager.handle_request(scope, receive, send)
            return
        body = await direct.read(receive)
        if body is None:
            return
        call = direct.parse(body)
        if call is None:
            await self.manager.handle_request(scope, direct.replayed(body, receive), send)
            return
        answer = await anyio.to_thread.run_sync(self._called, call)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _called(self, call: direct.ToolCall) -> bytes:
        text, is_error = self.toolbox.call(call.name, call.arguments)
        return call.answer(text, is_error=is_error)

    @asynccontextmanager
    async def open(self, memory: Memory) -> AsyncIterator[None]:
        """Answer requests, and notify clients of changes."""
        listen, tell = told_of_changes()
        manager = StreamableHTTPSessionManager(self.server, stateless=True, json_response=True)
        async with manager.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(tell, self.notices)
            unsubscribe = await anyio.to_thread.run_sync(memory.on_change, listen)
            self.manager = manager
            try:
                yield
            finally:
                self.manager = None
                unsubscribe()
                tasks.cancel_scope.cancel()


@define(eq=False)
class HttpApp:
    """An ASGI application; its lifespan must be run."""

    memory: Memory
    _rooms: Mapping[str, _Room]

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or run the lifespan."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        below = scope["path"].removeprefix(scope.get("root_path", "")).rstrip("/")
        await self._rooms.get(below, self._rooms[""]).answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with AsyncExitStack() as opened:
            for room in self._rooms.values():
                await opened.enter_async_context(room.open(self.memory))
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
