"""Apps of other distributions inside the server: any ASGI application.

A distribution declares a factory as an entry point of the group ``klaw.apps``. ``make(memory, read_only=…)`` returns an
ASGI application for that memory. It answers below ``/NAME``, behind the guard. ASGI's lifespan starts and stops it, so
a job that only runs in the background can be an app too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from attrs import define, field

from klaw_core import Config
from klaw_serve.tenants import Tenant

GROUP = "klaw.apps"
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_LOG = logging.getLogger("klaw")

App = Callable[..., Any]
Factory = Callable[..., App]


def installed(config: Config) -> Mapping[str, Factory]:
    """Return the app factories by name. A factory that cannot be imported is logged and left out."""
    found: dict[str, Factory] = {}
    for point in entry_points(group=GROUP):
        if point.name in config.disabled_plugins or (point.dist and point.dist.name in config.disabled_plugins):
            continue
        try:
            found[point.name] = point.load()
        except Exception as error:  # noqa: BLE001  # an app of another distribution must not end the server
            _LOG.warning("the app %r cannot be loaded: %s: %s", point.name, type(error).__name__, error)
    return found


@define(eq=False)
class HostedApp:
    """A running app of one memory."""

    name: str
    app: App
    _inbox: asyncio.Queue[Any] = field(factory=asyncio.Queue, init=False)
    _outbox: asyncio.Queue[Any] = field(factory=asyncio.Queue, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    async def start(self) -> None:
        """Start the app and wait until it has started. An app without a lifespan is not started."""
        self._task = asyncio.ensure_future(self._live())
        await self._tell("startup", _START_SECONDS)

    async def stop(self) -> None:
        """Stop the app and wait until it has stopped."""
        if self._task is None:
            return
        if not self._task.done():
            await self._tell("shutdown", _STOP_SECONDS)
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        try:
            await self.app(scope, self._inbox.get, self._outbox.put)
        except Exception as error:  # noqa: BLE001  # by the specification: an app without a lifespan raises
            _LOG.debug("the app %r has no lifespan: %s", self.name, error)
        finally:
            self._outbox.put_nowait({"type": "lifespan.ended"})

    async def _tell(self, what: str, seconds: float) -> None:
        self._inbox.put_nowait({"type": f"lifespan.{what}"})
        try:
            async with asyncio.timeout(seconds):
                reply = await self._outbox.get()
        except TimeoutError:
            _LOG.warning("the app %r did not answer to its %s within %g s", self.name, what, seconds)
            return
        if reply["type"] == f"lifespan.{what}.failed":
            _LOG.warning("the app %r failed at its %s: %s", self.name, what, reply.get("message", ""))


@define(eq=False)
class Apps:
    """The apps of all served memories. Use it only in the event loop."""

    factories: Mapping[str, Factory]
    read_only: bool
    _hosted: dict[str, dict[str, HostedApp]] = field(factory=dict, init=False)
    _starting: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def of(self, tenant: Tenant) -> Mapping[str, HostedApp]:
        """Return the apps of a memory; the first call starts them."""
        async with self._starting:
            if tenant.agent not in self._hosted:
                hosted = self._hosted[tenant.agent] = {}
                for name, make in self.factories.items():
                    app = await asyncio.to_thread(self._make, name, make, tenant)
                    if app is not None:
                        hosted[name] = HostedApp(name, app)
                        await hosted[name].start()
            return self._hosted[tenant.agent]

    def _make(self, name: str, make: Factory, tenant: Tenant) -> App | None:
        try:
            return make(tenant.memory, read_only=self.read_only)
        except Exception as error:  # noqa: BLE001  # of another distribution
            _LOG.warning("the app %r cannot be made: %s: %s", name, type(error).__name__, error)
            return None

    async def stop(self) -> None:
        """Stop every app."""
        for hosted in self._hosted.values():
            for app in hosted.values():
                await app.stop()
