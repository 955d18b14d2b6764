"""The page at ``/``: a few files as they are, without a build, served with a policy that lets nothing else run."""

from __future__ import annotations

import secrets
from functools import partial
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

_SCRIPTS: Final = (
    *("api", "app", "chats", "core", "documents", "dom", "editor", "facts", "filters", "render", "results", "search"),
    *("start", "status"),
)
_TYPES: Final = {
    **{f"{name}.js": "text/javascript" for name in _SCRIPTS},
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def routes(*, read_only: bool = False) -> list[Route]:
    """Return the routes of the page and of its files. With ``read_only``, the page offers nothing that writes."""
    return [Route("/", partial(_page, read_only=read_only)), Route("/page/{name}", _file)]


def _read(name: str) -> str:
    return (files(__name__) / name).read_text("utf-8")


async def _page(request: Request, *, read_only: bool) -> Response:
    asked = request.scope["klaw.asked"]
    if not asked.endswith("/"):  # what the page loads is relative to it
        return RedirectResponse(f"{asked}/")
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    html = _read("index.html").replace("{nonce}", nonce)
    html = html.replace("<body>", "<body data-read-only>") if read_only else html
    return Response(html, media_type="text/html", headers={"content-security-policy": policy})


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _TYPES:
        return Response(status_code=404)
    return Response(_read(name), media_type=_TYPES[name])
