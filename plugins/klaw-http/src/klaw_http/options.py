"""The common options of remote embedders, and the check of offline mode."""

from attrs import field, frozen, validators

from klaw_core import ComponentContext, EmbedderUnavailableError, KlawError
from klaw_http.deadline import SECONDS
from klaw_http.urls import is_loopback


def _no_spaces(_instance: object, attribute: object, value: str) -> None:
    """Refuse a key that HTTP cannot send, without showing it."""
    del attribute
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ValueError("api_key: contains white space, or characters that HTTP cannot send")


@frozen
class RemoteOptions:
    """Common options of remote embedders; a plugin inherits them and adds ``url``, ``model`` and its own.

    ``api_key``: the key, best as ``"${NAME}"``; it is sent in a header and never shown.
    ``batch_size``: texts per request.
    ``max_tokens``: the model's window in tokens, if it is not known.
    ``query_prefix``, ``document_prefix``: the texts that the model needs before a question and before a chunk.
    ``timeout_seconds``: the maximum silence of the server.
    ``deadline_seconds``: the maximum duration of one request with its retries.
    ``retries``: the maximum number of retries if the server is busy or the connection breaks.
    """

    api_key: str = field(default="", repr=False, validator=_no_spaces)
    batch_size: int = field(default=100, validator=validators.ge(1))
    max_tokens: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    query_prefix: str = ""
    document_prefix: str = ""
    timeout_seconds: float = field(default=60.0, validator=SECONDS)
    deadline_seconds: float = field(default=120.0, validator=SECONDS)
    retries: int = field(default=2, validator=validators.ge(0))


def require_network(
    url: str,
    context: ComponentContext,
    setting: str = "memory.embedding.url",
    error: type[KlawError] = EmbedderUnavailableError,
) -> None:
    """Raise an error of this kind if Klaw is offline and the URL, which ``setting`` gives, is not on this machine."""
    if context.offline and not is_loopback(url):
        raise error(
            f"{url} is another machine, but Klaw is offline",
            hint=f"unset KLAW_OFFLINE, or set {setting} to this machine",
        )
