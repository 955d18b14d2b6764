"""What it costs to ask a server instead of the memory: searches a second, and how long each takes.

    python benchmarks/serving.py [--chunks 100000] [--seconds 5] [--rounds 3] [--embedder none] [--flat 100000]

A data directory is filled with synthetic notes of Zipf-distributed words. 1, 8 and 32 clients then ask the same
questions in turns: in process (threads), and over HTTP (connections kept open), WebSocket and MCP of `klaw serve` in a
process of its own. Each client waits for its answer before it asks again. All clients run in one process, and share
the processors with the server: the rates of 8 and 32 clients are lower bounds. Each question is asked once in each way
before anything is measured. The server is `--read-only`: otherwise its watcher looks at every document when it starts,
next to the first searches. The printed figures are medians over the rounds; `x` is the median of the rate divided by
the rate in process, with the same number of clients, in the same round. `--flat` asks this many questions more over
HTTP, and prints the server's resident memory before and after.
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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
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


@dataclass(frozen=True)
class Round:
    """The answers that some clients got in one round: how many a second, and their percentiles in milliseconds."""

    rate: float
    p50: float
    p99: float

    @classmethod
    def of(cls, took: Sequence[float], seconds: float) -> Round:
        """Sum up how long each answer took."""
        return cls(len(took) / seconds, *percentiles(took))


def show(way: str, clients: int, rounds: Sequence[Round], in_process: Sequence[Round]) -> None:
    """Print a row."""
    rate, p50, p99 = (median(getattr(each, name) for each in rounds) for name in ("rate", "p50", "p99"))
    ratio = median(each.rate / other.rate for each, other in zip(rounds, in_process, strict=True))
    print(
        f"{way:12} {clients:3} clients {rate:8.1f} a second   x {ratio:5.2f}   p50 {p50:7.2f} ms   p99 {p99:7.2f} ms",
        flush=True,
    )


def resident(process: int) -> float:
    """Return a process's resident memory, in MiB (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Fill a data directory, ask in every way, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--flat", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(1)
    asked = questions(500, rng)
    environment = {**os.environ, "KLAW_EMBEDDER": given.embedder}
    with tempfile.TemporaryDirectory() as root:
        config = load_config(data_dir=root, environment=environment)
        with Memory.open(config) as memory:
            memory.add(documents(given.chunks, rng))
        command = [sys.executable, "-m", "klaw_core", "serve", "--port", "0", "--json", "--read-only"]
        command += ["--data-dir", root]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            port, token = address(server, root)
            with Memory.open(config) as memory:
                compare(memory, port, token, given, asked)
            if given.flat:
                ask_on(server, over_http(port, token), given.flat, asked)
        finally:
            server.terminate()
            server.wait()


def address(server: subprocess.Popen[str], root: str) -> tuple[int, str]:
    """Wait for a server; return its port and its access token."""
    assert server.stdout is not None
    said = ""
    while "}" not in said:
        said += server.stdout.readline()
    return int(json.loads(said)["url"].rpartition(":")[2]), Path(root, "serve.token").read_text().strip()


def compare(memory: Memory, port: int, token: str, given: argparse.Namespace, asked: Sequence[str]) -> None:
    """Ask in every way, in turns, and print a row for each way and number of clients."""
    makes: dict[str, Callable[[ExitStack, int], Ask]] = {
        "in process": lambda *_: memory.search,
        "HTTP": over_http(port, token),
        "WebSocket": over_websocket(port, token),
    }
    for make in makes.values():
        warm_up(make, asked)
    seconds: float = given.seconds
    for clients in CLIENTS:
        rounds: dict[str, list[Round]] = {way: [] for way in (*makes, "MCP")}
        for _ in range(given.rounds):
            for way, make in makes.items():
                rounds[way].append(Round.of(measure(make, clients, seconds, asked), seconds))
            took = asyncio.run(over_mcp(port, token, clients, seconds, asked))
            rounds["MCP"].append(Round.of(took, seconds))
        for way, found in rounds.items():
            show(way, clients, found, rounds["in process"])


def ask_on(
    server: subprocess.Popen[str], make: Callable[[ExitStack, int], Ask], count: int, asked: Sequence[str]
) -> None:
    """Ask so many questions that a leak would show, and print the server's memory."""
    with ExitStack() as stack:
        ask = make(stack, 0)
        before = resident(server.pid)
        for number in range(count):
            ask(asked[number % len(asked)])
    after = resident(server.pid)
    print(f"resident memory of the server: {before:.1f} MiB, {after:.1f} after {count:,} more questions")


if __name__ == "__main__":
    main()
