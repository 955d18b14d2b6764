"""The options of the embedder ``ollama``, and where its server is."""

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
# What a server listens on is not always what a client can connect to.
_REACHABLE = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # read here, not bound to
# What Ollama reads in a string: Go's durations, in which a number other than 0 needs a unit.
_DURATION = re.compile(r"|0|-?(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")


def _duration(_instance: object, attribute: Any, value: str) -> None:
    if not _DURATION.fullmatch(value):
        raise ValueError(
            f"{attribute.name}: {value!r} is not a duration; use a form like '30s', '10m', '1h30m' or '-1m'"
        )


def server_url() -> str:
    """Return the server's address: ``OLLAMA_HOST`` as Ollama's own clients read it, or ``http://localhost:11434``.

    The variable may lack the scheme, the host or the port (ollama ``envconfig.Host``). What makes no sense
    is returned as it is, for the option's validator to refuse.
    """
    host = os.environ.get(_VARIABLE, "").strip().strip("\"'")
    with suppress(ValueError):  # no address of version 6, or in brackets already
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
    """Options of the embedder ``ollama``, beside those of every remote one.

    ``url``: the server (default: ``OLLAMA_HOST``, else ``http://localhost:11434``).
    ``model``: a model that ``ollama pull`` has fetched.
    ``keep_alive``: how long the server keeps the model in memory after a request: ``"10m"``, or ``"-1m"`` for ever;
    empty leaves it to the server.
    ``dimension``: the vectors' length, where the server does not say.
    """

    url: str = field(factory=server_url, validator=http_url_from(_VARIABLE, server_url))
    model: str = field(default="all-minilm:l6-v2", validator=validators.min_len(1))
    keep_alive: str = field(default="", validator=_duration)
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    batch_size: int = field(default=16, validator=validators.ge(1))
