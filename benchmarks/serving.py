"""What it costs to ask a server instead of the memory: searches a second, and how long each takes.

    python benchmarks/serving.py [--chunks 100000] [--seconds 5] [--embedder none] [--flat 100000]

A data directory is filled with made-up notes of Zipf-distributed words. The same questions are then asked in process
(in 1, 8 and 32 threads) and of `klaw serve` in a process of its own, by 1, 8 and 32 clients over HTTP (kept open),
WebSocket and MCP. Each client waits for its answer before it asks again. The clients share one process, and with the
server the processors: what 8 and 32 clients reach is a lower bound. Compare the figures of one run only. `--flat` asks
so many questions more over HTTP and prints the server's resident memory before and after.
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
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx2
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from websockets.sync.client import connect

from klaw_core import Memory, NewDocument, load_config

CLIENTS = (1, 8, 32)
_WORDS = 20_000
_LENGTH = 60
_BATCH = 5_000
Ask = Callable[[str], Any]


def fill(memory: Memory, chunks: int, rng: random.Random) -> None:
    """Add so many documents of one chunk each."""
    words = [f"w{rank}" for rank in range(_WORDS)]
    weights = [1 / (rank + 10) for rank in range(_WORDS)]
    for start in range(0, chunks, _BATCH):
        many = range(start, min(start + _BATCH, chunks))
        memory.add(NewDocument(str(number), " ".join(rng.choices(words, weights, k=_LENGTH))) for number in many)


def measure(make: Callable[[ExitStack], Ask], clients: int, seconds: float, questions: list[str]) -> list[float]:
    """Let clients ask, each in a thread, for so many seconds; return how long each answer took."""
    took: list[float] = []
    until = time.perf_counter() + seconds

    def run(seed: int) -> None:
        rng = random.Random(seed)
        with ExitStack() as stack:
            ask = make(stack)
            while (began := time.perf_counter()) < until:
                ask(rng.choice(questions))
                took.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def over_http(port: int, token: str) -> Callable[[ExitStack], Ask]:
    """Return a client of the REST surface on one connection."""

    def make(stack: ExitStack) -> Ask:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        stack.callback(connection.close)

        def ask(question: str) -> Any:
            path = f"/api/search?query={question.replace(' ', '+')}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            return json.loads(connection.getresponse().read())["results"]

        return ask

    return make


def over_websocket(port: int, token: str) -> Callable[[ExitStack], Ask]:
    """Return a client of the WebSocket."""

    def make(stack: ExitStack) -> Ask:
        headers = {"Authorization": f"Bearer {token}"}
        socket = stack.enter_context(connect(f"ws://127.0.0.1:{port}/ws", additional_headers=headers))

        def ask(question: str) -> Any:
            socket.send(json.dumps({"id": 1, "method": "memory.search", "params": {"query": question}}))
            return json.loads(socket.recv())["result"]["results"]

        return ask

    return make


async def over_mcp(port: int, token: str, clients: int, seconds: float, questions: list[str]) -> list[float]:
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
                await session.call_tool("memory_search", {"query": rng.choice(questions)})
                took.append(time.perf_counter() - began)

    await asyncio.gather(*(run(seed) for seed in range(clients)))
    return took


def show(way: str, clients: int, took: list[float], seconds: float) -> None:
    """Print a row."""
    p50, p99 = (cut * 1e3 for cut in (quantiles(took, n=100)[49], quantiles(took, n=100)[98]))
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
    questions = [" ".join(f"w{int(rng.paretovariate(0.7)) % _WORDS}" for _ in range(4)) for _ in range(500)]
    environment = {**os.environ, "KLAW_EMBEDDER": given.embedder}
    with tempfile.TemporaryDirectory() as root:
        with Memory.open(load_config(data_dir=root, environment=environment)) as memory:
            fill(memory, given.chunks, rng)
            for clients in CLIENTS:
                took = measure(lambda _: memory.search, clients, given.seconds, questions)
                show("in process", clients, took, given.seconds)
        command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--data-dir", root]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            ask_server(server, root, given, questions)
        finally:
            server.terminate()
            server.wait()


def ask_server(server: subprocess.Popen[str], root: str, given: argparse.Namespace, questions: list[str]) -> None:
    """Ask in every way, then so often that a leak would show."""
    assert server.stdout is not None
    said = ""
    while "}" not in said:
        said += server.stdout.readline()
    port = int(json.loads(said)["url"].rpartition(":")[2])
    token = Path(root, "serve.token").read_text().strip()
    ways = {"HTTP": over_http(port, token), "WebSocket": over_websocket(port, token)}
    for name, make in ways.items():
        for clients in CLIENTS:
            show(name, clients, measure(make, clients, given.seconds, questions), given.seconds)
    for clients in CLIENTS:
        show("MCP", clients, asyncio.run(over_mcp(port, token, clients, given.seconds, questions)), given.seconds)
    if given.flat:
        with ExitStack() as stack:
            ask = over_http(port, token)(stack)
            before = resident(server.pid)
            for number in range(given.flat):
                ask(questions[number % len(questions)])
        after = resident(server.pid)
        print(f"resident memory of the server: {before:.1f} MiB, {after:.1f} after {given.flat:,} questions more")


if __name__ == "__main__":
    main()
