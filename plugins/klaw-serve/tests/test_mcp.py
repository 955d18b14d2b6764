"""The Model Context Protocol over HTTP, spoken by the SDK's own client, and apps in general."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("klaw_mcp")

import httpx2
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def client(server, *, agent="", token=None, path="/mcp"):
    url = f"http://127.0.0.1:{server.port}{f'/agents/{agent}' if agent else ''}{path}"
    headers = {"Authorization": f"Bearer {server.token if token is None else token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=server.patience) as http,
        streamable_http_client(url, http_client=http) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def call(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    return json.loads(result.content[0].text)


def talk(server, conversation):
    return asyncio.run(asyncio.wait_for(conversation, server.patience))


def test_every_tool_works(server):
    async def conversation():
        async with client(server) as session:
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert {"memory_search", "memory_save", "memory_context"} <= names
            assert "memory_forget" not in names
            found = await call(session, "memory_search", q="kiln degrees", topK="1")
            assert "twelve hundred" in found["results"][0]["content"]
            assert "kiln" in (await call(session, "memory_get", path="notes/kiln.md"))["content"]
            await call(session, "memory_save", content="The harbour froze over.")
            assert "froze" in (await call(session, "memory_context", message="harbour froze"))["context"]
            await call(session, "memory_core_update", section="user", key="name", value="Ada")
            assert (await call(session, "memory_core_get"))["user"] == {"name": "Ada"}
            await call(session, "memory_core_delete", section="user", key="name")
            assert (await call(session, "memory_status"))["origins"]["notes"]["documents"] == 3
            uris = [str(resource.uri) for resource in (await session.list_resources()).resources]
            assert "klaw:///notes/kiln.md" in uris
            assert "twelve" in (await session.read_resource("klaw:///notes/kiln.md")).contents[0].text
            assert (await session.get_prompt("recall", {"topic": "kiln"})).messages

    talk(server, conversation())


# What a client sends after the handshake, and headers that only the SDK looks at closely.
USUAL = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
VERSION = {"MCP-Protocol-Version": "2025-11-25"}
BY_SDK = {**VERSION, "Content-Type": "application/json", "Accept": "*/*"}


#: Half of a surrogate pair, which JSON can express and UTF-8 cannot.
HALF = "kiln \ud800"


def of_call(name="memory_search", arguments=None, **more):
    params = {"name": name, **({} if arguments is None else {"arguments": arguments})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **more}


@pytest.mark.parametrize(
    "frame",
    [
        of_call(arguments={"query": "kiln degrees"}),
        of_call("memory_status"),
        of_call("memory_get", {"path": "notes/none.md"}),
        of_call(arguments={"query": 7, "colour": "red"}),
        of_call("none", {}),
        of_call(arguments={"query": "kiln"}, id="a string"),
        of_call(arguments={"query": "kiln"}, id=1.5),
        of_call(arguments={"query": "kiln"}, id=True),
        of_call(arguments={"query": "kiln"}, jsonrpc="1.0"),
        of_call(
            arguments={"query": "kiln"}, params={"name": "memory_search", "arguments": {"query": "kiln"}, "_meta": {}}
        ),
        of_call(arguments=["kiln"]),
        of_call(arguments={"query": HALF}),
        of_call(arguments={"query": "kiln", HALF: 1}),
        of_call("memory_save", {"content": HALF}),
        of_call("memory_save", {"content": "a kiln", "source": HALF}),
        of_call("memory_get", {"path": HALF}),
        of_call("memory_forget", {"target": HALF}),
        of_call("core_memory_update", {"section": "user", "key": HALF, "value": HALF}),
        of_call(HALF),
        of_call(arguments={"query": "a kiln \U0001f525, not \\ud800"}),
        of_call(arguments={"query": "kiln"}, id=HALF),
        of_call("memory_status", []),
        of_call("memory_status", params={"name": "memory_status", "_meta": 7}),
        of_call(name=3),
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [],
        "a string",
    ],
)
def test_answers_equal_those_of_the_sdk(server, frame):
    """The usual call of a tool goes past the SDK."""
    mine = server.ask("POST", "/mcp", frame, headers={**USUAL, **VERSION})
    theirs = server.ask("POST", "/mcp", frame, headers=BY_SDK)
    assert mine.status == theirs.status < 500
    assert (json.loads(mine.body or b"null"), mine.headers.get("content-type")) == (
        json.loads(theirs.body or b"null"),
        theirs.headers.get("content-type"),
    )


@pytest.mark.parametrize(
    "headers",
    [
        {**USUAL, **VERSION, "Accept": "text/html"},
        {**USUAL, **VERSION, "Content-Type": "text/plain"},
        {**USUAL, "MCP-Protocol-Version": "1999-01-01"},
    ],
)
def test_requests_that_the_sdk_rejects_are_rejected(server, headers):
    assert 400 <= server.ask("POST", "/mcp", of_call(arguments={"query": "kiln"}), headers=headers).status < 500


def test_a_session_needs_the_token(server):
    for path in ("/mcp", "/agents/ann/mcp"):
        assert server.ask("POST", path, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, token="").status == 401


def test_each_agent_has_its_own_memory(home):
    token = home.run("serve", "token", "--agent", "ann").stdout.strip()
    with home.serving() as running:

        async def conversation():
            async with client(running, agent="ann", token=token) as session:
                await call(session, "memory_save", content="Ann keeps bees.")
                assert (await call(session, "memory_search", query="bees"))["results"]
                assert not (await call(session, "memory_search", query="kiln"))["results"]
            async with client(running) as session:
                assert not (await call(session, "memory_search", query="bees"))["results"]

        talk(running, conversation())


def test_read_only_offers_no_tool_that_writes(home):
    with home.serving("--read-only") as running:

        async def conversation():
            async with client(running) as session:
                return [tool for tool in (await session.list_tools()).tools if not tool.annotations.read_only_hint]

        assert talk(running, conversation()) == []


def test_an_edited_note_is_found_through_every_interface(home):
    pytest.importorskip("klaw_watch")
    with home.serving() as running:
        before = home.path / "notes" / "lantern.md~"
        before.write_text("# Lantern\n\nThe lantern hangs in the boathouse.\n", "utf-8")
        before.rename(home.path / "notes" / "lantern.md")  # as editors save
        until = time.monotonic() + running.patience
        while not (results := running.get("/api/search?query=lantern").json["results"]) and time.monotonic() < until:
            time.sleep(0.05)

        async def conversation():
            async with client(running) as session:
                return (await call(session, "memory_search", query="lantern"))["results"]

        assert [result["path"] for result in results] == ["notes/lantern.md"]
        assert running.rpc("memory.search", query="lantern")["result"]["results"] == results
        assert "boathouse" in home.run("search", "lantern").stdout
        assert "boathouse" in talk(running, conversation())[0]["content"]


def test_a_connector_is_offered_only_search_and_fetch(server):
    async def conversation():
        async with client(server, path="/mcp/connector") as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == ["search", "fetch"]
            (found,) = (await call(session, "search", query="kiln degrees"))["results"][:1]
            assert found["id"] == "notes/kiln.md"
            assert "twelve hundred" in (await call(session, "fetch", id=found["id"]))["text"]
            assert "unknown tool" in (await call(session, "memory_save", content="no"))["error"]

    talk(server, conversation())
