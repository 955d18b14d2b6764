"""The same server over Streamable HTTP, for ``klaw serve``: an app of the group ``klaw.apps``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_mcp.tools import Policy

if TYPE_CHECKING:
    from klaw_core import Memory


@define(eq=False)
class McpApp:
    """An ASGI application. Each request stands alone, so any number of agents share it.

    Who may come in is decided before: the server checks token, host and origin.
    """

    get_memory: Callable[[], Memory]
    policy: Policy
    _manager: Any = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests within the block."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from klaw_mcp.server import make_server

        server, _ = make_server(self.get_memory, self.policy)
        settings = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, security_settings=settings
        )
        async with self._manager.run():
            yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._manager.handle_request(scope, receive, send)


def app(get_memory: Callable[[], Memory], *, read_only: bool = False) -> McpApp:
    """Return the application over a memory."""
    return McpApp(get_memory, Policy(read_only=read_only))
