"""The whole application: first the guard, then the apps of other distributions, then Klaw's own routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from klaw_core import KlawError, Memory
from klaw_serve import page, rest, rpc
from klaw_serve.answers import answer
from klaw_serve.apps import Apps, Factory, installed
from klaw_serve.calls import Calls
from klaw_serve.events import EventHub
from klaw_serve.guard import Guard, Scope
from klaw_serve.metrics import CONTENT_TYPE, Metrics
from klaw_serve.openapi import document
from klaw_serve.operations import OperationError
from klaw_serve.options import Limits, Listening
from klaw_serve.signing_in import make_sign_in
from klaw_serve.table import offered
from klaw_serve.tenants import Tenants
from klaw_serve.tokens import Tokens

_LOG = logging.getLogger("klaw")


@define(eq=False)
class Service:
    """A served memory. An ASGI server runs ``app``. Create it in the event loop in which it runs."""

    calls: Calls
    apps: Apps
    app: Guard = field(init=False)
    _router: Starlette = field(init=False)
    _direct: Mapping[tuple[str, str], rest.Endpoint] = field(init=False)
    _warming: asyncio.Task[None] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._direct = rest.direct(self.calls)

    async def dispatch(self, scope: Scope, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        """Pass a request to an app, or to Klaw's own routes."""
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        if self.app.sign_in is not None and self.app.is_sign_in(scope):
            await self.app.sign_in.app(scope, receive, send)
            return
        path = scope["klaw.path"]
        endpoint = self._direct.get((scope.get("method", ""), path))
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        name = path.split("/", 2)[1]
        if name in self.apps.factories and scope["type"] == "http":
            try:
                tenant = await self.calls.tenant(scope["klaw.caller"])
            except OperationError as error:
                await answer(error.as_json(), error.status)(scope, receive, send)
                return
            hosted = (await self.apps.of(tenant)).get(name)
            if hosted is not None:
                root = scope["path"].removesuffix(path) + f"/{name}"
                await hosted.app({**scope, "root_path": root}, receive, send)
                return
        await self._router({**scope, "path": path, "raw_path": None, "klaw.asked": scope["path"]}, receive, send)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Start the owner's apps and load the model; at the end stop everything and close all memories."""
        await self.apps.of(self.calls.tenants.owner)
        self._warming = asyncio.ensure_future(asyncio.to_thread(_warm, self.calls.tenants.owner.memory))
        try:
            yield
        finally:
            self.end_streams()
            await self.apps.stop()
            await self._warming
            await asyncio.to_thread(self.calls.close)
            await asyncio.to_thread(self.calls.tenants.close)

    def end_streams(self) -> None:
        """End all event streams and WebSockets, because they would keep the server from stopping."""
        for tenant in self.calls.tenants.all():
            tenant.hub.close()

    @property
    def is_warm(self) -> bool:
        """Whether the model is loaded."""
        return self._warming is not None and self._warming.done()


def _warm(memory: Memory) -> None:
    """Load the model, so that the first search does not wait for it."""
    try:
        memory.search("warm", limit=1)
    except KlawError as error:  # the next search reports it
        _LOG.warning("%s", error)


def make_service(
    memory: Memory,
    listening: Listening,
    limits: Limits,
    *,
    read_only: bool = False,
    apps: Mapping[str, Factory] | None = None,
) -> Service:
    """Return a service for a memory. The service closes the memory when it stops. Call this in the event loop.

    ``apps`` are the factories of apps; None: those that are installed.
    """
    loop = asyncio.get_running_loop()
    tenants = Tenants.of(memory, lambda: EventHub(loop))
    operations = offered(read_only=read_only)
    metrics = Metrics()
    calls = Calls(tenants, operations, limits, metrics)
    service = Service(calls, Apps(installed(memory.config) if apps is None else apps, read_only))
    tokens = Tokens(memory.config.data_dir)
    sign_in = make_sign_in(tokens, listening.oauth) if listening.oauth else None
    service.app = Guard(service.dispatch, listening, limits, tokens, metrics, sign_in)
    described = document(operations)

    async def health(_request: Request) -> Response:
        return answer({"status": "ok", "warm": service.is_warm})

    async def openapi(_request: Request) -> Response:
        return answer(described)

    async def count(request: Request) -> Response:
        if request.scope["klaw.agent"]:  # the metrics count all agents together
            raise HTTPException(404)
        return PlainTextResponse(metrics.text(), media_type=CONTENT_TYPE)

    routes = [
        *page.routes(read_only=read_only),
        Route("/health", health),
        Route("/openapi.json", openapi),
        Route("/metrics", count),
        *rest.routes(calls),
        *rpc.routes(calls, service.app.admit),
    ]
    service._router = Starlette(  # noqa: SLF001  # made here, of parts that need each other
        routes=routes,
        lifespan=service.lifespan,
        exception_handlers={404: _missing, 405: _wrong_method, HTTPException: _refused},
    )
    return service


async def _missing(_request: Request, _error: Exception) -> Response:
    return answer({"error": "no such path", "hint": "GET /openapi.json lists all paths"}, 404)


async def _wrong_method(_request: Request, error: Any) -> Response:
    response = answer(
        {"error": "this method is not allowed for this path", "hint": "GET /openapi.json lists the allowed methods"},
        405,
    )
    response.headers.update(error.headers or {})
    return response


async def _refused(_request: Request, error: Any) -> Response:
    return answer({"error": error.detail}, error.status_code)
