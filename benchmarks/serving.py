"""What it costs to ask a server instead of the memory: searches a second, and how long each takes.

    python benchmarks/serving.py [--chunks 100000] [--seconds 5] [--embedder none] [--flat 100000]

A data directory is filled with made-up notes of Zipf-distributed words. The same questions are then asked in process
(in 1, 8 and 32 threads) and of `klaw serve` in a process of its own, by 1, 8 and 32 clients over HTTP (kept open),
WebSocket and MCP. Each client waits for its answer before it asks again. The clients share one process, and with the
server the processors: what 8 and 32 clients reach is a lower bound. Every question is asked once before anything is
measured, in process and of the server. The server is `--read-only`: else its watcher looks at every document when it
starts, next to the first searches. Compare the figures of one run only. `--flat` asks so many questions more over HTTP
and prints the server's resident memory before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
from clients import CLIENTS, Ask, documents, measure, percentiles, questions
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from klaw_core import Memory, load_config


def over_http(port: int, token: str) -> Callable[[ExitStack, int], Ask]:
    """Return a client of the REST surface on one connection."""

    def make(stack: ExitStack, _: int) -> Ask:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        stack.callback(connection.close)

        def ask(question: str) -> Any:
            path = f"/api/search?query={question.replace(' ', '+')}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            return json.loads(connection.getresponse().read())["results"]

        return ask

    return make


def over_websocket(port: int, token: str) -> Callable[[ExitStack, int], Ask]:
    """Return a client of the WebSocket."""

    def make(stack: ExitStack, _: int) -> Ask:
        headers = {"Authorization": f"Bearer {token}"}
        socket = stack.enter_context(connect(f"ws://127.0.0.1:{port}/ws", additional_headers=headers))

        def ask(question: str) -> Any:
            socket.send(json.dumps({"id": 1, "method": "memory.search", "params": {"query": question}}))
            return json.loads(socket.recv())["result"]["results"]

        return ask

    return make


async def over_mcp(port: int, token: str, clients: int, seconds: float, asked: Sequence[str]) -> list[float]:
    """Let clients of the SDK call the tool, in one event loop; return how long each answer took."""
    took: list[float] = []

    async def run(seed: int) -> None:
        rng = random.Random(seed)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client,
            streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            until = time.perf_counter() + seconds
            while (began := time.perf_counter()) < until:
                await session.call_tool("memory_search", {"query": rng.choice(asked)})
                took.append(time.perf_counter() - began)

    await asyncio.gather(*(run(seed) for seed in range(clients)))
    return took


def warm_up(make: Callable[[ExitStack, int], Ask], asked: Sequence[str]) -> None:
    """Ask every question once: what is kept of the words of the first ones must not tell one way from another."""
    with ExitStack() as stack:
        ask = make(stack, 0)
        for question in asked:
            ask(question)


def show(way: str, clients: int, took: list[float], seconds: float) -> None:
    """Print a row."""
    p50, p99 = percentiles(took)
    rate = len(took) / seconds
    print(f"{way:12} {clients:3} clients {rate:8.1f} a second   p50 {p50:7.2f} ms   p99 {p99:7.2f} ms")


def resident(process: int) -> float:
    """Return a process's resident memory, in MiB (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--flat", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(1)
    asked = questions(500, rng)
    environment = {**os.environ, "KLAW_EMBEDDER": given.embedder}
    with tempfile.TemporaryDirectory() as root:
        with Memory.open(load_config(data_dir=root, environment=environment)) as memory:
            memory.add(documents(given.chunks, rng))
            warm_up(lambda *_: memory.search, asked)
            for clients in CLIENTS:
                took = measure(lambda *_: memory.search, clients, given.seconds, asked)
                show("in process", clients, took, given.seconds)
        command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--read-only"]
        command += ["--data-dir", root]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            ask_server(server, root, given, asked)
        finally:
            server.terminate()
            server.wait()


def ask_server(server: subprocess.Popen[str], root: str, given: argparse.Namespace, asked: Sequence[str]) -> None:
    """Ask in every way, then so often that a leak would show."""
    assert server.stdout is not None
    said = ""
    while "}" not in said:
        said += server.stdout.readline()
    port = int(json.loads(said)["url"].rpartition(":")[2])
    token = Path(root, "serve.token").read_text().strip()
    ways = {"HTTP": over_http(port, token), "WebSocket": over_websocket(port, token)}
    warm_up(over_http(port, token), asked)
    for name, make in ways.items():
        for clients in CLIENTS:
            show(name, clients, measure(make, clients, given.seconds, asked), given.seconds)
    for clients in CLIENTS:
        show("MCP", clients, asyncio.run(over_mcp(port, token, clients, given.seconds, asked)), given.seconds)
    if given.flat:
        with ExitStack() as stack:
            ask = over_http(port, token)(stack, 0)
            before = resident(server.pid)
            for number in range(given.flat):
                ask(asked[number % len(asked)])
        after = resident(server.pid)
        print(f"resident memory of the server: {before:.1f} MiB, {after:.1f} after {given.flat:,} questions more")


if __name__ == "__main__":
    main()
