"""What a server is told when it is started: where it listens, what it lets in, how much."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from attrs import frozen

DEFAULT_PORT = 8490


@frozen
class Limits:
    """What one server takes, so that no client can use it up."""

    body_bytes: int = 4 * 1024 * 1024
    requests_per_second: float = 1_000.0  # of one address, on average; twice as many at once
    request_seconds: float = 60.0  # from the first byte of the body to the last of the answer; streams are free
    header_seconds: float = 10.0
    connections: int = 512
    pending: int = 256  # calls that wait for a thread
    stop_seconds: int = 10  # calls may take so long to end once the server is told to stop


@frozen
class Listening:
    """Where a server listens. ``names`` are further names it is reached by, as ``Host`` has them."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    names: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or _is_loopback(self.host)

    def url(self, port: int) -> str:
        """Return where it is reached, for a person of this machine."""
        scheme = "https" if self.tls_cert else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"

    def accepts(self, host: str) -> bool:
        """Return whether a ``Host`` (without port) is one of this server's.

        A page of another site can make its own name point here (DNS rebinding), but no number. So numbers that only
        this machine has are accepted, and any number where others are to reach the server.
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
