"""Run a server for a memory: its sockets, uvicorn, and a shutdown without loss."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import uvicorn

from klaw_core import ConfigError, Memory, StoreError
from klaw_serve.app import Service, make_service
from klaw_serve.apps import Factory
from klaw_serve.http import protocol, quiet
from klaw_serve.options import Limits, Listening
from klaw_serve.running import SOCKET, announce, local_socket, only_server
from klaw_serve.tokens import Tokens

_BACKLOG = 512


def serve(
    memory: Memory,
    listening: Listening,
    limits: Limits,
    *,
    read_only: bool,
    on_ready: Callable[[str, str], None],
) -> None:
    """Serve a memory until the process is told to stop; the memory is closed then.

    ``on_ready`` is called with the URL and the token once connections are accepted. Raise StoreLockedError if a server
    for this data directory runs, ConfigError if the address cannot be used.
    """
    data_dir = memory.config.data_dir
    token = Tokens(data_dir).make()
    with only_server(data_dir), local_socket(data_dir) as local, _listen(listening) as public:
        url = listening.url(public.getsockname()[1])

        def ready() -> None:
            where = None if local is None else str(data_dir / "serve.sock")
            announce(data_dir, url=url, socket=where, token=token, configuration=memory.config.fingerprint)
            on_ready(url, token)

        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(memory, listening, limits, read_only, (public, local), ready))


def serve_locally(memory: Memory, on_ready: Callable[[], None]) -> None:
    """Serve a memory on the Unix socket only, without apps, until the process is told to stop.

    Raise StoreLockedError if a server for this data directory runs, StoreError if there can be no such socket.
    """
    data_dir = memory.config.data_dir
    listening = Listening()
    token = Tokens(data_dir).make()
    with only_server(data_dir), local_socket(data_dir) as local:
        if local is None:
            raise StoreError(f"{data_dir} cannot have a Unix socket", hint="use `klaw serve` instead")
        where = str(data_dir / SOCKET)

        def ready() -> None:
            announce(data_dir, url=f"unix:{where}", socket=where, token=token, configuration=memory.config.fingerprint)
            on_ready()

        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(memory, listening, Limits(), False, (None, local), ready, apps={}))  # as below


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None for Python's own if uvloop is not available (Windows, PyPy)."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextlib.contextmanager
def _listen(listening: Listening) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    try:
        listener = socket.create_server((listening.host, listening.port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            [f"cannot listen on {listening.host} port {listening.port}: {reason}"], hint="choose another: --port"
        ) from error
    with listener:
        # Accepted connections inherit TCP_NODELAY. asyncio sets it only for sockets with an explicit protocol. Without
        # it, a response in two parts waits for the client's delayed acknowledgement, 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


async def _serve(  # noqa: PLR0917  # positional by Runner.run
    memory: Memory,
    listening: Listening,
    limits: Limits,
    read_only: bool,  # noqa: FBT001
    sockets: tuple[socket.socket | None, socket.socket | None],
    ready: Callable[[], None],
    *,
    apps: Mapping[str, Factory] | None = None,
) -> None:
    service = make_service(memory, listening, limits, read_only=read_only, apps=apps)
    quiet()
    config = uvicorn.Config(
        service.app,
        http=protocol(limits.header_seconds, limits.connections),
        ws="websockets-sansio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=listening.behind_proxy,
        timeout_graceful_shutdown=limits.stop_seconds,
        ws_max_size=limits.body_bytes,
        ws_max_queue=8,
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
    )
    of_local = protocol(limits.header_seconds, limits.connections)
    server = _Server(config, service, sockets[1], of_local, ready)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform == "win32":
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(server.stop))
        else:
            loop.add_signal_handler(number, server.stop)
    await server.serve([] if sockets[0] is None else [sockets[0]])


class _Server(uvicorn.Server):
    """uvicorn's server with a second socket without TLS. It ends all streams before it waits for connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        local: socket.socket | None,
        of_local: type[asyncio.Protocol],
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._service, self._local, self._of_local, self._ready = service, local, of_local, ready

    def stop(self) -> None:
        """Stop the server; a second call stops it without waiting for running calls."""
        self.force_exit, self.should_exit = self.should_exit, True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the event loop: uvicorn raises them again at its end, which would interrupt the clean-up."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections."""
        await super().startup(sockets)
        if self._local is not None and sys.platform != "win32":
            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_unix_server(self._connection, sock=self._local, backlog=_BACKLOG))
        self._ready()

    def _connection(self) -> asyncio.Protocol:
        kind: Any = self._of_local
        made: asyncio.Protocol = kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections, end the streams, and wait for running calls."""
        self._service.end_streams()
        await super().shutdown(sockets)
