"""Which addresses a plugin may be configured with."""

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit


def http_url(_instance: object, attribute: Any, value: str) -> None:
    """Validate an attrs field that holds a server's base URL. Raise ValueError.

    Only ``http`` and ``https``; no credentials, which would reach logs and error messages, and no query,
    because paths are appended. The message never repeats a URL that holds credentials.
    """
    if problem := _problem(value):
        raise ValueError(f"{attribute.name}: {problem}")


def _problem(value: str) -> str:
    """Say what is wrong with a base URL, or nothing."""
    try:
        parts = urlsplit(value)
        host = (parts.hostname or "").encode("idna")
        port = parts.port
    except ValueError:  # UnicodeError is one; its text may hold a piece of a password, so it is not passed on
        return "not a valid URL"
    if parts.username is not None or parts.password is not None:
        return "credentials do not belong in a URL, pass them as a key"
    if parts.scheme not in {"http", "https"}:
        return f"{value!r} does not begin with http:// or https://"
    if not host or port == 0 or not value.isascii() or not value.isprintable() or " " in value:
        return f"{value!r} names no valid host"
    if parts.query or parts.fragment:
        return f"{value!r} must end with the path, without ? or #"
    return ""


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
    """Return the host, port and path of a URL: what tells one server's models from another's."""
    parts = urlsplit(url)
    return (parts.netloc.lower() + parts.path).rstrip("/")
