"""Sign-in for remote clients, which another distribution has: an entry point of the group ``klaw.sign_in``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib.metadata import entry_points
from typing import Any, Protocol

from klaw_core import ConfigError
from klaw_serve.tokens import Tokens

GROUP = "klaw.sign_in"


class SignIn(Protocol):
    """What the server asks of it."""

    @property
    def paths(self) -> Collection[str]:
        """Return the paths that it answers, for clients without a token."""

    @property
    def app(self) -> Callable[..., Any]:
        """Return the ASGI application that answers them."""

    def accepts(self, token: str, path: str, /) -> bool:
        """Return whether a token that it granted opens a path of the owner's memory."""

    def challenge(self, path: str, /) -> str:
        """Return the value of ``WWW-Authenticate`` for a request without a token."""


def make_sign_in(tokens: Tokens, url: str) -> SignIn:
    """Return the sign-in of a server with this public address; the owner's token is the password.

    Raise ConfigError if no distribution has one, or if it cannot be made.
    """
    for point in entry_points(group=GROUP):
        made: SignIn = point.load()(tokens.data_dir, url, tokens.read)
        return made
    raise ConfigError(["no installed package lets clients sign in"], hint="install the extra: klaw[serve,mcp]")
