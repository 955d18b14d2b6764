"""What every remote embedder can be told, and whether it may ask at all."""

from attrs import field, frozen, validators

from klaw_core import ComponentContext, EmbedderUnavailableError
from klaw_http.deadline import SECONDS
from klaw_http.urls import is_loopback


def _no_spaces(_instance: object, attribute: object, value: str) -> None:
    """Refuse a key that HTTP cannot send; the message does not show it."""
    del attribute
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ValueError("api_key: contains white space, or characters that HTTP cannot send")


@frozen
class RemoteOptions:
    """What can be told to every remote embedder; a plugin inherits it and adds ``url``, ``model`` and its own.

    ``api_key``: the key, best as ``"${NAME}"``; it is sent in a header and shown nowhere.
    ``batch_size``: how many texts one request holds.
    ``max_tokens``: the model's window in tokens, where it is not known.
    ``query_prefix``, ``document_prefix``: what the model wants in front of a question and of a chunk.
    ``timeout_seconds``: how long the server may be silent.
    ``deadline_seconds``: how long one request may take in all, with its retries.
    ``retries``: how often a request is tried again when the server is busy or the connection breaks.
    """

    api_key: str = field(default="", repr=False, validator=_no_spaces)
    batch_size: int = field(default=100, validator=validators.ge(1))
    max_tokens: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    query_prefix: str = ""
    document_prefix: str = ""
    timeout_seconds: float = field(default=60.0, validator=SECONDS)
    deadline_seconds: float = field(default=120.0, validator=SECONDS)
    retries: int = field(default=2, validator=validators.ge(0))


def require_network(url: str, place: ComponentContext) -> None:
    """Raise EmbedderUnavailableError if Klaw is offline and the URL is not this machine's."""
    if place.offline and not is_loopback(url):
        raise EmbedderUnavailableError(
            f"{url} is another machine, but Klaw is offline",
            hint="unset KLAW_OFFLINE, or set memory.embedding.url to this machine",
        )
