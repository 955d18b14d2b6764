"""Notify subscribed clients of documents that this process indexes or forgets.

Up to revision 2025-11-25 a client subscribes to single resources and is notified on its connection; this works over
stdio only, where there is a connection. From 2026-07-28 on a client listens to a stream, which the SDK serves from a
bus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from attrs import define, field
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)

from klaw_core import Event, ForgetEvent, IndexEvent

_LOG = logging.getLogger("klaw")


def concerns_resources(event: Event) -> bool:
    """Return whether an event of the memory changes any resource."""
    if isinstance(event, IndexEvent):
        return bool(event.report.added or event.report.changed or event.report.removed)
    return isinstance(event, ForgetEvent)


@define(eq=False)
class Notices:
    """The subscriptions of clients. ``version_of`` returns a value that differs after the resource of a URI changed."""

    version_of: Callable[[str], str | None]
    bus: InMemorySubscriptionBus = field(factory=InMemorySubscriptionBus)
    _streams: ListenHandler = field(init=False)
    _session: ServerSession | None = field(default=None, init=False)
    _subscribed: set[str] = field(factory=set, init=False)
    _versions: dict[str, str | None] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._streams = ListenHandler(self.bus)

    def meet(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember the connection; over HTTP no connection outlives a request."""
        if context.request is None:
            self._session = context.session

    async def subscribe(
        self, context: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Notify a client of changes of a resource from now on."""
        self.meet(context)
        await self._watch(params.uri)
        self._subscribed.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, _context: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Stop the notifications about a resource."""
        self._subscribed.discard(params.uri)
        return types.EmptyResult()

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve a stream of the notifications on the bus."""
        for uri in params.notifications.resource_subscriptions or ():
            await self._watch(uri)
        return await self._streams(context, params)

    async def tell(self) -> None:
        """Notify all subscribers of what has changed."""
        await self.bus.publish(ResourcesListChanged())
        await self._send(lambda session: session.send_resource_list_changed())
        for uri, before in list(self._versions.items()):
            now = await anyio.to_thread.run_sync(self.version_of, uri)
            if now == before:
                continue
            self._versions[uri] = now
            await self.bus.publish(ResourceUpdated(uri=uri))
            if uri in self._subscribed:
                await self._send(partial(ServerSession.send_resource_updated, uri=uri))

    async def _watch(self, uri: str) -> None:
        if uri not in self._versions:
            self._versions[uri] = await anyio.to_thread.run_sync(self.version_of, uri)

    async def _send(self, send: Callable[[ServerSession], Coroutine[Any, Any, None]]) -> None:
        if self._session is None:
            return
        try:
            await send(self._session)
        except Exception as error:  # noqa: BLE001  # after any exception the client no longer listens
            _LOG.debug("the client is no longer notified of changes: %s", error)
            self._session = None


def told_of_changes() -> tuple[Callable[[Event], None], Callable[[Notices], Coroutine[Any, Any, None]]]:
    """Return two functions: one takes events in any thread, the other then notifies clients in this event loop."""
    changes, heard = anyio.create_memory_object_stream[None](1)
    loop = asyncio.get_running_loop()

    def nudge() -> None:
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            changes.send_nowait(None)  # WouldBlock: a notification is already pending

    def listen(event: Event) -> None:
        if concerns_resources(event) and not loop.is_closed():
            loop.call_soon_threadsafe(nudge)

    async def tell(notices: Notices) -> None:
        async with changes, heard:
            async for _ in heard:
                await notices.tell()

    return listen, tell
