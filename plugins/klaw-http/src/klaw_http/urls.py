"""Validate the URLs of servers."""

import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

_NAME = re.compile(r"[a-z0-9._-]+")


def http_url(_instance: object, attribute: Any, value: str) -> None:
    """Validate an attrs field that holds a server's base URL. Raise ValueError.

    Only ``http`` and ``https`` are allowed, without credentials, which would reach logs and error messages, and without
    a query, because paths are appended. The message never repeats a URL with credentials.
    """
    if problem := _problem(value):
        raise ValueError(f"{attribute.name}: {problem}")


def http_url_from(variable: str, read: Callable[[], str]) -> Callable[[object, Any, str], None]:
    """Return :func:`http_url` for a field with the default ``read()``; its error names the environment variable."""

    def check(instance: object, attribute: Any, value: str) -> None:
        if (problem := _problem(value)) and value == read():
            raise ValueError(f"{variable}: {problem}")
        http_url(instance, attribute, value)

    return check


def _problem(value: str) -> str:
    """Return the problem of a base URL; empty if there is none."""
    try:
        parts = urlsplit(value)
    except ValueError:  # its message may contain part of a password, so it is not shown
        return "not a valid URL"
    if parts.username is not None or parts.password is not None:
        return "the URL contains credentials; pass them as a key instead"
    if parts.scheme not in {"http", "https"}:
        return f"{value!r} does not start with http:// or https://"
    if not names_a_host(parts) or not value.isascii() or not value.isprintable() or " " in value:
        return f"{value!r} has no valid host"
    if parts.query or parts.fragment:
        return f"{value!r} must end with the path, without ? or #"
    return ""


def names_a_host(parts: SplitResult) -> bool:
    """Return whether a URL has a host: an ASCII name or an address, with a valid port.

    A name in punycode (``xn--``) must be decodable, because httpx2 fails otherwise.
    """
    host, bracketed = parts.hostname or "", "[" in parts.netloc
    try:
        port = parts.port
        if bracketed:
            IPv6Address(host)
        else:
            host.encode("idna").decode("idna")
    except ValueError:  # UnicodeError is one
        return False
    return port != 0 and (bracketed or _NAME.fullmatch(host) is not None)


def is_loopback(url: str) -> bool:
    """Return whether the URL names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def server_name(url: str) -> str:
    """Return host, port and path of a URL, which distinguish the models of different servers."""
    parts = urlsplit(url)
    return (parts.netloc.lower() + parts.path).rstrip("/")
