"""``klaw mcp``: the server on standard input and output."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from klaw_mcp.prologue import Wire

if TYPE_CHECKING:
    from anyio.abc import ObjectSendStream
    from anyio.from_thread import BlockingPortal

    from klaw_core import Lazy, Memory
    from klaw_mcp.tools import Policy

_PATIENCE_SECONDS = 10


def claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output, reserved for this protocol.

    Everything else prints to stderr and reads an empty input, because one stray line would break the protocol.
    """
    source, target = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return os.fdopen(source, "rb"), os.fdopen(target, "wb")


def run(open_memory: Callable[[], Memory], make_policy: Callable[[], Policy]) -> None:
    """Serve until standard input ends, or until nobody reads the answers any more.

    The memory is opened at its first use; errors of opening it are raised then.
    """
    wire = Wire(*claim_streams())
    wire.open()  # answers the first request; all imports from here on run after that answer
    import anyio

    from klaw_core import Lazy

    memory, policy = Lazy(open_memory), make_policy()
    warm = threading.Thread(target=_warm, args=(memory, policy), name="klaw-mcp-warm", daemon=True)
    warm.start()
    try:
        anyio.run(_serve, wire, memory, policy)
    except* BrokenPipeError:  # the client is gone, and nobody is left who could be told
        pass
    if policy.collections or policy.extra:
        warm.join(
            _PATIENCE_SECONDS
        )  # it says if there is no such collection or tool, also if nobody has asked anything


def _warm(memory: Lazy[Memory], policy: Policy) -> None:
    """Open the memory and load the model, so that the first search does not wait for them, and check the names."""
    from klaw_core import KlawError
    from klaw_mcp.tools import toolbox

    try:
        toolbox(memory.get(), policy)
        memory.get().search("warm", limit=1, collection=policy.collections or None)
    except KlawError as error:  # the first request that needs the memory reports the error
        sys.stderr.write(f"klaw mcp: {error}\n")


def _feed(wire: Wire, portal: BlockingPortal, lines: ObjectSendStream[str]) -> None:
    """Pass on standard input, line by line; the server that waits for one can be interrupted, this thread cannot."""
    from concurrent.futures import CancelledError

    from anyio import BrokenResourceError, ClosedResourceError

    # The server has ended, before a line was passed on or while it was.
    ended = (RuntimeError, CancelledError, BrokenResourceError, ClosedResourceError)
    with suppress(*ended):
        try:
            while line := wire.readline():
                for message in _messages(line):
                    if (refused := refusal(message)) is None:
                        portal.call(lines.send, message)
                    else:
                        wire.write(refused)
        except OSError:  # the client is gone
            pass
        portal.call(lines.aclose)


def _messages(line: str) -> list[str]:
    """Return the messages of a line: it is one, or a batch, which the SDK cannot read; each is answered alone.

    See https://modelcontextprotocol.io/specification/2025-03-26/basic#batching.
    """
    with suppress(ValueError, RecursionError):
        if line.lstrip().startswith("[") and (batch := json.loads(line)):
            return [json.dumps(message) for message in batch]
    return [line]


def refusal(line: str) -> str | None:
    """Return the answer to a request that the SDK cannot read, and would leave without one; else None."""
    from mcp_types import jsonrpc_message_adapter

    with suppress(ValueError):
        jsonrpc_message_adapter.validate_json(line, by_name=False)
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # it has no id that an answer could name
        return None
    asked = found.get("id") if isinstance(found, dict) and "method" in found else None
    if not isinstance(asked, int | str):
        return None
    halves = re.search("[\ud800-\udfff]", json.dumps(found, ensure_ascii=False))
    what = (
        "a string contains an unpaired surrogate, which is not valid Unicode"
        if halves
        else "it is not as JSON-RPC 2.0 says"
    )
    return json.dumps({"jsonrpc": "2.0", "id": asked, "error": {"code": -32600, "message": f"invalid request: {what}"}})


async def _serve(wire: Wire, memory: Lazy[Memory], policy: Policy) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal
    from mcp.server.stdio import stdio_server

    from klaw_mcp.notices import told_of_changes
    from klaw_mcp.server import OPTIONS, make_server
    from klaw_mcp.tools import Toolbox

    listen, tell = told_of_changes()
    opened: list[Memory] = []

    def get_memory() -> Memory:
        found = memory.get()
        if not opened:
            opened.append(found)
            found.on_change(listen)
        return found

    server, notices = make_server(Toolbox(get_memory, policy))
    lines: Any
    send, lines = anyio.create_memory_object_stream[str]()
    wired: Any = wire  # it and the stream have the methods of a text file that the SDK calls
    async with BlockingPortal() as portal, send, lines, anyio.create_task_group() as tasks:
        threading.Thread(target=_feed, args=(wire, portal, send), name="klaw-mcp-input", daemon=True).start()
        tasks.start_soon(tell, notices)
        async with stdio_server(lines, anyio.wrap_file(wired)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options(OPTIONS))
        tasks.cancel_scope.cancel()
    for each in opened:
        each.close()
