"""Remote clients sign in with OAuth: the SDK's own client does, and nothing else is opened by its tokens."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("klaw_mcp")

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from klaw_core import Memory, load_config
from klaw_serve.app import make_service
from klaw_serve.options import Limits, Listening
from klaw_serve.tokens import Tokens

URL = "https://memory.example.org"
BACK = "http://127.0.0.1:9/back"
ABOUT = {"client_name": "<b>Robot</b>", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
PROOF = "a" * 64
#: S256 of the proof.
CHALLENGE = "_-BU_nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs"


class Kept:
    """What a client remembers."""

    def __init__(self):
        self.tokens = self.info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.info

    async def set_client_info(self, info):
        self.info = info


@asynccontextmanager
async def served(data):
    """Yield a client of a server behind a proxy, and the server's token."""
    memory = Memory.open(load_config(data_dir=data, environment={"KLAW_EMBEDDER": "none"}))
    listening = Listening(behind_proxy=True, names=("memory.example.org",), oauth=URL)
    service = make_service(memory, listening, Limits())
    async with service.lifespan(None):
        transport = httpx2.ASGITransport(app=service.app)
        async with httpx2.AsyncClient(transport=transport, base_url=URL) as http:
            yield http, transport, Tokens(data).make()


def run(conversation):
    return asyncio.run(asyncio.wait_for(conversation, 300))


async def registered(http, **more):
    return (await http.post("/register", json={**ABOUT, **more})).json()


async def asked(http, client, **more):
    """Return the answer to a client's request to sign in."""
    given = {"response_type": "code", "client_id": client["client_id"], "redirect_uri": BACK, "state": "s1"}
    proof = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    return await http.get("/authorize", params={**given, **proof, **more})


async def signed_in(http, page, token):
    """Fill in the form of a page as a browser does."""
    form = (await http.get(page, follow_redirects=True)).text
    (request,) = re.findall(r'name="request" value="([^"]+)"', form)
    return await http.post("/sign-in", data={"request": request, "token": token}, headers={"Origin": URL})


async def token_of(http, client, answer, proof=PROOF):
    code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "code_verifier": proof}
    return await http.post("/token", data={**form, "client_id": client["client_id"]})


async def status_of(http, token, path="/mcp"):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    return (await http.post(path, json=ping, headers=headers)).status_code


def test_the_sdks_client_signs_in_and_searches(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, transport, token):
            answers = []

            async def browse(page):
                answers.append(await signed_in(http, page, token))

            async def back():
                found = parse_qs(urlsplit(answers[-1].headers["location"]).query)
                return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

            kept = Kept()
            about = OAuthClientMetadata(client_name="test", redirect_uris=[BACK])
            auth = OAuthClientProvider(f"{URL}/mcp", about, kept, browse, back)
            async with (
                httpx2.AsyncClient(transport=transport, auth=auth, timeout=300) as signing,
                streamable_http_client(f"{URL}/mcp", http_client=signing) as (read, write, *_),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                await session.call_tool("memory_save", {"content": "The harbour froze over."})
                found = await session.call_tool("memory_search", {"query": "harbour"})
                assert "froze" in json.loads(found.content[0].text)["results"][0]["content"]
            assert await status_of(http, kept.tokens.access_token) == 200
            for path in ("/api/search?query=harbour", "/rpc", "/metrics", "/agents/ann/mcp"):
                assert await status_of(http, kept.tokens.access_token, path) == 401, path

    run(conversation())


def test_whoever_has_no_token_is_told_where_to_sign_in(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, _token):
            told = (await http.post("/mcp/connector", json={})).headers["www-authenticate"]
            place = re.fullmatch(r'Bearer resource_metadata="https://memory.example.org(.+)"', told)[1]
            resource = (await http.get(place)).json()
            assert resource["resource"] == f"{URL}/mcp/connector"
            (server,) = resource["authorization_servers"]
            about = (await http.get(f"{server.rstrip('/')}/.well-known/oauth-authorization-server")).json()
            assert about["code_challenge_methods_supported"] == ["S256"]
            assert about["registration_endpoint"] == f"{URL}/register"

    run(conversation())


def test_a_wrong_token_grants_nothing_and_the_page_shows_who_asks(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, token):
            client = await registered(http)
            page = (await asked(http, client)).headers["location"]
            shown = await http.get(page)
            assert "&lt;b&gt;Robot" in shown.text
            assert "127.0.0.1" in shown.text
            assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
            assert shown.headers["referrer-policy"] == "same-origin"  # or a browser sends no origin with the form
            for _ in range(5):
                answer = await signed_in(http, page, "wrong")
                assert (answer.status_code, answer.headers.get("location")) == (403, None)
            assert (await http.get(page)).status_code == 400
            other = (await asked(http, client)).headers["location"]
            assert (await http.post(other, data={}, headers={"Origin": "https://evil.example"})).status_code == 403
            answer = await signed_in(http, other, token)
            assert answer.headers["location"].startswith(f"{BACK}?code=")
            assert (await http.get(other)).status_code == 400

    run(conversation())


def test_a_code_needs_its_proof_and_works_once(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, token):
            client, thief = await registered(http), await registered(http)
            answer = await signed_in(http, (await asked(http, client)).headers["location"], token)
            assert (await token_of(http, client, answer, "b" * 64)).status_code == 400
            assert (await token_of(http, thief, answer)).status_code == 400
            granted = await token_of(http, client, answer)
            assert granted.status_code == 200
            assert (await token_of(http, client, answer)).status_code == 400
            assert await status_of(http, granted.json()["access_token"]) == 200

    run(conversation())


@pytest.mark.parametrize(
    "more",
    [
        {"redirect_uri": "https://evil.example/back"},
        {"code_challenge": ""},
        {"code_challenge_method": "plain"},
        {"resource": "https://memory.example.org.evil.example/mcp"},
        {"client_id": "nobody"},
    ],
)
def test_a_request_that_could_leak_a_code_never_reaches_the_page(tmp_path, more):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, _token):
            answer = await asked(http, await registered(http), **more)
            assert "/sign-in" not in answer.headers.get("location", "")
            assert "evil" not in urlsplit(answer.headers.get("location", "")).netloc

    run(conversation())


