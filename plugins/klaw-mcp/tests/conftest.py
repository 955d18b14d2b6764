"""A memory of three notes, found by words, and clients of the SDK that talk to real processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import frozen
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from klaw_core import Memory, load_config

NOTES = {
    "kiln.md": "# Kiln\n\nThe kiln is fired to\ntwelve hundred degrees.\n",
    "boat.md": "# Boat\n\nThe boat lies in Split.\n",
    "Дача и дом.md": "# Дача\n\nКлюч под ковриком.\n",
}


@frozen
class Home:
    """A directory with a data directory and an indexed workspace, and who talks to it."""

    path: Path

    #: No call takes longer, on any machine; nothing is measured by it.
    patience = 300
    notes = NOTES

    @property
    def data(self):
        return self.path / "data"

    @property
    def environment(self):
        return {
            **os.environ,
            "XDG_CACHE_HOME": str(self.path / "cache"),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "HOME": str(self.path / "home"),
            "KLAW_EMBEDDER": "none",
            "NO_COLOR": "1",
        }

    def command(self, *arguments):
        return [sys.executable, "-m", "klaw_core", *map(str, arguments), "--data-dir", str(self.data)]

    def run(self, *arguments):
        """Run ``klaw`` in a process of its own."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment,
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            timeout=self.patience,
            stdin=subprocess.DEVNULL,
        )

    @asynccontextmanager
    async def client(self, *options, on_message=None):
        """Yield an initialised session with ``klaw mcp``."""
        command, *arguments = self.command("mcp", *options)
        server = StdioServerParameters(command=command, args=arguments, env=self.environment, cwd=self.path)
        async with (
            stdio_client(server) as (read, write),
            ClientSession(read, write, message_handler=on_message) as session,
        ):
            await session.initialize()
            yield session

    def talk(self, conversation):
        """Run a conversation with a server; it must end."""
        return asyncio.run(asyncio.wait_for(conversation, self.patience))

    async def call(self, session, name, **arguments):
        """Call a tool; return its answer, and whether it is an error."""
        result = await session.call_tool(name, arguments)
        return json.loads(result.content[0].text), result.is_error


@pytest.fixture
def home(tmp_path):
    """Return a home with an indexed workspace."""
    made = Home(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
    with Memory.open(load_config(data_dir=made.data, environment={"KLAW_EMBEDDER": "none"})) as memory:
        memory.index(notes)
    return made
