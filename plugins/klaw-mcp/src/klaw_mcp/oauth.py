"""Sign-in for remote clients of MCP that want OAuth 2.1, such as claude.ai and ChatGPT; the password is Klaw's token.

A client registers itself, sends its user to a page of this server, and exchanges the code that it gets for a token. The
SDK has the endpoints and checks the proof of the code (PKCE). Clients and refresh tokens are kept in a file, the latter
as hashes; whoever deletes Klaw's token ends all sign-ins.
"""

from __future__ import annotations

import html
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import anyio.to_thread
from attrs import asdict, define, field, frozen
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from klaw_core import ConfigError, read_regular, write_atomically

FILE = "oauth.json"
PAGE = "/sign-in"
_RESOURCES = ("/mcp", "/mcp/connector")
_ACCESS_SECONDS = 3_600
_REFRESH_SECONDS = 60 * 24 * 3_600
_CODE_SECONDS = 300
_WAITING_SECONDS = 600
_MAX_CLIENTS = 200
_MAX_WAITING = 100
_MAX_TRIES = 5
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "same-origin",  # with none, a browser would send the form without its origin
}
_DOCUMENT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in to Klaw</title>
<meta name="viewport" content="width=device-width">
<style>body{{font:1rem/1.5 system-ui;max-width:34rem;margin:10vh auto;padding:0 1rem}}input,button{{font:inherit;
width:100%;box-sizing:border-box;padding:.5rem;margin:.5rem 0}}</style>
<h1>Sign in to Klaw</h1><p><b>{client}</b> wants to read and write your memory. It will be sent to <b>{place}</b>.</p>
<p>Continue only if you have started this yourself. The token is what <code>klaw serve token</code> prints.</p>
<form method="post" action="{page}"><input type="hidden" name="request" value="{request}">
<label>Token <input type="password" name="token" autocomplete="current-password" autofocus required></label>
<p role="alert">{notice}</p><button>Allow</button></form></html>"""


def make(data_dir: Path, url: str, password: Callable[[], str]) -> SignIn:
    """Return the sign-in of a server whose public address is ``url``. ``password`` returns the token of its owner."""
    server = _Server(data_dir / FILE, url, password)
    server.load()
    resources = [AnyHttpUrl(f"{url}{path}") for path in _RESOURCES]
    described = [
        route for each in resources for route in create_protected_resource_routes(each, [AnyHttpUrl(url)], None, "Klaw")
    ]
    routes = [
        *create_auth_routes(
            server,
            AnyHttpUrl(url),
            client_registration_options=ClientRegistrationOptions(enabled=True),
            revocation_options=RevocationOptions(enabled=True),
        ),
        *described,
        Route(PAGE, server.page, methods=["GET", "POST"]),
    ]
    return SignIn(url, frozenset(route.path for route in routes), Starlette(routes=routes), server.opens)


@frozen(eq=False)
class SignIn:
    """What a server asks. ``paths`` need no token, and ``app`` answers them. ``opens`` checks a token."""

    url: str
    paths: frozenset[str]
    app: Callable[..., Any]
    opens: Callable[[str], bool]

    def accepts(self, token: str, path: str) -> bool:
        """Return whether a token opens a path; only MCP is opened."""
        return any(path == each or path.startswith(f"{each}/") for each in _RESOURCES) and self.opens(token)

    def challenge(self, path: str) -> str:
        """Return the header that tells a client without a token where it can sign in."""
        place = path if path in _RESOURCES else _RESOURCES[0]
        return f'Bearer resource_metadata="{self.url}/.well-known/oauth-protected-resource{place}"'


@frozen
class _Grant:
    """What a token stands for. ``owner`` is the hash of the password with which it was granted."""

    client: str
    owner: str
    expires: float
    scopes: tuple[str, ...] = ()
    resource: str | None = None


@define
class _Waiting:
    """A request that waits for its user."""

    client: OAuthClientInformationFull
    params: AuthorizationParams
    expires: float
    tries: int = 0


@define(eq=False)
class _Server(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The clients and what was granted to them. Use it only in the event loop."""

    file: Path
    url: str
    password: Callable[[], str]
    _clients: dict[str, OAuthClientInformationFull] = field(factory=dict, init=False)
    _refresh: dict[str, _Grant] = field(factory=dict, init=False)
    _access: dict[str, _Grant] = field(factory=dict, init=False)
    _codes: dict[str, tuple[AuthorizationCode, _Grant]] = field(factory=dict, init=False)
    _waiting: dict[str, _Waiting] = field(factory=dict, init=False)
    _saving: anyio.Lock = field(factory=anyio.Lock, init=False)

    def load(self) -> None:
        """Read the file. Raise ConfigError if it is damaged."""
        try:
            kept: Any = json.loads(read_regular(self.file))
            self._clients = {
                name: OAuthClientInformationFull.model_validate(client) for name, client in kept["clients"].items()
            }
            self._refresh = {
                name: _Grant(**{**grant, "scopes": tuple(grant["scopes"])}) for name, grant in kept["refresh"].items()
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                [f"{self.file} cannot be read: {error}"], hint=f"rm {self.file}; clients then sign in again"
            ) from error

    async def _save(self) -> None:
        async with self._saving:  # or an older state could be written last
            clients = {name: one.model_dump(mode="json", exclude_none=True) for name, one in self._clients.items()}
            kept = {"clients": clients, "refresh": {name: asdict(grant) for name, grant in self._refresh.items()}}
            await anyio.to_thread.run_sync(write_atomically, self.file, json.dumps(kept))

    def opens(self, token: str) -> bool:
        """Return whether an access token is valid."""
        return self._valid(self._access, token) is not None

    def _valid(self, grants: Mapping[str, _Grant], token: str) -> _Grant | None:
        grant = grants.get(_hash(token))
        is_valid = grant is not None and grant.expires > time.time() and grant.owner == _hash(self.password())
        return grant if is_valid else None

    def _forget_old(self) -> None:
        now, owner = time.time(), _hash(self.password())
        for grants in (self._refresh, self._access):
            for name in [name for name, grant in grants.items() if grant.expires <= now or grant.owner != owner]:
                del grants[name]
        for name in [name for name, waiting in self._waiting.items() if waiting.expires <= now]:
            del self._waiting[name]
        for name in [name for name, (code, _) in self._codes.items() if code.expires_at <= now]:
            del self._codes[name]

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return a client that has registered."""
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client. If there are too many, the oldest that nobody has signed in to goes."""
        for place in client_info.redirect_uris or ():
            if place.scheme == "http" and place.host not in _LOCAL:
                raise RegistrationError("invalid_redirect_uri", "a redirect URI without encryption has to be local")
        self._forget_old()
        if len(self._clients) >= _MAX_CLIENTS:
            used = {grant.client for grant in self._refresh.values()}
            unused = next((name for name in self._clients if name not in used), None)
            if unused is None:
                raise RegistrationError("invalid_client_metadata", "this server has too many clients")
            del self._clients[unused]
        self._clients[client_info.client_id] = client_info
        await self._save()

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Return the address of the page on which the user signs in."""
        if not _CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge is not that of the method S256")
        if params.resource and not f"{params.resource.rstrip('/')}/".startswith(f"{self.url}/"):
            raise AuthorizeError("invalid_request", f"this server has no resource {params.resource}")
        self._forget_old()
        if len(self._waiting) >= _MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        name = secrets.token_urlsafe(32)
        self._waiting[name] = _Waiting(client, params, time.time() + _WAITING_SECONDS)
        return f"{self.url}{PAGE}?{urlencode({'request': name})}"

    async def page(self, request: Request) -> Response:
        """Show the page, or take the password: back to the client with a code if it is right."""
        posted = parse_qs((await request.body()).decode("utf-8", "replace")) if request.method == "POST" else {}
        name = (posted.get("request") or [request.query_params.get("request", "")])[0]
        self._forget_old()
        waiting = self._waiting.get(name)
        if waiting is None:
            return HTMLResponse("<p>This sign-in has expired. Start again in the client.", 400, _HEADERS)
        if not posted:
            return _page(name, waiting)
        given = posted.get("token", [""])[0].strip()
        known = self.password()
        if not known or not secrets.compare_digest(given.encode(), known.encode()):
            waiting.tries += 1
            if waiting.tries >= _MAX_TRIES:
                del self._waiting[name]
            return _page(name, waiting, "This is not the token.", 403)
        del self._waiting[name]
        return RedirectResponse(self._granted(waiting), 302, _HEADERS)

    def _granted(self, waiting: _Waiting) -> str:
        params, scopes = waiting.params, waiting.params.scopes or []
        expires = time.time() + _CODE_SECONDS
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=scopes,
            expires_at=expires,
            client_id=waiting.client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        grant = _Grant(waiting.client.client_id, _hash(self.password()), expires, tuple(scopes), params.resource)
        self._codes[code.code] = (code, grant)
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """Return a code that this client got; None if there is none, or it was used."""
        code, _ = self._codes.get(authorization_code, (None, None))
        return code if code is not None and code.client_id == client.client_id else None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Return tokens for a code, which is used up."""
        _, grant = self._codes.pop(authorization_code.code, (None, None))
        if grant is None or client.client_id != grant.client:
            raise TokenError("invalid_grant", "the code was used")
        return await self._tokens(grant)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """Return a refresh token that this client got."""
        grant = self._valid(self._refresh, refresh_token)
        if grant is None or grant.client != client.client_id:
            return None
        return RefreshToken(
            token=refresh_token, client_id=grant.client, scopes=list(grant.scopes), expires_at=int(grant.expires)
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """Return new tokens for a refresh token, which is used up."""
        grant = self._refresh.pop(_hash(refresh_token.token), None)
        if grant is None or client.client_id != grant.client:
            raise TokenError("invalid_grant", "the refresh token was used")
        return await self._tokens(_Grant(grant.client, grant.owner, 0, tuple(scopes), grant.resource))

    async def _tokens(self, grant: _Grant) -> OAuthToken:
        self._forget_old()
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = time.time()
        about = (grant.scopes, grant.resource)
        self._access[_hash(access)] = _Grant(grant.client, grant.owner, now + _ACCESS_SECONDS, *about)
        self._refresh[_hash(refresh)] = _Grant(grant.client, grant.owner, now + _REFRESH_SECONDS, *about)
        await self._save()
        scope = " ".join(grant.scopes) or None
        return OAuthToken(access_token=access, expires_in=_ACCESS_SECONDS, refresh_token=refresh, scope=scope)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Return a valid access token."""
        grant = self._valid(self._access, token)
        return None if grant is None else AccessToken(token=token, client_id=grant.client, scopes=list(grant.scopes))

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End a sign-in: all tokens of its client."""
        for grants in (self._access, self._refresh):
            for name in [name for name, grant in grants.items() if grant.client == token.client_id]:
                del grants[name]
        await self._save()


def _page(name: str, waiting: _Waiting, notice: str = "", status: int = 200) -> HTMLResponse:
    place = waiting.params.redirect_uri
    shown = {
        "client": waiting.client.client_name or "A program without a name",
        "place": place.host or f"{place.scheme}:",
        "page": PAGE,
        "request": name,
        "notice": notice,
    }
    return HTMLResponse(
        _DOCUMENT.format_map({key: html.escape(value) for key, value in shown.items()}), status, _HEADERS
    )


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()
