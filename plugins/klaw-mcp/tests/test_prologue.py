"""The first answer: equal to the SDK's, once, and before anything heavy is imported."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import anyio
import pytest
from mcp.server.stdio import stdio_server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from klaw_mcp.prologue import HANDSHAKE_VERSIONS, INSTRUCTIONS, Wire, answer, version
from klaw_mcp.server import OPTIONS, make_server
from klaw_mcp.tools import NAMES, Policy, Toolbox


def request(asked, request_id=1):
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}


def answers_of_the_sdk(first):
    """Return what the SDK answers to a request on the same handlers."""
    written = io.StringIO()

    async def serve():
        server, _ = make_server(Toolbox(lambda: pytest.fail("the memory was opened"), Policy()))
        source = anyio.wrap_file(io.StringIO(json.dumps(first) + "\n"))
        async with stdio_server(source, anyio.wrap_file(written)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options(OPTIONS))

    anyio.run(serve)
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_the_instructions_name_tools_that_exist_and_say_what_to_do_with_what_is_outdated():
    named = set(re.findall(r"memory_\w+", INSTRUCTIONS))
    assert named <= {*NAMES}
    assert {"memory_search", "memory_save", "memory_core_update"} <= named
    (sentence,) = (each for each in INSTRUCTIONS.split(". ") if "outdated" in each)
    assert "tell the user" in sentence
    assert "supersedes" in sentence
    assert len(INSTRUCTIONS) < 800


@pytest.mark.parametrize("asked", [*HANDSHAKE_PROTOCOL_VERSIONS, "2026-07-28", "1999-01-01", "zzz"])
def test_answers_equal_those_of_the_sdk(asked):
    assert [answer(request(asked), version())] == answers_of_the_sdk(request(asked))


def test_the_protocol_revisions_are_those_of_the_sdk():
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == HANDSHAKE_VERSIONS


@pytest.mark.parametrize(
    "other",
    [
        [],
        "initialize",
        {},
        {"method": "initialize"},
        {"method": "tools/list", "id": 1, "params": {}},
        {**request("2025-06-18"), "id": True},
        {**request("2025-06-18"), "params": {"protocolVersion": "2025-06-18"}},
        {**request("2025-06-18"), "params": {**request("x")["params"], "protocolVersion": 3}},
    ],
)
def test_other_messages_are_left_to_the_sdk(other):
    assert answer(other, "1") is None


def test_only_the_second_answer_to_the_handshake_is_dropped():
    lines = [json.dumps(request("2025-06-18", 5)), '{"jsonrpc":"2.0","id":6,"method":"ping"}']
    sent = io.BytesIO()
    wire = Wire(io.BytesIO("\n".join(lines).encode() + b"\n"), sent, lambda: "1")
    wire.open()
    assert [json.loads(line)["id"] for line in wire] == [5, 6]
    wire.write('{"jsonrpc":"2.0","id":5,"result":{}}\n')
    wire.write('{"jsonrpc":"2.0","id":6,"result":{}}\n')
    wire.write('{"jsonrpc":"2.0","id":5,"result":{"again":1}}\n')
    written = [json.loads(line) for line in sent.getvalue().splitlines()]
    assert [(item["id"], "protocolVersion" in item["result"]) for item in written] == [
        (5, True),
        (6, False),
        (5, False),
    ]


def test_the_first_answer_needs_neither_sdk_nor_memory():
    program = (
        "import sys; import klaw_mcp.command, klaw_mcp.prologue, klaw_mcp.stdio; "
        "print([name for name in ('mcp', 'mcp_types', 'pydantic', 'anyio', 'asyncio', 'tomlkit', 'numpy', "
        "'klaw_core.memory') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
