"""Options of a server: its addresses, and the limits of requests."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from attrs import frozen

DEFAULT_PORT = 8490


@frozen
class Limits:
    """Limits of a server, so that no client can exhaust it."""

    body_bytes: int = 4 * 1024 * 1024
    requests_per_second: float = (
        1_000.0  # with one token, or without one from one address; a burst may have twice as many
    )
    running: int = (
        128  # requests, streams and WebSockets at once, with an agent's token, or without one from one address
    )
    request_seconds: float = 60.0  # from the first byte of the body to the last of the response; streams have no limit
    header_seconds: float = 10.0
    connections: int = 512  # over the network; the Unix socket has as many again, which nobody else can use
    auth_seconds: float = 5.0  # until the first frame of a WebSocket
    unauthorised_sockets: int = 64  # WebSockets that wait for their token
    pending: int = 256  # calls that wait for a thread
    stop_seconds: int = 10  # how long running calls may take after the server is told to stop


@frozen
class Listening:
    """The address of a server. ``names`` are other accepted values of ``Host``.

    ``oauth`` is the public address at which remote clients sign in; empty if they cannot.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    names: tuple[str, ...] = ()
    oauth: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or _is_loopback(self.host)

    def url(self, port: int) -> str:
        """Return the URL for a person on this machine."""
        scheme = "https" if self.tls_cert else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"

    def accepts(self, host: str) -> bool:
        """Return whether a ``Host`` (without its port) is one of this server's.

        Another site can make its own name point here (DNS rebinding), but not a numeric address. So loopback addresses
        are accepted, and every numeric address if the server listens for other machines.
        """
        name = host.strip("[]").lower()
        if name == "localhost" or name in {self.host.lower(), *(each.lower() for each in self.names)}:
            return name not in {"0.0.0.0", "::"}  # noqa: S104  # compared, not bound
        return _is_loopback(name) or (not self.is_local and _is_number(name))


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_number(host) and ip_address(host).is_loopback
