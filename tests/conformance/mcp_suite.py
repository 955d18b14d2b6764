"""Hold the server of MCP, as ``klaw serve`` runs it, against the official inspector and the official conformance suite.

    python tests/conformance/mcp_suite.py NODE_MODULES

NODE_MODULES is a directory where npm has installed both. The suite sends no token, so one is added to its requests
before the guard sees them. What it tests and Klaw does not offer stands in ``not-offered*.yml``, one file for each
revision of the protocol; anything else that fails is a failure, and so is anything named there that passes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from klaw_core import Memory, load_config
from klaw_serve.app import make_service
from klaw_serve.options import Limits, Listening
from klaw_serve.tokens import Tokens

HERE = Path(__file__).parent
#: What is run of the suite, by the file of what is not offered: a revision with a handshake, and one without.
REVISIONS = {
    "not-offered.yml": ("--spec-version", "2025-11-25"),
    "not-offered-2026.yml": ("--requirements", "2026-07-28"),
}
# Every tool, with arguments that it accepts.
CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("memory_save", {"content": "The kiln is fired to twelve hundred degrees."}),
    ("memory_search", {"query": "kiln", "topK": "1"}),
    ("memory_get", {"path": "notes/boat.md"}),
    ("memory_context", {"message": "Where is the boat?"}),
    ("memory_core_update", {"section": "user", "key": "name", "value": "Ada"}),
    ("memory_core_get", {}),
    ("memory_core_delete", {"section": "user", "key": "name"}),
    ("memory_status", {}),
)


def with_token(app: Callable[..., Any], token: str) -> Callable[..., Any]:
    """Return an application that adds a token to requests that have none."""

    async def adding(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await app(scope, receive, send)

    return adding


async def run(command: list[str]) -> tuple[int, str]:
    """Run a program; return its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=asyncio.subprocess.STDOUT)
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def inspect(node_modules: Path, url: str) -> list[str]:
    """Ask for everything with the inspector; return what failed."""
    inspector = [str(node_modules / ".bin/mcp-inspector"), "--cli", url, "--transport", "http", "--method"]
    lists = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    asked = [[method] for method in lists]
    asked.append(["resources/read", "--uri", "klaw:///notes/boat.md"])
    asked.append(["prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=boat"])
    for name, arguments in CALLS:
        given = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
        asked.append(["tools/call", "--tool-name", name, *given])
    failed = []
    for each in asked:
        status, output = await run([*inspector, *each])
        answer = output[output.find("{") :]
        good = status == 0 and not json.loads(answer or "{}").get("isError")
        print("inspector", " ".join(each[:3]), "passed" if good else f"FAILED\n{output}")  # noqa: T201  # a program
        failed += [] if good else [" ".join(each)]
    return failed


def indexed(root: Path) -> Memory:
    """Return a memory of one note."""
    notes = root / "notes"
    notes.mkdir()
    (notes / "boat.md").write_text("# Boat\n\nThe boat lies in Split.\n", "utf-8")
    memory = Memory.open(load_config(data_dir=root / "data", environment={"KLAW_EMBEDDER": "none"}))
    memory.index(notes)
    return memory


async def main(node_modules: Path) -> int:
    """Serve a memory and run both; return an exit status."""
    with tempfile.TemporaryDirectory() as root:
        memory = indexed(Path(root))
        service = make_service(memory, Listening(), Limits())
        app = with_token(service.app, Tokens(memory.config.data_dir).make())
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
        serving = asyncio.ensure_future(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn has no event for it
            await asyncio.sleep(0.05)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        failed = await inspect(node_modules, url)
        suite = [str(node_modules / ".bin/node"), str(node_modules / ".bin/conformance"), "server", "--url", url]
        for revision, options in REVISIONS.items():
            status, output = await run([*suite, *options, "--expected-failures", str(HERE / revision)])
            print(output)  # noqa: T201
            failed += [revision] if status else []
        server.should_exit = True
        await serving
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
