"""What other memories for agents cost when they are installed and used: one figure for each call.

    python benchmarks/programs.py size DIR             MB of an environment, and its packages
    python benchmarks/programs.py tools COMMAND ...    a stdio MCP server: its tools, and the kB of their list
    python benchmarks/programs.py run COMMAND ...      CPU seconds and the largest process of a command
    python benchmarks/programs.py mem0                 the calls of a model to save and to find one sentence with mem0

Each program is in an environment of its own: `uv venv`, `uv pip install basic-memory` (or `mem0ai`, or a clone of
Klaw), `npm install @tobilu/qmd`. `tools` needs the package `mcp`; `mem0` runs in the environment of mem0 and answers as
OpenAI would, with a fact that equals the sentence. `docs/explanation/compared.md` has the results.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

SENTENCE = "The staging database is refreshed every Sunday night."
QUESTION = "when is staging refreshed"


def size(place: str) -> str:
    """Return the MB of the files of an environment, and the number of its Python packages or npm modules."""
    files = {path.stat().st_ino: path.stat().st_blocks * 512 for path in Path(place).rglob("*") if path.is_file()}
    packages = len(list(Path(place).rglob("*.dist-info"))) or len(list(Path(place).glob("node_modules/*")))
    return f"{sum(files.values()) / 1e6:.0f} MB in {len(files):,} files, {packages} packages"


async def tools(command: Sequence[str]) -> str:
    """Return how many tools a server offers, and the size of their list as a client gives it to a model."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=command[0], args=list(command[1:]))
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        found = [
            tool.model_dump(mode="json", exclude_none=True, by_alias=True)
            for tool in (await session.list_tools()).tools
        ]
    return f"{len(found)} tools, {len(json.dumps(found, separators=(',', ':'))) / 1e3:.1f} kB"


def run(command: Sequence[str]) -> str:
    """Return the CPU seconds of a command with its children, and the memory of the largest of them."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        f"{used.ru_utime + used.ru_stime:.2f} s of CPU, {used.ru_maxrss / 1024:.0f} MB, exit status {done.returncode}"
    )


class Model(BaseHTTPRequestHandler):
    """Answers as OpenAI does, and counts: each call is a path and the characters of its messages."""

    calls: ClassVar[list[tuple[str, int]]] = []

    def do_POST(self) -> None:  # the name that http.server calls
        """Answer with an embedding for each input, or with one fact."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.calls.append((self.path, sum(len(str(each["content"])) for each in asked.get("messages", ()))))
        body = json.dumps(_embeddings(asked) if self.path.endswith("/embeddings") else _fact()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _embeddings(asked: dict[str, Any]) -> dict[str, Any]:
    texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
    data = [{"object": "embedding", "index": index, "embedding": [0.1] * 1536} for index in range(len(texts))]
    return {"object": "list", "model": "x", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def _fact() -> dict[str, Any]:
    text = json.dumps({"facts": [SENTENCE], "memory": [{"id": "0", "text": SENTENCE, "event": "ADD"}]})
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "x", "choices": [choice], "usage": usage}


def mem0() -> str:
    """Return the calls that mem0 makes, with its defaults, to save a sentence and to find it again."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(OPENAI_API_KEY="none", MEM0_TELEMETRY="False")
    from mem0 import Memory

    with tempfile.TemporaryDirectory() as place:
        model = {"provider": "openai", "config": {"openai_base_url": f"http://127.0.0.1:{server.server_port}/v1"}}
        vectors = {"provider": "qdrant", "config": {"path": place, "on_disk": True}}
        where = {"llm": model, "embedder": model, "vector_store": vectors, "history_db_path": f"{place}/history.db"}
        memory = Memory.from_config(where)
        Model.calls.clear()
        memory.add(SENTENCE, user_id="anna")
        saved = [*Model.calls]
        Model.calls.clear()
        memory.search(QUESTION, filters={"user_id": "anna"})
        return f"to save: {saved}; to find: {Model.calls}"


def main(words: Sequence[str]) -> str:
    """Run one measurement."""
    if len(words) > 1 and words[0] == "size":
        return size(words[1])
    if len(words) > 1 and words[0] == "tools":
        return asyncio.run(tools(words[1:]))
    if len(words) > 1 and words[0] == "run":
        return run(words[1:])
    return mem0() if words == ["mem0"] else str(__doc__)


if __name__ == "__main__":
    print(main(sys.argv[1:]))  # a program's output
