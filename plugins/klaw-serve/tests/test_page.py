"""The page and what it loads, as the server sends it: `tests/browser` uses it in a browser."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from klaw_serve.page import routes


@pytest.fixture
def get():
    """Return a function that requests a path as the guard passes it on."""
    pages = Starlette(routes=routes())

    async def app(scope, receive, send):
        await pages({**scope, "klaw.asked": scope["path"]}, receive, send)

    return TestClient(app, follow_redirects=False).get


def test_the_page_allows_only_its_own_script(get):
    answer = get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert get("/").headers["content-security-policy"] != policy
    loaded = re.findall(r"<(?:script|link)\b[^>]*>", answer.text)
    run = [tag for tag in loaded if tag.startswith("<script") or 'rel="stylesheet"' in tag]
    assert [re.findall(r'(?:src|href)="([^"]*)"', tag) for tag in run] == [["page/style.css"], ["page/app.js"]]
    assert all(f'nonce="{nonce}"' in tag for tag in run)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_page_that_may_not_write_says_so_in_its_body(read_only):
    pages = Starlette(routes=routes(read_only=read_only))

    async def app(scope, receive, send):
        await pages({**scope, "klaw.asked": scope["path"]}, receive, send)

    text = TestClient(app).get("/").text
    assert ("<body data-read-only>" in text, "<body>" in text) == (read_only, not read_only)


def test_the_page_loads_only_files_that_the_server_has(get):
    waiting, seen = ["page/app.js", "page/style.css", "page/icon.svg"], {}
    while waiting:
        path = waiting.pop()
        answer = seen[path] = get(f"/{path}")
        assert answer.status_code == 200, path
        imported = re.findall(r"""^(?:import|export)\b[^"']*["']\./([^"']+)["']""", answer.text, re.MULTILINE)
        waiting += [each for name in imported if (each := f"page/{name}") not in seen]
    kinds = {path.rpartition(".")[2]: answer.headers["content-type"].partition(";")[0] for path, answer in seen.items()}
    assert kinds == {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert len(seen) > 5


@pytest.mark.parametrize("name", ["../serve.token", "__init__.py", "index.html", "%2e%2e/guard.py", "nothing.js"])
def test_no_other_file_is_served(get, name):
    assert get(f"/page/{name}").status_code == 404