def test_a_client_without_encryption_cannot_register(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, _token):
            refused = await registered(http, redirect_uris=["http://far.example/back"])
            assert refused["error"] == "invalid_redirect_uri"

    run(conversation())


def test_sign_ins_survive_a_restart_and_end_with_the_token(tmp_path):
    async def refreshed(http, client, refresh):
        form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client["client_id"]}
        return await http.post("/token", data=form)

    async def conversation():
        data = tmp_path / "data"
        async with served(data) as (http, _, token):
            client = await registered(http)
            answer = await signed_in(http, (await asked(http, client)).headers["location"], token)
            first = (await token_of(http, client, answer)).json()
        kept = (data / "oauth.json").read_text("utf-8")
        assert first["refresh_token"] not in kept
        assert (data / "oauth.json").stat().st_mode & 0o077 == 0
        async with served(data) as (http, _, _token):
            second = (await refreshed(http, client, first["refresh_token"])).json()
            assert await status_of(http, second["access_token"]) == 200
            assert (await refreshed(http, client, first["refresh_token"])).status_code == 400
            (data / "serve.token").unlink()
            Tokens(data).make()
            assert await status_of(http, second["access_token"]) == 401
            assert (await refreshed(http, client, second["refresh_token"])).status_code == 400

    run(conversation())


def test_a_revoked_sign_in_ends(tmp_path):
    async def conversation():
        async with served(tmp_path / "data") as (http, _, token):
            client = await registered(http)
            answer = await signed_in(http, (await asked(http, client)).headers["location"], token)
            granted = (await token_of(http, client, answer)).json()
            form = {"token": granted["refresh_token"], "client_id": client["client_id"], "client_secret": ""}
            assert (await http.post("/revoke", data=form)).status_code == 200
            assert await status_of(http, granted["access_token"]) == 401

    run(conversation())


def test_there_is_a_limit_to_clients_and_those_in_use_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("klaw_mcp.oauth._MAX_CLIENTS", 2)

    async def conversation():
        async with served(tmp_path / "data") as (http, _, token):
            used = await registered(http)
            answer = await signed_in(http, (await asked(http, used)).headers["location"], token)
            assert (await token_of(http, used, answer)).status_code == 200
            others = [await registered(http) for _ in range(3)]
            assert (await asked(http, used)).status_code == 302
            assert (await asked(http, others[0])).status_code == 400
            assert (await asked(http, others[-1])).status_code == 302

    run(conversation())


def test_without_the_option_there_is_no_sign_in(server):
    for path in ("/authorize", "/register", "/token", "/sign-in", "/.well-known/oauth-authorization-server"):
        assert server.get(path, token="").status == 401, path
    assert server.get("/mcp", token="").headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--oauth", URL), "--tls-cert"),
        (("--oauth", "http://memory.example.org", "--behind-proxy"), "https://memory.example.org"),
        (("--oauth", f"{URL}/klaw", "--behind-proxy"), "https://memory.example.org"),
        (("--oauth", "https://[", "--behind-proxy"), "https://memory.example.org"),
    ],
)
def test_an_address_that_cannot_be_safe_is_refused(home, options, told):
    done = home.run("serve", *options)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_damaged_file_of_clients_is_reported(home):
    (home.data / "oauth.json").write_text("[]", "utf-8")
    done = home.run("serve", "--port", "0", "--oauth", URL, "--behind-proxy")
    assert done.returncode == 1
    assert "oauth.json" in done.stderr
    assert "rm " in done.stderr
