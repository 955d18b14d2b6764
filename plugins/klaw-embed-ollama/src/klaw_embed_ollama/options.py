"""The options of the embedder ``ollama``, and the default address of its server."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen, validators

from klaw_http import RemoteOptions, http_url_from

_VARIABLE = "OLLAMA_HOST"
_PORT = 11434
# Addresses that a server can listen on, but that a client cannot connect to.
_REACHABLE = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # read here, not bound to
# A duration in Go's format, in which every number except 0 needs a unit.
_DURATION = re.compile(r"|0|-?(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")


def _duration(_instance: object, attribute: Any, value: str) -> None:
    if not _DURATION.fullmatch(value):
        raise ValueError(
            f"{attribute.name}: {value!r} is not a duration; use a form like '30s', '10m', '1h30m' or '-1m'"
        )


def server_url() -> str:
    """Return the server's address: ``OLLAMA_HOST`` as Ollama's own clients read it, or ``http://localhost:11434``.

    The variable may lack the scheme, the host or the port (ollama ``envconfig.Host``). An invalid value is returned
    unchanged, so that the option's validator rejects it.
    """
    host = os.environ.get(_VARIABLE, "").strip().strip("\"'")
    with suppress(ValueError):  # not an IPv6 address, or already in brackets
        host = f"[{IPv6Address(host)}]"
    url = host if "://" in host else f"http://{host}"
    try:
        parts = urlsplit(url)
        port = parts.port or (None if "://" in host else _PORT)
    except ValueError:
        return url
    if parts.username is not None or (not parts.hostname and "://" in host):
        return url
    name = _REACHABLE.get(parts.hostname or "", parts.hostname)
    address = f"[{name}]" if name and ":" in name else name
    return f"{parts.scheme}://{address}{f':{port}' if port else ''}{parts.path}".rstrip("/")


@frozen
class OllamaOptions(RemoteOptions):
    """Options of the embedder ``ollama``, in addition to those of all remote embedders.

    ``url``: the server (default: ``OLLAMA_HOST``, otherwise ``http://localhost:11434``).
    ``model``: a model that was fetched with ``ollama pull``.
    ``keep_alive``: how long the server keeps the model in memory after a request: ``"10m"``, or ``"-1m"`` for no limit;
    if empty, the server decides.
    ``dimension``: the dimension of the vectors, if the server does not return it.
    """

    url: str = field(factory=server_url, validator=http_url_from(_VARIABLE, server_url))
    model: str = field(default="all-minilm:l6-v2", validator=validators.min_len(1))
    keep_alive: str = field(default="", validator=_duration)
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    batch_size: int = field(default=16, validator=validators.ge(1))
